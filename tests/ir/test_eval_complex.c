// SPDX-License-Identifier: Apache-2.0
// Complex numbers in the evaluator, against the C library.
#include "eval_support.h"

#include <complex.h>
#undef I

#ifndef CMPLX
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

static double _Complex sign_c(double _Complex x) { return x / cabs(x); }
static double _Complex log1p_c(double _Complex x)
{
    double _Complex r = clog(1 + x);
    return CMPLX(0.5 * log1p(creal(x) * (2 + creal(x)) + cimag(x) * cimag(x)), cimag(r));
}
static double _Complex expm1_c(double _Complex x)
{
    double s = sin(0.5 * cimag(x));
    return CMPLX(expm1(creal(x)) * cos(cimag(x)) - 2 * s * s, exp(creal(x)) * sin(cimag(x)));
}
static double _Complex exp2_c(double _Complex x) { return cexp(x * log(2)); }
static double _Complex rsqrt_c(double _Complex x) { return 1 / csqrt(x); }
static double _Complex logistic_c(double _Complex x) { return 1 / (1 + cexp(-x)); }

static const struct {
    enum ir_op op;
    double _Complex (*truth)(double _Complex);
} complex_functions[] = {
    {IR_exp, cexp},      {IR_exp2, exp2_c},
    {IR_expm1, expm1_c}, {IR_log, clog},
    {IR_log1p, log1p_c}, {IR_sqrt, csqrt},
    {IR_rsqrt, rsqrt_c}, {IR_sin, csin},
    {IR_cos, ccos},      {IR_tan, ctan},
    {IR_asin, casin},    {IR_acos, cacos},
    {IR_atan, catan},    {IR_sinh, csinh},
    {IR_cosh, ccosh},    {IR_tanh, ctanh},
    {IR_asinh, casinh},  {IR_acosh, cacosh},
    {IR_atanh, catanh},  {IR_sign, sign_c},
    {IR_conj, conj},     {IR_logistic, logistic_c},
};

// Both parts within some units of the larger one, signs of zeros included.
static void check_complex(const char *name, double _Complex x, double _Complex truth, double re,
                          double im, double limit)
{
    double size = fmax(fabs(creal(truth)), fabs(cimag(truth)));
    double error = fmax(fabs(re - creal(truth)), fabs(im - cimag(truth))) / (size + 1e-300);
    ck_assert_msg(error <= limit, "%s(%.17g, %.17g) = (%.17g, %.17g), not (%.17g, %.17g)", name,
                  creal(x), cimag(x), re, im, creal(truth), cimag(truth));
}

START_TEST(test_complex_functions)
{
    enum { N = 1000 };
    double _Complex x[N];
    float xf[2 * N];
    for (int i = 0; i < N; i++) {
        double scale = i % 3 == 0 ? 0.01 : i % 3 == 1 ? 1 : 8;
        x[i] = CMPLX((float)((random_unit() - 0.5) * scale),
                     (float)((random_unit() - 0.5) * scale));
        xf[2 * i] = (float)creal(x[i]);
        xf[2 * i + 1] = (float)cimag(x[i]);
    }
    const char *name = ir_op_get(complex_functions[_i].op)->name;
    const double *r = run1(complex_functions[_i].op, NULL, vector(JOT_C128, N, x)).data;
    const float *f = run1(complex_functions[_i].op, NULL, vector(JOT_C64, N, xf)).data;
    for (int i = 0; i < N; i++) {
        double _Complex truth = complex_functions[_i].truth(x[i]);
        check_complex(name, x[i], truth, r[2 * i], r[2 * i + 1], 0x1p-48);
        check_complex(name, x[i], truth, f[2 * i], f[2 * i + 1], 0x1p-19);
    }
}
END_TEST

