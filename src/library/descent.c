// SPDX-License-Identifier: Apache-2.0
// Searches along directions: limited memory BFGS and nonlinear conjugate gradients.
//
// The line search keeps an interval in which the strong conditions of Wolfe hold somewhere: at
// its lower end f has fallen enough and still falls steeply, at its upper end f has not fallen
// enough or rises.
#include "library/formula.h"
#include "library/minimize.h"

#include "jot/control.h"

#include <float.h>
#include <math.h>

enum { MOST_TRIALS = 40 };

// ---------------------------------------------------------------------------------------
// The line search

struct line {
    const struct search *s;
    double sufficient;        // how much of the slope may be left
    jot_value x, d, f, slope; // where it begins
};

// f and its gradient are those of the last trial, at `tried`.
enum { T, LOW, HIGH, SLOPE_LOW, SLOPE_HIGH, TRIED, F, G, IS_DONE, TRIALS, LINE_CARRIES };

static jot_value line_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    return both(jot_logical_not(c[IS_DONE]), jot_less(c[TRIALS], jot_from_int(MOST_TRIALS)));
}

// Between the ends: where a line through the slopes is 0, but not too near to an end; twice as
// far where there is no upper end.
static jot_value next_trial(const jot_value *c)
{
    jot_value is_bounded = jot_is_finite(c[HIGH]), rise = sub(c[SLOPE_HIGH], c[SLOPE_LOW]);
    jot_value width = sub(jot_where(is_bounded, c[HIGH], c[T]), c[LOW]);
    jot_value rises = jot_greater(c[SLOPE_HIGH], num(0));
    jot_value zero = over(jot_neg(c[SLOPE_LOW]), jot_where(rises, rise, num(1)));
    jot_value share = jot_minimum(jot_maximum(zero, num(0.1)), num(0.9));
    jot_value inside = add(c[LOW], mul(jot_where(rises, share, num(0.5)), width));
    return jot_where(is_bounded, inside, mul(num(2), c[T]));
}

