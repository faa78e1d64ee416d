// SPDX-License-Identifier: Apache-2.0
// Folds by the whole grid.
#ifndef CODEGEN_GPU_BLOCKS_H
#define CODEGEN_GPU_BLOCKS_H

#include "codegen/kernel.h"

// What a fold of all blocks takes of its elements where that has been computed: the memory, the position
// of the fold that comes first in it, and how many there are.
struct gpu_terms {
    const struct nest_statement *fold; // NULL: no fold has such
    LLVMValueRef memory, first;
    int64_t count;
};

// The steps of a kernel whose only loop is statement `at` of its body, a fold or a loop with such a fold; l->gpu
// says by which blocks.
void gpu_blocks_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);
// What the combines take of the element at a position of the fold, for l->vector.lanes of them.
void gpu_terms_load(struct cg_lowering *l, const struct nest_statement *fold, LLVMValueRef at);

#endif
