// SPDX-License-Identifier: Apache-2.0
// Special functions by series, fractions and recurrences that end when they have settled: each number
// is a lane with loops of its own, in double precision.
#include "numpy/formula.h"
#include "trace/lanes.h"

#include "jot/special.h"
#include "jot/transform.h"

#include <float.h>
#include <math.h>

// ---- E_n
//
//     E_n(x) = e^-x / (x + n - 1 n/(x + n + 2 - 2 (n+1)/(x + n + 4 - ...)))               x > 1
//            = (-x)^(n-1)/(n-1)! (digamma(n) - log(x)) - sum_(k /= n-1) (-x)^k/((k-n+1) k!)
//
// (DLMF 8.19.17, 8.19.8).

struct exponential {
    jot_value n, x;
};

// Steed's method: the index, the last denominator, the last d, the last summand, and the sum.
enum { E_INDEX, E_B, E_D, E_CHANGE, E_SUM, E_CARRIES };

static jot_value fraction_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    jot_value small = mul(num(DBL_EPSILON / 4), c[E_SUM]);
    return both(jot_less(small, jot_abs(c[E_CHANGE])), jot_less(c[E_INDEX], num(1000)));
}

static void fraction_step(jot_value *c, void *ctx)
{
    const struct exponential *p = ctx;
    c[E_INDEX] = add(c[E_INDEX], num(1));
    jot_value a = mul(jot_neg(c[E_INDEX]), add(c[E_INDEX], sub(p->n, num(1))));
    c[E_B] = add(c[E_B], num(2));
    c[E_D] = over(num(1), add(mul(a, c[E_D]), c[E_B]));
    c[E_CHANGE] = mul(c[E_CHANGE], sub(mul(c[E_B], c[E_D]), num(1)));
    c[E_SUM] = add(c[E_SUM], c[E_CHANGE]);
}

static jot_value by_fraction(struct exponential p)
{
    jot_value b = add(p.x, p.n), d = over(num(1), b);
    jot_value c[E_CARRIES] = {jot_zeros_like(p.x), b, d, d, d};
    jot_while_at(fraction_goes_on, fraction_step, &p, E_CARRIES, c, NULL, "jot_expn");
    return mul(c[E_SUM], jot_exp(jot_neg(p.x)));
}

// index, (-x)^index / index!, the sum, the last summand
static jot_value series_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    jot_value small = mul(num(DBL_EPSILON / 8), jot_abs(c[2]));
    return both(jot_less(small, jot_abs(c[3])), jot_less(c[0], num(200)));
}

static void series_step(jot_value *c, void *ctx)
{
    const struct exponential *p = ctx;
    jot_value before = sub(p->n, num(1));
    c[0] = add(c[0], num(1));
    c[1] = over(mul(c[1], jot_neg(p->x)), c[0]);
    jot_value is_log = jot_equal(c[0], before);
    jot_value other = over(jot_neg(c[1]), jot_where(is_log, num(1), sub(c[0], before)));
    jot_value log = mul(c[1], sub(jot_digamma(p->n), jot_log(p->x)));
    c[3] = jot_where(is_log, log, other);
    c[2] = add(c[2], c[3]);
}

static jot_value by_series(struct exponential p)
{
    jot_value before = sub(p.n, num(1)), is_log = jot_equal(before, num(0));
    jot_value first = jot_where(is_log, sub(jot_digamma(p.n), jot_log(p.x)),
                                over(num(1), jot_where(is_log, num(1), before)));
    jot_value c[] = {jot_zeros_like(p.x), jot_ones_like(p.x), first, jot_ones_like(p.x)};
    jot_while_at(series_goes_on, series_step, &p, 4, c, NULL, "jot_expn");
    return c[2];
}

