// SPDX-License-Identifier: Apache-2.0
// What programs that go wrong while they run say, by machine code and by the evaluator.  Places
// come from #line.
#include "trace_support.h"

static jot_status answer(void *ctx, const jot_callback_call *call)
{
    double x = *(const double *)call->in[0].data;
    (void)ctx;
    if (x < 0)
        return x < -1 ? JOT_ERR_DEVICE : jot_callback_fail(JOT_ERR_IO, "the disk is full");
    *(double *)call->out[0].data = 2 * x;
    return JOT_OK;
}

static const jot_type one_double[] = {JOT_TYPE(JOT_F64)};
static const jot_callback_spec spec = {
    .call = answer, .name = "disk", .n_out = 1, .out = one_double};

// Lines are counted by hand from here on.
// clang-format off
#line 1 "bad_run.c"
#define F(name) static jot_value name(jot_value x)
F(calls) { jot_value y; jot_callback(&spec, &y, x); return y; }
F(asserts) { JOT_FOR (i, 9, x) { jot_assert(jot_less(x, 100), "too large"); x = jot_mul(x, 3); } return x; }
F(asserts_inside) { JOT_FOR (i, 4, x) { JOT_FOR (k, 3, x) { jot_assert(jot_less(x, 100), NULL); x = jot_mul(x, 2); } } return x; }
F(asserts_behind) { JOT_FOR (i, 4, x) { x = jot_mul(x, 9); } jot_assert(jot_less(x, 100), NULL); return x; }
F(asserts_while) { JOT_WHILE ((x), jot_less(x, 1e6)) { jot_assert(jot_less(x, 100), NULL); x = jot_mul(x, 2); } return x; }
F(asserts_if) { JOT_FOR (i, 9, x) { JOT_IF (jot_greater(i, 5), x) { jot_assert(jot_less(x, 100), NULL); } x = jot_mul(x, 2); } return x; }
F(logs) { JOT_SCAN ((x), (), (), .length = 11, .checkpoint = 4) { x = jot_sub(x, 1); x = jot_add(x, jot_mul(0, jot_log(x))); } return x; }
F(logs_back) { JOT_SCAN ((x), (), (), .length = 11, .checkpoint = 4, .reverse = true) { x = jot_sub(x, 1); x = jot_add(x, jot_mul(0, jot_log(x))); } return x; }
F(bends) { jot_value y = jot_sub(x, x); return jot_mul(jot_pow(y, 0.5), jot_pow(y, 0.5)); }
static void forward(const jot_value *in, jot_value *out, void *ctx) { (void)ctx; out[0] = calls(in[0]); out[1] = in[0]; }
static void backward(const jot_value *in, jot_value *out, void *ctx) { (void)ctx; out[0] = jot_mul(in[0], in[1]); }
F(ruled) { jot_function f = jot_custom_vjp(jot_fn(calls), jot_function_make(forward, 1, 2, NULL), jot_function_make(backward, 2, 1, NULL)); jot_apply(f, 1, &x, 1, &x); return x; }
#line 48 "test_messages.c"
// clang-format on

// The message of the failing call of f on x.
static const char *said(jot_function f, size_t n, double x, jot_status status)
{
    jot_array *in[] = {jot_array_from(&x), jot_array_from(&x)}, *out[2] = {NULL, NULL};
    jot_executable *e = jot_jit(f);
    jot_status got = jot_call_list(e, n, in, n, out);
    ck_assert_msg(got == status, "%s: %s", jot_status_name(got), jot_error_message());
    ck_assert_ptr_null(out[0]);
    jot_arrays_release(2, in);
    jot_executable_release(e);
    return jot_error_message();
}
#define SAYS(f, x, status, message) ck_assert_str_eq(said((f), 1, (x), (status)), (message))

START_TEST(callbacks_have_places)
{
    SAYS(jot_fn(calls), -1, JOT_ERR_IO, "bad_run.c:2: jot_callback: disk: the disk is full");
    SAYS(jot_fn(calls), -2, JOT_ERR_DEVICE, "bad_run.c:2: jot_callback: disk: JOT_ERR_DEVICE");
    ck_assert_str_eq(
        said(jot_jvp(jot_fn(ruled)), 2, 1, JOT_ERR_CHECK),
        "bad_run.c:13: jot_custom_vjp: forward mode of calls, whose rule forward is for "
        "reverse "
        "mode: the callback disk has no derivative: give it one by jot_custom_vjp or "
        "jot_custom_jvp, or take jot_stop_gradient of its arguments");
}
END_TEST

