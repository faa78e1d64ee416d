// SPDX-License-Identifier: Apache-2.0
// Projections on convex sets, and descent that stays in one.
#include "library/formula.h"
#include "library/minimize.h"

#include "jot/control.h"
#include "jot/ordering.h"

#include <math.h>

// ---------------------------------------------------------------------------------------
// Projections

// Squares and sums of half floats are f32.
static jot_value widened(jot_value x)
{
    jot_dtype d = jot_value_dtype(x);
    return d == JOT_F16 || d == JOT_BF16 ? jot_convert(x, JOT_F32) : x;
}

static jot_value project_ball(jot_value x, jot_value radius)
{
    jot_value square = jot_sum_axes(jot_square(x), NULL);
    jot_value is_out = jot_greater(square, jot_square(radius));
    jot_value norm = jot_sqrt(jot_where(is_out, square, num(1)));
    return jot_where(is_out, mul(x, over(radius, norm)), x);
}

// max(x - theta, 0), with theta of the largest elements, those above it, so that the sum is
// total.
static jot_value project_simplex(jot_value x, jot_value total)
{
    int64_t n = jot_value_size(x);
    jot_dtype dtype = jot_value_dtype(x);
    jot_value sorted = jot_sort_descending_axis(x, 0);
    jot_value above = sub(jot_cumsum_axes(sorted, (const int[]){0, JOT_END}), total);
    jot_value count = add(jot_arange(dtype, n), num(1));
    jot_value is_in = jot_greater(mul(sorted, count), above);
    // How many are in: the first element always is.
    jot_value least = jot_min_axes(jot_where(is_in, sorted, jot_take_axis(sorted, 0, 0)), NULL);
    jot_value is_kept = jot_greater_equal(x, jot_stop_gradient(least));
    jot_value kept = jot_sum_axes(jot_where(is_kept, x, num(0)), NULL);
    jot_value theta = over(sub(kept, total), jot_sum_axes(jot_convert(is_kept, dtype), NULL));
    return jot_where(is_kept, sub(x, theta), num(0));
}

static jot_value project_l1_ball(jot_value x, jot_value radius)
{
    jot_value size = jot_abs(x), is_in = jot_less_equal(jot_sum_axes(size, NULL), radius);
    return jot_where(is_in, x, mul(jot_sign(x), project_simplex(size, radius)));
}

// The projection by a function of x and the size of the set, which are checked.
static jot_value projected(const char *name, const char *of_size, bool is_vector, jot_value x,
                           jot_value size, jot_value (*project)(jot_value, jot_value),
                           const char *where)
{
    jot_value y = jot_value_failed(x) ? x : size;
    if (jot_value_failed(y))
        return jot_at(y, where);
    if (is_vector && (jot_value_rank(x) != 1 || jot_value_size(x) == 0))
        return jot_at(jot_error(JOT_ERR_SHAPE, name, "x is no vector with elements"), where);
    if (jot_value_rank(size) != 0)
        return jot_at(jot_error(JOT_ERR_SHAPE, name, of_size), where);
    y = project(widened(x), widened(size));
    bool was_half = jot_value_dtype(widened(x)) != jot_value_dtype(x);
    return jot_at(was_half ? jot_convert(y, jot_value_dtype(x)) : y, where);
}

jot_value jot_project_box_at(jot_value x, jot_value low, jot_value high, const char *where)
{
    jot_value y = jot_minimum(jot_maximum(x, low), high);
    if (!jot_value_failed(y) && !has_shape_of(y, x))
        y = jot_error(JOT_ERR_SHAPE, "jot_project_box",
                      "low or high have more elements than x");
    return jot_at(y, where);
}

jot_value jot_project_ball_at(jot_value x, jot_value radius, const char *where)
{
    return projected("jot_project_ball", "the radius is not one number", false, x, radius,
                     project_ball, where);
}

jot_value jot_project_simplex_at(jot_value x, jot_value total, const char *where)
{
    return projected("jot_project_simplex", "the total is not one number", true, x, total,
                     project_simplex, where);
}

jot_value jot_project_l1_ball_at(jot_value x, jot_value radius, const char *where)
{
    return projected("jot_project_l1_ball", "the radius is not one number", true, x, radius,
                     project_l1_ball, where);
}

// ---------------------------------------------------------------------------------------
// Projected gradient
//
// y is ahead of x by the last move, and each step begins there.  FISTA: Beck and Teboulle,
// 2009; what was gained is forgotten where it leads up (O'Donoghue and Candes, 2012).

struct projected {
    struct search s;
    struct search projection; // its f is the projection
};

enum { X, Y, LENGTH, MOMENTUM, CHANGE, STEPS, CARRIES };

