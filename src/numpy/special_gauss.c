// SPDX-License-Identifier: Apache-2.0
// Gauss' hypergeometric function with its derivatives, in double-double arithmetic, and Owen's T.
#include "numpy/double_double.h"
#include "numpy/special_parts.h"
#include "trace/lanes.h"

#include "jot/numeric.h"
#include "jot/special.h"
#include "jot/transform.h"

#include <math.h>

// ---- Gauss' function
//
// F solves x (1-x) F'' + (c - (a+b+1) x) F' - a b F = 0.  By its series at 0 up to |x| = 1/2, and
// from there by Taylor series of that solution, each to half the distance to the next of 0 and 1.
// So c - a - b and a - b may be whole, where formulas for 1 - x and 1/x have logarithms.
// Derivatives in x are quotients of Pochhammer symbols times F(a + 1, b + 1; c + 1; x), ..., and
// those in a, b and c are taken of each term.  A series that ends is summed anywhere, that of
// F(c - a, c - b; c; x) too (DLMF 15.8.1): there the solution is the one that other errors outgrow.

enum { IN_A, IN_B, IN_C, IN_X, OPERANDS };

struct gauss {
    struct double_double a, b, c; // of the series
    jot_value x, first;           // the point, and how far the series at 0 goes
    int orders[OPERANDS];
    int n; // of terms and their derivatives
};

enum { MOST_TERMS = 4, PARTS = 4, MOST_CARRIES = 2 * PARTS * MOST_TERMS + 3 };

// Carries: the double-double terms, then the sums for F and for h F' of a step of length h, then
// the terms after those; and then the index, and where a step starts and how far it goes.
enum part { TERM, SUM, SLOPE, NEXT };

static int at(const struct gauss *p, enum part part, int i) { return 2 * (part * p->n + i); }
static int index_at(const struct gauss *p, int parts) { return 2 * parts * p->n; }

// The number of the derivative of these orders in a, b and c; -1 of negative ones.
static int number_of(const struct gauss *p, int a, int b, int c)
{
    if (a < 0 || b < 0 || c < 0)
        return -1;
    return (a * (p->orders[IN_B] + 1) + b) * (p->orders[IN_C] + 1) + c;
}

static struct double_double load_term(const struct gauss *p, const jot_value *v, enum part part,
                                      int i)
{
    if (i < 0)
        return dd_of(num(0));
    return (struct double_double){v[at(p, part, i)], v[at(p, part, i) + 1]};
}

static void store(const struct gauss *p, jot_value *v, enum part part, int i,
                  struct double_double x)
{
    v[at(p, part, i)] = x.high;
    v[at(p, part, i) + 1] = x.low;
}

static void add_scaled(struct double_double *sum, struct double_double x, double y)
{
    if (y != 0)
        *sum = dd_add(*sum, y == 1 ? x : dd_scale(x, num(y)));
}

// t (a + k) (b + k) and its derivatives, of a term t.
static void times_upper(const struct gauss *p, const jot_value *v, jot_value k,
                        struct double_double *out)
{
    struct double_double up_a = dd_shift(p->a, k), up_b = dd_shift(p->b, k);
    struct double_double both_up = dd_mul(up_a, up_b);
    for (int a = 0; a <= p->orders[IN_A]; a++)
        for (int b = 0; b <= p->orders[IN_B]; b++)
            for (int c = 0; c <= p->orders[IN_C]; c++) {
                struct double_double sum =
                    dd_mul(both_up, load_term(p, v, TERM, number_of(p, a, b, c)));
                if (a > 0)
                    add_scaled(&sum,
                               dd_mul(up_b, load_term(p, v, TERM, number_of(p, a - 1, b, c))),
                               a);
                if (b > 0)
                    add_scaled(&sum,
                               dd_mul(up_a, load_term(p, v, TERM, number_of(p, a, b - 1, c))),
                               b);
                add_scaled(&sum, load_term(p, v, TERM, number_of(p, a - 1, b - 1, c)), a * b);
                out[number_of(p, a, b, c)] = sum;
            }
}

// Of the series at 0 the next terms, times (a + k) (b + k) x / ((c + k) divisor): of t (c + k) = u
// the n-th derivative in c is t_n (c + k) + n t_(n-1) = u_n.
static void multiply(const struct gauss *p, jot_value *v, jot_value k, jot_value x,
                     jot_value divisor)
{
    struct double_double up[MOST_TERMS], down = dd_shift(p->c, k);
    times_upper(p, v, k, up);
    struct double_double inverse = dd_div(dd_of(num(1)), dd_scale(down, divisor));
    jot_value is_end = both(jot_equal(up[0].high, num(0)), jot_equal(down.high, num(0)));
    inverse = dd_where(is_end, dd_of(num(0)), inverse); // F(0, b; 0; x) is 1
    for (int i = 0; i < p->n; i++) {
        int c = i % (p->orders[IN_C] + 1);
        struct double_double u = dd_scale(up[i], x);
        if (c > 0)
            u = dd_add(u, dd_scale(load_term(p, v, TERM, i - 1), mul(num(-c), divisor)));
        store(p, v, TERM, i, dd_mul(u, inverse));
    }
}

