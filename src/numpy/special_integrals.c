// SPDX-License-Identifier: Apache-2.0
// Exponential, trigonometric, Fresnel's and Dawson's integrals, erfcx and the dilogarithm.
//
// Each is a smooth function of x, of a power of it or of its inverse on a few intervals, times what is
// known: sums of Chebyshev polynomials (Clenshaw, Chebyshev series for mathematical functions, 1962).
// All in double precision, as single precision would lose bits in the recurrence.
#include "numpy/formula.h"
#include "numpy/special_parts.h"
#include "trace/lanes.h"

#include "jot/numeric.h"
#include "jot/special.h"
#include "jot/transform.h"

#include <math.h>

#include "numpy/special_integrals.inc"

static jot_value is_below(jot_value x, double end) { return jot_less(x, num(end)); }

// The sum for s in [low, high]; outside for the nearer end.
static jot_value sum(int n, const double *c, jot_value s, double low, double high)
{
    jot_value t = sub(at_most(at_least(s, num(low)), num(high)), num((low + high) / 2));
    return trace_chebyshev(n, c, mul(t, num(2 / (high - low))));
}
#define SUM(c, s, low, high) sum((int)(sizeof(c) / sizeof *(c)), c, s, low, high)

// low/x and its powers, for x >= low.
static jot_value inverse(double low, jot_value x)
{
    return over(num(low), at_least(x, num(low)));
}
static jot_value inverse2(double low, jot_value x) { return jot_square(inverse(low, x)); }
static jot_value inverse4(double low, jot_value x) { return jot_square(inverse2(low, x)); }

// A derivative, which is 0 at infinity.
static jot_value vanishing(jot_value x, jot_value slope)
{
    return jot_where(jot_equal(jot_abs(x), num(INFINITY)), num(0), slope);
}

#define SPECIAL(f)                                                                             \
    jot_value jot_##f(jot_value x) { return TRACE_RULED_LANES("jot_" #f, f, f##_rule, x); }

// y with the sign of the operand, and its type.
static jot_value odd(jot_value y, jot_value in)
{
    y = jot_where(jot_is_nan(in), wide(in), jot_copysign(y, wide(in)));
    return jot_astype(y, jot_value_dtype(in));
}

// ---- E_1 and Ei

static jot_value e1_of(jot_value x)
{
    jot_value near = sub(SUM(exp1_near, x, 0, 1), jot_log(x));
    jot_value r = jot_where(is_below(x, 4), SUM(exp1_a, x, 1, 4),
                            jot_where(is_below(x, 16), SUM(exp1_b, inverse(4, x), 0.25, 1),
                                      SUM(exp1_c, inverse(16, x), 0, 1)));
    jot_value far = mul(over(jot_exp(jot_neg(x)), x), r);
    return jot_where(is_below(x, 1), near, far);
}

static jot_value exp1(jot_value x) { return jot_astype(e1_of(wide(x)), jot_value_dtype(x)); }

static jot_value exp1_rule(jot_value x, jot_value dx)
{
    return mul(dx, jot_neg(over(jot_exp(jot_neg(x)), x)));
}

SPECIAL(exp1)

// Around its zero it is the zero's distance times a function; beyond 690 e^x may overflow first.
static jot_value ei_of(jot_value x)
{
    const double zero = 0.3725074107813666, rest = 1.3140183414386028e-17, shift = 40;
    jot_value d = sub(sub(x, num(zero)), num(rest)), w = over(d, num(zero));
    jot_value is_close = is_below(jot_abs(w), 0.5);
    // A quotient of numbers below the normal ones has few digits.
    jot_value is_tiny = is_below(x, 1e-290), lifted = mul(x, num(0x1p64));
    jot_value ratio = over(jot_where(is_tiny, lifted, x), num(zero));
    jot_value far_log = sub(jot_log(ratio), jot_where(is_tiny, num(64 * M_LN2), num(0)));
    jot_value log = jot_where(is_close, jot_log1p(jot_where(is_close, w, num(0))), far_log);
    jot_value near = add(log, mul(d, SUM(expi_near, x, 0, 6)));
    jot_value s =
        jot_where(is_below(x, 24),
                  jot_where(is_below(x, 12), SUM(expi_a, x, 6, 12), SUM(expi_b, x, 12, 24)),
                  jot_where(is_below(x, 60), SUM(expi_c, inverse(24, x), 0.4, 1),
                            SUM(expi_d, inverse(60, x), 0, 1)));
    jot_value is_small = is_below(x, 690);
    jot_value power = jot_exp(jot_where(is_small, x, sub(x, num(shift))));
    jot_value far = mul(mul(over(power, x), s), jot_where(is_small, num(1), num(exp(shift))));
    far = jot_where(jot_equal(x, num(INFINITY)), x, far);
    return jot_where(is_below(x, 6), near, far);
}

