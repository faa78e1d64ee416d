// SPDX-License-Identifier: Apache-2.0
// Quotients of gamma functions.
//
// With Stirling's series log(Gamma(z)) = (z - 1/2) log(z) - z + log(2 pi)/2 + d(z),
// d(z) = 1/(12 z) - ..., a quotient of two is, for h = a/b and e(h) = h - log(1 + h),
//
//     log(Gamma(b)/Gamma(a + b)) = -a log(b) + (1/2 - a) log(1 + h) + b e(h) + d(b) - d(a + b)
//
// where nothing cancels, if the differences of powers in the last two are divided by
// 1/b - 1/(a + b) by hand (A. DiDonato, A. Morris, Algorithm 708: Significant digit computation
// of the incomplete beta function ratios, 1992: ALGDIV, BCORR).
#include "numpy/special_parts.h"

#include "numpy/formula.h"

#include "jot/special.h"

#include <math.h>

jot_value special_chosen(jot_value flag, jot_value a, double idle)
{
    return jot_where(flag, a, num(idle));
}

jot_value special_rounding(jot_value x, jot_value y, jot_value sum)
{
    jot_value part = sub(sum, x);
    return add(sub(x, sub(sum, part)), sub(y, part));
}

jot_value special_is_pole(jot_value x)
{
    return both(jot_less_equal(x, num(0)), jot_equal(x, jot_floor(x)));
}

// Below 1/2 by Gamma(1 - x) sin(pi x)/pi.
jot_value special_inverse_gamma(jot_value x)
{
    jot_value is_low = jot_less(x, num(0.5));
    jot_value gamma = jot_gamma(jot_where(is_low, sub(one(), x), x));
    return jot_where(is_low, mul(gamma, mul(x, jot_sinc(x))), over(one(), gamma));
}

