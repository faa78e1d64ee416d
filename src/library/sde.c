// SPDX-License-Identifier: Apache-2.0
// Stochastic equations dX = f dt + g dW with noise of its own for each element: the methods,
// their loops, and Brownian motion as a virtual tree.
#include "jot/control.h"
#include "jot/random.h"
#include "jot/shapes.h"

#include "library/formula.h"
#include "library/ode_problem.h"

#include <stdio.h>
#include <string.h>

static const char *const name = "jot_sde_solve";

// ---- Brownian motion

// Normal numbers of the shape and type of like.
static jot_value normal(jot_value key, jot_value like)
{
    int64_t dims[ODE_MOST_AXES + 1];
    int rank = jot_value_rank(like);
    for (int axis = 0; axis < rank; axis++)
        dims[axis] = jot_value_dim(like, axis);
    dims[rank] = JOT_END;
    return jot_random_normal_dims(key, jot_value_dtype(like), dims);
}

struct descent {
    jot_value key, like, at; // where, as a part of the interval
};

// c: the number of the node, as a heap counts, where it begins and its length, W at both ends.
// The middle is the mean of the ends and a number of the node.
static void descend(jot_value level, jot_value *c, void *ctx)
{
    (void)level;
    const struct descent *d = ctx;
    jot_value half = mul(num(0.5), c[2]), middle = add(c[1], half);
    jot_value spread = jot_convert(jot_sqrt(mul(num(0.25), c[2])), jot_value_dtype(d->like));
    jot_value w = add(mul(num(0.5), add(c[3], c[4])),
                      mul(spread, normal(jot_random_fold_in(d->key, c[0]), d->like)));
    jot_value is_right = jot_greater_equal(d->at, middle),
              two = jot_convert(jot_from_int(2), JOT_U32);
    c[0] = add(mul(two, c[0]), jot_convert(is_right, JOT_U32));
    c[1] = jot_where(is_right, middle, c[1]);
    c[2] = half;
    c[3] = jot_where(is_right, w, c[3]);
    c[4] = jot_where(is_right, c[4], w);
}

// W at a part of an interval of length 1.
static jot_value tree_at(jot_value key, jot_value at, jot_value like, int levels,
                         const char *where)
{
    struct descent d = {key, like, jot_stop_gradient(at)};
    jot_value end = normal(jot_random_fold_in(key, jot_from_int(0)), like);
    jot_value c[] = {jot_convert(jot_from_int(1), JOT_U32), jot_zeros_like(d.at),
                     jot_ones_like(d.at), jot_zeros_like(like), end};
    jot_for_at(descend, &d, jot_from_int(0), jot_from_int(levels), 5, c, where);
    jot_value within = ode_as_part(over(sub(d.at, c[1]), c[2]), like);
    return add(c[3], mul(within, sub(c[4], c[3])));
}

static jot_value brownian(jot_value key, jot_value t0, jot_value t1, jot_value t,
                          jot_value like, int levels, const char *where)
{
    if (levels < 1 || levels > 30) {
        char text[60];
        snprintf(text, sizeof text, "levels are 1 to 30, not %d", levels);
        return jot_error(JOT_ERR_ARGUMENT, "jot_brownian", text);
    }
    jot_value way = sub(t1, t0), at = over(sub(t, t0), way);
    return mul(ode_as_part(jot_sqrt(jot_abs(way)), like),
               tree_at(key, at, like, levels, where));
}

jot_value jot_brownian_at(jot_value key, jot_value t0, jot_value t1, jot_value t,
                          jot_value like, int levels, const char *where)
{
    jot_value zero = jot_zeros_dims(JOT_F32, (const int64_t[]){JOT_END});
    return jot_at(brownian(key, add(t0, zero), add(t1, zero), t, like, levels, where), where);
}

// ---- The methods

struct path {
    struct ode_problem *f, *g; // of one state
    jot_sde_options o;
    jot_value key, t0, t1;
};

struct noise {
    const struct ode_problem *g;
    jot_value t;
};

static void noise_of_state(const jot_value *in, jot_value *out, void *ctx)
{
    const struct noise *s = ctx;
    ode_slope(s->g, s->t, in, out);
}

