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

bool cost_is_for_threads(int64_t sums, int64_t k)
{
    return k <= COST_THREAD_TERMS && sums >= COST_THREAD_SUMS && sums <= COST_THREAD_WORK / k;
}
