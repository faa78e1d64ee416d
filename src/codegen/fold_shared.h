// SPDX-License-Identifier: Apache-2.0
// Folds whose blocks threads of a processor share.
#ifndef CODEGEN_FOLD_SHARED_H
#define CODEGEN_FOLD_SHARED_H

#include "codegen/fold.h"

#define CG_SHARED_FOLDS 2

// Results of all blocks in `memory`, one accumulator after the other: each has `rows` of them, of which those from
// `first` on, or NULL for the first, are the plan's.  How many bytes they are.
uint64_t cg_fold_lay_out(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef memory,
                         int64_t rows, LLVMValueRef first);

// The folds of a loop of few points (cg_lowering.shared).  A function goes through all points for each block of one
// fold, or once for what its blocks give; folds in front of it are results by then.
struct cg_shared_folds {
    nest_id points, folds[CG_SHARED_FOLDS];
    uint32_t n, now;
    LLVMValueRef memory, block; // block NULL: what all blocks give
    // Where the results of each fold that is lowered are in the memory, and the end.
    uint64_t at[CG_SHARED_FOLDS + 1];
};
// Blocks of a fold, at least one.
int64_t cg_fold_blocks(const struct cg_lowering *l, nest_id fold);
// Finds the folds in the body of such a loop; false where threads cannot share them.
bool cg_shared_folds_find(struct cg_lowering *l, nest_id points, struct cg_shared_folds *out);
// The nest without what follows the fold at hand.
const struct nest *cg_shared_folds_cut(struct arena *arena, const struct nest *n,
                                       const struct cg_shared_folds *s);
// Whether it is one of them, which is lowered then.
bool cg_lower_shared_fold(struct cg_lowering *l, nest_id fold);

#endif
