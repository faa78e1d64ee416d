// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete beta function, for x up to the mean by the contracted continued
// fraction of A. DiDonato and A. Morris, Algorithm 708: Significant digit computation of the
// incomplete beta function ratios, 1992 (BFRAC, equation 9):
//
//     I_x(a, b) = x^a y^b / B(a, b) / (b_0 + a_1/(b_1 + a_2/(b_2 + ...))),   y = 1 - x, l = a - (a + b) x
//     a_n = (a + n - 1) (a + b + n - 1) n (b - n) x^2 / (a + 2n - 1)^2
//     b_n = n + n (b - n) x/(a + 2n - 1) + (a + n)/(a + 2n + 1) (l + 1 + n (1 + y))
//
// and beyond as 1 - I_y(b, a).  Derivatives in a and b are those of the fraction from below,
// for from above its first approximants, and more so their derivatives, are far larger near the
// mean.  For a <= 1 both I_x(a, b) and its complement 1 - e^g - e^g a s may be small, and so
// may be their derivatives in a, by
//
//     I_x(a, b) = e^g (1 + a s),  e^g = x^a Gamma(a + b) / (Gamma(b) Gamma(a + 1))
//     s = (1 - b)/(a + 1) x + (1 - b)(2 - b)/(2 (a + 2)) x^2 + ...                                     (DLMF 8.17.7)
//
// For a and b so large that the fraction would take thousands of steps, by the first terms of
// N. Temme's expansion (DLMF 8.18.9), of which the second is taken at the mean: with
// e(h) = h - log(1 + h) and r^2 = a e(-l/a) + b e(l/b)
//
//     I_x(a, b) = erfc(-r) / 2 + e^(-r^2) (b - a)/(a + b) / (3 sqrt(2 pi a b/(a + b))),   r of the sign of -l
#include "numpy/formula.h"
#include "numpy/special_parts.h"

#include "jot/special.h"

#include <math.h>

struct arguments {
    jot_value a, b, x, y, l; // y = 1 - x
    double epsilon;
    bool is_derived;
};

static jot_value moves(const struct arguments *p, jot_value change, jot_value sum, jot_value n)
{
    jot_value small = mul(num(p->epsilon), jot_abs(sum));
    return both(jot_less(small, jot_abs(change)), jot_less(n, num(20000)));
}

// The summands of a whole b are 0 from n = b on, but not their derivatives.  Where these are
// wanted, it is a bound of summands that must get small, which has |b - n| or 1 for b - n.
static jot_value bounded(const struct arguments *p, jot_value n)
{
    return jot_maximum(jot_abs(sub(p->b, n)), one());
}

// Steed's method, where what is added gets less and so do its errors: n, a + n - 1 for n > 1, 1/(b_n +
// a_n/(b_(n-1) + ...)), the last summand, the sum, the roundings of the sum, and the bound.
enum { F_N, F_FACTOR, F_D, F_CHANGE, F_SUM, F_REST, F_BOUND, F_CARRIES };

static jot_value fraction_goes_on(const jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    return moves(p, s[p->is_derived ? F_BOUND : F_CHANGE], s[F_SUM], s[F_N]);
}

static void fraction_step(jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    jot_value n = add(s[F_N], one()), up = add(p->a, n), last = s[F_D], sum = s[F_SUM];
    jot_value down = sub(add(up, n), one()), factor = s[F_FACTOR];
    jot_value w = mul(mul(n, sub(p->b, n)), over(p->x, down));
    jot_value far = mul(over(sub(add(up, p->b), one()), down), p->x);
    jot_value numerator = mul(mul(factor, far), w);
    jot_value rest = add(add(p->l, one()), mul(n, add(one(), p->y)));
    rest = mul(over(up, add(down, num(2))), rest);
    jot_value denominator = add(add(n, w), rest);
    s[F_N] = n;
    s[F_FACTOR] = up;
    s[F_D] = over(one(), add(denominator, mul(numerator, last)));
    s[F_CHANGE] = jot_neg(mul(mul(numerator, last), mul(s[F_D], s[F_CHANGE])));
    s[F_SUM] = add(sum, s[F_CHANGE]);
    s[F_REST] = add(s[F_REST], sub(s[F_CHANGE], sub(s[F_SUM], sum)));
    if (p->is_derived) {
        jot_value size = mul(mul(n, bounded(p, n)), over(p->x, down));
        size = mul(mul(factor, far), size);
        s[F_BOUND] = mul(mul(size, last), mul(s[F_D], s[F_BOUND]));
    }
}

