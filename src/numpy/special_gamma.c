// SPDX-License-Identifier: Apache-2.0
// The incomplete gamma functions and their derivatives.
//
//     P(a, x) = 1/Gamma(a) int_0^x t^(a-1) e^-t dt = D (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...)    x <= a or c
//     Q(a, x) = 1 - P(a, x) = a D / (x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(x+5-a- ...)))               x > a and c
//     Q(a, x) = 1 - E + E a (x/(a+1) - x^2/(2! (a+2)) + ...)                                    x <= c, small a
//     D = x^a e^-x / Gamma(a + 1),  E = x^a / Gamma(a + 1)
//
// (DLMF 8.11.4, 8.9.2, 8.7.1), with c = 3/2, or 1 for a < 1/2.  The third is for a below
// x + 1/4, or below log(1/2) / log(x) for x < 1/4, where Q is the smaller one (W. Gautschi, A
// computational procedure for incomplete gamma functions, 1979).  For large a near x it is the
// expansion of Temme, The asymptotic expansion of the incomplete gamma functions, 1979 (DLMF
// 8.12): with mu = x/a - 1, eta^2/2 = mu - log(1 + mu) and the sign of mu
//
//     Q(a, x) = erfc(eta sqrt(a/2)) / 2 + e^(-a eta^2/2) / sqrt(2 pi a) T,   T = sum_k c_k(eta) a^-k
#include "numpy/formula.h"
#include "numpy/special_parts.h"

#include "jot/special.h"

#include <math.h>

// ---- Sums and fractions of a lane

struct arguments {
    jot_value a, x;
    double epsilon;
};

static jot_value series_goes_on(const jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    return jot_less(mul(num(p->epsilon / 2), c[2]), c[1]);
}

static void series_step(jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    c[0] = add(c[0], one());
    c[1] = over(mul(c[1], p->x), c[0]);
    c[2] = add(c[2], c[1]);
}

static jot_value series(struct arguments p)
{
    jot_value c[] = {p.a, jot_ones_like(p.a), jot_ones_like(p.a)};
    jot_while_at(series_goes_on, series_step, &p, 3, c, NULL, "jot_gammainc");
    return c[2];
}

// The sum of (-x)^n / (n! (a + n)) for n = 1, 2, ...: n, (-x)^n / n!, and the sum.
static jot_value small_goes_on(const jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    return jot_less(mul(num(p->epsilon / 4), jot_abs(c[2])), jot_abs(c[1]));
}

static void small_step(jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    c[0] = add(c[0], one());
    c[1] = jot_neg(over(mul(c[1], p->x), c[0]));
    c[2] = add(c[2], over(c[1], add(p->a, c[0])));
}

// Q of small a.
static jot_value small(struct arguments p)
{
    jot_value zero = jot_zeros_like(p.a), c[] = {zero, jot_ones_like(p.a), zero};
    jot_while_at(small_goes_on, small_step, &p, 3, c, NULL, "jot_gammainc");
    jot_value g = sub(mul(p.a, jot_log(p.x)), special_log_gamma_1p(p.a));
    return jot_neg(add(jot_expm1(g), mul(jot_exp(g), mul(p.a, c[2]))));
}

// Steed's method, where what is added gets less and so do its errors: n, the denominator b,
// d = 1/(b + n (a - n) d), the last summand, the sum, and the roundings of the sum.
enum { F_N, F_B, F_D, F_CHANGE, F_SUM, F_REST, F_VALUES };

static jot_value fraction_goes_on(const jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    jot_value least = mul(num(p->epsilon / 16), jot_abs(c[F_SUM]));
    return both(jot_less(least, jot_abs(c[F_CHANGE])), jot_less(c[F_N], num(2000)));
}

static void fraction_step(jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    jot_value n = add(c[F_N], one()), sum = c[F_SUM];
    jot_value part = mul(mul(n, sub(p->a, n)), c[F_D]);
    c[F_N] = n;
    c[F_B] = add(c[F_B], num(2));
    c[F_D] = over(one(), add(c[F_B], part));
    c[F_CHANGE] = jot_neg(mul(mul(part, c[F_D]), c[F_CHANGE]));
    c[F_SUM] = add(sum, c[F_CHANGE]);
    c[F_REST] = add(c[F_REST], sub(c[F_CHANGE], sub(c[F_SUM], sum)));
}

