// SPDX-License-Identifier: Apache-2.0
// The lazy scope: evaluation, programs found again, forgetting.
#include "failing_allocation.h"

#include "support/allocator.h"
#include "trace/lazy_cache.h"
#include "trace/opened.h"
#include "trace/tracer.h"

#include <pthread.h>

START_TEST(test_eval)
{
    const double data[3] = {1, 2, 3};
    jot_array *a = jot_array_from(data, 3), *r;
    jot_scope *s = jot_scope_open();
    jot_value b = jot_add(jot_sin(a), 1.0);
    must(jot_eval(b, &r));
    check_numbers(r, 3, (const double[]){sin(1) + 1, sin(2) + 1, sin(3) + 1}, 1e-15);
    // What is evaluated is an array: the same one comes back.
    jot_array *again;
    must(jot_eval(b, &again));
    ck_assert_ptr_eq(r, again);
    ck_assert_double_eq_tol(jot_item(jot_sum(b)), sin(1) + sin(2) + sin(3) + 3, 1e-14);
    must(jot_eval(b, NULL));
    jot_array *both[2];
    jot_value two[2] = {jot_sum(b), jot_max(b)};
    must(jot_eval_tree(2, two, both));
    ck_assert_double_eq(jot_array_item(both[1]), sin(2) + 1);
    jot_arrays_release(2, both);
    jot_array_release(again);
    jot_array_release(r);
    jot_array_release(a);
    jot_scope_close(s);
}
END_TEST

static void check_gradient(jot_value y, jot_value w, const double *want)
{
    jot_array *g;
    must(jot_eval(jot_gradient(y, w), &g));
    check_numbers(g, 3, want, 1e-12);
    jot_array_release(g);
}

// What is evaluated on the way from a variable to a result is still on that way.
START_TEST(test_derivatives_go_through_what_is_evaluated)
{
    jot_array *a = jot_array_from(((double[]){1, 2, 3}), 3), *x_then, *t;
    double squares[3], sines[3], both = 0;
    for (int i = 0; i < 3; i++) {
        double w = i + 1, x = w * w;
        squares[i] = 4 * x * w;
        sines[i] = 2 * w * (cos(x) * x + sin(x));
        both += sines[i];
    }
    jot_scope *s = jot_scope_open();
    jot_value w = jot_variable(jot_from(a)), x = jot_mul(w, w);
    jot_value before = jot_sum(jot_mul(x, x));
    must(jot_eval(x, &x_then));
    jot_value after = jot_sum(jot_mul(jot_sin(x), x));
    check_gradient(before, w, squares);
    check_gradient(after, w, sines);
    must(jot_eval(jot_tangent(after, w, jot_ones_like(w)), &t));
    ck_assert_double_eq_tol(jot_array_item(t), both, 1e-12);
    // So is the variable itself, and what it was made of; an array is a constant.
    must(jot_eval(w, NULL));
    check_gradient(before, w, squares);
    check_gradient(jot_sum(w), w, (const double[]){1, 1, 1});
    check_gradient(jot_add(after, jot_sum(jot_from(x_then))), w, sines);
    jot_arrays_release(3, (jot_array *[]){a, x_then, t});
    jot_scope_close(s);
}
END_TEST

// One result of a loop is evaluated, then another, then what both lead to.
START_TEST(test_results_of_a_loop_are_evaluated_one_by_one)
{
    jot_array *a = jot_array_from(((double[]){1, 2, 3}), 3);
    for (int first = 0; first < 2; first++) {
        jot_scope *s = jot_scope_open();
        jot_value w = jot_variable(jot_from(a)), x = w, y = jot_sum(w);
        JOT_FOR (i, 3, x, y) {
            y = jot_add(y, jot_sum(jot_mul(x, w)));
            x = jot_mul(x, 2);
        }
        must(jot_eval(first ? y : jot_sum(x), NULL));
        must(jot_eval(first ? x : y, NULL));
        ck_assert_double_eq(jot_item(y), 6 + 7 * 14);
        ck_assert_double_eq(jot_item(jot_sum(x)), 8 * 6);
        check_gradient(jot_add(y, jot_sum(x)), w, (const double[]){23, 37, 51});
        jot_scope_close(s);
    }
    jot_array_release(a);
}
END_TEST

// A program of constants alone is found again whether its value has been evaluated or not.
START_TEST(test_constants_stay_constants)
{
    jot_scope *s = jot_scope_open();
    jot_value zeros = jot_zeros(JOT_F64, 3);
    jot_array *r, *again;
    must(jot_eval(zeros, &r));
    must(jot_eval(zeros, &again));
    ck_assert_ptr_eq(r, again);
    ck_assert_double_eq(jot_item(jot_sum(jot_add(jot_zeros(JOT_F64, 3), zeros))), 0);
    jot_arrays_release(2, (jot_array *[]){r, again});
    jot_scope_close(s);
}
END_TEST

