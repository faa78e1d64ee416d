// SPDX-License-Identifier: Apache-2.0
// What is asked of nodes along their axes.
#include "passes/analysis/axes.h"

bool node_is_folding(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_REDUCE || c == IR_CLASS_ARG || c == IR_CLASS_CONTRACT;
}

bool node_is_index(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_LAYOUT || c == IR_CLASS_INDEX || c == IR_CLASS_CONST ||
           c == IR_CLASS_HINT || n->op == IR_dynamic_update_slice;
}

const int64_t *node_folded_axes(const struct ir_node *n, uint32_t i, int *count)
{
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTRACT)
        return ir_attr_ints(n->attrs, i ? IR_KEY_rhs_contract : IR_KEY_lhs_contract, count);
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_REDUCE)
        return ir_attr_ints(n->attrs, IR_KEY_axes, count);
    return ir_attr_ints(n->attrs, IR_KEY_axis, count);
}

struct dot_shape dot_shape_of(const struct ir_graph *g, const struct ir_node *n)
{
    static const enum ir_key batch_keys[2] = {IR_KEY_lhs_batch, IR_KEY_rhs_batch};
    static const enum ir_key contract_keys[2] = {IR_KEY_lhs_contract, IR_KEY_rhs_contract};
    struct dot_shape d = {0};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t set = 0;
        d.batch[i] = ir_attr_ints(n->attrs, batch_keys[i], &d.n_batch);
        d.contract[i] = ir_attr_ints(n->attrs, contract_keys[i], &d.n_contract);
        for (int k = 0; k < d.n_batch; k++)
            set |= UINT32_C(1) << d.batch[i][k];
        for (int k = 0; k < d.n_contract; k++)
            set |= UINT32_C(1) << d.contract[i][k];
        for (int a = 0; a < ir_rank_of(g, ir_operand(g, n, i)); a++)
            if (!(set >> a & 1))
                d.free[i][d.n_free[i]++] = a;
    }
    return d;
}

int node_routine_axes(const struct ir_node *n)
{
    enum { ALL_SIZES = -1 };
    // By op: so many axes, or as many as the node has sizes.
    static const int8_t inner[IR_OP_COUNT] = {
        [IR_fft] = ALL_SIZES,
        [IR_qr] = 2,
        [IR_eigh] = 2,
        [IR_svd] = 2,
        [IR_eig] = 2,
        [IR_schur] = 2,
        [IR_cholesky] = 2,
        [IR_lu] = 2,
        [IR_triangular_solve] = 2,
        [IR_tridiagonal_solve] = 1,
        [IR_sort] = 1,
        [IR_top_k] = 1,
    };
    int count = inner[n->op];
    if (count == ALL_SIZES)
        ir_attr_ints(n->attrs, IR_KEY_sizes, &count);
    return count ? count : -1;
}
