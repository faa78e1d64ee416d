// SPDX-License-Identifier: Apache-2.0
// Accuracy and special values of the elementary functions, against the C library's double
// (for single precision) and quad (for double precision) functions.
//
// JOT_EXHAUSTIVE=1 tries every single-precision argument and 1e8 double-precision ones, which
// takes hours. JOT_TEST_SEED=n sets the seed.
#include "base/math/math.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __float128 quad;

// libquadmath, whose header only GCC finds.
quad expq(quad x);
quad exp2q(quad x);
quad expm1q(quad x);
quad logq(quad x);
quad log2q(quad x);
quad log10q(quad x);
quad log1pq(quad x);
quad sinq(quad x);
quad cosq(quad x);
quad tanq(quad x);
quad asinq(quad x);
quad acosq(quad x);
quad atanq(quad x);
quad sinhq(quad x);
quad coshq(quad x);
quad tanhq(quad x);
quad asinhq(quad x);
quad acoshq(quad x);
quad atanhq(quad x);
quad erfq(quad x);
quad erfcq(quad x);
quad cbrtq(quad x);
quad sqrtq(quad x);
quad fabsq(quad x);
quad atan2q(quad x, quad y);
quad hypotq(quad x, quad y);
quad powq(quad x, quad y);
quad copysignq(quad x, quad y);
quad ldexpq(quad x, int n);
quad frexpq(quad x, int *n);
int isnanq(quad x);

static quad logistic_quad(quad x)
{
    return x > 0 ? 1 / (1 + expq(-x)) : expq(x) / (1 + expq(x));
}

