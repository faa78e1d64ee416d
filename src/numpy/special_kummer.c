// SPDX-License-Identifier: Apache-2.0
// Kummer's function with its derivatives, in double-double arithmetic.
//
// By its series, for x < 0 by e^x M(b - a, b, -x), whose terms do not alternate for b > a; beyond
// 600 by the series in 1/x (DLMF 13.2.39, 13.7.1, 13.7.2).  Derivatives in x are quotients of
// Pochhammer symbols times M(a + 1, b + 1, x), ..., and those in a and b are taken of each term.
#include "numpy/double_double.h"
#include "numpy/special_parts.h"
#include "trace/lanes.h"

#include "jot/special.h"

#include <math.h>

enum { IN_A, IN_B, IN_X, OPERANDS };
enum { FAR = 600 };

// The series M(up, down, x), whose `up` has the derivatives up_in_a and up_in_b in a and b, and
// whose `down` moves with b.
struct kummer {
    struct double_double up, down;
    jot_value up_in_a, up_in_b, x, b;
    int orders[OPERANDS];
};

// Carries: a term and its derivatives up to those orders in a and b, double-double, the sum of
// the last of these, and the index.
enum { MOST_TERMS = 4, MOST_CARRIES = 2 * MOST_TERMS + 3 };

static int term_at(const struct kummer *p, int in_a, int in_b)
{
    return 2 * (in_a * (p->orders[IN_B] + 1) + in_b);
}

static int sum_at(const struct kummer *p)
{
    return term_at(p, p->orders[IN_A], p->orders[IN_B]) + 2;
}

static struct double_double load_term(const jot_value *c, int at)
{
    return (struct double_double){c[at], c[at + 1]};
}

static void store(jot_value *c, int at, struct double_double x)
{
    c[at] = x.high;
    c[at + 1] = x.low;
}

// Multiplies terms by up x / (down divisor), of derivatives `in_a` and `in_b` of `up` and 1 of
// `down`: of t down = u the q-th derivative in b is t_q down + q t_(q-1) = u_q.
static void multiply(const struct kummer *p, jot_value *c, struct double_double up,
                     struct double_double down, jot_value in_a, jot_value in_b, jot_value x,
                     jot_value divisor)
{
    struct double_double inverse = dd_div(dd_of(num(1)), dd_scale(down, divisor));
    // M(-n, -n, x) ends.
    jot_value is_end = both(jot_equal(up.high, num(0)), jot_equal(down.high, num(0)));
    if (p->orders[IN_A] == 0)
        inverse = dd_where(is_end, dd_of(num(0)), inverse);
    for (int i = p->orders[IN_A]; i >= 0; i--) {
        struct double_double before = dd_of(num(0)), last = before;
        for (int j = 0; j <= p->orders[IN_B]; j++) {
            struct double_double term = load_term(c, term_at(p, i, j)), u = dd_mul(up, term);
            if (i > 0) {
                struct double_double lower = load_term(c, term_at(p, i - 1, j));
                u = dd_add(u, dd_scale(lower, mul(num(i), in_a)));
            }
            if (j > 0)
                u = dd_add(u, dd_scale(before, mul(num(j), in_b)));
            u = dd_scale(u, x);
            if (j > 0)
                u = dd_add(u, dd_scale(last, mul(num(-j), divisor)));
            before = term;
            last = dd_mul(u, inverse);
            store(c, term_at(p, i, j), last);
        }
    }
}

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct kummer *p = ctx;
    int at = sum_at(p);
    jot_value k = c[at + 2], size = num(0);
    for (int i = 0; i < at; i += 2)
        size = add(size, jot_abs(c[i]));
    // At 0 the first terms have derivatives all the same.
    jot_value is_none = jot_equal(size, num(0));
    is_none = both(is_none, either(jot_not_equal(p->x, num(0)), special_is_pole(p->b)));
    jot_value up = add(p->up.high, k), down = add(p->down.high, k);
    jot_value falls = jot_less(mul(num(2), mul(jot_abs(up), p->x)), mul(down, add(k, num(1))));
    jot_value is_small = jot_less_equal(size, mul(num(0x1p-80), jot_abs(c[at])));
    jot_value is_settled = both(both(falls, is_small), jot_less(num(5), k));
    jot_value is_done = either(either(is_none, is_settled), jot_not_equal(size, size));
    return both(jot_logical_not(is_done), jot_less(k, num(10000)));
}

static void step(jot_value *c, void *ctx)
{
    const struct kummer *p = ctx;
    int at = sum_at(p);
    jot_value k = c[at + 2], next = add(k, num(1));
    multiply(p, c, dd_shift(p->up, k), dd_shift(p->down, k), p->up_in_a, p->up_in_b, p->x,
             next);
    store(c, at, dd_add(load_term(c, at), load_term(c, at - 2)));
    c[at + 2] = next;
}

