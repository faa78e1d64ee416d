// SPDX-License-Identifier: Apache-2.0
// Signs, exponents and fractions of floats; integers as factors of each other; what is close.
#include "trace/emit.h"

#include "jot/control.h"
#include "jot/numeric.h"

#include <math.h>

static jot_value zero(void) { return jot_from_int(0); }

jot_value jot_trunc(jot_value x)
{
    return jot_where(jot_less(x, zero()), jot_ceil(x), jot_floor(x));
}

static jot_value round_to(jot_value x, int decimals)
{
    jot_value error;
    if (!trace_ready("jot_round_to", 1, &x, &error))
        return error;
    if (dtype_is_integer((jot_dtype)trace_slot_of(x)->dtype)) {
        if (decimals < 0)
            return trace_fail("jot_round_to", JOT_ERR_ARGUMENT,
                              "%s to %d decimals: integers are rounded to 0 or more",
                              trace_type_text(x), decimals);
        return x;
    }
    jot_value factor = jot_from_double(__builtin_powi(10, decimals < 0 ? -decimals : decimals));
    return decimals < 0 ? jot_mul(jot_round(jot_div(x, factor)), factor)
                        : jot_div(jot_round(jot_mul(x, factor)), factor);
}

jot_value jot_round_to(jot_value x, int decimals) { TRACE_RETURN(round_to(x, decimals)); }

// ---------------------------------------------------------------------------------------
// Bits of floats

struct layout {
    jot_dtype bits; // a signed integer of the same size
    int mantissa;   // bits
    int64_t bias, exponents;
};

static struct layout layout_of(jot_dtype d)
{
    switch (d) {
    case JOT_F16:
        return (struct layout){JOT_I16, 10, 15, 0x1f};
    case JOT_BF16:
        return (struct layout){JOT_I16, 7, 127, 0xff};
    case JOT_F64:
        return (struct layout){JOT_I64, 52, 1023, 0x7ff};
    default:
        return (struct layout){JOT_I32, 23, 127, 0xff};
    }
}

// x, imported, as a float.
static bool as_float(const char *name, jot_value *x, jot_value *out_error)
{
    struct trace_promoted p;
    if (!trace_ready(name, 1, x, out_error) ||
        !trace_promote(name, "float", 1, x, &p, out_error))
        return false;
    *x = jot_convert(*x, p.seen);
    return true;
}

static jot_value signbit_of(jot_value x)
{
    jot_value error;
    if (!trace_ready("jot_signbit", 1, &x, &error))
        return error;
    jot_dtype d = (jot_dtype)trace_slot_of(x)->dtype;
    if (dtype_is_complex(d))
        return trace_fail("jot_signbit", JOT_ERR_DTYPE,
                          "%s: is not defined for complex numbers", trace_type_text(x));
    if (dtype_is_float(d)) // a number has no bits before it has a type
        x = jot_bitcast(jot_convert(x, d), layout_of(d).bits);
    else if (d == JOT_BOOL)
        x = jot_convert(x, JOT_I32);
    return jot_less(x, zero());
}

jot_value jot_signbit(jot_value x) { TRACE_RETURN(signbit_of(x)); }

static jot_value copysign_of(jot_value x, jot_value y)
{
    jot_value v[] = {x, y}, error;
    struct trace_promoted p;
    if (!trace_ready("jot_copysign", 2, v, &error) ||
        !trace_promote("jot_copysign", "float", 2, v, &p, &error))
        return error;
    x = trace_result("jot_copysign", trace_operand(v[0], p.dtype), p.weak);
    return jot_where(jot_not_equal(jot_signbit(x), jot_signbit(v[1])), jot_neg(x), x);
}

jot_value jot_copysign(jot_value x, jot_value y) { TRACE_RETURN(copysign_of(x, y)); }

// 2^n of n within the normal exponents.
static jot_value power_of_two(jot_value n, jot_dtype d)
{
    struct layout l = layout_of(d);
    jot_value e = jot_add(jot_convert(n, l.bits), jot_from_int(l.bias));
    return jot_bitcast(jot_left_shift(e, jot_from_int(l.mantissa)), d);
}

// In three steps, for from the least denormal to the largest number it is twice the range;
// those down leave room for the mantissa, so that only the last one rounds.
static jot_value scale(jot_value x, jot_value exponent)
{
    jot_dtype d = jot_value_dtype(x);
    struct layout l = layout_of(d);
    jot_value low = jot_from_int(1 - l.bias + l.mantissa + 1), high = jot_from_int(l.bias);
    jot_value most = jot_from_int(4 * l.bias);
    jot_value n = jot_clip(jot_convert(exponent, JOT_I32), jot_neg(most), most);
    for (int step = 0; step < 3; step++) {
        jot_value part = jot_clip(n, low, high);
        x = jot_mul(x, power_of_two(part, d));
        n = jot_sub(n, part);
    }
    // What is left is beyond all numbers, up or down.
    return x;
}