// From below: the index n, and b_(n-1) + a_n/(b_n + ...) from that of n + 1 on.
static jot_value is_above_0(const jot_value *s, void *ctx)
{
    (void)ctx;
    return jot_less(num(0), s[0]);
}

static void step_down(jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    jot_value n = s[0], m = sub(n, one()), up = add(p->a, m), down = add(up, n);
    jot_value is_last = jot_equal(m, num(0)), factor = jot_where(is_last, one(), up);
    jot_value w = over(p->x, jot_where(is_last, one(), sub(down, num(2))));
    w = mul(mul(m, sub(p->b, m)), w);
    jot_value rest = add(add(p->l, one()), mul(m, add(one(), p->y)));
    jot_value denominator = add(add(m, w), mul(over(factor, down), rest));
    jot_value far = mul(over(add(up, p->b), down), p->x);
    jot_value numerator = mul(mul(factor, far), mul(mul(n, sub(p->b, n)), over(p->x, down)));
    s[1] = add(denominator, over(numerator, s[1]));
    s[0] = m;
}

// The fraction times a, for which a_1 and b_0 are divided by it.  Its derivatives are those of
// the sum from below, of as many terms as it takes; from above, near the mean, the first ones
// would be far larger.
static jot_value fraction(struct arguments p)
{
    struct arguments q = p;
    if (p.is_derived) {
        q.a = jot_stop_gradient(p.a);
        q.b = jot_stop_gradient(p.b);
        q.l = jot_stop_gradient(p.l);
    }
    jot_value first = over(add(q.a, one()), add(q.l, one())), zero = jot_zeros_like(q.a);
    jot_value c[F_CARRIES] = {zero, jot_ones_like(q.a), first, first, first, zero, first};
    int n = p.is_derived ? F_CARRIES : F_BOUND;
    jot_while_at(fraction_goes_on, fraction_step, &q, n, c, NULL, "jot_betainc");
    if (!p.is_derived)
        return add(c[F_SUM], c[F_REST]);
    jot_value s[] = {add(c[F_N], one()), jot_full_like(p.a, num(0x1p100))};
    jot_while_at(is_above_0, step_down, &p, 2, s, NULL, "jot_betainc");
    return over(one(), s[1]);
}

// n, the product of (k - b) x/k, the sum of them over a + n, and the bound.
static jot_value series_goes_on(const jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    // The sum for a whole b may be 0.
    return p->is_derived ? moves(p, s[3], add(jot_abs(s[2]), one()), s[0])
                         : moves(p, s[1], s[2], s[0]);
}

static void series_step(jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    s[0] = add(s[0], one());
    jot_value step = over(p->x, s[0]);
    s[1] = mul(s[1], mul(sub(s[0], p->b), step));
    s[2] = add(s[2], over(s[1], add(p->a, s[0])));
    if (p->is_derived)
        s[3] = mul(s[3], mul(bounded(p, s[0]), step));
}

// The logarithm of b/(a + b) and that itself, with derivatives that do not cancel.
static jot_value log_share(jot_value a, jot_value b) { return jot_neg(jot_log1p(over(a, b))); }

static jot_value share(jot_value a, jot_value b) { return over(b, add(a, b)); }

static jot_value log_share_rule(jot_value a, jot_value b, jot_value da, jot_value db)
{
    jot_value sum = add(a, b);
    return sub(mul(db, over(over(a, sum), b)), over(da, sum));
}

static jot_value share_rule(jot_value a, jot_value b, jot_value da, jot_value db)
{
    jot_value sum = add(a, b);
    return over(sub(mul(db, over(a, sum)), mul(da, over(b, sum))), sum);
}

// For a <= 1: g, e^g, of which g is far larger than its error for b near 0, and a s.
static jot_value series(struct arguments p, jot_value *g, jot_value *power)
{
    jot_value zero = jot_zeros_like(p.a), unit = jot_ones_like(p.a),
              c[] = {zero, unit, zero, unit};
    int n = p.is_derived ? 4 : 3;
    jot_while_at(series_goes_on, series_step, &p, n, c, NULL, "jot_betainc");
    jot_value rest = sub(special_gamma_difference(p.a, p.b), special_log_gamma_1p(p.a));
    jot_value scaled = mul(p.x, add(p.b, num(SPECIAL_SHIFT)));
    rest = add(mul(p.a, jot_log(scaled)), rest);
    *g = add(rest, TRACE_RULED("jot_betainc: share", log_share, log_share_rule, p.a, p.b));
    jot_value first = TRACE_RULED("jot_betainc: share", share, share_rule, p.a, p.b);
    *power = mul(first, jot_exp(rest));
    return mul(p.a, c[2]);
}

