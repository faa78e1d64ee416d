// SPDX-License-Identifier: Apache-2.0
// The operations on values.
//
// Names are those of jax.numpy and jax.lax.  Unless a comment says otherwise:
//
// - Operands broadcast as in NumPy: axes are matched from the last one, and an axis of size 1, or
//   one that is not there, is repeated.
// - Operands of different dtypes are brought to their least common type: bool < integers < floats
//   < complex, integers never widen floats, u64 with a signed integer gives f32, and C numbers take
//   the type of what they meet.
// - Operations that only floats have (division, exp, sqrt, ...) turn integers and bool into f32,
//   those of 64 bits into f64.
// - "floating" is f16, bf16, f32, f64.  An operand that an operation is not defined for is an error
//   (JOT_ERR_DTYPE), shapes that do not fit are JOT_ERR_SHAPE.
// - Derivatives follow JAX: ties of maximum and minimum share evenly, |x| has slope +1 at 0.
//
// Lists of axes and sizes stand at the end of the call, jot_sum(x, 0, 1), and negative axes count
// from the end.  The functions under the macros (jot_sum_axes) take lists that end with JOT_END.
#ifndef JOT_OPS_H
#define JOT_OPS_H

#include "jot/trace.h"

JOT_BEGIN_C

// ---- Arithmetic, element by element ----

// x + y, x - y, x * y.  Integers wrap.  Of bools, add is "or" and mul is "and"; sub is an
// error.
JOT_API jot_value jot_add(jot_value x, jot_value y);
JOT_API jot_value jot_sub(jot_value x, jot_value y);
JOT_API jot_value jot_mul(jot_value x, jot_value y);

// x / y, the true quotient: integers are divided as floats.  Derivatives 1/y and -x/y^2.
JOT_API jot_value jot_div(jot_value x, jot_value y);

// floor(x / y).  Of floats that of Python's //, (x - mod(x, y)) / y as a whole number; x / y
// where y is 0. For integers exact; a division by zero gives -1 (all ones).
JOT_API jot_value jot_floor_divide(jot_value x, jot_value y);

// x - y floor(x / y): the remainder with the sign of y, as in NumPy.  Not complex.
JOT_API jot_value jot_mod(jot_value x, jot_value y);
JOT_API jot_value jot_remainder(jot_value x, jot_value y);

// x - y trunc(x / y): the remainder with the sign of x, as in C.  Not complex.  By an integer 0
// it is x.
JOT_API jot_value jot_rem(jot_value x, jot_value y);

// x^y.  An integer C number as exponent multiplies, exactly, and integers keep their type;
// otherwise exp(y log x) of floats or complex numbers, NaN for a negative x and fractional y.
// Derivatives y x^(y-1) and x^y log x (0 at x = 0).
JOT_API jot_value jot_power(jot_value x, jot_value y);
JOT_API jot_value jot_pow(jot_value x, jot_value y);

// x^exponent by repeated multiplication.  Integers have no negative powers.
JOT_API jot_value jot_integer_pow(jot_value x, int exponent);

// -x.
JOT_API jot_value jot_neg(jot_value x);

// |x|; the real modulus of a complex number.  Slope +1 at 0.
JOT_API jot_value jot_abs(jot_value x);

// -1, 0 or 1 (NaN of NaN); x / |x| of a complex number.  Derivative 0.
JOT_API jot_value jot_sign(jot_value x);

// x * x.
JOT_API jot_value jot_square(jot_value x);

// 1 / x.
JOT_API jot_value jot_reciprocal(jot_value x);

// x y + z, rounded once.  Floating.
JOT_API jot_value jot_fma(jot_value x, jot_value y, jot_value z);

// The larger, the smaller; NaN if either is.  Equal operands share the derivative evenly.
JOT_API jot_value jot_maximum(jot_value x, jot_value y);
JOT_API jot_value jot_minimum(jot_value x, jot_value y);

// minimum(maximum(x, low), high).
JOT_API jot_value jot_clip(jot_value x, jot_value low, jot_value high);

// The same with the arguments in the order of jax.lax.  Derivative 0 on the boundary.
JOT_API jot_value jot_clamp(jot_value low, jot_value x, jot_value high);

// To an integral value: down, up, to nearest with ties to even, ties away from 0.  Integers
// stay as they are.  Derivative 0.
JOT_API jot_value jot_floor(jot_value x);
JOT_API jot_value jot_ceil(jot_value x);
JOT_API jot_value jot_round(jot_value x);
JOT_API jot_value jot_round_away(jot_value x);

// The float next to x in the direction of y.
JOT_API jot_value jot_nextafter(jot_value x, jot_value y);

// x rounded to the nearest number of a float format with so many bits, ties to even.  If the
// format has fewer bits of the exponent than the type, numbers beyond its range become
// infinite, and those below its normal numbers 0, as in XLA; with as many it has the
// denormals of the type.  Floating.
JOT_API jot_value jot_reduce_precision(jot_value x, int exponent_bits, int mantissa_bits);

// ---- Elementary functions ----

