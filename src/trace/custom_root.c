// SPDX-License-Identifier: Apache-2.0
// jot_custom_root: what a solver of the user's gives, with the derivative of the equation that it
// solves.
//
// f is traced once, and what it uses besides x, h, becomes arguments:  F(h, x).  The root is
// attached(h, x, point), which is x and has the tangent of the equation at `point`.  First derivatives
// need no more of the point than that it equals x; second ones need its derivative, so that it is such
// a root itself.
#include "trace/function.h"
#include "trace/vectors.h"

#include "jot/linalg.h"
#include "jot/ops.h"
#include "jot/shapes.h"
#include "jot/solvers.h"

static const char *const name = "jot_custom_root";

enum { ORDERS = 3 };

struct root {
    jot_function f, solver;
    jot_tangent_solve *solve;
    void *ctx;
    const char *where;
    int n;
    const jot_value *guess;
    struct traced traced; // f
    uint16_t leaves[2];   // of the arguments of F
    uint16_t result;
};

// ---- The matrix of a linear function

struct columns {
    jot_function linear;
    size_t n;
    const jot_value *like;
};

static void column(const jot_value *in, jot_value *out, void *ctx)
{
    const struct columns *c = ctx;
    struct arena *arena = trace_top()->module->arena;
    jot_value *x = arena_array(arena, jot_value, 2 * c->n + 1);
    trace_vector_parts((int)c->n, c->like, in[0], x);
    jot_apply_at(c->linear, c->n, x, c->n, x + c->n, NULL);
    out[0] = trace_vector((int)c->n, x + c->n);
}

static void solve_matrix(jot_function linear, size_t n, const jot_value *y, jot_value *x,
                         void *ctx)
{
    (void)ctx;
    struct columns *c = arena_new(trace_top()->module->arena, struct columns);
    *c = (struct columns){linear, n, y};
    jot_value b = trace_vector((int)n, y), unit = jot_ones_like(b), columns;
    jot_function f = jot_function_uniform(name, name, column, 1, 1, c);
    unit = jot_diag(unit, 0);
    jot_apply_at(jot_vmap_of(f, name, NULL), 1, &unit, 1, &columns, NULL);
    trace_vector_parts((int)n, y, jot_solve(jot_swap_axes(columns, 0, 1), b), x);
}

// ---- F(h, x)

static void call_f(const jot_value *in, jot_value *out, void *ctx)
{
    const struct root *r = ctx;
    struct arena *arena = trace_top()->module->arena;
    struct traced closed = r->traced;
    int n_hidden = closed.n_hidden, count = r->n + n_hidden;
    closed.n_hidden = 0;
    ir_id *ids = arena_array(arena, ir_id, count + r->n + 1);
    for (int i = 0; i < r->n; i++)
        ids[i] = trace_strong(in[n_hidden + i]);
    for (int i = 0; i < n_hidden; i++)
        ids[r->n + i] = trace_strong(in[i]);
    if (!traced_emit(name, &closed, count, ids, ids + count))
        return;
    for (int i = 0; i < r->n; i++)
        out[i] = trace_value(ids[count + i], false);
}

// How F moves at (h, x) when argument 0 or 1 moves.
static void f_tangent(const struct root *r, int argument, const jot_value *at,
                      const jot_value *tangent, jot_value *out)
{
    int count = r->n + r->traced.n_hidden, moved = r->leaves[argument];
    jot_value *v =
        arena_array(trace_top()->module->arena, jot_value, count + moved + 2 * r->n + 1);
    jot_value *result = v + count + moved;
    memcpy(v, at, sizeof *v * (size_t)count);
    memcpy(v + count, tangent, sizeof *v * (size_t)moved);
    jot_function f = jot_function_trees(r->f.callee.name, r->where, call_f, 2, r->leaves, 1,
                                        &r->result, (void *)r);
    jot_apply_at(jot_jvp_of(f, r->where, (const int[]){argument, JOT_END}),
                 (size_t)(count + moved), v, 2 * (size_t)r->n, result, r->where);
    memcpy(out, result + r->n, sizeof *out * (size_t)r->n);
}

struct linear {
    const struct root *r;
    const jot_value *at;
};

static void linear_body(const jot_value *in, jot_value *out, void *ctx)
{
    const struct linear *l = ctx;
    f_tangent(l->r, 1, l->at, in, out);
}

// ---- attached(h, x, point)

static void attached(const jot_value *in, jot_value *out, void *ctx)
{
    const struct root *r = ctx;
    memcpy(out, in + r->traced.n_hidden, sizeof *out * (size_t)r->n);
}

static void attached_rule(const jot_value *in, jot_value *out, void *ctx)
{
    const struct root *r = ctx;
    struct arena *arena = trace_top()->module->arena;
    int n_hidden = r->traced.n_hidden;
    jot_value *at = arena_array(arena, jot_value, n_hidden + 3 * r->n + 1);
    jot_value *y = at + n_hidden + r->n, *x = y + r->n;
    memcpy(at, in, sizeof *at * (size_t)n_hidden);
    memcpy(at + n_hidden, in + n_hidden + r->n, sizeof *at * (size_t)r->n);
    f_tangent(r, 0, at, in + n_hidden + 2 * r->n, y);
    struct linear *l = arena_new(arena, struct linear);
    *l = (struct linear){r, at};
    r->solve(jot_function_uniform(r->f.callee.name, r->where, linear_body, r->n, r->n, l),
             (size_t)r->n, y, x, r->ctx);
    for (int i = 0; i < r->n; i++)
        out[i] = jot_neg(x[i]);
}