// On the axes: the side of every branch cut, by the sign of the zero.
START_TEST(test_complex_cuts)
{
    static const enum ir_op ops[] = {IR_log,  IR_sqrt,  IR_asin,  IR_acos,
                                     IR_atan, IR_asinh, IR_acosh, IR_atanh};
    static double _Complex (*const truths[])(double _Complex) = {clog,  csqrt,  casin,  cacos,
                                                                 catan, casinh, cacosh, catanh};
    static const double sizes_[] = {0.25, -0.25, 3, -3, 1e10, -1e10};
    double _Complex x[24];
    for (int i = 0; i < 6; i++) {
        x[4 * i] = CMPLX(sizes_[i], 0.0);
        x[4 * i + 1] = CMPLX(sizes_[i], -0.0);
        x[4 * i + 2] = CMPLX(0.0, sizes_[i]);
        x[4 * i + 3] = CMPLX(-0.0, sizes_[i]);
    }
    for (int k = 0; k < 8; k++) {
        const double *r = run1(ops[k], NULL, vector(JOT_C128, 24, x)).data;
        for (int i = 0; i < 24; i++)
            check_complex(ir_op_get(ops[k])->name, x[i], truths[k](x[i]), r[2 * i],
                          r[2 * i + 1], 0x1p-48);
    }
}
END_TEST

START_TEST(test_complex_arithmetic)
{
    enum { N = 500 };
    double _Complex x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = CMPLX(random_unit() - 0.5, random_unit() - 0.5);
        y[i] = CMPLX(random_unit() - 0.5, random_unit() - 0.5);
    }
    struct ir_tensor a = vector(JOT_C128, N, x), b = vector(JOT_C128, N, y);
    const double *sum = run2(IR_add, a, b).data, *difference = run2(IR_sub, a, b).data;
    const double *product = run2(IR_mul, a, b).data, *quotient = run2(IR_div, a, b).data;
    const double *power = run2(IR_pow, a, b).data, *size = run1(IR_abs, NULL, a).data;
    const uint8_t *eq = run2(IR_eq, a, b).data, *same = run2(IR_eq, a, a).data;
    const double *cube = run1(IR_integer_pow, ir_attrs(module, IR_INT(exponent, -3)), a).data;
    const double *im = run1(IR_imag, NULL, a).data;
    for (int i = 0; i < N; i++) {
        check_complex("add", x[i], x[i] + y[i], sum[2 * i], sum[2 * i + 1], 0);
        check_complex("sub", x[i], x[i] - y[i], difference[2 * i], difference[2 * i + 1], 0);
        check_complex("mul", x[i], x[i] * y[i], product[2 * i], product[2 * i + 1], 0x1p-51);
        check_complex("div", x[i], x[i] / y[i], quotient[2 * i], quotient[2 * i + 1], 0x1p-50);
        check_complex("pow", x[i], cpow(x[i], y[i]), power[2 * i], power[2 * i + 1], 0x1p-47);
        check_complex("integer_pow", x[i], 1 / (x[i] * x[i] * x[i]), cube[2 * i],
                      cube[2 * i + 1], 0x1p-48);
        check_close("abs", cabsl(x[i]), size[i], 53, 2);
        ck_assert(!eq[i] && same[i] && im[i] == cimag(x[i]));
    }
    // Where a plain formula overflows or divides by zero.
    const double _Complex far[] = {CMPLX(1e300, 1e300), CMPLX(1e-300, -1e-300),
                                   CMPLX(-1e300, 2), CMPLX(3e-310, 4e-310)};
    a = vector(JOT_C128, 4, far);
    quotient = run2(IR_div, a, a).data;
    size = run1(IR_abs, NULL, a).data;
    const double *root = run1(IR_sqrt, NULL, a).data, *log_ = run1(IR_log, NULL, a).data;
    for (int i = 0; i < 4; i++) {
        ck_assert(fabs(quotient[2 * i] - 1) < 1e-14 && fabs(quotient[2 * i + 1]) < 1e-14);
        check_close("abs", cabsl(far[i]), size[i], 53, 2);
        check_complex("sqrt", far[i], csqrt(far[i]), root[2 * i], root[2 * i + 1], 0x1p-50);
        check_complex("log", far[i], clog(far[i]), log_[2 * i], log_[2 * i + 1], 0x1p-50);
    }
    const double _Complex one = 1, zero = 0;
    quotient = run2(IR_div, point(JOT_C128, &one), point(JOT_C128, &zero)).data;
    ck_assert(quotient[0] == INFINITY);
}
END_TEST