static jot_value expi(jot_value in)
{
    jot_value x = wide(in), is_negative = is_below(x, 0);
    jot_value below = jot_neg(e1_of(jot_where(is_negative, jot_neg(x), num(1))));
    jot_value y = jot_where(is_negative, below, ei_of(jot_where(is_negative, num(1), x)));
    return jot_astype(y, jot_value_dtype(in));
}

// e^x/x, which may be a number where e^x is none.
static jot_value expi_rule(jot_value in, jot_value dx)
{
    const double shift = 40;
    jot_value x = wide(in), is_small = is_below(x, 690);
    jot_value power = jot_exp(jot_where(is_small, x, sub(x, num(shift))));
    jot_value y = mul(over(power, x), jot_where(is_small, num(1), num(exp(shift))));
    y = jot_where(jot_equal(x, num(INFINITY)), jot_exp(x), y);
    return mul(dx, jot_astype(y, jot_value_dtype(in)));
}

SPECIAL(expi)

// ---- Si and Ci
//
// Beyond 4 by Si = pi/2 - f cos(x) - g sin(x) and Ci = f sin(x) - g cos(x) (DLMF 6.2.19).

static void auxiliary(jot_value x, jot_value *f, jot_value *g)
{
    jot_value is_small = is_below(x, 8), u = inverse2(4, x), v = inverse2(8, x);
    x = at_least(x, num(4));
    *f = over(jot_where(is_small, SUM(si_f_a, u, 0.25, 1), SUM(si_f_b, v, 0, 1)), x);
    *g =
        over(jot_where(is_small, SUM(si_g_a, u, 0.25, 1), SUM(si_g_b, v, 0, 1)), jot_square(x));
}

// Beyond which f and g do not count; its cosine is a number.
static jot_value bounded(jot_value x) { return jot_minimum(jot_abs(x), num(1e17)); }

static jot_value si(jot_value in)
{
    jot_value x = bounded(wide(in)), f, g;
    auxiliary(x, &f, &g);
    jot_value far = sub(sub(num(M_PI_2), mul(f, jot_cos(x))), mul(g, jot_sin(x)));
    jot_value near = mul(x, SUM(si_near, jot_square(x), 0, 16));
    return odd(jot_where(is_below(x, 4), near, far), in);
}

static jot_value ci(jot_value in)
{
    jot_value x = bounded(wide(in)), f, g, infinite = num(INFINITY);
    auxiliary(x, &f, &g);
    jot_value far = sub(mul(f, jot_sin(x)), mul(g, jot_cos(x)));
    jot_value square = jot_square(x);
    jot_value near = add(add(jot_log(x), num(0.57721566490153286)),
                         mul(square, SUM(ci_near, square, 0, 16)));
    jot_value y = jot_where(is_below(x, 4), near, far);
    y = jot_where(jot_equal(in, infinite), num(0), y);
    jot_value is_none = either(jot_is_nan(in), jot_equal(in, num(-INFINITY)));
    return jot_astype(jot_where(is_none, num(NAN), y), jot_value_dtype(in));
}

static jot_value si_rule(jot_value x, jot_value dx)
{
    return mul(dx, vanishing(x, jot_sinc(mul(x, num(M_1_PI)))));
}

static jot_value ci_rule(jot_value x, jot_value dx)
{
    return mul(dx, vanishing(x, over(jot_cos(x), x)));
}

jot_sici_result jot_sici_at(jot_value x, const char *where)
{
    jot_sici_result r = {TRACE_RULED_LANES("jot_sici", si, si_rule, x),
                         TRACE_RULED_LANES("jot_sici", ci, ci_rule, x)};
    if (where)
        jot_place(r.si, where);
    return r;
}

// ---- Fresnel's integrals
//
// Beyond 1.6 by S = 1/2 - f cos(a) - g sin(a) and C = 1/2 + f sin(a) - g cos(a), a = pi/2 x^2
// (DLMF 7.5.3).

static const double fresnel_end = 1.5856094866702947, fresnel_end4 = 6.3209876543209877;

struct fresnel {
    jot_value x, is_near, sine, cosine, f, g; // of |x|
};

