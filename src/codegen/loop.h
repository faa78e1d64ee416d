// SPDX-License-Identifier: Apache-2.0
// Loops and branches of a function.
#ifndef CODEGEN_LOOP_H
#define CODEGEN_LOOP_H

#include "codegen/lower.h"

static inline LLVMBasicBlockRef cg_new_block(struct cg_lowering *l)
{
    return LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "");
}
struct cg_loop {
    LLVMBasicBlockRef body, exit, before;
    LLVMValueRef index, counter, end, step; // index: the counter, or what it was made
};
// for (index = begin; index < end; index += step), tested first.
struct cg_loop cg_loop_open(struct cg_lowering *l, LLVMValueRef begin, LLVMValueRef end,
                            LLVMValueRef step);
void cg_loop_close(struct cg_lowering *l, struct cg_loop *loop);
// if (condition) { ... }, or with an else
struct cg_branch {
    LLVMBasicBlockRef exit;
};
struct cg_branch cg_if_open(struct cg_lowering *l, LLVMValueRef condition);
void cg_else_open(struct cg_lowering *l, struct cg_branch *branch);
void cg_if_close(struct cg_lowering *l, struct cg_branch *branch);

#endif