// a (1 - x) - b x
static jot_value distance(jot_value a, jot_value b, jot_value x)
{
    jot_value y = sub(one(), x), rounding = sub(sub(one(), y), x);
    return special_beta_distance(a, b, x, y, rounding);
}

static jot_value by_normal(jot_value a, jot_value b, jot_value x)
{
    // Beyond a change of 0.3 the result is 0 or 1 in any case.
    jot_value l = distance(a, b, x), end = num(0.3);
    jot_value in_a = jot_clip(jot_neg(over(l, a)), jot_neg(end), end);
    jot_value in_b = jot_clip(over(l, b), jot_neg(end), end);
    jot_value sum = add(over(special_excess_near(in_a), a), over(special_excess_near(in_b), b));
    jot_value root = jot_neg(mul(l, jot_sqrt(sum))), ratio = over(a, b);
    jot_value up = add(one(), ratio), weight = over(a, up);
    jot_value skew = over(sub(one(), ratio), mul(num(3 * sqrt(2 * M_PI)), up));
    jot_value tail = mul(jot_exp(jot_neg(jot_square(root))), over(skew, jot_sqrt(weight)));
    return add(mul(num(0.5), jot_erfc(jot_neg(root))), tail);
}

static jot_value is_inside(jot_value a, jot_value b, jot_value x)
{
    jot_value zero = num(0), infinity = num(INFINITY);
    jot_value y = both(jot_less(zero, x), jot_less(x, one()));
    y = both(y, both(jot_less(zero, a), jot_less(a, infinity)));
    return both(y, both(jot_less(zero, b), jot_less(b, infinity)));
}

// Where there is a value, and not only NaN.
static jot_value is_defined(jot_value a, jot_value b, jot_value x)
{
    jot_value zero = num(0), least = jot_minimum(a, b);
    jot_value y = both(jot_less_equal(zero, x), jot_less_equal(x, one()));
    y = both(y, jot_less_equal(zero, least));
    y = both(y, jot_not_equal(add(a, b), zero));
    return both(y, jot_less(least, num(INFINITY)));
}

// What is known outside: steps at 0 and 1.
static jot_value border(jot_value a, jot_value b, jot_value x)
{
    jot_value zero = num(0), infinity = num(INFINITY);
    jot_value at_0 = either(jot_equal(a, zero), jot_equal(b, infinity));
    jot_value at_1 = either(jot_equal(b, zero), jot_equal(a, infinity));
    jot_value y = jot_where(at_0, jot_where(jot_less(zero, x), one(), zero),
                            jot_where(at_1, jot_where(jot_less(x, one()), zero, one()), x));
    return jot_where(is_defined(a, b, x), y, num(NAN));
}

// By the fraction, and by the series where that is as good.
static jot_value by_sums(jot_value a, jot_value b, jot_value x, bool is_derived)
{
    jot_value y = sub(one(), x), l = distance(a, b, x);
    // From the mean on; with a or b up to 1 near it, but not where the series would cancel.
    jot_value u = jot_minimum(a, b), v = jot_maximum(a, b),
              is_small_u = jot_less_equal(u, one());
    jot_value end = over(add(u, one()), add(add(u, v), num(2)));
    end = jot_where(jot_less(num(20), v), jot_minimum(end, over(num(1.25), v)), end);
    jot_value is_a = jot_less_equal(a, b);
    jot_value beyond = jot_where(is_a, jot_less(end, x), jot_less_equal(y, end));
    jot_value swapped = jot_where(is_small_u, beyond, jot_less(l, num(0)));
    struct arguments s = {.a = jot_where(swapped, b, a),
                          .b = jot_where(swapped, a, b),
                          .x = jot_where(swapped, y, x),
                          .y = jot_where(swapped, x, y),
                          .l = jot_where(swapped, jot_neg(l), l),
                          .epsilon = trace_epsilon(jot_value_dtype(a)) / 64,
                          .is_derived = is_derived};
    jot_value result = mul(special_beta_front(a, b, x), over(fraction(s), s.a));
    result = jot_where(swapped, sub(one(), result), result);

    jot_value is_small = jot_less_equal(s.a, one()), g;
    s.a = special_chosen(is_small, s.a, 1);
    s.b = special_chosen(is_small, s.b, 1);
    s.x = special_chosen(is_small, s.x, 0x1p-60);
    jot_value power, sum = series(s, &g, &power);
    jot_value below = mul(power, add(one(), sum));
    jot_value above = jot_neg(add(jot_expm1(g), mul(power, sum)));
    // What is far below 1 has no logarithm for an exponent.
    jot_value is_high = jot_less(num(-1), g);
    above = jot_where(is_high, above, sub(one(), below));
    is_small = both(is_small, either(swapped, is_high));
    return jot_where(is_small, jot_where(swapped, above, below), result);
}