static struct fresnel fresnel(jot_value in)
{
    struct fresnel r = {.x = bounded(wide(in))};
    jot_value far = at_least(r.x, num(fresnel_end)), is_a = is_below(r.x, 3);
    jot_value u = inverse4(fresnel_end, r.x), v = inverse4(3, r.x);
    double low = fresnel_end4 / 81;
    jot_value angle = mul(num(M_PI_2), jot_rem(jot_square(r.x), num(4)));
    r.is_near = is_below(r.x, fresnel_end);
    r.sine = jot_sin(angle);
    r.cosine = jot_cos(angle);
    r.f = jot_where(is_a, SUM(fr_f_a, u, low, 1), SUM(fr_f_b, v, 0, 1));
    r.g = jot_where(is_a, SUM(fr_g_a, u, low, 1), SUM(fr_g_b, v, 0, 1));
    r.f = over(r.f, mul(num(M_PI), far));
    r.g = over(r.g, mul(num(M_PI * M_PI), mul(far, jot_square(far))));
    return r;
}

static jot_value fresnel_s(jot_value in)
{
    struct fresnel r = fresnel(in);
    jot_value far = sub(sub(num(0.5), mul(r.f, r.cosine)), mul(r.g, r.sine));
    jot_value cube = mul(r.x, jot_square(r.x));
    jot_value near = mul(cube, SUM(fs_near, mul(cube, r.x), 0, fresnel_end4));
    return odd(jot_where(r.is_near, near, far), in);
}

static jot_value fresnel_c(jot_value in)
{
    struct fresnel r = fresnel(in);
    jot_value far = sub(add(num(0.5), mul(r.f, r.sine)), mul(r.g, r.cosine));
    jot_value fourth = jot_square(jot_square(r.x));
    jot_value near = mul(r.x, SUM(fc_near, fourth, 0, fresnel_end4));
    return odd(jot_where(r.is_near, near, far), in);
}

// pi/2 (x^2 mod 4), whose slope is pi x.  Numbers from 2/epsilon on are even.
static jot_value angle_of(jot_value x)
{
    jot_value here = jot_stop_gradient(x), half = num(0.5);
    jot_value is_even = jot_less(num(2 / trace_epsilon(jot_value_dtype(x))), jot_abs(here));
    jot_value square = jot_square(jot_where(both(is_even, jot_is_finite(here)), num(0), here));
    jot_value moved = mul(sub(x, here), add(mul(half, x), mul(half, here)));
    return add(mul(num(M_PI_2), jot_rem(square, num(4))), mul(num(M_PI), moved));
}
static jot_value fresnel_s_rule(jot_value x, jot_value dx)
{
    return mul(dx, jot_sin(angle_of(x)));
}
static jot_value fresnel_c_rule(jot_value x, jot_value dx)
{
    return mul(dx, jot_cos(angle_of(x)));
}

jot_fresnel_result jot_fresnel_at(jot_value x, const char *where)
{
    jot_fresnel_result r = {TRACE_RULED_LANES("jot_fresnel", fresnel_s, fresnel_s_rule, x),
                            TRACE_RULED_LANES("jot_fresnel", fresnel_c, fresnel_c_rule, x)};
    if (where)
        jot_place(r.s, where);
    return r;
}

// ---- Dawson's integral, erfcx

static jot_value dawsn_near_0(jot_value x)
{
    return mul(x, SUM(dawsn_near, jot_square(x), 0, 4));
}

static jot_value dawsn(jot_value in)
{
    jot_value x = jot_abs(wide(in));
    jot_value near = dawsn_near_0(x);
    jot_value far = over(SUM(dawsn_b, inverse2(5, x), 0, 1), at_least(x, num(5)));
    jot_value y = jot_where(is_below(x, 5), SUM(dawsn_a, x, 2, 5), far);
    return odd(jot_where(is_below(x, 2), near, y), in);
}

// 1 - 2 x D(x), which cancels from its zero on: from 1.25 on -x^2 times it is a sum.
static jot_value dawsn_rule(jot_value in, jot_value dx)
{
    const double end = 1.25;
    jot_value x = wide(in), a = jot_abs(x), is_near = is_below(a, end);
    jot_value close = jot_where(is_near, x, num(0)), far = at_least(a, num(end));
    jot_value near = sub(num(1), mul(mul(num(2), close), dawsn_near_0(close)));
    jot_value y = jot_where(is_below(a, 5), SUM(dawsn_a_slope, a, end, 5),
                            SUM(dawsn_b_slope, inverse2(5, a), 0, 1));
    y = jot_where(is_near, near, jot_neg(over(over(y, far), far)));
    return mul(dx, jot_astype(y, jot_value_dtype(in)));
}

