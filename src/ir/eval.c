// SPDX-License-Identifier: Apache-2.0
#include "ir/eval.h"

#include "base/status.h"
#include "ir/eval_ops.h"

static jot_status eval_call_body(const struct eval_call *c)
{
    int n;
    const int64_t *functions = ir_attr_ints(c->attrs, IR_KEY_functions, &n);
    if (n < 1 || functions[0] < 0 || functions[0] >= c->module->functions.count)
        return status_fail(JOT_ERR_INTERNAL, "%s without a function", ir_op_get(c->op)->name);
    const struct ir_graph *f = ir_function(c->module, (uint32_t)functions[0]);
    if ((int)f->n_params != c->n_in || (int)f->outputs.count != c->n_out)
        return status_fail(
            JOT_ERR_INTERNAL, "%s: the function takes %u and gives %u, not %d and %d",
            ir_op_get(c->op)->name, f->n_params, f->outputs.count, c->n_in, c->n_out);
    return ir_eval(c->arena, f, c->in, c->out);
}

static const eval_function class_functions[] = {
    [IR_CLASS_CONST] = eval_const,          [IR_CLASS_MAP] = eval_map,
    [IR_CLASS_REDUCE] = eval_reduce,        [IR_CLASS_ARG] = eval_arg,
    [IR_CLASS_CONTRACT] = eval_dot_general, [IR_CLASS_CUMULATIVE] = eval_cumulative,
    [IR_CLASS_CALL] = eval_call_body,       [IR_CLASS_HINT] = eval_copy,
    [IR_CLASS_UPDATE] = eval_scatter,
};

// Ops that their class does not say.
static const eval_function op_functions[IR_OP_COUNT] = {
    [IR_bitcast] = eval_copy,
    [IR_threefry2x32] = eval_threefry,
    [IR_iota] = eval_iota,
    [IR_reshape] = eval_copy,
    [IR_gather] = eval_gather,
    [IR_dynamic_slice] = eval_dynamic_slice,
    [IR_dynamic_update_slice] = eval_dynamic_update_slice,
    [IR_conv] = eval_conv,
    [IR_fft] = eval_fft,
    [IR_qr] = eval_qr,
    [IR_eigh] = eval_eigh,
    [IR_svd] = eval_svd,
    [IR_eig] = eval_eig,
    [IR_schur] = eval_schur,
    [IR_sort] = eval_sort,
    [IR_top_k] = eval_top_k,
    [IR_cholesky] = eval_cholesky,
    [IR_lu] = eval_lu,
    [IR_triangular_solve] = eval_triangular_solve,
    [IR_tridiagonal_solve] = eval_tridiagonal_solve,
    [IR_scan] = eval_scan,
    [IR_while] = eval_while,
    [IR_cond] = eval_cond,
    [IR_shard_map] = eval_shard_map,
    [IR_check] = eval_check,
    [IR_callback] = eval_callback,
};

static void *allocate_elements(struct arena *arena, const struct ir_module *m, struct ir_type t)
{
    return arena_allocate(arena, (size_t)ir_count(m, t) * dtype_get(ir_dtype(t))->bytes);
}

jot_status ir_eval_op(struct arena *arena, struct ir_module *m, enum ir_op op,
                      const struct ir_attrs *attrs, int n_in, const struct ir_tensor *in,
                      int n_out, const struct ir_type *types, struct ir_tensor *out)
{
    eval_function f = op_functions[op]       ? op_functions[op]
                      : ir_op_get(op)->index ? eval_layout
                                             : class_functions[ir_op_class(op)];
    if (!f)
        return status_fail(JOT_ERR_INTERNAL, "%s has no value of its own", ir_op_get(op)->name);
    struct ir_tensor *results = arena_array(arena, struct ir_tensor, n_out);
    for (int i = 0; i < n_out; i++) {
        results[i].type = types[i];
        results[i].data = allocate_elements(arena, m, types[i]);
    }
    struct eval_call c = {.arena = arena,
                          .module = m,
                          .op = op,
                          .attrs = attrs,
                          .n_in = n_in,
                          .n_out = n_out,
                          .in = in,
                          .out = results};
    JOT_TRY(f(&c));
    for (int i = 0; i < n_out; i++)
        out[i] = results[i];
    return JOT_OK;
}

jot_status ir_eval_node(struct arena *arena, const struct ir_graph *g, const struct ir_node *n,
                        const struct ir_tensor *in, struct ir_tensor *out)
{
    struct ir_type *types = arena_array(arena, struct ir_type, n->n_out);
    for (int i = 0; i < n->n_out; i++)
        types[i] = ir_type_of(g, n->out + (ir_id)i);
    return ir_eval_op(arena, g->module, n->op, n->attrs, (int)n->n_in, in, n->n_out, types,
                      out);
}

static jot_status check_arguments(const struct ir_graph *g, const struct ir_tensor *in)
{
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type want = ir_type_of(g, i);
        if (in[i].type.shape != want.shape || in[i].type.dtype != want.dtype)
            return status_fail(JOT_ERR_ARGUMENT, "argument %u is %s, not %s", i,
                               ir_type_text(g->module, in[i].type),
                               ir_type_text(g->module, want));
        if (!in[i].data && ir_count(g->module, want) > 0)
            return status_fail(JOT_ERR_ARGUMENT, "argument %u has no data", i);
    }
    return JOT_OK;
}

jot_status ir_eval(struct arena *arena, const struct ir_graph *g, const struct ir_tensor *in,
                   struct ir_tensor *out)
{
    JOT_TRY(check_arguments(g, in));
    struct ir_tensor *values = arena_array(arena, struct ir_tensor, g->values.count);
    for (uint32_t i = 0; i < g->n_params; i++)
        values[i] = in[i];
    for (uint32_t i = g->n_params; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        struct ir_tensor *operands = arena_array(arena, struct ir_tensor, n->n_in);
        for (uint32_t k = 0; k < n->n_in; k++)
            operands[k] = values[ir_operand(g, n, k)];
        JOT_TRY(ir_eval_node(arena, g, n, operands, values + n->out));
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        out[i] = values[g->outputs.at[i]];
    return JOT_OK;
}