// For whole n >= -1: E_0 = e^-x/x and E_-1 = e^-x (1 + x)/x^2.
static jot_value expn(jot_value order, jot_value in)
{
    jot_value n = wide(order), x = wide(in), zero = num(0), one = num(1);
    jot_value is_zero = jot_equal(x, zero), is_closed = jot_less_equal(n, zero);
    jot_value is_positive = jot_less(zero, x);
    is_positive = both(is_positive, jot_less(x, num(INFINITY)));
    jot_value goes = both(is_positive, jot_logical_not(is_closed));
    jot_value is_far = jot_less(one, x), safe_n = jot_where(goes, n, one);
    jot_value is_fraction = both(goes, is_far);
    jot_value is_series = both(goes, jot_logical_not(is_far));
    jot_value far =
        by_fraction((struct exponential){safe_n, jot_where(is_fraction, x, num(50))});
    jot_value near =
        by_series((struct exponential){safe_n, jot_where(is_series, x, num(0.01))});
    jot_value closed = over(jot_exp(jot_neg(x)), x);
    closed = jot_where(jot_equal(n, zero), closed, mul(closed, add(one, over(one, x))));
    jot_value y = jot_where(is_closed, closed, jot_where(is_far, far, near));
    jot_value at_0 = jot_where(jot_less(one, n), over(one, sub(n, one)), num(INFINITY));
    at_0 = add(at_0, trace_without_slope(x));
    y = jot_where(is_zero, at_0, y);
    y = jot_where(jot_equal(x, num(INFINITY)), zero, y);
    jot_value is_none = either(jot_not_equal(n, jot_floor(n)), jot_less(n, num(-1)));
    is_none = either(is_none, jot_logical_not(jot_less_equal(zero, x)));
    return jot_astype(jot_where(is_none, num(NAN), y), jot_value_dtype(in));
}

static jot_value expn_rule(jot_value n, jot_value x, jot_value dn, jot_value dx)
{
    (void)dn;
    return mul(dx, jot_neg(expn(sub(n, num(1)), x)));
}

jot_value jot_expn(jot_value n, jot_value x)
{
    return TRACE_RULED_LANES("jot_expn", expn, expn_rule, n, x);
}

// ---- Bessel functions of the first kind
//
// Downward from an order where they are nothing, by J_(k-1) = 2k/x J_k - J_(k+1), and then divided by
// J_0 + 2 J_2 + 2 J_4 + ..., which is 1 (Miller's algorithm, DLMF 3.6(vi), 10.12.4).

struct bessel {
    jot_value n, x;
};

enum { J_ORDER, J_THIS, J_NEXT, J_TOTAL, J_VALUE, J_CARRIES };

static jot_value bessel_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_less(num(0), c[J_ORDER]);
}

static void bessel_step(jot_value *c, void *ctx)
{
    const struct bessel *p = ctx;
    jot_value k = c[J_ORDER], before = sub(k, num(1));
    jot_value lower = sub(mul(over(add(k, k), p->x), c[J_THIS]), c[J_NEXT]);
    c[J_NEXT] = c[J_THIS];
    c[J_THIS] = lower;
    c[J_ORDER] = before;
    jot_value is_even = jot_equal(jot_rem(before, num(2)), num(0));
    jot_value weight = jot_where(jot_equal(before, num(0)), num(1), num(2));
    c[J_TOTAL] = add(c[J_TOTAL], jot_where(is_even, mul(weight, lower), num(0)));
    c[J_VALUE] = jot_where(jot_equal(before, p->n), lower, c[J_VALUE]);
    jot_value scale = jot_where(jot_less(num(0x1p600), jot_abs(lower)), num(0x1p-600), num(1));
    for (int i = J_THIS; i < J_CARRIES; i++)
        c[i] = mul(c[i], scale);
}