// e^x, 2^x, e^x - 1 (accurate near 0).
JOT_API jot_value jot_exp(jot_value x);
JOT_API jot_value jot_exp2(jot_value x);
JOT_API jot_value jot_expm1(jot_value x);

// Natural logarithm, log(1 + x) (accurate near 0), logarithms to base 2 and 10.  NaN below the
// domain.
JOT_API jot_value jot_log(jot_value x);
JOT_API jot_value jot_log1p(jot_value x);
JOT_API jot_value jot_log2(jot_value x);
JOT_API jot_value jot_log10(jot_value x);

// Square root, 1 / sqrt(x), cube root (not complex).
JOT_API jot_value jot_sqrt(jot_value x);
JOT_API jot_value jot_rsqrt(jot_value x);
JOT_API jot_value jot_cbrt(jot_value x);

// sin(pi x) / (pi x), 1 at 0.  Integers are converted.
JOT_API jot_value jot_sinc(jot_value x);

// Trigonometric functions and their inverses, in radians.
JOT_API jot_value jot_sin(jot_value x);
JOT_API jot_value jot_cos(jot_value x);
JOT_API jot_value jot_tan(jot_value x);
JOT_API jot_value jot_asin(jot_value x);
JOT_API jot_value jot_acos(jot_value x);
JOT_API jot_value jot_atan(jot_value x);

// cos(pi x), exact at multiples of 1/2.
JOT_API jot_value jot_cospi(jot_value x);

// Hyperbolic functions and their inverses.  tanh has derivative 1 - tanh(x)^2.
JOT_API jot_value jot_sinh(jot_value x);
JOT_API jot_value jot_cosh(jot_value x);
JOT_API jot_value jot_tanh(jot_value x);
JOT_API jot_value jot_asinh(jot_value x);
JOT_API jot_value jot_acosh(jot_value x);
JOT_API jot_value jot_atanh(jot_value x);

// The angle of the point (y, x) in (-pi, pi]: atan2(x, y) = atan(x / y) in the right quadrant.
// Floating.
JOT_API jot_value jot_atan2(jot_value x, jot_value y);

// sqrt(x^2 + y^2).  Floating; scaled, so that it does not overflow; infinite where x or y is.
JOT_API jot_value jot_hypot(jot_value x, jot_value y);

// The inverse of the error function on (-1, 1); infinite at the ends.  Floating.
JOT_API jot_value jot_erf_inv(jot_value x);

// log(e^x + e^y), without overflow; of complex numbers with an imaginary part within pi.
JOT_API jot_value jot_logaddexp(jot_value x, jot_value y);

// ---- Functions of neural networks ----

// 1 / (1 + e^-x).
JOT_API jot_value jot_logistic(jot_value x);
JOT_API jot_value jot_sigmoid(jot_value x);

// maximum(x, 0), with derivative 0 at 0.
JOT_API jot_value jot_relu(jot_value x);

// x Phi(x) by the tanh approximation, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
JOT_API jot_value jot_gelu(jot_value x);

// x logistic(x).
JOT_API jot_value jot_silu(jot_value x);

// log(1 + e^x), without overflow.
JOT_API jot_value jot_softplus(jot_value x);

// e^x / sum(e^x) along an axis, shifted by the maximum so that it cannot overflow.
JOT_API jot_value jot_softmax(jot_value x, int axis);

// log(softmax(x)), without the loss of taking the logarithm afterwards.
JOT_API jot_value jot_log_softmax(jot_value x, int axis);

// ---- Comparison and logic ----

// x == y, x != y: bool.  NaN is not equal to itself.
JOT_API jot_value jot_equal(jot_value x, jot_value y);
JOT_API jot_value jot_not_equal(jot_value x, jot_value y);

// x < y, ...: bool.  Complex numbers, here and for extrema, are ordered by their real parts and, where
// these are equal, by their imaginary parts; NaN, which is one with a part that is, is in no order.
JOT_API jot_value jot_less(jot_value x, jot_value y);
JOT_API jot_value jot_less_equal(jot_value x, jot_value y);
JOT_API jot_value jot_greater(jot_value x, jot_value y);
JOT_API jot_value jot_greater_equal(jot_value x, jot_value y);

// Of truth values: what is not 0 is true.
JOT_API jot_value jot_logical_and(jot_value x, jot_value y);
JOT_API jot_value jot_logical_or(jot_value x, jot_value y);
JOT_API jot_value jot_logical_xor(jot_value x, jot_value y);

// x == 0.
JOT_API jot_value jot_logical_not(jot_value x);

// Which elements are: bool.
JOT_API jot_value jot_is_nan(jot_value x);
JOT_API jot_value jot_is_inf(jot_value x);
JOT_API jot_value jot_is_finite(jot_value x);

// x where the predicate is true (not 0), y elsewhere.  The untaken side gets cotangent 0.
JOT_API jot_value jot_where(jot_value predicate, jot_value x, jot_value y);

// ---- Bits ----