static jot_value ldexp_of(jot_value x, jot_value exponent)
{
    const char *name = "jot_ldexp";
    jot_value error;
    if (!as_float(name, &x, &error) || !trace_ready(name, 1, &exponent, &error))
        return error;
    if (!dtype_is_integer((jot_dtype)trace_slot_of(exponent)->dtype))
        return trace_fail(name, JOT_ERR_DTYPE, "an exponent of %s: it takes integers",
                          trace_type_text(exponent));
    return scale(x, exponent);
}

jot_value jot_ldexp(jot_value x, jot_value exponent) { TRACE_RETURN(ldexp_of(x, exponent)); }

static jot_value frexp_of(jot_value x, jot_value *out_exponent)
{
    jot_value error;
    if (!as_float("jot_frexp", &x, &error))
        return error;
    jot_dtype d = jot_value_dtype(x);
    if (d == JOT_F16 || d == JOT_BF16)
        x = jot_convert(x, d = JOT_F32);
    struct layout l = layout_of(d);
    // Denormals are made normal first.
    jot_value least = jot_convert(power_of_two(jot_from_int(1 - l.bias), d), d);
    jot_value is_denormal = jot_less(jot_abs(x), least);
    jot_value up = jot_from_int(l.mantissa + 1);
    jot_value normal = jot_where(is_denormal, jot_mul(x, power_of_two(up, d)), x);
    jot_value bits = jot_bitcast(jot_stop_gradient(normal), l.bits);
    jot_value e = jot_bitwise_and(jot_right_shift_logical(bits, jot_from_int(l.mantissa)),
                                  jot_from_int(l.exponents));
    e = jot_sub(jot_convert(e, JOT_I32), jot_from_int(l.bias - 1));
    e = jot_sub(e, jot_where(is_denormal, up, zero()));
    jot_value is_plain = jot_logical_and(jot_not_equal(x, zero()), jot_is_finite(x));
    *out_exponent = jot_where(is_plain, e, jot_full_like(e, zero()));
    return scale(x, jot_neg(*out_exponent));
}

static jot_value guarded_frexp(jot_value x, jot_value *out_exponent)
{
    TRACE_RETURN(frexp_of(x, out_exponent));
}

static jot_value fail_count(size_t n)
{
    TRACE_RETURN(trace_fail("jot_frexp", JOT_ERR_ARGUMENT, "into %zu values: it gives 2", n));
}

void jot_frexp_into(jot_value x, size_t n, jot_value *out)
{
    if (trace_lacks("jot_frexp", "out", n, out, n, out, NULL))
        return;
    jot_value exponent = x, mantissa = n == 2 ? guarded_frexp(x, &exponent) : fail_count(n);
    for (size_t i = 0; i < n; i++)
        out[i] = i == 1 && !jot_value_failed(mantissa) ? exponent : mantissa;
}

// ---------------------------------------------------------------------------------------
// Two operands

jot_value jot_fmax(jot_value x, jot_value y)
{
    return jot_where(jot_logical_or(jot_greater(x, y), jot_is_nan(y)), x, y);
}

jot_value jot_fmin(jot_value x, jot_value y)
{
    return jot_where(jot_logical_or(jot_less(x, y), jot_is_nan(y)), x, y);
}

static jot_value heaviside(jot_value x, jot_value y)
{
    jot_value error;
    if (!as_float("jot_heaviside", &x, &error))
        return error;
    jot_value one = jot_from_double(1), none = jot_from_double(0);
    jot_value positive = jot_where(jot_is_nan(x), x, one); // NaN stays
    return jot_where(jot_less(x, zero()), none, jot_where(jot_equal(x, zero()), y, positive));
}

jot_value jot_heaviside(jot_value x, jot_value y) { TRACE_RETURN(heaviside(x, y)); }

jot_value jot_logaddexp2(jot_value x, jot_value y)
{
    jot_value ln2 = jot_from_double(M_LN2);
    return jot_div(jot_logaddexp(jot_mul(x, ln2), jot_mul(y, ln2)), ln2);
}

// Euclid's algorithm on all elements until the last is done.
static jot_value is_left(const jot_value *pair, void *ctx)
{
    (void)ctx;
    return jot_any_axes(jot_not_equal(pair[1], zero()), NULL);
}

