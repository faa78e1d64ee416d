// SPDX-License-Identifier: Apache-2.0
// Functions that are quotients of gamma functions: beta and its logarithm, the rising
// factorial, n choose k, and what stands before the incomplete beta function.
//
// For positive a, b, u the smaller and v the larger of them,
//
//     B(a, b) = Gamma(u) w^-u exp(rest(u, w)) p                                       u < 10
//             = sqrt(2 pi/v) exp((u - 1/2) log(c) - v log(1 + u/v) + d)                            10 <= u
//
// with w = v + 10, p = (1 + u/v) (1 + u/(v + 1)) ... (1 + u/(v + 9)), as
// Gamma(v + 1) = v Gamma(v), rest as in special_parts.h, c = u/(u + v) and
// d = d(u) + d(v) - d(u + v) (DiDonato and Morris, Algorithm 708).
#include "numpy/formula.h"
#include "numpy/special_parts.h"

#include "jot/special.h"

#include <math.h>

static jot_value chosen(jot_value flag, jot_value a, double idle)
{
    return special_chosen(flag, a, idle);
}

// From here on Stirling's series holds.
static const double far = 10;

static jot_value is_far(jot_value x) { return jot_less_equal(num(far), x); }

static jot_value is_positive(jot_value x)
{
    return both(jot_less(num(0), x), jot_less(x, num(INFINITY)));
}

// ---- Beta

// Two positive numbers, the smaller first, each where it is near, else 1, and where it is far,
// else 20.  Of two that are equal, a is the smaller: a minimum would divide the derivatives of
// both among u and v, while others of the parts have those of one.
struct pair {
    jot_value positive, first, u, v; // 1 unless both are positive; first: a is u
    jot_value u_is_far, near_u, far_u, far_v;
};

static struct pair pair_of(jot_value a, jot_value b, double end)
{
    struct pair p = {.positive = both(is_positive(a), is_positive(b))};
    a = chosen(p.positive, a, 1);
    b = chosen(p.positive, b, 1);
    p.first = jot_less_equal(a, b);
    p.u = jot_where(p.first, a, b);
    p.v = jot_where(p.first, b, a);
    p.u_is_far = jot_less_equal(num(end), p.u);
    p.near_u = jot_where(p.u_is_far, one(), p.u);
    p.far_u = chosen(p.u_is_far, p.u, 20);
    p.far_v = chosen(p.u_is_far, p.v, 20);
    return p;
}

// rest(u, w) - u log(w)
static jot_value log_of_near(struct pair p)
{
    jot_value w = add(p.v, num(SPECIAL_SHIFT));
    return sub(special_quotient_rest(p.near_u, w), mul(p.near_u, jot_log(w)));
}

// d(u) + d(v) - d(u + v)
static jot_value correction(jot_value u, jot_value v)
{
    return add(special_stirling(u), special_stirling_difference(u, v));
}

// log(B) of u and v that are far.
static jot_value log_of_far(jot_value u, jot_value v)
{
    jot_value h = over(u, v), c = over(h, add(one(), h));
    jot_value bulk = sub(mul(sub(u, num(0.5)), jot_log(c)), mul(v, jot_log1p(h)));
    bulk = sub(bulk, mul(num(0.5), jot_log(v)));
    return add(bulk, add(num(0.5 * log(2 * M_PI)), correction(u, v)));
}

static jot_value betaln(jot_value a, jot_value b)
{
    struct pair p = pair_of(a, b, far);
    jot_value log_u = jot_lgamma(jot_minimum(a, b)), log_v = jot_lgamma(jot_maximum(a, b));
    jot_value near = add(log_of_near(p), jot_log1p(special_shift(p.near_u, p.v)));
    jot_value y = jot_where(p.u_is_far, log_of_far(p.far_u, p.far_v), add(log_u, near));
    return jot_where(p.positive, y, add(log_u, sub(log_v, jot_lgamma(add(a, b)))));
}

// digamma(a) - digamma(a + b)
static jot_value slope_in_first(jot_value a, jot_value b)
{
    jot_value positive = both(is_positive(a), is_positive(b));
    jot_value safe_a = chosen(positive, a, 1), safe_b = chosen(positive, b, 1);
    jot_value plain = sub(jot_digamma(a), jot_digamma(add(a, b)));
    return jot_where(positive, jot_neg(special_digamma_difference(safe_b, safe_a)), plain);
}

static jot_value betaln_rule(jot_value a, jot_value b, jot_value da, jot_value db)
{
    return add(trace_along(da, slope_in_first(a, b)), trace_along(db, slope_in_first(b, a)));
}