// ---- Making it

static bool check_function(const struct root *r, const jot_function *f)
{
    const char *problem = function_problem(f);
    if (problem) {
        trace_fail(name, function_problem_status(f), "%s", problem);
        return false;
    }
    int in = function_in(f, f->n_transforms), out = function_out(f, f->n_transforms);
    if (in == r->n && out == r->n)
        return true;
    trace_fail(name, JOT_ERR_ARGUMENT, "%s takes %d values and gives %d, but the guess has %d",
               f->callee.name, in, out, r->n);
    return false;
}

static bool check_type(const struct root *r, const jot_function *f, int i, struct ir_type have,
                       struct ir_type want)
{
    struct ir_module *m = trace_top()->module;
    if (ir_type_alike(have, want))
        return true;
    jot_place(trace_fail(name, JOT_ERR_SHAPE,
                         "%s gives %s for value %d of the guess, which is %s", f->callee.name,
                         ir_type_text(m, have), i, ir_type_text(m, want)),
              f->callee.where ? f->callee.where : r->where);
    return false;
}

static bool record(struct root *r, jot_value *x)
{
    struct arena *arena = trace_top()->module->arena;
    struct ir_type *types = arena_array(arena, struct ir_type, r->n + 1);
    for (int i = 0; i < r->n; i++) {
        types[i] = ir_type_in(trace_builder(), trace_strong(r->guess[i]));
        if (!dtype_is_inexact(ir_dtype(types[i]))) {
            trace_fail(name, JOT_ERR_DTYPE,
                       "the guess is %s: it takes floats or complex numbers",
                       trace_type_text(r->guess[i]));
            return false;
        }
    }
    if (!check_function(r, &r->f) || !check_function(r, &r->solver) ||
        !function_trace(&r->f, r->f.n_transforms, types, NULL, &r->traced))
        return false;
    for (int i = 0; i < r->n; i++)
        if (!check_type(r, &r->f, i, traced_out_type(&r->traced, i), types[i]))
            return false;
    int n_hidden = r->traced.n_hidden, count = n_hidden + 2 * r->n;
    if (n_hidden > UINT16_MAX || r->n > UINT16_MAX) {
        trace_fail(name, JOT_ERR_ARGUMENT,
                   "%s uses %d values around it to find %d: at most %d of each",
                   r->f.callee.name, n_hidden, r->n, UINT16_MAX);
        return false;
    }
    r->leaves[0] = (uint16_t)n_hidden;
    r->leaves[1] = r->result = (uint16_t)r->n;
    jot_value *in = arena_array(arena, jot_value, count + 1);
    jot_apply_at(r->solver, (size_t)r->n, r->guess, (size_t)r->n, x, r->where);
    for (int i = 0; i < r->n; i++) {
        if (trace_is_error(x[i]) || !check_type(r, &r->solver, i, trace_type(x[i]), types[i]))
            return false;
        in[n_hidden + i] = in[n_hidden + r->n + i] = x[i] = jot_stop_gradient(x[i]);
    }
    if (n_hidden == 0) // a constant
        return true;
    memcpy(in, r->traced.hidden, sizeof *in * (size_t)n_hidden);
    jot_function f = jot_function_uniform(name, name, attached, count, r->n, r);
    jot_function rule = jot_function_uniform(name, name, attached_rule, 2 * count, r->n, r);
    for (int order = 0; order < ORDERS; order++) {
        jot_apply_at(jot_custom_jvp_of(f, rule, name), (size_t)count, in, (size_t)r->n, x,
                     r->where);
        memcpy(in + n_hidden + r->n, x, sizeof *x * (size_t)r->n);
    }
    return !trace_is_error(x[0]);
}

static bool make(void *ctx, jot_value *x, jot_value *out_error)
{
    if (!trace_ready(name, 0, NULL, out_error))
        return false;
    // Traced functions refer to it for as long as the trace is open.
    struct root *r = arena_new(trace_top()->module->arena, struct root);
    *r = *(const struct root *)ctx;
    jot_value *guess = arena_array(trace_top()->module->arena, jot_value, r->n + 1);
    memcpy(guess, r->guess, sizeof *guess * (size_t)r->n);
    r->guess = guess;
    if (!trace_ready(name, r->n, guess, out_error))
        return false;
    if (record(r, x))
        return true;
    *out_error = trace_fail_latest();
    return false;
}

void jot_custom_root_tree(jot_function f, size_t n, const jot_value *guess, jot_function solve,
                          jot_tangent_solve *tangent_solve, void *ctx, jot_value *x,
                          const char *where)
{
    if (trace_lacks(name, "guess", n, guess, n, x, where) ||
        trace_lacks(name, "x", n, x, n, x, where))
        return;
    struct root r = {.f = f,
                     .solver = solve,
                     .solve = tangent_solve ? tangent_solve : solve_matrix,
                     .ctx = ctx,
                     .where = where,
                     .n = (int)n,
                     .guess = guess};
    trace_make(make, &r, n, x, where);
}

jot_value jot_custom_root_at(jot_function f, jot_value guess, jot_function solve,
                             jot_tangent_solve *tangent_solve, void *ctx, const char *where)
{
    jot_value x;
    jot_custom_root_tree(f, 1, &guess, solve, tangent_solve, ctx, &x, where);
    return x;
}