static jot_value bessel_j(jot_value order, jot_value in)
{
    enum { LONGEST = 1000000 };
    jot_value n = wide(order), x = wide(in), size = jot_abs(x), m = jot_abs(n);
    jot_value is_tiny = jot_less(size, num(1e-5)), one = jot_ones_like(x),
              zero = jot_zeros_like(x);
    jot_value is_whole = jot_equal(n, jot_floor(n));
    jot_value goes = both(is_whole, jot_logical_not(is_tiny));
    goes = both(goes, jot_less(jot_maximum(size, m), num(LONGEST)));
    struct bessel p = {m, jot_where(goes, size, one)};
    jot_value most = jot_where(goes, jot_maximum(size, m), num(0));
    jot_value start = add(add(most, num(20)), jot_sqrt(mul(num(60), most)));
    jot_value c[J_CARRIES] = {jot_ceil(start), one, zero, zero, zero};
    jot_while_at(bessel_goes_on, bessel_step, &p, J_CARRIES, c, NULL, "jot_bessel_jn");
    // (x/2)^n/n! (1 - x^2/(4n + 4)) of what is next to 0.
    jot_value half = mul(size, num(0.5));
    jot_value tiny = over(jot_power(half, m), jot_gamma(add(m, num(1))));
    tiny = mul(tiny, sub(num(1), over(jot_square(half), add(m, num(1)))));
    jot_value y = jot_where(is_tiny, tiny, over(c[J_VALUE], c[J_TOTAL]));
    // Odd orders change their sign with x, and with n.
    jot_value is_odd = jot_equal(jot_rem(m, num(2)), num(1));
    jot_value turns = jot_not_equal(jot_less(x, num(0)), jot_less(n, num(0)));
    y = jot_where(both(is_odd, turns), jot_neg(y), y);
    y = jot_where(jot_equal(size, num(INFINITY)), num(0), y);
    jot_value is_none = jot_logical_not(either(goes, both(is_tiny, is_whole)));
    is_none = both(is_none, jot_not_equal(size, num(INFINITY)));
    return jot_astype(jot_where(is_none, num(NAN), y), jot_value_dtype(in));
}

// dJ_n = (J_(n-1) - J_(n+1)) / 2 dx
static jot_value bessel_last_rule(jot_value n, jot_value x, jot_value dn, jot_value dx)
{
    (void)dn;
    jot_value one = num(1), lower = bessel_j(sub(n, one), x), upper = bessel_j(add(n, one), x);
    return mul(dx, mul(num(0.5), sub(lower, upper)));
}

// The same of functions with that rule.
static jot_value bessel_rule(jot_value n, jot_value x, jot_value dn, jot_value dx)
{
    (void)dn;
    const char *name = "jot_bessel_jn";
    jot_value below = sub(n, num(1)), above = add(n, num(1));
    jot_value lower = TRACE_RULED(name, bessel_j, bessel_last_rule, below, x);
    jot_value upper = TRACE_RULED(name, bessel_j, bessel_last_rule, above, x);
    return mul(dx, mul(num(0.5), sub(lower, upper)));
}

jot_value jot_bessel_jn(jot_value n, jot_value x)
{
    return TRACE_RULED_LANES("jot_bessel_jn", bessel_j, bessel_rule, n, x);
}

// ---- Numbers

static jot_value bernoulli(jot_dtype dtype, int64_t n)
{
    // From B_260 on they are infinite.
    enum { MOST = 1 << 16 };
    if (n < 0 || n > MOST)
        return trace_fail("jot_bernoulli", JOT_ERR_ARGUMENT, "n is %lld: it takes 0 to %d",
                          (long long)n, MOST);
    // B_2, B_4, ..., and from there on -2 k!/(2 pi i)^k zeta(k).
    static const double first[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                   5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                   43867.0 / 798, -174611.0 / 330};
    enum { FIRST = sizeof first / sizeof *first };
    double *b = arena_array(trace_top()->module->arena, double, n + 3), factor = -2;
    b[0] = 1;
    b[1] = -0.5;
    for (int64_t k = 2; k <= n; k += 2) {
        double zeta = 1;
        for (int m = 5; m > 1; m--)
            zeta += pow(m, -(double)k);
        factor *= (double)(k - 1) * (double)k / (-4 * M_PI * M_PI);
        b[k] = k <= 2 * FIRST ? first[k / 2 - 1] : factor * zeta;
        b[k + 1] = 0;
    }
    jot_array *a = jot_array_copy(JOT_F64, b, (const int64_t[]){n + 1, JOT_END});
    jot_value v = jot_convert(jot_from_array(a), dtype);
    jot_array_release(a);
    return v;
}

jot_value jot_bernoulli(jot_dtype dtype, int64_t n) { TRACE_RETURN(bernoulli(dtype, n)); }
