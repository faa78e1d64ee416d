// SPDX-License-Identifier: Apache-2.0
// Special functions, element by element, with the names and conventions of jax.scipy.special.
//
// Operands are brought to one floating type and broadcast, as in ops.h; integers are converted.  Half types are
// computed in f32.  All have derivatives of any order in their floating operands unless a comment says otherwise.
#ifndef JOT_SPECIAL_H
#define JOT_SPECIAL_H

#include "jot/trace.h"

JOT_BEGIN_C

// ---- Error functions ----

// erf(x) = 2/sqrt(pi) int_0^x e^(-t^2) dt, and 1 - erf(x) without cancellation.
JOT_API jot_value jot_erf(jot_value x);
JOT_API jot_value jot_erfc(jot_value x);

// ---- Gamma functions ----

// log |Gamma(x)|; infinite at 0, -1, -2, ...  4 ULP but near its zeros below 0.
JOT_API jot_value jot_lgamma(jot_value x);
JOT_API jot_value jot_gammaln(jot_value x);

// Gamma(x); NaN at -1, -2, ..., infinite with the sign of x at 0.
JOT_API jot_value jot_gamma(jot_value x);

// digamma(x) = d log(Gamma(x)) / dx; NaN at 0, -1, -2, ...
JOT_API jot_value jot_digamma(jot_value x);

// Hurwitz' zeta function, the sum of (q + k)^-s over k = 0, 1, ...: of s > 1 and q > 0, and of whole s for -10 < q < 0,
// -6 in f32; infinite at s = 1 and where q + k is 0, else NaN.
JOT_API jot_value jot_zeta(jot_value s, jot_value q);

// The regularised incomplete gamma function P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt and its complement
// Q = 1 - P, for a > 0 and x >= 0.  Power series, continued fraction, and Temme's uniform expansion for a > 200.
JOT_API jot_value jot_gammainc(jot_value a, jot_value x);
JOT_API jot_value jot_gammaincc(jot_value a, jot_value x);

// dP/da at (a, x).
JOT_API jot_value jot_gammainc_grad_a(jot_value a, jot_value x);

// The derivative in a of a random number x that is distributed by Gamma(a): dx/da at a constant P(a, x), by implicit
// differentiation (Figurnov, Mohamed, Mnih, Implicit reparameterization gradients, 2018).
JOT_API jot_value jot_random_gamma_grad(jot_value a, jot_value x);

JOT_END_C

#if !defined(JOT_PLAIN)
// clang-format off
#define jot_erf(x) JOT_OP1_(jot_erf, #x, x)
#define jot_erfc(x) JOT_OP1_(jot_erfc, #x, x)
#define jot_lgamma(x) JOT_OP1_(jot_lgamma, #x, x)
#define jot_gammaln(x) JOT_OP1_(jot_gammaln, #x, x)
#define jot_gamma(x) JOT_OP1_(jot_gamma, #x, x)
#define jot_digamma(x) JOT_OP1_(jot_digamma, #x, x)
#define jot_zeta(s, q) JOT_OP2_(jot_zeta, #s ", " #q, s, q)
#define jot_gammainc(a, x) JOT_OP2_(jot_gammainc, #a ", " #x, a, x)
#define jot_gammaincc(a, x) JOT_OP2_(jot_gammaincc, #a ", " #x, a, x)
#define jot_gammainc_grad_a(a, x) JOT_OP2_(jot_gammainc_grad_a, #a ", " #x, a, x)
#define jot_random_gamma_grad(a, x) JOT_OP2_(jot_random_gamma_grad, #a ", " #x, a, x)
// clang-format on
#endif // JOT_PLAIN

#endif
