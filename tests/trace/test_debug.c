// SPDX-License-Identifier: Apache-2.0
// Assertions in functions, blocks and transforms, and checks of numbers, by machine code and by the
// evaluator.
#include "debug_support.h"

#include <pthread.h>

static jot_value guarded(jot_value x)
{
    jot_assert(jot_greater(x, 0), "x must be positive");
    return jot_log(x);
}

// Calls f on an f64 vector and compares the message, or NULL for none; the result is otherwise left
// alone.
static void call_on(jot_function f, int n, const double *x, const char *message)
{
    jot_executable *e = jot_jit(f);
    jot_array *in = vector(n, x), *out = (jot_array *)&in;
    jot_status status = jot_call(e, JOT_IN(in), JOT_OUT(out));
    ck_assert_msg((status == JOT_OK) == (message == NULL), "%s", jot_error_message());
    if (message) {
        ck_assert_int_eq(status, JOT_ERR_CHECK);
        ck_assert_str_eq(said(), message);
        ck_assert(out == (jot_array *)&in);
    } else {
        jot_array_release(out);
    }
    jot_array_release(in);
    jot_executable_release(e);
}

#define GUARDED "test_debug.c: jot_assert(jot_greater(x, 0)): x must be positive"

START_TEST(test_assert)
{
    call_on(jot_fn(guarded), 3, (const double[]){1, 2, 3}, NULL);
    call_on(jot_fn(guarded), 3, (const double[]){1, -2, 0}, GUARDED ", at [1]");
}
END_TEST

static jot_value of_scalar(jot_value x)
{
    jot_assert(jot_less(jot_sum(x), 10), NULL);
    return x;
}

START_TEST(test_scalar_has_no_index)
{
    call_on(jot_fn(of_scalar), 2, (const double[]){4, 5}, NULL);
    call_on(jot_fn(of_scalar), 2, (const double[]){5, 5},
            "test_debug.c: jot_assert(jot_less(jot_sum(x), 10)): does not hold");
}
END_TEST

START_TEST(test_mapped)
{
    call_on(jot_vmap(jot_fn(guarded), 0), 3, (const double[]){1, 2, 3}, NULL);
    call_on(jot_vmap(jot_fn(guarded), 0), 3, (const double[]){1, 2, -3}, GUARDED ", in lane 2");
}
END_TEST

static jot_value total(jot_value x) { return jot_sum(guarded(x)); }

START_TEST(test_gradient)
{
    call_on(jot_grad(jot_fn(total), 0), 3, (const double[]){1, 2, 3}, NULL);
    call_on(jot_grad(jot_fn(total), 0), 3, (const double[]){0, 2, 3}, GUARDED ", at [0]");
}
END_TEST

static jot_value in_loop(jot_value x)
{
    JOT_FOR (i, 4, x) {
        jot_assert(jot_less(x, 100), "grows");
        x = jot_mul(x, 2);
    }
    return x;
}

static jot_value in_while(jot_value x)
{
    JOT_WHILE ((x), jot_less(jot_sum(x), 100)) {
        jot_assert(jot_greater(x, 0), "falls");
        x = jot_add(x, x);
    }
    return x;
}

static jot_value in_branch(jot_value x)
{
    JOT_IF (jot_greater(jot_sum(x), 0), x) {
        jot_assert(jot_less(x, 5), "large");
    } else {
        x = jot_neg(x);
    }
    return x;
}

START_TEST(test_blocks)
{
    call_on(jot_fn(in_loop), 2, (const double[]){1, 2}, NULL);
    call_on(jot_fn(in_loop), 2, (const double[]){1, 40},
            "test_debug.c: jot_assert(jot_less(x, 100)): grows, at [1], in trip 2");
    call_on(jot_fn(in_while), 2, (const double[]){1, 2}, NULL);
    call_on(jot_fn(in_while), 2, (const double[]){-1, 2},
            "test_debug.c: jot_assert(jot_greater(x, 0)): falls, at [0], in trip 0");
    call_on(jot_fn(in_branch), 2, (const double[]){1, 2}, NULL);
    call_on(jot_fn(in_branch), 2, (const double[]){1, -7}, NULL);
    call_on(jot_fn(in_branch), 2, (const double[]){1, 7},
            "test_debug.c: jot_assert(jot_less(x, 5)): large, at [1]");
    call_on(jot_vmap(jot_fn(in_branch), 0), 2, (const double[]){1, -7}, NULL);
    call_on(jot_vmap(jot_fn(in_branch), 0), 2, (const double[]){-9, 7},
            "test_debug.c: jot_assert(jot_less(x, 5)): large, in lane 1");
}
END_TEST