// Integers or bool.
JOT_API jot_value jot_bitwise_and(jot_value x, jot_value y);
JOT_API jot_value jot_bitwise_or(jot_value x, jot_value y);
JOT_API jot_value jot_bitwise_xor(jot_value x, jot_value y);

// ~x of integers, !x of bool.
JOT_API jot_value jot_bitwise_not(jot_value x);

// Shifts of integers.  right_shift keeps the sign of signed types.  By the width or more: 0, or
// the sign.
JOT_API jot_value jot_left_shift(jot_value x, jot_value y);
JOT_API jot_value jot_right_shift(jot_value x, jot_value y);
JOT_API jot_value jot_right_shift_logical(jot_value x, jot_value y);
JOT_API jot_value jot_right_shift_arithmetic(jot_value x, jot_value y);

// The number of bits that are set; of zeros above the highest.  Integers.
JOT_API jot_value jot_popcount(jot_value x);
JOT_API jot_value jot_clz(jot_value x);

// The same bits as another integer or floating type of the same size.
JOT_API jot_value jot_bitcast(jot_value x, jot_dtype dtype);

// ---- Types and complex numbers ----

// x in another type.  Floats to integers: towards 0, saturating, NaN gives 0.  To bool: not 0.
// Complex to real: the real part.
JOT_API jot_value jot_convert(jot_value x, jot_dtype dtype);
JOT_API jot_value jot_astype(jot_value x, jot_dtype dtype);

// re + i im, from f32 or f64.
JOT_API jot_value jot_complex(jot_value re, jot_value im);

// Parts, conjugate and argument; of a real x: x, 0, x, and 0 or pi.
JOT_API jot_value jot_real(jot_value x);
JOT_API jot_value jot_imag(jot_value x);
JOT_API jot_value jot_conj(jot_value x);
JOT_API jot_value jot_angle(jot_value x);

// x, with derivative 0.
JOT_API jot_value jot_stop_gradient(jot_value x);

// ---- Reductions ----

// Over the listed axes, or over all when none is listed.  JOT_KEEPDIMS in the list keeps reduced
// axes with size 1:  jot_sum(x)  jot_sum(x, 0, 1)  jot_max(x, -1, JOT_KEEPDIMS)

// Sum and product.  bool and integers of 8 and 16 bits give i32 (unsigned ones u32).  Empty: 0,
// 1.
JOT_API jot_value jot_sum_axes(jot_value x, const int *axes);
JOT_API jot_value jot_prod_axes(jot_value x, const int *axes);

// sum / count, of floats or complex numbers.
JOT_API jot_value jot_mean_axes(jot_value x, const int *axes);

// mean(|x - mean(x)|^2), and its square root.
JOT_API jot_value jot_var_axes(jot_value x, const int *axes);
JOT_API jot_value jot_std_axes(jot_value x, const int *axes);

// The largest, the smallest; NaN if there is one.  Equal extrema share the derivative.  An empty
// reduction gives the least or greatest value of the type.
JOT_API jot_value jot_max_axes(jot_value x, const int *axes);
JOT_API jot_value jot_min_axes(jot_value x, const int *axes);

// Whether any, all are not 0: bool.
JOT_API jot_value jot_any_axes(jot_value x, const int *axes);
JOT_API jot_value jot_all_axes(jot_value x, const int *axes);

// The index of the largest, smallest along one axis; without an axis, of the flattened x.  i32
// (i64 where the axis needs it).  The first of equals; NaN wins.
JOT_API jot_value jot_argmax_axes(jot_value x, const int *axes);
JOT_API jot_value jot_argmin_axes(jot_value x, const int *axes);

// log(sum(e^x)), without overflow.
JOT_API jot_value jot_logsumexp_axes(jot_value x, const int *axes);

// sqrt(sum(|x|^2)).
JOT_API jot_value jot_norm_axes(jot_value x, const int *axes);

// Along one axis, or over the flattened x when none is given; the shape stays.

// Running sum, product, maximum, minimum, log(sum(e^x)).  Types as for the reductions.
JOT_API jot_value jot_cumsum_axes(jot_value x, const int *axes);
JOT_API jot_value jot_cumprod_axes(jot_value x, const int *axes);
JOT_API jot_value jot_cummax_axes(jot_value x, const int *axes);
JOT_API jot_value jot_cummin_axes(jot_value x, const int *axes);
JOT_API jot_value jot_cumlogsumexp_axes(jot_value x, const int *axes);
// The or of the bits of integers, or of bools, so far.
JOT_API jot_value jot_cumor_axes(jot_value x, const int *axes);

// ---- Shape ----

// The same elements in row-major order with other sizes; one may be -1: what is left.
JOT_API jot_value jot_reshape_dims(jot_value x, const int64_t *dims);

// x repeated to the sizes, by the rule of broadcasting.
JOT_API jot_value jot_broadcast_to_dims(jot_value x, const int64_t *dims);

// Axis i of the result is axis axes[i] of x; without a list the axes are reversed.
JOT_API jot_value jot_transpose_axes(jot_value x, const int *axes);

// New axes of size 1, at the listed positions of the result.
JOT_API jot_value jot_expand_dims_axes(jot_value x, const int *axes);

