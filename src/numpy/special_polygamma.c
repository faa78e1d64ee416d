// SPDX-License-Identifier: Apache-2.0
// Polygamma functions of orders n >= 1, where neither n! nor zeta(n + 1, x) need be a number:
// with s = n + 1 and a scale c,
//
//     psi_n(x) = (-1)^s Gamma(s) c^-s Z(x),   Z(x) = sum_(k >= 0) (c/(x + k))^s
//
// where Z is of the size of 1 + x/s for c = x.  As long as both factors are well within the
// range c is 1, for x + k is mostly exact and (x + k)/c is not.  Z is its first terms and the
// Euler-Maclaurin formula; below 0, of the distance r from the nearest pole,
//
//     Z(x) = (c/r)^s + Z(1 + r) + (-1)^s (Z(1 - r) - Z(1 - x))
#include "numpy/formula.h"
#include "numpy/special_parts.h"

#include "jot/special.h"

#include <math.h>

// c is positive, and sign (-1)^s; from x on `count` of the three sums are to be added.
struct parts {
    jot_value s, c, sign, x, r, count;
};

// Z(x) of x > 0.
static jot_value scaled_zeta(const struct parts *p, jot_value x)
{
    // B_2j / (2j)!
    static const double coefficients[] = {
        0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-10, 0x1.1566abc011566p-15,
        -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26,  -0x1.22805d644267fp-31,
        0x1.d6db2c4e09163p-37,  -0x1.7da4e1f79955cp-42, 0x1.355871d652e9ep-47,
        -0x1.f57d968caacf1p-53, 0x1.967e1f09c376fp-58,  -0x1.497d9033a2b5dp-63};
    enum { TERMS = 10, COEFFICIENTS = sizeof coefficients / sizeof *coefficients };
    jot_value w = add(x, num(TERMS)), inverse = over(one(), w), rest = num(0);
    // Of large s only the first term counts.
    jot_value ratio = mul(p->s, inverse), is_smooth = jot_less(ratio, num(64));
    jot_value s = special_chosen(is_smooth, p->s, 1);
    for (int j = COEFFICIENTS - 1; j >= 0; j--) {
        jot_value low = mul(add(s, num(2 * j + 1)), inverse);
        jot_value high = mul(add(s, num(2 * j + 2)), inverse);
        rest = add(num(coefficients[j]), mul(mul(low, high), rest));
    }
    rest = jot_where(is_smooth, add(mul(ratio, rest), num(0.5)), num(0));
    rest = add(rest, over(w, sub(p->s, one())));
    jot_value power = jot_neg(p->s), y = mul(rest, jot_power(over(w, p->c), power));
    for (int k = TERMS - 1; k >= 0; k--)
        y = add(y, jot_power(over(add(x, num(k)), p->c), power));
    return y;
}

// The part, and the sum.
static jot_value is_left(const jot_value *v, void *ctx)
{
    const struct parts *p = ctx;
    return jot_less(v[0], p->count);
}

static void add_part(jot_value *v, void *ctx)
{
    const struct parts *p = ctx;
    jot_value is_first = jot_equal(v[0], num(0)), is_second = jot_equal(v[0], one());
    jot_value x = jot_where(is_second, sub(one(), p->r), sub(one(), p->x));
    jot_value sign = jot_where(is_second, p->sign, jot_neg(p->sign));
    x = jot_where(is_first, jot_where(jot_less(p->x, num(0)), add(one(), p->r), p->x), x);
    v[1] = add(v[1], mul(jot_where(is_first, one(), sign), scaled_zeta(p, x)));
    v[0] = add(v[0], one());
}

static jot_value is_odd(jot_value n) { return jot_equal(jot_rem(n, num(2)), one()); }

// (-1)^s Gamma(s) zeta(s, x) of whole s >= 2.
static jot_value of_order(jot_value order, jot_value in)
{
    jot_value s = wide(order), x = wide(in), is_below = jot_less(x, num(0));
    jot_value r = sub(x, jot_round(x)), size = jot_where(is_below, jot_abs(r), x);
    jot_value is_pole = jot_equal(size, num(0)), is_end = jot_equal(x, num(INFINITY));
    size = jot_where(either(is_pole, is_end), one(), size);
    // Gamma(s), from 170 on over (s/e)^s by Stirling's series.
    jot_value is_large = jot_less(num(170), s), far = special_chosen(is_large, s, 200);
    jot_value gamma = mul(jot_sqrt(over(num(2 * M_PI), far)), jot_exp(special_stirling(far)));
    gamma = jot_where(is_large, gamma, jot_gamma(jot_where(is_large, one(), s)));
    jot_value exponent = mul(s, jot_abs(jot_log2(size)));
    jot_value is_plain = both(jot_logical_not(is_large), jot_less(exponent, num(900)));
    struct parts p = {.s = s, .r = r, .count = jot_where(is_below, num(3), one())};
    p.c = jot_where(is_plain, one(), size);
    p.x = jot_where(is_below, x, size);
    p.sign = jot_where(is_odd(s), num(-1), one());
    jot_value first = jot_power(over(size, p.c), jot_neg(s));
    first = mul(jot_where(jot_less(r, num(0)), p.sign, one()), first);
    jot_value v[] = {jot_zeros_like(x), jot_where(is_below, first, num(0))};
    jot_while_at(is_left, add_part, &p, 2, v, NULL, "jot_polygamma");
    // By the root twice, since what is left out of the range by it is so in the end.
    jot_value base = jot_where(is_large, mul(p.c, over(num(M_E), far)), p.c);
    jot_value root = jot_power(base, mul(num(-0.5), s));
    jot_value y = mul(mul(mul(gamma, root), v[1]), root);
    y = jot_where(is_pole, num(INFINITY), jot_where(is_end, num(0), y));
    return jot_astype(mul(p.sign, y), jot_value_dtype(in));
}

static jot_value polygamma(jot_value n, jot_value x)
{
    jot_value is_digamma = jot_equal(n, num(0));
    jot_value is_none = either(jot_less(n, num(0)), jot_not_equal(n, jot_floor(n)));
    jot_value order = jot_where(either(is_digamma, is_none), one(), n);
    jot_value y = of_order(add(order, one()), x);
    return jot_where(is_digamma, jot_digamma(x), jot_where(is_none, num((double)NAN), y));
}

// In x the next one; in n by the rules of what it is made of, which below 0 have no derivative.
// At a pole there is none.
static jot_value polygamma_rule(jot_value n, jot_value x, jot_value dn, jot_value dx)
{
    static const int first[] = {0, JOT_END};
    jot_function f =
        jot_function_plain("jot_polygamma", "jot_polygamma", 2, (void (*)(void))polygamma);
    jot_value is_below = jot_less_equal(x, num(0)), y[2];
    jot_value in[] = {n, jot_where(is_below, one(), x), jot_ones_like(n)};
    jot_apply_at(jot_jvp_of(f, "jot_polygamma", first), 3, in, 2, y, NULL);
    jot_value is_pole = both(is_below, jot_equal(jot_floor(x), x));
    jot_value slope = jot_where(is_below, num(0), y[1]);
    jot_value in_n = trace_along(dn, jot_where(is_pole, num((double)NAN), slope));
    return add(in_n, trace_along(dx, polygamma(add(n, one()), x)));
}

jot_value jot_polygamma(jot_value n, jot_value x)
{
    return TRACE_RULED_LANES("jot_polygamma", polygamma, polygamma_rule, n, x);
}