// x doubled until it is 100.
static jot_value bounded(jot_value x)
{
    JOT_WHILE ((x), jot_less(x, 100), .bound = 4) {
        x = jot_mul(x, 2);
    }
    return x;
}

static jot_value sum_bounded(jot_value x)
{
    jot_value y;
    JOT_VMAP ((x), (y)) {
        y = bounded(x);
    }
    return jot_sum(y);
}

static jot_value bounded_in_loop(jot_value x)
{
    JOT_FOR (i, 3, x) {
        x = bounded(jot_sub(x, 100));
    }
    return x;
}

#define BOUND "test_debug.c: JOT_WHILE: not done after 4 trips, its bound"

START_TEST(test_bound)
{
    static const double good[] = {7, 50, 101}, bad[] = {7, 6, 5};
    jot_function mapped = jot_vmap(jot_fn(bounded), 0);
    call_on(mapped, 3, good, NULL);
    call_on(mapped, 3, bad, BOUND ", in lane 1");
    call_on(jot_fn(sum_bounded), 3, good, NULL);
    call_on(jot_grad(jot_fn(sum_bounded), 0), 3, good, NULL);
    call_on(jot_grad(jot_fn(sum_bounded), 0), 3, bad, BOUND ", in lane 1");
    call_on(jot_vmap(jot_grad(jot_fn(bounded), 0), 0), 3, bad, BOUND ", in lane 1");
    call_on(jot_vmap(jot_fn(bounded_in_loop), 0), 2, (const double[]){110, 107}, NULL);
    call_on(jot_vmap(jot_fn(bounded_in_loop), 0), 2, (const double[]){110, 101},
            BOUND ", in lane 1, in trip 0");
}
END_TEST

// Errors of the check itself.
static jot_value not_bool(jot_value x)
{
    jot_assert(x, "x");
    return x;
}

START_TEST(test_takes_bool)
{
    jot_executable *e = jot_jit(jot_fn(not_bool));
    jot_array *in = vector(2, (const double[]){1, 2}), *out;
    ck_assert_int_eq(jot_call(e, JOT_IN(in), JOT_OUT(out)), JOT_ERR_DTYPE);
    ck_assert_str_eq(said(), "test_debug.c: jot_assert(x): f64[2] is not bool: compare it");
    jot_array_release(in);
    jot_executable_release(e);
}
END_TEST

// In a scope an assertion belongs to the next evaluation, and to no other.
START_TEST(test_scope)
{
    jot_scope *s = jot_scope_open();
    jot_value x = jot_add(jot_from(1.0), 2.0), y = jot_mul(x, 2);
    jot_assert(jot_less(x, 3), "three");
    jot_array *a = NULL;
    ck_assert_int_eq(jot_eval(y, &a), JOT_ERR_CHECK);
    ck_assert_ptr_null(a);
    ck_assert_str_eq(said(), "test_debug.c: jot_assert(jot_less(x, 3)): three");
    CHECK_EXACT(y, 6);
    jot_assert(jot_less(y, 7), "seven");
    CHECK_EXACT(y, 6);
    jot_assert(jot_less(y, 6), "six");
    ck_assert_int_eq(jot_eval(y, NULL), JOT_ERR_CHECK);
    jot_scope_close(s);
}
END_TEST

enum { THREADS = 2, CALLS = 200 };

static void *call_often(void *at)
{
    jot_executable *e = *(jot_executable **)at;
    for (int i = 0; i < CALLS; i++) {
        bool good = i % 3 != 0;
        jot_array *in = vector(2, (const double[]){1, good ? 1 : -1}), *out = NULL;
        jot_status status = jot_call(e, JOT_IN(in), JOT_OUT(out));
        bool right = good ? status == JOT_OK
                          : status == JOT_ERR_CHECK && !strcmp(said(), GUARDED ", at [1]");
        jot_array_release(in);
        jot_array_release(out);
        if (!right)
            return at;
    }
    return NULL;
}

START_TEST(test_threads)
{
    jot_executable *e = jot_jit(jot_fn(guarded));
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, call_often, &e), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(t[i], &failed);
        ck_assert_ptr_null(failed);
    }
    jot_executable_release(e);
}
END_TEST

// ---------------------------------------------------------------------------------------
// Numbers

static jot_value logs(jot_value x)
{
    JOT_FOR (i, 5, x) {
        x = jot_log(jot_mul(x, 2));
    }
    return x;
}

