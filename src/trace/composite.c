// SPDX-License-Identifier: Apache-2.0
// Pointwise operations made of those of the table.
#include "trace/emit.h"
#include "trace/lanes.h"

#include "jot/transform.h"

#include <math.h>

// x / y where integers have been turned into floats.
static jot_value divide(jot_value x, jot_value y)
{
    jot_value v[] = {x, y}, error;
    struct trace_promoted p;
    if (!trace_ready("jot_div", 2, v, &error) ||
        !trace_promote("jot_div", "inexact", 2, v, &p, &error))
        return error;
    ir_id ids[] = {trace_operand(v[0], p.dtype), trace_operand(v[1], p.dtype)};
    if (!trace_align("jot_div", 2, v, ids, &error))
        return error;
    return trace_result("jot_div", ir_div(trace_builder(), ids[0], ids[1]), p.weak);
}

jot_value jot_div(jot_value x, jot_value y) { TRACE_RETURN(divide(x, y)); }

static bool is_integer(jot_value x) { return !dtype_is_inexact(jot_value_dtype(x)); }

// (x - rem(x, y)) / y is exact for integers; the quotient of the table truncates.
static jot_value integer_quotient(jot_value x, jot_value y)
{
    jot_value v[] = {x, y};
    TRACE_RETURN(trace_map(IR_div, "jot_floor_divide", 2, v));
}

static jot_value differs_in_sign(jot_value r, jot_value y)
{
    jot_value zero = jot_from_int(0);
    return jot_logical_and(jot_not_equal(r, zero),
                           jot_not_equal(jot_less(r, zero), jot_less(y, zero)));
}

// The exact quotient of x less its rest is whole, and so is what it is rounded to: the floor of x / y
// would be of a quotient that may have been rounded up.  A divisor of 0 leaves no rest.
static jot_value float_quotient(jot_value x, jot_value y)
{
    jot_value rest = jot_rem(x, y), is_zero = jot_equal(y, jot_from_int(0));
    jot_value q = jot_round(jot_div(jot_where(is_zero, x, jot_sub(x, rest)), y));
    jot_value down = jot_logical_and(jot_logical_not(is_zero), differs_in_sign(rest, y));
    return jot_where(down, jot_sub(q, jot_from_int(1)), q);
}

jot_value jot_floor_divide(jot_value x, jot_value y)
{
    if (!is_integer(x) || !is_integer(y))
        return float_quotient(x, y);
    jot_value q = integer_quotient(x, y);
    jot_value down =
        jot_logical_and(jot_not_equal(y, jot_from_int(0)), differs_in_sign(jot_rem(x, y), y));
    return jot_where(down, jot_sub(q, jot_from_int(1)), q);
}

jot_value jot_mod(jot_value x, jot_value y)
{
    jot_value r = jot_rem(x, y);
    return jot_where(differs_in_sign(r, y), jot_add(r, y), r);
}

jot_value jot_remainder(jot_value x, jot_value y) { return jot_mod(x, y); }

static jot_value integer_power(const char *name, jot_value x, int64_t exponent)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    jot_dtype d = (jot_dtype)trace_slot_of(x)->dtype;
    bool weak = trace_slot_of(x)->weak;
    ir_id id = d == JOT_BOOL ? trace_operand(x, JOT_I32) : trace_kept(x);
    return trace_result(name, ir_integer_pow(trace_builder(), id, exponent), weak);
}

jot_value jot_integer_pow(jot_value x, int exponent)
{
    TRACE_RETURN(integer_power("jot_integer_pow", x, exponent));
}

static jot_value power(jot_value x, jot_value y)
{
    jot_value v[] = {x, y}, error;
    if (!trace_ready("jot_power", 2, v, &error))
        return error;
    const struct trace_number *n = trace_number_of(v[1]);
    bool is_number = n && n->kind == 'i' && !trace_number_of(v[0]);
    if (is_number && (n->i >= 0 || dtype_is_inexact((jot_dtype)trace_slot_of(v[0])->dtype)))
        return integer_power("jot_power", v[0], n->i);
    return trace_map(IR_pow, "jot_power", 2, v);
}

