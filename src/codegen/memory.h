// SPDX-License-Identifier: Apache-2.0
// Memory of a function.
#ifndef CODEGEN_MEMORY_H
#define CODEGEN_MEMORY_H

#include "codegen/turn.h"
#include "nest/nest.h"

struct cg_lowering;

struct cg_buffer {
    LLVMValueRef base; // NULL until first used
    bool expanded;     // a local with an element for each lane: [count][lanes]
    LLVMValueRef
        of_chunk[CG_CHUNKS]; // expanded: the memory of each of the vectors side by side
    unsigned between;        // and vectors from element to element
    // In loops over the points of a network (points.c): elements from row to row, of which lane 0
    // is at the offset (NULL: 0).  What is kept has zeros where there are no points.
    int64_t row;
    bool is_kept;
    LLVMValueRef offset;
};

LLVMValueRef cg_buffer_base(struct cg_lowering *l, nest_id buffer);
// Memory of this worker; of the function's frame when it is small.
LLVMValueRef cg_scratch(struct cg_lowering *l, uint64_t bytes);
LLVMValueRef cg_alloca(struct cg_lowering *l, LLVMTypeRef type, uint64_t count);
// Element i of the array of `type` at base.
LLVMValueRef cg_at(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef i);

#endif