jot_value jot_betaln(jot_value a, jot_value b)
{
    return TRACE_RULED_LANES("jot_betaln", betaln, betaln_rule, a, b);
}

static jot_value beta(jot_value a, jot_value b)
{
    struct pair p = pair_of(a, b, far);
    jot_value sum = add(a, b), plain = sub(add(jot_lgamma(a), jot_lgamma(b)), jot_lgamma(sum));
    jot_value y = jot_where(p.u_is_far, log_of_far(p.far_u, p.far_v), log_of_near(p));
    y = jot_exp(jot_where(p.positive, y, plain));
    jot_value near = mul(jot_gamma(p.near_u), add(one(), special_shift(p.near_u, p.v)));
    jot_value sign = mul(mul(jot_gammasgn(a), jot_gammasgn(b)), jot_gammasgn(sum));
    jot_value factor = jot_where(p.u_is_far, one(), near);
    return mul(jot_where(p.positive, factor, sign), y);
}

static jot_value beta_rule(jot_value a, jot_value b, jot_value da, jot_value db)
{
    return mul(beta(a, b), betaln_rule(a, b, da, db));
}

jot_value jot_beta(jot_value a, jot_value b)
{
    return TRACE_RULED_LANES("jot_beta", beta, beta_rule, a, b);
}

// ---- The rising factorial

// log(Gamma(x + e)) - log(Gamma(x)) of an e that is nothing beside x, by the first terms of digamma.
static jot_value moved(jot_value x, jot_value e)
{
    return mul(e, sub(jot_log(x), over(num(0.5), x)));
}

// Gamma(x) is the gamma function of `at`, over `by`, which is x where that is below 1.
struct gamma {
    jot_value at, by;
};

static struct gamma gamma_of(jot_value x)
{
    jot_value is_small = both(jot_less(num(0), x), jot_less(x, one()));
    return (struct gamma){jot_where(is_small, add(x, one()), x), chosen(is_small, x, 1)};
}

// Gamma(s + q) / Gamma(s) = s^q exp(-rest(q, s)) of s that are far.
static jot_value rising(jot_value s, jot_value q)
{
    return mul(jot_power(s, q), jot_exp(jot_neg(special_quotient_rest(q, s))));
}

// z and z + m in their order, and |m|; not those of a minimum, which would divide the
// derivatives at m = 0 among both.
struct rise {
    jot_value down, positive, least, most, size;
};

static struct rise rise_of(jot_value z, jot_value m, jot_value end)
{
    struct rise r = {.down = jot_less(m, num(0))};
    r.least = jot_where(r.down, end, z);
    r.most = jot_where(r.down, z, end);
    r.size = jot_where(r.down, jot_neg(m), m);
    r.positive = both(is_positive(r.least), is_positive(r.most));
    r.positive = both(r.positive, jot_less(r.size, num(INFINITY)));
    return r;
}

static jot_value poch(jot_value z, jot_value m)
{
    jot_value end = add(z, m);
    struct rise r = rise_of(z, m, end);
    jot_value down = r.down, positive = r.positive;
    jot_value s = chosen(positive, r.least, 1), q = chosen(positive, r.size, 1);
    jot_value t = chosen(positive, r.most, 2);
    jot_value error = chosen(positive, special_rounding(z, m, end), 0);
    // Of s < 10 beyond 30 it is (s)_10 (s + 10)_(q - 10).
    jot_value s_is_far = is_far(s),
              near = both(jot_less(s, num(far)), jot_less(t, num(3 * far)));
    jot_value product = s;
    for (int k = 1; k < 10; k++)
        product = mul(product, add(s, num(k)));
    product = jot_where(s_is_far, one(), product);
    jot_value from = jot_where(s_is_far, s, add(s, num(far)));
    jot_value by = jot_where(s_is_far, q, jot_maximum(sub(q, num(far)), one()));
    jot_value y = mul(product, rising(from, by));
    struct gamma low = gamma_of(chosen(near, s, 1)), high = gamma_of(chosen(near, t, 1));
    jot_value gammas = mul(over(jot_gamma(high.at), jot_gamma(low.at)), over(low.by, high.by));
    y = jot_where(near, gammas, y);
    // The sum z + m is t or s, and its rounding counts where m is small.
    jot_value in_s = jot_where(near, jot_neg(moved(jot_maximum(s, one()), error)),
                               mul(error, jot_log1p(over(q, s))));
    jot_value in_t = chosen(near, moved(jot_maximum(t, one()), error), 0);
    y = mul(y, add(one(), jot_where(down, in_s, in_t)));
    y = jot_where(down, over(one(), y), y);
    jot_value plain = jot_exp(sub(jot_lgamma(end), jot_lgamma(z)));
    plain = jot_where(both(jot_equal(m, num(0)), jot_is_nan(plain)), one(), plain);
    // Where the logarithms of both gammas are infinite.
    jot_value is_far_end = jot_equal(end, num(INFINITY)), is_pole = jot_equal(end, num(0));
    jot_value limit = jot_where(either(is_pole, jot_less(num(0), m)), num(INFINITY), num(0));
    jot_value ends = either(is_far_end, both(is_pole, jot_less(num(0), z)));
    plain = jot_where(both(ends, jot_not_equal(m, num(0))), limit, plain);
    return jot_where(positive, y, plain);
}