START_TEST(assertions_tell_trips)
{
    SAYS(jot_fn(asserts), 1, JOT_ERR_CHECK,
         "bad_run.c:3: jot_assert(jot_less(x, 100)): too large, in trip 5");
    SAYS(jot_grad(jot_fn(asserts)), 1, JOT_ERR_CHECK,
         "bad_run.c:3: jot_assert(jot_less(x, 100)): too large, in trip 5");
    SAYS(jot_fn(asserts_inside), 1, JOT_ERR_CHECK,
         "bad_run.c:4: jot_assert(jot_less(x, 100)): does not hold, in trips 2, 1");
    SAYS(jot_fn(asserts_behind), 1, JOT_ERR_CHECK,
         "bad_run.c:5: jot_assert(jot_less(x, 100)): does not hold");
    SAYS(jot_fn(asserts_while), 1, JOT_ERR_CHECK,
         "bad_run.c:6: jot_assert(jot_less(x, 100)): does not hold, in trip 7");
    SAYS(jot_fn(asserts_if), 1, JOT_ERR_CHECK,
         "bad_run.c:7: jot_assert(jot_less(x, 100)): does not hold, in trip 7");
}
END_TEST

// Segments of checkpointed loops are none of the user's.
START_TEST(trips_are_those_of_the_loop)
{
    setenv("JOT_CHECK", "nan", 1);
    SAYS(jot_fn(logs), 6.5, JOT_ERR_CHECK, "bad_run.c:8: jot_log(x): log gives NaN, in trip 6");
    SAYS(jot_grad(jot_fn(logs)), 6.5, JOT_ERR_CHECK,
         "bad_run.c:8: jot_log(x): log gives NaN, in trip 6");
    SAYS(jot_grad(jot_fn(logs)), 9.5, JOT_ERR_CHECK,
         "bad_run.c:8: jot_log(x): log gives NaN, in trip 9");
    SAYS(jot_grad(jot_fn(logs_back)), 6.5, JOT_ERR_CHECK,
         "bad_run.c:9: jot_log(x): log gives NaN, in trip 4");
    SAYS(jot_grad(jot_fn(logs_back)), 9.5, JOT_ERR_CHECK,
         "bad_run.c:9: jot_log(x): log gives NaN, in trip 1");
    unsetenv("JOT_CHECK");
}
END_TEST

START_TEST(derivatives_are_named)
{
    setenv("JOT_CHECK", "inf", 1);
    const char *message = said(jot_grad(jot_fn(bends)), 1, 1, JOT_ERR_CHECK);
    ck_assert_msg(!strstr(message, "mul_z"), "%s", message);
    unsetenv("JOT_CHECK");
}
END_TEST

// ---- Lanes

static jot_status call_small(void *ctx, const jot_callback_call *call)
{
    double x = *(const double *)call->in[0].data;
    (void)ctx;
    *(double *)call->out[0].data = x;
    return x > 50 ? jot_callback_fail(JOT_ERR_IO, "too large") : JOT_OK;
}
static const jot_callback_spec small = {.call = call_small, .n_out = 1, .out = one_double};

// clang-format off
#line 1 "bad_lane.c"
F(logs_while) { JOT_WHILE ((x), jot_less(x, 100)) { x = jot_mul(3, x); x = jot_add(x, jot_mul(0, jot_log(jot_sub(30, x)))); } return x; }
F(tripled) { JOT_WHILE ((x), jot_less(x, 100), .bound = 3) { x = jot_mul(3, x); } return x; }
F(calls_for) { JOT_FOR (i, 9, x) { jot_value y; jot_callback(&small, &y, x); x = jot_mul(3, y); } return x; }
F(calls_while) { JOT_WHILE ((x), jot_less(x, 100)) { jot_value y; jot_callback(&small, &y, x); x = jot_mul(3, y); } return x; }
F(asserts_lanes) { JOT_WHILE ((x), jot_less(x, 100)) { jot_assert(jot_less(x, 50), "large"); x = jot_mul(3, x); } return x; }
F(asserts_spread) { jot_assert(jot_less(jot_stack(0, x, jot_mul(10, x)), 50), "large"); return x; }
F(asserts_power) { JOT_WHILE ((x), jot_less(x, 100)) { jot_assert(jot_less(x, 50), "large"); x = jot_mul(3, jot_mul(x, jot_exp(jot_mul(0, x)))); } return x; }
F(steep) { jot_value z = jot_from(0.0); JOT_WHILE ((x, z), jot_less(x, 100)) { z = jot_add(z, jot_sqrt(jot_abs(jot_sub(x, 15)))); x = jot_mul(3, x); } return z; }
#line 173 "test_messages.c"
// clang-format on

