// SPDX-License-Identifier: Apache-2.0
// Derivatives of values of the current trace.
#include "trace/function.h"

#include "ir/collective.h"
#include "passes/passes.h"

// x must be names: parameters of the innermost trace, or variables.  Without that rule equal
// constants would be one node, and the gradient in one would silently contain the other's.
static bool check_name(const char *op, size_t i, jot_value v, jot_value *out_error)
{
    struct trace *t = trace_top();
    if (v.trace != t->serial || v.id >= t->slots.count) {
        jot_value seen = trace_import(op, v);
        *out_error =
            trace_is_error(seen)
                ? seen
                : trace_fail(op, JOT_ERR_ARGUMENT,
                             "value %zu to differentiate in comes from outside this "
                             "block: write x = jot_variable(x) in the block and compute "
                             "with that",
                             i);
        return false;
    }
    const struct trace_slot *s = trace_slot_of(v);
    if (s->kind == TRACE_ERROR) {
        *out_error = v;
        return false;
    }
    enum ir_op node = s->kind == TRACE_VALUE ? ir_node_of(t->b.graph, s->id)->op : IR_const;
    if (node != IR_variable && (node != IR_param || s->id >= t->b.graph->n_params)) {
        *out_error =
            trace_fail(op, JOT_ERR_ARGUMENT,
                       "value %zu to differentiate in is a computed %s (%s), not an "
                       "argument: write x = jot_variable(x) first and compute with that",
                       i, trace_type_text(v), s->where ? s->where : ir_op_get(node)->name);
        return false;
    }
    if (!dtype_is_inexact((jot_dtype)s->dtype)) {
        *out_error =
            trace_fail(op, JOT_ERR_DTYPE, "value %zu to differentiate in is %s, not floating",
                       i, trace_type_text(v));
        return false;
    }
    return true;
}

static bool check(const char *op, jot_value *y, size_t n, const jot_value *x, ir_id *ids,
                  jot_value *out_error)
{
    if (!trace_ready(op, 1, y, out_error))
        return false;
    if (!dtype_is_inexact((jot_dtype)trace_slot_of(*y)->dtype)) {
        *out_error =
            trace_fail(op, JOT_ERR_DTYPE, "the value to differentiate is %s, not floating",
                       trace_type_text(*y));
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!check_name(op, i, x[i], out_error))
            return false;
        ids[i] = trace_slot_of(x[i])->id;
    }
    return true;
}

static jot_value variable(jot_value x)
{
    jot_value error;
    if (!trace_ready("jot_variable", 1, &x, &error))
        return error;
    // A lane of a named map has one of its own.
    ir_id own = ir_pvary(trace_builder(), trace_strong(x), trace_top()->axes);
    return trace_result("jot_variable", ir_variable(trace_builder(), own), false);
}

static jot_value guarded_variable(jot_value x) { TRACE_RETURN(variable(x)); }

void jot_variable_tree(size_t n, jot_value *x)
{
    if (trace_lacks("jot_variable", "x", n, x, n, x, NULL))
        return;
    for (size_t i = 0; i < n; i++)
        x[i] = guarded_variable(x[i]);
}

// The value as a builder failure of a pass, or of the thread.
static jot_value pass_error(const char *op)
{
    return trace_builder()->status != JOT_OK ? trace_result(op, IR_NONE, false)
                                             : trace_fail_status(op);
}

// A pass that derives y, where there is stack for it.
struct derivation {
    enum { GRADIENT, TANGENT, JACOBIAN } kind;
    ir_id y;
    size_t n;
    const ir_id *x, *dx;
    ir_id *out;
};

static bool run_pass(void *ctx)
{
    const struct derivation *d = ctx;
    struct ir_builder *b = trace_builder();
    switch (d->kind) {
    case GRADIENT:
        return pass_gradient_in(b, d->y, (int)d->n, d->x, d->out);
    case TANGENT:
        return pass_tangent_in(b, d->y, (int)d->n, d->x, d->dx, d->out);
    case JACOBIAN:
        return pass_jacobian_in(b, d->y, *d->x, d->out);
    }
    return false;
}

static bool derive(struct derivation d) { return trace_with_stack(run_pass, &d); }

static jot_value gradient(const char *op, jot_value y, size_t n, jot_value *x)
{
    struct arena *arena;
    jot_value error;
    if (!trace_ready(op, 0, NULL, &error))
        return error;
    arena = trace_top()->module->arena;
    ir_id *ids = arena_array(arena, ir_id, n + 1), *out = arena_array(arena, ir_id, n + 1);
    if (!check(op, &y, n, x, ids, &error))
        return error;
    struct ir_type t = trace_type(y);
    if (t.rank)
        return trace_fail(op, JOT_ERR_SHAPE,
                          "the value to differentiate is %s, not a scalar: reduce it first, or "
                          "take jot_jacobian",
                          trace_type_text(y));
    if (dtype_is_complex(ir_dtype(t)))
        return trace_fail(
            op, JOT_ERR_DTYPE,
            "the value to differentiate is %s: take its real part, or jot_abs of it",
            trace_type_text(y));
    if (!derive((struct derivation){GRADIENT, trace_strong(y), n, ids, NULL, out}))
        return pass_error(op);
    for (size_t i = 0; i < n; i++)
        x[i] = trace_result(op, out[i], false);
    return (jot_value){0, 0};
}