// e^re overflows, the result does not.
START_TEST(test_complex_exp_overflow)
{
    const double _Complex x = CMPLX(709.9, 0.78), y = CMPLX(-745, 2);
    const double *r = run1(IR_exp, NULL, point(JOT_C128, &x)).data;
    ck_assert(isfinite(r[0]) && isfinite(r[1]));
    check_complex("exp", x, cexp(x), r[0], r[1], 0x1p-50);
    r = run1(IR_exp, NULL, point(JOT_C128, &y)).data;
    ck_assert(fabs(r[0] - creal(cexp(y))) <= 0x1p-1073);
}
END_TEST

// Near the unit circle log |x| is small and a plain formula cancels.
START_TEST(test_complex_log_near_one)
{
    enum { N = 2000 };
    static double _Complex x[N], y[N];
    for (int i = 0; i < N; i++) {
        double angle = 6.3 * random_unit(),
               size = 1 + (random_unit() - 0.5) * (i % 2 ? 1e-9 : 0.5);
        x[i] = CMPLX(size * cos(angle), size * sin(angle));
        y[i] = CMPLX((random_unit() - 0.5) * 1e-5, (random_unit() - 0.5) * (i % 2 ? 1 : 1e-5));
    }
    const double *log_ = run1(IR_log, NULL, vector(JOT_C128, N, x)).data;
    const double *log1p_ = run1(IR_log1p, NULL, vector(JOT_C128, N, y)).data;
    for (int i = 0; i < N; i++) {
        long double re = creal(x[i]), im = cimag(x[i]);
        double truth = (double)(log1pl((re - 1) * (re + 1) + im * im) / 2);
        ck_assert_msg(fabs(log_[2 * i] - truth) <= 0x1p-50 * fabs(truth) + 0x1p-64,
                      "log |%a, %a| = %a, not %a", creal(x[i]), cimag(x[i]), log_[2 * i],
                      truth);
        re = creal(y[i]), im = cimag(y[i]);
        truth = (double)(log1pl(re * (2 + re) + im * im) / 2);
        ck_assert_msg(fabs(log1p_[2 * i] - truth) <= 0x1p-50 * fabs(truth) + 0x1p-64,
                      "log1p(%a, %a) = %a, not %a", creal(y[i]), cimag(y[i]), log1p_[2 * i],
                      truth);
    }
}
END_TEST

