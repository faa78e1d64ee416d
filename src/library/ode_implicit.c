// SPDX-License-Identifier: Apache-2.0
// Steps of methods for stiff equations.  The values of the state are one vector v' = F(t, v)
// here, with the matrix J = dF/dv and systems of I - h gamma J.
//
// Diagonally implicit methods find each stage by Newton's method with the matrix of the begin
// of the step:
//
//     z = base + h gamma F(t, z)        base = y + sum_j a[j] l[j],  l = (z - base) / gamma
//
// where l is h times the slope, for which nothing is divided by h.  The iteration ends when the
// error that is left, by its rate, is little beside the tolerance; where it does not come to
// this the step is rejected.  The derivative is that of the equation, not of the iteration.
#include "jot/control.h"
#include "jot/linalg.h"
#include "jot/shapes.h"
#include "jot/solvers.h"

#include "library/formula.h"
#include "library/ode_problem.h"

#include <string.h>

static const double newton_tolerance = 0.01; // of the norm of an error that is just accepted
enum { NEWTON_TRIPS = 10 };

// ---- The state as a vector

struct flat {
    struct ode_problem p;
    const jot_value *like; // the values of the state
    jot_dtype dtype;
};

static jot_value vector_of(const struct flat *s, const jot_value *x)
{
    jot_value *parts = s->p.work;
    for (size_t i = 0; i < s->p.n; i++)
        parts[i] = jot_convert(
            jot_reshape_dims(x[i], (const int64_t[]){jot_value_size(x[i]), JOT_END}), s->dtype);
    return jot_concatenate_list(0, s->p.n, parts);
}

static void parts_of(const struct flat *s, jot_value v, jot_value *x)
{
    int64_t start = 0;
    for (size_t i = 0; i < s->p.n; i++) {
        int64_t dims[ODE_MOST_AXES + 1], size = jot_value_size(s->like[i]);
        int rank = jot_value_rank(s->like[i]);
        for (int axis = 0; axis < rank; axis++)
            dims[axis] = jot_value_dim(s->like[i], axis);
        dims[rank] = JOT_END;
        jot_value part = jot_slice_axis(v, 0, start, start + size, 1);
        x[i] = jot_convert(jot_reshape_dims(part, dims), jot_value_dtype(s->like[i]));
        start += size;
    }
}

// in: t, v.  out: F
static void flat_slope(const jot_value *in, jot_value *out, void *ctx)
{
    const struct flat *s = ctx;
    jot_value *x = s->p.next, *k = s->p.next_k;
    parts_of(s, in[1], x);
    ode_slope(&s->p, in[0], x, k);
    out[0] = vector_of(s, k);
}

// It lives as long as the trace, for functions are traced with it; NULL when memory is out.
static struct flat *make_flat(const struct ode_problem *p, const jot_value *y)
{
    struct flat *s = jot_trace_memory(sizeof *s);
    jot_value *like = jot_trace_memory(sizeof *like * p->n);
    if (!s || !like)
        return NULL;
    memcpy(like, y, sizeof *y * p->n);
    *s = (struct flat){*p, like, JOT_F32};
    for (size_t i = 0; i < p->n; i++)
        s->dtype = jot_value_dtype(y[i]) == JOT_F64 ? JOT_F64 : s->dtype;
    return ode_make_lists(&s->p) ? s : NULL;
}

static jot_value flat_at(struct flat *s, jot_value t, jot_value v)
{
    jot_value f;
    flat_slope((jot_value[]){t, v}, &f, s);
    return f;
}

// dF/dv, and dF/dt unless it is NULL.
static jot_value jacobian(struct flat *s, jot_value t, jot_value v, jot_value *in_t)
{
    jot_function f = jot_function_uniform(s->p.f.callee.name, s->p.where, flat_slope, 2, 1, s);
    jot_value in[] = {t, v}, out[2];
    const int both[] = {1, 0, JOT_END}, one[] = {1, JOT_END};
    jot_apply_at(jot_jacfwd_of(f, s->p.where, in_t ? both : one), 2, in, in_t ? 2 : 1, out,
                 NULL);
    if (in_t)
        *in_t = out[1];
    return out[0];
}

static jot_lu_factors factor(const struct flat *s, jot_value h_gamma, jot_value matrix)
{
    int64_t n = jot_value_dim(matrix, 0);
    jot_value unit = jot_eye(s->dtype, n, n);
    return jot_lu_factor_at(sub(unit, mul(h_gamma, matrix)), s->p.where);
}

// ---- Newton's method

struct stage {
    struct flat *s;
    jot_lu_factors factors;
    jot_value t, h_gamma, base, scale;
};

static jot_value residual(const struct stage *g, jot_value z)
{
    return sub(sub(z, g->base), mul(g->h_gamma, flat_at(g->s, g->t, z)));
}

static jot_value rms(jot_value x) { return jot_sqrt(jot_mean_axes(jot_square(x), NULL)); }

// Carries: the point, the norm of the last move and how the iteration goes.
enum { Z, MOVE, TRIPS, STATE, CARRIES };
enum { RUNS, CONVERGED, DIVERGED };

static jot_value number(int x) { return jot_convert(jot_from_int(x), JOT_I32); }

static jot_value newton_goes_on(const jot_value *c, void *ctx)
{
    (void)ctx;
    return jot_equal(c[STATE], number(RUNS));
}