// Without the listed axes, which have size 1; without a list, without all such axes.
JOT_API jot_value jot_squeeze_axes(jot_value x, const int *axes);

// Reversed along the listed axes, or along all.
JOT_API jot_value jot_flip_axes(jot_value x, const int *axes);

// Axes a and b exchanged.
JOT_API jot_value jot_swap_axes(jot_value x, int a, int b);

// Axis from, moved to be axis to of the result.
JOT_API jot_value jot_move_axis(jot_value x, int from, int to);

// Zero above the k-th diagonal of the last two axes (0 the main one, positive ones above it).
JOT_API jot_value jot_tril(jot_value x, int k);

// Zero below the k-th diagonal of the last two axes.
JOT_API jot_value jot_triu(jot_value x, int k);

// Shifted by so many elements along the axis; what leaves one end enters the other.
JOT_API jot_value jot_roll(jot_value x, int64_t shift, int axis);

// Each slice along the axis, count times in a row.
JOT_API jot_value jot_repeat(jot_value x, int64_t count, int axis);

// x repeated counts[i] times along axis i; further counts add axes in front.
JOT_API jot_value jot_tile_dims(jot_value x, const int64_t *counts);

// x[start:stop:step] along one axis, with the rules of Python: negative indices count from the
// end, indices outside are clipped, JOT_END as start or stop is "from the end of the axis that
// the step comes from", and the step may be negative but not 0.
JOT_API jot_value jot_slice_axis(jot_value x, int axis, int64_t start, int64_t stop,
                                 int64_t step);

// The element of x at an index along one axis, which goes: x[index], with negative ones from
// the end.  Outside the axis is an error (JOT_ERR_ARGUMENT).
JOT_API jot_value jot_take_axis(jot_value x, int64_t index, int axis);

// The elements of x at an array of integers along one axis, which becomes the axes of the array:
// x[index].  Negative ones count from the end; outside of x an element is NaN, the lowest integer,
// the highest unsigned one, or true.  jot_take is this for values and arrays, and jot_take_axis for
// C numbers.
JOT_API jot_value jot_take_values(jot_value x, jot_value index, int axis);

// With low and high elements of the value added before and after along one axis; negative ones
// take away.
JOT_API jot_value jot_pad_axis(jot_value x, jot_value value, int axis, int64_t low,
                               int64_t high);

// The values one after the other along an existing axis:  jot_concatenate(0, x, y, z)
JOT_API jot_value jot_concatenate_list(int axis, size_t n, const jot_value *x);

// The values one after the other along a new axis of the result:  jot_stack(0, x, y, z)
JOT_API jot_value jot_stack_list(int axis, size_t n, const jot_value *x);

// n equal parts along an axis, into out.
JOT_API void jot_split_into(jot_value x, int axis, size_t n, jot_value *out);

// ---- Making values ----

// A C number that an integer dtype cannot hold is JOT_ERR_ARGUMENT, here and wherever else it would
// take on that dtype; bool takes 0 as false and the rest as true, floats round.

// One value everywhere:  jot_full(JOT_F32, 0.5, 2, 3)
JOT_API jot_value jot_full_dims(jot_dtype dtype, jot_value value, const int64_t *dims);

// jot_zeros(JOT_F32, 2, 3); without sizes a scalar.
JOT_API jot_value jot_zeros_dims(jot_dtype dtype, const int64_t *dims);

// One everywhere:  jot_ones(JOT_F32, 2, 3)
JOT_API jot_value jot_ones_dims(jot_dtype dtype, const int64_t *dims);

// With the shape and dtype of x.
JOT_API jot_value jot_zeros_like(jot_value x);
JOT_API jot_value jot_ones_like(jot_value x);

// y everywhere, with the shape and dtype of x; y is a scalar.
JOT_API jot_value jot_full_like(jot_value x, jot_value y);

// 0, 1, ..., n - 1.
JOT_API jot_value jot_arange(jot_dtype dtype, int64_t n);

// n floats from start to stop, both included, at even distances.
JOT_API jot_value jot_linspace(jot_dtype dtype, double start, double stop, int64_t n);

// The n by m matrix with ones on the diagonal.
JOT_API jot_value jot_eye(jot_dtype dtype, int64_t n, int64_t m);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer: the same names take numbers and arrays, and note the place of the call.

#if defined(__cplusplus)
template <class... T> jot_list_<jot_value, sizeof...(T)> jot_values_(T... x)
{
    return jot_list_<jot_value, sizeof...(T)>{{jot_value(x)...}};
}
#define JOT_VALUES_(name, ...)                                                                 \
    sizeof(jot_values_(__VA_ARGS__)) / sizeof(jot_value), jot_values_(__VA_ARGS__).v
#else
#define JOT_VALUES_(name, ...)                                                                 \
    JOT_ARGUMENTS_(__VA_ARGS__) + JOT_MUST_BE_LIST_(name, "values", __VA_ARGS__),              \
        ((const jot_value[]){JOT_EACH_(JOT_VALUE_, name, __VA_ARGS__)})