// With w = 1/(2 + mu) and s = mu w it is w - 2 mu w^3 (1/3 + s^2/5 + ...).
jot_value special_excess_near(jot_value mu)
{
    static const double c[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                               1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
    jot_value w = over(one(), add(mu, num(2))), s = mul(mu, w);
    jot_value rest = trace_polynomial(sizeof c / sizeof c[0], c, jot_square(s));
    return mul(w, sub(one(), mul(mul(num(2), mul(s, w)), rest)));
}

jot_value special_excess(jot_value mu, jot_value ratio)
{
    jot_value near = jot_less(jot_abs(mu), num(0.3));
    jot_value close = special_chosen(near, mu, 0);
    jot_value far = sub(mu, jot_log(jot_where(near, one(), ratio)));
    return jot_where(near, mul(jot_square(close), special_excess_near(close)), far);
}

// The coefficients B_2k / (2k (2k-1)) of Stirling's series, and B_2k / 2k of digamma's.
static const double stirling_of[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                     1.0 / 1188, -691.0 / 360360, 1.0 / 156};
static const double digamma_of[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                    1.0 / 132, -691.0 / 32760, 1.0 / 12};
enum { TERMS = sizeof stirling_of / sizeof *stirling_of };

jot_value special_stirling(jot_value a)
{
    jot_value inverse = over(one(), a);
    return mul(inverse, trace_polynomial(TERMS, stirling_of, jot_square(inverse)));
}

// Numbers up to 10, and a sum over them.
static jot_value is_short_of_far(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_less(c[0], num(10));
}

// Of a it is that of a + 1 and (a + 1/2) log(1 + 1/a) - 1 more, that is t^2/3 + t^4/5 + ... of
// t = 1/(2 a + 1), for a >= 3.
static void step_stirling(jot_value *c, void *ctx)
{
    static const double odd[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19};
    (void)ctx;
    jot_value t = jot_square(over(one(), add(add(c[0], c[0]), one())));
    c[1] = add(c[1], mul(t, trace_polynomial(sizeof odd / sizeof *odd, odd, t)));
    c[0] = add(c[0], one());
}

jot_value special_stirling_low(jot_value a)
{
    jot_value c[] = {a, jot_zeros_like(a)};
    jot_while_at(is_short_of_far, step_stirling, NULL, 2, c, NULL, "jot_betainc");
    return add(special_stirling(c[0]), c[1]);
}

// Of a it is that of a + 1 and 1/a - log(1 + 1/a) more.
static void step_to_far(jot_value *c, void *ctx)
{
    (void)ctx;
    jot_value inverse = over(one(), c[0]);
    c[1] = add(c[1], special_excess(inverse, add(one(), inverse)));
    c[0] = add(c[0], one());
}

jot_value special_digamma_rest(jot_value a)
{
    jot_value c[] = {a, jot_zeros_like(a)};
    jot_while_at(is_short_of_far, step_to_far, NULL, 2, c, NULL, "jot_digamma");
    jot_value inverse = over(one(), c[0]);
    jot_value rest = trace_polynomial(TERMS, digamma_of, jot_square(inverse));
    return add(mul(inverse, add(num(0.5), mul(inverse, rest))), c[1]);
}

// The sum of c[k] b^-(2k + 1) (1 - r^(2k + odd)) / (1 - r), r = b/(a + b): powers of b and
// a + b subtracted.
static jot_value powers_apart(const double *c, bool is_odd, jot_value b, jot_value r)
{
    jot_value inverse = over(one(), b), t = jot_square(inverse), square = jot_square(r);
    jot_value part[TERMS], first = is_odd ? one() : add(one(), r), next = add(one(), r);
    part[0] = first;
    for (int k = 1; k < TERMS; k++)
        part[k] = add(next, mul(square, part[k - 1]));
    jot_value y = mul(num(c[TERMS - 1]), part[TERMS - 1]);
    for (int k = TERMS - 2; k >= 0; k--)
        y = add(mul(y, t), mul(num(c[k]), part[k]));
    return mul(y, inverse);
}

jot_value special_stirling_difference(jot_value a, jot_value b)
{
    jot_value h = over(a, b), up = add(one(), h), r = over(one(), up);
    return mul(over(h, up), powers_apart(stirling_of, true, b, r));
}

jot_value special_quotient_rest(jot_value a, jot_value b)
{
    jot_value h = over(a, b), up = add(one(), h);
    jot_value y = add(mul(sub(num(0.5), a), jot_log1p(h)), mul(b, special_excess(h, up)));
    return add(y, special_stirling_difference(a, b));
}

// From b + SHIFT on, by Gamma(b + 1) = b Gamma(b).
enum { SHIFT = SPECIAL_SHIFT };

// The product of 1 + a/(b + k) from the one that is 1 + first, less 1.
static jot_value shift_from(jot_value a, jot_value b, int k, jot_value first)
{
    while (++k < SHIFT) {
        jot_value next = over(a, add(b, num(k)));
        first = add(first, mul(next, add(one(), first)));
    }
    return first;
}

jot_value special_shift(jot_value a, jot_value b) { return shift_from(a, b, 0, over(a, b)); }

jot_value special_gamma_difference(jot_value a, jot_value b)
{
    jot_value rest = special_quotient_rest(a, add(b, num(SHIFT)));
    jot_value other = shift_from(a, b, 1, over(a, add(b, one())));
    return jot_neg(add(rest, jot_log1p(other)));
}

static jot_value digamma_difference(jot_value a, jot_value b)
{
    jot_value y = over(over(a, add(a, b)), b), far = add(b, num(SHIFT));
    for (int k = 1; k < SHIFT; k++) {
        jot_value low = add(b, num(k));
        y = add(y, over(over(a, add(a, low)), low));
    }
    jot_value h = over(a, far), up = add(one(), h);
    jot_value step = over(h, up); // far (1/far - 1/(a + far))
    jot_value apart = powers_apart(digamma_of, false, far, over(one(), up));
    jot_value inverse = over(one(), far);
    y = add(y, mul(step, mul(inverse, add(num(0.5), apart))));
    return add(y, jot_log1p(h));
}

// In a it is zeta(2, a + b); in b by the terms of the sum, for zeta(2, a + b) - zeta(2, b) would cancel.
static jot_value digamma_difference_rule(jot_value a, jot_value b, jot_value da, jot_value db)
{
    static const int second[] = {1, JOT_END};
    const char *name = "jot_digamma";
    jot_function f = jot_function_plain(name, name, 2, (void (*)(void))digamma_difference);
    jot_value in[] = {a, b, jot_ones_like(b)}, y[2];
    jot_apply_at(jot_jvp_of(f, name, second), 3, in, 2, y, NULL);
    return add(mul(da, jot_zeta(num(2), add(a, b))), mul(db, y[1]));
}

jot_value special_digamma_difference(jot_value a, jot_value b)
{
    return TRACE_RULED("jot_digamma", digamma_difference, digamma_difference_rule, a, b);
}

// log(Gamma(2 + y)) is y (y + 1) times a polynomial for -3/4 <= y <= 1/4, that of
// src/base/math/gamma.inc.
jot_value special_log_gamma_1p(jot_value a)
{
    static const double single[] = {
        0x1.ccf152p-2,  -0x1.e96586p-4, 0x1.6cb6p-5,     -0x1.382dcp-6,  0x1.1fa7bcp-7,
        -0x1.1515dcp-8, 0x1.0f8ac6p-9,  -0x1.11d038p-10, 0x1.549ac2p-11, -0x1.6976dcp-12};
    static const double twice[] = {
        0x1.ccf151e09cde8p-2,   -0x1.e96586307946dp-4,  0x1.6cb6251711962p-5,
        -0x1.382e176f60cabp-6,  0x1.1f9587fa11603p-7,   -0x1.14f7c58e8ad33p-8,
        0x1.12aa730165444p-9,   -0x1.16056285ed1bap-10, 0x1.1daed1c15c49dp-11,
        -0x1.28f25fcb0d256p-12, 0x1.37775078b94adp-13,  -0x1.4919339d56c3dp-14,
        0x1.5db699c6603a8p-15,  -0x1.75a011f2c38eap-16, 0x1.93fc7531d46b4p-17,
        -0x1.b3f1a953c3d07p-18, 0x1.ae714c45b9a65p-19,  -0x1.ccff23a2d2e0cp-20,
        0x1.942dd07c33ff2p-20,  -0x1.c20aae81ee22cp-21};
    jot_value is_small = jot_less(a, num(0.25)), is_large = jot_less(num(1.25), a);
    jot_value y = jot_where(is_small, a, jot_where(is_large, sub(a, num(2)), sub(a, one())));
    jot_value u = add(y, num(0.25));
    bool is_double = jot_value_dtype(a) == JOT_F64;
    jot_value p = is_double ? trace_polynomial(sizeof twice / sizeof *twice, twice, u)
                            : trace_polynomial(sizeof single / sizeof *single, single, u);
    p = mul(mul(y, add(y, one())), p);
    // Gamma(1 + a) is Gamma(2 + a) / (1 + a), and a Gamma(a).
    jot_value log =
        jot_log1p(jot_where(is_large, sub(a, one()), special_chosen(is_small, a, 0)));
    return jot_where(is_large, add(p, log), sub(p, log));
}
