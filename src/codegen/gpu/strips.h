// SPDX-License-Identifier: Apache-2.0
// Steps of a loop over time that a thread writes out.
#ifndef CODEGEN_GPU_STRIPS_H
#define CODEGEN_GPU_STRIPS_H

#include "codegen/lower.h"

#define GPU_STRIP 8 // steps

// Those that it had better write out, 1: just the one; they have
// cg_stack_trip in front of them.  store is for the puts of those from `first` on.
int64_t gpu_strip_find(struct cg_lowering *l, const struct nest_statement *seq);
void gpu_strip_store(struct cg_lowering *l, const struct nest_statement *seq,
                     LLVMValueRef first, int64_t steps);
void gpu_strip_end(struct cg_lowering *l, const struct nest_statement *seq);

#endif
