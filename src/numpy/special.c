// SPDX-License-Identifier: Apache-2.0
// Special functions that are made of a few operations.
#include "numpy/formula.h"
#include "numpy/special_parts.h"

#include "jot/special.h"

#include <math.h>

// x as a float, of the same type if it is one.
static jot_value floating(jot_value x) { return mul(x, one()); }

// ---- Gamma functions

jot_value jot_gammasgn(jot_value x)
{
    x = floating(x);
    jot_value whole = jot_floor(x), zero = num(0);
    jot_value is_odd = jot_not_equal(jot_rem(whole, num(2)), zero);
    jot_value below =
        jot_where(jot_equal(whole, x), num(NAN), jot_where(is_odd, num(-1), one()));
    jot_value at_0 = jot_where(jot_less(over(one(), x), zero), num(-1), one());
    jot_value y =
        jot_where(jot_less(x, zero), below, jot_where(jot_equal(x, zero), at_0, one()));
    return jot_where(jot_is_nan(x), jot_stop_gradient(x), y);
}

jot_value jot_factorial(jot_value n)
{
    return jot_where(jot_less(n, num(0)), num(0), jot_gamma(add(n, one())));
}

#define MOST_DIMENSIONS 1000 // each is an operation of the graph

static jot_value multigammaln(jot_value a, int d)
{
    jot_value error;
    if (!trace_ready("jot_multigammaln", 1, &a, &error))
        return error;
    if (d < 0 || d > MOST_DIMENSIONS)
        return trace_fail("jot_multigammaln", JOT_ERR_ARGUMENT, "d is %d: it takes 0 to %d", d,
                          MOST_DIMENSIONS);
    jot_value y = num(0.25 * d * (d - 1) * log(M_PI));
    for (int j = 0; j < d; j++)
        y = add(y, jot_lgamma(sub(a, num(0.5 * j))));
    return y;
}

jot_value jot_multigammaln(jot_value a, int d) { TRACE_RETURN(multigammaln(a, d)); }

// ---- Logarithms and entropies

// x log(..), 0 where x is 0 and y a number.
static jot_value times_log(jot_value x, jot_value y, jot_value log)
{
    jot_value is_none = both(jot_equal(x, num(0)), jot_equal(y, y));
    return jot_where(is_none, num(0), mul(x, log));
}

static jot_value xlogy(jot_value x, jot_value y) { return times_log(x, y, jot_log(y)); }

static jot_value xlogy_rule(jot_value x, jot_value y, jot_value dx, jot_value dy)
{
    return add(trace_along(dx, jot_log(y)), trace_along(dy, over(x, y)));
}

jot_value jot_xlogy(jot_value x, jot_value y)
{
    return TRACE_RULED("jot_xlogy", xlogy, xlogy_rule, floating(x), floating(y));
}

static jot_value xlog1py(jot_value x, jot_value y) { return times_log(x, y, jot_log1p(y)); }

static jot_value xlog1py_rule(jot_value x, jot_value y, jot_value dx, jot_value dy)
{
    return add(trace_along(dx, jot_log1p(y)), trace_along(dy, over(x, add(one(), y))));
}

jot_value jot_xlog1py(jot_value x, jot_value y)
{
    return TRACE_RULED("jot_xlog1py", xlog1py, xlog1py_rule, floating(x), floating(y));
}

static jot_value entr(jot_value x)
{
    return jot_where(jot_less(x, num(0)), num(-INFINITY), jot_neg(xlogy(x, x)));
}

static jot_value entr_rule(jot_value x, jot_value dx)
{
    return trace_along(dx, jot_neg(add(jot_log(x), one())));
}

jot_value jot_entr(jot_value x)
{
    return TRACE_RULED("jot_entr", entr, entr_rule, floating(x));
}

// log(p / q) of p, q > 0, also where the quotient is out of the range.
static jot_value log_quotient(jot_value p, jot_value q)
{
    jot_value ratio = over(p, q);
    jot_value is_plain = both(jot_less(num(0x1p-100), ratio), jot_less(ratio, num(0x1p100)));
    return jot_where(is_plain, jot_log(jot_where(is_plain, ratio, one())),
                     sub(jot_log(p), jot_log(q)));
}

static jot_value log_quotient_rule(jot_value p, jot_value q, jot_value dp, jot_value dq)
{
    return sub(over(dp, p), over(dq, q));
}