static double logistic_double(double x)
{
    return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static quad rsqrt_quad(quad x) { return 1 / sqrtq(x); }
static double rsqrt_double(double x) { return 1 / sqrt(x); }

// Newton's method on erfc, from a double-precision start by bisection in the exponent.
static quad erf_inv_quad(quad x)
{
    quad a = fabsq(x);
    if (!(a <= 1))
        return NAN;
    if (a == 0 || a == 1)
        return a == 0 ? x : copysignq(INFINITY, x);
    quad y = a < 0.5 ? a * 0.9 : sqrtq(-logq(1 - a));
    for (int i = 0; i < 40; i++) {
        quad residual = a < 0.5 ? erfq(y) - a : (1 - a) - erfcq(y);
        quad step = residual * expq(y * y) * 0.886226925452758;
        y -= step / (1 + y * step);
        if (fabsq(step) < y * 1e-25)
            break;
    }
    return copysignq(y, x);
}

static double erf_inv_double(double x) { return (double)erf_inv_quad(x); }

// Where a function is interesting, and how many ULP it may be off. Some of the arguments (of
// both operands) are drawn from [low, high], the others from all bit patterns and around the
// ends. In single precision erf_inv is a formula, which is poor near 1.
struct row {
    const char *name;
    double bound32, bound64;
    double low, high;
    union {
        double (*unary)(double);
        double (*binary)(double, double);
    } reference32;
    union {
        quad (*unary)(quad);
        quad (*binary)(quad, quad);
    } reference64;
};

#define UNARY(name, b32, b64, low, high, f32, f64)                                             \
    {                                                                                          \
        #name, b32, b64, low, high, {.unary = f32}, { .unary = f64 }                           \
    }
#define BINARY(name, b32, b64, low, high, f32, f64)                                            \
    {                                                                                          \
        #name, b32, b64, low, high, {.binary = f32}, { .binary = f64 }                         \
    }

// clang-format off
static const struct row rows[] = {
    UNARY(exp,      2, 2, -760,  720,  exp,             expq),
    UNARY(exp2,     2, 2, -1090, 1030, exp2,            exp2q),
    UNARY(expm1,    2, 2, -40,   40,   expm1,           expm1q),
    UNARY(logistic, 2, 2, -100,  40,   logistic_double, logistic_quad),
    UNARY(log,      2, 2, 0,     3,    log,             logq),
    UNARY(log2,     2, 2, 0,     3,    log2,            log2q),
    UNARY(log10,    2, 2, 0,     3,    log10,           log10q),
    UNARY(log1p,    2, 2, -1,    2,    log1p,           log1pq),
    UNARY(sin,      2, 2, -1e9,  1e9,  sin,             sinq),
    UNARY(cos,      2, 2, -1e9,  1e9,  cos,             cosq),
    UNARY(tan,      4, 4, -1e9,  1e9,  tan,             tanq),
    UNARY(asin,     4, 4, -1,    1,    asin,            asinq),
    UNARY(acos,     4, 4, -1,    1,    acos,            acosq),
    UNARY(atan,     2, 2, -3,    3,    atan,            atanq),
    BINARY(atan2,   4, 4, -3,    3,    atan2,           atan2q),
    UNARY(sinh,     4, 4, -5,    5,    sinh,            sinhq),
    UNARY(cosh,     4, 4, -5,    5,    cosh,            coshq),
    UNARY(tanh,     2, 2, -5,    5,    tanh,            tanhq),
    UNARY(asinh,    4, 4, -3,    3,    asinh,           asinhq),
    UNARY(acosh,    4, 4, 1,     4,    acosh,           acoshq),
    UNARY(atanh,    4, 4, -1,    1,    atanh,           atanhq),
    UNARY(erf,      4, 4, -6,    6,    erf,             erfq),
    UNARY(erfc,     4, 4, -6,    28,   erfc,            erfcq),
    UNARY(erf_inv,  99, 6, -1,    1,    erf_inv_double,  erf_inv_quad),
    UNARY(cbrt,     2, 2, -8,    8,    cbrt,            cbrtq),
    UNARY(rsqrt,    2, 2, 0,     8,    rsqrt_double,    rsqrt_quad),
    BINARY(hypot,   2, 2, -8,    8,    hypot,           hypotq),
    BINARY(pow,     4, 4, 0,     40,   pow,             powq),
};
// clang-format on

#define ROW_COUNT ((int)(sizeof rows / sizeof rows[0]))

// -- Random arguments ---------------------------------------------------------------------

static uint64_t seed;

static uint64_t random_bits(void)
{
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static double random_uniform(double low, double high)
{
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

static float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A quarter each: any bits, uniform, near the ends or zero of the interval, moderate exponents.
static double random_double(const struct row *row)
{
    uint64_t bits = random_bits();
    switch (bits & 3) {
    case 0:
        return double_of_bits(random_bits());
    case 1:
        return random_uniform(row->low, row->high);
    case 2: {
        double offset = exp2(random_uniform(-60, 1)) * (bits & 4 ? 1 : -1);
        double centre = bits & 8 ? 0 : bits & 16 ? row->low : row->high;
        return (bits & 32 ? 1 : centre) + offset;
    }
    default:
        return exp2(random_uniform(-40, 40)) * (bits & 4 ? 1 : -1);
    }
}

static float random_float(const struct row *row)
{
    uint64_t bits = random_bits();
    return bits & 1 ? float_of_bits((uint32_t)(bits >> 32)) : (float)random_double(row);
}

static bool is_exhaustive(void)
{
    const char *text = getenv("JOT_EXHAUSTIVE");
    return text != NULL && strcmp(text, "0") != 0;
}

// -- Errors in units in the last place ----------------------------------------------------

#define WRONG 1e30 // Not a matter of rounding.

static double ulp_error_f32(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : WRONG;
    double value = isinf(got) ? copysign(0x1p128, got) : got;
    if (fabs(want) >= 0x1p128)
        want = copysign(0x1p128, want);
    if (value == want)
        return 0;
    uint64_t bits;
    memcpy(&bits, &want, sizeof bits);
    int last = (int)(bits >> 52 & 0x7ff) - 1023 - 23;
    if (last < -149)
        last = -149;
    return fabs(value - want) * double_of_bits((uint64_t)(1023 - last) << 52);
}

static double ulp_error_f64(double got, quad want)
{
    if (isnanq(want) || isnan(got))
        return isnanq(want) && isnan(got) ? 0 : WRONG;
    quad limit = ldexpq(1, 1024);
    quad value = isinf(got) ? copysignq(limit, got) : got;
    if (fabsq(want) >= limit)
        want = copysignq(limit, want);
    if (value == want)
        return 0;
    int exponent;
    frexpq(want, &exponent);
    int last = want == 0 || exponent - 53 < -1074 ? -1074 : exponent - 53;
    return (double)ldexpq(fabsq(value - want), -last);
}

struct worst {
    double error;
    double x, y;
};

static void note(struct worst *worst, double error, double x, double y)
{
    if (error > worst->error)
        *worst = (struct worst){error, x, y};
}

static void report(const struct row *row, int bits, const struct worst *worst, double bound)
{
    printf("%-9s f%d  %6.3f ULP at %a", row->name, bits, worst->error, worst->x);
    printf(math_find(row->name)->arity == 2 ? ", %a\n" : "\n", worst->y);
    fflush(stdout);
    ck_assert_msg(worst->error <= bound, "%s f%d is off by %g ULP at %a, %a; allowed is %g",
                  row->name, bits, worst->error, worst->x, worst->y, bound);
}

static const struct math_function *find(const struct row *row)
{
    const struct math_function *f = math_find(row->name);
    ck_assert_msg(f != NULL, "there is no function %s", row->name);
    return f;
}

// How many random arguments; a slow reference gets fewer.
static uint64_t sample_count(const struct row *row, uint64_t usual)
{
    uint64_t count = is_exhaustive() ? 100000000 : usual;
    return row->reference32.unary == erf_inv_double ? count / 20 : count;
}

START_TEST(accuracy_f32)
{
    const struct row *row = &rows[_i];
    const struct math_function *f = find(row);
    struct worst worst = {0};
    uint64_t count = sample_count(row, 400000);
    bool all = count == 100000000 && f->arity == 1;
    if (all)
        count = (uint64_t)1 << 32;
    for (uint64_t i = 0; i < count; i++) {
        float x = all ? float_of_bits((uint32_t)i) : random_float(row);
        float y = f->arity == 2 ? random_float(row) : 0;
        float got = f->arity == 1 ? f->f32.unary(x) : f->f32.binary(x, y);
        double want = f->arity == 1 ? row->reference32.unary(x) : row->reference32.binary(x, y);
        note(&worst, ulp_error_f32(got, want), x, y);
    }
    report(row, 32, &worst, row->bound32);
}
END_TEST

START_TEST(accuracy_f64)
{
    const struct row *row = &rows[_i];
    const struct math_function *f = find(row);
    struct worst worst = {0};
    uint64_t count = sample_count(row, 100000);
    for (uint64_t i = 0; i < count; i++) {
        double x = random_double(row);
        double y = f->arity == 2 ? random_double(row) : 0;
        double got = f->arity == 1 ? f->f64.unary(x) : f->f64.binary(x, y);
        quad want = f->arity == 1 ? row->reference64.unary(x) : row->reference64.binary(x, y);
        note(&worst, ulp_error_f64(got, want), x, y);
    }
    report(row, 64, &worst, row->bound64);
}
END_TEST

// Doubles uncommonly near to multiples of pi/2, and the ends of the straight-line range.
START_TEST(hard_reductions)
{
    static const double hard[] = {0x1.6ac5b262ca1ffp+849,  0x1.6ac5b262ca1ffp+850,
                                  0x1.921fb54442d18p+0,    0x1.921fb54442d18p+1,
                                  0x1.921fb54442d18p+29,   0x1.921fb54442d19p+30,
                                  0x1.fffffffffffffp+1023, 0x1p30,
                                  0x1.0000000000001p30,    0x1p18,
                                  0x1.000002p18,           0x1.921fb6p+17,
                                  0x1.921fb4p+18};
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        double x = i % 2 == 0 ? hard[i] : -hard[i];
        ck_assert_double_le(ulp_error_f64(math_sin_f64(x), sinq(x)), 2);
        ck_assert_double_le(ulp_error_f64(math_cos_f64(x), cosq(x)), 2);
        ck_assert_double_le(ulp_error_f64(math_tan_f64(x), tanq(x)), 4);
        float y = (float)x;
        ck_assert_double_le(ulp_error_f32(math_sin_f32(y), sin(y)), 2);
        ck_assert_double_le(ulp_error_f32(math_cos_f32(y), cos(y)), 2);
        ck_assert_double_le(ulp_error_f32(math_tan_f32(y), tan(y)), 4);
    }
}
END_TEST

START_TEST(every_function_has_a_row)
{
    for (const struct math_function *f = math_functions; f->name != NULL; f++) {
        int count = 0;
        for (int i = 0; i < ROW_COUNT; i++)
            count += strcmp(rows[i].name, f->name) == 0;
        ck_assert_msg(count == 1, "%s is tested %d times", f->name, count);
        ck_assert_ptr_eq(math_find(f->name), f);
    }
    ck_assert_ptr_null(math_find("exp3"));
}
END_TEST

// -- Exact results ------------------------------------------------------------------------

static bool is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void check_exactly(const char *name, double x, double y, double want)
{
    const struct math_function *f = math_find(name);
    ck_assert_msg(f != NULL, "there is no function %s", name);
    bool unary = f->arity == 1;
    float got32 = unary ? f->f32.unary((float)x) : f->f32.binary((float)x, (float)y);
    double got64 = unary ? f->f64.unary(x) : f->f64.binary(x, y);
    ck_assert_msg(is_same(got32, (float)want), "%s f32 of %a, %a is %a instead of %a", name, x,
                  y, got32, (float)want);
    ck_assert_msg(is_same(got64, want), "%s f64 of %a, %a is %a instead of %a", name, x, y,
                  got64, want);
}

#define INF INFINITY
#define PI 0x1.921fb54442d18p+1

struct exact {
    const char *name;
    double x, y, want;
};

static const struct exact exact[] = {
#define EXACT(name, x, y, want) {name, x, y, want},
#include "base/math_values.def"
#undef EXACT
};

START_TEST(special_values)
{
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
        check_exactly(exact[i].name, exact[i].x, exact[i].y, exact[i].want);
    for (const struct math_function *f = math_functions; f->name != NULL; f++) {
        if (f->arity == 1)
            check_exactly(f->name, NAN, 0, NAN);
    }
}
END_TEST

// Powers of two and ten; the smallest results are denormal.
START_TEST(exact_powers)
{
    for (int k = -1074; k < 1024; k++) {
        ck_assert_double_eq(math_exp2_f64(k), ldexp(1, k));
        ck_assert_double_eq(math_log2_f64(ldexp(1, k)), k);
        ck_assert_double_eq(math_pow_f64(2, k), ldexp(1, k));
        if (k >= -149 && k < 128) {
            ck_assert_float_eq(math_exp2_f32((float)k), ldexpf(1, k));
            ck_assert_float_eq(math_log2_f32(ldexpf(1, k)), (float)k);
            ck_assert_float_eq(math_pow_f32(2, (float)k), ldexpf(1, k));
        }
    }
    double power = 1;
    for (int k = 0; k <= 22; k++, power *= 10) {
        ck_assert_double_eq(math_log10_f64(power), k);
        if (k <= 10)
            ck_assert_float_eq(math_log10_f32((float)power), (float)k);
    }
}
END_TEST

// Random normal numbers are defined by this formula, so its bits count.
START_TEST(erf_inv_f32_is_the_formula)
{
    static const float central[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                    -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                    -0.00417768164f,  0.246640727f,    1.50140941f};
    static const float outer[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                  -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                  0.00943887047f,   1.00167406f,     2.83297682f};
    for (int i = 0; i < 1000000; i++) {
        float x = (float)random_uniform(-1, 1);
        float w = -math_log1p_f32(x * -x);
        const float *c = w < 5 ? central : outer;
        float t = w < 5 ? w - 2.5f : sqrtf(w) - 3;
        float p = c[0];
        for (int k = 1; k < 9; k++) {
            float product = p * t;
            p = c[k] + product;
        }
        float want = fabsf(x) == 1 ? x * INFINITY : p * x;
        float got = math_erf_inv_f32(x);
        ck_assert_msg(got == want, "erf_inv f32 of %a is %a instead of %a", x, got, want);
    }
}
END_TEST

// -- Another instance of the templates: short vectors -------------------------------------

#define MATH_BITS 32
#include "base/math_vectors.inc"
#define MATH_BITS 64
#include "base/math_vectors.inc"

struct vector_function {
    const char *name;
    void (*f32)(const float *x, const float *y, float *result, bool *outside);
    void (*f64)(const double *x, const double *y, double *result, bool *outside);
};

static const struct vector_function vector_functions[] = {
#define MATH(name, arity, range) {#name, vector_##name##_32, vector_##name##_64},
#include "base/math/math.def"
#undef MATH
};

START_TEST(lanes_have_the_bits_of_scalars)
{
    const struct row *row = &rows[_i];
    const struct math_function *f = find(row);
    const struct vector_function *v = vector_functions;
    while (strcmp(v->name, row->name) != 0)
        v++;
    int outside_count = 0;
    for (int i = 0; i < 20000; i++) {
        float x32[4], y32[4], result32[4];
        double x64[2], y64[2], result64[2];
        bool outside[4];
        for (int k = 0; k < 4; k++) {
            x32[k] = random_float(row);
            y32[k] = random_float(row);
            x64[k % 2] = random_double(row);
            y64[k % 2] = random_double(row);
        }
        v->f32(x32, y32, result32, outside);
        for (int k = 0; k < 4; k++) {
            outside_count += outside[k];
            float want = f->arity == 1 ? f->f32.unary(x32[k]) : f->f32.binary(x32[k], y32[k]);
            ck_assert_msg(outside[k] || is_same(result32[k], want),
                          "%s f32 of %a, %a is %a in a vector, but %a", row->name, x32[k],
                          y32[k], result32[k], want);
        }
        v->f64(x64, y64, result64, outside);
        for (int k = 0; k < 2; k++) {
            outside_count += outside[k];
            double want = f->arity == 1 ? f->f64.unary(x64[k]) : f->f64.binary(x64[k], y64[k]);
            ck_assert_msg(outside[k] || is_same(result64[k], want),
                          "%s f64 of %a, %a is %a in a vector, but %a", row->name, x64[k],
                          y64[k], result64[k], want);
        }
    }
    ck_assert_msg((outside_count > 0) == f->ranged, "%s: %d lanes are out of range", row->name,
                  outside_count);
}
END_TEST

START_TEST(sincos_is_sin_and_cos)
{
    for (int i = 0; i < 100000; i++) {
        float x = (float)random_uniform(-1e5, 1e5), sine[4], cosine[4];
        double y = random_uniform(-1e8, 1e8), sine64[2], cosine64[2];
        vector_sincos_32(x, sine, cosine);
        vector_sincos_64(y, sine64, cosine64);
        ck_assert(is_same(sine[0], math_sin_f32(x)) && is_same(cosine[0], math_cos_f32(x)));
        ck_assert(is_same(sine64[0], math_sin_f64(y)) && is_same(cosine64[0], math_cos_f64(y)));
    }
}
END_TEST

static void start_random_numbers(void)
{
    const char *text = getenv("JOT_TEST_SEED");
    seed = text == NULL ? 20 : strtoull(text, NULL, 0);
}

int main(void)
{
    start_random_numbers();
    printf("JOT_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);

    Suite *suite = suite_create("math");
    TCase *accuracy = tcase_create("accuracy");
    tcase_set_timeout(accuracy, is_exhaustive() ? 24 * 3600 : 60);
    tcase_add_checked_fixture(accuracy, start_random_numbers, NULL);
    tcase_add_loop_test(accuracy, accuracy_f32, 0, ROW_COUNT);
    tcase_add_loop_test(accuracy, accuracy_f64, 0, ROW_COUNT);
    tcase_add_test(accuracy, hard_reductions);
    suite_add_tcase(suite, accuracy);

    TCase *values = tcase_create("values");
    tcase_set_timeout(values, 60);
    tcase_add_checked_fixture(values, start_random_numbers, NULL);
    tcase_add_test(values, every_function_has_a_row);
    tcase_add_test(values, special_values);
    tcase_add_test(values, exact_powers);
    tcase_add_test(values, erf_inv_f32_is_the_formula);
    tcase_add_loop_test(values, lanes_have_the_bits_of_scalars, 0, ROW_COUNT);
    tcase_add_test(values, sincos_is_sin_and_cos);
    suite_add_tcase(suite, values);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