static jot_function once(jot_function f) { return jot_vmap(f, 0); }
static jot_function twice(jot_function f) { return jot_vmap(jot_vmap(f, 0), 0); }
static jot_function alone(jot_function f) { return f; }

// Every message names lanes and trips once, each the outermost first.
static const struct {
    jot_value (*f)(jot_value x);
    jot_function (*of)(jot_function f);
    bool is_derived;
    const char *check, *message;
} lanes[] = {
    {logs_while, alone, false, "nan", "1: jot_log(jot_sub(30, x)): log gives NaN, in trip 1"},
    {logs_while, once, false, "nan",
     "1: jot_log(jot_sub(30, x)): log gives NaN, at [2], in trip 1"},
    {logs_while, twice, false, "nan",
     "1: jot_log(jot_sub(30, x)): log gives NaN, at [0, 2], in trip 1"},
    {logs_while, alone, true, "nan", "1: jot_log(jot_sub(30, x)): log gives NaN, in trip 1"},
    {logs_while, once, true, "nan",
     "1: jot_log(jot_sub(30, x)): log gives NaN, at [2], in trip 1"},
    {tripled, once, false, NULL, "2: JOT_WHILE: not done after 3 trips, its bound, in lane 0"},
    {tripled, twice, false, NULL,
     "2: JOT_WHILE: not done after 3 trips, its bound, in lanes 0, 0"},
    {calls_for, once, false, NULL, "3: jot_callback: too large, in lane 1, in trip 3"},
    {calls_for, once, false, "nan", "3: jot_callback: too large, in lane 1, in trip 3"},
    {calls_for, twice, false, "nan", "3: jot_callback: too large, in lanes 1, 1, in trip 2"},
    {calls_while, once, false, "nan", "4: jot_callback: too large, in lane 0, in trip 4"},
    {calls_while, twice, false, NULL, "4: jot_callback: too large, in lanes 0, 0, in trip 4"},
    {asserts_lanes, once, false, "nan",
     "5: jot_assert(jot_less(x, 50)): large, in lane 0, in trip 4"},
    {asserts_lanes, twice, false, NULL,
     "5: jot_assert(jot_less(x, 50)): large, in lanes 0, 0, in trip 4"},
    {asserts_spread, once, false, NULL,
     "6: jot_assert(jot_less(jot_stack(0, x, jot_mul(10, x)), 50)): large, at [1], in lane 2"},
    {asserts_spread, twice, false, NULL,
     "6: jot_assert(jot_less(jot_stack(0, x, jot_mul(10, x)), 50)): large, at [1], in lanes 0, "
     "2"},
    // Loops that keep states are none of the user's.
    {asserts_power, alone, true, NULL, "7: jot_assert(jot_less(x, 50)): large, in trip 2"},
    {asserts_power, once, true, NULL,
     "7: jot_assert(jot_less(x, 50)): large, in lane 0, in trip 4"},
    {steep, alone, true, "inf",
     "8: jot_sqrt(jot_abs(jot_sub(x, 15))): div gives NaN or "
     "infinity, in trip 1"},
    {steep, once, true, "inf",
     "8: jot_sqrt(jot_abs(jot_sub(x, 15))): div gives NaN or "
     "infinity, at [2]"},
};

START_TEST(lanes_and_trips_are_named)
{
    static const double rows[2][3] = {{1, 2, 5}, {1, 7, 8}};
    jot_function f = jot_fn(lanes[_i].f);
    bool is_two = lanes[_i].of == twice, is_one = lanes[_i].of == once;
    double x = lanes[_i].f == steep ? 5 : 7;
    jot_array *in = is_two   ? jot_array_from(&rows[0][0], 2, 3)
                    : is_one ? jot_array_from(&rows[0][0], 3)
                             : jot_array_from(&x),
              *y = NULL;
    char want[200];
    snprintf(want, sizeof want, "bad_lane.c:%s", lanes[_i].message);
    if (lanes[_i].check)
        setenv("JOT_CHECK", lanes[_i].check, 1);
    jot_executable *e = jot_jit(lanes[_i].of(lanes[_i].is_derived ? jot_grad(f) : f));
    ck_assert_int_ne(jot_call(e, JOT_IN(in), JOT_OUT(y)), JOT_OK);
    unsetenv("JOT_CHECK");
    CHECK_MESSAGE(want);
    jot_array_release(in);
    jot_executable_release(e);
}
END_TEST

