// SPDX-License-Identifier: Apache-2.0
// Elementwise ops of the evaluator on real numbers, against the C library and integer cases by
// hand.
#include "eval_support.h"
#include "ir/eval_machine.h"
#include "ir/scalar.inc"

static const double specials[] = {0.0,      -0.0,      1.0,    -1.0,       0.5,
                                  -0.5,     1.5,       -1.5,   2.5,        -2.5,
                                  INFINITY, -INFINITY, NAN,    1e-310,     1e300,
                                  -7.25,    3.999999,  0x1p52, 0x1p53 + 2, 0.49999999999999994};
enum { N_SPECIALS = sizeof specials / sizeof *specials };

// All pairs of special values.
static double pairs_x[N_SPECIALS * N_SPECIALS], pairs_y[N_SPECIALS * N_SPECIALS];
static float pairs_xf[N_SPECIALS * N_SPECIALS], pairs_yf[N_SPECIALS * N_SPECIALS];
enum { N_PAIRS = N_SPECIALS * N_SPECIALS };

static void make_pairs(void)
{
    for (int i = 0; i < N_PAIRS; i++) {
        pairs_xf[i] = (float)(pairs_x[i] = specials[i / N_SPECIALS]);
        pairs_yf[i] = (float)(pairs_y[i] = specials[i % N_SPECIALS]);
    }
}

static double true_sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double true_max(double x, double y)
{
    if (x != x || y != y)
        return NAN;
    if (x == 0 && y == 0)
        return signbit(x) && signbit(y) ? -0.0 : 0.0;
    return x > y ? x : y;
}
static double true_min(double x, double y) { return -true_max(-x, -y); }
static double true_add(double x, double y) { return x + y; }
static double true_sub(double x, double y) { return x - y; }
static double true_mul(double x, double y) { return x * y; }
static double true_div(double x, double y) { return x / y; }
static double true_neg(double x) { return -x; }
static double true_rsqrt(double x) { return 1 / sqrt(x); }
static float true_rsqrtf(float x) { return 1 / sqrtf(x); }

START_TEST(test_exact_unary)
{
    static const struct {
        enum ir_op op;
        double (*truth)(double);
    } cases[] = {{IR_neg, true_neg},    {IR_abs, fabs},  {IR_sign, true_sign},
                 {IR_floor, floor},     {IR_ceil, ceil}, {IR_round_even, rint},
                 {IR_round_away, round}};
    make_pairs();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const double *r = run1(cases[k].op, NULL, vector(JOT_F64, N_PAIRS, pairs_y)).data;
        const float *f = run1(cases[k].op, NULL, vector(JOT_F32, N_PAIRS, pairs_yf)).data;
        for (int i = 0; i < N_PAIRS; i++) {
            ck_assert_msg(same64(r[i], cases[k].truth(pairs_y[i])), "%s(%a) = %a",
                          ir_op_get(cases[k].op)->name, pairs_y[i], r[i]);
            ck_assert_msg(same32(f[i], (float)cases[k].truth(pairs_yf[i])), "%s(%a) = %a",
                          ir_op_get(cases[k].op)->name, (double)pairs_yf[i], (double)f[i]);
        }
    }
    const double *s = run1(IR_sqrt, NULL, vector(JOT_F64, N_PAIRS, pairs_y)).data;
    const float *sf = run1(IR_sqrt, NULL, vector(JOT_F32, N_PAIRS, pairs_yf)).data;
    const double *q = run1(IR_rsqrt, NULL, vector(JOT_F64, N_PAIRS, pairs_y)).data;
    const float *qf = run1(IR_rsqrt, NULL, vector(JOT_F32, N_PAIRS, pairs_yf)).data;
    const uint8_t *finite = run1(IR_is_finite, NULL, vector(JOT_F64, N_PAIRS, pairs_y)).data;
    for (int i = 0; i < N_PAIRS; i++) {
        ck_assert(same64(s[i], sqrt(pairs_y[i])));
        ck_assert(same32(sf[i], sqrtf(pairs_yf[i])));
        ck_assert(same64(q[i], true_rsqrt(pairs_y[i])));
        ck_assert(same32(qf[i], true_rsqrtf(pairs_yf[i])));
        ck_assert_int_eq(finite[i], isfinite(pairs_y[i]) != 0);
    }
}
END_TEST

