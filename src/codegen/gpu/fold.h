// SPDX-License-Identifier: Apache-2.0
// What folds by one thread and by a group of threads have in common.
#ifndef CODEGEN_GPU_FOLD_H
#define CODEGEN_GPU_FOLD_H

#include "codegen/accumulate.h"
#include "map/gpu_groups.h"

void gpu_fold_together(struct cg_lowering *l, nest_id fold);
// The axes from a position in the sequence of a fold.
void gpu_fold_set(struct cg_lowering *l, nest_id fold, LLVMValueRef at);
struct gpu_fold {
    nest_id statement;
    struct map_row row;
    uint32_t n;                          // combines
    struct cg_accumulator *accumulators; // of a thread
    struct cg_results *rows;             // shared: results of blocks
};
struct gpu_fold gpu_fold_make(struct cg_lowering *l, nest_id fold, const struct map_row *row,
                              int64_t rows);
// Blocks first .. first + count - 1 of the fold, those of them that there are, to the rows.
void gpu_fold_blocks(struct cg_lowering *l, struct gpu_fold *f, LLVMValueRef first,
                     int64_t count);
void gpu_fold_define(struct cg_lowering *l, const struct gpu_fold *f,
                     const struct cg_element *results);

// For each combination: with room for each of `rows` accumulators where the axis is their
// own.
struct cg_accumulator *gpu_fold_accumulators(struct cg_lowering *l,
                                             const struct nest_statement *s, bool own_axis,
                                             unsigned rows);
// Sets all of an accumulator; position: of each lane, of its first element.
void gpu_fold_reset(struct cg_lowering *l, const struct cg_accumulator *a,
                    LLVMValueRef position);
struct cg_element gpu_fold_take(struct cg_lowering *l, const struct cg_accumulator *a);
// The element(s) at a position of the sequence to accumulator `slot`; in_block: their positions in the block.
void gpu_fold_element(struct cg_lowering *l, const struct nest_statement *s,
                      const struct cg_accumulator *all, LLVMValueRef at, LLVMValueRef slot,
                      LLVMValueRef in_block);
// The values of the statement, of an element for each combination.
void gpu_fold_results(struct cg_lowering *l, const struct nest_statement *s,
                      const struct cg_accumulator *all, const struct cg_element *results);

#endif
