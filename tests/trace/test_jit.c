// SPDX-License-Identifier: Apache-2.0
// Compiled functions: versions, options, hidden inputs, threads, memory that runs out.
#include "failing_allocation.h"

#include "trace/tracer.h"

#include <pthread.h>

static int times_traced;
static jot_value twice(jot_value x)
{
    times_traced++;
    return jot_mul(x, 2);
}

static double item_of(jot_executable *e, jot_array *x)
{
    jot_array *y;
    must(jot_call(e, JOT_IN(x), JOT_OUT(y)));
    double r = jot_array_item(y);
    jot_array_release(y);
    return r;
}

START_TEST(test_versions)
{
    jot_executable *e = jot_jit(jot_fn(twice), .name = "doubled");
    jot_array *a = jot_array_full(JOT_F64, 3), *b = jot_array_full(JOT_I32, 4);
    jot_array *c = jot_array_full(JOT_F64, 5, 1);
    times_traced = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(item_of(e, a), 6);
        ck_assert_double_eq(item_of(e, b), 8);
        ck_assert_double_eq(item_of(e, c), 10);
    }
    ck_assert_int_eq(times_traced, 3);
    ck_assert_int_eq((int)jot_executable_versions(e), 3);
    ck_assert(strstr(jot_executable_graph(e), "doubled") != NULL);
    ck_assert_ptr_null(jot_executable_text(e, "no such stage"));
    jot_executable_retain(e);
    jot_executable_release(e);
    ck_assert_double_eq(item_of(e, a), 6);
    jot_array_release(a);
    jot_array_release(b);
    jot_array_release(c);
    jot_executable_release(e);
}
END_TEST

// What is prepared is compiled and not run, and the call finds it.
START_TEST(test_preparation)
{
    jot_executable *e = jot_jit(jot_fn(twice), .name = "prepared");
    jot_array *a = jot_array_full(JOT_F64, 3);
    times_traced = 0;
    for (int i = 0; i < 2; i++)
        must(jot_executable_prepare(e, 1, &a));
    ck_assert(strstr(jot_executable_graph(e), "prepared") != NULL);
    ck_assert_double_eq(item_of(e, a), 6);
    ck_assert_int_eq(times_traced, 1);
    ck_assert_int_eq(jot_executable_prepare(e, 2, (jot_array *[]){a, a}), JOT_ERR_ARGUMENT);
    ck_assert_msg(!strncmp(jot_error_message(), "jot_executable_prepare: prepared takes 1", 40),
                  "%s", jot_error_message());
    jot_array_release(a);
    jot_executable_release(e);
}
END_TEST

static jot_value mirrored(jot_value x, jot_value y)
{
    return jot_add(jot_mul(x, 2), jot_flip(y));
}

// One array that is given twice is not written while it is read.
START_TEST(test_donated_twice)
{
    enum { N = 1000 };
    static float data[N];
    for (int i = 0; i < N; i++)
        data[i] = (float)i;
    const int donate[] = {0, JOT_END};
    jot_executable *e = jot_jit(jot_fn(mirrored), .donate = donate);
    jot_array *x = jot_array_from(data, N), *y = NULL;
    must(jot_call(e, JOT_IN(x, x), JOT_OUT(y)));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(((const float *)jot_array_data(y))[i], (float)(2 * i + N - 1 - i));
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(e);
}
END_TEST

static jot_executable *itself;
static jot_value calls_itself(jot_value x)
{
    jot_array *a = jot_array_full(JOT_F64, 1, 3), *y = NULL;
    ck_assert_int_eq(jot_call(itself, JOT_IN(a), JOT_OUT(y)), JOT_ERR_TRACE);
    ck_assert(strstr(jot_error_message(), "cannot be called by itself") != NULL);
    jot_array_release(a);
    return x;
}

START_TEST(test_misused_calls)
{
    jot_array *x = jot_array_full(JOT_F64, 1, 3), *y = NULL;
    itself = jot_jit(jot_fn(calls_itself));
    must(jot_call(itself, JOT_IN(x), JOT_OUT(y)));
    ck_assert_int_eq(jot_call_list(itself, 1, NULL, 1, &y), JOT_ERR_ARGUMENT);
    ck_assert(strstr(jot_error_message(), "the list of inputs") != NULL);
    ck_assert_int_eq(jot_call_list(itself, 1, &x, 1, NULL), JOT_ERR_ARGUMENT);
    ck_assert(strstr(jot_error_message(), "the list of outputs") != NULL);
    ck_assert_ptr_null(jot_executable_text(itself, NULL));
    jot_array_release(x);
    jot_array_release(y);
    jot_executable_release(itself);
}
END_TEST

struct config {
    int power;
};

static void powered(const jot_value *in, jot_value *out, void *ctx)
{
    const struct config *c = ctx;
    times_traced++;
    out[0] = jot_integer_pow(in[0], c->power);
}

START_TEST(test_static_bytes)
{
    struct config c = {2};
    jot_executable *e = jot_jit(jot_function_make(powered, 1, 1, &c), .static_data = &c,
                                .static_size = sizeof c);
    jot_array *x = jot_array_full(JOT_F64, 3);
    times_traced = 0;
    ck_assert_double_eq(item_of(e, x), 9);
    c.power = 3;
    ck_assert_double_eq(item_of(e, x), 27);
    c.power = 2;
    ck_assert_double_eq(item_of(e, x), 9);
    ck_assert_int_eq(times_traced, 2);
    jot_array_release(x);
    jot_executable_release(e);
}
END_TEST