START_TEST(test_exact_binary)
{
    static const struct {
        enum ir_op op;
        double (*truth)(double, double);
    } cases[] = {{IR_add, true_add}, {IR_sub, true_sub}, {IR_mul, true_mul}, {IR_div, true_div},
                 {IR_rem, fmod},     {IR_max, true_max}, {IR_min, true_min}};
    make_pairs();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *name = ir_op_get(cases[k].op)->name;
        const double *r = run2(cases[k].op, vector(JOT_F64, N_PAIRS, pairs_x),
                               vector(JOT_F64, N_PAIRS, pairs_y))
                              .data;
        const float *f = run2(cases[k].op, vector(JOT_F32, N_PAIRS, pairs_xf),
                              vector(JOT_F32, N_PAIRS, pairs_yf))
                             .data;
        for (int i = 0; i < N_PAIRS; i++) {
            ck_assert_msg(same64(r[i], cases[k].truth(pairs_x[i], pairs_y[i])),
                          "%s(%a, %a) = %a", name, pairs_x[i], pairs_y[i], r[i]);
            // One operation on two floats, done in double and rounded, is rounded right
            // (Figueroa 1995).
            ck_assert_msg(same32(f[i], (float)cases[k].truth(pairs_xf[i], pairs_yf[i])),
                          "%s(%a, %a) = %a", name, (double)pairs_xf[i], (double)pairs_yf[i],
                          (double)f[i]);
        }
    }
    const double *n =
        run2(IR_nextafter, vector(JOT_F64, N_PAIRS, pairs_x), vector(JOT_F64, N_PAIRS, pairs_y))
            .data;
    const float *nf = run2(IR_nextafter, vector(JOT_F32, N_PAIRS, pairs_xf),
                           vector(JOT_F32, N_PAIRS, pairs_yf))
                          .data;
    for (int i = 0; i < N_PAIRS; i++) {
        ck_assert(same64(n[i], nextafter(pairs_x[i], pairs_y[i])));
        ck_assert(same32(nf[i], nextafterf(pairs_xf[i], pairs_yf[i])));
    }
}
END_TEST

