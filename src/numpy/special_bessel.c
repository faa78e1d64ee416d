// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions of the first kind of orders 0 and 1, times e^-|x|.  Up to 8 they
// are power series, whose terms are positive (DLMF 10.25.2), and beyond sums of Chebyshev
// polynomials of 16/|x| - 1 for sqrt(|x|) times them (Clenshaw, Chebyshev series for
// mathematical functions, 1962).  In the derivatives they would cancel: these are sums of their
// own, of |x|/4 - 1 and 16/|x| - 1 for (1 + |x|)^2 and |x|^(3/2) times them, so that the sums
// are of the size of their summands.  The coefficients are the cosine transforms of the
// functions at 64 nodes in 40 digits.
#include "numpy/formula.h"
#include "trace/lanes.h"

#include "jot/special.h"
#include "jot/transform.h"

#include <math.h>

static const double far_0[] = {
    0.40224520550705442,     0.0033691164782556941,   6.889758346916824e-5,
    2.8913705208347565e-6,   2.0489185894690637e-7,   2.2666689904981781e-8,
    3.3962320257083863e-9,   4.9406023882249696e-10,  1.1889147107846438e-11,
    -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12,
    7.1801244513836662e-13,  3.8527783827421427e-13,  1.5400862175214098e-14,
    -4.1505693472872221e-14, -9.5548466988283076e-15, 3.8116806693526224e-15,
    1.7725601330565264e-15,  -3.4254856196772191e-16, -2.8276239805165835e-16,
    3.4612228676974611e-17,  4.46562142029676e-17,    -4.8305044859441821e-18,
    -7.233180487874754e-18};
static const double far_1[] = {
    0.38928811750914006,     -0.0097610974913614684,  -0.00011058893876262372,
    -3.8825648088776904e-6,  -2.5122362378702089e-7,  -2.6314688468895195e-8,
    -3.835380385964237e-9,   -5.5897434621965838e-10, -1.8974958123505412e-11,
    3.2526035830154882e-11,  1.4125807436613781e-11,  2.0356285441470895e-12,
    -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14,
    4.2724400167119514e-14,  1.0420276984128803e-14,  -3.8144030724370078e-15,
    -1.8803547755107824e-15, 3.3082023109209283e-16,  2.9626289976459501e-16,
    -3.209525921993424e-17,  -4.6503053684893583e-17, 4.4143483230717079e-18,
    7.5172963108421048e-18};

static const double near_slope_0[] = {
    0.82937721409582221,     -0.16444889102381224,    0.10386712737115726,
    -0.0003765017469703159,  -0.035847269221588776,   0.032909737158868753,
    -0.019131919664760643,   0.0081107600636868699,   -0.0023929594627845716,
    0.00027362257498727866,  0.00021734275020085061,  -0.00020044497900270882,
    0.00010798554595905552,  -4.6098205676142829e-5,  1.6907908254051046e-5,
    -5.5217864434386736e-6,  1.6380020585796565e-6,   -4.4706516056233523e-7,
    1.1328942697008152e-7,   -2.6837416911794728e-8,  5.9754529346623114e-9,
    -1.2560223324166841e-9,  2.5016655003600134e-10,  -4.7363520550841091e-11,
    8.5475166527231658e-12,  -1.4739176828852641e-12, 2.4337965796081193e-13,
    -3.8558312476360161e-14, 5.8713659789690272e-15,  -8.6068481676675984e-16,
    1.2163842025029635e-16,  -1.6596093346558246e-17, 2.188727243266264e-18};
static const double far_slope_0[] = {
    0.20463914491986041,     0.0053485260935385573,   0.00019150500095126415,
    1.2032615976256658e-5,   1.1956976470208373e-6,   1.716841771873406e-7,
    2.8338106568544693e-8,   3.0512068490939511e-9,   -7.4341354538362423e-10,
    -5.7672839092344344e-10, -1.5193610828268228e-10, 5.6687906228401842e-12,
    1.804470061607724e-11,   4.2535720734199772e-12,  -1.1555903826473055e-12,
    -7.7707032883126273e-13, 1.4368043830095462e-14,  1.0913028331644427e-13,
    1.1406069274284166e-14,  -1.5049144790858717e-14, -2.8555810704808024e-15,
    2.2314974017002143e-15,  5.2722587978145678e-16,  -3.6885258885157008e-16,
    -8.53559919668251e-17,   6.7549315226280814e-17,  1.1811455208665337e-17,
    -1.3225212330303549e-17, -1.0505875291963377e-18, 2.6372007064108129e-18,
    -1.153582402196744e-19,  -5.0700773039952144e-19};