static jot_value regularised(jot_value a, jot_value b, jot_value x, bool is_derived)
{
    double limit = jot_value_dtype(a) == JOT_F64 ? 1e10 : 1e5;
    jot_value inside = is_inside(a, b, x), is_large = jot_less(num(limit), jot_minimum(a, b));
    jot_value large = both(inside, is_large);
    jot_value other = both(inside, jot_logical_not(is_large));
    jot_value by_other = by_sums(special_chosen(other, a, 20), special_chosen(other, b, 20),
                                 special_chosen(other, x, 0.125), is_derived);
    jot_value normal = by_normal(special_chosen(large, a, 1e12), special_chosen(large, b, 1e12),
                                 special_chosen(large, x, 0.5));
    return jot_where(inside, jot_where(is_large, normal, by_other), border(a, b, x));
}

static jot_value lane(jot_value a, jot_value b, jot_value x)
{
    return regularised(a, b, x, false);
}

static jot_value derived_lane(jot_value a, jot_value b, jot_value x)
{
    return regularised(a, b, x, true);
}

// x^(a-1) (1-x)^(b-1) / B(a, b), which is b at 0 for a = 1 and a at 1 for b = 1, and 0 beside a step.
static jot_value density(jot_value a, jot_value b, jot_value x)
{
    jot_value zero = num(0), infinity = num(INFINITY), inside = is_inside(a, b, x);
    jot_value p = special_chosen(inside, a, 1), q = special_chosen(inside, b, 1),
              y = special_chosen(inside, x, 0.5);
    jot_value within = over(special_beta_front(p, q, y), mul(y, sub(one(), y)));
    jot_value a_less = sub(a, one()), b_less = sub(b, one());
    jot_value end = jot_exp(add(jot_xlogy(a_less, x), jot_xlog1py(b_less, jot_neg(x))));
    jot_value at_0 = both(jot_equal(x, zero), jot_equal(a, one()));
    jot_value at_1 = both(jot_equal(x, one()), jot_equal(b, one()));
    end = jot_where(at_0, b, jot_where(at_1, a, end));
    jot_value least = jot_minimum(a, b);
    jot_value finite = jot_less(jot_maximum(a, b), infinity);
    jot_value within_1 = both(jot_less(zero, x), jot_less_equal(x, one()));
    jot_value beside = jot_where(finite, jot_equal(least, zero), jot_less(x, one()));
    jot_value valid = both(jot_less(zero, least), finite);
    end = jot_where(valid, end, jot_where(both(beside, within_1), zero, num(NAN)));
    return jot_where(inside, within, end);
}

// In x the density, in a and b forward through the fraction.
static jot_value rule(jot_value a, jot_value b, jot_value x, jot_value da, jot_value db,
                      jot_value dx)
{
    static const int first[] = {0, JOT_END}, second[] = {1, JOT_END};
    jot_function f =
        jot_function_plain("jot_betainc", "jot_betainc", 3, (void (*)(void))derived_lane);
    jot_value in[] = {a, b, x, jot_ones_like(a)}, in_a[2], in_b[2];
    jot_apply_at(jot_jvp_of(f, "jot_betainc", first), 4, in, 2, in_a, NULL);
    jot_apply_at(jot_jvp_of(f, "jot_betainc", second), 4, in, 2, in_b, NULL);
    jot_value defined = is_defined(a, b, x), none = trace_nan_of(3, in);
    // At an end of a or b the value is a constant.
    jot_value ends = jot_equal(jot_minimum(a, b), num(0));
    jot_value inner = both(defined, jot_logical_not(ends));
    jot_value slope_a = jot_where(inner, in_a[1], none);
    jot_value slope_b = jot_where(inner, in_b[1], none);
    jot_value slope_x = density(a, b, x);
    slope_x = jot_where(ends, add(slope_x, trace_without_slope(mul(a, b))), slope_x);
    slope_x = jot_where(defined, slope_x, none);
    return add(add(trace_along(da, slope_a), trace_along(db, slope_b)),
               trace_along(dx, slope_x));
}

jot_value jot_betainc(jot_value a, jot_value b, jot_value x)
{
    return TRACE_RULED_LANES("jot_betainc", lane, rule, a, b, x);
}