START_TEST(test_compare)
{
    make_pairs();
    const enum ir_op ops[] = {IR_eq, IR_ne, IR_lt, IR_le, IR_gt, IR_ge};
    for (int k = 0; k < 6; k++) {
        const uint8_t *r =
            run2(ops[k], vector(JOT_F64, N_PAIRS, pairs_x), vector(JOT_F64, N_PAIRS, pairs_y))
                .data;
        for (int i = 0; i < N_PAIRS; i++) {
            double x = pairs_x[i], y = pairs_y[i];
            bool truth[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
            ck_assert_int_eq(r[i], truth[k]);
        }
    }
    const int8_t x[] = {-1, 1, -128, 127, 0}, y[] = {1, -1, 127, -128, 0};
    const uint8_t *s = run2(IR_lt, vector(JOT_I8, 5, x), vector(JOT_I8, 5, y)).data;
    const uint8_t *u = run2(IR_lt, vector(JOT_U8, 5, x), vector(JOT_U8, 5, y)).data;
    ck_assert(s[0] && !s[1] && s[2] && !s[3] && !s[4]);
    ck_assert(!u[0] && u[1] && !u[2] && u[3] && !u[4]);
}
END_TEST

static long double logistic_l(long double x) { return 1 / (1 + expl(-x)); }
static long double exp2_l(long double x) { return exp2l(x); }

static const struct {
    enum ir_op op;
    long double (*truth)(long double);
    double low, high;
} functions[] = {
    {IR_exp, expl, -80, 80},
    {IR_exp2, exp2_l, -100, 100},
    {IR_expm1, expm1l, -5, 5},
    {IR_log, logl, 0, 1e6},
    {IR_log1p, log1pl, -1, 10},
    {IR_cbrt, cbrtl, -100, 100},
    {IR_sin, sinl, -100, 100},
    {IR_cos, cosl, -100, 100},
    {IR_tan, tanl, -1.5, 1.5},
    {IR_asin, asinl, -1, 1},
    {IR_acos, acosl, -1, 1},
    {IR_atan, atanl, -50, 50},
    {IR_sinh, sinhl, -20, 20},
    {IR_cosh, coshl, -20, 20},
    {IR_tanh, tanhl, -10, 10},
    {IR_asinh, asinhl, -100, 100},
    {IR_acosh, acoshl, 1, 100},
    {IR_atanh, atanhl, -1, 1},
    {IR_logistic, logistic_l, -30, 30},
};

START_TEST(test_functions)
{
    enum { N = 500 };
    double x[N];
    float xf[N];
    uint16_t half[N], brain[N];
    const char *name = ir_op_get(functions[_i].op)->name;
    for (int i = 0; i < N; i++) {
        x[i] = functions[_i].low + (functions[_i].high - functions[_i].low) * random_unit();
        xf[i] = (float)x[i];
        half[i] = dtype_f16_from_f32(xf[i]);
        brain[i] = dtype_bf16_from_f32(xf[i]);
    }
    const double *r = run1(functions[_i].op, NULL, vector(JOT_F64, N, x)).data;
    const float *f = run1(functions[_i].op, NULL, vector(JOT_F32, N, xf)).data;
    const uint16_t *h = run1(functions[_i].op, NULL, vector(JOT_F16, N, half)).data;
    const uint16_t *b = run1(functions[_i].op, NULL, vector(JOT_BF16, N, brain)).data;
    for (int i = 0; i < N; i++) {
        check_close(name, functions[_i].truth(x[i]), r[i], 53, 4);
        check_close(name, functions[_i].truth(xf[i]), f[i], 24, 4);
        // Half results are those of f32, rounded.
        float wide = dtype_f16_to_f32(half[i]);
        const float *once = run1(functions[_i].op, NULL, point(JOT_F32, &wide)).data;
        ck_assert_msg(h[i] == dtype_f16_from_f32(*once) || isnan(*once), "%s f16 %a", name,
                      (double)wide);
        wide = dtype_bf16_to_f32(brain[i]);
        once = run1(functions[_i].op, NULL, point(JOT_F32, &wide)).data;
        ck_assert_msg(b[i] == dtype_bf16_from_f32(*once) || isnan(*once), "%s bf16 %a", name,
                      (double)wide);
    }
}
END_TEST

START_TEST(test_functions_of_two)
{
    enum { N = 500 };
    double x[N], y[N];
    float xf[N], yf[N];
    for (int i = 0; i < N; i++) {
        xf[i] = (float)(x[i] = 10 * random_unit());
        yf[i] = (float)(y[i] = 20 * random_unit() - 10);
    }
    const double *p = run2(IR_pow, vector(JOT_F64, N, x), vector(JOT_F64, N, y)).data;
    const float *pf = run2(IR_pow, vector(JOT_F32, N, xf), vector(JOT_F32, N, yf)).data;
    const double *a = run2(IR_atan2, vector(JOT_F64, N, x), vector(JOT_F64, N, y)).data;
    const float *af = run2(IR_atan2, vector(JOT_F32, N, xf), vector(JOT_F32, N, yf)).data;
    for (int i = 0; i < N; i++) {
        check_close("pow", powl(x[i], y[i]), p[i], 53, 4);
        check_close("pow", powl(xf[i], yf[i]), pf[i], 24, 4);
        check_close("atan2", atan2l(x[i], y[i]), a[i], 53, 4);
        check_close("atan2", atan2l(xf[i], yf[i]), af[i], 24, 4);
    }
    double zero = 0, half = 0.5;
    const double *e = run1(IR_erf_inv, NULL, point(JOT_F64, &zero)).data;
    ck_assert(*e == 0);
    e = run1(IR_erf_inv, NULL, point(JOT_F64, &half)).data;
    check_close("erf(erf_inv)", 0.5L, erf(*e), 53, 8);
}
END_TEST

START_TEST(test_integers)
{
    const int32_t x[] = {7, -7, 7, -7, 5, INT32_MIN, INT32_MIN, 0, INT32_MAX};
    const int32_t y[] = {2, 2, -2, -2, 0, -1, 0, 0, INT32_MAX};
    const int32_t quotient[] = {3, -3, -3, 3, -1, INT32_MIN, -1, -1, 1};
    const int32_t rest[] = {1, -1, 1, -1, 5, 0, INT32_MIN, 0, 0};
    struct ir_tensor a = vector(JOT_I32, 9, x), b = vector(JOT_I32, 9, y);
    ck_assert_mem_eq(run2(IR_div, a, b).data, quotient, sizeof quotient);
    ck_assert_mem_eq(run2(IR_rem, a, b).data, rest, sizeof rest);

    const uint8_t u[] = {200, 200, 7}, v[] = {100, 0, 8};
    const uint8_t uq[] = {2, 255, 0}, ur[] = {0, 200, 7}, sum[] = {44, 200, 15};
    a = vector(JOT_U8, 3, u), b = vector(JOT_U8, 3, v);
    ck_assert_mem_eq(run2(IR_div, a, b).data, uq, 3);
    ck_assert_mem_eq(run2(IR_rem, a, b).data, ur, 3);
    ck_assert_mem_eq(run2(IR_add, a, b).data, sum, 3);

    const int8_t s[] = {-128, 127, -1, 0, 5};
    const int8_t neg[] = {-128, -127, 1, 0, -5}, abs_[] = {-128, 127, 1, 0, 5};
    const int8_t sign[] = {-1, 1, -1, 0, 1}, not_[] = {127, -128, 0, -1, -6};
    const int8_t count[] = {1, 7, 8, 0, 2}, clz[] = {0, 1, 0, 8, 5};
    a = vector(JOT_I8, 5, s);
    ck_assert_mem_eq(run1(IR_neg, NULL, a).data, neg, 5);
    ck_assert_mem_eq(run1(IR_abs, NULL, a).data, abs_, 5);
    ck_assert_mem_eq(run1(IR_sign, NULL, a).data, sign, 5);
    ck_assert_mem_eq(run1(IR_not, NULL, a).data, not_, 5);
    ck_assert_mem_eq(run1(IR_popcount, NULL, a).data, count, 5);
    ck_assert_mem_eq(run1(IR_clz, NULL, a).data, clz, 5);
    const uint64_t top[] = {UINT64_MAX, 1}, top_sign[] = {1, 1}, top_clz[] = {0, 63};
    ck_assert_mem_eq(run1(IR_sign, NULL, vector(JOT_U64, 2, top)).data, top_sign, 16);
    ck_assert_mem_eq(run1(IR_clz, NULL, vector(JOT_U64, 2, top)).data, top_clz, 16);
}
END_TEST

START_TEST(test_shifts)
{
    const int8_t x[] = {-1, -1, -128, 64, -3, -3, 1}, y[] = {1, 8, 7, 1, -1, 127, 0};
    const int8_t left[] = {-2, 0, 0, -128, 0, 0, 1};
    const int8_t logical[] = {127, 0, 1, 32, 0, 0, 1};
    const int8_t arith[] = {-1, -1, -1, 32, -1, -1, 1};
    struct ir_tensor a = vector(JOT_I8, 7, x), b = vector(JOT_I8, 7, y);
    ck_assert_mem_eq(run2(IR_shl, a, b).data, left, 7);
    ck_assert_mem_eq(run2(IR_shr_logical, a, b).data, logical, 7);
    ck_assert_mem_eq(run2(IR_shr_arith, a, b).data, arith, 7);
    const uint64_t u[] = {1, UINT64_C(1) << 63, 3}, v[] = {63, 63, 64};
    const uint64_t ul[] = {UINT64_C(1) << 63, 0, 0}, ur[] = {0, 1, 0};
    ck_assert_mem_eq(run2(IR_shl, vector(JOT_U64, 3, u), vector(JOT_U64, 3, v)).data, ul, 24);
    ck_assert_mem_eq(run2(IR_shr_logical, vector(JOT_U64, 3, u), vector(JOT_U64, 3, v)).data,
                     ur, 24);
}
END_TEST

START_TEST(test_bool)
{
    const uint8_t x[] = {0, 0, 1, 1}, y[] = {0, 1, 0, 1};
    struct ir_tensor a = vector(JOT_BOOL, 4, x), b = vector(JOT_BOOL, 4, y);
    ck_assert_mem_eq(run2(IR_and, a, b).data, ((uint8_t[]){0, 0, 0, 1}), 4);
    ck_assert_mem_eq(run2(IR_or, a, b).data, ((uint8_t[]){0, 1, 1, 1}), 4);
    ck_assert_mem_eq(run2(IR_xor, a, b).data, ((uint8_t[]){0, 1, 1, 0}), 4);
    ck_assert_mem_eq(run2(IR_eq, a, b).data, ((uint8_t[]){1, 0, 0, 1}), 4);
    ck_assert_mem_eq(run2(IR_lt, a, b).data, ((uint8_t[]){0, 1, 0, 0}), 4);
    ck_assert_mem_eq(run1(IR_not, NULL, a).data, ((uint8_t[]){1, 1, 0, 0}), 4);
}
END_TEST

static struct ir_tensor convert(struct ir_tensor x, jot_dtype to)
{
    return run1(IR_convert, ir_attrs(module, IR_INT(dtype, to)), x);
}

START_TEST(test_convert)
{
    const float x[] = {NAN, 1e30f, -1e30f, 1.9f, -1.9f, 255.5f, -0.0f, 2147483520.0f};
    struct ir_tensor f = vector(JOT_F32, 8, x);
    const int32_t i32[] = {0, INT32_MAX, INT32_MIN, 1, -1, 255, 0, 2147483520};
    const uint8_t u8[] = {0, 255, 0, 1, 0, 255, 0, 255};
    const int64_t i64[] = {0, INT64_MAX, INT64_MIN, 1, -1, 255, 0, 2147483520};
    const uint8_t truth[] = {1, 1, 1, 1, 1, 1, 0, 1};
    ck_assert_mem_eq(convert(f, JOT_I32).data, i32, sizeof i32);
    ck_assert_mem_eq(convert(f, JOT_U8).data, u8, sizeof u8);
    ck_assert_mem_eq(convert(f, JOT_I64).data, i64, sizeof i64);
    ck_assert_mem_eq(convert(f, JOT_BOOL).data, truth, sizeof truth);

    const int64_t n[] = {-1, 300, INT64_MAX, 16777217, -129};
    struct ir_tensor i = vector(JOT_I64, 5, n);
    const int8_t i8[] = {-1, 44, -1, 1, 127};
    const uint32_t u32[] = {UINT32_MAX, 300, UINT32_MAX, 16777217, UINT32_MAX - 128};
    const float f32[] = {-1, 300, 0x1p63f, 16777216, -129};
    const double f64[] = {-1, 300, 0x1p63, 16777217, -129};
    ck_assert_mem_eq(convert(i, JOT_I8).data, i8, sizeof i8);
    ck_assert_mem_eq(convert(i, JOT_U32).data, u32, sizeof u32);
    ck_assert_mem_eq(convert(i, JOT_F32).data, f32, sizeof f32);
    ck_assert_mem_eq(convert(i, JOT_F64).data, f64, sizeof f64);
    const uint64_t big = UINT64_MAX;
    ck_assert(*(double *)convert(point(JOT_U64, &big), JOT_F64).data == 0x1p64);

    // Rounded once: by way of f32 it would be a tie.
    const double tie = 1 + 0x1p-11 + 0x1p-40;
    ck_assert_int_eq(*(uint16_t *)convert(point(JOT_F64, &tie), JOT_F16).data, 0x3c01);

    const double pairs[] = {0, 2, 0, 0, -3.7, 1};
    struct ir_tensor c = vector(JOT_C128, 3, pairs);
    ck_assert_mem_eq(convert(c, JOT_BOOL).data, ((uint8_t[]){1, 0, 1}), 3);
    ck_assert_mem_eq(convert(c, JOT_I8).data, ((int8_t[]){0, 0, -3}), 3);
    ck_assert_mem_eq(convert(c, JOT_C64).data, ((float[]){0, 2, 0, 0, -3.7f, 1}), 24);
    ck_assert_mem_eq(convert(vector(JOT_I8, 1, (int8_t[]){-2}), JOT_C64).data,
                     ((float[]){-2, 0}), 8);
}
END_TEST

// composite.inc against dtype.c, which is written otherwise.
START_TEST(test_half_conversions)
{
    struct machine m = {.dtype = JOT_F32};
    for (uint32_t h = 0; h < 65536; h++) {
        scalar s = {h, JOT_U16};
        ck_assert(
            same32(scalar_f32(composite_f32_of_f16(&m, s)), dtype_f16_to_f32((uint16_t)h)));
        ck_assert(
            same32(scalar_f32(composite_f32_of_bf16(&m, s)), dtype_bf16_to_f32((uint16_t)h)));
    }
    for (int i = 0; i < 200000; i++) {
        // Anywhere; around the numbers of each half type and the ties between them.
        uint32_t u = (uint32_t)random_bits(), near = (uint32_t)(random_bits() % 3) - 1;
        if (i % 3 == 1)
            u = bits32(dtype_f16_to_f32((uint16_t)u)) + (u >> 16 & 0x1000) + near;
        else if (i % 3 == 2)
            u = (u & 0xffff8000) + near;
        scalar f = {u, JOT_F32};
        float x = scalar_f32(f);
        ck_assert_uint_eq(composite_f16_of_f32(&m, f).bits, dtype_f16_from_f32(x));
        ck_assert_uint_eq(composite_bf16_of_f32(&m, f).bits, dtype_bf16_from_f32(x));
        double d = i & 4 ? x : x * (1 + (i & 2 ? 0x1p-40 : -0x1p-40));
        scalar g = scalar_from_f64(d);
        scalar odd = composite_odd_f32_of_f64(&m, g);
        ck_assert_uint_eq(composite_f16_of_f32(&m, odd).bits, dtype_f16_from_f64(d));
        ck_assert_uint_eq(composite_bf16_of_f32(&m, odd).bits, dtype_bf16_from_f64(d));
    }
}
END_TEST

START_TEST(test_half_arithmetic)
{
    // 1 + 2^-11 is a tie in f16; 2048 + 1 and 2048 + 3 are, too.
    const uint16_t one = 0x3c00, big = 0x6800, three = 0x4200;
    ck_assert_int_eq(*(uint16_t *)run2(IR_add, point(JOT_F16, &big), point(JOT_F16, &one)).data,
                     0x6800);
    ck_assert_int_eq(
        *(uint16_t *)run2(IR_add, point(JOT_F16, &big), point(JOT_F16, &three)).data, 0x6802);
    const uint16_t zero = 0x8000;
    ck_assert_int_eq(
        *(uint16_t *)run2(IR_nextafter, point(JOT_F16, &zero), point(JOT_F16, &one)).data, 1);
    ck_assert_int_eq(
        *(uint16_t *)run2(IR_nextafter, point(JOT_F16, &one), point(JOT_F16, &zero)).data,
        0x3bff);
    const uint16_t brain = 0x3f80;
    ck_assert_int_eq(
        *(uint16_t *)run2(IR_nextafter, point(JOT_BF16, &brain), point(JOT_BF16, &zero)).data,
        0x3f7f);
}
END_TEST

// x to the nearest multiple of the last place that a format has at its size, ties to even.
static double rounded_to(double x, jot_dtype d, int exponent_bits, int mantissa_bits)
{
    struct scalar_format own = scalar_format_get(d);
    int least = 2 - (1 << (own.exponent_bits - 1)), e;
    if (!isfinite(x) || x == 0)
        return x;
    frexp(x, &e);
    e = e - 1 < least ? least : e - 1;
    double unit = ldexp(1, e - mantissa_bits);
    double y = mantissa_bits < own.mantissa_bits ? rint(x / unit) * unit : x;
    if (exponent_bits >= own.exponent_bits)
        return fabs(y) >= ldexp(1, 1 - least + 1) ? copysign(INFINITY, x) : y;
    int reach = (1 << (exponent_bits - 1)) - 1;
    if (fabs(y) < ldexp(1, 1 - reach))
        return copysign(0, x);
    return fabs(y) >= ldexp(1, reach + 1) ? copysign(INFINITY, x) : y;
}

static void check_reduce_precision(jot_dtype d, int n, const void *x)
{
    struct scalar_format own = scalar_format_get(d);
    struct ir_tensor from = vector(d, n, x);
    const struct ir_attrs *wide = ir_attrs(module, IR_INT(dtype, JOT_F64));
    const double *exact = run1(IR_convert, wide, from).data;
    for (int e = 1; e <= own.exponent_bits + 1 && e <= 11; e++)
        for (int m = 0; m <= own.mantissa_bits; m++) {
            const struct ir_attrs *attrs =
                ir_attrs(module, IR_INT(exponent_bits, e), IR_INT(mantissa_bits, m));
            const double *got =
                run1(IR_convert, wide, run1(IR_reduce_precision, attrs, from)).data;
            for (int i = 0; i < n; i++) {
                double want = rounded_to(exact[i], d, e, m);
                ck_assert_msg(same64(got[i], want), "%s %a to (%d, %d): %a, not %a",
                              dtype_get(d)->name, exact[i], e, m, got[i], want);
            }
        }
}

// All formats; every 16-bit number to its own, some to the others.
START_TEST(test_reduce_precision)
{
    enum { N = 400 };
    static const jot_dtype types[] = {JOT_F16, JOT_BF16, JOT_F32, JOT_F64};
    jot_dtype d = types[_i];
    size_t bytes = jot_dtype_size(d);
    char x[N * 8];
    for (int i = 0; i < N; i++) {
        uint64_t bits = random_bits();
        if (i % 4 == 0) // a few bits of a denormal, or of ends of ranges
            bits = bits >> 40 & ((UINT64_C(1) << (8 * bytes - 8)) - 1);
        if (i % 4 == 1)
            bits |= bits >> 32 << (8 * bytes > 32 ? 16 : 4);
        memcpy(x + (size_t)i * bytes, &bits, bytes);
    }
    check_reduce_precision(d, N, x);
}
END_TEST

START_TEST(test_reduce_precision_to_itself)
{
    static uint16_t x[65536];
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    const jot_dtype d = _i ? JOT_BF16 : JOT_F16;
    struct scalar_format own = scalar_format_get(d);
    const struct ir_attrs *attrs = ir_attrs(module, IR_INT(exponent_bits, own.exponent_bits),
                                            IR_INT(mantissa_bits, own.mantissa_bits));
    ck_assert_mem_eq(run1(IR_reduce_precision, attrs, vector(d, 65536, x)).data, x, sizeof x);
}
END_TEST

START_TEST(test_integer_pow)
{
    const double x[] = {1.1, -2, 0, -0.0, 3};
    for (int n = -5; n <= 9; n++) {
        const double *r =
            run1(IR_integer_pow, ir_attrs(module, IR_INT(exponent, n)), vector(JOT_F64, 5, x))
                .data;
        for (int i = 0; i < 5; i++)
            check_close("integer_pow", powl(x[i], n), r[i], 53, 8);
    }
    const int32_t k = -3;
    ck_assert_int_eq(*(int32_t *)run1(IR_integer_pow, ir_attrs(module, IR_INT(exponent, 5)),
                                      point(JOT_I32, &k))
                          .data,
                     -243);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, test_exact_unary);
    tcase_add_test(t, test_exact_binary);
    tcase_add_test(t, test_compare);
    tcase_add_loop_test(t, test_functions, 0, (int)(sizeof functions / sizeof *functions));
    tcase_add_test(t, test_functions_of_two);
    tcase_add_test(t, test_integers);
    tcase_add_test(t, test_shifts);
    tcase_add_test(t, test_bool);
    tcase_add_test(t, test_convert);
    tcase_add_test(t, test_half_conversions);
    tcase_add_test(t, test_half_arithmetic);
    tcase_add_loop_test(t, test_reduce_precision, 0, 4);
    tcase_add_loop_test(t, test_reduce_precision_to_itself, 0, 2);
    tcase_add_test(t, test_integer_pow);
}

int main(void) { return run_suite("eval", add_tests); }
