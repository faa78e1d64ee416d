// SPDX-License-Identifier: Apache-2.0
// Special functions, element by element, with the names and conventions of jax.scipy.special.
//
// Operands are brought to one floating type and broadcast, as in ops.h; integers are converted.
// Half types are computed in f32.  All have derivatives of any order in their floating operands
// unless a comment says otherwise.
//
// Where a comment gives the error of a function in ULP, it is for a well conditioned value;
// else it is that times the condition, which is the sum over the operands of the relative
// change of the value over that of the operand.
#ifndef JOT_SPECIAL_H
#define JOT_SPECIAL_H

#include "jot/trace.h"

JOT_BEGIN_C

// ---- Error functions ----

// erf(x) = 2/sqrt(pi) int_0^x e^(-t^2) dt, and 1 - erf(x) without cancellation.
JOT_API jot_value jot_erf(jot_value x);
JOT_API jot_value jot_erfc(jot_value x);

// e^(x^2) erfc(x), which does not underflow, to 4 ULP, as is its derivative; and Dawson's integral
// e^(-x^2) int_0^x e^(t^2) dt.
JOT_API jot_value jot_erfcx(jot_value x);
JOT_API jot_value jot_dawsn(jot_value x);

// Faddeeva's function e^(-z^2) erfc(-i z), complex; within 4 units of its modulus above the real axis.
JOT_API jot_value jot_wofz(jot_value z);

// Owen's T, 1/(2 pi) int_0^a e^(-h^2 (1 + x^2)/2) / (1 + x^2) dx.
JOT_API jot_value jot_owens_t(jot_value h, jot_value a);

// Fresnel's integrals s = int_0^x sin(pi t^2/2) dt and c of the cosine.
typedef struct jot_fresnel_result {
    jot_value s, c;
} jot_fresnel_result;
JOT_API jot_fresnel_result jot_fresnel_at(jot_value x, const char *where);

// ---- Exponential integrals, the dilogarithm ----

// E_1(x) = int_x^inf e^-t/t dt for x >= 0, infinite at 0; E_n(x) = int_1^inf e^(-x t)/t^n dt for whole
// n >= 0 and x >= 0, without a derivative in n; Ei(x), the integral of e^t/t from -inf, as Cauchy's
// principal value, -infinite at 0.
JOT_API jot_value jot_exp1(jot_value x);
JOT_API jot_value jot_expn(jot_value n, jot_value x);
JOT_API jot_value jot_expi(jot_value x);

// si = int_0^x sin(t)/t dt, and ci = log|x| + gamma + int_0^x (cos(t) - 1)/t dt.
typedef struct jot_sici_result {
    jot_value si, ci;
} jot_sici_result;
JOT_API jot_sici_result jot_sici_at(jot_value x, const char *where);

// Spence's function, the dilogarithm of 1 - x: -int_1^x log(t)/(t - 1) dt for x >= 0.
JOT_API jot_value jot_spence(jot_value x);

// ---- Gamma functions ----

// log |Gamma(x)|; infinite at 0, -1, -2, ...  4 ULP but near its zeros below 0.
JOT_API jot_value jot_lgamma(jot_value x);
JOT_API jot_value jot_gammaln(jot_value x);

// Gamma(x); NaN at -1, -2, ..., infinite with the sign of x at 0.
JOT_API jot_value jot_gamma(jot_value x);

// digamma(x) = d log(Gamma(x)) / dx; NaN at 0, -1, -2, ...
JOT_API jot_value jot_digamma(jot_value x);

// Hurwitz' zeta function, the sum of (q + k)^-s over k = 0, 1, ...: of s > 1 and q > 0, and of
// whole s for -4 < q < 0, -3 in f32; infinite at s = 1 and where q + k is 0, 0 at infinite q,
// else NaN.
JOT_API jot_value jot_zeta(jot_value s, jot_value q);

// The regularised incomplete gamma function P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt and
// its complement Q = 1 - P, for a > 0 and x >= 0, to 4 ULP both, as is the derivative in x;
// that in a to 6.  Power series, Gautschi's series of Q for small a, continued fraction, and
// Temme's uniform expansion for large a, from 25, in f32 6.
JOT_API jot_value jot_gammainc(jot_value a, jot_value x);
JOT_API jot_value jot_gammaincc(jot_value a, jot_value x);

// dP/da at (a, x).
JOT_API jot_value jot_gammainc_grad_a(jot_value a, jot_value x);

