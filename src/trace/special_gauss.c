// SPDX-License-Identifier: Apache-2.0
// Gauss' hypergeometric function and Owen's T, in double precision.
#include "trace/formula.h"
#include "trace/special_parts.h"

#include "jot/numeric.h"
#include "jot/special.h"
#include "jot/transform.h"

#include <float.h>
#include <math.h>

// ---- Gauss' function
//
// F solves x (1-x) F'' + (c - (a+b+1) x) F' - a b F = 0.  By its series at 0 up to x = 1/2, and
// from there by Taylor series of that solution at 1/2, 3/4, 7/8, ..., each to half the distance
// to 1.  So c - a - b may be whole, where the formula for 1 - x has logarithms.  It is well
// conditioned for c - a - b >= 0, as the other solution, (1-x)^(c-a-b), falls there; elsewhere
// by F = (1-x)^(c-a-b) F(c-a, c-b; c; x), and below 0 by (1-x)^-a F(a, c-b; c; x/(x-1)) (DLMF
// 15.10.1, 15.8.1); but near 0, where summands fall fast, by the series itself: there the
// derivatives of these factors cancel.

struct gauss {
    jot_value a, b, c;
    jot_value first, end; // how far the first step goes, and 1 - x of where it is wanted
    bool is_derived;      // in a, b or c: of derivatives the first summand is 0
};

// The index, two terms, the sums for F and F' of a step; how far it goes, 1 - x where it starts
enum { G_INDEX, G_TERM, G_NEXT, G_SUM, G_SLOPE, G_STEP, G_REST, G_CARRIES };

static jot_value gauss_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_not_equal(c[G_STEP], num(0));
}

static void gauss_step(jot_value *v, void *ctx)
{
    const struct gauss *p = ctx;
    jot_value one = num(1), k = v[G_INDEX], next = add(k, one), rest = v[G_REST];
    jot_value sum = add(v[G_SUM], v[G_TERM]), slope = add(v[G_SLOPE], mul(k, v[G_TERM]));
    // The term after the next: at 0 of a recurrence of two terms, elsewhere of three.
    jot_value is_first = jot_equal(rest, one), x0 = sub(one, rest), h = v[G_STEP];
    jot_value two = mul(mul(add(next, p->a), add(next, p->b)), mul(v[G_NEXT], h));
    two = over(two, mul(add(next, one), add(next, p->c)));
    jot_value total = add(add(p->a, p->b), one);
    jot_value middle = sub(p->c, mul(total, x0));
    middle = add(middle, mul(k, sub(one, mul(num(2), x0))));
    jot_value three = mul(mul(add(k, p->a), add(k, p->b)), mul(v[G_TERM], mul(h, h)));
    three = sub(three, mul(mul(next, middle), mul(v[G_NEXT], h)));
    three = over(three, mul(mul(next, add(next, one)), mul(x0, rest)));
    jot_value after = jot_where(is_first, two, three);

    jot_value most = jot_abs(sum);
    if (p->is_derived)
        most = jot_minimum(most, jot_abs(sub(sum, one)));
    jot_value small = mul(num(DBL_EPSILON / 64), most);
    jot_value is_still = jot_less_equal(add(jot_abs(v[G_NEXT]), jot_abs(after)), small);
    jot_value is_done = either(is_still, jot_less(num(2000), k));
    // The next step starts where this one ends.
    jot_value here = sub(rest, h), half = mul(here, num(0.5));
    jot_value step = sub(here, at_least(p->end, half));
    v[G_INDEX] = jot_where(is_done, num(0), next);
    v[G_TERM] = jot_where(is_done, sum, v[G_NEXT]);
    v[G_NEXT] = jot_where(is_done, over(mul(slope, step), h), after);
    v[G_SUM] = jot_where(is_done, num(0), sum);
    v[G_SLOPE] = jot_where(is_done, num(0), slope);
    v[G_STEP] = jot_where(is_done, step, h);
    v[G_REST] = jot_where(is_done, here, rest);
}

// For 0 < end; the last sum stands as the first term of a step of 0.
static jot_value gauss_from_0(struct gauss p)
{
    jot_value zero = jot_zeros_like(p.end), one = jot_ones_like(p.end);
    jot_value first = over(mul(mul(p.a, p.b), p.first), p.c);
    jot_value v[G_CARRIES] = {zero, one, first, zero, zero, p.first, one};
    jot_while_at(gauss_goes_on, gauss_step, &p, G_CARRIES, v, NULL, "jot_hyp2f1");
    return v[G_TERM];
}

// The sum of a series that ends, anywhere.
struct ended {
    jot_value a, b, c, x;
};

