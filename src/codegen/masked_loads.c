// SPDX-License-Identifier: Apache-2.0
// Masked loads of several registers, of which the mask never has some, for processors that hold masks in vectors.
//
//     %m = and %c, <1 1 1 1 0 0 0 0>              %m = first four of %c
//     %x = masked.load p, %m, 0         becomes   %h = masked.load p, %m, 0
//                                                 %x = %h, 0 0 0 0
//
// Where %x is the operand of a select, LLVM 19 reads the registers that the mask never has without a mask: numbers
// beside those that are wanted, or no memory at all.
#include "codegen/masked_loads.h"

#include "codegen/types.h"

#include <string.h>

#define MOST_LANES 128 // of a vector

// Whether the lanes first .. first + count - 1 of a constant mask are all false.
static bool are_false(LLVMValueRef mask, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(mask, i);
        if (!lane || !LLVMIsAConstantInt(lane) || LLVMConstIntGetZExtValue(lane))
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

// Lanes of a register; 0 for types that have no masked loads.
static unsigned lanes_of_register(const struct cg_module *m, LLVMTypeRef lane)
{
    bool is_long = lane == m->f64 || lane == m->i64;
    return is_long || lane == m->f32 || lane == m->i32 ? m->vector_bytes / (is_long ? 8 : 4)
                                                       : 0;
}

// A mask whose lanes are those of `known` where `when` is, of one lane or of all; false when it is none.
static bool is_known_in_part(LLVMValueRef mask, LLVMValueRef *when, LLVMValueRef *known)
{
    LLVMOpcode op = LLVMIsAInstruction(mask) ? LLVMGetInstructionOpcode(mask) : LLVMUnreachable;
    if (op != LLVMAnd && (op != LLVMSelect || !LLVMIsNull(LLVMGetOperand(mask, 2))))
        return false;
    *when = LLVMGetOperand(mask, 0);
    *known = LLVMGetOperand(mask, 1);
    return LLVMIsConstant(*known);
}

// The load of lanes first .. first + count - 1 alone.
static LLVMValueRef part_of(struct machine *m, LLVMValueRef load, LLVMValueRef when,
                            LLVMValueRef known, unsigned first, unsigned count)
{
    LLVMTypeRef lane = LLVMGetElementType(LLVMTypeOf(load)), i32 = m->module->i32;
    LLVMValueRef at = LLVMGetOperand(load, 0), align = LLVMGetOperand(load, 1),
                 begin = LLVMConstInt(i32, first, 0);
    if (first) {
        at = LLVMBuildGEP2(m->b, lane, at, &begin, 1, "");
        align = LLVMConstInt(i32, 1, 0);
    }
    LLVMValueRef mask = cg_extract(m, known, first, count);
    if (LLVMTypeOf(when) == m->module->i1)
        mask = LLVMBuildSelect(m->b, when, mask, LLVMConstNull(LLVMTypeOf(mask)), "");
    else
        mask = LLVMBuildAnd(m->b, cg_extract(m, when, first, count), mask, "");
    LLVMValueRef arguments[] = {at, align, mask,
                                cg_extract(m, LLVMGetOperand(load, 3), first, count)};
    return cg_intrinsic_of_two(m, "llvm.masked.load", cg_with_lanes(lane, count),
                               m->module->ptr, 4, arguments);
}

// x with lanes first .. first + count - 1 from the part.
static LLVMValueRef with_part(struct machine *m, LLVMValueRef x, LLVMValueRef part,
                              unsigned first, unsigned count)
{
    LLVMValueRef to[MOST_LANES];
    unsigned lanes = cg_lanes_of(x);
    for (unsigned i = 0; i < lanes; i++)
        to[i] = LLVMConstInt(m->module->i32, i % count, 0);
    part = LLVMBuildShuffleVector(m->b, part, LLVMGetPoison(LLVMTypeOf(part)),
                                  LLVMConstVector(to, lanes), "");
    for (unsigned i = 0; i < lanes; i++)
        to[i] =
            LLVMConstInt(m->module->i32, i >= first && i < first + count ? i : lanes + i, 0);
    return LLVMBuildShuffleVector(m->b, part, x, LLVMConstVector(to, lanes), "");
}

static void split(struct machine *m, LLVMValueRef load)
{
    LLVMTypeRef type = LLVMTypeOf(load);
    unsigned lanes = LLVMGetVectorSize(type),
             count = lanes_of_register(m->module, LLVMGetElementType(type));
    LLVMValueRef when, known;
    if (!count || lanes <= count || lanes % count || lanes > MOST_LANES ||
        !is_known_in_part(LLVMGetOperand(load, 2), &when, &known))
        return;
    bool any = false;
    for (unsigned first = 0; first < lanes; first += count)
        any |= are_false(known, first, count);
    if (!any)
        return;
    LLVMPositionBuilderBefore(m->b, load);
    LLVMValueRef x = LLVMGetOperand(load, 3);
    for (unsigned first = 0; first < lanes; first += count)
        if (!are_false(known, first, count))
            x = with_part(m, x, part_of(m, load, when, known, first, count), first, count);
    LLVMReplaceAllUsesWith(load, x);
    LLVMInstructionEraseFromParent(load);
}

void cg_split_masked_loads(struct cg_module *module)
{
    struct machine m = {.module = module, .b = LLVMCreateBuilderInContext(module->context)};
    for (LLVMValueRef f = LLVMGetFirstFunction(module->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (is_masked_load(i))
                    split(&m, i);
            }
    LLVMDisposeBuilder(m.b);
}