// dg[i] = how g moves where y moves by g, which for noise of each element alone is g dg/dy.
static bool noise_slope(const struct path *s, jot_value t, const jot_value *y,
                        const jot_value *g, jot_value *dg)
{
    size_t n = s->g->n;
    struct noise *noise = jot_trace_memory(sizeof *noise);
    jot_value *in = jot_trace_memory(sizeof *in * 4 * n);
    if (!noise || !in)
        return false;
    *noise = (struct noise){s->g, t};
    memcpy(in, y, sizeof *in * n);
    memcpy(in + n, g, sizeof *in * n);
    jot_function f =
        jot_function_uniform("noise", s->g->where, noise_of_state, (int)n, (int)n, noise);
    jot_apply_at(jot_jvp_of(f, s->g->where, NULL), 2 * n, in, 2 * n, in + 2 * n, NULL);
    memcpy(dg, in + 3 * n, sizeof *in * n);
    return true;
}

static jot_value plus(jot_value x, jot_value h, jot_value slope)
{
    return add(x, mul(ode_as_part(h, x), slope));
}

// y becomes the next point; dw are the increments of the noise, of variance |h|.
static void step(const struct path *s, jot_value t, jot_value h, jot_value *y,
                 const jot_value *dw)
{
    const struct ode_problem *p = s->f;
    size_t n = p->n;
    jot_value way = jot_abs(h), *f = p->next, *g = p->next_k, *point = p->error,
              *other = s->g->next, *dg = s->g->next_k;
    ode_slope(p, t, y, f);
    ode_slope(s->g, t, y, g);
    for (size_t i = 0; i < n; i++)
        point[i] = add(plus(y[i], h, f[i]), mul(g[i], dw[i]));
    switch (s->o.method) {
    case JOT_SDE_EULER_MARUYAMA:
        memcpy(y, point, sizeof *y * n);
        return;
    case JOT_SDE_MILSTEIN:
        for (size_t i = 0; !noise_slope(s, t, y, g, dg) && i < n; i++)
            dg[i] = jot_error(JOT_ERR_MEMORY, name, NULL);
        for (size_t i = 0; i < n; i++)
            y[i] = add(point[i], mul(mul(num(0.5), dg[i]),
                                     sub(jot_square(dw[i]), ode_as_part(way, y[i]))));
        return;
    case JOT_SDE_HEUN:
        ode_slope(p, add(t, h), point, other);
        ode_slope(s->g, add(t, h), point, dg);
        for (size_t i = 0; i < n; i++)
            y[i] = add(plus(y[i], mul(num(0.5), h), add(f[i], other[i])),
                       mul(mul(num(0.5), add(g[i], dg[i])), dw[i]));
        return;
    case JOT_SDE_SRK: {
        jot_value root = jot_sqrt(way);
        for (size_t i = 0; i < n; i++)
            other[i] = plus(plus(y[i], h, f[i]), root, g[i]);
        ode_slope(s->g, t, other, dg);
        for (size_t i = 0; i < n; i++) {
            jot_value square = sub(jot_square(dw[i]), ode_as_part(way, y[i]));
            jot_value rate = over(sub(dg[i], g[i]), ode_as_part(mul(num(2), root), y[i]));
            y[i] = add(point[i], mul(rate, square));
        }
        return;
    }
    }
}

// ---- The loops

// Carries: the number of the step, t, then y and, where there is a tree, W.
enum { COUNT, T, FIRST };

struct segment {
    const struct path *s;
    jot_value h;
};

static jot_value key_of(const struct path *s, jot_value key, size_t i)
{
    return s->f->n == 1 ? key : jot_random_fold_in(key, jot_from_int((int64_t)i));
}

