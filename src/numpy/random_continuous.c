// SPDX-License-Identifier: Apache-2.0
// Continuous distributions that are functions of uniform or normal numbers.
#include "numpy/formula.h"
#include "trace/lanes.h"
#include "trace/random.h"

#include "jot/special.h"
#include "jot/transform.h"

#include <math.h>

// A number of the request's dtype, rounded to it before it meets others.
static jot_value exact(const struct random_request *r, double x)
{
    return jot_convert(num(x), r->dtype);
}

static jot_value uniform_from(const struct random_request *r, jot_value key, double low)
{
    return random_uniform(r, key, exact(r, low), exact(r, 1));
}

// ---------------------------------------------------------------------------------------
// Of uniform numbers

static jot_value exponential_of(const struct random_request *r, jot_value key)
{
    return jot_neg(random_log1p(jot_neg(uniform_from(r, key, 0))));
}

static jot_value exponential(const struct random_request *r)
{
    return exponential_of(r, r->key);
}

static jot_value laplace(const struct random_request *r)
{
    jot_value u = uniform_from(r, r->key, -1 + random_epsilon(r->dtype) / 2);
    return mul(jot_sign(u), random_log1p(jot_neg(jot_abs(u))));
}

static jot_value logistic(const struct random_request *r)
{
    jot_value u = uniform_from(r, r->key, random_tiny(r->dtype));
    return sub(random_log(u), random_log1p(jot_neg(u)));
}

static jot_value cauchy(const struct random_request *r)
{
    jot_value u = uniform_from(r, r->key, random_epsilon(r->dtype));
    return jot_tan(mul(num(M_PI), sub(u, num(0.5))));
}

static jot_value rayleigh(const struct random_request *r)
{
    // 0 stands for the numbers up to the next one.
    jot_value u = uniform_from(r, r->key, 0), least = exact(r, random_epsilon(r->dtype) / 2);
    u = jot_where(jot_equal(u, num(0)), least, u);
    return mul(r->param[0], jot_sqrt(mul(random_log(u), num(-2))));
}

static jot_value weibull_min(const struct random_request *r)
{
    jot_value scale = r->param[0], concentration = r->param[1];
    return mul(jot_power(exponential(r), over(num(1), concentration)), scale);
}

static jot_value pareto(const struct random_request *r)
{
    return jot_exp(over(exponential(r), r->param[0]));
}

// Products of two numbers and 4 are within the range.
static double root_of_range(jot_dtype d)
{
    return d == JOT_F64 ? 0x1p510 : d == JOT_F16 ? 0x1p6 : 0x1p62;
}

// A power of 2 that brings products of two numbers up to `most`, and what they are made of, into the
// range.
static jot_value unit_of(jot_value most)
{
    double large = root_of_range(jot_value_dtype(most)), scale = large * 0x1p6;
    jot_value is_large = jot_less(num(large), most), is_small = jot_less(most, num(1 / large));
    return jot_where(is_large, num(1 / scale), jot_where(is_small, num(scale), num(1)));
}

static jot_value triangular(const struct random_request *r)
{
    jot_value left = r->param[0], mode = r->param[1], right = r->param[2];
    jot_value unit = unit_of(jot_maximum(jot_abs(left), jot_abs(right)));
    left = mul(left, unit), mode = mul(mode, unit), right = mul(right, unit);
    jot_value u = uniform_from(r, r->key, 0), width = sub(right, left), rise = sub(mode, left);
    jot_value low = add(left, jot_sqrt(mul(mul(u, width), rise)));
    jot_value rest = mul(sub(num(1), u), width);
    jot_value high = sub(right, jot_sqrt(mul(rest, sub(right, mode))));
    return over(jot_where(jot_less(u, over(rise, width)), low, high), unit);
}

RANDOM_OF0(exponential)
RANDOM_OF0(laplace)
RANDOM_OF0(logistic)
RANDOM_OF0(cauchy)
RANDOM_OF1(rayleigh, scale)
RANDOM_OF2(weibull_min, scale, concentration)
RANDOM_OF1(pareto, b)

jot_value jot_random_triangular_dims(jot_value key, jot_dtype dtype, jot_value left,
                                     jot_value mode, jot_value right, const int64_t *dims)
{
    jot_value p[] = {left, mode, right};
    TRACE_RETURN(random_drawn(triangular, "jot_random_triangular", key, dtype, 3, p, dims));
}

// ---------------------------------------------------------------------------------------
// Of normal numbers

static jot_value normal(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    bool is_complex = dtype == JOT_C64 || dtype == JOT_C128;
    jot_dtype real = !is_complex ? dtype : dtype == JOT_C64 ? JOT_F32 : JOT_F64;
    if (!random_open_floats(&r, "jot_random_normal", key, real, 0, NULL, dims, &error))
        return error;
    if (!is_complex)
        return random_normal(&r, r.key);
    jot_value part[2];
    for (uint32_t i = 0; i < 2; i++)
        part[i] = over(random_normal(&r, random_subkey(r.key, i)), num(M_SQRT2));
    return jot_complex(part[0], part[1]);
}

jot_value jot_random_normal_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(normal(key, dtype, dims));
}

static jot_value lognormal(const struct random_request *r)
{
    return jot_exp(mul(random_normal(r, r->key), r->param[0]));
}

// The length of three normal numbers.
static jot_value maxwell_of(const struct random_request *r, jot_value key)
{
    struct random_request three = *r;
    three.rank = 2;
    three.dims[0] = r->count;
    three.dims[1] = 3;
    three.count = 3 * r->count;
    jot_value lengths = jot_norm_axes(random_normal(&three, key), (int[]){1, JOT_END});
    return jot_reshape_dims(lengths, r->dims);
}

static jot_value maxwell(const struct random_request *r) { return maxwell_of(r, r->key); }

static jot_value double_sided_maxwell(const struct random_request *r)
{
    jot_value x = maxwell_of(r, random_subkey(r->key, 0));
    jot_value sign = jot_random_rademacher_dims(random_subkey(r->key, 1), r->dtype, r->dims);
    return add(mul(mul(sign, x), r->param[1]), r->param[0]);
}

// J. Michael, W. Schucany and R. Haas, Generating random variates using transformations with
// multiple roots, 1976.
static jot_value wald(const struct random_request *r)
{
    jot_value v = random_normal(r, random_subkey(r->key, 0));
    jot_value z = uniform_from(r, random_subkey(r->key, 1), 0);
    // As the mean grows, the numbers go to 1/v^2.
    jot_value is_huge = jot_less(num(root_of_range(r->dtype)), r->param[0]);
    jot_value mean = jot_where(is_huge, num(1), r->param[0]);
    jot_value half = mul(mul(mean, mul(v, v)), num(0.5));
    // mean (1 + half - root) without the difference.
    jot_value root = mul(jot_sqrt(half), jot_sqrt(add(half, num(2))));
    jot_value x = over(mean, add(add(num(1), half), root));
    x = jot_where(jot_less_equal(z, over(mean, add(mean, x))), x, mul(mean, over(mean, x)));
    x = jot_where(jot_equal(mean, num(0)), mean, x);
    return jot_where(is_huge, over(num(1), mul(v, v)), x);
}

RANDOM_OF1(lognormal, sigma)
RANDOM_OF0(maxwell)
RANDOM_OF2(double_sided_maxwell, loc, scale)
RANDOM_OF1(wald, mean)