static jot_value relative(jot_value p, jot_value q) { return mul(p, log_quotient(p, q)); }

static jot_value relative_rule(jot_value p, jot_value q, jot_value dp, jot_value dq)
{
    jot_value log = TRACE_RULED("jot_rel_entr", log_quotient, log_quotient_rule, p, q);
    return sub(trace_along(dp, add(log, one())), trace_along(dq, over(p, q)));
}

jot_value jot_rel_entr(jot_value p, jot_value q)
{
    jot_value zero = num(0), p_above = jot_less(zero, p);
    jot_value inside = both(p_above, jot_less(zero, q));
    jot_value none = both(jot_equal(p, zero), jot_less_equal(zero, q));
    jot_value a = jot_where(inside, p, one()), b = jot_where(inside, q, one());
    jot_value y =
        TRACE_RULED("jot_rel_entr", relative, relative_rule, floating(a), floating(b));
    jot_value outside = jot_where(none, zero, num(INFINITY));
    jot_value unknown = either(jot_is_nan(p), jot_is_nan(q));
    y = jot_where(unknown, num(NAN), jot_where(inside, y, outside));
    return trace_defined(2, (jot_value[]){p, q}, y);
}

// p log(p/q) - p + q of p, q > 0 that are close: p (nu - log(1 + nu)) with nu = (q - p)/p.
static jot_value divergence(jot_value p, jot_value q)
{
    return mul(p, special_excess(over(sub(q, p), p), one()));
}

static jot_value divergence_rule(jot_value p, jot_value q, jot_value dp, jot_value dq)
{
    jot_value log = TRACE_RULED("jot_kl_div", log_quotient, log_quotient_rule, p, q);
    return add(trace_along(dp, log), trace_along(dq, over(sub(q, p), q)));
}

jot_value jot_kl_div(jot_value p, jot_value q)
{
    jot_value is_close = both(jot_less(num(0), p), jot_less(num(0), q));
    is_close = both(is_close, jot_less(jot_abs(sub(q, p)), mul(num(0.25), p)));
    jot_value a = jot_where(is_close, p, one()), b = jot_where(is_close, q, one());
    jot_value close =
        TRACE_RULED("jot_kl_div", divergence, divergence_rule, floating(a), floating(b));
    return jot_where(is_close, close, add(sub(jot_rel_entr(p, q), p), q));
}

static jot_value logit(jot_value x) { return jot_log(over(x, sub(one(), x))); }

static jot_value logit_rule(jot_value x, jot_value dx)
{
    return over(dx, mul(x, sub(one(), x)));
}

jot_value jot_logit(jot_value x)
{
    return TRACE_RULED("jot_logit", logit, logit_rule, floating(x));
}

jot_value jot_expit(jot_value x) { return jot_logistic(x); }

// ---- The normal distribution

jot_value jot_ndtr(jot_value x) { return mul(num(0.5), jot_erfc(mul(x, num(-M_SQRT1_2)))); }

// M. Wichura, Algorithm AS 241 (1988).
static jot_value ndtri(jot_value p)
{
    enum { N = 8 };
    static const double middle[2][N] = {
        {3.387132872796366608, 133.14166789178437745, 1971.5909503065514427,
         13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
         33430.575583588128105, 2509.0809287301226727},
        {1, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077,
         21213.794301586595867, 39307.89580009271061, 28729.085735721942674,
         5226.495278852545925}};
    static const double tail[2][N] = {
        {1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055,
         3.64784832476320460504, 1.27045825245236838258, .24178072517745061177,
         .0227238449892691845833, 7.7454501427834140764e-4},
        {1, 2.05319162663775882187, 1.6763848301838038494, .68976733498510000455,
         .14810397642748007459, .0151986665636164571966, 5.475938084995344946e-4,
         1.05075007164441684324e-9}};
    static const double far[2][N] = {
        {6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358,
         .29656057182850489123, .026532189526576123093, .0012426609473880784386,
         2.71155556874348757815e-5, 2.01033439929228813265e-7},
        {1, .59983220655588793769, .13692988092273580531, .0148753612908506148525,
         7.868691311456132591e-4, 1.8463183175100546818e-5, 1.4215117583164458887e-7,
         2.04426310338993978564e-15}};
#define RATIO(c, x) over(trace_polynomial(N, c[0], x), trace_polynomial(N, c[1], x))
    jot_value q = sub(p, num(0.5)), inner = sub(num(0.180625), jot_square(q));
    jot_value is_middle = jot_less_equal(jot_abs(q), num(0.425));
    jot_value least = jot_minimum(p, sub(one(), p));
    jot_value r = jot_sqrt(jot_neg(jot_log(least))), is_far = jot_less(num(5), r);
    jot_value size =
        jot_where(is_far, RATIO(far, sub(r, num(5))), RATIO(tail, sub(r, num(1.6))));
#undef RATIO
    jot_value y = jot_where(jot_less(q, num(0)), jot_neg(size), size);
    y = jot_where(jot_equal(p, num(0)), num(-INFINITY),
                  jot_where(jot_equal(p, one()), num(INFINITY), y));
    jot_value near = over(mul(q, trace_polynomial(N, middle[0], inner)),
                          trace_polynomial(N, middle[1], inner));
    return jot_where(is_middle, near, y);
}

