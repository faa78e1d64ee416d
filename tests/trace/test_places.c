// SPDX-License-Identifier: Apache-2.0
// Messages name the line, the call that the user wrote, and the numbers that were given.
#include "trace_support.h"

#include <sys/resource.h>

// Lines are counted by hand from here on.
// clang-format off
#line 10 "places.c"
static jot_value power(jot_value x) { return jot_elementwise("x", "x^2", x); }
static jot_value bits(jot_value x) { return jot_elementwise("x", "y = 2 * x; 1 + (y & 3)", x); }
static jot_value ordered(jot_value x) { return jot_elementwise("x, z", "x > 0 ? atan2(x, z) : 0", x, jot_complex(x, x)); }
static jot_value conv(jot_value x) { return jot_conv(x, x, JOT_DIMS(1, 1), JOT_PADDING_SAME); }
static jot_value product(jot_value x) { return jot_multi_dot(x, jot_transpose(x), jot_transpose(x)); }
static jot_value condition(jot_value x) { return jot_cond_norm(x, JOT_NORM_1); }
static jot_value cases(jot_value x) { JOT_SWITCH (jot_from(0), 2000000000, x) { default: x = jot_neg(x); } return x; }
static jot_value slots(jot_value x) { JOT_WHILE ((x), jot_less(jot_sum(x), 3), .slots = INT64_MAX) { x = jot_add(x, 1); } return x; }
static jot_value polynomial(jot_value x) { return jot_polyint(jot_reshape(x, 6), 1 << 30); }
static jot_value numbers(jot_value x) { (void)x; return jot_bernoulli(JOT_F64, 100000000); }
static jot_value dimensions(jot_value x) { return jot_multigammaln(x, 2000000000); }
static jot_value triangle(jot_value x) { (void)x; return jot_tril_indices(INT64_MAX, 0, 5); }
static jot_value quotient(jot_value x) { jot_value q[2]; jot_polydiv(jot_arange(JOT_F32, 5000), jot_reshape(x, 6), q); return q[0]; }
static jot_value differences(jot_value x) { (void)x; return jot_diff(jot_arange(JOT_F32, 5000), 4000000000, 0); }
static jot_value minus(jot_value x) { return jot_polyder(jot_reshape(x, 6), -3); }
static jot_value huge(jot_value x) { return jot_fft(x, .n = JOT_SIZES((int64_t)1 << 40)); }
#line 100 "test_places.c"
// clang-format on

static const struct {
    jot_value (*f)(jot_value);
    jot_status status;
    const char *want;
} mistakes[] = {
    {power, JOT_ERR_DTYPE,
     "places.c:10: jot_elementwise: column 2 of \"x^2\": ^ is exclusive or, a power is pow(x, "
     "y): "
     "jot_bitwise_xor: f32[2,3]: takes integers or bool"},
    {bits, JOT_ERR_DTYPE,
     "places.c:11: jot_elementwise: column 19 of \"y = 2 * x; 1 + (y & 3)\": jot_bitwise_and: "
     "f32[2,3]: takes integers or bool"},
    {ordered, JOT_ERR_DTYPE,
     "places.c:12: jot_elementwise: column 9 of \"x > 0 ? atan2(x, z) : 0\": jot_atan2: "
     "c64[2,3]: is "
     "not defined for complex numbers"},
    {conv, JOT_ERR_ARGUMENT, "places.c:13: jot_conv(x, x, JOT_DIMS(1, 1), JOT_PADDING_SAME): "},
    {product, JOT_ERR_SHAPE,
     "places.c:14: jot_multi_dot(x, jot_transpose(x), jot_transpose(x)): factors 1 and 2 are "
     "f32[3,2] and f32[3,2]: contracting 2 with 3"},
    {condition, JOT_ERR_SHAPE,
     "places.c:15: jot_cond_norm(x, JOT_NORM_1): f32[2,3]: the matrix is not square"},
    {cases, JOT_ERR_ARGUMENT, "places.c:16: JOT_SWITCH: 2000000000 cases: it takes 1 to 65536"},
    {slots, JOT_ERR_ARGUMENT,
     "places.c:17: JOT_WHILE: 9223372036854775807 slots: 2 to 16777216 are possible"},
    {polynomial, JOT_ERR_ARGUMENT,
     "places.c:18: jot_polyint(jot_reshape(x, 6), 1 << 30): 1073741824 times: it takes at most "
     "1024"},
    {numbers, JOT_ERR_ARGUMENT,
     "places.c:19: jot_bernoulli(JOT_F64, 100000000): n is 100000000: it takes 0 to 65536"},
    {dimensions, JOT_ERR_ARGUMENT,
     "places.c:20: jot_multigammaln(x, 2000000000): d is 2000000000: it takes 0 to 1000"},
    {triangle, JOT_ERR_ARGUMENT,
     "places.c:21: jot_tril_indices(INT64_MAX, 0, 5): 9223372036854775807 by 5 elements: it "
     "takes at "
     "most 2147483647, which i32 counts"},
    {quotient, JOT_ERR_ARGUMENT,
     "places.c:22: jot_polydiv(jot_arange(JOT_F32, 5000), jot_reshape(x, 6), q): f32[5000] by "
     "f32[6]: it takes quotients of at most 1024 "
     "coefficients"},
    {differences, JOT_ERR_ARGUMENT,
     "places.c:23: jot_diff(jot_arange(JOT_F32, 5000), 4000000000, 0): 4000000000 times: it "
     "takes at "
     "most 1024"},
    {minus, JOT_ERR_ARGUMENT,
     "places.c:24: jot_polyder(jot_reshape(x, 6), -3): -3 times: it takes 0 or more"},
    {huge, JOT_ERR_MEMORY, "test_places.c:300: out of memory"},
};

