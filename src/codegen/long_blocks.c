// SPDX-License-Identifier: Apache-2.0
// Long blocks in parts.  LLVM selects instructions and schedules them block by block, in a time that
// grows with the square of the length.
//
//     b: 2000 instructions; br c          a: 512 instructions; br a2
//                                 ->      a2: 512 instructions; br a3
//                                         a3: 512 instructions; br b
//                                         b: 464 instructions; br c
//
// LLVM would put them together again, but for those whose address is in memory.
#include "codegen/long_blocks.h"
#include "codegen/emit.h"
#include "codegen/size.h"

enum {
    LONGEST = 512, // instructions of a block
    // What counts as more: a call waits for those before it, with what it is given, and loads and stores are
    // compared with each other, vector by vector.
    OF_A_CALL = 16,
    OF_A_MOVE = 4
};

static bool is_call(LLVMValueRef i)
{
    return LLVMIsACallInst(i) && !LLVMGetIntrinsicID(LLVMGetCalledValue(i));
}

// Whether it is a load or store by a mask, whose address is its first or second argument.
static bool is_masked_move(LLVMValueRef i, unsigned address)
{
    return LLVMIsACallInst(i) && LLVMGetNumArgOperands(i) > address &&
           LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(i, address))) == LLVMPointerTypeKind;
}

static int64_t count(const struct cg_module *m, LLVMValueRef i)
{
    if (is_call(i))
        return OF_A_CALL;
    bool has_value = LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind;
    bool moves =
        LLVMIsALoadInst(i) || LLVMIsAStoreInst(i) || is_masked_move(i, has_value ? 0 : 1);
    return moves ? OF_A_MOVE * cg_registers_of(m, has_value ? i : LLVMGetOperand(i, 0)) : 1;
}

// The last of the instructions that begin a block, which stay together: those that merge values, and
// locals, which stand in the first block of a function.
static LLVMValueRef last_to_begin(LLVMBasicBlockRef block)
{
    LLVMValueRef last = NULL;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
        if (LLVMIsAPHINode(i) || LLVMIsAAllocaInst(i))
            last = i;
    return last;
}

// Lets one that goes to the block go to the other one; false when none does.
static bool redirect(LLVMBasicBlockRef block, LLVMBasicBlockRef to)
{
    bool goes = false;
    for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u && !goes;
         u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        unsigned n = LLVMIsATerminatorInst(user) ? LLVMGetNumSuccessors(user) : 0;
        for (unsigned k = 0; k < n && !goes; k++)
            if (LLVMGetSuccessor(user, k) == block) {
                LLVMSetSuccessor(user, k, to);
                goes = true;
            }
    }
    return goes;
}

static void keep_apart(LLVMValueRef f, LLVMBasicBlockRef block)
{
    LLVMValueRef address = LLVMBlockAddress(f, block);
    LLVMValueRef kept = LLVMAddGlobal(LLVMGetGlobalParent(f), LLVMTypeOf(address), "part");
    LLVMSetInitializer(kept, address);
    LLVMSetLinkage(kept, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(kept, 1);
}

// Moves what the block begins with, up to the instruction, into a part of its own before it.
static LLVMBasicBlockRef cut_before(LLVMBuilderRef b, LLVMBasicBlockRef block,
                                    LLVMValueRef instruction)
{
    LLVMContextRef c = LLVMGetTypeContext(LLVMTypeOf(LLVMBasicBlockAsValue(block)));
    LLVMBasicBlockRef part = LLVMInsertBasicBlockInContext(c, block, "");
    while (redirect(block, part)) {
    }
    LLVMPositionBuilderAtEnd(b, part);
    for (LLVMValueRef i; (i = LLVMGetFirstInstruction(block)) != instruction;) {
        LLVMInstructionRemoveFromParent(i);
        LLVMInsertIntoBuilder(b, i);
    }
    LLVMBuildBr(b, block);
    return part;
}

static void cut_block(const struct cg_module *m, LLVMBuilderRef b, LLVMValueRef f,
                      LLVMBasicBlockRef block)
{
    LLVMValueRef last = last_to_begin(block);
    bool is_cut = false;
    int64_t n = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; n += count(m, i), i = next) {
        next = LLVMGetNextInstruction(i);
        if (!last && n >= LONGEST && next) {
            LLVMBasicBlockRef part = cut_before(b, block, i);
            if (is_cut)
                keep_apart(f, part);
            is_cut = true;
            n = 0;
        }
        last = i == last ? NULL : last;
    }
    if (is_cut)
        keep_apart(f, block);
}

void cg_cut_blocks(const struct cg_module *m, LLVMModuleRef module)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(m->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block))
            cut_block(m, b, f, block);
    LLVMDisposeBuilder(b);
}