// 0, -1, -2, ...
static jot_value is_pole(jot_value x)
{
    return both(jot_less_equal(x, num(0)), jot_equal(x, jot_floor(x)));
}

// At 0 the first summands have derivatives all the same.
static jot_value ended_goes_on(const jot_value *v, void *ctx)
{
    const struct ended *p = ctx;
    jot_value is_start = both(jot_equal(p->x, num(0)), jot_less(v[0], num(6)));
    is_start = both(is_start, jot_logical_not(is_pole(p->c)));
    return both(either(is_start, jot_not_equal(v[1], num(0))), jot_less(v[0], num(5000)));
}

static void ended_step(jot_value *v, void *ctx)
{
    const struct ended *p = ctx;
    jot_value next = add(v[0], num(1)), up = mul(add(p->a, v[0]), add(p->b, v[0]));
    v[1] = over(mul(mul(v[1], p->x), up), mul(next, add(p->c, v[0])));
    v[0] = next;
    v[2] = add(v[2], v[1]);
}

static jot_value gauss_ended(struct ended p)
{
    jot_value one = jot_ones_like(p.x), v[] = {jot_zeros_like(p.x), one, one};
    jot_while_at(ended_goes_on, ended_step, &p, 3, v, NULL, "jot_hyp2f1");
    return v[2];
}

// Which parameter F is derived in, or none.
enum derived { IN_A, IN_B, IN_C, IN_NONE };

// Of a and b the one that stays as it is, and the one that is taken from c.
struct pair {
    jot_value kept, left;
};

// Summands of one sign have derivatives of one sign in what is left and in c, if c is the larger.
// A series that ends has no derivative behind its end.
static struct pair pair_of(jot_value a, jot_value b, jot_value c, enum derived in)
{
    jot_value is_first = jot_less(a, b);
    jot_value low = jot_where(is_first, a, b), high = jot_where(is_first, b, a);
    if (in == IN_NONE)
        return (struct pair){low, high};
    jot_value left = in == IN_A   ? a
                     : in == IN_B ? b
                                  : high,
              kept = in == IN_A   ? b
                     : in == IN_B ? a
                                  : low;
    jot_value rest = sub(c, left), turns = is_pole(rest);
    if (in == IN_C)
        turns = either(turns, jot_less(rest, mul(num(0.125), c)));
    return (struct pair){jot_where(turns, left, kept), jot_where(turns, kept, left)};
}

// Whether a summand is at most 1/4 of the one before.
static jot_value is_near(jot_value a, jot_value b, jot_value c, jot_value x)
{
    jot_value positive = jot_less(num(0), c), safe = jot_where(positive, c, num(1));
    jot_value ratio =
        mul(jot_maximum(jot_abs(a), num(1)), jot_maximum(over(jot_abs(b), safe), num(1)));
    return both(positive, jot_less_equal(mul(jot_abs(x), ratio), num(0.25)));
}

static jot_value gauss(jot_value in_a, jot_value in_b, jot_value in_c, jot_value in,
                       enum derived in_which)
{
    jot_value a = wide(in_a), b = wide(in_b), c = wide(in_c), x = wide(in);
    jot_value zero = num(0), one = num(1), is_first = jot_less(a, b);
    jot_value low = jot_where(is_first, a, b), high = jot_where(is_first, b, a);
    jot_value ends_a = is_pole(low), ends_b = is_pole(high), ends = either(ends_a, ends_b);
    // It ends before the pole of c, or there is one.
    jot_value last = jot_where(ends_b, high, low);
    jot_value is_one = jot_equal(mul(a, b), zero);
    jot_value is_short = both(ends, either(is_one, jot_less(c, last)));
    jot_value is_infinite = both(is_pole(c), jot_logical_not(is_short));
    ends = either(ends, jot_equal(x, zero));
    jot_value is_fine = jot_is_finite(add(add(a, b), add(c, x)));
    jot_value goes =
        both(both(is_fine, jot_logical_not(either(ends, is_infinite))), jot_less(x, one));