static jot_array *make(void) { return jot_array_from(((float[]){1, 2, 3, 4, 5, 6}), 2, 3); }

START_TEST(test_mistakes)
{
    jot_array *x = make(), *y = NULL;
    jot_executable *e =
        jot_jit(jot_function_plain("f", "places.c:1", 1, (void (*)(void))mistakes[_i].f));
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)1 << 34, (rlim_t)1 << 34});
#line 300 "test_places.c"
    jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
#line 500 "test_places.c"
    ck_assert_int_eq(status, mistakes[_i].status);
    // What is said behind the call of an operation of another name is that of the operation.
    size_t n = strlen(mistakes[_i].want);
    bool is_start = mistakes[_i].f == conv || mistakes[_i].f == huge;
    ck_assert_msg(is_start ? !strncmp(jot_error_message(), mistakes[_i].want, n)
                           : !strcmp(jot_error_message(), mistakes[_i].want),
                  "'%s' is not '%s'", jot_error_message(), mistakes[_i].want);
    if (mistakes[_i].f == conv)
        ck_assert_ptr_null(strstr(jot_error_message(), "general"));
    jot_executable_release(e);
    jot_array_release(x);
}
END_TEST

static jot_value wave(jot_value x) { return jot_sum(jot_sin(x)); }

START_TEST(test_calls)
{
    jot_scope *s = jot_scope_open();
    jot_array *a = make(), *out = NULL;
#line 550 "test_places.c"
    jot_value sum = jot_add(a, 2.5);
    jot_scope_close(s);
    // clang-format off
#line 600 "test_places.c"
    jot_status status = jot_eval(sum, &out); ck_assert_int_ne(status, JOT_OK); CHECK_MESSAGE("test_places.c:600: jot_eval: no scope is open: open one by jot_scope_open; the values of one end with it");
    s = jot_scope_open(); status = jot_eval(sum, &out); ck_assert_int_ne(status, JOT_OK); CHECK_MESSAGE("test_places.c:601: jot_eval: the value made at test_places.c:550: jot_add(a, 2.5) is of a scope that was closed, or was not listed in jot_scope_keep");
#line 603 "test_places.c"
    (void)jot_item(jot_zeros(JOT_F32, 3)); CHECK_MESSAGE("test_places.c:603: jot_item: the value has 3 elements, not one");
    status = jot_check_grads(jot_fn(wave), 9, JOT_FORWARD, 0, a); ck_assert_int_ne(status, JOT_OK); CHECK_MESSAGE("test_places.c:604: jot_check_grads: order 9: orders are 1 to 8");
    status = jot_call_list(NULL, 0, NULL, 0, NULL); ck_assert_int_ne(status, JOT_OK); ck_assert_ptr_nonnull(strstr(jot_error_message(), "test_places.c:605: jot_call_list: "));
#line 700 "test_places.c"
    // clang-format on
    jot_scope_close(s);
    jot_array_release(a);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_mistakes, 0, sizeof mistakes / sizeof *mistakes);
    tcase_add_test(t, test_calls);
}

int main(void) { return run_suite("trace/places", add); }