// (z)_m ((digamma(z + m) - digamma(z)) dz + digamma(z + m) dm); from 0 to 1 as the derivative
// of z/(z + m) (z + 1)_m, since the terms of the next one would cancel.
static jot_value poch_slope(jot_value z, jot_value m, jot_value dz, jot_value dm,
                            jot_value (*value)(jot_value, jot_value))
{
    jot_value end = add(z, m), at_end = jot_digamma(end);
    struct rise r = rise_of(z, m, end);
    // At 0 the rising factorial is 0 and its slope is not.
    jot_value is_at_0 = both(jot_equal(z, num(0)), is_positive(m));
    r.positive = either(r.positive, is_at_0);
    jot_value is_low = both(both(r.positive, jot_logical_not(r.down)), jot_less(z, one()));
    jot_value least = jot_where(is_low, add(z, one()), r.least);
    jot_value y = value(jot_where(is_low, least, z), m);
    jot_value difference =
        special_digamma_difference(chosen(r.positive, r.size, 1), chosen(r.positive, least, 1));
    difference = jot_where(r.down, jot_neg(difference), difference);
    jot_value plain = sub(at_end, jot_digamma(z));
    plain = jot_where(both(jot_equal(m, num(0)), jot_is_nan(plain)), num(0), plain);
    difference = jot_where(r.positive, difference, plain);
    jot_value low = chosen(is_low, z, 1), low_end = chosen(is_low, end, 1);
    jot_value share = over(low, low_end);
    jot_value in_share = over(over(chosen(is_low, m, 0), low_end), low_end);
    jot_value in_z = add(in_share, mul(share, difference));
    return mul(y, add(mul(dz, in_z), mul(dm, mul(share, at_end))));
}

static jot_value poch_last_rule(jot_value z, jot_value m, jot_value dz, jot_value dm)
{
    return poch_slope(z, m, dz, dm, poch);
}

static jot_value poch_once(jot_value z, jot_value m)
{
    return TRACE_RULED("jot_poch", poch, poch_last_rule, z, m);
}

static jot_value poch_rule(jot_value z, jot_value m, jot_value dz, jot_value dm)
{
    return poch_slope(z, m, dz, dm, poch_once);
}

jot_value jot_poch(jot_value z, jot_value m)
{
    return TRACE_RULED_LANES("jot_poch", poch, poch_rule, z, m);
}

// ---- n choose k

// The smaller of k and n - k, which is k of two that are equal (see struct pair), the larger,
// n - k and its rounding.
struct choice {
    jot_value some, n, k, other, rounding, k_is_least, least, most;
};

static struct choice choice_of(jot_value n, jot_value k)
{
    jot_value zero = num(0);
    struct choice c = {.some = both(jot_less_equal(k, n), jot_less_equal(zero, k))};
    c.some = both(c.some, jot_less_equal(zero, n));
    c.n = chosen(c.some, n, 0);
    c.k = chosen(c.some, k, 0);
    c.other = sub(c.n, c.k);
    c.rounding = special_rounding(c.n, jot_neg(c.k), c.other);
    c.k_is_least = jot_less_equal(c.k, c.other);
    c.least = jot_where(c.k_is_least, c.k, c.other);
    c.most = jot_where(c.k_is_least, c.other, c.k);
    return c;
}

// Gamma(1 + x) of x >= 0, without the rounding of the sum.
static jot_value factorial(jot_value x)
{
    jot_value is_small = jot_less(x, one());
    jot_value y = jot_gamma(jot_where(is_small, add(x, one()), x));
    return mul(y, jot_where(is_small, one(), x));
}