// The first lane is done before it starts, and what a step would make of it is not a number.
static jot_value spread(jot_value x)
{
    static const double w[2][2] = {{1e100, 1e100}, {0, 1}};
    jot_array *a = jot_array_from(&w[0][0], 2, 2);
    jot_value m = jot_from(a);
    jot_array_release(a);
    JOT_WHILE ((x), jot_less(jot_max(jot_abs(x)), 1e250)) {
        x = jot_dot(m, x);
    }
    return x;
}

static jot_value spread_asserting(jot_value x)
{
    JOT_WHILE ((x), jot_less(jot_max(jot_abs(x)), 1e250)) {
        jot_assert(jot_greater(x, 0), NULL);
        x = jot_mul(x, 1e100);
    }
    return x;
}

START_TEST(lanes_that_are_done_do_not_fail)
{
    static const double rows[2][3] = {{1e300, 1, 2}, {-1e300, 1, 3}};
    const jot_function all[] = {jot_vmap(jot_fn(spread), 1),
                                jot_vmap(jot_fn(spread_asserting), 1)};
    for (int i = 0; i < 4; i++) {
        int64_t n = 2 + i / 2;
        double x[2][3];
        memcpy(x[0], rows[0], 3 * sizeof(double));
        memcpy(x[0] + n, rows[1], 3 * sizeof(double) - (n == 3 ? 0 : sizeof(double)));
        jot_array *in = jot_array_from(&x[0][0], 2, n), *out = NULL;
        setenv("JOT_CHECK", "nan", 1);
        jot_executable *e = jot_jit(all[i % 2]);
        must(jot_call(e, JOT_IN(in), JOT_OUT(out)));
        unsetenv("JOT_CHECK");
        ck_assert_double_eq(((const double *)jot_array_data(out))[0], 1e300);
        jot_array_release(in);
        jot_array_release(out);
        jot_executable_release(e);
    }
}
END_TEST

// What the first constructor said comes out of the call, however often it is called.
START_TEST(nulls_are_explained)
{
    double one = 1;
    jot_executable *e = jot_jit(jot_fn(calls));
    jot_array *good = jot_array_from(&one), *y = NULL, *bad = jot_array_full(JOT_F64, 1, 2, -3),
              *worse = jot_array_full(JOT_I8, 300);
#line 200 "bad_run.c"
    jot_status first = jot_call(e, JOT_IN(bad), JOT_OUT(y)); // 200
    ck_assert_ptr_null(worse);
    ck_assert_int_eq(first, JOT_ERR_ARGUMENT);
    CHECK_MESSAGE("bad_run.c:200: jot_call: input 0 of calls is NULL (jot_array_full: size -3 "
                  "of axis 1 is negative)");
    must(jot_call(e, JOT_IN(good), JOT_OUT(y)));
    jot_array *none = NULL;
#line 210 "bad_run.c"
    ck_assert_int_eq(jot_call(e, JOT_IN(none), JOT_OUT(y)), JOT_ERR_ARGUMENT); // 210
    CHECK_MESSAGE("bad_run.c:210: jot_call: input 0 of calls is NULL");
    jot_array_release(good);
    jot_array_release(y);
    jot_executable_release(e);
}
END_TEST

// Without a GPU arrays cannot be made there.
START_TEST(missing_devices_are_told)
{
    if (jot_device_count(JOT_CUDA) > 0)
        return;
    double one = 1;
    jot_executable *e = jot_jit(jot_fn(calls));
    jot_set_default_device(jot_cuda(0));
    jot_array *x = jot_array_from(&one), *y = NULL;
    ck_assert_ptr_null(x);
    jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
    jot_set_default_device(jot_host());
    ck_assert_int_ne(status, JOT_ERR_ARGUMENT);
    ck_assert_msg(strstr(jot_error_message(), "input 0 of calls is NULL (jot_array_copy: "),
                  "%s", jot_error_message());
    jot_executable_release(e);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, callbacks_have_places);
    tcase_add_test(t, assertions_tell_trips);
    tcase_add_test(t, trips_are_those_of_the_loop);
    tcase_add_test(t, derivatives_are_named);
    tcase_add_loop_test(t, lanes_and_trips_are_named, 0, sizeof lanes / sizeof *lanes);
    tcase_add_test(t, lanes_that_are_done_do_not_fail);
    tcase_add_test(t, nulls_are_explained);
    tcase_add_test(t, missing_devices_are_told);
}

int main(void) { return run_by_both("messages", add_tests); }
