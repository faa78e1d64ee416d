// SPDX-License-Identifier: Apache-2.0
// A fold whose blocks threads of a processor share.
#ifndef CODEGEN_FOLD_SHARED_H
#define CODEGEN_FOLD_SHARED_H

#include "codegen/fold.h"

// Results of all blocks in `memory`, one accumulator after the other: each has `rows` of them, of which those from
// `first` on, or NULL for the first, are the plan's.  How many bytes they are.
uint64_t cg_fold_lay_out(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef memory,
                         int64_t rows, LLVMValueRef first);

// The fold in a loop of few points (cg_lowering.shared), which goes through all points for each block, and for
// what the blocks give.
struct cg_shared_fold {
    nest_id fold, points;
    LLVMValueRef memory, block; // block NULL: the results of all
    uint64_t bytes;             // of the memory, once it is lowered
};
// The only fold in the body of such a loop, whose results of blocks are no large memory; or NEST_NONE.
nest_id cg_shared_fold_find(struct cg_lowering *l, nest_id points);
// The body up to the fold, without what follows.
const struct nest *cg_shared_fold_cut(struct cg_lowering *l, const struct cg_shared_fold *s);
void cg_lower_shared_fold(struct cg_lowering *l, struct cg_shared_fold *s);

#endif