static void fraction_from(struct arguments p, jot_value *c)
{
    jot_value b = add(sub(p.x, p.a), one()), zero = jot_zeros_like(p.a);
    c[F_N] = c[F_REST] = zero;
    c[F_B] = b;
    c[F_D] = c[F_CHANGE] = c[F_SUM] = over(one(), b);
}

static jot_value fraction(struct arguments p)
{
    jot_value c[F_VALUES];
    fraction_from(p, c);
    jot_while_at(fraction_goes_on, fraction_step, &p, F_VALUES, c, NULL, "jot_gammainc");
    return add(c[F_SUM], c[F_REST]);
}

// From below: the index n, and b_(n-1) + a_n/(b_n + ...) of the numerators a_n = n (a - n) from
// that of n + 1 on.
static jot_value is_above_0(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_less(num(0), c[0]);
}

static void step_down(jot_value *c, void *ctx)
{
    const struct arguments *p = ctx;
    jot_value n = c[0], numerator = mul(n, sub(p->a, n));
    jot_value denominator = add(sub(p->x, p->a), sub(add(n, n), one()));
    c[1] = add(denominator, over(numerator, c[1]));
    c[0] = sub(n, one());
}

// The fraction with derivatives that do not cancel: from below, of as many terms as it takes
// next to a whole a, where the fraction itself would end and they would not.
static jot_value fraction_from_below(struct arguments p)
{
    struct arguments q = p;
    q.a = add(jot_floor(jot_stop_gradient(p.a)), num(0.5));
    q.x = jot_stop_gradient(p.x);
    jot_value c[F_VALUES];
    fraction_from(q, c);
    jot_while_at(fraction_goes_on, fraction_step, &q, F_VALUES, c, NULL, "jot_gammainc");
    jot_value s[] = {add(c[F_N], one()), jot_full_like(p.a, num(0x1p100))};
    jot_while_at(is_above_0, step_down, &p, 2, s, NULL, "jot_gammainc");
    return over(one(), s[1]);
}

// ---- For large a

static jot_value relative_excess(jot_value a, jot_value x) { return over(sub(x, a), a); }

static jot_value is_near(jot_value mu) { return jot_less(jot_abs(mu), num(0.3)); }

// mu - log(1 + mu)
static jot_value phi(jot_value a, jot_value x)
{
    return special_excess(relative_excess(a, x), over(x, a));
}