static const double near_slope_1[] = {
    -0.22055562982684038,    -0.52987068962118722,    0.19462184002774335,
    -0.052638863279466833,   -0.0088190917144799711,  0.02170531381765017,
    -0.015695669869117294,   0.0075878557666973247,   -0.0026086850687581289,
    0.00051707980950951534,  7.708102444120255e-5,    -0.0001376778746167067,
    8.4004044237268732e-5,   -3.796258748319607e-5,   1.4404956540382477e-5,
    -4.8141000808849983e-6,  1.4524000080855434e-6,   -4.0159894230770835e-7,
    1.0282957772893787e-7,   -2.4567434687638734e-8,  5.5090105894873905e-9,
    -1.1649812136398799e-9,  2.3324080905188284e-10,  -4.4358879773216017e-11,
    8.0371043117358618e-12,  -1.3907820563824861e-12, 2.3037304686246915e-13,
    -3.6600561249699029e-14, 5.5874342644598845e-15,  -8.2095386422966584e-16,
    1.1626743990307563e-16,  -1.5893831716725066e-17, 2.0998191694333111e-18};
static const double far_slope_1[] = {
    -0.18464897258927965,    0.015109623584900027,    0.00030209393971388789,
    1.5915180785134349e-5,   1.4469212708078582e-6,   1.979988656562358e-7,
    3.217348695450893e-8,    3.6101811953136095e-9,   -7.2443858726011886e-10,
    -6.092544267535984e-10,  -1.6606191571929604e-10, 3.6331620786930951e-12,
    1.8764555793701829e-11,  4.6619271845291975e-12,  -1.134574964219579e-12,
    -8.1979472899838225e-13, 3.9477668459666603e-15,  1.1294468638888128e-13,
    1.3286424049794948e-14,  -1.5379965021950809e-14, -3.1518439702453973e-15,
    2.2635926609201487e-15,  5.7372893346635042e-16,  -3.7326693717464182e-16,
    -9.2873288277667209e-17, 6.8480733113013502e-17,  1.3053648483860228e-17,
    -1.3466640002249034e-17, -1.2532819676016662e-18, 2.7011433782935036e-18,
    -8.4860115695943449e-20, -5.2313614891603619e-19};

#define SUM(c, t) trace_chebyshev((int)(sizeof(c) / sizeof *(c)), c, t)

// In double precision, since single precision would lose three bits in the recurrence: |x|,
// what is at least 8, its root, and the arguments of the sums.
struct argument {
    jot_value a, is_near, far, root, near_t, far_t;
};

static struct argument argument_of(jot_value in)
{
    struct argument p = {.a = jot_abs(wide(in))};
    jot_value border = num(8);
    p.is_near = jot_less_equal(p.a, border);
    p.far = at_least(p.a, border);
    p.root = jot_sqrt(p.far);
    p.near_t = sub(mul(at_most(p.a, border), num(0.25)), one());
    p.far_t = sub(over(num(16), p.far), one());
    return p;
}

// The sum of (x^2/4)^k / (k! (k + order)!) for x^2 up to 64, which is a function over (x/2)^order.
static jot_value series(jot_value square, int order)
{
    enum { TERMS = 24 };
    jot_value y = one();
    for (int k = TERMS; k > 0; k--) {
        jot_value step = mul(square, num(0.25 / (k * (k + order))));
        y = add(mul(step, y), one());
    }
    return y;
}

// That times e^-|x|.
static jot_value power_series(struct argument p, int order)
{
    jot_value a = at_most(p.a, num(8));
    return mul(jot_exp(jot_neg(a)), series(jot_square(a), order));
}

// A derivative from (1 + |x|)^2 and |x|^(3/2) times it.
static jot_value slope(struct argument p, jot_value near, jot_value far, jot_value x)
{
    near = over(near, jot_square(add(one(), p.a)));
    far = over(far, mul(p.root, p.far));
    return jot_astype(jot_where(p.is_near, near, far), jot_value_dtype(x));
}