    jot_value y = jot_where(goes, sub(one, x), one), gap = sub(sub(c, low), high);
    jot_value turns = jot_logical_not(is_near(a, b, c, x));
    jot_value is_below = both(turns, jot_less(x, zero));
    jot_value is_falling = both(both(turns, jot_less(zero, x)), jot_less(gap, zero));
    struct pair p = pair_of(a, b, c, in_which);
    if (in_which != IN_NONE) {
        jot_value ends_falling = either(is_pole(sub(c, low)), is_pole(sub(c, high)));
        is_falling = both(is_falling, jot_logical_not(ends_falling));
    }
    jot_value turned = jot_where(is_falling, sub(c, p.kept), p.kept);
    jot_value other = jot_where(either(is_below, is_falling), sub(c, p.left), p.left);
    jot_value order = jot_where(is_below, jot_neg(p.kept), jot_where(is_falling, gap, zero));
    jot_value at = jot_where(is_below, over(x, sub(x, one)), x);
    jot_value is_one_step = jot_less_equal(at, num(0.5));
    jot_value end = jot_where(is_one_step, sub(one, at), jot_where(is_below, over(one, y), y));
    jot_value half = num(0.5), first = jot_where(is_one_step, at, half);
    struct gauss from = {jot_where(goes, turned, zero), jot_where(goes, other, zero),
                         jot_where(goes, c, one),       jot_where(goes, first, half),
                         jot_where(goes, end, half),    in_which != IN_NONE};
    jot_value factor = jot_power(y, order), lost = special_rounding(one, jot_neg(x), y);
    factor = mul(factor, add(one, mul(order, over(jot_where(is_below, lost, zero), y))));
    jot_value f = mul(gauss_from_0(from), factor);

    jot_value is_ended = both(both(ends, is_fine), jot_logical_not(is_infinite));
    jot_value sum = gauss_ended(
        (struct ended){jot_where(is_ended, low, zero), jot_where(is_one, zero, high),
                       jot_where(both(is_ended, jot_logical_not(is_one)), c, one),
                       jot_where(is_ended, x, zero)});
    jot_value at_1 = over(mul(jot_gamma(c), jot_gamma(gap)),
                          mul(jot_gamma(sub(c, low)), jot_gamma(sub(c, high))));
    at_1 = jot_where(either(is_pole(sub(c, low)), is_pole(sub(c, high))), zero, at_1);
    at_1 = jot_where(jot_less(zero, gap), at_1, num(INFINITY));
    f = jot_where(jot_less(one, x), num(INFINITY), jot_where(jot_equal(x, one), at_1, f));
    f = jot_where(is_ended, sum, jot_where(is_infinite, num(INFINITY), f));
    // In NaN the slope is NaN as well.
    jot_value none = trace_nan_of(4, (jot_value[]){a, b, c, x});
    return jot_astype(jot_where(is_fine, f, none), jot_value_dtype(in));
}

static jot_value hyp2f1(jot_value a, jot_value b, jot_value c, jot_value x)
{
    return gauss(a, b, c, x, IN_NONE);
}

static void hyp2f1_derived(const jot_value *x, jot_value *out, void *ctx)
{
    *out = gauss(x[0], x[1], x[2], x[3], *(const enum derived *)ctx);
}

// In x, dF/dx = a b/c F(a + 1, b + 1; c + 1; x); in a, b and c forward through the series, which
// where they end without the parameter's derivative end too soon.
static jot_value hyp2f1_rule(jot_value a, jot_value b, jot_value c, jot_value x, jot_value da,
                             jot_value db, jot_value dc, jot_value dx)
{
    jot_value one = num(1), f = hyp2f1(add(a, one), add(b, one), add(c, one), x);
    jot_value all = mul(dx, mul(over(mul(a, b), c), f)), tangents[] = {da, db, dc};
    jot_value ends = both(either(is_pole(a), is_pole(b)), jot_not_equal(x, num(0)));
    jot_value none = both(both(is_pole(sub(c, a)), is_pole(sub(c, b))), jot_less(x, num(0)));
    none = both(none, jot_logical_not(is_near(wide(a), wide(b), wide(c), wide(x))));
    ends = either(ends, none);
    static const enum derived parameters[] = {IN_A, IN_B, IN_C};
    for (int i = 0; i < 3; i++) {
        jot_function whole = jot_function_uniform("jot_hyp2f1", "jot_hyp2f1", hyp2f1_derived, 4,
                                                  1, (void *)(uintptr_t)&parameters[i]);
        const int which[] = {i, JOT_END};
        jot_value in[] = {a, b, c, x, jot_ones_like(a)}, out[2];
        jot_apply_at(jot_jvp_of(whole, "jot_hyp2f1", which), 5, in, 2, out, NULL);
        jot_value unknown = i < 2 ? ends : none;
        all = add(all, mul(tangents[i], jot_where(unknown, trace_nan_of(4, in), out[1])));
    }
    return all;
}

jot_value jot_hyp2f1(jot_value a, jot_value b, jot_value c, jot_value x)
{
    return TRACE_RULED_LANES("jot_hyp2f1", hyp2f1, hyp2f1_rule, a, b, c, x);
}

