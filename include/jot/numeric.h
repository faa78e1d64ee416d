// SPDX-License-Identifier: Apache-2.0
// The numerical part of NumPy beyond arithmetic: parts of floats, comparison within tolerances,
// numbers among NaNs, statistics, differences, polynomials, windows of signals.
//
// Names and meanings are those of jax.numpy.
#ifndef JOT_NUMERIC_H
#define JOT_NUMERIC_H

#include "jot/ops.h"

JOT_BEGIN_C

// ---- Element by element ----

// x without its fraction.  Integers stay as they are.  Derivative 0.
JOT_API jot_value jot_trunc(jot_value x);

// x rounded to so many decimals, ties to even of 10^decimals x; negative ones round to tens,
// hundreds, ... Integers stay as they are, and have no negative decimals.
JOT_API jot_value jot_round_to(jot_value x, int decimals);

// Whether the sign is set, that of -0 and of NaN as well: bool.  Not complex.
JOT_API jot_value jot_signbit(jot_value x);

// |x| with the sign of y.  Floating; the derivative in x is 1 or -1.
JOT_API jot_value jot_copysign(jot_value x, jot_value y);

// x = mantissa 2^exponent with 0.5 <= |mantissa| < 1, into out[0] and out[1], an i32.  0,
// infinities and NaN are their own mantissas, with exponent 0.  Floating: f16 and bf16 give
// f32.
JOT_API void jot_frexp_into(jot_value x, size_t n, jot_value *out);

// x 2^exponent, rounded once.  x is floating, the exponent of an integer type.
JOT_API jot_value jot_ldexp(jot_value x, jot_value exponent);

// The larger, the smaller; the other one if one is NaN.
JOT_API jot_value jot_fmax(jot_value x, jot_value y);
JOT_API jot_value jot_fmin(jot_value x, jot_value y);

// 0 for x < 0, 1 for x > 0, y at 0.
JOT_API jot_value jot_heaviside(jot_value x, jot_value y);

// log2(2^x + 2^y), without overflow.
JOT_API jot_value jot_logaddexp2(jot_value x, jot_value y);

// The greatest common divisor, the least common multiple of integers, at least 0; what a type does not
// hold wraps, as -(its lowest number) does.
JOT_API jot_value jot_gcd(jot_value x, jot_value y);
JOT_API jot_value jot_lcm(jot_value x, jot_value y);

// x with NaN replaced by the number, and infinities by the largest and the lowest finite
// numbers of the type; of complex numbers in both parts.
JOT_API jot_value jot_nan_to_num(jot_value x, double nan);

// ---- Comparison ----

// |x - y| <= absolute + relative |y|; infinities are close to themselves, NaN to nothing.
// jax.numpy has 1e-5 for relative and 1e-8 for absolute.
JOT_API jot_value jot_isclose(jot_value x, jot_value y, double relative, double absolute);

// Whether shapes and all elements are equal; the same of what x and y broadcast to, where they
// do.
JOT_API jot_value jot_array_equal(jot_value x, jot_value y);
JOT_API jot_value jot_array_equiv(jot_value x, jot_value y);

// ---- Among NaNs ----

// The reductions and running folds of ops.h over the elements that are not NaN.  Where all are,
// sums are 0, products 1, arguments -1, and the others NaN.
JOT_API jot_value jot_nansum_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanprod_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanmean_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanvar_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanstd_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanmax_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanmin_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanargmax_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanargmin_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nancumsum_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nancumprod_axes(jot_value x, const int *axes);

// ---- Statistics ----

// max - min over the listed axes, or all.
JOT_API jot_value jot_ptp_axes(jot_value x, const int *axes);

// sum(w x) / sum(w) along the axis; w has the shape of x, or is a vector along the axis.
JOT_API jot_value jot_average(jot_value x, jot_value w, int axis);

// The covariances of the rows of x, each a variable whose columns are observations, with the
// divisor count - 1; of a vector its variance.
JOT_API jot_value jot_cov(jot_value x);

// cov_ij / sqrt(cov_ii cov_jj), within -1 and 1.
JOT_API jot_value jot_corrcoef(jot_value x);

// ---- Differences and integrals ----

// x[1:] - x[:-1] along the axis, n times; of bools whether they differ.
JOT_API jot_value jot_diff(jot_value x, int64_t n, int axis);

// The derivative along an axis by central differences, (x[i + 1] - x[i - 1]) / (2 spacing), at
// the ends by one-sided ones: what jax.numpy calls gradient.  At least 2 elements.
JOT_API jot_value jot_finite_difference(jot_value x, jot_value spacing, int axis);

// The integral along an axis by trapezoids: points is the distance of elements, or their
// points, a vector along the axis or of the shape of y.
JOT_API jot_value jot_trapezoid(jot_value y, jot_value points, int axis);