// Effects that could not be compiled are still to come; those of a run that failed are not.
START_TEST(test_effects_to_come)
{
    jot_array *a = jot_array_full(JOT_F64, -2, 3), *r = NULL;
    jot_scope *s = jot_scope_open();
    jot_value x = jot_from(a);
    jot_assert(jot_greater(x, 0), "not positive");
    setenv("JOT_CHECK", "everything", 1);
    ck_assert_int_eq(jot_eval(jot_sum(x), &r), JOT_ERR_ARGUMENT);
    unsetenv("JOT_CHECK");
    ck_assert_int_eq(jot_eval(jot_sum(x), &r), JOT_ERR_CHECK);
    ck_assert_ptr_null(r);
    must(jot_eval(jot_sum(x), &r));
    jot_array_release(r);
    jot_scope_close(s);
    jot_array_release(a);
}
END_TEST

// Numbers are inputs: other numbers find the same program, also inside blocks and derivatives.
START_TEST(test_numbers_do_not_compile)
{
    jot_array *a = jot_array_full(JOT_F64, 2, 3);
    size_t after_first = 0;
    for (int i = 0; i < 5; i++) {
        jot_scope *s = jot_scope_open();
        jot_value x = jot_variable(jot_from(a)), r;
        JOT_VMAP ((x), (r)) {
            r = jot_mul(jot_mul(x, x), 0.5 + i);
        }
        jot_value g = jot_gradient(jot_sum(r), x);
        ck_assert_double_eq(jot_item(jot_max(g)), 4 * (0.5 + i));
        jot_scope_close(s);
        if (i == 0)
            after_first = lazy_compiled();
    }
    ck_assert_int_eq((int)lazy_compiled(), (int)after_first);
    jot_array_release(a);
}
END_TEST

// So are integers, to the last digit; those that say what is computed are not.
START_TEST(test_integers_do_not_compile)
{
    const int64_t large = INT64_C(1) << 60;
    jot_array *a = jot_array_full(JOT_F32, 2, 3), *r;
    size_t after_first = 0;
    for (int i = 0; i < 4; i++) {
        jot_scope *s = jot_scope_open();
        jot_value x = jot_from(a), n = jot_full(JOT_I64, 1);
        ck_assert_double_eq(jot_item(jot_sum(jot_mul(x, 3 + i))), 6 * (3 + i));
        must(jot_eval(jot_add(n, large + i), &r));
        ck_assert(*(const int64_t *)jot_array_data(r) == large + i + 1);
        jot_array_release(r);
        must(jot_eval(jot_sub(jot_full(JOT_U64, 5), jot_from_uint(UINT64_MAX - (uint64_t)i)),
                      &r));
        ck_assert(*(const uint64_t *)jot_array_data(r) == 6 + (uint64_t)i);
        jot_array_release(r);
        must(jot_eval(jot_random_bits(jot_random_key(i), JOT_U32, 4), &r));
        jot_array_release(r);
        ck_assert_double_eq(jot_item(jot_dynamic_slice(jot_arange(JOT_I32, 9), i, 1)), i);
        jot_scope_close(s);
        if (i == 0)
            after_first = lazy_compiled();
    }
    ck_assert_int_eq((int)lazy_compiled(), (int)after_first);
    jot_scope *s = jot_scope_open();
    ck_assert_double_eq(jot_item(jot_sum(jot_integer_pow(a, 3))), 24);
    ck_assert_double_eq(jot_item(jot_sum(jot_pow(a, 2))), 12);
    ck_assert_double_eq(jot_item(jot_take(a, 2)), 2);
    jot_scope_close(s);
    jot_array_release(a);
}
END_TEST

START_TEST(test_keep)
{
    struct {
        jot_value a, b;
    } now;
    jot_scope *s = jot_scope_open();
    now.a = jot_full(JOT_F64, 1);
    now.b = jot_full(JOT_F64, 0, 2);
    jot_value old = jot_add(now.a, 1);
    for (int i = 0; i < 20; i++) {
        now.b = jot_add(now.b, now.a);
        now.a = jot_mul(now.a, 1.0 + 0.001 * (i % 3));
        must(jot_scope_keep(s, JOT_TREE(now)));
    }
    CHECK(jot_take(now.b, 0), 0, jot_item(jot_take(now.b, 1)));
    ck_assert(isnan(jot_item(old)));
    ck_assert(strstr(jot_error_message(), "jot_scope_keep") != NULL);
    jot_scope_close(s);
}
END_TEST

