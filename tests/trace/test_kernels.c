// SPDX-License-Identifier: Apache-2.0
// Kernels of the user's own: expressions of C, and kernels in CUDA C where no GPU is.
#include "trace_support.h"

#include <math.h>

// The tests of precedence are written without parentheses.
#pragma GCC diagnostic ignored "-Wparentheses"

// What the expression gives in f64 at x and y.
static double at(const char *expression, double x, double y)
{
    jot_scope *s = jot_scope_open();
    jot_array *a = jot_array_from(((double[]){x, 1}), 2),
              *b = jot_array_from(((double[]){y, 1}), 2);
    jot_array *r = NULL;
    jot_status status = jot_eval(jot_elementwise("x, y", expression, a, b), &r);
    ck_assert_msg(status == JOT_OK, "%s: %s", expression, jot_error_message());
    jot_array *d = r;
    double result = NAN;
    if (jot_array_rank(r) == 0) {
        result = jot_array_item(r);
    } else {
        jot_value first = jot_convert(jot_take(r, 0, 0), JOT_F64);
        result = jot_item(first);
    }
    jot_scope_close(s);
    jot_arrays_release(3, (jot_array *[]){a, b, d});
    return result;
}

#define SAME(expression)                                                                       \
    do {                                                                                       \
        static const double points[][2] = {{2, 3}, {-1.5, 0.5}, {7, -2}, {0.25, 4}};           \
        for (size_t i_ = 0; i_ < sizeof points / sizeof *points; i_++) {                       \
            double x = points[i_][0], y = points[i_][1];                                       \
            (void)x;                                                                           \
            (void)y;                                                                           \
            double want = (double)(expression), have = at(#expression, x, y);                  \
            ck_assert_msg((isnan(want) && isnan(have)) ||                                      \
                              fabs(want - have) <= 1e-14 * (1 + fabs(want)),                   \
                          "%s at %g, %g: %.17g, not %.17g", #expression, x, y, have, want);    \
        }                                                                                      \
    } while (0)

START_TEST(means_what_c_means)
{
    SAME(x + y * 2);
    SAME((x + y) * 2);
    SAME(x - y - 1);
    SAME(x / y / 2);
    SAME(-x * +y);
    SAME(- -x);
    SAME(x < y);
    SAME(x <= y == y >= x);
    SAME(x != y && x > 0 || y < 0);
    SAME(!(x > y) || !y);
    SAME(x > 0 ? x : y > 0 ? -y : 1.5);
    SAME(x > 0 && y > 0 ? x : y);
    SAME(1 + 2 * 3 - 4);
    SAME(x + 0x1F + 1e-3 + .5 + 2. + 1.5e2);
    SAME(x * 2.5f + 7u + 3L);
    SAME(x + M_PI);
}
END_TEST

START_TEST(has_the_functions_of_c)
{
    SAME(sin(x) + cos(y) * tan(x));
    SAME(exp(x) + exp2(y) + expm1(x / 10));
    SAME(log(fabs(x)) + log2(fabs(y)) + log10(fabs(x)) + log1p(fabs(y)));
    SAME(sqrt(fabs(x)) + cbrt(fabs(y)));
    SAME(atan2(x, y) + hypot(x, y) + atan(x));
    SAME(floor(x) + ceil(y) + rint(x) + trunc(y) + round(x));
    SAME(fmod(x, y));
    SAME(fma(x, y, 1.0));
    SAME(tanh(x) + sinh(y) + asinh(x));
    SAME(pow(fabs(x), y));
    SAME(isnan(x / y) + (x == 7));
}
END_TEST

// Integers and casts: by the types that they have here.
START_TEST(has_the_integers_of_c)
{
    SAME((int)x);
    SAME((int)x / (int)4);
    SAME(7 / 2);
    SAME(-7 / 2);
    SAME(-7 % 3);
    SAME((int)x % 3);
    SAME(((int)x & 6) | 1);
    SAME((((int)x & 15) ^ 5) << 2);
    SAME((((int)x & 15) << 3) >> 1);
    SAME((int)x >> 1);
    SAME(~(int)x);
    SAME((double)(int)y / 2);
    SAME((float)x * 2);
    SAME((bool)x + (bool)0);
    SAME((int64_t)x + (uint8_t)200);
}
END_TEST

START_TEST(names_what_is_used_again)
{
    ck_assert_double_eq(at("t = x * y; u = t + 1; t * u", 2, 3), 42);
    ck_assert_double_eq(at("x = x + 1; x = x * 2; x", 2, 3), 6);
    ck_assert_double_eq(at("  max ( x , y ) ; ", 2, 3), 3);
    ck_assert_double_eq(at("clamp(0, x, 1)", 2, 3), 1);
    ck_assert_double_eq(at("where(x < y, 5, 6)", 2, 3), 5);
    ck_assert_double_eq(at("relu(-x) + sinf(0)", 2, 3), 0);
}
END_TEST

static void expect_error(const char *names, const char *expression, const char *part)
{
    jot_scope *s = jot_scope_open();
    jot_value v = jot_elementwise(names, expression, 1.0, 2.0);
    jot_status status = jot_eval(v, NULL);
    ck_assert_msg(status == JOT_ERR_ARGUMENT, "%s", expression ? expression : "NULL");
    ck_assert_msg(strstr(jot_error_message(), part) &&
                      strstr(jot_error_message(), "test_kernels.c:"),
                  "%s", jot_error_message());
    jot_scope_close(s);
}

START_TEST(says_what_is_wrong)
{
    expect_error("x, y", "x +", "column 4 of \"x +\": a value is missing");
    expect_error("x, y", "x + z", "column 5 of \"x + z\": nothing has this name");
    expect_error("x, y", "foo(x)", "column 1 of \"foo(x)\": there is no such function");
    expect_error("x, y", "if (x > 0) x else y",
                 "column 1 of \"if (x > 0) x else y\": if is a "
                 "statement, test ? x : y chooses");
    expect_error("x, y", "for (;;) x", "JOT_FOR");
    expect_error("x, y", "return x;", "without return");
    expect_error("x, y", "float t = x; t * y", "a name is defined without a type: t = x;");
    expect_error("x, y", "x[0]", "column 2 of \"x[0]\": an expression is of one element");
    expect_error("x, y", "x y", "column 3");
    expect_error("x, y", "(x", "\")\" is missing");
    expect_error("x, y", "x ? y", "\":\" is missing");
    expect_error("x, y", "sin(x, y)", "fewer arguments");
    expect_error("x, y", "atan2(x)", "more arguments");
    expect_error("x, y", "sin", "\"(\" is missing");
    expect_error("x, y", "x = y", "\";\" is missing");
    expect_error("x, y", "x += y", "column 3");
    expect_error("x, y", "x++", "");
    expect_error("x, y", "x**2", "column 3 of \"x**2\": C has no **, a power is pow(x, y)");
    expect_error("x, x", "x", "column 4 of \"x, x\": two values have this name");
    expect_error("x, y", "3.4.5", "a number ends here");
    expect_error("x, y", "12abc", "a number ends here");
    expect_error("x, y", "99999999999999999999999", "too large");
    expect_error("x, y", "", "a value is missing");
    char many[700] = "";
    for (int i = 0; i < 63; i++)
        snprintf(many + strlen(many), 20, "t%d = x; ", i);
    expect_error("x, y", many, "there are more than 64 names");
    expect_error("x, y", NULL, "NULL");
    expect_error(NULL, "x", "NULL");
    expect_error("x", "x", "\",\" is missing");
    expect_error("x, ", "x", "fewer names");
    expect_error("x, y, z", "x", "more names");
}
END_TEST

static jot_value swish(jot_value a, jot_value x)
{
    return jot_sum(jot_elementwise("a, x", "s = 1 / (1 + exp(-a * x)); x * s", a, x));
}

static jot_value swish_by_calls(jot_value a, jot_value x)
{
    jot_value s = jot_div(1, jot_add(1, jot_exp(jot_mul(jot_neg(a), x))));
    return jot_sum(jot_mul(x, s));
}

// An expression is the operations that it stands for.
START_TEST(is_the_graph_of_its_operations)
{
    jot_array *a = jot_array_full(JOT_F64, 1.5), *x = jot_array_from(((double[]){-1, 0, 2}), 3);
    jot_array *g[2], *h[2];
    jot_executable *f = jot_jit(jot_grad(jot_fn(swish), 0, 1));
    jot_executable *by_calls = jot_jit(jot_grad(jot_fn(swish_by_calls), 0, 1));
    ck_assert_msg(jot_call(f, JOT_IN(a, x), JOT_OUT(g)) == JOT_OK, "%s", jot_error_message());
    ck_assert_int_eq(jot_call(by_calls, JOT_IN(a, x), JOT_OUT(h)), JOT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            memcmp(jot_array_data(g[i]), jot_array_data(h[i]), jot_array_bytes(g[i])), 0);
    ck_assert_int_eq(jot_check_grads(jot_fn(swish), 2, JOT_FORWARD | JOT_REVERSE, 0, a, x),
                     JOT_OK);
    const char *steps = jot_executable_text(f, "schedule");
    ck_assert_msg(!steps || !strstr(steps, "# step 1"), "%s", steps);
    jot_arrays_release(JOT_OUT(g));
    jot_arrays_release(JOT_OUT(h));
    jot_arrays_release(2, (jot_array *[]){a, x});
    jot_executable_release(f);
    jot_executable_release(by_calls);
}
END_TEST

// ---- CUDA C on the host, whatever JOT_DEVICE says ----

static jot_status scale_here(void *ctx, const jot_callback_call *call)
{
    const double *x = call->in[0].data;
    double *y = call->out[0].data;
    int64_t n = 1;
    for (int i = 0; i < call->out[0].rank; i++)
        n *= call->out[0].dims[i];
    for (int64_t i = 0; i < n; i++)
        y[i] = *(const double *)ctx * x[i];
    return JOT_OK;
}

static double factor = 3;
static const jot_type three[] = {JOT_TYPE(JOT_F64, 3)};
static jot_raw_kernel_spec scale = {.name = "scale",
                                    .source = "__global__ void scale(double *x, double *y) {}",
                                    .n_out = 1,
                                    .out = three,
                                    .host_ctx = &factor};

static jot_value scaled(jot_value x)
{
    jot_value y;
    jot_raw_kernel(&scale, &y, x);
    return y;
}

static jot_value scaled_sum(jot_value x) { return jot_sum(scaled(x)); }

static jot_value scaled_forward(jot_value x, jot_value dx)
{
    (void)x;
    return jot_mul(3, dx);
}

START_TEST(kernels_run_on_the_host_if_they_can)
{
    jot_array *x = jot_array_from(((double[]){1, 2, 3}), 3), *y = NULL;
    jot_array *rows = jot_array_from(((double[]){1, 2, 3, 4, 5, 6}), 2, 3);
    jot_executable *f = jot_jit(jot_fn(scaled));
    ck_assert_int_eq(jot_call(f, JOT_IN(x), JOT_OUT(y)), JOT_ERR_DEVICE);
    ck_assert_msg(strstr(jot_error_message(), "kernel scale is in CUDA C"), "%s",
                  jot_error_message());
    jot_executable_release(f);
    scale.host = scale_here;
    f = jot_jit(jot_fn(scaled));
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    check_numbers(y, 3, (double[]){3, 6, 9}, 0);
    jot_array_release(y);
    jot_executable_release(f);
    for (int batch = 0; batch < 2; batch++) {
        scale.map = batch ? JOT_CALLBACK_BATCH : JOT_CALLBACK_LANES;
        f = jot_jit(jot_vmap(jot_fn(scaled)));
        must(jot_call(f, JOT_IN(rows), JOT_OUT(y)));
        check_numbers(y, 6, (double[]){3, 6, 9, 12, 15, 18}, 0);
        jot_array_release(y);
        jot_executable_release(f);
    }
    scale.host = NULL;
    jot_arrays_release(2, (jot_array *[]){x, rows});
}
END_TEST

START_TEST(kernels_have_the_derivatives_of_their_rules)
{
    jot_array *x = jot_array_from(((double[]){1, 2, 3}), 3);
    scale.host = scale_here;
    jot_function f = jot_custom_jvp(jot_fn(scaled), jot_fn(scaled_forward));
    must(jot_check_grads(f, 1, JOT_FORWARD | JOT_REVERSE, 0, x));
    jot_array *g;
    jot_executable *bare = jot_jit(jot_grad(jot_fn(scaled_sum)));
    ck_assert_int_ne(jot_call(bare, JOT_IN(x), JOT_OUT(g)), JOT_OK);
    ck_assert_msg(strstr(jot_error_message(), "has no derivative"), "%s", jot_error_message());
    jot_executable_release(bare);
    jot_array_release(x);
    scale.host = NULL;
}
END_TEST

START_TEST(kernels_want_a_name_and_a_source)
{
    jot_raw_kernel_spec specs[3] = {scale, scale, scale};
    specs[0].name = NULL;
    specs[1].source = NULL;
    specs[2].out = NULL;
    jot_scope *s = jot_scope_open();
    for (int i = 0; i < 3; i++) {
        jot_value y;
        jot_raw_kernel(&specs[i], &y, 1.0);
        ck_assert_int_eq(jot_eval(y, NULL), JOT_ERR_ARGUMENT);
        ck_assert_msg(strstr(jot_error_message(), "is NULL"), "%s", jot_error_message());
        jot_scope_close(s);
        s = jot_scope_open();
    }
    jot_scope_close(s);
}
END_TEST

static jot_device *chosen;

static void choose_host(void)
{
    chosen = jot_default_device();
    jot_set_default_device(jot_host());
}

static void choose_again(void) { jot_set_default_device(chosen); }

int main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    tcase_add_test(tests, means_what_c_means);
    tcase_add_test(tests, has_the_functions_of_c);
    tcase_add_test(tests, has_the_integers_of_c);
    tcase_add_test(tests, names_what_is_used_again);
    tcase_add_test(tests, says_what_is_wrong);
    tcase_add_test(tests, is_the_graph_of_its_operations);
    suite_add_tcase(suite, tests);
    TCase *here = tcase_create("here");
    tcase_add_checked_fixture(here, choose_host, choose_again);
    tcase_add_test(here, kernels_run_on_the_host_if_they_can);
    tcase_add_test(here, kernels_have_the_derivatives_of_their_rules);
    tcase_add_test(here, kernels_want_a_name_and_a_source);
    suite_add_tcase(suite, here);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
