// SPDX-License-Identifier: Apache-2.0
// Gumbel and Bernoulli numbers with more random bits than one float has.
#include "trace/random.h"

#include <float.h>

static jot_value num(double x) { return jot_from_double(x); }

double random_tiny(jot_dtype d)
{
    return d == JOT_F64 ? DBL_MIN : d == JOT_F16 ? 0x1p-14 : (double)FLT_MIN;
}

double random_epsilon(jot_dtype d)
{
    return d == JOT_F64   ? DBL_EPSILON
           : d == JOT_F16 ? 0x1p-10
           : d == JOT_F32 ? (double)FLT_EPSILON
                          : 0x1p-7;
}

bool random_is_mode(const char *name, enum jot_random_mode mode, int n, jot_value *out_error)
{
    if ((unsigned)mode < (unsigned)n)
        return true;
    *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "there is no mode %d", (int)mode);
    return false;
}

// ---- Two numbers for each

static struct random_request twice(const struct random_request *r)
{
    struct random_request two = *r;
    two.rank = 2;
    two.dims[0] = 2;
    two.dims[1] = r->count;
    two.dims[2] = JOT_END;
    two.count = 2 * r->count;
    return two;
}

static void halves(const struct random_request *r, jot_value both, jot_value *out)
{
    for (int i = 0; i < 2; i++)
        out[i] = jot_reshape_dims(jot_take_axis(both, i, 0), r->dims);
}

void random_two_bits(const struct random_request *r, jot_dtype dtype, jot_value *out)
{
    struct random_request two = twice(r);
    halves(r, random_bits(&two, r->key, dtype), out);
}

void random_two_uniform(const struct random_request *r, jot_value *out)
{
    struct random_request two = twice(r);
    jot_value zero = jot_convert(num(0), r->dtype), one = jot_convert(num(1), r->dtype);
    halves(r, random_uniform(&two, r->key, zero, one), out);
}

// ---- Gumbel

// The float in (0, 1) whose binary digits are the 64 of two words, cut off behind its mantissa.
static jot_value unit_float(jot_value high, jot_value low)
{
    jot_value width = jot_from_int(32), skip = jot_clz(high), skip_low = jot_clz(low);
    jot_value is_low = jot_equal(skip, width);
    jot_value rest = jot_where(is_low, jot_left_shift(low, skip_low),
                               jot_right_shift_logical(low, jot_sub(width, skip)));
    jot_value mantissa = jot_bitwise_or(jot_left_shift(high, skip), rest);
    mantissa = jot_bitwise_and(jot_right_shift_logical(mantissa, jot_from_int(8)),
                               jot_from_int(0x7fffff));
    jot_value zeros = jot_where(is_low, jot_add(width, skip_low), skip);
    jot_value exponent = jot_left_shift(jot_sub(jot_from_int(126), zeros), jot_from_int(23));
    return jot_bitcast(jot_bitwise_or(exponent, mantissa), JOT_F32);
}

// Of 64 digits x, or 1 - x as their complement: below 1/2 by log(1 - x), above by log.
static jot_value gumbel_highest(const struct random_request *r)
{
    jot_value bits[2], one = jot_from_int(1);
    random_two_bits(r, JOT_U32, bits);
    jot_value is_low = jot_less(bits[0], jot_from_uint(UINT32_C(1) << 31));
    jot_value low = jot_add(jot_bitwise_not(bits[1]), one);
    jot_value carry = jot_convert(jot_equal(bits[1], jot_from_int(0)), JOT_U32);
    jot_value high = jot_add(jot_bitwise_not(bits[0]), carry);
    jot_value x = unit_float(jot_where(is_low, bits[0], high), jot_where(is_low, bits[1], low));
    return jot_where(is_low, jot_neg(random_log(jot_neg(random_log1p(jot_neg(x))))),
                     jot_neg(random_log(jot_neg(random_log(x)))));
}

static jot_value gumbel_high(const struct random_request *r)
{
    jot_value u[2];
    random_two_uniform(r, u);
    jot_value low = jot_mul(num(random_epsilon(r->dtype)), u[1]);
    jot_value fine = jot_add(jot_add(u[0], low), num(random_tiny(r->dtype)));
    jot_value x = jot_where(jot_greater_equal(u[0], num(0.5)), u[0], fine);
    return jot_neg(random_log(jot_neg(random_log1p(jot_neg(x)))));
}

static jot_value gumbel_low(const struct random_request *r)
{
    jot_value tiny = jot_convert(num(random_tiny(r->dtype)), r->dtype);
    jot_value u = random_uniform(r, r->key, tiny, jot_convert(num(1), r->dtype));
    return jot_neg(random_log(jot_neg(random_log(u))));
}

static jot_value gumbel(const char *name, jot_value key, jot_dtype dtype,
                        enum jot_random_mode mode, const int64_t *dims)
{
    jot_value error;
    if (!random_is_mode(name, mode, JOT_RANDOM_HIGHEST + 1, &error))
        return error;
    random_draw *draw = mode == JOT_RANDOM_LOW                           ? gumbel_low
                        : mode == JOT_RANDOM_HIGHEST && dtype == JOT_F32 ? gumbel_highest
                                                                         : gumbel_high;
    return random_drawn(draw, name, key, dtype, 0, NULL, dims);
}

jot_value jot_random_gumbel_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(gumbel("jot_random_gumbel", key, dtype, JOT_RANDOM_LOW, dims));
}

jot_value jot_random_gumbel_mode_dims(jot_value key, jot_dtype dtype, enum jot_random_mode mode,
                                      const int64_t *dims)
{
    TRACE_RETURN(gumbel("jot_random_gumbel_mode", key, dtype, mode, dims));
}

// ---- Bernoulli

static jot_value bernoulli(const char *name, jot_value key, jot_value p,
                           enum jot_random_mode mode, const int64_t *dims)
{
    struct random_request r;
    jot_value u[2], error;
    if (!random_is_mode(name, mode, JOT_RANDOM_HIGH + 1, &error) ||
        !random_open_floats(&r, name, key, random_dtype_of(p, JOT_F32), 1, &p, dims, &error))
        return error;
    if (mode == JOT_RANDOM_LOW) {
        jot_value zero = jot_convert(num(0), r.dtype), one = jot_convert(num(1), r.dtype);
        return jot_less(random_uniform(&r, r.key, zero, one), r.param[0]);
    }
    random_two_uniform(&r, u);
    return jot_less(jot_mul(u[1], num(random_epsilon(r.dtype))), jot_sub(r.param[0], u[0]));
}

jot_value jot_random_bernoulli_dims(jot_value key, jot_value p, const int64_t *dims)
{
    TRACE_RETURN(bernoulli("jot_random_bernoulli", key, p, JOT_RANDOM_LOW, dims));
}

jot_value jot_random_bernoulli_mode_dims(jot_value key, jot_value p, enum jot_random_mode mode,
                                         const int64_t *dims)
{
    TRACE_RETURN(bernoulli("jot_random_bernoulli_mode", key, p, mode, dims));
}
