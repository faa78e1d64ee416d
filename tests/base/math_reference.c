// SPDX-License-Identifier: Apache-2.0
#include "base/math_reference.h"

#include <string.h>

// libquadmath, whose header only GCC finds.
quad expq(quad x);
quad exp2q(quad x);
quad expm1q(quad x);
quad logq(quad x);
quad log2q(quad x);
quad log10q(quad x);
quad log1pq(quad x);
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
int signbitq(quad x);

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

// Halley's method, from a start that is right to a few percent.
static double erf_inv_double(double x)
{
    double a = fabs(x);
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    if (a < 1e-20)
        return x * (1 / M_2_SQRTPI);
    double l = log((1 - a) * (1 + a));
    double h = 4.3307467508 + l / 2;
    double y = sqrt(sqrt(h * h - l / 0.147) - h);
    for (int i = 0; i < 4; i++) {
        double residual = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        double step = residual * exp(y * y) * (1 / M_2_SQRTPI);
        y -= step / (1 + y * step);
        if (fabs(step) < y * 1e-6)
            break;
    }
    return copysign(y, x);
}

// One more step doubles the digits at least.
static quad erf_inv_quad(quad x)
{
    quad a = fabsq(x);
    if (!(a < 1))
        return a == 1 ? copysignq(INFINITY, x) : NAN;
    quad y = erf_inv_double((double)a);
    quad residual = a < 0.5 ? erfq(y) - a : (1 - a) - erfcq(y);
    quad step = residual * expq(y * y) * (1 / M_2_SQRTPI);
    return copysignq(y - step / (1 + y * step), x);
}

#define UNARY(name, bound, low, high, f32, f64)                                                \
    {                                                                                          \
        #name, bound, low, high, {.unary = f32}, { .unary = f64 }                              \
    }
#define BINARY(name, bound, low, high, f32, f64)                                               \
    {                                                                                          \
        #name, bound, low, high, {.binary = f32}, { .binary = f64 }                            \
    }

// clang-format off
const struct math_row math_rows[MATH_ROW_COUNT] = {
    UNARY(exp,      2, -760,  720,  exp,             expq),
    UNARY(exp2,     2, -1090, 1030, exp2,            exp2q),
    UNARY(expm1,    2, -40,   40,   expm1,           expm1q),
    UNARY(logistic, 2, -100,  40,   logistic_double, logistic_quad),
    UNARY(log,      2, 0,     3,    log,             logq),
    UNARY(log2,     2, 0,     3,    log2,            log2q),
    UNARY(log10,    2, 0,     3,    log10,           log10q),
    UNARY(log1p,    2, -1,    2,    log1p,           log1pq),
    UNARY(sin,      2, -1e9,  1e9,  sin,             sinq),
    UNARY(cos,      2, -1e9,  1e9,  cos,             cosq),
    UNARY(tan,      4, -1e9,  1e9,  tan,             tanq),
    UNARY(asin,     4, -1,    1,    asin,            asinq),
    UNARY(acos,     4, -1,    1,    acos,            acosq),
    UNARY(atan,     2, -3,    3,    atan,            atanq),
    BINARY(atan2,   4, -3,    3,    atan2,           atan2q),
    UNARY(sinh,     4, -5,    5,    sinh,            sinhq),
    UNARY(cosh,     4, -5,    5,    cosh,            coshq),
    UNARY(tanh,     2, -5,    5,    tanh,            tanhq),
    UNARY(asinh,    4, -3,    3,    asinh,           asinhq),
    UNARY(acosh,    4, 1,     4,    acosh,           acoshq),
    UNARY(atanh,    4, -1,    1,    atanh,           atanhq),
    UNARY(erf,      4, -6,    6,    erf,             erfq),
    UNARY(erfc,     4, -6,    28,   erfc,            erfcq),
    UNARY(erf_inv,  4, -1,    1,    erf_inv_double,  erf_inv_quad),
    UNARY(cbrt,     2, -8,    8,    cbrt,            cbrtq),
    UNARY(rsqrt,    2, 0,     8,    rsqrt_double,    rsqrt_quad),
    BINARY(hypot,   2, -8,    8,    hypot,           hypotq),
    BINARY(pow,     4, 0,     40,   pow,             powq),
};
// clang-format on

uint64_t math_random_bits(uint64_t *seed)
{
    uint64_t z = *seed += MATH_SEED_STEP;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

double math_random_uniform(uint64_t *seed, double low, double high)
{
    return low + (high - low) * (double)(math_random_bits(seed) >> 11) * 0x1p-53;
}

float math_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double math_double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A quarter each: any bits, uniform, near the ends or zero of the interval, moderate exponents.
double math_random_double(uint64_t *seed, const struct math_row *row)
{
    uint64_t bits = math_random_bits(seed);
    switch (bits & 3) {
    case 0:
        return math_double_of_bits(math_random_bits(seed));
    case 1:
        return math_random_uniform(seed, row->low, row->high);
    case 2: {
        double offset = exp2(math_random_uniform(seed, -60, 1)) * (bits & 4 ? 1 : -1);
        double centre = bits & 8 ? 0 : bits & 16 ? row->low : row->high;
        return (bits & 32 ? 1 : centre) + offset;
    }
    default:
        return exp2(math_random_uniform(seed, -40, 40)) * (bits & 4 ? 1 : -1);
    }
}

float math_random_float(uint64_t *seed, const struct math_row *row)
{
    uint64_t bits = math_random_bits(seed);
    if (bits & 1)
        return math_float_of_bits((uint32_t)(bits >> 32));
    return (float)math_random_double(seed, row);
}

double math_error_f32(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : MATH_WRONG;
    if (!signbit(want) != !signbit(got))
        return MATH_WRONG;
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
    return fabs(value - want) * math_double_of_bits((uint64_t)(1023 - last) << 52);
}

double math_error_f64(double got, quad want)
{
    if (isnanq(want) || isnan(got))
        return isnanq(want) && isnan(got) ? 0 : MATH_WRONG;
    if (!signbitq(want) != !signbit(got))
        return MATH_WRONG;
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

double math_measure_f32(const struct math_row *row, const struct math_function *f, float x,
                        float y)
{
    if (f->arity == 1)
        return math_error_f32(f->f32.unary(x), row->reference32.unary(x));
    return math_error_f32(f->f32.binary(x, y), row->reference32.binary(x, y));
}

double math_measure_f64(const struct math_row *row, const struct math_function *f, double x,
                        double y)
{
    if (f->arity == 1)
        return math_error_f64(f->f64.unary(x), row->reference64.unary(x));
    return math_error_f64(f->f64.binary(x, y), row->reference64.binary(x, y));
}