// Terms of the highest derivative and of those it is made of, beside the sum.
static jot_value is_small(const struct gauss *p, const jot_value *v, enum part last)
{
    jot_value size = num(0);
    for (int i = 0; i < p->n; i++) {
        size = add(size, jot_abs(v[at(p, TERM, i)]));
        if (last == NEXT)
            size = add(size, jot_abs(v[at(p, NEXT, i)]));
    }
    jot_value small = mul(num(0x1p-100), jot_abs(v[at(p, SUM, p->n - 1)]));
    return either(jot_less_equal(size, small), jot_not_equal(size, size));
}

// Terms that have become small stay so; at 0 the first ones have derivatives all the same.
static jot_value is_settled(const struct gauss *p, jot_value k)
{
    enum { LONGEST = 3000 };
    jot_value late = both(jot_less(num(5), k), jot_less(num(0), add(p->c.high, k)));
    return either(late, jot_less(num(LONGEST), k));
}

static jot_value series_goes_on(const jot_value *v, void *ctx)
{
    const struct gauss *p = ctx;
    jot_value k = v[index_at(p, 3)], is_none = num(1);
    for (int i = 0; i < p->n; i++)
        is_none = both(is_none, jot_equal(v[at(p, TERM, i)], num(0)));
    jot_value is_end = both(is_none, jot_not_equal(p->first, num(0)));
    jot_value is_done = either(is_end, both(is_small(p, v, SLOPE), is_settled(p, k)));
    return both(jot_logical_not(is_done), jot_less(k, num(10000)));
}

static void add_terms(const struct gauss *p, jot_value *v, jot_value k)
{
    for (int i = 0; i < p->n; i++) {
        struct double_double term = load_term(p, v, TERM, i);
        store(p, v, SUM, i, dd_add(load_term(p, v, SUM, i), term));
        store(p, v, SLOPE, i, dd_add(load_term(p, v, SLOPE, i), dd_scale(term, k)));
    }
}

static void series_step(jot_value *v, void *ctx)
{
    const struct gauss *p = ctx;
    jot_value k = v[index_at(p, 3)], next = add(k, num(1));
    add_terms(p, v, k);
    multiply(p, v, k, p->first, next);
    v[index_at(p, 3)] = next;
}

static jot_value step_goes_on(const jot_value *v, void *ctx)
{
    const struct gauss *p = ctx;
    return jot_not_equal(v[index_at(p, PARTS) + 2], num(0));
}

// From `start`.
static jot_value length_of_step(const struct gauss *p, jot_value start)
{
    jot_value half = mul(num(0.5), sub(num(1), start)), end = mul(num(1.5), start);
    jot_value is_below = jot_less(start, num(0)), rest = sub(p->x, start);
    return jot_where(is_below, jot_maximum(rest, sub(end, start)), jot_minimum(rest, half));
}

// Where a step is done the next one starts there.
static void begin_step(const struct gauss *p, jot_value *v, jot_value is_done, jot_value start,
                       jot_value length, jot_value last)
{
    struct double_double zero = dd_of(num(0)), ratio = dd_div(dd_of(length), dd_of(last));
    for (int i = 0; i < p->n; i++) {
        struct double_double sum = load_term(p, v, SUM, i), slope = load_term(p, v, SLOPE, i);
        struct double_double term = load_term(p, v, TERM, i), next = load_term(p, v, NEXT, i);
        store(p, v, TERM, i, dd_where(is_done, sum, term));
        store(p, v, NEXT, i, dd_where(is_done, dd_mul(slope, ratio), next));
        store(p, v, SUM, i, dd_where(is_done, zero, sum));
        store(p, v, SLOPE, i, dd_where(is_done, zero, slope));
    }
    jot_value *c = v + index_at(p, PARTS);
    c[0] = jot_where(is_done, num(0), c[0]);
    c[1] = jot_where(is_done, start, c[1]);
    c[2] = jot_where(is_done, length, c[2]);
}