// With u <= n - u it is (n - u + 1)_u / Gamma(u + 1), or 1 / ((n + 1) B(u + 1, n - u + 1)).
static jot_value comb(jot_value n, jot_value k)
{
    struct choice c = choice_of(n, k);
    jot_value above_most = add(c.most, one());
    jot_value u_is_far = is_far(c.least), v_is_far = is_far(above_most);
    jot_value u = chosen(u_is_far, add(c.least, one()), 20),
              v = chosen(v_is_far, above_most, 20);
    jot_value near_u = jot_where(u_is_far, one(), c.least), of_u = factorial(near_u);
    // The root, which does not overflow unless the result does.
    jot_value root = jot_power(v, mul(num(0.5), near_u));
    jot_value large = add(log_of_far(u, v), jot_log(add(c.n, one())));
    jot_value rest = special_quotient_rest(near_u, v);
    jot_value exp = jot_exp(jot_neg(jot_where(u_is_far, large, rest)));
    jot_value mixed = mul(over(root, of_u), mul(root, exp));
    jot_value near_n = jot_where(v_is_far, one(), c.n);
    jot_value near_v = jot_where(v_is_far, one(), c.most);
    jot_value small = over(factorial(near_n), mul(of_u, factorial(near_v)));
    small = mul(small, sub(one(), moved(add(c.other, one()), c.rounding)));
    jot_value y = jot_where(u_is_far, exp, jot_where(v_is_far, mixed, small));
    jot_value unknown = either(jot_is_nan(n), jot_is_nan(k));
    return jot_where(c.some, y, jot_where(unknown, num(NAN), num(0)));
}

// d log = (digamma(n + 1) - digamma(n - k + 1)) dn + (digamma(n - k + 1) - digamma(k + 1)) dk
static jot_value comb_slope(jot_value n, jot_value k, jot_value dn, jot_value dk)
{
    struct choice c = choice_of(n, k);
    jot_value in_n = special_digamma_difference(c.k, add(c.other, one()));
    jot_value in_k = special_digamma_difference(sub(c.most, c.least), add(c.least, one()));
    in_k = jot_where(c.k_is_least, in_k, jot_neg(in_k));
    return add(mul(dn, in_n), mul(dk, in_k));
}

static jot_value comb_last_rule(jot_value n, jot_value k, jot_value dn, jot_value dk)
{
    return mul(comb(n, k), comb_slope(n, k, dn, dk));
}

static jot_value comb_rule(jot_value n, jot_value k, jot_value dn, jot_value dk)
{
    jot_value y = TRACE_RULED("jot_comb", comb, comb_last_rule, n, k);
    return mul(y, comb_slope(n, k, dn, dk));
}

jot_value jot_comb(jot_value n, jot_value k)
{
    return TRACE_RULED_LANES("jot_comb", comb, comb_rule, n, k);
}

// ---- Before the incomplete beta function
//
// x^a y^b / B(a, b), with t the one of x and y that belongs to u, and w and p as before,
//
//     = (w t)^u (1 - t)^v exp(-rest(u, w)) / (p Gamma(u))                                          u < 3
//     = sqrt(u/(1 + u/v) / 2 pi) exp(-(a e(-l/a) + b e(l/b)) - d),  l = a y - b x                  3 <= u
//
// (BRCOMP of the same).  y = 1 - x is y + z with the rounding z, of which y^b is y^b (1 + b z/y).

jot_value special_beta_distance(jot_value a, jot_value b, jot_value x, jot_value y, jot_value z)
{
    jot_value product = mul(b, x), error = jot_fma(b, x, jot_neg(product));
    return jot_fma(a, z, sub(jot_fma(a, y, jot_neg(product)), error));
}

static jot_value exponent_of_far(jot_value a, jot_value b, jot_value x, jot_value y,
                                 jot_value z)
{
    jot_value distance = special_beta_distance(a, b, x, y, z);
    jot_value in_a = jot_neg(over(distance, a)), in_b = over(distance, b);
    jot_value ratio_a = mul(x, add(one(), over(b, a)));
    jot_value ratio_b = mul(y, add(one(), over(a, b)));
    jot_value sum =
        add(mul(a, special_excess(in_a, ratio_a)), mul(b, special_excess(in_b, ratio_b)));
    jot_value both_less = add(special_stirling_low(a), special_stirling_low(b));
    return jot_neg(add(sum, sub(both_less, special_stirling_low(add(a, b)))));
}