// T.  c_0 = 1/mu - 1/eta, c_k = c_(k-1)'/eta + (-1)^k g_k/mu, where 1 + g_1/a + ... is
// Stirling's series of Gamma.
static jot_value uniform_sum(jot_value a, jot_value x)
{
    static const double c0[] = {
        -0.33333333333333331,  0.083333333333333329,   -0.014814814814814815,
        0.0011574074074074073, 0.00035273368606701942, -0.0001787551440329218,
        3.9192631785224377e-5, -2.185448510679992e-6,  -1.85406221071516e-6,
        8.2967113409530865e-7, -1.7665952736826078e-7, 6.7078535434014984e-9,
        1.0261809784240309e-8, -4.3820360184533529e-9, 9.1476995822367902e-10};
    static const double c1[] = {
        -0.0018518518518518519,  -0.003472222222222222,  0.0026455026455026454,
        -0.00099022633744855963, 0.00020576131687242798, -4.018775720164609e-7,
        -1.8098550334489977e-5,  7.6491609160811098e-6,  -1.6120900894563446e-6,
        4.647127802807434e-9,    1.3786334469157209e-7,  -5.7525456035177047e-8,
        1.1951628599778148e-8};
    static const double c2[] = {
        0.0041335978835978834,  -0.0026813271604938273, 0.0007716049382716049,
        2.0093878600823047e-6,  -0.0001073665322636516, 5.2923448829120125e-5,
        -1.2760635188618728e-5, 3.4235787340961378e-8,  1.3721957309062934e-6,
        -6.2989921383800548e-7, 1.4280614206064242e-7};
    static const double c3[] = {
        0.00064943415637860077,  0.00022947209362139917, -0.0004691894943952557,
        0.00026772063206283885,  -7.5618016718839766e-5, -2.3965051138672968e-7,
        1.1082654115347302e-5,   -5.6749528269915965e-6, 1.4230900732435883e-6,
        -2.7861080291528143e-11, -1.6958404091930278e-7};
    static const double c4[] = {-0.00086188829091671173, 0.00078403922172006662,
                                -0.00029907248030319018, -1.4638452578843418e-6,
                                6.6414982154651219e-5,   -3.9683650471794347e-5,
                                1.1375726970678419e-5,   2.5074972262375329e-10,
                                -1.6954149536558305e-6,  8.9075075322053094e-7};
    static const double c5[] = {-0.00033679855336635813, -6.9728137583658571e-5,
                                0.00027727532449593918,  -0.00019932570516188847,
                                6.797780477937208e-5,    1.4190629206439671e-7,
                                -1.3594048189768693e-5,  8.018470256334202e-6};
    static const double c6[] = {0.00053130793646399225, -0.00059216643735369393,
                                0.0002708782096718045,  7.9023532326603281e-7,
                                -8.1539693675619691e-5, 5.6116827531062497e-5,
                                -1.8329116582843375e-5};
    static const double c7[] = {0.00034436760689237765, 5.1717909082605919e-5,
                                -0.00033493161081142234, 0.00028126951547632369,
                                -0.00010976582244684731};
    static const double c8[] = {-0.00065262391859530937, 0.00083949872067208726,
                                -0.00043829709854172099};
    static const double c9[] = {-0.00059676129019274626};
    static const struct {
        int n;
        const double *c;
    } rows[] = {{15, c0}, {13, c1}, {11, c2}, {11, c3}, {10, c4},
                {8, c5},  {7, c6},  {5, c7},  {3, c8},  {1, c9}};
    enum { ROWS = sizeof rows / sizeof *rows };
    jot_value mu = relative_excess(a, x);
    jot_value eta = mul(mu, jot_sqrt(mul(num(2), special_excess_near(mu))));
    jot_value y = trace_polynomial(rows[ROWS - 1].n, rows[ROWS - 1].c, eta);
    for (int k = ROWS - 2; k >= 0; k--)
        y = add(over(y, a), trace_polynomial(rows[k].n, rows[k].c, eta));
    return y;
}

// ---- A lane

// Which way to take; no way where an argument is out of the domain or at its border.
struct ways {
    jot_value inside, uniform, small, series, fraction;
};

static struct ways ways_of(jot_value a, jot_value x, bool is_slope)
{
    struct ways w;
    jot_value zero = num(0), infinity = num(INFINITY);
    w.inside = both(both(jot_less(zero, a), jot_less(a, infinity)),
                    both(jot_less(zero, x), jot_less(x, infinity)));
    jot_value near = is_near(relative_excess(a, x));
    // From where what is left out of T is nothing beside Q.
    jot_value is_large = jot_less(num(jot_value_dtype(a) == JOT_F64 ? 25 : 6), a);
    w.uniform = both(w.inside, both(is_large, near));
    jot_value end = jot_where(jot_less(a, num(0.5)), one(), num(1.5));
    // Derivatives of the series' summands cancel sooner than they do.
    jot_value above = jot_less(jot_maximum(a, is_slope ? num(0.4) : end), x);
    jot_value other = both(w.inside, jot_logical_not(w.uniform));
    w.fraction = both(other, above);
    jot_value low = jot_less(num(log(0.5)), mul(a, jot_log(jot_minimum(x, num(0.25)))));
    jot_value high = jot_less(a, add(x, num(0.25)));
    w.small = both(other, jot_less_equal(x, end));
    w.small = both(w.small, jot_where(jot_less(x, num(0.25)), low, high));
    w.series = both(other, jot_logical_not(above));
    return w;
}

static struct ways ways(jot_value a, jot_value x) { return ways_of(a, x, false); }

