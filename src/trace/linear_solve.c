// SPDX-License-Identifier: Apache-2.0
// jot_linear_solve: what a solver of the user's gives, with the derivative of the equation that it
// solves.  The three functions become bodies of one node.
//
// What they use besides their argument becomes operands of the node, each value once: all bodies
// take (residuals, values).
#include "trace/function.h"

#include "jot/solvers.h"

static const char *const name = "jot_linear_solve";

enum { SOLVE, MATVEC, TRANSPOSED_SOLVE, FUNCTIONS };
static const int in_order[FUNCTIONS] = {MATVEC, SOLVE,
                                        TRANSPOSED_SOLVE}; // the solvers call matvec

struct system {
    jot_function f[FUNCTIONS];
    int n;                 // values of b
    const jot_value *b;    // imported
    struct ir_type *types; // of b
    struct traced traced[FUNCTIONS];
    int n_residuals;
    jot_value *residual; // as handles of the traces around
};

static struct ir_builder *builder(void) { return trace_builder(); }

static bool check_function(const struct system *s, const jot_function *f)
{
    const char *problem = function_problem(f);
    if (problem) {
        trace_fail(name, function_problem_status(f), "%s", problem);
        return false;
    }
    int in = function_in(f, f->n_transforms), out = function_out(f, f->n_transforms);
    if (in == s->n && out == s->n)
        return true;
    trace_fail(name, JOT_ERR_ARGUMENT, "%s takes %d values and gives %d, but b has %d",
               f->callee.name, in, out, s->n);
    return false;
}

static bool check_types(const struct system *s, const jot_function *f, const struct traced *t)
{
    struct ir_module *m = builder()->module;
    for (int i = 0; i < s->n; i++) {
        struct ir_type have = traced_out_type(t, i);
        if (ir_type_alike(have, s->types[i]))
            continue;
        jot_place(trace_fail(name, JOT_ERR_SHAPE, "%s gives %s for value %d of b, which is %s",
                             f->callee.name, ir_type_text(m, have), i,
                             ir_type_text(m, s->types[i])),
                  f->callee.where);
        return false;
    }
    return true;
}

// The number of a residual, which is added when it is new.
static int residual_of(struct system *s, jot_value v)
{
    for (int i = 0; i < s->n_residuals; i++)
        if (s->residual[i].trace == v.trace && s->residual[i].id == v.id)
            return i;
    s->residual[s->n_residuals] = v;
    return s->n_residuals++;
}

static void collect_residuals(struct system *s)
{
    int most = 0;
    for (int k = 0; k < FUNCTIONS; k++)
        most += s->traced[k].n_hidden;
    s->residual = arena_array(builder()->module->arena, jot_value, most + 1);
    for (int k = 0; k < FUNCTIONS; k++)
        for (int i = 0; i < s->traced[k].n_hidden; i++)
            residual_of(s, s->traced[k].hidden[i]);
}

static ir_id operand_of(jot_value residual)
{
    return trace_slot_of(trace_import(name, residual))->id;
}

// A body over all residuals.
static uint32_t widen_part(struct system *s, int which)
{
    struct ir_module *m = builder()->module;
    const struct traced *t = &s->traced[which];
    const struct ir_graph *g = ir_function(m, t->function);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *param = arena_array(m->arena, ir_id, s->n_residuals + 1);
    ir_id *in = arena_array(m->arena, ir_id, s->n + t->n_hidden + 1);
    ir_id *out = arena_array(m->arena, ir_id, s->n + 1);
    for (int i = 0; i < s->n_residuals; i++)
        param[i] = ir_param(&b, ir_type_in(builder(), operand_of(s->residual[i])));
    for (int i = 0; i < s->n; i++)
        in[i] = ir_param(&b, s->types[i]);
    for (int i = 0; i < t->n_hidden; i++)
        in[s->n + i] = param[residual_of(s, t->hidden[i])];
    ir_inline(&b, g, in, out);
    for (int i = 0; i < s->n; i++)
        ir_output(&b, out[i]);
    uint32_t f = ir_finish_function(&b);
    if (f == IR_NONE)
        trace_fail(name, b.status, "%s", b.message);
    return f;
}

static bool record(struct system *s, jot_value *x)
{
    struct arena *arena = builder()->module->arena;
    ir_id *b = arena_array(arena, ir_id, s->n + 1);
    s->types = arena_array(arena, struct ir_type, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        b[i] = trace_strong(s->b[i]);
        s->types[i] = ir_type_in(builder(), b[i]);
        if (!dtype_is_inexact(ir_dtype(s->types[i]))) {
            trace_fail(name, JOT_ERR_DTYPE,
                       "b is %s: the equation needs float or complex values",
                       trace_type_text(s->b[i]));
            return false;
        }
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        int k = in_order[i];
        if (!check_function(s, &s->f[k]) ||
            !function_trace(&s->f[k], s->f[k].n_transforms, s->types, NULL, &s->traced[k]) ||
            !check_types(s, &s->f[k], &s->traced[k]))
            return false;
    }
    collect_residuals(s);
    uint32_t f[FUNCTIONS];
    for (int k = 0; k < FUNCTIONS; k++)
        if ((f[k] = widen_part(s, k)) == IR_NONE)
            return false;
    ir_id *in = arena_array(arena, ir_id, s->n_residuals + s->n + 1);
    for (int i = 0; i < s->n_residuals; i++)
        in[i] = operand_of(s->residual[i]);
    memcpy(in + s->n_residuals, b, sizeof *b * (size_t)s->n);
    ir_id first = ir_linear_solve(builder(), f, s->n_residuals, s->n_residuals + s->n, in);
    for (int i = 0; i < s->n; i++)
        x[i] = trace_result(name, first == IR_NONE ? IR_NONE : first + (ir_id)i, false);
    return first != IR_NONE;
}

static bool make(void *ctx, jot_value *x, jot_value *out_error)
{
    struct system *s = ctx;
    if (!trace_ready(name, 0, NULL, out_error))
        return false;
    jot_value *b = arena_array(trace_top()->module->arena, jot_value, s->n + 1);
    memcpy(b, s->b, sizeof *b * (size_t)s->n);
    s->b = b;
    if (!trace_ready(name, s->n, b, out_error))
        return false;
    if (record(s, x))
        return true;
    *out_error = trace_fail_latest();
    return false;
}

void jot_linear_solve_tree(jot_function matvec, jot_function solve,
                           jot_function transposed_solve, size_t n, const jot_value *b,
                           jot_value *x, const char *where)
{
    if (trace_lacks(name, "b", n, b, n, x, where) || trace_lacks(name, "x", n, x, n, x, where))
        return;
    struct system s = {
        .f = {[SOLVE] = solve, [MATVEC] = matvec, [TRANSPOSED_SOLVE] = transposed_solve},
        .n = (int)n,
        .b = b};
    trace_make(make, &s, n, x, where);
}

jot_value jot_linear_solve_at(jot_function matvec, jot_function solve,
                              jot_function transposed_solve, jot_value b, const char *where)
{
    jot_value x;
    jot_linear_solve_tree(matvec, solve, transposed_solve, 1, &b, &x, where);
    return x;
}