static jot_array *table;
static jot_value with_table(jot_value x) { return jot_sum(jot_mul(x, jot_add(table, table))); }

// An array used while tracing is an input that the executable holds, not a constant.
START_TEST(test_captured_arrays)
{
    const double data[2] = {1, 10};
    table = jot_array_from(data, 2);
    jot_executable *e = jot_jit(jot_fn(with_table)),
                   *de = jot_jit(jot_grad(jot_fn(with_table)));
    jot_array *x = jot_array_full(JOT_F64, 1, 2), *g;
    ck_assert_double_eq(item_of(e, x), 22);
    ck_assert_ptr_null(strstr(jot_executable_graph(e), "const"));
    must(jot_call(de, JOT_IN(x), JOT_OUT(g)));
    check_numbers(g, 2, (const double[]){2, 20}, 0);
    jot_array_release(g);
    jot_array_release(table);
    ck_assert_double_eq(item_of(e, x), 22);
    jot_array_release(x);
    jot_executable_release(e);
    jot_executable_release(de);
}
END_TEST

static jot_value summed(jot_value x) { return jot_sum(jot_exp(x)); }

// Any argument order of evaluation, any number of calls: the text is the same.
START_TEST(test_same_source_same_graph)
{
    jot_array *x = jot_array_full(JOT_F64, 1, 3);
    char *first = NULL;
    for (int i = 0; i < 2; i++) {
        jot_executable *e = jot_jit(jot_grad(jot_fn(summed)));
        jot_array *g;
        must(jot_call(e, JOT_IN(x), JOT_OUT(g)));
        jot_array_release(g);
        if (first)
            ck_assert_str_eq(first, jot_executable_graph(e));
        else
            first = strdup(jot_executable_graph(e));
        jot_executable_release(e);
    }
    free(first);
    jot_array_release(x);
}
END_TEST

struct thread_work {
    jot_executable *shared;
    int failures;
};

static void *work(void *data)
{
    struct thread_work *w = data;
    for (int i = 0; i < 20; i++) {
        jot_array *x = jot_array_full(JOT_F64, i), *y = NULL;
        jot_executable *own = jot_jit(jot_grad(jot_fn(summed)));
        if (jot_call(w->shared, JOT_IN(x), JOT_OUT(y)) != JOT_OK || jot_array_item(y) != 2 * i)
            w->failures++;
        jot_array_release(y);
        y = NULL;
        if (jot_call(own, JOT_IN(x), JOT_OUT(y)) != JOT_OK ||
            fabs(jot_array_item(y) - exp(i)) > 1e-12 * exp(i))
            w->failures++;
        jot_array_release(y);
        jot_array_release(x);
        jot_executable_release(own);
    }
    return NULL;
}

START_TEST(test_threads)
{
    struct thread_work w[4] = {0};
    pthread_t threads[4];
    jot_executable *shared = jot_jit(jot_fn(twice));
    for (int i = 0; i < 4; i++) {
        w[i].shared = shared;
        pthread_create(&threads[i], NULL, work, &w[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(w[i].failures, 0);
    }
    jot_executable_release(shared);
}
END_TEST

static jot_value nested(jot_value x)
{
    jot_value r;
    JOT_VMAP ((x), (r)) {
        r = JOT_GRAD(summed, jot_mul(x, 0.5));
    }
    return jot_softplus(jot_sum(r));
}

static jot_status whole_life(void)
{
    jot_executable *e = jot_jit(jot_grad(jot_fn(nested)));
    jot_array *x = jot_array_full(JOT_F64, 1, 3), *g = NULL;
    jot_status s = e && x ? jot_call(e, JOT_IN(x), JOT_OUT(g)) : JOT_ERR_MEMORY;
    jot_array_release(g);
    jot_array_release(x);
    jot_executable_release(e);
    return s;
}

// The call, the function and the device, and that the host goes on.
START_TEST(test_missing_device)
{
    jot_executable *e = jot_jit(jot_fn(twice), .device = jot_cuda(15));
    jot_array *x = jot_array_full(JOT_F64, 3), *y;
    ck_assert_int_eq(jot_call(e, JOT_IN(x), JOT_OUT(y)), JOT_ERR_DEVICE);
    char want[200];
    snprintf(want, sizeof want, "%s:%d: jot_call: twice cannot run on cuda:15: ", __FILE__,
             __LINE__ - 3);
    ck_assert_msg(!strncmp(jot_error_message(), want, strlen(want)), "'%s' is not '%s...'",
                  jot_error_message(), want);
    jot_executable *here = jot_jit(jot_fn(twice), .device = jot_host());
    ck_assert_double_eq(item_of(here, x), 6);
    jot_executable_release(e);
    jot_executable_release(here);
    jot_array_release(x);
}
END_TEST

START_TEST(test_failing_allocation) { check_failing_allocations(whole_life); }
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_versions);
    tcase_add_test(t, test_preparation);
    tcase_add_test(t, test_donated_twice);
    tcase_add_test(t, test_misused_calls);
    tcase_add_test(t, test_static_bytes);
    tcase_add_test(t, test_captured_arrays);
    tcase_add_test(t, test_same_source_same_graph);
    tcase_add_test(t, test_threads);
    tcase_add_test(t, test_missing_device);
    tcase_add_test(t, test_failing_allocation);
}

int main(void) { return run_suite("trace/jit", add); }
