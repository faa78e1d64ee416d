// SPDX-License-Identifier: Apache-2.0
// Faddeeva's function and spherical harmonics.
#include "numpy/formula.h"
#include "trace/lanes.h"

#include "jot/numeric.h"
#include "jot/special.h"
#include "jot/transform.h"

#include <math.h>

static jot_value constant(double re, double im)
{
    return jot_astype(jot_complex(num(re), num(im)), JOT_C128);
}

// ---- Faddeeva's function
//
//     w(z) = i/pi int e^(-t^2)/(z - t) dt over all t, for z above the real axis
//
// by the trapezoidal rule with nodes at k h or (k + 1/2) h, whichever are farther from Re z,
// and the residue at z where it counts (M. Al Azah, S. Chandler-Wilde, Computation of the
// complex error function using modified trapezoidal rules, 2021).  Below the axis by
// w(z) = 2 e^(-z^2) - w(-z).

enum { RULE = 12 };

// x, y >= 0, not both huge.
static void faddeeva_sum(jot_value x, jot_value y, jot_value is_middle, jot_value *re,
                         jot_value *im)
{
    const double h = sqrt(M_PI / RULE);
    *re = *im = num(0);
    for (int k = 0; k < RULE; k++) {
        double t = k * h, m = (k + 0.5) * h, weight = k ? 1 : 0.5;
        jot_value node = jot_where(is_middle, num(m), num(t));
        jot_value factor = jot_where(is_middle, num(exp(-m * m)), num(weight * exp(-t * t)));
        jot_value below = sub(x, node), above = add(x, node), square = mul(y, y);
        jot_value near = over(num(1), add(mul(below, below), square));
        jot_value far = over(num(1), add(mul(above, above), square));
        *re = add(*re, mul(factor, mul(y, add(near, far))));
        // below near + above far, in one summand that is 0 at 0.
        jot_value rise = add(mul(below, above), square);
        *im = add(*im, mul(factor, mul(mul(add(x, x), rise), mul(near, far))));
    }
    *re = mul(*re, num(h / M_PI));
    *im = mul(*im, num(h / M_PI));
}

// w(x + i y) for x, y >= 0.
static jot_value faddeeva_quadrant(jot_value x, jot_value y)
{
    const double h = sqrt(M_PI / RULE);
    jot_value quotient = over(x, num(h)), part = sub(quotient, jot_floor(quotient));
    jot_value is_high = jot_less_equal(jot_maximum(x, num(M_PI / h)), y);
    jot_value is_between = jot_less_equal(jot_abs(sub(part, num(0.5))), num(0.25));
    jot_value is_middle = either(is_high, jot_logical_not(is_between)), re, im;
    faddeeva_sum(x, y, is_middle, &re, &im);
    // The residue, 2 e^(-z^2) E/(E - 1) or E/(E + 1) of E = e^(2 pi i z/h).
    jot_value low = jot_where(is_high, num(0), y), z = jot_complex(x, low);
    jot_value angle = mul(num(2 * M_PI), part);
    jot_value e =
        mul(jot_exp(mul(low, num(-2 * M_PI / h))), jot_complex(jot_cos(angle), jot_sin(angle)));
    jot_value residue = over(mul(mul(num(2), jot_exp(jot_neg(mul(z, z)))), e),
                             add(e, jot_where(is_middle, num(1), num(-1))));
    residue = jot_where(either(is_high, jot_less(num(30), x)), num(0), residue);
    return add(jot_complex(re, im), residue);
}

static jot_value wofz(jot_value in)
{
    jot_value z = jot_astype(in, JOT_C128), x = jot_abs(jot_real(z)), y = jot_abs(jot_imag(z));
    jot_value is_far = jot_less(num(1e9), jot_maximum(x, y));
    jot_value w = faddeeva_quadrant(jot_where(is_far, num(1), x), jot_where(is_far, num(1), y));
    jot_value first = jot_complex(x, y),
              is_infinite = jot_equal(jot_maximum(x, y), num(INFINITY));
    jot_value far = over(constant(0, 0.56418958354775629), jot_where(is_far, first, num(1)));
    w = jot_where(is_far, jot_where(is_infinite, num(0), far), w);
    // To the other quadrants: -conj(z) has the conjugate value.
    jot_value is_below = jot_less(jot_imag(z), num(0));
    jot_value is_left = jot_not_equal(jot_less(jot_real(z), num(0)), is_below);
    w = jot_where(is_left, jot_conj(w), w);
    jot_value power = jot_exp(jot_neg(mul(z, z)));
    w = jot_where(is_below, sub(mul(num(2), power), w), w);
    jot_value is_none = either(jot_is_nan(jot_real(z)), jot_is_nan(jot_imag(z)));
    return jot_astype(jot_where(is_none, constant(NAN, NAN), w), jot_value_dtype(in));
}