// The series, T and the fraction: each where it is the way and else of what needs no steps.
static void sums(const jot_value *in, jot_value *out, void *ctx)
{
    const bool *is_slope = ctx;
    struct ways w = ways_of(in[0], in[1], *is_slope);
    out[0] = series((struct arguments){special_chosen(w.series, in[0], 1),
                                       special_chosen(w.series, in[1], 0),
                                       trace_epsilon(jot_value_dtype(in[0]))});
    out[1] = uniform_sum(special_chosen(w.uniform, in[0], 300),
                         special_chosen(w.uniform, in[1], 300));
    struct arguments p = {special_chosen(w.fraction, in[0], 1),
                          special_chosen(w.fraction, in[1], 2),
                          trace_epsilon(jot_value_dtype(in[0]))};
    out[2] = *is_slope ? fraction_from_below(p) : fraction(p);
}

// D of arguments inside of the domain.
static jot_value prefactor(jot_value a, jot_value x)
{
    jot_value large = jot_less(num(10), a);
    // Below 10 each factor is a number; that of x > 1000 is 0.
    jot_value b = special_chosen(large, a, 20), y = special_chosen(large, x, 20);
    jot_value from_large = over(jot_exp(jot_neg(add(mul(b, phi(b, y)), special_stirling(b)))),
                                jot_sqrt(mul(num(2 * M_PI), b)));
    double most = jot_value_dtype(a) == JOT_F64 ? 1000 : 200;
    jot_value c = jot_where(large, one(), a);
    y = jot_where(large, one(), jot_minimum(x, num(most)));
    // e^-y = e^-(y - 64) e^-64, where e^-y itself has no digits left and D has.
    jot_value is_far = jot_less(num(64), y);
    jot_value power = jot_exp(jot_neg(jot_where(is_far, sub(y, num(64)), y)));
    jot_value from_small = mul(jot_power(y, c), power);
    // 1/Gamma(c + 1), of c > 2 without the rounding of the sum.
    jot_value is_least = jot_less_equal(c, num(2)), least = special_chosen(is_least, c, 1);
    jot_value other = jot_where(is_least, one(), c);
    from_small =
        jot_where(is_least, mul(from_small, jot_exp(jot_neg(special_log_gamma_1p(least)))),
                  over(from_small, mul(jot_gamma(other), other)));
    from_small = jot_where(is_far, mul(from_small, num(exp(-64))), from_small);
    return jot_where(large, from_large, from_small);
}

// P, or Q for `upper`.
static jot_value regularised(jot_value a, jot_value x, bool upper)
{
    struct ways w = ways(a, x);
    jot_value b = special_chosen(w.inside, a, 1), y = special_chosen(w.inside, x, 1);
    jot_value in[] = {a, x}, sum[3];
    bool is_slope = false;
    sums(in, sum, &is_slope);
    jot_value d = prefactor(b, y);
    jot_value below = mul(d, sum[0]);
    jot_value above = mul(mul(b, d), sum[2]);

    jot_value u = special_chosen(w.uniform, a, 300), v = special_chosen(w.uniform, x, 300);
    jot_value mu = relative_excess(u, v), h = jot_sqrt(special_excess_near(mu));
    jot_value root = mul(mul(mu, h), jot_sqrt(u)); // eta sqrt(a / 2)
    jot_value tail =
        over(mul(jot_exp(jot_neg(jot_square(root))), sum[1]), jot_sqrt(mul(num(2 * M_PI), u)));
    jot_value half = mul(num(0.5), jot_erfc(upper ? root : jot_neg(root)));
    jot_value uniform = upper ? add(half, tail) : sub(half, tail);

    jot_value of_small = small((struct arguments){special_chosen(w.small, a, 0.5),
                                                  special_chosen(w.small, x, 0.5),
                                                  trace_epsilon(jot_value_dtype(a))});
    above = jot_where(w.small, of_small, above);
    jot_value is_above = either(w.small, w.fraction);
    jot_value lower = upper ? sub(one(), below) : below;
    jot_value higher = upper ? above : sub(one(), above);
    return jot_where(w.uniform, uniform, jot_where(is_above, higher, lower));
}