// x with multiples of 2 pi added so that neighbours along the axis differ by pi at most.
// Floating.
JOT_API jot_value jot_unwrap(jot_value x, int axis);

// ---- Polynomials ----

// Vectors of coefficients, that of the highest power first.

// p at every element of x, by Horner's rule.
JOT_API jot_value jot_polyval(jot_value p, jot_value x);

// Sum, difference, product.
JOT_API jot_value jot_polyadd(jot_value p, jot_value q);
JOT_API jot_value jot_polysub(jot_value p, jot_value q);
JOT_API jot_value jot_polymul(jot_value p, jot_value q);

// The quotient and the remainder, p = q out[0] + out[1], by long division.  The first
// coefficient of q is not 0.  The remainder has as many coefficients as p, of which the first
// are 0.
JOT_API void jot_polydiv_into(jot_value p, jot_value q, size_t n, jot_value *out);

// The n-th derivative; the n-th antiderivative that is 0 at 0 with all derivatives below.
JOT_API jot_value jot_polyder(jot_value p, int n);
JOT_API jot_value jot_polyint(jot_value p, int n);

// The polynomial with these zeros and the first coefficient 1.
JOT_API jot_value jot_poly(jot_value zeros);

// The n - 1 zeros of the polynomial with n coefficients, complex, in no order: the eigenvalues of its
// companion matrix.  What is missing because first coefficients are 0 is NaN, at the end.
JOT_API jot_value jot_roots(jot_value p);

// ---- Windows ----