// w' = 2i/sqrt(pi) - 2 z w.
static jot_value wofz_rule(jot_value z, jot_value dz)
{
    jot_value at_0 = jot_astype(constant(0, M_2_SQRTPI), jot_value_dtype(z));
    return mul(dz, sub(at_0, mul(num(2), mul(z, wofz(z)))));
}

static jot_value wofz_of(jot_value z)
{
    return TRACE_RULED("jot_wofz", wofz, wofz_rule, jot_complex(jot_real(z), jot_imag(z)));
}

jot_value jot_wofz(jot_value z) { TRACE_RETURN(wofz_of(z)); }

// ---- Spherical harmonics
//
// The normalised Legendre functions by P_m^m = -sqrt((2m+1)/(2m)) sin(t) P_(m-1)^(m-1) from
// P_0^0 = 1/sqrt(4 pi), and then upward in n (DLMF 14.10.3).

struct legendre {
    jot_value m, sine, cosine;
};

enum { L_DEGREE, L_COUNT, L_THIS, L_BEFORE, L_CARRIES };

static jot_value legendre_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_less(c[L_DEGREE], c[L_COUNT]);
}

static void legendre_step(jot_value *c, void *ctx)
{
    const struct legendre *p = ctx;
    jot_value one = num(1), two = num(2), n = add(c[L_DEGREE], one), is_level;
    is_level = jot_less_equal(n, p->m);
    jot_value level = over(add(mul(two, n), one), mul(two, n));
    level = mul(mul(jot_neg(jot_sqrt(level)), p->sine), c[L_THIS]);
    jot_value m2 = mul(p->m, p->m), n2 = mul(n, n), last = mul(c[L_DEGREE], c[L_DEGREE]);
    jot_value scale = over(sub(mul(num(4), n2), one), jot_where(is_level, one, sub(n2, m2)));
    jot_value ratio = over(sub(last, m2), sub(mul(num(4), last), one));
    ratio = jot_sqrt(jot_maximum(ratio, num(0)));
    jot_value up = sub(mul(p->cosine, c[L_THIS]), mul(ratio, c[L_BEFORE]));
    up = mul(jot_sqrt(scale), up);
    c[L_BEFORE] = jot_where(is_level, num(0), c[L_THIS]);
    c[L_THIS] = jot_where(is_level, level, up);
    c[L_DEGREE] = n;
}

static jot_value legendre(jot_value in_n, jot_value in_m, jot_value in)
{
    jot_value n = wide(in_n), order = wide(in_m);
    jot_value t = wide(in), m = jot_abs(order), zero = jot_zeros_like(t);
    struct legendre p = {m, jot_sin(t), jot_cos(t)};
    jot_value is_some = both(jot_less_equal(m, n), jot_less(n, num(1e6)));
    jot_value c[] = {zero, jot_where(is_some, n, zero),
                     jot_full_like(t, num(0.28209479177387814)), zero};
    jot_while_at(legendre_goes_on, legendre_step, &p, L_CARRIES, c, NULL, "jot_sph_harm_y");
    jot_value is_odd = jot_not_equal(jot_rem(m, num(2)), num(0));
    jot_value turns = both(is_odd, jot_less(order, num(0)));
    jot_value y = jot_where(turns, jot_neg(c[L_THIS]), c[L_THIS]);
    return jot_astype(jot_where(is_some, y, num(0)), jot_value_dtype(in));
}

// dP_n^m/dt = (sqrt((n-m)(n+m+1)) P_n^(m+1) - sqrt((n+m)(n-m+1)) P_n^(m-1)) / 2.
static jot_value legendre_rule(jot_value n, jot_value m, jot_value t, jot_value dn,
                               jot_value dm, jot_value dt)
{
    (void)dn, (void)dm;
    jot_value one = num(1), below = sub(n, m), above = add(n, m), zero = num(0);
    jot_value up = jot_sqrt(jot_maximum(mul(below, add(above, one)), zero));
    jot_value down = jot_sqrt(jot_maximum(mul(above, add(below, one)), zero));
    up = mul(up, legendre(n, add(m, one), t));
    down = mul(down, legendre(n, sub(m, one), t));
    return mul(dt, mul(num(0.5), sub(up, down)));
}

static jot_value sph_harm_y(jot_value n, jot_value m, jot_value theta, jot_value phi)
{
    jot_value p = TRACE_RULED_LANES("jot_sph_harm_y", legendre, legendre_rule, n, m, theta);
    if (jot_value_failed(p))
        return p;
    if (!trace_slot_of(p)->weak)
        m = jot_astype(m, jot_value_dtype(p));
    jot_value angle = mul(m, phi);
    return jot_complex(mul(p, jot_cos(angle)), mul(p, jot_sin(angle)));
}

jot_value jot_sph_harm_y(jot_value n, jot_value m, jot_value theta, jot_value phi)
{
    TRACE_RETURN(sph_harm_y(n, m, theta, phi));
}
