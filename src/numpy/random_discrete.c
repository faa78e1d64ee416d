// SPDX-License-Identifier: Apache-2.0
// Discrete distributions that are functions of random bits or of uniform numbers.
#include "trace/random.h"

jot_dtype random_dtype_of(jot_value p, jot_dtype of_number)
{
    jot_value v = p, error;
    jot_dtype d = jot_value_dtype(p);
    if (of_number == JOT_F64 && trace_ready("jot_random", 1, &v, &error) &&
        trace_slot_of(v)->weak)
        return JOT_F64;
    return dtype_is_float(d) ? d : JOT_F32;
}

bool random_is_number(const struct random_request *r, jot_value *out_error)
{
    if (dtype_is_integer(r->dtype) || dtype_is_float(r->dtype))
        return true;
    *out_error = trace_fail(r->name, JOT_ERR_DTYPE, "%s: it gives integers or floats",
                            jot_dtype_name(r->dtype));
    return false;
}

static jot_value rademacher(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    const char *name = "jot_random_rademacher";
    jot_value error, half = jot_from_double(0.5);
    struct random_request r;
    if (!random_open(&r, name, key, dtype, dims, &error) || !random_is_number(&r, &error))
        return error;
    // JAX has numbers of 64 bits only where 0.5 is one.
    if (dtype_get(dtype)->bits == 64)
        half = jot_convert(half, JOT_F64);
    jot_value is_one = jot_convert(jot_random_bernoulli_dims(key, half, dims), dtype);
    return jot_sub(jot_mul(is_one, jot_from_int(2)), jot_from_int(1));
}

jot_value jot_random_rademacher_dims(jot_value key, jot_dtype dtype, const int64_t *dims)
{
    TRACE_RETURN(rademacher(key, dtype, dims));
}

bool random_is_integral(const char *name, jot_dtype dtype, jot_value *out_error)
{
    if (!trace_is_dtype(name, dtype, out_error))
        return false;
    if (dtype_is_integer(dtype))
        return true;
    *out_error =
        trace_fail(name, JOT_ERR_DTYPE, "%s: it gives integers", jot_dtype_name(dtype));
    return false;
}

// floor(log(u) / log(1 - p)) + 1.
static jot_value geometric(jot_value key, jot_dtype dtype, jot_value p, const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    const char *name = "jot_random_geometric";
    if (!random_is_integral(name, dtype, &error) ||
        !random_open_floats(&r, name, key, random_dtype_of(p, JOT_F32), 1, &p, dims, &error))
        return error;
    jot_value zero = jot_convert(jot_from_int(0), r.dtype), one = jot_ones_like(zero);
    jot_value u = random_uniform(&r, r.key, zero, one);
    u = jot_where(jot_equal(u, zero), one, u);
    jot_value trials = jot_div(random_log(u), jot_log1p(jot_neg(r.param[0])));
    return jot_convert(jot_add(jot_floor(trials), one), dtype);
}

jot_value jot_random_geometric_dims(jot_value key, jot_dtype dtype, jot_value p,
                                    const int64_t *dims)
{
    TRACE_RETURN(geometric(key, dtype, p, dims));
}

// ---------------------------------------------------------------------------------------
// Integers between bounds

static uint64_t highest(jot_dtype d)
{
    const struct dtype_info *info = dtype_get(d);
    return UINT64_MAX >> (64 - info->bits + (info->kind == 'i'));
}

static int64_t lowest(jot_dtype d)
{
    return dtype_is_unsigned(d) ? 0 : -(int64_t)highest(d) - 1;
}

void random_ends(jot_dtype d, jot_value *out)
{
    out[0] = jot_from_int(lowest(d));
    out[1] =
        highest(d) > INT64_MAX ? jot_from_int(INT64_MAX) : jot_from_int((int64_t)highest(d));
}

// x, moved into what both its dtype and another can hold, plus `more` above.
static jot_value clipped(jot_value x, jot_dtype to, uint64_t more)
{
    jot_dtype from = jot_value_dtype(x);
    uint64_t most = highest(to) + more < highest(from) ? highest(to) + more : highest(from);
    int64_t least = lowest(to) > lowest(from) ? lowest(to) : lowest(from);
    return jot_clip(x, jot_from_int(least), jot_from_uint(most));
}

// Offsets below span, from twice as many bits as they have: (high 2^n + low) mod span.
static jot_value offsets(const struct random_request *r, jot_value span, jot_dtype bits)
{
    jot_value high = random_bits(r, random_subkey(r->key, 0), bits);
    jot_value low = random_bits(r, random_subkey(r->key, 1), bits);
    jot_value root = jot_from_uint(UINT64_C(1) << (dtype_get(bits)->bits / 2));
    jot_value step = jot_rem(jot_convert(root, bits), span);
    step = jot_rem(jot_mul(step, step), span);
    return jot_rem(jot_add(jot_mul(jot_rem(high, span), step), jot_rem(low, span)), span);
}

static jot_value randint(jot_value key, jot_dtype dtype, jot_value low, jot_value high,
                         const int64_t *dims)
{
    struct random_request r;
    jot_value error;
    if (!random_open_params(&r, "jot_random_randint", key, dtype, 2, (jot_value[]){low, high},
                            dims, &error) ||
        !random_is_integral(r.name, dtype, &error))
        return error;
    for (int i = 0; i < 2; i++) {
        if (!dtype_is_integer(jot_value_dtype(r.param[i])))
            return trace_fail(r.name, JOT_ERR_DTYPE, "a bound is %s, not an integer",
                              trace_type_text(r.param[i]));
        r.param[i] = trace_value(trace_strong(r.param[i]), false);
    }
    // Numbers of 8 and 16 bits are made as those of 32, where their end fits.
    bool is_small = dtype_get(dtype)->bits < 32;
    jot_dtype d = is_small ? JOT_I32 : dtype;
    jot_dtype bits = dtype_get(d)->bits == 64 ? JOT_U64 : JOT_U32;
    jot_value last = clipped(r.param[1], dtype, 0), is_over = jot_less(last, r.param[1]);
    low = jot_convert(clipped(r.param[0], dtype, 0), d);
    high = jot_convert(is_small ? clipped(r.param[1], dtype, 1) : last, d);
    jot_value is_empty = jot_less_equal(high, low), one = jot_convert(jot_from_int(1), bits);
    jot_value span = jot_convert(jot_sub(high, low), bits);
    // An end beyond the dtype makes its last number possible.
    if (!is_small)
        span = jot_where(is_over, jot_add(span, one), span);
    span = jot_where(is_empty, one, span);
    return jot_convert(jot_add(low, jot_convert(offsets(&r, span, bits), d)), dtype);
}

jot_value jot_random_randint_dims(jot_value key, jot_dtype dtype, jot_value low, jot_value high,
                                  const int64_t *dims)
{
    TRACE_RETURN(randint(key, dtype, low, high, dims));
}
