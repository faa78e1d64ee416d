// SPDX-License-Identifier: Apache-2.0
// Calls: of functions of the program, of compositions, and of what stands outside of it.
#include "interop/graph_call.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- functions of the program ----

static void convert_lgamma(struct graph_op *g) { g->out[0] = ir_lgamma(g->b, g->in[0]); }

static void call(struct graph_frame *frame, const struct mlir_op *op, const char *callee)
{
    const struct mlir_program *p = frame->in->program;
    const struct mlir_function *f = callee ? mlir_function_find(p, callee) : NULL;
    if (!f || !f->body) {
        graph_fail(frame, op, "there is no function @%s", callee ? callee : "?");
        return;
    }
    const struct mlir_op *end = f->body->ops[f->body->n_ops - 1];
    if (f->body->n_args != op->n_operands || end->n_operands != op->n_results) {
        graph_fail(frame, op, "@%s takes %u values and gives %u, not %u and %u", callee,
                   f->body->n_args, end->n_operands, op->n_operands, op->n_results);
        return;
    }
    if (graph_is_threefry(frame, f)) {
        graph_convert_op(frame, op, graph_library_find("threefry2x32"));
        return;
    }
    if (graph_is_lgamma(frame, f)) {
        graph_convert_op(frame, op, convert_lgamma);
        return;
    }
    jot_value *in = arena_array(frame->arena, jot_value, op->n_operands + op->n_results + 1);
    jot_value *out = in + op->n_operands;
    for (uint32_t i = 0; i < op->n_operands; i++)
        in[i] = graph_operand(frame, op, i);
    jot_apply_at(graph_function_value(&frame->in->all[f - p->functions]), op->n_operands, in,
                 op->n_results, out, graph_where(frame, op));
    for (uint32_t i = 0; i < op->n_results; i++)
        graph_set_result(frame, op, i, out[i]);
}

static void trace_call(struct graph_frame *frame, const struct mlir_op *op)
{
    call(frame, op, mlir_text(op, "callee"));
}

// ---- compositions ----

const struct mlir_row *graph_called_row(const char *name, const char *dialect)
{
    size_t n = strlen(dialect);
    bool is_of_dialect = name && !strncmp(name, dialect, n) && name[n] == '.';
    const struct mlir_row *row =
        is_of_dialect ? mlir_row_find("chlo", name + n + 1, strlen(name + n + 1)) : NULL;
    return row && graph_runs(row) ? row : NULL;
}

// The operation of CHLO that the name stands for, with its operands.
static bool trace_named(struct graph_frame *frame, const struct mlir_op *op, const char *name,
                        const char *dialect)
{
    const struct mlir_row *row = graph_called_row(name, dialect);
    if (!row)
        return false;
    struct mlir_op *named = arena_new(frame->arena, struct mlir_op);
    const struct mlir_attr *attrs = mlir_attr_find(op, "composite_attributes");
    if (!attrs)
        attrs = mlir_attr_find(op, "mhlo.attributes");
    *named = *op;
    named->row = row;
    if (attrs && attrs->kind == MLIR_DICTIONARY) {
        named->attrs = attrs->named;
        named->n_attrs = (uint32_t)attrs->n;
    }
    return graph_trace_op(frame, named), true;
}

// An op of elements that StableHLO has not, by the name that it is written with.
static void convert_own(struct graph_op *g)
{
    const char *name = mlir_text(g->op, "name") + strlen("jot.");
    int op = IR_param;
    while (strcmp(ir_op_get((enum ir_op)op)->name, name) != 0)
        op++;
    ir_id first = ir_build(g->b, (enum ir_op)op, (int)g->op->n_operands, g->in, NULL);
    for (uint32_t i = 0; i < g->op->n_results; i++)
        g->out[i] = first == IR_NONE ? IR_NONE : first + (ir_id)i;
}

static bool is_own(const struct mlir_op *op, const char *name)
{
    for (int k = 0; k < IR_OP_COUNT && name && !strncmp(name, "jot.", 4); k++) {
        const struct ir_op_info *info = ir_op_get((enum ir_op)k);
        if (info->op_class == IR_CLASS_MAP && !strcmp(info->name, name + 4))
            return info->in == (int)op->n_operands && info->out == (int)op->n_results;
    }
    return false;
}

static void trace_composite(struct graph_frame *frame, const struct mlir_op *op)
{
    const char *name = mlir_text(op, "name");
    if (is_own(op, name))
        graph_convert_op(frame, op, convert_own);
    else if (!trace_named(frame, op, name, "chlo"))
        call(frame, op, mlir_text(op, "decomposition"));
}

// ---- what stands outside ----

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static void pass_on(struct graph_frame *frame, const struct mlir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        graph_set_result(frame, op, i,
                         i < op->n_operands ? graph_operand(frame, op, i) : (jot_value){0, 0});
}

static const char *const identities[] = {
    "Sharding",         "SPMDFullToShardShape",       "SPMDShardToFullShape",
    "LayoutConstraint", "annotate_device_placement",  "MoveToDevice",
    "MoveToHost",       "xla.sdy.FuncResultSharding",
};

// The part of an array that a device has, or all of it: the same on one device.
static bool is_part(const struct mlir_op *op)
{
    return op->n_results && op->n_operands &&
           !mlir_types_equal(op->results[0]->type, op->operands[0]->type);
}

static void trace_custom_call(struct graph_frame *frame, const struct mlir_op *op)
{
    const char *target = mlir_text(op, "call_target_name");
    if (!target) {
        graph_fail(frame, op, "it names no target");
        return;
    }
    if (graph_check_operands(op) || (!op->n_results && starts(target, "shape_assertion")))
        return;
    for (size_t i = 0; i < sizeof identities / sizeof *identities; i++)
        if (!strcmp(target, identities[i])) {
            if (is_part(op))
                graph_fail(
                    frame, op,
                    "@%s divides an array between devices: sdy.manual_computation is read",
                    target);
            else
                pass_on(frame, op);
            return;
        }
    if (trace_named(frame, op, target, "mhlo") || trace_named(frame, op, target, "chlo"))
        return;
    graph_convert *convert = graph_library_find(target);
    if (convert)
        graph_convert_op(frame, op, convert);
    else if (strstr(target, "callback"))
        graph_fail(frame, op, "@%s calls back into Python, which is not there", target);
    else
        graph_fail(frame, op, "jot does not know the target @%s", target);
}

// Checks of StableHLO's tests are compared by whoever runs them.
static void skip(struct graph_frame *frame, const struct mlir_op *op)
{
    (void)frame;
    (void)op;
}

graph_trace *graph_called_find(enum mlir_code code)
{
    const char *dialect = mlir_rows[code].dialect;
    return code == MLIR_OP_func_call   ? trace_call
           : code == HLO_(composite)   ? trace_composite
           : code == HLO_(custom_call) ? trace_custom_call
           : !strcmp(dialect, "check") ? skip
                                       : NULL;
}