// The derivative in a of a random number x that is distributed by Gamma(a): dx/da at a constant
// P(a, x), by implicit differentiation (Figurnov, Mohamed, Mnih, Implicit reparameterization
// gradients, 2018).
JOT_API jot_value jot_random_gamma_grad(jot_value a, jot_value x);

// 1 or -1, the sign of Gamma(x); NaN at -1, -2, ...
JOT_API jot_value jot_gammasgn(jot_value x);

// Gamma(n + 1), 0 below 0.
JOT_API jot_value jot_factorial(jot_value n);

// The n-th derivative of digamma for whole n >= 0: (-1)^(n+1) n! zeta(n + 1, x), to 4 ULP of
// x > 0, also where n! is not a number; for other n NaN.  The derivative in n is 0 for x < 0,
// and NaN at poles.
JOT_API jot_value jot_polygamma(jot_value n, jot_value x);

// Gamma(z + m) / Gamma(z), to 4 ULP where z and z + m are positive, as are its derivatives;
// else its size.
JOT_API jot_value jot_poch(jot_value z, jot_value m);

// log of the multivariate gamma function of dimension d: d (d - 1)/4 log(pi) + sum of
// lgamma(a - j/2), j < d.
JOT_API jot_value jot_multigammaln(jot_value a, int d);

// Gamma(a) Gamma(b) / Gamma(a + b), and the logarithm of its size; for positive a and b to 4
// ULP, as are their derivatives.
JOT_API jot_value jot_beta(jot_value a, jot_value b);
JOT_API jot_value jot_betaln(jot_value a, jot_value b);

// The regularised incomplete beta function 1/B(a, b) int_0^x t^(a-1) (1-t)^(b-1) dt for a,
// b > 0 and 0 <= x <= 1, to 4 ULP, as is its derivative in x; those in a and b to 6, and of
// some thousands near the mean to 16.  By its continued fraction (DiDonato and Morris,
// Algorithm 708) and power series, and by the first terms of Temme's expansion where a and b
// are beyond 10^10 (f32: 10^5).
JOT_API jot_value jot_betainc(jot_value a, jot_value b, jot_value x);

// The modified Bessel functions of the first kind, I_0 and I_1, infinite where their values are
// beyond the range; and times e^-|x|, which does not overflow; to 4 ULP, with derivatives to 5.
JOT_API jot_value jot_i0(jot_value x);
JOT_API jot_value jot_i1(jot_value x);
JOT_API jot_value jot_i0e(jot_value x);
JOT_API jot_value jot_i1e(jot_value x);

// The Bessel function of the first kind J_n(x) of a whole order, by recurrence from above: in time that
// grows with n and |x|, which are below 10^6, else NaN.  Without a derivative in n.  16 units of the
// largest of all J_k(x), no relative accuracy near its zeros.
JOT_API jot_value jot_bessel_jn(jot_value n, jot_value x);

// Kummer's function M(a, b, x) = 1 + a/b x + a (a+1)/(b (b+1)) x^2/2 + ..., summed in twice the
// digits, beyond |x| = 600 by its asymptotic series: to 4 units in the last place over the
// condition of the value, for |a| and |b| up to some 20 (100 where nothing cancels); derivatives
// up to second ones in all operands to 6 and 16.  Infinite at b = 0, -1, ... unless the series
// ends before.
JOT_API jot_value jot_hyp1f1(jot_value a, jot_value b, jot_value x);

// Gauss' hypergeometric function F(a, b; c; x) = 1 + a b/c x + ... for x <= 1, by Taylor series
// of its differential equation in twice the digits; infinite for x > 1 unless the series ends.
// To 4 units in the last place over the condition of the value, for |a|, |b| and |c| up to some
// 20; derivatives up to second ones in all operands to 6 and 16.
JOT_API jot_value jot_hyp2f1(jot_value a, jot_value b, jot_value c, jot_value x);

// The spherical harmonic Y_n^m(theta, phi) of whole n >= 0 and m, orthonormal, with theta from
// the pole and Condon and Shortley's sign; 0 for |m| > n.  Complex; takes a time that grows
// with n.  Without a second derivative, and without one in n and m.
JOT_API jot_value jot_sph_harm_y(jot_value n, jot_value m, jot_value theta, jot_value phi);

// n choose k, to 4 ULP, as are its derivatives; 0 for k < 0 and k > n.  Not always whole for
// whole n and k.
JOT_API jot_value jot_comb(jot_value n, jot_value k);