jot_value jot_power(jot_value x, jot_value y) { TRACE_RETURN(power(x, y)); }
jot_value jot_pow(jot_value x, jot_value y) { TRACE_RETURN(power(x, y)); }

static bool is_complex(jot_value x) { return dtype_is_complex(jot_value_dtype(x)); }

// Complex squares and inverses as powers, whose parts are finite where those of the product and the
// quotient are not.
jot_value jot_square(jot_value x)
{
    return is_complex(x) ? jot_integer_pow(x, 2) : jot_mul(x, x);
}

jot_value jot_reciprocal(jot_value x)
{
    return is_complex(x) ? jot_integer_pow(x, -1) : jot_div(jot_from_int(1), x);
}

// The parts by themselves: beside an infinite one the other stays.
jot_value jot_log10(jot_value x)
{
    jot_value y = jot_log(x), base = jot_from_double(M_LN10);
    if (!is_complex(x))
        return jot_div(y, base);
    return jot_complex(jot_div(jot_real(y), base), jot_div(jot_imag(y), base));
}

jot_value jot_clip(jot_value x, jot_value low, jot_value high)
{
    return jot_minimum(jot_maximum(x, low), high);
}

// ---------------------------------------------------------------------------------------
// Of neural networks

jot_value jot_sigmoid(jot_value x) { return jot_logistic(x); }
jot_value jot_silu(jot_value x) { return jot_mul(x, jot_logistic(x)); }
jot_value jot_softplus(jot_value x) { return jot_logaddexp(x, jot_from_int(0)); }

// Not maximum(x, 0), whose derivative at 0 is 1/2.  NaN stays, without a slope.
jot_value jot_relu(jot_value x)
{
    jot_value zero = jot_from_int(0), rest = jot_stop_gradient(x);
    rest = jot_where(jot_less_equal(x, zero), jot_zeros_like(x), rest);
    return jot_where(jot_greater(x, zero), x, rest);
}

jot_value jot_gelu(jot_value x)
{
    // Beyond 10 tanh is +-1, and its slope 0, while powers of x may overflow.  NaN keeps its slope.
    jot_value low = jot_from_double(-10), high = jot_from_double(10);
    jot_value below = jot_where(jot_less(high, x), high, x);
    jot_value y = jot_where(jot_less(below, low), low, below);
    jot_value inner =
        jot_mul(jot_from_double(sqrt(2 / M_PI)),
                jot_add(y, jot_mul(jot_from_double(0.044715), jot_integer_pow(y, 3))));
    jot_value cdf = jot_mul(jot_from_double(0.5), jot_add(jot_from_int(1), jot_tanh(inner)));
    return jot_mul(x, cdf);
}

jot_value trace_within_pi(jot_value x)
{
    jot_value pi = jot_from_double(M_PI), im = jot_imag(x);
    jot_value turned = jot_sub(jot_mod(jot_add(im, pi), jot_from_double(2 * M_PI)), pi);
    return jot_complex(jot_real(x), jot_where(jot_greater(jot_abs(im), pi), turned, im));
}

// max + log1p(exp(min - max))
static jot_value complex_logaddexp(jot_value x, jot_value y)
{
    jot_value big = jot_maximum(x, y), small = jot_minimum(x, y), d = jot_sub(small, big);
    jot_value sum = trace_within_pi(jot_add(big, jot_log1p(jot_exp(d))));
    return jot_where(jot_is_nan(d), jot_add(x, y), sum);
}