static void sde_step(jot_value *c, const jot_value *row, jot_value *out, void *ctx)
{
    (void)row, (void)out;
    const struct segment *e = ctx;
    const struct path *s = e->s;
    size_t n = s->f->n;
    jot_value t = c[T], next_t = add(t, e->h), *y = c + FIRST, *w = y + n;
    jot_value *dw = s->g->error, key = jot_random_fold_in(s->key, c[COUNT]);
    for (size_t i = 0; i < n; i++) {
        if (s->o.tree == 0) {
            jot_value root = ode_as_part(jot_sqrt(jot_abs(e->h)), y[i]);
            dw[i] = mul(root, normal(key_of(s, key, i), y[i]));
        } else {
            jot_value next = brownian(key_of(s, s->key, i), s->t0, s->t1, next_t, y[i],
                                      s->o.tree, s->f->where);
            dw[i] = sub(next, w[i]);
            w[i] = next;
        }
    }
    step(s, t, e->h, y, dw);
    c[T] = next_t;
    c[COUNT] = add(c[COUNT], jot_convert(jot_from_int(1), JOT_I32));
}

static size_t carries(const struct path *s) { return FIRST + s->f->n * (s->o.tree ? 2 : 1); }

static void run_to(const struct path *s, jot_value t1, jot_value *c)
{
    jot_loop_options loop = {.length = s->o.steps, .checkpoint = s->o.checkpoint};
    struct segment e = {s, mul(sub(t1, c[T]), num(1 / (double)s->o.steps))};
    jot_scan_at(sde_step, &e, carries(s), c, 0, NULL, 0, NULL, &loop, s->f->where);
    c[T] = t1;
}

static void run_row(jot_value *c, const jot_value *row, jot_value *out, void *ctx)
{
    const struct path *s = ctx;
    run_to(s, row[0], c);
    memcpy(out, c + FIRST, sizeof *out * s->f->n);
}

static bool run(const struct path *s, jot_value *y)
{
    size_t n = s->f->n;
    jot_value *c = jot_trace_memory(sizeof *c * (FIRST + 2 * n));
    if (!c)
        return false;
    c[COUNT] = jot_convert(jot_from_int(0), JOT_I32);
    c[T] = s->t0;
    for (size_t i = 0; i < n; i++) {
        c[FIRST + i] = y[i];
        c[FIRST + n + i] = jot_zeros_like(y[i]);
    }
    if (ode_has_times(s->f)) {
        jot_loop_options loop = {.checkpoint = s->o.checkpoint};
        jot_scan_at(run_row, (void *)s, carries(s), c, 1, &s->f->o.times, n, y, &loop,
                    s->f->where);
    } else {
        run_to(s, s->t1, c);
        memcpy(y, c + FIRST, sizeof *y * n);
    }
    return true;
}

// ---- The problem

static const char *refusal(const struct path *s)
{
    return (unsigned)s->o.method > JOT_SDE_SRK ? "there is no such method"
           : s->o.steps < 1                    ? "say how many .steps"
           : s->o.tree < 0 || s->o.tree > 30   ? "tree is not 0 to 30 levels"
                                               : NULL;
}

static bool prepare(struct path *s, jot_value *y, jot_value *out_error)
{
    const char *text = refusal(s);
    jot_value t0 = s->t0, t1 = s->t1;
    if (!text)
        return ode_prepare(s->f, &s->t0, &s->t1, y, out_error) &&
               ode_prepare(s->g, &t0, &t1, y, out_error);
    *out_error = jot_error(JOT_ERR_ARGUMENT, name, text);
    return false;
}

void jot_sde_solve_tree(jot_function drift, jot_function noise, jot_value t0, jot_value t1,
                        jot_value key, size_t n, jot_value *y, const jot_sde_options *options,
                        const char *where)
{
    struct path s = {.key = key, .t0 = t0, .t1 = t1};
    s.o = options ? *options : s.o;
    jot_ode_options o = {.method = JOT_ODE_EULER,
                         .parameters = s.o.parameters,
                         .times = s.o.times,
                         .steps = s.o.steps};
    jot_value error;
    s.f = ode_problem_make(name, drift, n, y, &o, where, &error);
    s.g = s.f ? ode_problem_make(name, noise, n, y, &o, where, &error) : NULL;
    bool is_solved = s.g && prepare(&s, y, &error);
    if (is_solved && !run(&s, y)) {
        error = jot_error(JOT_ERR_MEMORY, name, NULL);
        is_solved = false;
    }
    ode_place(n, y, is_solved ? NULL : &error, where);
}