// The Bernoulli numbers B_0, ..., B_n, with B_1 = -1/2.
JOT_API jot_value jot_bernoulli(jot_dtype dtype, int64_t n);

// ---- Logarithms, entropies, the normal distribution ----

// x log(y) and x log(1 + y), 0 where x is 0 and y not NaN.
JOT_API jot_value jot_xlogy(jot_value x, jot_value y);
JOT_API jot_value jot_xlog1py(jot_value x, jot_value y);

// log(sum(b e^x)) over axes as in ops.h, without overflow; NaN where the sum is negative.  Elements
// with b = 0 do not count.  The signed form is of the size of the sum, with its sign, 0 for a sum of 0.
JOT_API jot_value jot_logsumexp_weights_axes(jot_value x, jot_value b, const int *axes);
typedef struct jot_signed_log {
    jot_value log, sign;
} jot_signed_log;
JOT_API jot_signed_log jot_logsumexp_signed_axes(jot_value x, jot_value b, const int *axes,
                                                 const char *where);

// -x log(x): 0 at 0, -infinity below.
JOT_API jot_value jot_entr(jot_value x);

// p log(p / q) for p, q > 0, 0 for p = 0 <= q, else infinite; and the same - p + q.
JOT_API jot_value jot_rel_entr(jot_value p, jot_value q);
JOT_API jot_value jot_kl_div(jot_value p, jot_value q);

// log(x / (1 - x)), and its inverse, jot_logistic.
JOT_API jot_value jot_logit(jot_value x);
JOT_API jot_value jot_expit(jot_value x);

// The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2, its logarithm,
// to 4 ULP, as is the derivative of that, and its inverse.
JOT_API jot_value jot_ndtr(jot_value x);
JOT_API jot_value jot_log_ndtr(jot_value x);
JOT_API jot_value jot_ndtri(jot_value p);

JOT_END_C

#if !defined(JOT_PLAIN)
// clang-format off
#define jot_erf(x) JOT_OP1_(jot_erf, #x, x)
#define jot_erfc(x) JOT_OP1_(jot_erfc, #x, x)
#define jot_erfcx(x) JOT_OP1_(jot_erfcx, #x, x)
#define jot_dawsn(x) JOT_OP1_(jot_dawsn, #x, x)
#define jot_wofz(z) JOT_OP1_(jot_wofz, #z, z)
#define jot_owens_t(h, a) JOT_OP2_(jot_owens_t, #h ", " #a, h, a)
#define jot_fresnel(x) jot_fresnel_at(JOT_VALUE_("jot_fresnel", x), JOT_HERE ": jot_fresnel(" #x ")")
#define jot_exp1(x) JOT_OP1_(jot_exp1, #x, x)
#define jot_expn(n, x) JOT_OP2_(jot_expn, #n ", " #x, n, x)
#define jot_expi(x) JOT_OP1_(jot_expi, #x, x)
#define jot_sici(x) jot_sici_at(JOT_VALUE_("jot_sici", x), JOT_HERE ": jot_sici(" #x ")")
#define jot_spence(x) JOT_OP1_(jot_spence, #x, x)
#define jot_bessel_jn(n, x) JOT_OP2_(jot_bessel_jn, #n ", " #x, n, x)
#define jot_hyp1f1(a, b, x) JOT_OP_("jot_hyp1f1(" #a ", " #b ", " #x ")", jot_hyp1f1(JOT_VALUE_("jot_hyp1f1", a), JOT_VALUE_("jot_hyp1f1", b), JOT_VALUE_("jot_hyp1f1", x)))
#define jot_hyp2f1(a, b, c, x)                                                                                \
    JOT_OP_("jot_hyp2f1(" #a ", " #b ", " #c ", " #x ")",                                                     \
            jot_hyp2f1(JOT_VALUE_("jot_hyp2f1", a), JOT_VALUE_("jot_hyp2f1", b), JOT_VALUE_("jot_hyp2f1", c), JOT_VALUE_("jot_hyp2f1", x)))
#define jot_sph_harm_y(n, m, theta, phi)                                                                      \
    JOT_OP_("jot_sph_harm_y(" #n ", " #m ", " #theta ", " #phi ")",                                           \
            jot_sph_harm_y(JOT_VALUE_("jot_sph_harm_y", n), JOT_VALUE_("jot_sph_harm_y", m), JOT_VALUE_("jot_sph_harm_y", theta), JOT_VALUE_("jot_sph_harm_y", phi)))
