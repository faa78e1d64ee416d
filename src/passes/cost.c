// SPDX-License-Identifier: Apache-2.0
// What is worth what.
#include "passes/cost.h"

int cost_of_op(enum ir_op op, jot_dtype dtype)
{
    return ir_op_get(op)->cost * (dtype_is_complex(dtype) ? 2 : 1);
}

bool cost_is_gemm(jot_dtype dtype, bool has_halves, int64_t m, int64_t n, int64_t k)
{
    bool is_half = dtype == JOT_F16 || dtype == JOT_BF16;
    if (!dtype_is_inexact(dtype) || (is_half && !has_halves))
        return false;
    if (m < COST_GEMM_SIDE || n < COST_GEMM_SIDE || k < 2)
        return false;
    return (double)m * (double)n * (double)k > COST_GEMM_WORK;
}

bool cost_is_product(const struct ir_graph *g, const struct ir_node *n, jot_dtype d,
                     bool has_halves)
{
    ir_id x = ir_operand(g, n, 0), y = ir_operand(g, n, 1);
    int count, n_batch;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &count);
    const int64_t *batch = ir_attr_ints(n->attrs, IR_KEY_lhs_batch, &n_batch);
    int64_t k = 1, all = 1;
    for (int i = 0; i < count; i++)
        k *= ir_dims_of(g, x)[axes[i]];
    for (int i = 0; i < n_batch; i++)
        all *= ir_dims_of(g, x)[batch[i]];
    if (k == 0 || all == 0 || count == 0)
        return false;
    int64_t of_x = ir_count(g->module, ir_type_of(g, x)) / k / all;
    int64_t of_y = ir_count(g->module, ir_type_of(g, y)) / k / all;
    return cost_is_gemm(d, has_halves, of_x, of_y, k);
}

bool cost_is_for_threads(int64_t sums, int64_t k)
{
    return k <= COST_THREAD_TERMS && sums >= COST_THREAD_SUMS && sums <= COST_THREAD_WORK / k;
}