// max + log1p(exp(-|x - y|)); equal infinities have no difference.
static jot_value logaddexp(jot_value x, jot_value y)
{
    if (is_complex(x) || is_complex(y))
        return complex_logaddexp(x, y);
    jot_value big = jot_maximum(x, y), d = jot_sub(x, y);
    jot_value sum = jot_add(big, jot_log1p(jot_exp(jot_neg(jot_abs(d)))));
    return jot_where(jot_is_nan(d), jot_add(x, y), sum);
}

// The maximum and the modulus have kinks at x = y, their sum has none.  Of equal infinities
// each has half.
static jot_value logaddexp_rule(jot_value x, jot_value y, jot_value dx, jot_value dy)
{
    jot_value d = jot_sub(x, y);
    d = jot_where(jot_logical_and(jot_is_nan(d), jot_equal(x, y)), jot_from_int(0), d);
    return jot_add(jot_mul(dx, jot_logistic(d)), jot_mul(dy, jot_logistic(jot_neg(d))));
}

jot_value jot_logaddexp(jot_value x, jot_value y)
{
    if (is_integer(x) && is_integer(y) && !jot_value_failed(x))
        x = jot_convert(x, dtype_to_inexact(jot_value_dtype(x)));
    return TRACE_RULED("jot_logaddexp", logaddexp, logaddexp_rule, x, y);
}

// ---------------------------------------------------------------------------------------
// Logic

static jot_value truth(const char *name, jot_value x)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    if (trace_slot_of(x)->dtype == JOT_BOOL)
        return x;
    ir_id id = trace_kept(x);
    return trace_result(
        name, ir_ne(trace_builder(), id, ir_scalar_like(trace_builder(), id, 0)), false);
}

static jot_value truth_map(enum ir_op op, const char *name, jot_value x, jot_value y)
{
    jot_value v[] = {truth(name, x), truth(name, y)};
    return trace_map(op, name, 2, v);
}

jot_value jot_logical_and(jot_value x, jot_value y)
{
    TRACE_RETURN(truth_map(IR_and, "jot_logical_and", x, y));
}

jot_value jot_logical_or(jot_value x, jot_value y)
{
    TRACE_RETURN(truth_map(IR_or, "jot_logical_or", x, y));
}

jot_value jot_logical_xor(jot_value x, jot_value y)
{
    TRACE_RETURN(truth_map(IR_xor, "jot_logical_xor", x, y));
}

jot_value jot_logical_not(jot_value x)
{
    TRACE_RETURN(
        trace_map(IR_not, "jot_logical_not", 1, (jot_value[]){truth("jot_logical_not", x)}));
}

jot_value jot_is_nan(jot_value x) { return jot_not_equal(x, x); }

jot_value jot_is_inf(jot_value x)
{
    jot_value m = is_complex(x) ? jot_abs(x) : x;
    return jot_logical_not(jot_logical_or(jot_is_finite(m), jot_is_nan(m)));
}

static jot_value where(jot_value predicate, jot_value x, jot_value y)
{
    jot_value v[] = {predicate, x, y}, error;
    struct trace_promoted p;
    if (!trace_ready("jot_where", 3, v, &error))
        return error;
    v[0] = truth("jot_where", v[0]);
    if (trace_is_error(v[0]))
        return v[0];
    if (!trace_promote("jot_where", "any", 2, v + 1, &p, &error))
        return error;
    if (!trace_fits("jot_where", v[1], p.dtype, &error) ||
        !trace_fits("jot_where", v[2], p.dtype, &error))
        return error;
    ir_id ids[] = {trace_kept(v[0]), trace_operand(v[1], p.dtype),
                   trace_operand(v[2], p.dtype)};
    if (!trace_align("jot_where", 3, v, ids, &error))
        return error;
    return trace_result("jot_where", ir_select(trace_builder(), ids[0], ids[1], ids[2]),
                        p.weak);
}

jot_value jot_where(jot_value predicate, jot_value x, jot_value y)
{
    TRACE_RETURN(where(predicate, x, y));
}

