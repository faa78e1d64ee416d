// SPDX-License-Identifier: Apache-2.0
// How long steps are: the norm of an error, the controller, and the first step.
#include "library/formula.h"
#include "library/ode_problem.h"

#include <float.h>
#include <math.h>

static const double safety = 0.9, shortest = 0.2, longest = 10;

// The square of the norm of x[i] / scale[i].
static jot_value squared_norm(const struct ode_problem *p, const jot_value *x,
                              const jot_value *scale)
{
    jot_value total = num(0);
    double count = 0;
    for (size_t i = 0; i < p->n; i++) {
        jot_value ratio = over(jot_convert(jot_abs(x[i]), p->time), scale[i]);
        jot_value square = jot_stop_gradient(jot_square(ratio));
        total = p->o.norm == JOT_ODE_MAX ? jot_maximum(total, jot_max_axes(square, NULL))
                                         : add(total, jot_sum_axes(square, NULL));
        count += (double)jot_value_size(x[i]);
    }
    total = p->o.norm == JOT_ODE_MAX ? total : mul(num(1 / fmax(count, 1)), total);
    return jot_where(jot_is_nan(total), num(INFINITY), total);
}

// In the type of the time: quotients of half floats overflow.
static void scales(const struct ode_problem *p, const jot_value *y, const jot_value *next,
                   jot_value *scale)
{
    for (size_t i = 0; i < p->n; i++) {
        jot_value size = jot_maximum(jot_abs(y[i]), jot_abs(next[i]));
        scale[i] = add(num(p->o.atol), mul(num(p->o.rtol), jot_convert(size, p->time)));
    }
}

jot_value ode_error(const struct ode_problem *p, const jot_value *y, const jot_value *next,
                    const jot_value *error)
{
    jot_value *scale = p->work;
    scales(p, y, next, scale);
    return squared_norm(p, error, scale);
}

jot_value ode_speed(const struct ode_problem *p, const jot_value *y, const jot_value *k)
{
    return ode_error(p, y, y, k);
}

// (the norm of the error)^exponent from its square, which may be 0.
static jot_value power(const struct ode_problem *p, jot_value squared, double exponent)
{
    double tiny = p->time == JOT_F64 ? DBL_MIN : FLT_MIN;
    return jot_pow(jot_maximum(squared, num(tiny)), num(exponent / 2 / p->method->error_order));
}

jot_value ode_factor(const struct ode_problem *p, jot_value is_accepted, jot_value error,
                     jot_value before, jot_value before_that)
{
    const jot_ode_options *o = &p->o;
    jot_value factor = mul(num(safety), power(p, error, -(o->p + o->i + o->d)));
    if (o->p + 2 * o->d != 0)
        factor = mul(factor, power(p, before, o->p + 2 * o->d));
    if (o->d != 0)
        factor = mul(factor, power(p, before_that, -o->d));
    return jot_clip(factor, num(shortest), jot_where(is_accepted, num(longest), num(safety)));
}

static jot_value norm(const struct ode_problem *p, const jot_value *x, const jot_value *scale)
{
    return jot_sqrt(squared_norm(p, x, scale));
}

// Hairer, Noersett, Wanner: Solving Ordinary Differential Equations I, II.4: a step of Euler's
// that moves y by a hundredth of its size tells the second derivative, and this a step with an
// error of a hundredth.
static jot_value guess(const struct ode_problem *p, jot_value t, jot_value sign,
                       const jot_value *y, const jot_value *k)
{
    jot_value *scale = jot_trace_memory(sizeof *scale * 3 * p->n);
    if (!scale)
        return jot_error(JOT_ERR_MEMORY, p->name, NULL);
    jot_value *moved = scale + p->n, *slope = moved + p->n;
    scales(p, y, y, scale);
    jot_value size = norm(p, y, scale), speed = norm(p, k, scale);
    jot_value is_still = jot_less(jot_minimum(size, speed), num(1e-5));
    jot_value h = jot_where(is_still, num(1e-6), mul(num(0.01), over(size, speed)));
    jot_value step = mul(sign, h);
    for (size_t i = 0; i < p->n; i++)
        moved[i] = add(y[i], mul(ode_as_part(step, y[i]), k[i]));
    ode_slope(p, add(t, step), moved, slope);
    for (size_t i = 0; i < p->n; i++)
        slope[i] = sub(slope[i], k[i]);
    jot_value most = jot_maximum(speed, over(norm(p, slope, scale), h));
    jot_value other =
        jot_where(jot_less_equal(most, num(1e-15)), jot_maximum(num(1e-6), mul(num(1e-3), h)),
                  jot_pow(over(num(0.01), most), num(1. / p->method->error_order)));
    return jot_minimum(mul(num(100), h), other);
}

jot_value ode_rounded(jot_value t, jot_value h) { return jot_stop_gradient(sub(add(t, h), t)); }

jot_value ode_first_step(const struct ode_problem *p, jot_value t, jot_value t1,
                         const jot_value *y, const jot_value *k)
{
    jot_value way = jot_stop_gradient(sub(t1, t)), sign = jot_sign(way);
    double spacing = p->time == JOT_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    jot_value h = num(p->o.first_step);
    if (p->o.first_step == 0) {
        // A guess moves t; what is not finite or 0 is none.
        jot_value g = guess(p, t, sign, y, k), least = mul(num(spacing), jot_abs(t));
        h = jot_where(jot_greater(g, num(0)), jot_maximum(g, least), g);
    }
    if (p->o.longest_step > 0)
        h = jot_minimum(h, num(p->o.longest_step));
    h = jot_convert(jot_minimum(h, jot_abs(way)), p->time);
    return ode_rounded(jot_convert(t, p->time), mul(sign, h));
}