// The terms after the next are, without the overflow of x0^2,
//
//     ((a + k) (b + k) t_k h/(k + 1) - (c - (a + b + 1) x0 + k (1 - 2 x0)) t_(k+1)) h / ((k + 2) x0 (1 - x0))
static void taylor_step(jot_value *v, void *ctx)
{
    const struct gauss *p = ctx;
    jot_value *carries = v + index_at(p, PARTS);
    jot_value k = carries[0], x0 = carries[1], h = carries[2], next = add(k, num(1));
    struct double_double up[MOST_TERMS], rest = dd_difference(num(1), x0);
    add_terms(p, v, k);
    times_upper(p, v, k, up);
    struct double_double one = dd_of(num(1)), q = dd_div(one, rest), u = dd_scale(q, x0);
    struct double_double total = dd_shift(dd_add(p->a, p->b), num(1));
    // Times q.
    struct double_double middle = dd_add(dd_mul(p->c, q), dd_neg(dd_mul(total, u)));
    middle = dd_add(middle, dd_scale(dd_add(q, dd_scale(u, num(-2))), k));
    struct double_double ratio = dd_div(dd_of(h), dd_of(x0)), length = dd_scale(q, h);
    ratio = dd_div(ratio, dd_of(mul(next, add(next, num(1)))));
    struct double_double after[MOST_TERMS];
    for (int a = 0; a <= p->orders[IN_A]; a++)
        for (int b = 0; b <= p->orders[IN_B]; b++)
            for (int c = 0; c <= p->orders[IN_C]; c++) {
                int i = number_of(p, a, b, c);
                struct double_double sum = dd_mul(middle, load_term(p, v, NEXT, i)),
                                     by_x0 = dd_of(num(0));
                add_scaled(&by_x0, load_term(p, v, NEXT, number_of(p, a - 1, b, c)), -a);
                add_scaled(&by_x0, load_term(p, v, NEXT, number_of(p, a, b - 1, c)), -b);
                if (a + b > 0)
                    sum = dd_add(sum, dd_mul(by_x0, u));
                add_scaled(&sum, dd_mul(load_term(p, v, NEXT, number_of(p, a, b, c - 1)), q),
                           c);
                sum = dd_add(dd_mul(up[i], length), dd_scale(sum, jot_neg(next)));
                after[i] = dd_mul(sum, ratio);
            }
    for (int i = 0; i < p->n; i++) {
        store(p, v, TERM, i, load_term(p, v, NEXT, i));
        store(p, v, NEXT, i, after[i]);
    }
    carries[0] = next;
    jot_value is_done = both(is_small(p, v, NEXT), is_settled(p, next)), start = add(x0, h);
    begin_step(p, v, is_done, start, length_of_step(p, start), h);
}

// The highest derivative of the series of p with x-derivatives' factors, at p->x.
static jot_value by_steps(struct gauss p, jot_value a, jot_value b, jot_value c)
{
    jot_value zero = jot_zeros_like(p.x), v[MOST_CARRIES];
    for (int i = 0; i < index_at(&p, PARTS); i++)
        v[i] = i ? zero : jot_ones_like(p.x);
    struct gauss from = p;
    from.a = dd_of(a);
    from.b = dd_of(b);
    from.c = dd_of(c);
    for (int k = 0; k < p.orders[IN_X]; k++)
        multiply(&from, v, num(k), num(1), num(1));
    v[index_at(&p, 3)] = zero;
    size_t count = (size_t)index_at(&p, 3) + 1;
    jot_while_at(series_goes_on, series_step, &p, count, v, NULL, "jot_hyp2f1");
    for (int i = index_at(&p, 3); i < index_at(&p, PARTS); i++)
        v[i] = zero;
    jot_value *carries = v + index_at(&p, PARTS);
    carries[0] = carries[1] = carries[2] = zero;
    jot_value is_there = jot_equal(p.first, p.x), length = length_of_step(&p, p.first);
    length = jot_where(is_there, zero, length);
    begin_step(&p, v, jot_ones_like(is_there), p.first, length,
               jot_where(is_there, num(1), p.first));
    count = (size_t)index_at(&p, PARTS) + 3;
    jot_while_at(step_goes_on, taylor_step, &p, count, v, NULL, "jot_hyp2f1");
    return dd_round(load_term(&p, v, TERM, p.n - 1));
}

// At 1, for c > a + b.
static void value_at_1(const jot_value *v, jot_value *out, void *ctx)
{
    const struct trace_member *m = ctx;
    if (trace_member_from_lower(m, IN_X, value_at_1, v, out))
        return;
    jot_value a = v[IN_A], b = v[IN_B], c = v[IN_C], factor = num(1), one = num(1);
    for (int k = 0; k < m->orders[IN_X]; k++) {
        factor = mul(factor, over(mul(a, b), c));
        a = add(a, one);
        b = add(b, one);
        c = add(c, one);
    }
    jot_value inverse = mul(special_inverse_gamma(sub(c, a)), special_inverse_gamma(sub(c, b)));
    *out = mul(mul(factor, mul(jot_gamma(c), jot_gamma(sub(sub(c, a), b)))), inverse);
}

