// SPDX-License-Identifier: Apache-2.0
// Sums over the points of a network.
#ifndef CODEGEN_GPU_SUMS_H
#define CODEGEN_GPU_SUMS_H

#include "codegen/gpu/network.h"

// The steps that sum what is in rows, and a sum; says how much memory there is to be.
void gpu_sums_lower(struct cg_lowering *l, struct gpu_network *w, struct cg_kernel *out);
LLVMValueRef gpu_sums_load(struct cg_lowering *l, const struct gpu_network *w,
                           const struct gpu_sum *x, LLVMValueRef e);

#endif
