// SPDX-License-Identifier: Apache-2.0
// Masked loads of two registers, one of which the mask never has, for processors that hold masks in vectors.
//
//     %m = and %c, <1 1 1 1 0 0 0 0>              %m = first four of %c
//     %x = masked.load p, %m, 0         becomes   %h = masked.load p, %m, 0
//                                                 %x = %h, 0 0 0 0
//
// Where %x is the operand of a select, LLVM 19 reads the other register without a mask: numbers that are none of the
// array's, or no memory at all.
#include "codegen/masked_loads.h"

#include "codegen/types.h"

#include <string.h>

#define MOST_LANES 128 // of a vector

// Whether the lanes first .. first + count - 1 of a constant mask are all false, or all true.
static bool are_all(LLVMValueRef mask, unsigned first, unsigned count, bool value)
{
    for (unsigned i = first; i < first + count; i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(mask, i);
        if (!lane || !LLVMIsAConstantInt(lane) || LLVMConstIntGetZExtValue(lane) != value)
            return false;
    }
    return true;
}

static bool is_masked_load(LLVMValueRef i)
{
    static const char name[] = "llvm.masked.load.";
    LLVMValueRef f = LLVMGetInstructionOpcode(i) == LLVMCall ? LLVMGetCalledValue(i) : NULL;
    size_t length;
    return f && LLVMIsAFunction(f) &&
           !strncmp(LLVMGetValueName2(f, &length), name, sizeof name - 1);
}

// The load of lanes first .. first + half - 1 alone.
static LLVMValueRef half_of(struct machine *m, LLVMValueRef load, LLVMValueRef mask,
                            unsigned first, unsigned half)
{
    LLVMTypeRef lane = LLVMGetElementType(LLVMTypeOf(load)), i32 = m->module->i32;
    LLVMValueRef at = LLVMGetOperand(load, 0), align = LLVMGetOperand(load, 1),
                 begin = LLVMConstInt(i32, first, 0);
    if (first) {
        at = LLVMBuildGEP2(m->b, lane, at, &begin, 1, "");
        align = LLVMConstInt(i32, 1, 0);
    }
    LLVMValueRef arguments[] = {at, align, mask,
                                cg_extract(m, LLVMGetOperand(load, 3), first, half)};
    return cg_intrinsic_of_two(m, "llvm.masked.load", cg_with_lanes(lane, half), m->module->ptr,
                               4, arguments);
}

static void halve(struct machine *m, LLVMValueRef load)
{
    LLVMTypeRef type = LLVMTypeOf(load), lane = LLVMGetElementType(type);
    LLVMValueRef both = LLVMGetOperand(load, 2), rest = LLVMGetOperand(load, 3);
    unsigned lanes = LLVMGetVectorSize(type), half = lanes / 2;
    if (lanes < 4 || lanes > MOST_LANES || lanes % 2 || !LLVMIsAInstruction(both) ||
        LLVMGetInstructionOpcode(both) != LLVMAnd)
        return;
    LLVMValueRef known = LLVMGetOperand(both, 1), other = LLVMGetOperand(both, 0);
    bool has_low = LLVMIsConstant(known) && are_all(known, half, half, false);
    if (!has_low && !(LLVMIsConstant(known) && are_all(known, 0, half, false)))
        return;
    unsigned first = has_low ? 0 : half;
    LLVMPositionBuilderBefore(m->b, load);
    LLVMValueRef mask = cg_extract(m, other, first, half);
    if (!are_all(known, first, half, true))
        mask = LLVMBuildAnd(m->b, mask, cg_extract(m, known, first, half), "");
    LLVMValueRef x = half_of(m, load, mask, first, half), to[MOST_LANES];
    // The half in its lanes of a whole vector, and what stands in for the others.
    for (unsigned i = 0; i < lanes; i++)
        to[i] = LLVMConstInt(m->module->i32, i % half, 0);
    x = LLVMBuildShuffleVector(m->b, x, LLVMGetPoison(cg_with_lanes(lane, half)),
                               LLVMConstVector(to, lanes), "");
    for (unsigned i = 0; i < lanes; i++)
        to[i] = LLVMConstInt(m->module->i32, i >= first && i < first + half ? i : lanes + i, 0);
    x = LLVMBuildShuffleVector(m->b, x, rest, LLVMConstVector(to, lanes), "");
    LLVMReplaceAllUsesWith(load, x);
    LLVMInstructionEraseFromParent(load);
}

void cg_halve_masked_loads(struct cg_module *module)
{
    struct machine m = {.module = module, .b = LLVMCreateBuilderInContext(module->context)};
    for (LLVMValueRef f = LLVMGetFirstFunction(module->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (is_masked_load(i))
                    halve(&m, i);
            }
    LLVMDisposeBuilder(m.b);
}
