// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete beta function by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method, of
// (b, a, 1 - x) in place of (a, b, x) beyond the mean.
#include "trace/lanes.h"

#include "jot/special.h"

#include <math.h>

static jot_value num(double x) { return jot_from_double(x); }
static jot_value one(void) { return jot_from_double(1); }

struct arguments {
    jot_value a, b, x;
    double epsilon;
};

// m, c, d, the value so far, and what it was multiplied with last.
static jot_value goes_on(const jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    jot_value change = jot_abs(jot_sub(s[4], one()));
    return jot_logical_and(jot_less(num(p->epsilon), change), jot_less(s[0], num(5000)));
}

static void add_level(jot_value *s, jot_value numerator)
{
    s[2] = jot_div(one(), jot_add(one(), jot_mul(numerator, s[2])));
    s[1] = jot_add(one(), jot_div(numerator, s[1]));
    s[4] = jot_mul(s[1], s[2]);
    s[3] = jot_mul(s[3], s[4]);
}

static void step(jot_value *s, void *ctx)
{
    const struct arguments *p = ctx;
    s[0] = jot_add(s[0], one());
    jot_value m = s[0], at = jot_add(p->a, jot_mul(num(2), m)), sum = jot_add(p->a, p->b);
    jot_value even =
        jot_div(jot_mul(jot_mul(m, jot_sub(p->b, m)), p->x), jot_mul(jot_sub(at, one()), at));
    jot_value odd = jot_div(jot_mul(jot_mul(jot_add(p->a, m), jot_add(sum, m)), p->x),
                            jot_mul(at, jot_add(at, one())));
    add_level(s, even);
    add_level(s, jot_neg(odd));
}

static jot_value fraction(struct arguments p)
{
    jot_value sum = jot_add(p.a, p.b), first = jot_add(p.a, one());
    jot_value d = jot_div(one(), jot_sub(one(), jot_div(jot_mul(sum, p.x), first)));
    jot_value c[] = {jot_zeros_like(p.a), jot_ones_like(p.a), d, d, jot_zeros_like(p.a)};
    jot_while_at(goes_on, step, &p, 5, c, NULL, "jot_betainc");
    return c[3];
}

static jot_value is_inside(jot_value a, jot_value b, jot_value x)
{
    jot_value zero = num(0), infinity = num(INFINITY);
    jot_value y = jot_logical_and(jot_less(zero, x), jot_less(x, one()));
    y = jot_logical_and(y, jot_logical_and(jot_less(zero, a), jot_less(a, infinity)));
    return jot_logical_and(y, jot_logical_and(jot_less(zero, b), jot_less(b, infinity)));
}

// What is known outside: steps at 0 and 1.
static jot_value border(jot_value a, jot_value b, jot_value x)
{
    jot_value zero = num(0), infinity = num(INFINITY), sum = jot_add(a, b);
    jot_value at_0 = jot_logical_or(jot_equal(a, zero), jot_equal(b, infinity));
    jot_value at_1 = jot_logical_or(jot_equal(b, zero), jot_equal(a, infinity));
    jot_value valid = jot_logical_and(jot_less_equal(zero, x), jot_less_equal(x, one()));
    valid = jot_logical_and(valid, jot_less_equal(zero, jot_minimum(a, b)));
    valid = jot_logical_and(valid, jot_not_equal(sum, zero));
    valid = jot_logical_and(valid, jot_less(jot_minimum(a, b), infinity));
    jot_value y = jot_where(at_0, jot_where(jot_less(zero, x), one(), zero),
                            jot_where(at_1, jot_where(jot_less(x, one()), zero, one()), x));
    return jot_where(valid, y, num(NAN));
}

static jot_value lane(jot_value a, jot_value b, jot_value x)
{
    jot_value inside = is_inside(a, b, x);
    jot_value p = jot_where(inside, a, one()), q = jot_where(inside, b, one()),
              y = jot_where(inside, x, num(0.5));
    jot_value log_front = jot_sub(
        jot_add(jot_mul(p, jot_log(y)), jot_mul(q, jot_log1p(jot_neg(y)))), jot_betaln(p, q));
    jot_value mean = jot_div(jot_add(p, one()), jot_add(jot_add(p, q), num(2)));
    jot_value swapped = jot_less(mean, y);
    struct arguments s = {jot_where(swapped, q, p), jot_where(swapped, p, q),
                          jot_where(swapped, jot_sub(one(), y), y),
                          trace_epsilon(jot_value_dtype(a))};
    jot_value result = jot_div(jot_mul(jot_exp(log_front), fraction(s)), s.a);
    result = jot_where(swapped, jot_sub(one(), result), result);
    return jot_where(inside, result, border(a, b, x));
}

static jot_function plain(int n, void (*f)(void))
{
    return jot_function_plain("jot_betainc", "jot_betainc", n, f);
}

// In x the density, in a and b forward through the fraction.
static jot_value rule(jot_value a, jot_value b, jot_value x, jot_value da, jot_value db,
                      jot_value dx)
{
    static const int first[] = {0, JOT_END}, second[] = {1, JOT_END};
    jot_function f = plain(3, (void (*)(void))lane);
    jot_value in[] = {a, b, x, jot_ones_like(a)}, in_a[2], in_b[2];
    jot_apply_at(jot_jvp_of(f, "jot_betainc", first), 4, in, 2, in_a, NULL);
    jot_apply_at(jot_jvp_of(f, "jot_betainc", second), 4, in, 2, in_b, NULL);
    jot_value power =
        jot_add(jot_xlogy(jot_sub(a, one()), x), jot_xlog1py(jot_sub(b, one()), jot_neg(x)));
    jot_value density = jot_exp(jot_sub(power, jot_betaln(a, b)));
    return jot_add(jot_add(jot_mul(da, in_a[1]), jot_mul(db, in_b[1])), jot_mul(dx, density));
}

jot_value jot_betainc(jot_value a, jot_value b, jot_value x)
{
    jot_function f = jot_custom_jvp_of(plain(3, (void (*)(void))lane),
                                       plain(6, (void (*)(void))rule), "jot_betainc");
    return trace_lanes("jot_betainc", f, 3, (jot_value[]){a, b, x});
}