static jot_value order_0(jot_value x)
{
    struct argument p = argument_of(x);
    jot_value far = over(SUM(far_0, p.far_t), p.root);
    return jot_astype(jot_where(p.is_near, power_series(p, 0), far), jot_value_dtype(x));
}

static jot_value order_1(jot_value x)
{
    struct argument p = argument_of(x);
    jot_value half = mul(wide(x), num(0.5));
    jot_value far = mul(jot_sign(x), over(SUM(far_1, p.far_t), p.root));
    jot_value y = jot_where(p.is_near, mul(half, power_series(p, 1)), far);
    return jot_astype(y, jot_value_dtype(x));
}

// d i0e(x) = dx (i1e(x) - sign(x) i0e(x))
static jot_value rule_0(jot_value x, jot_value dx)
{
    struct argument p = argument_of(x);
    jot_value y = slope(p, SUM(near_slope_0, p.near_t), SUM(far_slope_0, p.far_t), x);
    // At the kink the mean of both sides.
    y = jot_where(jot_equal(x, num(0)), mul(num(1.5), x), mul(jot_neg(jot_sign(x)), y));
    return mul(dx, y);
}

// d i1e(x) = dx (i0e(x) - i1e(x) (sign(x) + 1/x)), 1/2 at 0
static jot_value rule_1(jot_value x, jot_value dx)
{
    struct argument p = argument_of(x);
    return mul(dx, slope(p, SUM(near_slope_1, p.near_t), SUM(far_slope_1, p.far_t), x));
}

jot_value jot_i0e(jot_value x) { return TRACE_RULED_LANES("jot_i0e", order_0, rule_0, x); }

jot_value jot_i1e(jot_value x) { return TRACE_RULED_LANES("jot_i1e", order_1, rule_1, x); }

// ---- Without the factor e^-|x|
//
// Up to 8 they are the power series themselves, and so are their derivatives, which as those of
// products with e^|x| would cancel.

// x up to 8, and from there on, where 800 has an infinite value as infinity has.
struct plain {
    jot_value is_near, near, far;
};

static struct plain plain_of(jot_value in)
{
    jot_value x = wide(in), border = num(8), end = num(800);
    struct plain p = {.is_near = jot_less_equal(jot_abs(x), border)};
    p.near = jot_where(p.is_near, x, num(0));
    p.far = jot_where(p.is_near, border, jot_clip(x, jot_neg(end), end));
    return p;
}

// The series, or y e^|x|, of which from 700 on the power may be too large alone.
static jot_value plain(struct plain p, jot_value series, jot_value y, jot_value in)
{
    const double shift = 40;
    jot_value a = jot_abs(p.far), is_large = jot_less(num(700), a);
    jot_value power = jot_exp(jot_where(is_large, sub(a, num(shift)), a));
    y = mul(mul(power, y), jot_where(is_large, num(exp(shift)), one()));
    return jot_astype(jot_where(p.is_near, series, y), jot_value_dtype(in));
}

static jot_value plain_0(jot_value x)
{
    struct plain p = plain_of(x);
    return plain(p, series(jot_square(p.near), 0), order_0(p.far), x);
}

// I_1(x)/x up to 8.
static jot_value part_1(struct plain p) { return mul(num(0.5), series(jot_square(p.near), 1)); }

static jot_value plain_1(jot_value x)
{
    struct plain p = plain_of(x);
    return plain(p, mul(p.near, part_1(p)), order_1(p.far), x);
}

// d i0(x) = dx i1(x)
static jot_value plain_rule_0(jot_value x, jot_value dx) { return mul(dx, plain_1(x)); }

// d i1(x) = dx (i0(x) - i1(x)/x)
static jot_value plain_rule_1(jot_value x, jot_value dx)
{
    struct plain p = plain_of(x);
    jot_value near = sub(series(jot_square(p.near), 0), part_1(p));
    jot_value far = sub(order_0(p.far), over(order_1(p.far), p.far));
    return mul(dx, plain(p, near, far, x));
}

jot_value jot_i0(jot_value x) { return TRACE_RULED_LANES("jot_i0", plain_0, plain_rule_0, x); }

jot_value jot_i1(jot_value x) { return TRACE_RULED_LANES("jot_i1", plain_1, plain_rule_1, x); }