static jot_value front(jot_value a, jot_value b, jot_value x)
{
    struct pair p = pair_of(a, b, 3);
    jot_value y = sub(one(), x), z = sub(sub(one(), y), x);
    jot_value is_a = p.first, v_is_far = is_far(p.v);
    jot_value t = jot_where(is_a, x, y), other = jot_where(is_a, y, x);
    // (1 - t)^v of large v is in the exponential; and of large w t the power is less than what
    // that is small.
    jot_value near_v = jot_where(v_is_far, one(), p.v);
    jot_value log_other = jot_where(is_a, jot_log1p(jot_neg(x)), jot_log(x));
    jot_value w = add(p.v, num(SPECIAL_SHIFT)), scaled = mul(w, t), bound = num(32);
    jot_value beyond = mul(p.near_u, jot_log(over(jot_maximum(scaled, bound), bound)));
    jot_value exponent = add(beyond, chosen(v_is_far, mul(p.v, log_other), 0));
    exponent = sub(exponent, special_quotient_rest(p.near_u, w));
    jot_value both_far =
        exponent_of_far(chosen(p.u_is_far, a, 20), chosen(p.u_is_far, b, 20), x, y, z);
    jot_value exp = jot_exp(jot_where(p.u_is_far, both_far, exponent));

    jot_value power = jot_power(jot_minimum(scaled, bound), p.near_u);
    power = mul(power, jot_where(v_is_far, one(), jot_power(other, near_v)));
    jot_value of_y = jot_where(is_a, jot_where(v_is_far, num(0), p.v), p.near_u);
    power = mul(power, add(one(), mul(of_y, over(z, y))));
    // 1/Gamma(u) of an u near 0 by u/Gamma(u + 1)
    struct gamma of_u = gamma_of(p.near_u);
    jot_value below = mul(jot_gamma(of_u.at), add(one(), special_shift(p.near_u, p.v)));
    jot_value near = mul(over(power, below), of_u.by);
    jot_value weight = over(p.u, add(one(), over(p.u, p.v)));
    jot_value large = jot_sqrt(mul(weight, num(0.5 * M_1_PI)));
    return mul(jot_where(p.u_is_far, large, near), exp);
}

// x^a y^b Gamma(a + b + 1) / (Gamma(a + 1) Gamma(b + 1)), which is the front over a b/(a + b).
static jot_value smooth(jot_value a, jot_value b, jot_value x)
{
    return mul(front(a, b, x), add(over(one(), a), over(one(), b)));
}

// log(x) + digamma(a + b + 1) - digamma(a + 1) with x (a + b + 1)/(a + 1) = 1 - off/(a + 1):
// near the mean it is far smaller than its terms.
static jot_value slope_in(jot_value x, jot_value off, jot_value next, jot_value sum)
{
    jot_value mu = jot_neg(over(off, next)), near = jot_less(jot_abs(mu), num(0.5));
    jot_value log =
        jot_where(near, jot_log1p(chosen(near, mu, 0)), jot_log(mul(x, over(sum, next))));
    return add(log, sub(special_digamma_rest(next), special_digamma_rest(sum)));
}

// The derivatives of the logarithm of that.
static jot_value smooth_slope(jot_value a, jot_value b, jot_value x, jot_value da, jot_value db,
                              jot_value dx)
{
    jot_value y = sub(one(), x), sum = add(add(a, b), one());
    jot_value l = special_beta_distance(a, b, x, y, sub(sub(one(), y), x));
    jot_value in_a = slope_in(x, add(l, y), add(a, one()), sum);
    jot_value in_b = slope_in(y, sub(x, l), add(b, one()), sum);
    jot_value in_x = sub(over(a, x), over(b, y));
    return add(add(trace_along(da, in_a), trace_along(db, in_b)), trace_along(dx, in_x));
}

static jot_value smooth_rule(jot_value a, jot_value b, jot_value x, jot_value da, jot_value db,
                             jot_value dx)
{
    return mul(smooth(a, b, x), smooth_slope(a, b, x, da, db, dx));
}

// As the derivative of a product with a b/(a + b), since those of digamma(a) would cancel in
// further ones for a near 0.
static jot_value front_rule(jot_value a, jot_value b, jot_value x, jot_value da, jot_value db,
                            jot_value dx)
{
    jot_value rest = TRACE_RULED("jot_betainc: front", smooth, smooth_rule, a, b, x);
    jot_value sum = add(a, b), in_a = jot_square(over(b, sum)), in_b = jot_square(over(a, sum));
    jot_value slope = mul(rest, add(mul(da, in_a), mul(db, in_b)));
    return add(slope, mul(front(a, b, x), smooth_slope(a, b, x, da, db, dx)));
}

jot_value special_beta_front(jot_value a, jot_value b, jot_value x)
{
    return TRACE_RULED("jot_betainc: front", front, front_rule, a, b, x);
}