static jot_value project(const struct projected *p, jot_value vector)
{
    return library_through(&p->projection, vector);
}

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct search *s = ctx;
    return both(jot_greater(c[CHANGE], num(s->o.tol)),
                jot_less(c[STEPS], jot_from_int(s->o.max_steps)));
}

// A trial step from y, shorter until the gradient changes by no more than a quadratic function
// of that length lets it: by values of f this would be lost in their rounding.
struct trial {
    const struct projected *p;
    jot_value y, gradient;
};
enum { TRIAL_LENGTH, TRIAL_X, IS_LONG, TRIAL_CARRIES };

static void try_length(const struct trial *t, jot_value *c)
{
    jot_value value, gradient, length = c[TRIAL_LENGTH];
    c[TRIAL_X] = project(t->p, sub(t->y, mul(length, t->gradient)));
    library_evaluate(&t->p->s, c[TRIAL_X], &value, &gradient);
    jot_value d = sub(c[TRIAL_X], t->y), change = jot_vdot(sub(gradient, t->gradient), d);
    jot_value fits = jot_less_equal(mul(length, change), jot_vdot(d, d));
    c[IS_LONG] = both(jot_logical_not(fits), jot_greater(length, num(1e-20)));
}

static jot_value is_long(const jot_value *c, void *ctx)
{
    (void)ctx;
    return c[IS_LONG];
}

static void halve_length(jot_value *c, void *ctx)
{
    c[TRIAL_LENGTH] = mul(num(0.5), c[TRIAL_LENGTH]);
    try_length(ctx, c);
}

static void step(jot_value *c, void *ctx)
{
    const struct projected *p = ctx;
    struct trial *t = jot_trace_memory(sizeof *t);
    if (!t) {
        c[X] = jot_error(JOT_ERR_MEMORY, p->s.name, NULL);
        return;
    }
    jot_value value;
    t->p = p;
    t->y = c[Y];
    library_evaluate(&p->s, c[Y], &value, &t->gradient);
    jot_value trial[TRIAL_CARRIES] = {mul(num(1.5), c[LENGTH])};
    try_length(t, trial);
    jot_while_at(is_long, halve_length, t, TRIAL_CARRIES, trial, NULL, p->s.where);
    jot_value x = trial[TRIAL_X], move = sub(x, c[X]);
    jot_value leads_up = jot_greater(jot_vdot(sub(c[Y], x), move), num(0));
    jot_value four = mul(num(4), jot_square(c[MOMENTUM]));
    jot_value next = mul(num(0.5), add(num(1), jot_sqrt(add(num(1), four))));
    jot_value share = over(sub(c[MOMENTUM], num(1)), next);
    c[CHANGE] = over(library_largest(sub(x, c[Y])), trial[TRIAL_LENGTH]);
    c[Y] = jot_where(leads_up, x, add(x, mul(share, move)));
    c[MOMENTUM] = jot_where(leads_up, num(1), next);
    c[LENGTH] = trial[TRIAL_LENGTH];
    c[X] = x;
    c[STEPS] = add(c[STEPS], jot_from_int(1));
}

// x - P(x - g), which is 0 at a minimum.
static void equation(const jot_value *in, jot_value *out, void *ctx)
{
    const struct projected *p = ctx;
    jot_value value, gradient;
    library_evaluate(&p->s, in[0], &value, &gradient);
    out[0] = sub(in[0], project(p, sub(in[0], gradient)));
}

jot_search jot_projected_gradient_tree(jot_function f, jot_function projection, size_t n,
                                       jot_value *x, const jot_minimize_options *options,
                                       const char *where)
{
    static const struct search_kind kind = {"jot_projected_gradient", false, false};
    jot_value c[CARRIES], value, gradient;
    jot_search out;
    struct projected *p =
        library_search(&kind, sizeof *p, f, n, x, options, where, &c[X], &out);
    if (!p)
        return out;
    p->projection = p->s;
    p->projection.f = projection;
    c[X] = project(p, c[X]);
    c[Y] = c[X];
    library_evaluate(&p->s, c[X], &value, &gradient);
    if (!library_fits(&p->s, value, x, &out))
        return out;
    jot_value zero = jot_zeros_like(value), size = library_largest(gradient);
    c[LENGTH] = over(num(1), jot_maximum(size, num(1)));
    c[MOMENTUM] = add(zero, num(1));
    c[CHANGE] = add(zero, num(INFINITY));
    c[STEPS] = library_zero_count();
    jot_while_at(goes_on, step, p, CARRIES, c, NULL, where);
    jot_apply_at(p->s.value, 1, &c[X], 1, &value, where);
    library_found(&p->s, jot_function_uniform(kind.name, where, equation, 1, 1, p), false, c[X],
                  value, x);
    return library_minimum(&p->s, value, c[CHANGE], c[STEPS]);
}