static jot_value hyp2f1(const jot_value *v, const struct trace_member *m)
{
    jot_value a = wide(v[IN_A]), b = wide(v[IN_B]), c = wide(v[IN_C]), x = wide(v[IN_X]);
    jot_value zero = num(0), one = num(1), is_first = jot_less(a, b);
    const int *orders = m->orders;
    bool is_value = orders[IN_A] + orders[IN_B] + orders[IN_C] == 0;
    bool is_plain = is_value && orders[IN_X] == 0;
    jot_value low = jot_where(is_first, a, b), high = jot_where(is_first, b, a);
    jot_value ends_low = special_is_pole(low), ends_high = special_is_pole(high);
    // It ends before the pole of c, or there is one.
    jot_value last = jot_where(ends_high, high, low);
    jot_value is_one = jot_equal(mul(a, b), zero);
    jot_value is_short = both(either(ends_low, ends_high), either(is_one, jot_less(c, last)));
    jot_value is_infinite = both(special_is_pole(c), jot_logical_not(is_short));
    jot_value is_fine = jot_is_finite(add(add(a, b), add(c, x)));

    jot_value shift = num(orders[IN_X]);
    struct double_double rest_a = dd_difference(c, a), rest_b = dd_difference(c, b);
    jot_value whole_a = both(special_is_pole(rest_a.high), jot_equal(rest_a.low, zero));
    jot_value whole_b = both(special_is_pole(rest_b.high), jot_equal(rest_b.low, zero));
    jot_value ends = jot_not_equal(one, one), turns = ends;
    if (is_value) {
        ends = either(ends_low, ends_high);
        turns = both(either(whole_a, whole_b), jot_logical_not(ends));
        turns = both(turns, jot_less(x, one));
    }
    jot_value gap =
        dd_round(dd_shift(dd_add(dd_difference(c, a), dd_of(jot_neg(b))), jot_neg(shift)));
    jot_value goes = both(is_fine, jot_logical_not(is_infinite));
    goes = both(goes, either(ends, jot_less(x, one)));
    jot_value is_whole = either(ends, turns);
    struct gauss p = {.n = 1};
    memcpy(p.orders, orders, sizeof p.orders);
    for (int i = 0; i < IN_X; i++)
        p.n *= orders[i] + 1;
    p.x = jot_where(goes, x, zero);
    p.first = at_most(at_least(p.x, num(-0.5)), num(0.5));
    p.first = jot_where(is_whole, p.x, p.first);
    p.a = dd_where(turns, rest_a, dd_sum(a, shift));
    p.b = dd_where(turns, rest_b, dd_sum(b, shift));
    p.c = dd_sum(c, shift);
    struct double_double idle = dd_of(one);
    p.a = dd_where(goes, p.a, idle);
    p.b = dd_where(goes, p.b, idle);
    p.c = dd_where(goes, p.c, idle);
    jot_value f =
        by_steps(p, jot_where(goes, a, one), jot_where(goes, b, one), jot_where(goes, c, one));
    // (1 - x)^(c - a - b)
    jot_value y = sub(one, p.x), lost = special_rounding(one, jot_neg(p.x), y);
    jot_value order = jot_where(turns, gap, zero);
    jot_value factor = jot_power(jot_where(turns, y, one), order);
    f = mul(f, mul(factor, add(one, mul(order, over(lost, y)))));

    jot_value at_1, is_1 = both(jot_equal(x, one), jot_less(zero, gap));
    value_at_1((jot_value[]){jot_where(is_1, a, one), jot_where(is_1, b, one),
                             jot_where(is_1, c, num(4)), x},
               &at_1, (void *)(uintptr_t)m);
    jot_value beyond = num(is_plain ? INFINITY : NAN);
    f = jot_where(goes, f, jot_where(is_1, at_1, beyond));
    f = jot_where(is_infinite, beyond, f);
    return jot_astype(jot_where(is_fine, f, num(NAN)), jot_value_dtype(v[IN_X]));
}

TRACE_FAMILY(hyp2f1_family, "jot_hyp2f1", OPERANDS, 2, hyp2f1);

jot_value jot_hyp2f1(jot_value a, jot_value b, jot_value c, jot_value x)
{
    return trace_family_lanes(&hyp2f1_family, (jot_value[]){a, b, c, x});
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