#endif

#if !defined(JOT_PLAIN)

// The end of a list that may have nothing else.
static inline jot_value jot_no_value_(void)
{
    jot_value v;
    v.trace = v.id = 0;
    return v;
}

// Which function takes an index of the type.
#if defined(__cplusplus)
template <class Index> jot_value jot_take_(jot_value x, Index index, int axis)
{
    if constexpr (std::is_integral<Index>::value)
        return jot_take_axis(x, static_cast<int64_t>(index), axis);
    else
        return jot_take_values(x, jot_value(index), axis);
}
#define JOT_TAKE_FUNCTION_(index) jot_take_
#else
static inline jot_value jot_take_array_(jot_value x, const jot_array *index, int axis)
{
    return jot_take_values(x, jot_from_array(index), axis);
}
static inline jot_value jot_take_number_(jot_value x, double index, int axis)
{
    return jot_take_values(x, jot_from_double(index), axis);
}
#define JOT_TAKE_FUNCTION_(index)                                                              \
    _Generic(index,                                                                            \
        jot_value: jot_take_values,                                                            \
        jot_array *: jot_take_array_,                                                          \
        const jot_array *: jot_take_array_,                                                    \
        float: jot_take_number_,                                                               \
        double: jot_take_number_,                                                              \
        default: jot_take_axis)
#endif