static void line_step(jot_value *c, void *ctx)
{
    const struct line *l = ctx;
    double rounding = 4 * (l->s->dtype == JOT_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
    library_evaluate(l->s, add(l->x, mul(c[T], l->d)), &c[F], &c[G]);
    jot_value slope = jot_vdot(c[G], l->d), most = mul(num(-l->sufficient), l->slope);
    jot_value allowed =
        add(l->f, add(mul(num(1e-4), mul(c[T], l->slope)), mul(num(rounding), jot_abs(l->f))));
    // NaN is too far.
    jot_value falls = jot_less_equal(c[F], allowed);
    jot_value is_in = both(falls, jot_less_equal(slope, most));
    c[IS_DONE] = both(is_in, jot_less_equal(jot_neg(most), slope));
    c[HIGH] = jot_where(is_in, c[HIGH], c[T]);
    c[SLOPE_HIGH] = jot_where(is_in, c[SLOPE_HIGH], jot_where(falls, slope, num(0)));
    c[LOW] = jot_where(is_in, c[T], c[LOW]);
    c[SLOPE_LOW] = jot_where(is_in, slope, c[SLOPE_LOW]);
    c[TRIED] = c[T];
    c[T] = next_trial(c);
    c[TRIALS] = add(c[TRIALS], jot_from_int(1));
}

// How far to go along d, with the value and the gradient there; 0 when no trial will do.
static jot_value search_line(const struct line *l, jot_value first, jot_value *f, jot_value *g)
{
    jot_value zero = jot_zeros_like(l->f);
    jot_value c[LINE_CARRIES] = {
        [T] = first,
        [LOW] = zero,
        [HIGH] = add(zero, num(INFINITY)),
        [SLOPE_LOW] = l->slope,
        [SLOPE_HIGH] = zero,
        [TRIED] = zero,
        [F] = *f,
        [G] = *g,
        [IS_DONE] = jot_not_equal(zero, zero),
        [TRIALS] = library_zero_count(),
    };
    jot_while_at(line_goes_on, line_step, (void *)l, LINE_CARRIES, c, NULL, l->s->where);
    jot_value is_lower = jot_logical_or(c[IS_DONE], jot_less(c[F], l->f));
    *f = jot_where(is_lower, c[F], *f);
    *g = jot_where(is_lower, c[G], *g);
    return jot_where(is_lower, c[TRIED], zero);
}

// ---------------------------------------------------------------------------------------
// The search

// What all methods carry; `ahead` is how much the last step was to change f by its slope.
enum { X, VALUE, GRADIENT, STEPS, STALLS, AHEAD, OWN, MOST_CARRIES = OWN + 3 };

struct method {
    struct search_kind kind;
    double sufficient;
    int n_own;
    void (*begin)(const struct search *s, jot_value *own, jot_value g);
    jot_value (*direction)(const struct search *s, const jot_value *own, jot_value g);
    // After a step of x by dx that changed the gradient by dg to g.
    void (*update)(const struct search *s, jot_value *own, jot_value d, jot_value dx,
                   jot_value dg, jot_value g);
    // The first trial of a line search.
    jot_value (*trial)(jot_value ahead, jot_value slope, jot_value length);
};

struct descent {
    struct search s;
    const struct method *method;
};

static jot_value goes_on(const jot_value *c, void *ctx)
{
    const struct search *s = ctx;
    jot_value is_large = jot_greater(library_largest(c[GRADIENT]), num(s->o.tol));
    jot_value has_steps = jot_less(c[STEPS], jot_from_int(s->o.max_steps));
    return both(both(is_large, has_steps), jot_logical_not(c[STALLS]));
}

static void step(jot_value *c, void *ctx)
{
    const struct descent *d = ctx;
    const struct search *s = &d->s;
    jot_value g = c[GRADIENT], down = d->method->direction(s, c + OWN, g);
    jot_value falls = jot_less(jot_vdot(g, down), num(0));
    down = jot_where(falls, down, jot_neg(g));
    struct line *l = jot_trace_memory(sizeof *l);
    if (!l) {
        c[X] = jot_error(JOT_ERR_MEMORY, s->name, NULL);
        return;
    }
    *l = (struct line){s, d->method->sufficient, c[X], down, c[VALUE], jot_vdot(g, down)};
    jot_value length = jot_sqrt(jot_vdot(down, down));
    jot_value t = d->method->trial(c[AHEAD], l->slope, length);
    t = search_line(l, t, &c[VALUE], &c[GRADIENT]);
    jot_value dx = mul(t, down);
    c[X] = add(c[X], dx);
    c[AHEAD] = mul(t, l->slope);
    c[STALLS] = jot_equal(t, num(0));
    c[STEPS] = add(c[STEPS], jot_from_int(1));
    d->method->update(s, c + OWN, down, dx, sub(c[GRADIENT], g), c[GRADIENT]);
}

static jot_search descend(const struct method *method, jot_function f, size_t n, jot_value *x,
                          const jot_minimize_options *options, const char *where)
{
    jot_value c[MOST_CARRIES];
    jot_search out;
    struct descent *d =
        library_search(&method->kind, sizeof *d, f, n, x, options, where, &c[X], &out);
    if (!d)
        return out;
    const struct search *s = &d->s;
    d->method = method;
    library_evaluate(s, c[X], &c[VALUE], &c[GRADIENT]);
    if (!library_fits(s, c[VALUE], x, &out))
        return out;
    jot_value zero = jot_zeros_like(c[VALUE]);
    c[STEPS] = library_zero_count();
    c[STALLS] = jot_not_equal(zero, zero);
    c[AHEAD] = zero;
    method->begin(s, c + OWN, c[GRADIENT]);
    jot_while_at(goes_on, step, d, (size_t)(OWN + method->n_own), c, NULL, where);
    library_found(s, library_gradient(s), true, c[X], c[VALUE], x);
    return library_minimum(s, c[VALUE], c[GRADIENT], c[STEPS]);
}

// ---------------------------------------------------------------------------------------
// Limited memory BFGS

enum { DX, DG, RHO }; // the last steps, newest last; rho = 1 / dx . dg, 0 where there is none

static void begin_lbfgs(const struct search *s, jot_value *own, jot_value g)
{
    const int64_t dims[] = {s->o.history, s->length, JOT_END};
    own[DX] = own[DG] = jot_zeros_dims(jot_value_dtype(g), dims);
    own[RHO] = jot_zeros_dims(jot_value_dtype(g), (const int64_t[]){s->o.history, JOT_END});
}

static jot_value lbfgs_direction(const struct search *s, const jot_value *own, jot_value g)
{
    jot_value q = g, alpha[MOST_HISTORY];
    for (int i = s->o.history - 1; i >= 0; i--) {
        jot_value dx = jot_take_axis(own[DX], i, 0), dg = jot_take_axis(own[DG], i, 0);
        alpha[i] = mul(jot_take_axis(own[RHO], i, 0), jot_vdot(dx, q));
        q = sub(q, mul(alpha[i], dg));
    }
    jot_value dg = jot_take_axis(own[DG], -1, 0), size = jot_vdot(dg, dg);
    jot_value rho = jot_take_axis(own[RHO], -1, 0), is_some = jot_greater(rho, num(0));
    jot_value scale = over(num(1), jot_where(is_some, mul(rho, size), num(1)));
    q = mul(scale, q);
    for (int i = 0; i < s->o.history; i++) {
        jot_value dx = jot_take_axis(own[DX], i, 0), dy = jot_take_axis(own[DG], i, 0);
        jot_value beta = mul(jot_take_axis(own[RHO], i, 0), jot_vdot(dy, q));
        q = add(q, mul(sub(alpha[i], beta), dx));
    }
    return jot_neg(q);
}

// The rows with a new one behind them, without the first.
static jot_value pushed(jot_value rows, jot_value row)
{
    jot_value parts[] = {jot_slice_axis(rows, 0, 1, jot_value_dim(rows, 0), 1),
                         jot_expand_dims_axes(row, (const int[]){0, JOT_END})};
    return jot_concatenate_list(0, 2, parts);
}

static void update_lbfgs(const struct search *s, jot_value *own, jot_value d, jot_value dx,
                         jot_value dg, jot_value g)
{
    (void)s, (void)d, (void)g;
    jot_value curvature = jot_vdot(dx, dg), is_convex = jot_greater(curvature, num(0));
    jot_value rho = over(num(1), jot_where(is_convex, curvature, num(1)));
    own[DX] = jot_where(is_convex, pushed(own[DX], dx), own[DX]);
    own[DG] = jot_where(is_convex, pushed(own[DG], dg), own[DG]);
    own[RHO] = jot_where(is_convex, pushed(own[RHO], rho), own[RHO]);
}

// A step of length 1 to begin with, then the whole step.
static jot_value whole_step(jot_value ahead, jot_value slope, jot_value length)
{
    (void)slope;
    return jot_where(jot_equal(ahead, num(0)), jot_minimum(num(1), over(num(1), length)),
                     num(1));
}

static const struct method lbfgs = {
    {"jot_lbfgs", true, false}, 0.9, 3, begin_lbfgs, lbfgs_direction, update_lbfgs, whole_step};

jot_search jot_lbfgs_tree(jot_function f, size_t n, jot_value *x,
                          const jot_minimize_options *options, const char *where)
{
    return descend(&lbfgs, f, n, x, options, where);
}

// ---------------------------------------------------------------------------------------
// Conjugate gradients

static void begin_cg(const struct search *s, jot_value *own, jot_value g)
{
    (void)s;
    own[0] = jot_neg(g);
}

static jot_value cg_direction(const struct search *s, const jot_value *own, jot_value g)
{
    (void)s, (void)g;
    return own[0];
}

static void update_cg(const struct search *s, jot_value *own, jot_value d, jot_value dx,
                      jot_value dg, jot_value g)
{
    (void)s, (void)dx;
    jot_value before = sub(g, dg), size = jot_vdot(before, before);
    jot_value is_some = jot_greater(size, num(0));
    jot_value beta = over(jot_vdot(g, dg), jot_where(is_some, size, num(1)));
    own[0] = sub(mul(jot_maximum(num(0), beta), d), g);
}

// As far as f is to fall as much as by the last step.
static jot_value same_change(jot_value ahead, jot_value slope, jot_value length)
{
    return jot_where(jot_equal(ahead, num(0)), jot_minimum(num(1), over(num(1), length)),
                     over(ahead, slope));
}

static const struct method nonlinear_cg = {
    {"jot_nonlinear_cg", false, false}, 0.1, 1, begin_cg, cg_direction, update_cg, same_change};

jot_search jot_nonlinear_cg_tree(jot_function f, size_t n, jot_value *x,
                                 const jot_minimize_options *options, const char *where)
{
    return descend(&nonlinear_cg, f, n, x, options, where);
}