static void divide(jot_value *pair, void *ctx)
{
    (void)ctx;
    jot_value left = jot_not_equal(pair[1], zero());
    jot_value rest = jot_where(left, jot_rem(pair[0], pair[1]), zero());
    pair[0] = jot_where(left, pair[1], pair[0]);
    pair[1] = rest;
}

// |x| and |y| in one type and shape.
static bool open_integers(const char *name, jot_value *pair, jot_value *out_error)
{
    struct trace_promoted p;
    if (!trace_ready(name, 2, pair, out_error) ||
        !trace_promote(name, "integer", 2, pair, &p, out_error))
        return false;
    for (int i = 0; i < 2; i++)
        pair[i] = jot_abs(jot_convert(pair[i], p.seen));
    jot_value none = jot_mul(zero(), jot_add(pair[0], pair[1])); // of both shapes
    pair[0] = jot_add(pair[0], none);
    pair[1] = jot_add(pair[1], none);
    *out_error = none;
    return !jot_value_failed(none);
}

static jot_value gcd(jot_value x, jot_value y)
{
    jot_value pair[] = {x, y}, error;
    if (!open_integers("jot_gcd", pair, &error))
        return error;
    jot_while_at(is_left, divide, NULL, 2, pair, NULL, "jot_gcd");
    return jot_abs(pair[0]); // the lowest number has no modulus, but divisors
}

jot_value jot_gcd(jot_value x, jot_value y) { TRACE_RETURN(gcd(x, y)); }

static jot_value lcm(jot_value x, jot_value y)
{
    jot_value pair[] = {x, y}, error;
    if (!open_integers("jot_lcm", pair, &error))
        return error;
    jot_value d = gcd(pair[0], pair[1]), one = jot_from_int(1);
    d = jot_where(jot_equal(d, zero()), one, d); // of two zeros
    return jot_mul(pair[0], jot_floor_divide(pair[1], d));
}

jot_value jot_lcm(jot_value x, jot_value y) { TRACE_RETURN(lcm(x, y)); }

// ---------------------------------------------------------------------------------------
// NaN, infinities and tolerances

static jot_value finite_part(jot_value x, double nan)
{
    jot_value top = jot_nextafter(jot_full_like(x, jot_from_double(INFINITY)), zero());
    x = jot_where(jot_is_nan(x), jot_from_double(nan), x);
    return jot_clip(x, jot_neg(top), top);
}

static jot_value nan_to_num(jot_value x, double nan)
{
    jot_value error;
    if (!trace_ready("jot_nan_to_num", 1, &x, &error))
        return error;
    jot_dtype d = (jot_dtype)trace_slot_of(x)->dtype;
    if (dtype_is_complex(d))
        return jot_complex(finite_part(jot_real(x), nan), finite_part(jot_imag(x), nan));
    return dtype_is_float(d) ? finite_part(x, nan) : x;
}

jot_value jot_nan_to_num(jot_value x, double nan) { TRACE_RETURN(nan_to_num(x, nan)); }

// Integers as floats.  Times 1 an infinity of complex numbers would have a part that is NaN.
static jot_value float_of(jot_value x)
{
    return dtype_is_inexact(jot_value_dtype(x)) ? x : jot_mul(x, jot_from_double(1));
}

jot_value jot_isclose(jot_value x, jot_value y, double relative, double absolute)
{
    x = float_of(x);
    y = float_of(y);
    jot_value room =
        jot_add(jot_from_double(absolute), jot_mul(jot_from_double(relative), jot_abs(y)));
    jot_value near = jot_less_equal(jot_abs(jot_sub(x, y)), room);
    jot_value are_finite =
        jot_logical_and(jot_is_finite(jot_abs(x)), jot_is_finite(jot_abs(y)));
    return jot_where(are_finite, near, jot_equal(x, y));
}

jot_value jot_array_equal(jot_value x, jot_value y)
{
    bool same = jot_value_rank(x) == jot_value_rank(y);
    for (int i = 0; same && i < jot_value_rank(x); i++)
        same = jot_value_dim(x, i) == jot_value_dim(y, i);
    if (jot_value_failed(x) || jot_value_failed(y) || same)
        return jot_all_axes(jot_equal(x, y), NULL);
    return jot_full_dims(JOT_BOOL, jot_from_bool(false), NULL);
}

jot_value jot_array_equiv(jot_value x, jot_value y)
{
    int n = jot_value_rank(x), m = jot_value_rank(y);
    bool same = true;
    for (int k = 1; k <= n && k <= m; k++) {
        int64_t a = jot_value_dim(x, -k), b = jot_value_dim(y, -k);
        same &= a == b || a == 1 || b == 1;
    }
    if (same)
        return jot_all_axes(jot_equal(x, y), NULL);
    return jot_full_dims(JOT_BOOL, jot_from_bool(false), NULL);
}