// Symmetric windows of n points, i = 0, ..., n - 1 and u = 2 pi i / (n - 1): triangle,
// 0.5 - 0.5 cos u, 0.54 - 0.46 cos u, 0.42 - 0.5 cos u + 0.08 cos 2u.  One point is 1.
JOT_API jot_value jot_bartlett(jot_dtype dtype, int64_t n);
JOT_API jot_value jot_hanning(jot_dtype dtype, int64_t n);
JOT_API jot_value jot_hamming(jot_dtype dtype, int64_t n);
JOT_API jot_value jot_blackman(jot_dtype dtype, int64_t n);
// I_0(beta sqrt(1 - (2i/(n - 1) - 1)^2)) / I_0(beta).
JOT_API jot_value jot_kaiser(jot_dtype dtype, int64_t n, jot_value beta);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#define jot_trunc(x) JOT_OP1_(jot_trunc, #x, x)
#define jot_round_to(x, decimals)                                                              \
    JOT_OP_("jot_round_to(" #x ", " #decimals ")", jot_round_to(JOT_VALUE_("jot_round_to", x), decimals))
#define jot_signbit(x) JOT_OP1_(jot_signbit, #x, x)
#define jot_copysign(x, y) JOT_OP2_(jot_copysign, #x ", " #y, x, y)
// Into an array of two values:  jot_value p[2]; jot_frexp(x, p);
#define jot_frexp(x, tree)                                                                     \
    (jot_frexp_into(JOT_VALUE_("jot_frexp", x), JOT_TREE_("jot_frexp", tree)),                                                 \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_frexp(" #x ", " #tree ")"))
#define jot_ldexp(x, y) JOT_OP2_(jot_ldexp, #x ", " #y, x, y)
#define jot_fmax(x, y) JOT_OP2_(jot_fmax, #x ", " #y, x, y)
#define jot_fmin(x, y) JOT_OP2_(jot_fmin, #x ", " #y, x, y)
#define jot_heaviside(x, y) JOT_OP2_(jot_heaviside, #x ", " #y, x, y)
#define jot_logaddexp2(x, y) JOT_OP2_(jot_logaddexp2, #x ", " #y, x, y)
#define jot_gcd(x, y) JOT_OP2_(jot_gcd, #x ", " #y, x, y)
#define jot_lcm(x, y) JOT_OP2_(jot_lcm, #x ", " #y, x, y)
#define jot_nan_to_num(x, nan)                                                                 \
    JOT_OP_("jot_nan_to_num(" #x ", " #nan ")", jot_nan_to_num(JOT_VALUE_("jot_nan_to_num", x), nan))
#define jot_isclose(x, y, relative, absolute)                                                  \
    JOT_OP_("jot_isclose(" #x ", " #y ", " #relative ", " #absolute ")",                       \
            jot_isclose(JOT_VALUE_("jot_isclose", x), JOT_VALUE_("jot_isclose", y), relative, absolute))
#define jot_array_equal(x, y) JOT_OP2_(jot_array_equal, #x ", " #y, x, y)
#define jot_array_equiv(x, y) JOT_OP2_(jot_array_equiv, #x ", " #y, x, y)
#define jot_nansum(...) JOT_AXES_OP_(nansum, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanprod(...) JOT_AXES_OP_(nanprod, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanmean(...) JOT_AXES_OP_(nanmean, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanvar(...) JOT_AXES_OP_(nanvar, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanstd(...) JOT_AXES_OP_(nanstd, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanmax(...) JOT_AXES_OP_(nanmax, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanmin(...) JOT_AXES_OP_(nanmin, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanargmax(...) JOT_AXES_OP_(nanargmax, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanargmin(...) JOT_AXES_OP_(nanargmin, #__VA_ARGS__, __VA_ARGS__)
#define jot_nancumsum(...) JOT_AXES_OP_(nancumsum, #__VA_ARGS__, __VA_ARGS__)
#define jot_nancumprod(...) JOT_AXES_OP_(nancumprod, #__VA_ARGS__, __VA_ARGS__)
#define jot_ptp(...) JOT_AXES_OP_(ptp, #__VA_ARGS__, __VA_ARGS__)
#define jot_average(x, w, axis)                                                                \
    JOT_OP_("jot_average(" #x ", " #w ", " #axis ")", jot_average(JOT_VALUE_("jot_average", x), JOT_VALUE_("jot_average", w), axis))
#define jot_cov(x) JOT_OP1_(jot_cov, #x, x)
#define jot_corrcoef(x) JOT_OP1_(jot_corrcoef, #x, x)
#define jot_diff(x, n, axis)                                                                   \
    JOT_OP_("jot_diff(" #x ", " #n ", " #axis ")", jot_diff(JOT_VALUE_("jot_diff", x), n, axis))
#define jot_finite_difference(x, spacing, axis)                                                \
    JOT_OP_("jot_finite_difference(" #x ", " #spacing ", " #axis ")",                          \
            jot_finite_difference(JOT_VALUE_("jot_finite_difference", x), JOT_VALUE_("jot_finite_difference", spacing), axis))
#define jot_trapezoid(y, points, axis)                                                         \
    JOT_OP_("jot_trapezoid(" #y ", " #points ", " #axis ")",                                   \
            jot_trapezoid(JOT_VALUE_("jot_trapezoid", y), JOT_VALUE_("jot_trapezoid", points), axis))
#define jot_unwrap(x, axis)                                                                    \
    JOT_OP_("jot_unwrap(" #x ", " #axis ")", jot_unwrap(JOT_VALUE_("jot_unwrap", x), axis))
#define jot_polyval(p, x) JOT_OP2_(jot_polyval, #p ", " #x, p, x)
#define jot_polyadd(p, q) JOT_OP2_(jot_polyadd, #p ", " #q, p, q)
#define jot_polysub(p, q) JOT_OP2_(jot_polysub, #p ", " #q, p, q)
#define jot_polymul(p, q) JOT_OP2_(jot_polymul, #p ", " #q, p, q)
#define jot_polydiv(p, q, tree)                                                                \
    (jot_polydiv_into(JOT_VALUE_("jot_polydiv", p), JOT_VALUE_("jot_polydiv", q), JOT_TREE_("jot_polydiv", tree)),                                     \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_polydiv(" #p ", " #q ", " #tree ")"))
#define jot_polyder(p, n)                                                                      \
    JOT_OP_("jot_polyder(" #p ", " #n ")", jot_polyder(JOT_VALUE_("jot_polyder", p), n))
#define jot_polyint(p, n)                                                                      \
    JOT_OP_("jot_polyint(" #p ", " #n ")", jot_polyint(JOT_VALUE_("jot_polyint", p), n))
#define jot_poly(x) JOT_OP1_(jot_poly, #x, x)
#define jot_roots(p) JOT_OP1_(jot_roots, #p, p)
#define jot_bartlett(dtype, n)                                                                 \
    JOT_OP_("jot_bartlett(" #dtype ", " #n ")", jot_bartlett(dtype, n))
#define jot_hanning(dtype, n)                                                                  \
    JOT_OP_("jot_hanning(" #dtype ", " #n ")", jot_hanning(dtype, n))
#define jot_hamming(dtype, n)                                                                  \
    JOT_OP_("jot_hamming(" #dtype ", " #n ")", jot_hamming(dtype, n))
#define jot_blackman(dtype, n)                                                                 \
    JOT_OP_("jot_blackman(" #dtype ", " #n ")", jot_blackman(dtype, n))
#define jot_kaiser(dtype, n, beta)                                                             \
    JOT_OP_("jot_kaiser(" #dtype ", " #n ", " #beta ")", jot_kaiser(dtype, n, JOT_VALUE_("jot_kaiser", beta)))
// clang-format on

#endif // JOT_PLAIN

#endif