static jot_scope *opened;
static jot_value evaluates(jot_value x)
{
    ck_assert(isnan(jot_item(x)));
    ck_assert(strstr(jot_error_message(), "a value has no number while it is traced") != NULL);
    return x;
}

static jot_value from_scope;
static jot_value uses_scope(jot_value x) { return jot_add(x, from_scope); }

START_TEST(test_scope_and_functions)
{
    opened = jot_scope_open();
    from_scope = jot_full(JOT_F64, 1);
    jot_array *x = jot_array_full(JOT_F64, 1), *y;
    jot_executable *e = jot_jit(jot_fn(evaluates)), *f = jot_jit(jot_fn(uses_scope));
    ck_assert_int_eq(jot_call(e, JOT_IN(x), JOT_OUT(y)), JOT_ERR_TRACE);
    ck_assert_int_eq(jot_call(f, JOT_IN(x), JOT_OUT(y)), JOT_ERR_STALE);
    ck_assert(strstr(jot_error_message(), "a value of the scope (traced at") != NULL);
    // A function value applied in a scope may use what is there.
    jot_value in = jot_from(x), out;
    jot_apply(jot_fn(uses_scope), 1, &in, 1, &out);
    ck_assert_double_eq(jot_item(out), 2);
    jot_array_release(x);
    jot_executable_release(e);
    jot_executable_release(f);
    jot_scope_close(opened);
    ck_assert(isnan(jot_item(out)));
    ck_assert(strstr(jot_error_message(), "no scope is open") != NULL);
}
END_TEST

static jot_value leaves_open(jot_value x)
{
    opened = jot_scope_open();
    return x;
}

static jot_value closes_outer(jot_value x)
{
    jot_scope_close(opened);
    return x;
}

START_TEST(test_order_of_closing)
{
    jot_array *x = jot_array_full(JOT_F64, 1), *y = NULL;
    jot_executable *e = jot_jit(jot_fn(leaves_open)), *f = jot_jit(jot_fn(closes_outer));
    ck_assert_int_eq(jot_call(e, JOT_IN(x), JOT_OUT(y)), JOT_ERR_TRACE);
    ck_assert(strstr(jot_error_message(), "leaves a scope open") != NULL);
    jot_scope_close(opened);
    opened = jot_scope_open();
    ck_assert_int_eq(jot_call(f, JOT_IN(x), JOT_OUT(y)), JOT_ERR_TRACE);
    ck_assert(strstr(jot_error_message(), "being traced inside the scope") != NULL);
    // A scope ends with the one around it.
    jot_scope *inner = jot_scope_open();
    jot_scope_close(opened);
    ck_assert_ptr_null(trace_top());
    jot_scope_close(inner);
    jot_array_release(x);
    jot_executable_release(e);
    jot_executable_release(f);
}
END_TEST

static void *evaluate_both(void *own)
{
    double n = *(int *)own, x;
    jot_scope *s = jot_scope_open();
    jot_value common = jot_sum(jot_cos(jot_arange(JOT_F64, 7)));
    x = jot_item(common);
    ck_assert_double_eq_tol(x, 0.5 * (1 + sin(6.5) / sin(0.5)), 1e-14);
    ck_assert_double_eq(jot_item(jot_sum(jot_arange(JOT_F64, (int64_t)n))), n * (n - 1) / 2);
    jot_scope_close(s);
    return NULL;
}

