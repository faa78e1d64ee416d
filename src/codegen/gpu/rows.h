// SPDX-License-Identifier: Apache-2.0
// What a loop over time puts, by warps.
#ifndef CODEGEN_GPU_ROWS_H
#define CODEGEN_GPU_ROWS_H

#include "codegen/lower.h"

// The steps that are kept and then stored, 0: none.
int64_t gpu_rows_find(struct cg_lowering *l, const struct nest_statement *seq);
void gpu_rows_store(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef first,
                    int64_t steps);

#endif