jot_value jot_right_shift(jot_value x, jot_value y)
{
    return dtype_is_unsigned(jot_value_dtype(x)) ? jot_right_shift_logical(x, y)
                                                 : jot_right_shift_arithmetic(x, y);
}

// ---------------------------------------------------------------------------------------
// Types

static jot_value convert(const char *name, jot_value x, jot_dtype dtype)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error) || !trace_is_dtype(name, dtype, &error))
        return error;
    // A conversion to bool asks for "not 0", which rounding to an integer first would miss.
    if (dtype == JOT_BOOL)
        return truth(name, x);
    jot_dtype from = (jot_dtype)trace_slot_of(x)->dtype;
    ir_id id;
    if (trace_number_of(x))
        id =
            trace_operand(x, dtype_is_complex(from) && !dtype_is_complex(dtype) ? from : dtype);
    else
        id = trace_kept(x);
    if (dtype_is_complex(ir_dtype(ir_type_in(trace_builder(), id))) && !dtype_is_complex(dtype))
        id = ir_real(trace_builder(), id);
    return trace_result(name, ir_convert(trace_builder(), id, dtype), false);
}

jot_value jot_convert(jot_value x, jot_dtype dtype)
{
    TRACE_RETURN(convert("jot_convert", x, dtype));
}
jot_value jot_astype(jot_value x, jot_dtype dtype)
{
    TRACE_RETURN(convert("jot_astype", x, dtype));
}

static jot_value bitcast(jot_value x, jot_dtype dtype)
{
    jot_value error;
    if (!trace_ready("jot_bitcast", 1, &x, &error) ||
        !trace_is_dtype("jot_bitcast", dtype, &error))
        return error;
    return trace_result("jot_bitcast", ir_bitcast(trace_builder(), trace_strong(x), dtype),
                        false);
}

jot_value jot_bitcast(jot_value x, jot_dtype dtype) { TRACE_RETURN(bitcast(x, dtype)); }

static jot_value reduce_precision(jot_value x, int exponent_bits, int mantissa_bits)
{
    jot_value error;
    struct trace_promoted p;
    if (!trace_ready("jot_reduce_precision", 1, &x, &error) ||
        !trace_promote("jot_reduce_precision", "float", 1, &x, &p, &error))
        return error;
    struct ir_builder *b = trace_builder();
    ir_id id = trace_operand(x, p.dtype);
    return trace_result("jot_reduce_precision",
                        ir_build(b, IR_reduce_precision, 1, &id,
                                 ir_attrs(b->module, IR_INT(exponent_bits, exponent_bits),
                                          IR_INT(mantissa_bits, mantissa_bits))),
                        p.weak);
}

jot_value jot_reduce_precision(jot_value x, int exponent_bits, int mantissa_bits)
{
    TRACE_RETURN(reduce_precision(x, exponent_bits, mantissa_bits));
}

static jot_value part(enum ir_op op, const char *name, jot_value x)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    if (dtype_is_complex((jot_dtype)trace_slot_of(x)->dtype))
        return trace_like(name, x, ir_map1(trace_builder(), op, trace_kept(x)));
    return op == IR_imag ? jot_zeros_like(x) : x;
}

jot_value jot_real(jot_value x) { TRACE_RETURN(part(IR_real, "jot_real", x)); }
jot_value jot_imag(jot_value x) { TRACE_RETURN(part(IR_imag, "jot_imag", x)); }
jot_value jot_conj(jot_value x) { TRACE_RETURN(part(IR_conj, "jot_conj", x)); }
jot_value jot_angle(jot_value x) { return jot_atan2(jot_imag(x), jot_real(x)); }

static jot_value stop_gradient(jot_value x)
{
    jot_value error;
    if (!trace_ready("jot_stop_gradient", 1, &x, &error))
        return error;
    return trace_like("jot_stop_gradient", x, ir_stop_gradient(trace_builder(), trace_kept(x)));
}

jot_value jot_stop_gradient(jot_value x) { TRACE_RETURN(stop_gradient(x)); }
