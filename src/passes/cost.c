// SPDX-License-Identifier: Apache-2.0
// The cost model's table.
#include "passes/cost.h"

int cost_of_op(enum ir_op op, jot_dtype dtype)
{
    int factor = dtype_is_complex(dtype) ? 2 : 1;
    switch (op) {
    case IR_div:
    case IR_rem:
        return factor * 6;
    case IR_sqrt:
        return factor * 6;
    case IR_rsqrt:
        return factor * 12;
    case IR_exp:
    case IR_exp2:
    case IR_log:
        return factor * 12;
    case IR_expm1:
    case IR_log1p:
    case IR_sin:
    case IR_cos:
    case IR_tan:
    case IR_asin:
    case IR_acos:
    case IR_atan:
    case IR_sinh:
    case IR_cosh:
    case IR_tanh:
    case IR_asinh:
    case IR_acosh:
    case IR_atanh:
    case IR_logistic:
    case IR_cbrt:
    case IR_erf_inv:
    case IR_erf:
        return factor * 18;
    case IR_pow:
    case IR_atan2:
        return factor * 30;
    case IR_erfc:
    case IR_digamma:
        return factor * 40;
    case IR_lgamma:
    case IR_gamma:
        return factor * 60;
    case IR_zeta:
        return factor * 300;
    case IR_threefry2x32:
        return 80;
    case IR_integer_pow:
        return factor * 3;
    case IR_nextafter:
        return 8;
    default:
        return factor;
    }
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