// With what is known at the border: P(a, 0) = 0, P(a, inf) = 1, P(inf, x) = 0, P(0, x) = 1.
static jot_value with_border(jot_value a, jot_value x, bool upper, jot_value y)
{
    jot_value zero = num(0), infinity = num(INFINITY);
    jot_value at_0 = num(upper ? 1 : 0), at_infinity = num(upper ? 0 : 1);
    jot_value positive = jot_less(zero, a), known = num(NAN);
    known = jot_where(both(positive, jot_equal(x, zero)), at_0, known);
    jot_value beyond = both(jot_equal(a, infinity), jot_less_equal(zero, x));
    known = jot_where(beyond, at_0, known);
    jot_value end = both(jot_less_equal(zero, a), jot_equal(x, infinity));
    end = either(end, both(jot_equal(a, zero), jot_less(zero, x)));
    return jot_where(ways(a, x).inside, y, jot_where(end, at_infinity, known));
}

static jot_value lower_lane(jot_value a, jot_value x)
{
    return with_border(a, x, false, regularised(a, x, false));
}

static jot_value upper_lane(jot_value a, jot_value x)
{
    return with_border(a, x, true, regularised(a, x, true));
}

// dP/dx = a D / x
static jot_value density(jot_value a, jot_value x)
{
    jot_value inside = ways(a, x).inside;
    jot_value b = special_chosen(inside, a, 1), y = special_chosen(inside, x, 1);
    jot_value at_0 = mul(jot_power(x, sub(a, one())), over(jot_exp(jot_neg(x)), jot_gamma(a)));
    jot_value of_0 = jot_where(jot_equal(a, num(0)), trace_without_slope(a), num(0));
    at_0 = jot_where(jot_equal(x, num(0)), at_0, of_0);
    jot_value is_border = both(jot_less_equal(num(0), a), jot_less_equal(num(0), x));
    is_border = both(is_border, jot_less(num(0), add(a, x)));
    at_0 = jot_where(is_border, at_0, num(NAN));
    return jot_where(inside, over(mul(b, prefactor(b, y)), y), at_0);
}

// log(x/a), near 0 without the rounding of the quotient, and where the quotient has no digits left.
static jot_value log_quotient(jot_value x, jot_value a)
{
    jot_value mu = relative_excess(a, x), near = jot_less(jot_abs(mu), num(0.5));
    double least = jot_value_dtype(a) == JOT_F64 ? 0x1p-1000 : 0x1p-100;
    jot_value quotient = over(x, a), is_tiny = jot_less(quotient, num(least));
    jot_value far = jot_where(is_tiny, sub(jot_log(x), jot_log(a)),
                              jot_log(jot_where(is_tiny, one(), quotient)));
    return jot_where(near, jot_log1p(special_chosen(near, mu, 0)), far);
}

// d log(D) / da = log(x) - digamma(a + 1), of which both may be far larger.
static jot_value log_slope_of(jot_value a, jot_value x)
{
    jot_value next = add(a, one());
    return add(log_quotient(x, next), special_digamma_rest(next));
}