// ---- Owen's T
//
//     T(h, a) = 1/(2 pi) int_0^a e^(-h^2 (1 + x^2)/2) / (1 + x^2) dx
//
// for a <= 1 by Gauss' quadrature up to where the integrand is nothing, whose summands have one
// sign; for larger a by (Q(h) + Q(a h))/2 - Q(h) Q(a h) - T(a h, 1/a), Q(x) = erfc(x/sqrt(2))/2
// (D. Owen, Tables for computing bivariate normal probabilities, 1956).

// Nodes and weights on [0, 1] and their mirror images.
enum { NODES = 12 };
static const double owen_node[NODES] = {
    0.0024063900014893199, 0.012635722014345251, 0.030862723998633621, 0.056792236497799483,
    0.089999007013048539,  0.12993790421072282,  0.17595317403151222,  0.22728926430558023,
    0.28310324618697743,   0.34247866015191831,  0.40444056626319185,  0.46797155356869719};
static const double owen_weight[NODES] = {
    0.0061706148999935998, 0.014265694314466832, 0.022138719408709903, 0.02964929245771839,
    0.036673240705540153,  0.043095080765976638, 0.048809326052056944, 0.053722135057982817,
    0.057752834026862801,  0.060835236463901696, 0.062918728173414148, 0.063969097673376078};

// For h >= 0 and 0 <= a <= 1, times 2 pi.
static jot_value owen_sum(jot_value h, jot_value a)
{
    jot_value length = jot_minimum(a, over(num(8.6), h)), sum = num(0);
    jot_value half = mul(mul(h, h), num(-0.5));
    for (int i = 0; i < 2 * NODES; i++) {
        int k = i / 2;
        double node = i % 2 ? 1 - owen_node[k] : owen_node[k];
        jot_value square = jot_square(mul(length, num(node)));
        jot_value y = over(jot_exp(mul(half, square)), add(square, num(1)));
        sum = add(sum, mul(num(owen_weight[k]), y));
    }
    return mul(mul(sum, length), jot_exp(half));
}

static jot_value owens_t(jot_value in_h, jot_value in_a)
{
    // From there on e^(-h^2/2) is 0.
    jot_value h = jot_minimum(jot_abs(wide(in_h)), num(50)), a = jot_abs(wide(in_a));
    jot_value is_large = jot_less(num(1), a), zero = num(0);
    jot_value product = jot_where(jot_equal(h, zero), zero, mul(h, a));
    product = jot_minimum(product, num(50));
    jot_value sum =
        owen_sum(jot_where(is_large, product, h), jot_where(is_large, over(num(1), a), a));
    jot_value t = mul(sum, num(0.5 * M_1_PI));
    jot_value q = jot_erfc(mul(h, num(M_SQRT1_2))), r = jot_erfc(mul(product, num(M_SQRT1_2)));
    jot_value whole = add(q, sub(r, mul(q, r)));
    t = jot_where(is_large, sub(mul(num(0.25), whole), t), t);
    jot_value sides = add(wide(in_h), wide(in_a));
    jot_value is_none = either(jot_is_nan(wide(in_h)), jot_is_nan(wide(in_a)));
    t = jot_where(is_none, sides, jot_copysign(t, wide(in_a)));
    return jot_astype(t, jot_value_dtype(in_h));
}

// dT/dh = -erf(a h/sqrt(2)) e^(-h^2/2)/(2 sqrt(2 pi)), dT/da the integrand at a.
static jot_value owens_t_rule(jot_value h, jot_value a, jot_value dh, jot_value da)
{
    jot_value least = jot_minimum(jot_abs(h), jot_abs(a)),
              most = jot_maximum(jot_abs(h), jot_abs(a));
    jot_value is_limit = both(jot_equal(least, num(0)), jot_equal(most, num(INFINITY)));
    jot_value none = trace_without_slope(special_chosen(is_limit, least, 1));
    jot_value product = jot_where(is_limit, none, mul(a, h)), half = num(-0.5);
    jot_value by_h = jot_exp(mul(half, mul(h, h)));
    jot_value in_h = mul(jot_erf(mul(product, num(M_SQRT1_2))), by_h);
    jot_value by_both = mul(by_h, jot_exp(mul(half, mul(product, product))));
    jot_value in_a = over(by_both, add(num(1), mul(a, a)));
    return add(mul(dh, mul(in_h, num(-0.19947114020071634))),
               mul(da, mul(in_a, num(0.5 * M_1_PI))));
}

jot_value jot_owens_t(jot_value h, jot_value a)
{
    return TRACE_RULED_LANES("jot_owens_t", owens_t, owens_t_rule, h, a);
}
