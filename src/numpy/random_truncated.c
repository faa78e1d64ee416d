// SPDX-License-Identifier: Apache-2.0
// Truncated normal numbers.
#include "numpy/formula.h"
#include "trace/lanes.h"
#include "trace/random.h"

#include "jot/control.h"
#include "jot/special.h"
#include "jot/transform.h"

#include <math.h>

// What the interval is of a number, and where in it, from 0 to 1, it is drawn.
struct interval {
    jot_value lower, upper, unit;
};

// ---- Intervals of little probability
//
// As JAX has it, x = sqrt(2) erf_inv(u) for u between the erf of the ends, of which there are too few
// where the interval is far out or narrow.  There x solves log Q(x) = log Q(lower) - e, where Q is the
// upper tail and the interval is turned to the right; e is exponential, cut at the other end.  By
// Newton's method, which for a concave function that falls comes down to its zero from above.

// The probability in units of which u has enough values.
static double little(jot_dtype dtype)
{
    return dtype == JOT_F64 ? 0x1p-30 : dtype == JOT_F32 ? 0x1p-10 : 1;
}

// Q(x) e^(x^2/2), but for a factor.
static jot_value scaled_tail(jot_value x) { return jot_erfcx(mul(x, num(M_SQRT1_2))); }

// log Q(to) - log Q(from)
static jot_value fall(jot_value from, jot_value to)
{
    jot_value square = mul(sub(to, from), mul(add(to, from), num(0.5)));
    return sub(jot_log(over(scaled_tail(to), scaled_tail(from))), square);
}

enum { NUMBER, TRIP, CARRIES, TRIPS = 6 };

static jot_value goes_on(const jot_value *carry, void *ctx)
{
    (void)ctx;
    return jot_less(carry[TRIP], jot_from_int(TRIPS));
}

static void step(jot_value *carry, void *ctx)
{
    const struct interval *t = ctx;
    jot_value rest = jot_expm1(fall(t->lower, t->upper));
    jot_value e = jot_neg(jot_log1p(mul(t->unit, rest)));
    jot_value start = jot_sqrt(add(mul(t->lower, t->lower), mul(num(2), e)));
    jot_value x = jot_where(jot_equal(carry[TRIP], jot_from_int(0)), start, carry[NUMBER]);
    jot_value hazard = over(num(sqrt(2 / M_PI)), scaled_tail(x));
    x = add(x, over(add(fall(t->lower, x), e), hazard));
    carry[NUMBER] = jot_clip(x, t->lower, t->upper);
    carry[TRIP] = add(carry[TRIP], jot_from_int(1));
}

// x where the interval is not little; nothing is computed where none is.
static jot_value in_tails(const struct random_request *r, jot_value x, jot_value is_little,
                          jot_value is_turned, const struct interval *given)
{
    jot_dtype dtype = jot_value_dtype(given->lower);
    jot_value low = jot_where(is_turned, jot_neg(given->upper), given->lower);
    jot_value high = jot_where(is_turned, jot_neg(given->lower), given->upper);
    // Beyond, the numbers of an interval are one.
    jot_value top = num(dtype == JOT_F64 ? 1e100 : 1e8), is_far = jot_greater(low, top);
    jot_value is_ours = both(is_little, jot_logical_not(is_far));
    struct interval t = {jot_where(is_ours, low, num(0)), jot_where(is_ours, high, num(1)),
                         given->unit};
    t.lower = jot_convert(t.lower, dtype);
    t.upper = jot_convert(t.upper, dtype);
    jot_value any = jot_any_axes(is_ours, (int[]){JOT_END});
    jot_value carry[CARRIES] = {jot_broadcast_to_dims(t.lower, r->dims),
                                jot_where(any, jot_from_int(0), jot_from_int(TRIPS))};
    carry[TRIP] = jot_convert(carry[TRIP], JOT_I32);
    jot_while_at(goes_on, step, &t, CARRIES, carry, NULL, r->name);
    jot_value y = jot_where(is_far, low, carry[NUMBER]);
    y = jot_convert(jot_where(is_turned, jot_neg(y), y), r->dtype);
    return jot_where(is_little, y, x);
}

// ---- The numbers

static jot_value first(jot_value x, jot_value lower, jot_value upper, jot_value share)
{
    (void)lower, (void)upper, (void)share;
    return x;
}

// The density at an end over that at x.
static jot_value ratio(jot_value x, jot_value end)
{
    return jot_exp(mul(sub(x, end), mul(add(x, end), num(0.5))));
}

// A number keeps its share of the distribution function at the ends.
static jot_value rule(jot_value x, jot_value lower, jot_value upper, jot_value share,
                      jot_value dx, jot_value dlower, jot_value dupper, jot_value dshare)
{
    (void)dx, (void)dshare;
    jot_value low = mul(sub(num(1), share), ratio(x, lower));
    return add(trace_along(dlower, low), trace_along(dupper, mul(share, ratio(x, upper))));
}

static jot_value truncated_normal(const struct random_request *r)
{
    jot_dtype wide = r->dtype == JOT_F64 ? JOT_F64 : JOT_F32;
    struct random_request wider = *r;
    wider.dtype = wide;
    jot_value root = jot_convert(num(M_SQRT2), r->dtype), end[2], erf[2], inside[2], far[2];
    for (int i = 0; i < 2; i++) {
        end[i] = jot_stop_gradient(r->param[i]);
        erf[i] = jot_erf(over(end[i], root));
        jot_value beyond = jot_convert(num(i ? -INFINITY : INFINITY), r->dtype);
        inside[i] = jot_nextafter(end[i], beyond);
        far[i] = jot_convert(end[i], wide);
    }
    jot_value zero = jot_convert(num(0), r->dtype), one = jot_convert(num(1), r->dtype);
    jot_value unit = random_uniform(r, r->key, zero, one), width = sub(erf[1], erf[0]);
    // The ends of (-1, 1) have no finite image.
    jot_value most = sub(one, num(random_epsilon(r->dtype) / 2));
    jot_value u = jot_maximum(erf[0], add(mul(unit, width), erf[0]));
    u = jot_clip(u, jot_neg(most), most);
    jot_value x = mul(root, random_erf_inv(u));

    jot_value is_little =
        both(jot_less(width, num(little(r->dtype))), jot_less(end[0], end[1]));
    jot_value is_turned = both(is_little, jot_less(add(far[0], far[1]), num(0)));
    jot_value fine =
        random_uniform(&wider, r->key, jot_convert(num(0), wide), jot_convert(num(1), wide));
    const struct interval given = {far[0], far[1], fine};
    x = in_tails(r, x, is_little, is_turned, &given);
    x = jot_clip(x, inside[0], inside[1]);
    jot_value share = jot_where(is_little, fine, jot_convert(unit, wide));
    share = jot_convert(jot_where(is_turned, sub(num(1), share), share), r->dtype);
    return TRACE_RULED(r->name, first, rule, x, r->param[0], r->param[1], share);
}

RANDOM_OF2(truncated_normal, lower, upper)