static jot_value by_series(jot_value a, jot_value b, jot_value x, const int *orders)
{
    jot_value zero = jot_zeros_like(x), one = jot_ones_like(x);
    jot_value turns = both(jot_less(x, num(0)), jot_logical_not(special_is_pole(a)));
    struct kummer p = {.x = jot_where(turns, jot_neg(x), x),
                       .b = b,
                       .up_in_a = jot_where(turns, num(-1), num(1)),
                       .up_in_b = jot_where(turns, num(1), num(0))};
    memcpy(p.orders, orders, sizeof p.orders);
    jot_value c[MOST_CARRIES];
    int at = sum_at(&p);
    for (int i = 0; i < at; i++)
        c[i] = i ? zero : one;
    for (int k = 0; k < orders[IN_X]; k++)
        multiply(&p, c, dd_sum(a, num(k)), dd_sum(b, num(k)), num(1), num(0), num(1), num(1));
    p.down = dd_sum(b, num(orders[IN_X]));
    p.up = dd_where(turns, dd_difference(b, a), dd_sum(a, num(orders[IN_X])));
    store(c, at, load_term(c, at - 2));
    c[at + 2] = zero;
    jot_while_at(goes_on, step, &p, (size_t)at + 3, c, NULL, "jot_hyp1f1");
    // In two halves: the sum may be as large as e^-x.
    jot_value half = jot_exp(jot_where(turns, mul(x, num(0.5)), num(0)));
    return mul(mul(dd_round(load_term(c, at)), half), half);
}

struct asymptotic {
    jot_value p, q, u;
};

// The sum of (p)_k (q)_k/k! u^k.
static jot_value asymptotic_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_less(c[0], num(40));
}

static void asymptotic_step(jot_value *c, void *ctx)
{
    const struct asymptotic *s = ctx;
    jot_value k = c[0], up = mul(add(s->p, k), add(s->q, k));
    c[0] = add(k, num(1));
    c[1] = over(mul(mul(c[1], up), s->u), c[0]);
    c[2] = add(c[2], c[1]);
}

static void far_value(const jot_value *v, jot_value *out, void *ctx)
{
    const struct trace_member *m = ctx;
    if (trace_member_from_lower(m, IN_X, far_value, v, out))
        return;
    jot_value a = v[IN_A], b = v[IN_B], x = v[IN_X], factor = num(1);
    for (int k = 0; k < m->orders[IN_X]; k++) {
        factor = mul(factor, over(a, b));
        a = add(a, num(1));
        b = add(b, num(1));
    }
    jot_value is_below = jot_less(x, num(0)), rest = sub(b, a), size = jot_abs(x);
    struct asymptotic s = {jot_where(is_below, a, rest),
                           sub(num(1), jot_where(is_below, rest, a)), over(num(1), size)};
    jot_value c[] = {jot_zeros_like(x), jot_ones_like(x), jot_ones_like(x)};
    jot_while_at(asymptotic_goes_on, asymptotic_step, &s, 3, c, NULL, "jot_hyp1f1");
    jot_value half = jot_exp(mul(num(0.5), jot_where(is_below, num(0), x)));
    jot_value power = jot_power(size, jot_neg(s.p));
    // Gamma(b)/Gamma(b - p)
    jot_value other = sub(b, s.p);
    jot_value is_positive = both(jot_less(num(0), b), jot_less(num(0), other)), one = num(1);
    jot_value direct =
        jot_poch(jot_where(is_positive, other, one), jot_where(is_positive, s.p, one));
    jot_value safe = jot_where(is_positive, one, other);
    jot_value quotient =
        mul(jot_gamma(jot_where(is_positive, one, b)), special_inverse_gamma(safe));
    factor = mul(factor, jot_where(is_positive, direct, quotient));
    *out = mul(mul(mul(mul(factor, c[2]), power), half), half);
}

static jot_value hyp1f1(const jot_value *v, const struct trace_member *m)
{
    jot_value a = wide(v[IN_A]), b = wide(v[IN_B]), x = wide(v[IN_X]);
    jot_value is_fine = jot_is_finite(add(add(a, b), x));
    // A series that ends is a sum for all x.
    jot_value ends =
        jot_where(jot_less(num(0), x), special_is_pole(a), special_is_pole(sub(b, a)));
    jot_value is_far = jot_less(num(FAR), jot_abs(x));
    if (m->orders[IN_A] + m->orders[IN_B] == 0)
        is_far = both(is_far, jot_logical_not(ends));
    is_far = both(is_fine, is_far);
    jot_value is_near = both(is_fine, jot_logical_not(is_far)), far;
    far_value((jot_value[]){jot_where(is_far, a, num(1)), jot_where(is_far, b, num(1)),
                            jot_where(is_far, x, num(-2 * FAR))},
              &far, (void *)(uintptr_t)m);
    jot_value near = by_series(jot_where(is_near, a, num(1)), jot_where(is_near, b, num(1)),
                               jot_where(is_near, x, num(0)), m->orders);
    jot_value y = jot_where(is_far, far, near);
    jot_value is_short = both(special_is_pole(a), jot_less_equal(b, a));
    jot_value is_infinite = both(special_is_pole(b), jot_logical_not(is_short));
    y = jot_where(is_infinite, num(INFINITY), y);
    return jot_astype(jot_where(is_fine, y, num(NAN)), jot_value_dtype(v[IN_X]));
}

TRACE_FAMILY(hyp1f1_family, "jot_hyp1f1", OPERANDS, 2, hyp1f1);

jot_value jot_hyp1f1(jot_value a, jot_value b, jot_value x)
{
    return trace_family_lanes(&hyp1f1_family, (jot_value[]){a, b, x});
}
