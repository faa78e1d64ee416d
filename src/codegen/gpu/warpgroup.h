// SPDX-License-Identifier: Apache-2.0
// Four warps that multiply by a matrix in shared memory together.
#ifndef CODEGEN_GPU_WARPGROUP_H
#define CODEGEN_GPU_WARPGROUP_H

#include "codegen/gpu/tensor.h"

enum {
    GPU_WARPGROUP = 4,
    GPU_PANEL = 64,
    GPU_PANEL_ROW = 2 * GPU_PANEL,
};

// A matrix in shared memory: panels of 64 columns, `rows` rows each, one behind the other.
struct gpu_panels {
    LLVMValueRef at; // where it begins
    int64_t rows;
    bool turned; // sums are over its rows
};

// sum[sums] (+)= x y, of 16 rows of x a warp and 16 * steps terms: x[steps][4], or, where in_x is not NULL, from
// the 64 rows that begin there.
void gpu_warpgroup_multiply(struct gpu_tensor *t, LLVMValueRef *sum, int sums, bool adds,
                            int steps, const LLVMValueRef *x, const struct gpu_panels *in_x,
                            const struct gpu_panels *y);
// The same in two: tensor cores are at work in between, and nothing may read the sums or branch on them.
void gpu_warpgroup_start(struct gpu_tensor *t, LLVMValueRef *sum, int sums, bool adds,
                         int steps, const LLVMValueRef *x, const struct gpu_panels *in_x,
                         const struct gpu_panels *y);
// Waits for all products that the warpgroup has started but the last `pending`; x[lefts] are those of the product's
// left matrix that are in registers, which are its until here.
void gpu_warpgroup_finish(struct gpu_tensor *t, LLVMValueRef *sum, int sums, int pending,
                          int lefts, const LLVMValueRef *x);
// What the thread has put in shared memory is what products of warpgroups read behind the next barrier.
void gpu_warpgroup_publish(struct gpu_tensor *t);

#endif
