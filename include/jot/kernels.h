// SPDX-License-Identifier: Apache-2.0
// Kernels of the user's own: expressions of C over elements, and kernels in CUDA C.
//
//     jot_value y = jot_elementwise("a, x", "t = exp(-a * x); x > 0 ? t : 1 - t", alpha, data);
#ifndef JOT_KERNELS_H
#define JOT_KERNELS_H

#include "jot/ops.h"

JOT_BEGIN_C

// ---- expressions ----

// What a C expression gives for each element of the values, which broadcast.  The expression becomes
// operations of the graph: it fuses with what stands beside it, has derivatives and runs on every
// device.
//
// names: those of the values in the expression, with commas between them, as many as there are
// values.  expression: C's operators but assignment ones, ++, --, & and * of addresses, [] . ->;
// before it definitions of names, each `name = expression;`.  An error in either is the value, with
// the column.
//
//     numbers       12, 0x7f, 1.5, 1e-3, with f, u or l behind them; like every C number they take
//                   the type of what they meet; true, false, M_PI, M_E, INFINITY, NAN
//     + - * /       as jot_add and so on: integers are divided as C divides them
//     %             C's remainder, jot_rem
//     < == && ! ?:  on elements; both sides of ?: are computed, && and || do not stop early
//     & | ^ ~ << >> of integers and bools
//     (float)x      jot_convert; also bool, char, short, int, long, unsigned, double, int8_t ...
//                   uint64_t, as 64-bit Linux has them
//     functions     those of math.h that jot has, also with an f behind them: sin cos tan asin acos
//                   atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p
//                   sqrt cbrt pow hypot fabs floor ceil rint nearbyint round trunc fmod fma erf erfc
//                   lgamma isnan isinf isfinite nextafter; abs, and jot's min max (NaN stays) rsqrt
//                   sign sigmoid relu gelu silu softplus logistic square where clamp erf_inv
JOT_API jot_value jot_elementwise_values(const char *names, const char *expression,
                                         const char *where, size_t n, const jot_value *x);

JOT_END_C

#if !defined(JOT_PLAIN)

// jot_elementwise("x, y", "x * tanh(y)", x, y), of up to 15 values
#define jot_elementwise(names, ...)                                                            \
    jot_elementwise_values((names), JOT_FIRST_(__VA_ARGS__, 0), JOT_HERE ": jot_elementwise",  \
                           JOT_VALUES_(JOT_REST_(__VA_ARGS__, jot_no_value_())))

#endif // JOT_PLAIN

#endif