SPECIAL(dawsn)

static jot_value erfcx(jot_value in)
{
    jot_value x = wide(in), a = jot_abs(x), far = at_least(a, num(2));
    jot_value y =
        jot_where(is_below(a, 6), SUM(erfcx_a, a, 2, 6), SUM(erfcx_b, inverse2(6, a), 0, 1));
    y = jot_where(is_below(a, 2), SUM(erfcx_near, a, 0, 2), over(y, far));
    // Below 0 it is 2 e^(x^2) less that; the square in two parts, the first of which is exact.
    jot_value b = at_most(a, num(40)), high = mul(jot_floor(mul(b, num(32))), num(0.03125));
    jot_value low = mul(sub(b, high), add(b, high));
    jot_value power = mul(jot_exp(jot_square(high)), jot_exp(low));
    y = jot_where(is_below(x, 0), sub(mul(num(2), power), y), y);
    return jot_astype(jot_where(jot_is_nan(in), x, y), jot_value_dtype(in));
}

// 2 x erfcx(x) - 2/sqrt(pi), which cancels above 0: there -(1 + x)^2 times it is a sum, from 2
// on -x^2 times it.
static jot_value erfcx_rule(jot_value in, jot_value dx)
{
    jot_value x = wide(in), a = at_least(x, num(0)), far = at_least(a, num(2));
    jot_value near = over(SUM(erfcx_near_slope, a, 0, 2), jot_square(add(a, num(1))));
    jot_value y = jot_where(is_below(a, 6), SUM(erfcx_a_slope, a, 2, 6),
                            SUM(erfcx_b_slope, inverse2(6, a), 0, 1));
    y = jot_where(is_below(a, 2), near, over(over(y, far), far));
    jot_value below = sub(mul(mul(num(2), x), erfcx(x)), num(M_2_SQRTPI));
    y = jot_where(jot_less(num(0), x), jot_neg(y), below);
    return mul(dx, jot_astype(y, jot_value_dtype(in)));
}

SPECIAL(erfcx)

// ---- The dilogarithm
//
// Li_2(1 - y) for 1/2 <= y <= 2 is u - u^2/4 + B_2 u^3/3! + B_4 u^5/5! + ... of u = -log(y); for other y
// by Li_2(1 - y) = pi^2/6 - log(y) log(1 - y) - Li_2(y) and -log(y)^2/2 - Li_2(1 - 1/y) (DLMF 25.12).

static jot_value debye(jot_value u)
{
    static const double c[] = {1.0 / 36,
                               -1.0 / 3600,
                               1.0 / 211680,
                               -1.0 / 10886400,
                               1.8978869988970999e-9,
                               -4.0647616451442255e-11,
                               8.9216910204564526e-13,
                               -1.9939295860721076e-14,
                               4.5189800296199182e-16};
    jot_value square = jot_square(u);
    jot_value even = mul(square, trace_polynomial(sizeof c / sizeof *c, c, square));
    return mul(u, add(sub(num(1), mul(u, num(0.25))), even));
}

static jot_value spence(jot_value in)
{
    jot_value x = wide(in), one = num(1), is_large = jot_less(num(2), x);
    jot_value y = jot_where(is_large, over(one, x), x), is_small = is_below(y, 0.5);
    jot_value small = jot_where(is_small, y, num(0.25)), rest = jot_log1p(jot_neg(small));
    jot_value u = jot_where(is_small, jot_neg(rest), jot_neg(jot_log(y))), d = debye(u);
    jot_value product = jot_where(jot_equal(small, num(0)), num(0), mul(jot_log(small), rest));
    d = jot_where(is_small, sub(sub(num(M_PI * M_PI / 6), product), d), d);
    jot_value above = sub(mul(num(-0.5), jot_square(jot_log(jot_where(is_large, x, one)))), d);
    d = jot_where(is_large, above, d);
    return jot_astype(jot_where(is_below(x, 0), num(NAN), d), jot_value_dtype(in));
}

// log(x) / (1 - x), and near 1 with log(1 + m) = m - m^2 (...), whose derivatives are those of the sum.
static jot_value spence_rule(jot_value x, jot_value dx)
{
    jot_value one = num(1), m = sub(x, one), is_near = is_below(jot_abs(m), 0.3);
    jot_value close = jot_where(is_near, m, num(0)), far = jot_where(is_near, num(2), x);
    jot_value near = sub(mul(close, special_excess_near(close)), one);
    return mul(dx, jot_where(is_near, near, vanishing(x, over(jot_log(far), sub(one, far)))));
}

SPECIAL(spence)
