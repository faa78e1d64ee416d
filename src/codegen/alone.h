// SPDX-License-Identifier: Apache-2.0
// A lane of a while that is left alone.
#ifndef CODEGEN_ALONE_H
#define CODEGEN_ALONE_H

#include "codegen/lower.h"
#include "codegen/memory.h"

// turns: how often the lanes go on together from one count of them to the next, 0 when all stay
// together.  Between open and close what is lowered is for one lane of all vectors.
struct cg_alone {
    nest_id loop;
    LLVMValueRef lane, index;  // of all vectors; what the index of lane 0 was
    struct cg_buffer *buffers; // with the locals of the lane
    bool *puts_back;           // by buffer
    struct {                   // what all lanes have
        struct cg_value *values;
        struct cg_buffer *buffers;
        struct cg_vector vector;
        struct cg_chunks chunks;
    } outer;
};
unsigned cg_alone_turns(const struct cg_lowering *l, const struct nest_statement *s);
struct cg_alone cg_alone_open(struct cg_lowering *l, const struct nest_statement *s,
                              LLVMValueRef lane);
void cg_alone_close(struct cg_lowering *l, const struct cg_alone *a);
// The lane as a mask of vector c.
LLVMValueRef cg_alone_mask(struct cg_lowering *l, const struct cg_alone *a, unsigned c);

#endif
