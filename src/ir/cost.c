// SPDX-License-Identifier: Apache-2.0
// What is worth what.
#include "ir/cost.h"

int cost_of_op(enum ir_op op, jot_dtype dtype)
{
    return ir_op_get(op)->cost * (dtype_is_complex(dtype) ? 2 : 1);
}

// Rows that a kernel of a processor makes as fast as the library, which copies the matrix beside them first: of a
// matrix that the caches hold, for products that are too much work for the library's routines without copies.
static int64_t few_rows(jot_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    double longer = (double)(m > n ? m : n), work = (double)m * (double)n * (double)k;
    bool is_far = dtype == JOT_F32 && work > COST_GEMM_COPIES && k >= COST_GEMM_TERMS &&
                  longer * (double)k <= COST_GEMM_MATRIX;
    return is_far ? COST_GEMM_FAR_SIDE : COST_GEMM_SIDE;
}

bool cost_is_gemm(jot_dtype dtype, bool is_rich, int64_t m, int64_t n, int64_t k)
{
    double work = (double)m * (double)n * (double)k;
    if (dtype_is_byte(dtype))
        return is_rich && m >= COST_GEMM_BYTES_SIDE && n % COST_GEMM_BYTES_ROW == 0 &&
               k % COST_GEMM_BYTES_ROW == 0 && work > COST_GEMM_BYTES_WORK;
    if (!dtype_is_inexact(dtype) || (dtype_is_half(dtype) && !is_rich))
        return false;
    int64_t side = is_rich ? COST_GEMM_SIDE : few_rows(dtype, m, n, k);
    if (m < side || n < side || k < 2)
        return false;
    return work > COST_GEMM_WORK;
}

bool cost_is_product(const struct ir_graph *g, const struct ir_node *n, jot_dtype d,
                     bool is_rich)
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
    int64_t of_x = ir_count_of(g, x) / k / all;
    int64_t of_y = ir_count_of(g, y) / k / all;
    return cost_is_gemm(d, is_rich, of_x, of_y, k);
}

bool cost_is_for_threads(int64_t sums, int64_t k)
{
    return k <= COST_THREAD_TERMS && sums >= COST_THREAD_SUMS && sums <= COST_THREAD_WORK / k;
}