static jot_value guarded_gradient(const char *op, jot_value y, size_t n, jot_value *x)
{
    TRACE_RETURN(gradient(op, y, n, x));
}

void jot_gradient_tree(jot_value y, size_t n, jot_value *x)
{
    if (trace_lacks("jot_gradient", "x", n, x, n, x, NULL))
        return;
    jot_value error = guarded_gradient("jot_gradient", y, n, x);
    if (error.trace || error.id)
        trace_set_all(n, x, error);
}

// A gradient in a variable of something computed before it would be a silent zero.
static jot_value check_late(jot_value y, size_t n, const jot_value *x)
{
    jot_value none = {0, 0}, error;
    if (!trace_ready("jot_gradient", 0, NULL, &error))
        return none;
    struct trace *t = trace_top();
    const struct ir_graph *g = t->b.graph;
    ir_id *ids = arena_array(t->module->arena, ir_id, n + 1);
    ir_id *before = arena_array(t->module->arena, ir_id, n + 1);
    size_t n_before = 0;
    if (!check("jot_gradient", &y, n, x, ids, &error))
        return error;
    for (size_t i = 0; i < n; i++)
        if (ir_node_of(g, ids[i])->op == IR_variable)
            before[n_before++] = ir_operand(g, ir_node_of(g, ids[i]), 0);
    const struct trace_slot *s = trace_slot_of(y);
    if (!n_before || s->kind != TRACE_VALUE || pass_depends(&t->b, s->id, (int)n, ids) ||
        !pass_depends(&t->b, s->id, (int)n_before, before))
        return none;
    const char *where = trace_slot_of(x[0])->where;
    return trace_fail("jot_gradient", JOT_ERR_ARGUMENT,
                      "the value was computed before %s: compute it from the new variable",
                      where ? where : "jot_variable");
}

static jot_value guarded_check_late(jot_value y, size_t n, const jot_value *x)
{
    TRACE_RETURN(check_late(y, n, x));
}

void jot_gradient_of(jot_value y, size_t n, jot_value *x)
{
    if (trace_lacks("jot_gradient", "x", n, x, n, x, NULL))
        return;
    jot_value error = guarded_check_late(y, n, x);
    if (error.trace || error.id)
        trace_set_all(n, x, error);
    else
        jot_gradient_tree(y, n, x);
}

static jot_value tangent(jot_value y, size_t n, const jot_value *x, const jot_value *dx)
{
    const char *op = "jot_tangent";
    jot_value error;
    if (!trace_ready(op, 0, NULL, &error))
        return error;
    struct arena *arena = trace_top()->module->arena;
    ir_id *ids = arena_array(arena, ir_id, n + 1), *d = arena_array(arena, ir_id, n + 1);
    if (!check(op, &y, n, x, ids, &error))
        return error;
    for (size_t i = 0; i < n; i++) {
        jot_value v = dx[i];
        if (!trace_ready(op, 1, &v, &error))
            return error;
        struct ir_type have = trace_type(v), want = trace_type(x[i]);
        if (have.shape != want.shape || have.rank != want.rank)
            return trace_fail(op, JOT_ERR_SHAPE, "tangent %zu is %s for a value that is %s", i,
                              trace_type_text(v), trace_type_text(x[i]));
        d[i] = trace_operand(v, ir_dtype(ir_type_in(trace_builder(), ids[i])));
    }
    ir_id out;
    if (!derive((struct derivation){TANGENT, trace_strong(y), n, ids, d, &out}))
        return pass_error(op);
    return trace_result(op, out, false);
}

jot_value jot_tangent_tree(jot_value y, size_t n, const jot_value *x, const jot_value *dx)
{
    TRACE_NEEDS("jot_tangent", "x", n, x);
    TRACE_NEEDS("jot_tangent", "dx", n, dx);
    TRACE_RETURN(tangent(y, n, x, dx));
}

static jot_value jacobian(jot_value y, jot_value x)
{
    ir_id id, out;
    jot_value error;
    if (!trace_ready("jot_jacobian", 0, NULL, &error) ||
        !check("jot_jacobian", &y, 1, &x, &id, &error))
        return error;
    if (!derive((struct derivation){JACOBIAN, trace_strong(y), 1, &id, NULL, &out}))
        return pass_error("jot_jacobian");
    return trace_result("jot_jacobian", out, false);
}

jot_value jot_jacobian_of(jot_value y, jot_value x) { TRACE_RETURN(jacobian(y, x)); }