static jot_value root_of_square(jot_value x) { return jot_sum(jot_sqrt(jot_mul(x, x))); }

START_TEST(test_nan_is_named)
{
    setenv("JOT_CHECK", "nan", 1);
    call_on(jot_fn(logs), 2, (const double[]){1e30, 1e40}, NULL);
    call_on(jot_fn(logs), 2, (const double[]){1e30, 1},
            "test_debug.c: jot_log(jot_mul(x, 2)): log gives NaN, at [1], in trip 3");
    call_on(jot_vmap(jot_fn(logs), 0), 2, (const double[]){1e30, 1},
            "test_debug.c: jot_log(jot_mul(x, 2)): log gives NaN, at [1], in trip 3");
    call_on(jot_fn(logs), 2, (const double[]){NAN, 2},
            "test_debug.c: argument 0 is NaN, at [0]");
    call_on(jot_grad(jot_fn(root_of_square), 0), 2, (const double[]){1, 2}, NULL);
    setenv("JOT_CHECK", "inf", 1);
    call_on(jot_grad(jot_fn(root_of_square), 0), 2, (const double[]){1, 0},
            "test_debug.c: jot_sqrt(jot_mul(x, x)): div gives NaN or infinity, at [1]");
    unsetenv("JOT_CHECK");
}
END_TEST

static jot_value counted(jot_value x, jot_value h)
{
    jot_value m = jot_at_add(jot_zeros(JOT_I32, 4), jot_convert(x, JOT_I32), 1);
    x = jot_add(x, jot_take(x, m));
    h = jot_at_add(h, m, 1);
    return jot_add(jot_sum(x), jot_sum(h));
}

// Scatters between the checks.
START_TEST(test_numbers_beside_updates)
{
    const char *kinds[] = {"nan", "inf"};
    for (int k = 0; k < 2; k++) {
        jot_array *x = vector(4, (const double[]){0, 1, 1, 3}), *y = NULL;
        jot_array *h = jot_array_full(JOT_I32, 0, 4);
        setenv("JOT_CHECK", kinds[k], 1);
        jot_executable *e = jot_jit(jot_fn(counted));
        must(jot_call(e, JOT_IN(x, h), JOT_OUT(y)));
        unsetenv("JOT_CHECK");
        check_numbers(y, 1, (const double[]){12}, 0);
        jot_executable_release(e);
        jot_array_release(x);
        jot_array_release(h);
        jot_array_release(y);
    }
}
END_TEST

static jot_value safe_log(jot_value x)
{
    return jot_sum(jot_where(jot_greater(x, 0), jot_log(x), 0));
}

static void gradient_of_log(double want)
{
    jot_executable *e = jot_jit(jot_grad(jot_fn(safe_log), 0));
    jot_array *x = vector(2, (const double[]){2, 0}), *g;
    must(jot_call(e, JOT_IN(x), JOT_OUT(g)));
    check_numbers(g, 2, (const double[]){0.5, want}, 0);
    jot_array_release(x);
    jot_array_release(g);
    jot_executable_release(e);
}

// The slope of log at 0 is infinite, in the branch that is not taken.
START_TEST(test_guard)
{
    gradient_of_log(0);
    setenv("JOT_NAN_GUARD", "off", 1);
    gradient_of_log(NAN);
    setenv("JOT_NAN_GUARD", "maybe", 1);
    jot_executable *e = jot_jit(jot_fn(safe_log));
    jot_array *x = vector(1, (const double[]){1}), *y;
#line 1 "call.c"
    jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
#line 318 "test_debug.c"
    ck_assert_int_eq(status, JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("call.c:1: the environment variable JOT_NAN_GUARD is 'maybe', which is none "
                  "of: on, off");
    jot_array_release(x);
    jot_executable_release(e);
    unsetenv("JOT_NAN_GUARD");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, test_assert);
    tcase_add_test(t, test_scalar_has_no_index);
    tcase_add_test(t, test_mapped);
    tcase_add_test(t, test_gradient);
    tcase_add_test(t, test_blocks);
    tcase_add_test(t, test_bound);
    tcase_add_test(t, test_takes_bool);
    tcase_add_test(t, test_scope);
    tcase_add_test(t, test_threads);
    tcase_add_test(t, test_nan_is_named);
    tcase_add_test(t, test_numbers_beside_updates);
    tcase_add_test(t, test_guard);
}

int main(void) { return run_by_both("debug", add_tests); }