// One over the density at y, sqrt(2 pi) e^(y^2/2), where the error of y would be multiplied by
// its square: by the quotient erfcx(|y|/sqrt(2)) sqrt(pi/2) of the tail, which is the smaller
// of p and 1 - p, and the density.
static jot_value ndtri_slope(jot_value p)
{
    jot_value tail = jot_minimum(p, sub(one(), p)), size = jot_abs(ndtri(p));
    jot_value is_end = jot_equal(tail, num(0));
    jot_value y = over(mul(num(sqrt(M_PI_2)), jot_erfcx(mul(size, num(M_SQRT1_2)))), tail);
    return jot_where(is_end, num(INFINITY), y);
}

// y times the square of the slope
static jot_value ndtri_slope_rule(jot_value p, jot_value dp)
{
    jot_value slope = ndtri_slope(p);
    return mul(dp, mul(mul(ndtri(p), slope), slope));
}

static jot_value ndtri_rule(jot_value p, jot_value dp)
{
    return mul(dp, TRACE_RULED("jot_ndtri", ndtri_slope, ndtri_slope_rule, p));
}

jot_value jot_ndtri(jot_value p)
{
    p = floating(p);
    return trace_defined(1, &p, TRACE_RULED("jot_ndtri", ndtri, ndtri_rule, p));
}

// log(erfc) where that is a number, and far below
// -x^2/2 - log(-x sqrt(2 pi)) + log(1 - 1/x^2 + 3/x^4 - ...).
static jot_value log_ndtr(jot_value x)
{
    static const double c[] = {0, -1, 3, -15, 105, -945, 10395, -135135, 2027025, -34459425};
    double end = jot_value_dtype(x) == JOT_F64 ? -20 : -10;
    jot_value is_far = jot_less(x, num(end)), is_above = jot_less(num(0), x);
    jot_value far = jot_where(is_far, x, num(-30)), near = jot_where(is_far, num(0), x);
    jot_value inverse = jot_square(over(one(), far));
    jot_value series = jot_log1p(trace_polynomial(sizeof c / sizeof c[0], c, inverse));
    jot_value tail = sub(sub(series, mul(num(0.5), jot_square(far))),
                         jot_log(mul(jot_neg(far), num(sqrt(2 * M_PI)))));
    jot_value above = jot_where(is_above, near, num(0));
    jot_value below = jot_where(is_above, num(0), near);
    jot_value y = jot_where(is_above, jot_log1p(jot_neg(jot_ndtr(jot_neg(above)))),
                            jot_log(jot_ndtr(below)));
    return jot_where(is_far, tail, y);
}

// The density over ndtr, which below 0 is sqrt(2/pi) / erfcx(-x / sqrt(2)).
static jot_value log_ndtr_rule(jot_value x, jot_value dx)
{
    jot_value is_above = jot_less(num(0), x), zero = num(0);
    jot_value above = jot_where(is_above, x, zero), below = jot_where(is_above, zero, x);
    jot_value density = jot_exp(mul(num(-0.5), jot_square(above)));
    jot_value y = over(mul(density, num(1 / sqrt(2 * M_PI))), jot_ndtr(above));
    jot_value scaled = jot_erfcx(mul(below, num(-M_SQRT1_2)));
    y = jot_where(is_above, y, over(num(sqrt(M_2_PI)), scaled));
    return mul(dx, y);
}

jot_value jot_log_ndtr(jot_value x)
{
    return TRACE_RULED_LANES("jot_log_ndtr", log_ndtr, log_ndtr_rule, x);
}