// What all threads want is compiled once, and none waits for ever.
START_TEST(test_threads)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int own[THREADS];
    size_t before = lazy_compiled();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < THREADS; i++) {
            own[i] = 3 + i;
            ck_assert_int_eq(pthread_create(&threads[i], NULL, evaluate_both, &own[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        ck_assert_uint_eq(lazy_compiled() - before, 1 + THREADS);
    }
}
END_TEST

struct other_thread {
    jot_value v;
    jot_scope *scope;
    double sum;
    char message[400];
};

// The value that is made here would have the serial of v if threads counted for themselves.
static void *use_value_of_another(void *ctx)
{
    struct other_thread *o = ctx;
    jot_scope *s = jot_scope_open();
    jot_value w = jot_mul(jot_full(JOT_F64, 3), 1);
    jot_array *r = NULL;
    ck_assert_int_eq(jot_eval(jot_add(o->v, 0), &r), JOT_ERR_STALE);
    snprintf(o->message, sizeof o->message, "%s", jot_error_message());
    jot_scope_close(o->scope);
    ck_assert(strstr(jot_error_message(), "of another thread: close it there") != NULL);
    ck_assert_int_eq(jot_scope_keep(o->scope, 1, &w), JOT_ERR_TRACE);
    jot_scope_close(s);
    s = jot_scope_open();
    o->sum = jot_item(jot_sum(jot_mul(jot_full(JOT_F64, 3), 1)));
    jot_scope_close(s);
    return NULL;
}

START_TEST(test_value_of_another_thread)
{
    pthread_t thread;
    struct other_thread o = {0};
    o.scope = jot_scope_open();
    int opened_at = __LINE__ - 1;
    o.v = jot_mul(jot_full(JOT_F64, 100), 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, use_value_of_another, &o), 0);
    pthread_join(thread, NULL);
    char place[80];
    snprintf(place, sizeof place, "test_scope.c:%d", opened_at);
    ck_assert_msg(strstr(o.message, place) != NULL &&
                      strstr(o.message, "is of another thread") != NULL &&
                      strstr(strstr(o.message, place) + 1, "test_scope.c:") != NULL,
                  "%s", o.message);
    ck_assert_double_eq(o.sum, 3);
    ck_assert_double_eq(jot_item(o.v), 200);
    jot_scope_close(o.scope);
    ck_assert_ptr_null(trace_top());
}
END_TEST

// After 2^32 traces serials come again, but not those of traces that are open.
START_TEST(test_serials_come_again)
{
    uint32_t *last = opened_last_serial();
    *last = 50;
    jot_scope *outer = jot_scope_open();
    jot_value v = jot_full(JOT_F64, 7);
    uint32_t taken = trace_top()->serial;
    *last = UINT32_MAX - 3;
    for (int i = 0; i < 8; i++) {
        jot_scope *s = jot_scope_open();
        uint32_t serial = trace_top()->serial;
        ck_assert(serial != 0 && serial != UINT32_MAX && serial != taken);
        if (serial < 3)
            *last = taken - 2;
        jot_scope_close(s);
    }
    ck_assert_uint_gt(*last, taken);
    ck_assert_double_eq(jot_item(v), 7);
    jot_scope_close(outer);
}
END_TEST

// The programs of scopes that are closed are no hindrance, for nobody could release them.
START_TEST(test_another_allocator)
{
    int user_blocks = 0;
    jot_allocator mine = user_allocator(&user_blocks);
    jot_array *x = jot_array_full(JOT_F64, 1, 5), *y;
    jot_scope *s = jot_scope_open();
    must(jot_eval(jot_mul(x, 2), &y));
    jot_array_release(x);
    jot_array_release(y);
    ck_assert_int_eq(jot_set_allocator(&mine), JOT_ERR_ARGUMENT);
    ck_assert(strstr(jot_error_message(), "close all scopes") != NULL);
    jot_scope_close(s);
    must(jot_set_allocator(&mine));
    s = jot_scope_open();
    ck_assert_double_eq(jot_item(jot_mul(jot_full(JOT_F64, 4), 2)), 8);
    ck_assert_int_gt(user_blocks, 0);
    jot_scope_close(s);
    must(jot_set_allocator(NULL));
    ck_assert_int_eq(user_blocks, 0);
}
END_TEST

static jot_status whole_life(void)
{
    jot_status status = JOT_ERR_MEMORY;
    jot_scope *s = jot_scope_open();
    if (!s)
        return status;
    jot_array *r;
    jot_value x = jot_add(jot_arange(JOT_F64, 5), 0.5), y = jot_softmax(x, 0);
    status = jot_eval(y, &r);
    if (status == JOT_OK) {
        jot_array_release(r);
        status = jot_scope_keep(s, 1, &y);
    }
    jot_scope_close(s);
    lazy_forget();
    return status;
}

START_TEST(test_failing_allocation) { check_failing_allocations(whole_life); }
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_eval);
    tcase_add_test(t, test_derivatives_go_through_what_is_evaluated);
    tcase_add_test(t, test_results_of_a_loop_are_evaluated_one_by_one);
    tcase_add_test(t, test_constants_stay_constants);
    tcase_add_test(t, test_effects_to_come);
    tcase_add_test(t, test_numbers_do_not_compile);
    tcase_add_test(t, test_integers_do_not_compile);
    tcase_add_test(t, test_keep);
    tcase_add_test(t, test_scope_and_functions);
    tcase_add_test(t, test_order_of_closing);
    tcase_add_test(t, test_threads);
    tcase_add_test(t, test_value_of_another_thread);
    tcase_add_test(t, test_serials_come_again);
    tcase_add_test(t, test_another_allocator);
    tcase_add_test(t, test_failing_allocation);
}

int main(void) { return run_suite("trace/scope", add); }