// name(x, axes...) and name(x, sizes...): t is the text of the arguments.
#define JOT_AXES_OP_(name, t, ...)                                                             \
    JOT_OPL_("jot_" #name, t, jot_##name##_axes, JOT_INTS_, __VA_ARGS__)
#define JOT_SIZES_OP_(name, t, ...)                                                            \
    JOT_OPL_("jot_" #name, t, jot_##name##_dims, JOT_DIMS_, __VA_ARGS__)

// clang-format off
// Arithmetic, element by element
#define jot_add(x, y) JOT_OP2_(jot_add, #x ", " #y, x, y)
#define jot_sub(x, y) JOT_OP2_(jot_sub, #x ", " #y, x, y)
#define jot_mul(x, y) JOT_OP2_(jot_mul, #x ", " #y, x, y)
#define jot_div(x, y) JOT_OP2_(jot_div, #x ", " #y, x, y)
#define jot_floor_divide(x, y) JOT_OP2_(jot_floor_divide, #x ", " #y, x, y)
#define jot_mod(x, y) JOT_OP2_(jot_mod, #x ", " #y, x, y)
#define jot_remainder(x, y) JOT_OP2_(jot_remainder, #x ", " #y, x, y)
#define jot_rem(x, y) JOT_OP2_(jot_rem, #x ", " #y, x, y)
#define jot_power(x, y) JOT_OP2_(jot_power, #x ", " #y, x, y)
#define jot_pow(x, y) JOT_OP2_(jot_pow, #x ", " #y, x, y)
#define jot_integer_pow(x, n)                                                                  \
    JOT_OP_("jot_integer_pow(" #x ", " #n ")", jot_integer_pow(JOT_VALUE_("jot_integer_pow", x), n))
#define jot_neg(x) JOT_OP1_(jot_neg, #x, x)
#define jot_abs(x) JOT_OP1_(jot_abs, #x, x)
#define jot_sign(x) JOT_OP1_(jot_sign, #x, x)
#define jot_square(x) JOT_OP1_(jot_square, #x, x)
#define jot_reciprocal(x) JOT_OP1_(jot_reciprocal, #x, x)
#define jot_fma(x, y, z) JOT_OP3_(jot_fma, #x ", " #y ", " #z, x, y, z)
#define jot_maximum(x, y) JOT_OP2_(jot_maximum, #x ", " #y, x, y)
#define jot_minimum(x, y) JOT_OP2_(jot_minimum, #x ", " #y, x, y)
#define jot_clip(x, y, z) JOT_OP3_(jot_clip, #x ", " #y ", " #z, x, y, z)
#define jot_clamp(x, y, z) JOT_OP3_(jot_clamp, #x ", " #y ", " #z, x, y, z)
#define jot_floor(x) JOT_OP1_(jot_floor, #x, x)
#define jot_ceil(x) JOT_OP1_(jot_ceil, #x, x)
#define jot_round(x) JOT_OP1_(jot_round, #x, x)
#define jot_round_away(x) JOT_OP1_(jot_round_away, #x, x)
#define jot_nextafter(x, y) JOT_OP2_(jot_nextafter, #x ", " #y, x, y)
#define jot_reduce_precision(x, e, m)                                                          \
    JOT_OP_("jot_reduce_precision(" #x ", " #e ", " #m ")",                                    \
            jot_reduce_precision(JOT_VALUE_("jot_reduce_precision", x), e, m))
// Elementary functions
#define jot_exp(x) JOT_OP1_(jot_exp, #x, x)
#define jot_exp2(x) JOT_OP1_(jot_exp2, #x, x)
#define jot_expm1(x) JOT_OP1_(jot_expm1, #x, x)
#define jot_log(x) JOT_OP1_(jot_log, #x, x)
#define jot_log1p(x) JOT_OP1_(jot_log1p, #x, x)
#define jot_log2(x) JOT_OP1_(jot_log2, #x, x)
#define jot_log10(x) JOT_OP1_(jot_log10, #x, x)
#define jot_sqrt(x) JOT_OP1_(jot_sqrt, #x, x)
#define jot_rsqrt(x) JOT_OP1_(jot_rsqrt, #x, x)
#define jot_cbrt(x) JOT_OP1_(jot_cbrt, #x, x)
#define jot_sinc(x) JOT_OP1_(jot_sinc, #x, x)
#define jot_sin(x) JOT_OP1_(jot_sin, #x, x)
#define jot_cos(x) JOT_OP1_(jot_cos, #x, x)
#define jot_tan(x) JOT_OP1_(jot_tan, #x, x)
#define jot_cospi(x) JOT_OP1_(jot_cospi, #x, x)
#define jot_asin(x) JOT_OP1_(jot_asin, #x, x)
#define jot_acos(x) JOT_OP1_(jot_acos, #x, x)
#define jot_atan(x) JOT_OP1_(jot_atan, #x, x)
#define jot_sinh(x) JOT_OP1_(jot_sinh, #x, x)
#define jot_cosh(x) JOT_OP1_(jot_cosh, #x, x)
#define jot_tanh(x) JOT_OP1_(jot_tanh, #x, x)
#define jot_asinh(x) JOT_OP1_(jot_asinh, #x, x)
#define jot_acosh(x) JOT_OP1_(jot_acosh, #x, x)
#define jot_atanh(x) JOT_OP1_(jot_atanh, #x, x)
#define jot_atan2(x, y) JOT_OP2_(jot_atan2, #x ", " #y, x, y)
#define jot_hypot(x, y) JOT_OP2_(jot_hypot, #x ", " #y, x, y)
#define jot_erf_inv(x) JOT_OP1_(jot_erf_inv, #x, x)
#define jot_logaddexp(x, y) JOT_OP2_(jot_logaddexp, #x ", " #y, x, y)
// Functions of neural networks
#define jot_logistic(x) JOT_OP1_(jot_logistic, #x, x)
#define jot_sigmoid(x) JOT_OP1_(jot_sigmoid, #x, x)
#define jot_relu(x) JOT_OP1_(jot_relu, #x, x)
#define jot_gelu(x) JOT_OP1_(jot_gelu, #x, x)
#define jot_silu(x) JOT_OP1_(jot_silu, #x, x)
#define jot_softplus(x) JOT_OP1_(jot_softplus, #x, x)
#define jot_softmax(x, axis)                                                                   \
    JOT_OP_("jot_softmax(" #x ", " #axis ")", jot_softmax(JOT_VALUE_("jot_softmax", x), axis))
#define jot_log_softmax(x, axis)                                                               \
    JOT_OP_("jot_log_softmax(" #x ", " #axis ")", jot_log_softmax(JOT_VALUE_("jot_log_softmax", x), axis))
// Comparison and logic
#define jot_equal(x, y) JOT_OP2_(jot_equal, #x ", " #y, x, y)
#define jot_not_equal(x, y) JOT_OP2_(jot_not_equal, #x ", " #y, x, y)
#define jot_less(x, y) JOT_OP2_(jot_less, #x ", " #y, x, y)
#define jot_less_equal(x, y) JOT_OP2_(jot_less_equal, #x ", " #y, x, y)
#define jot_greater(x, y) JOT_OP2_(jot_greater, #x ", " #y, x, y)
#define jot_greater_equal(x, y) JOT_OP2_(jot_greater_equal, #x ", " #y, x, y)
#define jot_logical_and(x, y) JOT_OP2_(jot_logical_and, #x ", " #y, x, y)
#define jot_logical_or(x, y) JOT_OP2_(jot_logical_or, #x ", " #y, x, y)
#define jot_logical_xor(x, y) JOT_OP2_(jot_logical_xor, #x ", " #y, x, y)
#define jot_logical_not(x) JOT_OP1_(jot_logical_not, #x, x)
#define jot_is_nan(x) JOT_OP1_(jot_is_nan, #x, x)
#define jot_is_inf(x) JOT_OP1_(jot_is_inf, #x, x)
#define jot_is_finite(x) JOT_OP1_(jot_is_finite, #x, x)
#define jot_where(x, y, z) JOT_OP3_(jot_where, #x ", " #y ", " #z, x, y, z)
// Bits
#define jot_bitwise_and(x, y) JOT_OP2_(jot_bitwise_and, #x ", " #y, x, y)
#define jot_bitwise_or(x, y) JOT_OP2_(jot_bitwise_or, #x ", " #y, x, y)
#define jot_bitwise_xor(x, y) JOT_OP2_(jot_bitwise_xor, #x ", " #y, x, y)
#define jot_bitwise_not(x) JOT_OP1_(jot_bitwise_not, #x, x)
#define jot_left_shift(x, y) JOT_OP2_(jot_left_shift, #x ", " #y, x, y)
#define jot_right_shift(x, y) JOT_OP2_(jot_right_shift, #x ", " #y, x, y)
#define jot_right_shift_logical(x, y) JOT_OP2_(jot_right_shift_logical, #x ", " #y, x, y)
#define jot_right_shift_arithmetic(x, y) JOT_OP2_(jot_right_shift_arithmetic, #x ", " #y, x, y)
#define jot_popcount(x) JOT_OP1_(jot_popcount, #x, x)
#define jot_clz(x) JOT_OP1_(jot_clz, #x, x)
#define jot_bitcast(x, dtype)                                                                  \
    JOT_OP_("jot_bitcast(" #x ", " #dtype ")", jot_bitcast(JOT_VALUE_("jot_bitcast", x), dtype))
// Types and complex numbers
#define jot_convert(x, dtype)                                                                  \
    JOT_OP_("jot_convert(" #x ", " #dtype ")", jot_convert(JOT_VALUE_("jot_convert", x), dtype))
#define jot_astype(x, dtype)                                                                   \
    JOT_OP_("jot_astype(" #x ", " #dtype ")", jot_astype(JOT_VALUE_("jot_astype", x), dtype))
#define jot_complex(x, y) JOT_OP2_(jot_complex, #x ", " #y, x, y)
#define jot_real(x) JOT_OP1_(jot_real, #x, x)
#define jot_imag(x) JOT_OP1_(jot_imag, #x, x)
#define jot_conj(x) JOT_OP1_(jot_conj, #x, x)
#define jot_angle(x) JOT_OP1_(jot_angle, #x, x)
#define jot_stop_gradient(x) JOT_OP1_(jot_stop_gradient, #x, x)
// Reductions
#define jot_sum(...) JOT_AXES_OP_(sum, #__VA_ARGS__, __VA_ARGS__)
#define jot_prod(...) JOT_AXES_OP_(prod, #__VA_ARGS__, __VA_ARGS__)
#define jot_mean(...) JOT_AXES_OP_(mean, #__VA_ARGS__, __VA_ARGS__)
#define jot_var(...) JOT_AXES_OP_(var, #__VA_ARGS__, __VA_ARGS__)
#define jot_std(...) JOT_AXES_OP_(std, #__VA_ARGS__, __VA_ARGS__)
#define jot_max(...) JOT_AXES_OP_(max, #__VA_ARGS__, __VA_ARGS__)
#define jot_min(...) JOT_AXES_OP_(min, #__VA_ARGS__, __VA_ARGS__)
#define jot_any(...) JOT_AXES_OP_(any, #__VA_ARGS__, __VA_ARGS__)
#define jot_all(...) JOT_AXES_OP_(all, #__VA_ARGS__, __VA_ARGS__)
#define jot_argmax(...) JOT_AXES_OP_(argmax, #__VA_ARGS__, __VA_ARGS__)
#define jot_argmin(...) JOT_AXES_OP_(argmin, #__VA_ARGS__, __VA_ARGS__)
#define jot_logsumexp(...) JOT_AXES_OP_(logsumexp, #__VA_ARGS__, __VA_ARGS__)
#define jot_norm(...) JOT_AXES_OP_(norm, #__VA_ARGS__, __VA_ARGS__)
#define jot_cumsum(...) JOT_AXES_OP_(cumsum, #__VA_ARGS__, __VA_ARGS__)
#define jot_cumprod(...) JOT_AXES_OP_(cumprod, #__VA_ARGS__, __VA_ARGS__)
#define jot_cummax(...) JOT_AXES_OP_(cummax, #__VA_ARGS__, __VA_ARGS__)
#define jot_cummin(...) JOT_AXES_OP_(cummin, #__VA_ARGS__, __VA_ARGS__)
#define jot_cumor(...) JOT_AXES_OP_(cumor, #__VA_ARGS__, __VA_ARGS__)
#define jot_cumlogsumexp(...) JOT_AXES_OP_(cumlogsumexp, #__VA_ARGS__, __VA_ARGS__)
// Shape
#define jot_reshape(...) JOT_SIZES_OP_(reshape, #__VA_ARGS__, __VA_ARGS__)
#define jot_broadcast_to(...) JOT_SIZES_OP_(broadcast_to, #__VA_ARGS__, __VA_ARGS__)
#define jot_transpose(...) JOT_AXES_OP_(transpose, #__VA_ARGS__, __VA_ARGS__)
#define jot_expand_dims(...) JOT_AXES_OP_(expand_dims, #__VA_ARGS__, __VA_ARGS__)
#define jot_squeeze(...) JOT_AXES_OP_(squeeze, #__VA_ARGS__, __VA_ARGS__)
#define jot_flip(...) JOT_AXES_OP_(flip, #__VA_ARGS__, __VA_ARGS__)
#define jot_swap_axes(x, a, b)                                                                 \
    JOT_OP_("jot_swap_axes(" #x ", " #a ", " #b ")", jot_swap_axes(JOT_VALUE_("jot_swap_axes", x), a, b))
#define jot_move_axis(x, from, to)                                                             \
    JOT_OP_("jot_move_axis(" #x ", " #from ", " #to ")", jot_move_axis(JOT_VALUE_("jot_move_axis", x), from, to))
#define jot_tril(x, k)                                                                         \
    JOT_OP_("jot_tril(" #x ", " #k ")", jot_tril(JOT_VALUE_("jot_tril", x), k))
#define jot_triu(x, k)                                                                         \
    JOT_OP_("jot_triu(" #x ", " #k ")", jot_triu(JOT_VALUE_("jot_triu", x), k))
#define jot_roll(x, shift, axis)                                                               \
    JOT_OP_("jot_roll(" #x ", " #shift ", " #axis ")", jot_roll(JOT_VALUE_("jot_roll", x), shift, axis))
#define jot_repeat(x, count, axis)                                                             \
    JOT_OP_("jot_repeat(" #x ", " #count ", " #axis ")", jot_repeat(JOT_VALUE_("jot_repeat", x), count, axis))
#define jot_tile(...) JOT_SIZES_OP_(tile, #__VA_ARGS__, __VA_ARGS__)
#define jot_slice(...)                                                                         \
    (JOT_TAKES_("jot_slice takes (x, axis, start, stop) or (x, axis, start, stop, step)", 4, 5, \
                __VA_ARGS__),                                                                  \
     JOT_SLICE_(#__VA_ARGS__, __VA_ARGS__, 1, 0, 0, 0, 0))
#define JOT_SLICE_(t, x, axis, start, stop, step, ...)                                         \
    JOT_OP_("jot_slice(" t ")",                                                                \
            jot_slice_axis(JOT_VALUE_("jot_slice", x), axis, start, stop, step))
#define jot_take(...)                                                                          \
    (JOT_TAKES_("jot_take takes (x, index) or (x, index, axis)", 2, 3, __VA_ARGS__),           \
     JOT_TAKE_(#__VA_ARGS__, __VA_ARGS__, 0, 0, 0))
#define JOT_TAKE_(t, x, index, axis, ...)                                                      \
    JOT_OP_("jot_take(" t ")", JOT_TAKE_FUNCTION_(index)(JOT_VALUE_("jot_take", x), index, axis))
#define jot_pad(x, value, axis, low, high)                                                     \
    JOT_OP_("jot_pad(" #x ", " #value ", " #axis ", " #low ", " #high ")",                     \
            jot_pad_axis(JOT_VALUE_("jot_pad", x), JOT_VALUE_("jot_pad", value), axis, low, high))
#define jot_concatenate(axis, ...)                                                             \
    JOT_OP_("jot_concatenate(" #axis ", " #__VA_ARGS__ ")",                                    \
            jot_concatenate_list(axis, JOT_VALUES_("jot_concatenate", __VA_ARGS__)))
#define jot_stack(axis, ...)                                                                   \
    JOT_OP_("jot_stack(" #axis ", " #__VA_ARGS__ ")",                                          \
            jot_stack_list(axis, JOT_VALUES_("jot_stack", __VA_ARGS__)))
#define jot_split(x, axis, tree)                                                               \
    (jot_split_into(JOT_VALUE_("jot_split", x), axis, JOT_TREE_("jot_split", tree)),                                         \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_split(" #x ", " #axis ", " #tree ")"))
// Making values
#define jot_full(dtype, ...)                                                                   \
    JOT_OP_("jot_full(" #dtype ", " #__VA_ARGS__ ")",                                          \
            jot_full_dims(dtype, JOT_VALUE_("jot_full", JOT_FIRST_(__VA_ARGS__, 0)),                          \
                          JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_zeros(...)                                                                         \
    JOT_OP_("jot_zeros(" #__VA_ARGS__ ")",                                                     \
            jot_zeros_dims(JOT_FIRST_(__VA_ARGS__, 0),                                         \
                           JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_ones(...)                                                                          \
    JOT_OP_("jot_ones(" #__VA_ARGS__ ")",                                                      \
            jot_ones_dims(JOT_FIRST_(__VA_ARGS__, 0),                                          \
                           JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_zeros_like(x) JOT_OP1_(jot_zeros_like, #x, x)
#define jot_ones_like(x) JOT_OP1_(jot_ones_like, #x, x)
#define jot_full_like(x, y) JOT_OP2_(jot_full_like, #x ", " #y, x, y)
#define jot_arange(dtype, n)                                                                   \
    JOT_OP_("jot_arange(" #dtype ", " #n ")", jot_arange(dtype, n))
#define jot_linspace(dtype, start, stop, n)                                                    \
    JOT_OP_("jot_linspace(" #dtype ", " #start ", " #stop ", " #n ")",                         \
            jot_linspace(dtype, start, stop, n))
#define jot_eye(dtype, n, m)                                                                   \
    JOT_OP_("jot_eye(" #dtype ", " #n ", " #m ")", jot_eye(dtype, n, m))
// clang-format on

#endif // JOT_PLAIN

#endif