// dP/da from the derivatives of the sums: as it is, or as dx/da at a constant P, which is
// -(dP/da) / (dP/dx).
static jot_value slope_of(jot_value a, jot_value x, bool is_sample)
{
    static bool is_slope = true;
    static const int first[] = {0, JOT_END};
    jot_function f = jot_function_uniform("jot_random_gamma_grad", "jot_random_gamma_grad",
                                          sums, 2, 3, &is_slope);
    jot_value in[] = {a, x, jot_ones_like(a)}, sum[6], *slope = sum + 3;
    jot_apply_at(jot_jvp_of(f, "jot_random_gamma_grad", first), 3, in, 6, sum, NULL);
    struct ways w = ways_of(a, x, true);
    jot_value b = special_chosen(w.inside, a, 1), y = special_chosen(w.inside, x, 1);
    jot_value in_d = log_slope_of(b, y);
    jot_value below = jot_neg(add(mul(sum[0], in_d), slope[0]));
    jot_value above = add(sum[2], mul(b, add(mul(sum[2], in_d), slope[2])));
    jot_value sloped =
        mul(is_sample ? over(y, b) : prefactor(b, y), jot_where(w.fraction, above, below));

    jot_value u = special_chosen(w.uniform, a, 300), v = special_chosen(w.uniform, x, 300);
    jot_value mu = relative_excess(u, v), near = special_excess_near(mu);
    jot_value square = jot_square(mu), h = jot_sqrt(mul(num(2), near)), eta = mul(mu, h);
    jot_value log_slope = add(sub(mul(square, near), mu), over(num(0.5), u));
    jot_value uniform =
        sub(add(over(one(), h), slope[1]), add(mul(num(0.5), eta), mul(sum[1], log_slope)));
    if (is_sample)
        uniform = mul(uniform, mul(over(v, u), jot_exp(special_stirling(u))));
    else
        uniform = mul(uniform, over(jot_exp(jot_neg(mul(u, mul(square, near)))),
                                    jot_sqrt(mul(num(2 * M_PI), u))));
    sloped = jot_where(w.uniform, uniform, sloped);

    jot_value border = jot_equal(x, num(0)), infinity = num(INFINITY);
    if (!is_sample)
        border = either(border, jot_not_equal(jot_equal(x, infinity), jot_equal(a, infinity)));
    border = both(border, both(jot_less(num(0), a), jot_less_equal(num(0), x)));
    jot_value at_0 = jot_where(jot_equal(x, num(0)), trace_without_slope(x), num(0));
    border = jot_where(border, at_0, trace_nan_of(2, (jot_value[]){a, x}));
    if (!is_sample) { // P(a, x) = 1 - a E1(x) + ... beside a = 0
        jot_value at_least = both(jot_equal(a, num(0)), jot_less(num(0), x));
        jot_value of_least =
            add(jot_exp1(special_chosen(at_least, x, 1)), trace_without_slope(a));
        border = jot_where(at_least, jot_neg(of_least), border);
    }
    return jot_where(w.inside, is_sample ? sloped : jot_neg(sloped), border);
}

static jot_value sample_slope(jot_value a, jot_value x) { return slope_of(a, x, true); }

static jot_value lower_slope(jot_value a, jot_value x) { return slope_of(a, x, false); }

// The derivative of dP/da in x is that of the density in a, dP/dx (log(x) - digamma(a)).
static jot_value lower_slope_rule(jot_value a, jot_value x, jot_value da, jot_value dx)
{
    jot_function f =
        jot_function_plain("jot_gammainc", "jot_gammainc", 2, (void (*)(void))lower_slope);
    jot_value in[] = {a, x, jot_ones_like(a)}, in_a[2];
    jot_apply_at(jot_jvp_of(f, "jot_gammainc", (const int[]){0, JOT_END}), 3, in, 2, in_a,
                 NULL);
    jot_value inside = ways(a, x).inside;
    jot_value b = special_chosen(inside, a, 1), y = special_chosen(inside, x, 1);
    jot_value mixed = mul(density(b, y), add(log_slope_of(b, y), over(one(), b)));
    mixed = jot_where(inside, mixed, trace_nan_of(2, in));
    return add(trace_along(da, in_a[1]), trace_along(dx, mixed));
}

static jot_value lower_rule(jot_value a, jot_value x, jot_value da, jot_value dx)
{
    jot_value slope = TRACE_RULED("jot_gammainc", lower_slope, lower_slope_rule, a, x);
    return add(trace_along(da, slope), trace_along(dx, density(a, x)));
}

static jot_value upper_rule(jot_value a, jot_value x, jot_value da, jot_value dx)
{
    return jot_neg(lower_rule(a, x, da, dx));
}

// ---- The functions

jot_value jot_gammaln(jot_value x) { return jot_lgamma(x); }

jot_value jot_gammainc(jot_value a, jot_value x)
{
    return TRACE_RULED_LANES("jot_gammainc", lower_lane, lower_rule, a, x);
}

jot_value jot_gammaincc(jot_value a, jot_value x)
{
    return TRACE_RULED_LANES("jot_gammaincc", upper_lane, upper_rule, a, x);
}

jot_value jot_gammainc_grad_a(jot_value a, jot_value x)
{
    static const char name[] = "jot_gammainc_grad_a";
    return trace_lanes(name, jot_function_plain(name, name, 2, (void (*)(void))lower_slope), 2,
                       (jot_value[]){a, x});
}

jot_value jot_random_gamma_grad(jot_value a, jot_value x)
{
    static const char name[] = "jot_random_gamma_grad";
    return trace_lanes(name, jot_function_plain(name, name, 2, (void (*)(void))sample_slope), 2,
                       (jot_value[]){a, x});
}