#define jot_comb(n, k) JOT_OP2_(jot_comb, #n ", " #k, n, k)
#define jot_bernoulli(dtype, n) JOT_OP_("jot_bernoulli(" #dtype ", " #n ")", jot_bernoulli(dtype, n))
#define jot_lgamma(x) JOT_OP1_(jot_lgamma, #x, x)
#define jot_gammaln(x) JOT_OP1_(jot_gammaln, #x, x)
#define jot_gamma(x) JOT_OP1_(jot_gamma, #x, x)
#define jot_digamma(x) JOT_OP1_(jot_digamma, #x, x)
#define jot_zeta(s, q) JOT_OP2_(jot_zeta, #s ", " #q, s, q)
#define jot_gammainc(a, x) JOT_OP2_(jot_gammainc, #a ", " #x, a, x)
#define jot_gammaincc(a, x) JOT_OP2_(jot_gammaincc, #a ", " #x, a, x)
#define jot_gammainc_grad_a(a, x) JOT_OP2_(jot_gammainc_grad_a, #a ", " #x, a, x)
#define jot_random_gamma_grad(a, x) JOT_OP2_(jot_random_gamma_grad, #a ", " #x, a, x)
#define jot_gammasgn(x) JOT_OP1_(jot_gammasgn, #x, x)
#define jot_factorial(n) JOT_OP1_(jot_factorial, #n, n)
#define jot_polygamma(n, x) JOT_OP2_(jot_polygamma, #n ", " #x, n, x)
#define jot_poch(z, m) JOT_OP2_(jot_poch, #z ", " #m, z, m)
#define jot_multigammaln(a, d) JOT_OP_("jot_multigammaln(" #a ", " #d ")", jot_multigammaln(JOT_VALUE_("jot_multigammaln", a), d))
#define jot_beta(a, b) JOT_OP2_(jot_beta, #a ", " #b, a, b)
#define jot_betaln(a, b) JOT_OP2_(jot_betaln, #a ", " #b, a, b)
#define jot_betainc(a, b, x) JOT_OP_("jot_betainc(" #a ", " #b ", " #x ")", jot_betainc(JOT_VALUE_("jot_betainc", a), JOT_VALUE_("jot_betainc", b), JOT_VALUE_("jot_betainc", x)))
#define jot_i0(x) JOT_OP1_(jot_i0, #x, x)
#define jot_i1(x) JOT_OP1_(jot_i1, #x, x)
#define jot_i0e(x) JOT_OP1_(jot_i0e, #x, x)
#define jot_i1e(x) JOT_OP1_(jot_i1e, #x, x)
#define jot_xlogy(x, y) JOT_OP2_(jot_xlogy, #x ", " #y, x, y)
#define jot_xlog1py(x, y) JOT_OP2_(jot_xlog1py, #x ", " #y, x, y)
// jot_logsumexp_weights(x, b, axes...)
#define jot_logsumexp_weights(x, ...)                                                                         \
    JOT_OP_("jot_logsumexp_weights(" #x ", " #__VA_ARGS__ ")",                                                \
            jot_logsumexp_weights_axes(JOT_VALUE_("jot_logsumexp_weights", x), JOT_VALUE_("jot_logsumexp_weights", JOT_FIRST_(__VA_ARGS__, 0)),                           \
                                       JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_logsumexp_signed(x, ...)                                                                          \
    jot_logsumexp_signed_axes(JOT_VALUE_("jot_logsumexp_signed", x), JOT_VALUE_("jot_logsumexp_signed", JOT_FIRST_(__VA_ARGS__, 0)),                                    \
                              JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END)),                                     \
                              JOT_HERE ": jot_logsumexp_signed(" #x ", " #__VA_ARGS__ ")")
#define jot_entr(x) JOT_OP1_(jot_entr, #x, x)
#define jot_rel_entr(p, q) JOT_OP2_(jot_rel_entr, #p ", " #q, p, q)
#define jot_kl_div(p, q) JOT_OP2_(jot_kl_div, #p ", " #q, p, q)
#define jot_logit(x) JOT_OP1_(jot_logit, #x, x)
#define jot_expit(x) JOT_OP1_(jot_expit, #x, x)
#define jot_ndtr(x) JOT_OP1_(jot_ndtr, #x, x)
#define jot_log_ndtr(x) JOT_OP1_(jot_log_ndtr, #x, x)
#define jot_ndtri(p) JOT_OP1_(jot_ndtri, #p, p)
// clang-format on
#endif // JOT_PLAIN

#endif