START_TEST(test_complex_specials)
{
    static const struct {
        enum ir_op op;
        double x[2], truth[2];
    } cases[] = {
        {IR_exp, {-INFINITY, INFINITY}, {0, 0}},
        {IR_exp, {INFINITY, 0}, {INFINITY, 0}},
        {IR_log, {0, 0}, {-INFINITY, 0}},
        {IR_log, {INFINITY, NAN}, {INFINITY, NAN}},
        {IR_log, {-INFINITY, INFINITY}, {INFINITY, 0x1.2d97c7f3321d2p+1}},
        {IR_sqrt, {0, -0.0}, {0, -0.0}},
        {IR_sqrt, {-0.0, 0}, {0, 0}},
        {IR_sqrt, {NAN, -INFINITY}, {INFINITY, -INFINITY}},
        {IR_sqrt, {-INFINITY, -1}, {0, -INFINITY}},
        {IR_sqrt, {INFINITY, -1}, {INFINITY, -0.0}},
        {IR_sinh, {INFINITY, 0}, {INFINITY, 0}},
        {IR_sinh, {-INFINITY, -0.0}, {-INFINITY, -0.0}},
        {IR_cosh, {INFINITY, 0}, {INFINITY, 0}},
        {IR_cosh, {0, 0}, {1, 0}},
        {IR_tanh, {INFINITY, 1}, {1, 0}},
        {IR_tanh, {-INFINITY, INFINITY}, {-1, 0}},
        {IR_tanh, {-1000, -1}, {-1, -0.0}},
        {IR_atanh, {1, 0}, {INFINITY, 0}},
        {IR_atanh, {0, -1}, {0, -0x1.921fb54442d18p-1}},
        {IR_sign, {0, -0.0}, {0, 0}},
        {IR_abs, {-INFINITY, NAN}, {INFINITY, 0}},
        {IR_logistic, {-1000, 1}, {0, 0}},
        {IR_expm1, {INFINITY, 0}, {INFINITY, 0}},
        {IR_expm1, {0, 0}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = ir_op_get(cases[i].op)->name;
        const double *r = run1(cases[i].op, NULL, point(JOT_C128, cases[i].x)).data;
        int parts = cases[i].op == IR_abs ? 1 : 2;
        for (int k = 0; k < parts; k++) {
            double got = r[k], want = cases[i].truth[k];
            bool is_near =
                fabs(got - want) <= 0x1p-50 * fabs(want) && !signbit(got) == !signbit(want);
            ck_assert_msg(is_near || same64(got, want), "%s(%g, %g): part %d is %a, not %a",
                          name, cases[i].x[0], cases[i].x[1], k, got, want);
        }
    }
}
END_TEST

START_TEST(test_complex_division_specials)
{
    static const double cases[][6] = {
        // dividend, divisor, quotient
        {1, 0, 0, 0, INFINITY, NAN},
        {-2, 3, 0, -0.0, -INFINITY, INFINITY},
        {1, 2, INFINITY, 5, 0, 0},
        {1, 2, INFINITY, -INFINITY, -0.0, 0},
        {1, 2, 5, INFINITY, 0, -0.0},
        {3, INFINITY, 2, 1, INFINITY, INFINITY},
        {INFINITY, 3, 2, 1, INFINITY, -INFINITY},
        {-INFINITY, 3, 2, 1, -INFINITY, INFINITY},
        {3, -INFINITY, 2, 1, -INFINITY, -INFINITY},
        {-INFINITY, NAN, 2, 1, -INFINITY, INFINITY},
        {NAN, -INFINITY, 2, 1, -INFINITY, -INFINITY},
        {INFINITY, 3, NAN, 1, NAN, NAN},
        {INFINITY, 1, 2, INFINITY, NAN, NAN},
        {1, NAN, 2, INFINITY, NAN, NAN},
        {INFINITY, 1, 2, 0, INFINITY, NAN},
        {0, 0, 3, 4, 0, 0},
        {1e308, 1e308, 2e307, 2e307, 5, 0},
        {0x1p-1070, 0, 0x1p-1070, 0, 1, 0},
        {0x3p-1074, 0x1p-1074, 0x3p-1074, 0x1p-1074, 1, 0},
        {0x3p-1060, 0x1p-1060, 0x3p-1000, 0x1p-1000, 0x1p-60, 0},
        {1.5e308, 1.5e308, 1.5e308, 1.5e308, 1, 0},
        {1e308, 0, 0, 0x1p-1074, 0, -INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *c = cases[i];
        const double *r = run2(IR_div, point(JOT_C128, c), point(JOT_C128, c + 2)).data;
        ck_assert_msg(same64(r[0] + 0.0, c[4] + 0.0) && same64(r[1] + 0.0, c[5] + 0.0),
                      "(%g, %g) / (%g, %g) = (%g, %g)", c[0], c[1], c[2], c[3], r[0], r[1]);
    }
}
END_TEST

// On both sides of the real axis, at numbers of all sizes and at infinities.  The sign of a zero is open
// beside an infinite imaginary part, and signs of zero are 0.
START_TEST(test_complex_conjugates)
{
    static const double parts[] = {0,   5e-324, 1e-200, 0.5,     1,
                                   1.5, 711,    1e200,  1.7e308, INFINITY};
    enum { P = 2 * sizeof parts / sizeof *parts, N = P * P };
    static double x[N][2], y[N][2];
    for (int i = 0; i < N; i++) {
        double re = parts[i / P / 2], im = parts[i % P / 2];
        x[i][0] = y[i][0] = i / P % 2 ? -re : re;
        x[i][1] = i % 2 ? -im : im;
        y[i][1] = -x[i][1];
    }
    enum ir_op op = complex_functions[_i].op;
    const double *a = run1(op, NULL, vector(JOT_C128, N, x)).data;
    const double *b = run1(op, NULL, vector(JOT_C128, N, y)).data;
    for (int i = 0; i < N; i++) {
        bool are_zeros = a[2 * i + 1] == 0 && b[2 * i + 1] == 0;
        bool is_open = are_zeros && (isinf(x[i][1]) || op == IR_sign);
        bool is_conjugate = is_open || same64(a[2 * i + 1], -b[2 * i + 1]);
        ck_assert_msg(same64(a[2 * i], b[2 * i]) && is_conjugate,
                      "%s(%a, %a) is (%a, %a), of the conjugate (%a, %a)", ir_op_get(op)->name,
                      x[i][0], x[i][1], a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]);
    }
}
END_TEST

START_TEST(test_complex_parts)
{
    const float re[] = {1, 2}, im[] = {3, 4}, both[] = {1, 3, 2, 4};
    struct ir_tensor c = run2(IR_complex, vector(JOT_F32, 2, re), vector(JOT_F32, 2, im));
    ck_assert_mem_eq(c.data, both, sizeof both);
    ck_assert_mem_eq(run1(IR_real, NULL, c).data, re, sizeof re);
    ck_assert_mem_eq(run1(IR_imag, NULL, c).data, im, sizeof im);
    const uint8_t p[] = {1, 0};
    ck_assert_mem_eq(run(IR_select, NULL, 3,
                         (struct ir_tensor[]){vector(JOT_BOOL, 2, p), c, run1(IR_neg, NULL, c)})
                         .data,
                     ((float[]){1, 3, -2, -4}), 16);
    const struct ir_attrs *axes = ir_attrs(module, IR_INTS(axes, 1, ((int64_t[]){0})));
    ck_assert_mem_eq(run1(IR_reduce_sum, axes, c).data, ((float[]){3, 7}), 8);
    // (1 + 3i)(2 + 4i)
    ck_assert_mem_eq(run1(IR_reduce_prod, axes, c).data, ((float[]){-10, 10}), 8);
    const float nought[] = {0, 0}, wild[] = {INFINITY, NAN};
    ck_assert_mem_eq(run2(IR_guard, point(JOT_C64, nought), point(JOT_C64, wild)).data, wild,
                     8);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_complex_functions, 0,
                        (int)(sizeof complex_functions / sizeof *complex_functions));
    tcase_add_loop_test(t, test_complex_conjugates, 0,
                        (int)(sizeof complex_functions / sizeof *complex_functions));
    tcase_add_test(t, test_complex_cuts);
    tcase_add_test(t, test_complex_arithmetic);
    tcase_add_test(t, test_complex_exp_overflow);
    tcase_add_test(t, test_complex_log_near_one);
    tcase_add_test(t, test_complex_specials);
    tcase_add_test(t, test_complex_division_specials);
    tcase_add_test(t, test_complex_parts);
}

int main(void) { return run_suite("eval_complex", add_tests); }