static void newton_trip(jot_value *c, void *ctx)
{
    const struct stage *g = ctx;
    jot_value d = jot_lu_solve_trans(g->factors, residual(g, c[Z]), false);
    d = jot_stop_gradient(d);
    jot_value move = rms(over(d, g->scale)), is_first = jot_equal(c[TRIPS], number(0));
    // A tenth at first, for the matrix is not that of the point.
    jot_value rate = jot_where(is_first, num(0.1), over(move, c[MOVE]));
    jot_value left = mul(move, over(rate, sub(num(1), rate)));
    jot_value converges = jot_less(rate, num(1));
    jot_value is_done = both(converges, jot_less_equal(left, num(newton_tolerance)));
    is_done = jot_logical_or(is_done, jot_equal(move, num(0)));
    c[Z] = sub(c[Z], d);
    c[MOVE] = move;
    c[TRIPS] = add(c[TRIPS], number(1));
    jot_value ends = jot_logical_or(jot_logical_not(converges),
                                    jot_greater_equal(c[TRIPS], number(NEWTON_TRIPS)));
    c[STATE] =
        jot_where(is_done, number(CONVERGED), jot_where(ends, number(DIVERGED), number(RUNS)));
}

static void residual_body(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = residual(ctx, in[0]);
}

static void same(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = in[0];
}

// z of the stage, from a guess; *worked becomes false where it is not found.
static jot_value find_stage(const struct stage *g, jot_value guess, jot_value *worked)
{
    jot_value c[CARRIES] = {jot_stop_gradient(guess),
                            jot_zeros_dims(g->s->dtype, (const int64_t[]){JOT_END}), number(0),
                            number(RUNS)};
    jot_while_at(newton_goes_on, newton_trip, (void *)g, CARRIES, c, NULL, g->s->p.where);
    *worked = both(*worked, jot_equal(c[STATE], number(CONVERGED)));
    jot_function f =
        jot_function_uniform("stage", g->s->p.where, residual_body, 1, 1, (void *)g);
    jot_function identity = jot_function_uniform("stage", g->s->p.where, same, 1, 1, NULL);
    return jot_custom_root_at(f, jot_stop_gradient(c[Z]), identity, NULL, NULL, g->s->p.where);
}

// ---- Diagonally implicit steps

// sum_j weight[j] l[j], added to start
static jot_value combined(jot_value start, int n, const double *weight, const jot_value *l)
{
    for (int j = 0; j < n; j++)
        start = weight[j] == 0 ? start : add(start, mul(num(weight[j]), l[j]));
    return start;
}

jot_value ode_diagonal_step(const struct ode_problem *p, jot_value t, jot_value h,
                            const jot_value *y, const jot_value *k, jot_value *next,
                            jot_value *next_k, jot_value *error)
{
    const struct ode_method *m = p->method;
    struct flat *s = make_flat(p, y);
    struct stage *stages = jot_trace_memory(sizeof *stages * ODE_MOST_STAGES);
    if (!s || !stages)
        return ode_no_memory(p, p->n, next);
    jot_value v = vector_of(s, y), step = jot_convert(h, s->dtype),
              worked = jot_from_bool(true);
    jot_value h_gamma = mul(num(m->diagonal), step), z = v, l[ODE_MOST_STAGES];
    jot_value matrix = jot_stop_gradient(jacobian(s, t, jot_stop_gradient(v), NULL));
    jot_lu_factors factors = factor(s, jot_stop_gradient(h_gamma), matrix);
    jot_value scale = jot_stop_gradient(add(num(p->o.atol), mul(num(p->o.rtol), jot_abs(v))));
    l[0] = mul(step, vector_of(s, k));
    for (int i = 1; i < m->stages; i++) {
        jot_value base = combined(v, i, m->a[i], l);
        stages[i] =
            (struct stage){s, factors, add(t, mul(num(m->c[i]), h)), h_gamma, base, scale};
        z = find_stage(&stages[i], add(base, mul(num(m->diagonal), l[i - 1])), &worked);
        l[i] = mul(num(1 / m->diagonal), sub(z, base));
    }
    parts_of(s, z, next); // methods here end with their last stage
    if (next_k) {
        jot_value stays = jot_equal(step, num(0));
        jot_value slope = over(l[m->stages - 1], jot_where(stays, num(1), step));
        parts_of(s, jot_where(stays, vector_of(s, k), slope), next_k);
    }
    if (error)
        parts_of(s, combined(jot_zeros_like(v), m->stages, m->error, l), error);
    return worked;
}

// ---- Rosenbrock steps

jot_value ode_rosenbrock_step(const struct ode_problem *p, jot_value t, jot_value h,
                              const jot_value *y, const jot_value *k, jot_value *next,
                              jot_value *error)
{
    const struct ode_method *m = p->method;
    struct flat *s = make_flat(p, y);
    if (!s)
        return ode_no_memory(p, p->n, next);
    jot_value v = vector_of(s, y), step = jot_convert(h, s->dtype), at = v, in_t,
              u[ODE_MOST_STAGES];
    jot_value h_gamma = mul(num(m->diagonal), step), matrix = jacobian(s, t, v, &in_t);
    jot_lu_factors factors = factor(s, h_gamma, matrix);
    for (int i = 0; i < m->stages; i++) {
        at = combined(v, i, m->a[i], u);
        jot_value f = i == 0 ? vector_of(s, k) : flat_at(s, add(t, mul(num(m->c[i]), h)), at);
        f = add(f, mul(mul(num(m->time_weight[i]), step), in_t));
        f = mul(h_gamma, f);
        for (int j = 0; j < i; j++)
            f = add(f, mul(num(m->diagonal * m->coupling[i][j]), u[j]));
        u[i] = jot_lu_solve_trans(factors, f, false);
    }
    parts_of(s, add(at, u[m->stages - 1]), next);
    if (error)
        parts_of(s, u[m->stages - 1], error);
    return jot_from_bool(true);
}
