// SPDX-License-Identifier: Apache-2.0
// Loads of a loop over whole vectors that are shuffles of others.
#ifndef CODEGEN_SLIDE_H
#define CODEGEN_SLIDE_H

#include "codegen/lower.h"

// Finds those of the block, before the loop; NULL for none.
struct cg_slides *cg_slides_open(struct cg_lowering *l, uint32_t block, nest_id axis,
                                 LLVMValueRef begin, LLVMValueRef end);
// At the begin of its body; code from there to the close is of one turn.
void cg_slides_turn(struct cg_lowering *l, struct cg_slides *x);
void cg_slides_close(struct cg_lowering *l);
// What the load, whose guard is given, reads; NULL when it is none of them.
LLVMValueRef cg_slides_load(struct cg_lowering *l, const struct nest_statement *s,
                            LLVMValueRef guard);

#endif
