// SPDX-License-Identifier: Apache-2.0
#include "codegen/loop.h"
#include "codegen/large.h"
#include "codegen/lower.h"

// Known to turn exactly once: no loop then, so that its index is a constant.
static bool turns_once(LLVMValueRef begin, LLVMValueRef end, LLVMValueRef step)
{
    if (!LLVMIsConstant(begin) || !LLVMIsConstant(end) || !LLVMIsConstant(step))
        return false;
    int64_t first = LLVMConstIntGetSExtValue(begin), last = LLVMConstIntGetSExtValue(end);
    return first < last && first + LLVMConstIntGetSExtValue(step) >= last;
}

struct cg_loop cg_loop_open(struct cg_lowering *l, LLVMValueRef begin, LLVMValueRef end,
                            LLVMValueRef step)
{
    LLVMBuilderRef b = l->m.b;
    if (turns_once(begin, end, step))
        return (struct cg_loop){.index = begin};
    struct cg_loop loop = {
        .body = cg_new_block(l), .exit = cg_new_block(l), .end = end, .step = step};
    loop.before = LLVMGetInsertBlock(b);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, begin, end, ""), loop.body, loop.exit);
    LLVMPositionBuilderAtEnd(b, loop.body);
    loop.index = loop.counter = LLVMBuildPhi(b, LLVMTypeOf(begin), "");
    LLVMAddIncoming(loop.counter, &begin, &loop.before, 1);
    return loop;
}

void cg_loop_close(struct cg_lowering *l, struct cg_loop *loop)
{
    LLVMBuilderRef b = l->m.b;
    if (!loop->body)
        return;
    LLVMValueRef next = LLVMBuildNSWAdd(b, loop->counter, loop->step, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMValueRef tested = l->m.is_long ? cg_apart(l->module, b, next) : next;
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, tested, loop->end, ""), loop->body,
                    loop->exit);
    LLVMAddIncoming(loop->counter, &next, &latch, 1);
    LLVMPositionBuilderAtEnd(b, loop->exit);
}

struct cg_branch cg_if_open(struct cg_lowering *l, LLVMValueRef condition)
{
    LLVMBasicBlockRef then = cg_new_block(l);
    struct cg_branch branch = {.exit = cg_new_block(l)};
    LLVMBuildCondBr(l->m.b, condition, then, branch.exit);
    LLVMPositionBuilderAtEnd(l->m.b, then);
    return branch;
}

void cg_else_open(struct cg_lowering *l, struct cg_branch *branch)
{
    LLVMBasicBlockRef otherwise = branch->exit;
    branch->exit = cg_new_block(l);
    LLVMBuildBr(l->m.b, branch->exit);
    LLVMPositionBuilderAtEnd(l->m.b, otherwise);
}

void cg_if_close(struct cg_lowering *l, struct cg_branch *branch)
{
    LLVMBuildBr(l->m.b, branch->exit);
    LLVMPositionBuilderAtEnd(l->m.b, branch->exit);
}
