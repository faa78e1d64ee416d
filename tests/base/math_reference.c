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
quad lgammaq(quad x);
quad tgammaq(quad x);
quad rintq(quad x);
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

static const quad pi =
    (quad)0x1.921fb54442d18p+1 + 0x1.1a62633145c07p-53 - 0x1.f1976b7ed8fbcp-109;

// Each of x less an even number, by the function that is not near to a zero there.
static quad cospi_quad(quad x)
{
    quad a = fabsq(x - 2 * rintq(x / 2));
    return a < 0.25 ? cosq(pi * a) : a > 0.75 ? -cosq(pi * (1 - a)) : sinq(pi * (0.5 - a));
}

static double cospi_double(double x) { return (double)cospi_quad(x); }

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

// What libquadmath gives NaN or an infinity for in another place.
static quad gamma_quad(quad x) { return x < 0 && rintq(x) == x ? (quad)NAN : tgammaq(x); }
static double gamma_double(double x) { return x < 0 && rint(x) == x ? NAN : tgamma(x); }

static const quad bernoulli[] = {(quad)1 / 6,        (quad)-1 / 30,     (quad)1 / 42,
                                 (quad)-1 / 30,      (quad)5 / 66,      (quad)-691 / 2730,
                                 (quad)7 / 6,        (quad)-3617 / 510, (quad)43867 / 798,
                                 (quad)-174611 / 330}; // B_2, B_4, ...

// By recurrence from far away, where an asymptotic series holds.
static quad digamma_quad(quad x)
{
    if (x == 0 || (x < 0 && rintq(x) == x))
        return NAN;
    if (x < 0)
        return digamma_quad(1 - x) - pi / tanq(pi * (x - rintq(x)));
    quad sum = 0;
    for (; x < 40; x += 1)
        sum -= 1 / x;
    if (x > 1e30)
        return logq(x);
    quad power = 1 / (x * x), series = 0;
    for (int j = 0; j < 10; j++, power /= x * x)
        series += bernoulli[j] / (2 * j + 2) * power;
    return sum + logq(x) - 1 / (2 * x) - series;
}

static double digamma_double(double x) { return (double)digamma_quad(x); }

static quad zeta_quad(quad s, quad q)
{
    if (isnanq(s) || isnanq(q) || s < 1)
        return NAN;
    if (s == 1 || (q <= 0 && rintq(q) == q))
        return INFINITY;
    if (!(q > 0))
        return NAN; // not measured
    if (isinf((double)q))
        return 0;
    enum { TERMS = 40 };
    quad w = q + TERMS, last = powq(w, -s), sum = last * (w / (s - 1) + (quad)0.5);
    quad term = s / w / 2; // (s)_(2j-1) / (2j)! w^(1-2j)
    for (int j = 0; j < 10 && s < 64 * w; j++) {
        sum += last * bernoulli[j] * term;
        term *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w * (2 * j + 3) * (2 * j + 4));
    }
    for (int k = 0; k < TERMS; k++)
        sum += powq(q + k, -s);
    return sum;
}

static double zeta_double(double s, double q) { return (double)zeta_quad(s, q); }

// Between its zeros lgamma is the difference of numbers of about this size.
static double lgamma_scale(double result, double x, double y)
{
    (void)y;
    return x < -0.5 ? fmax(fabs(result), fabs(lgamma(-x)) + 2) : fabs(result);
}

// Of the reflection, which takes a few more roundings.
static double gamma_scale(double result, double x, double y)
{
    (void)y;
    return fabs(result) * (x < -0.5 ? 2 : 1);
}

static double digamma_scale(double result, double x, double y)
{
    (void)y;
    return x < 0 ? fmax(2 * fabs(result), 2 * log(2 - x) + 4) : fabs(result);
}

// Sums q + k are rounded, and the sensitivity to that is s.
static double zeta_scale(double result, double s, double q)
{
    return isinf(s) || (q <= 0 && rint(q) != q) ? NAN : result * (1 + fabs(s) / 4);
}

#define SCALED(name, bound, low, high, arity, f32, f64, scale)                                 \
    {#name, bound, low, high, {.arity = f32}, {.arity = f64}, scale}
#define UNARY(name, bound, low, high, f32, f64)                                                \
    SCALED(name, bound, low, high, unary, f32, f64, NULL)
#define BINARY(name, bound, low, high, f32, f64)                                               \
    SCALED(name, bound, low, high, binary, f32, f64, NULL)

// clang-format off
const struct math_row math_rows[] = {
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
    UNARY(cospi,    2, -3,    3,    cospi_double,    cospi_quad),
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
    SCALED(lgamma,  4, 0,     20,   unary,  lgamma,         lgammaq,      lgamma_scale),
    SCALED(gamma,   4, -10,   40,   unary,  gamma_double,   gamma_quad,   gamma_scale),
    SCALED(digamma, 4, 0,     20,   unary,  digamma_double, digamma_quad, digamma_scale),
    SCALED(zeta,    6, 1,     30,   binary, zeta_double,    zeta_quad,    zeta_scale),
    {NULL, 0, 0, 0, {NULL}, {NULL}, NULL},
};
// clang-format on

const struct math_row *math_row_find(const char *name)
{
    for (const struct math_row *row = math_rows; row->name != NULL; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

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

// The error in units of the scale.
static double scaled(const struct math_row *row, double error, double want, double x, double y)
{
    double scale = row->scale ? row->scale(isfinite(want) ? want : 1, x, y) : 0;
    if (isnan(scale))
        return 0;
    if (!row->scale || error == 0 || !isfinite(want))
        return error;
    // Near a zero the sign may be wrong.
    return error == MATH_WRONG && scale > fabs(want) ? 0 : error * fabs(want) / scale;
}

double math_measure_f32(const struct math_row *row, const struct math_function *f, float x,
                        float y)
{
    bool unary = f->arity == 1;
    double want = unary ? row->reference32.unary(x) : row->reference32.binary(x, y);
    return scaled(row, math_error_f32(unary ? f->f32.unary(x) : f->f32.binary(x, y), want),
                  want, x, y);
}

double math_measure_f64(const struct math_row *row, const struct math_function *f, double x,
                        double y)
{
    bool unary = f->arity == 1;
    quad want = unary ? row->reference64.unary(x) : row->reference64.binary(x, y);
    return scaled(row, math_error_f64(unary ? f->f64.unary(x) : f->f64.binary(x, y), want),
                  (double)want, x, y);
}
