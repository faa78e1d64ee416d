// SPDX-License-Identifier: Apache-2.0
// What folds by one thread and by a group of threads have in common.
#ifndef CODEGEN_GPU_FOLD_H
#define CODEGEN_GPU_FOLD_H

#include "codegen/gpu/gpu.h"

// For each combination: with a place for each of `rows` accumulators where the axis is their
// own.
struct cg_accumulator *gpu_fold_accumulators(struct cg_lowering *l,
                                             const struct nest_statement *s, bool own_axis,
                                             unsigned rows);
// Sets all of an accumulator; position: of each lane, of its first element.
void gpu_fold_reset(struct cg_lowering *l, const struct cg_accumulator *a,
                    LLVMValueRef position);
struct cg_element gpu_fold_take(struct cg_lowering *l, const struct cg_accumulator *a);
// The element(s) at a place of the sequence to accumulator `slot`; in_block: their positions.
void gpu_fold_element(struct cg_lowering *l, const struct nest_statement *s,
                      const struct cg_accumulator *all, LLVMValueRef at, LLVMValueRef slot,
                      LLVMValueRef in_block);
// The values of the statement, of an element for each combination.
void gpu_fold_results(struct cg_lowering *l, const struct nest_statement *s,
                      const struct cg_accumulator *all, const struct cg_element *results);

#endif
