// SPDX-License-Identifier: Apache-2.0
// Numbers that all lanes share, for processors whose operations do not broadcast an operand.
//
//     fma x, <8 x 0.5>, y    becomes    k = load <8 x float> at the function's begin; fma x, k, y
//
// Where registers do not last, LLVM reads the one number again into a register of all lanes, for
// each use.  A whole vector in memory is instead an operand of the operation, without a register.
#include "codegen/constants.h"
#include "base/vec.h"
#include "codegen/emit.h"

#include <stdio.h>
#include <string.h>

struct constant {
    LLVMValueRef was, is;
};

struct constants {
    struct cg_module *m;
    LLVMBuilderRef b;
    VEC(struct constant) of_function;
};

static unsigned lane_bytes(const struct cg_module *m, LLVMTypeRef lane)
{
    return lane == m->f64 ? 8 : lane == m->f32 ? 4 : 0;
}

LLVMValueRef cg_number_of_lanes(LLVMValueRef v)
{
    LLVMValueRef number = LLVMGetAggregateElement(v, 0);
    for (unsigned i = 1; number && i < LLVMGetVectorSize(LLVMTypeOf(v)); i++)
        if (LLVMGetAggregateElement(v, i) != number)
            return NULL;
    return number;
}

// The number in all lanes of a vector that fills registers; NULL for other values, and for zero,
// which is made without memory.
static LLVMValueRef number_of(const struct cg_module *m, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    if (!LLVMIsConstant(v) || LLVMIsNull(v) || LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return NULL;
    unsigned lanes = LLVMGetVectorSize(type);
    if (lanes * lane_bytes(m, LLVMGetElementType(type)) < m->vector_bytes)
        return NULL;
    LLVMValueRef number = cg_number_of_lanes(v);
    return number && LLVMIsAConstantFP(number) ? number : NULL;
}

// A register of the number; LLVM may not look at what is in the memory.
static LLVMValueRef memory_of(const struct cg_module *m, LLVMValueRef number, unsigned lanes)
{
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(number), lanes);
    LLVMBool is_rounded;
    double value = LLVMConstRealGetDouble(number, &is_rounded);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    char name[40];
    snprintf(name, sizeof name, "%ux%016llx", lanes, (unsigned long long)bits);
    LLVMValueRef memory = LLVMGetNamedGlobal(m->module, name), all[64];
    if (memory)
        return memory;
    for (unsigned i = 0; i < lanes; i++)
        all[i] = number;
    memory = LLVMAddGlobal(m->module, type, name);
    LLVMSetInitializer(memory, LLVMConstVector(all, lanes));
    LLVMSetLinkage(memory, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(memory, 1);
    LLVMSetExternallyInitialized(memory, 1);
    LLVMSetAlignment(memory, m->vector_bytes);
    return memory;
}

// The constant as a value of the function.
static LLVMValueRef number_in_memory(struct constants *c, LLVMValueRef f, LLVMValueRef was,
                                     LLVMValueRef number)
{
    for (uint32_t i = 0; i < c->of_function.count; i++)
        if (c->of_function.at[i].was == was)
            return c->of_function.at[i].is;
    const struct cg_module *m = c->m;
    unsigned all = LLVMGetVectorSize(LLVMTypeOf(was)),
             lanes = m->vector_bytes / lane_bytes(m, LLVMTypeOf(number));
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(number), lanes);
    LLVMPositionBuilderBefore(c->b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f)));
    LLVMValueRef v = LLVMBuildLoad2(c->b, type, memory_of(m, number, lanes), "");
    LLVMSetAlignment(v, m->vector_bytes);
    LLVMMetadataRef empty = LLVMMDNodeInContext2(m->context, NULL, 0);
    LLVMSetMetadata(v, LLVMGetMDKindIDInContext(m->context, "invariant.load", 14),
                    LLVMMetadataAsValue(m->context, empty));
    LLVMValueRef order[256];
    for (unsigned i = 0; i < all; i++)
        order[i] = LLVMConstInt(m->i32, i % lanes, 0);
    if (all > lanes)
        v = LLVMBuildShuffleVector(c->b, v, LLVMGetPoison(type), LLVMConstVector(order, all),
                                   "");
    vec_push(m->arena, &c->of_function, (struct constant){was, v});
    return v;
}

bool cg_may_read(LLVMValueRef instruction)
{
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
        return true;
    case LLVMCall: {
        size_t size;
        const char *name = LLVMGetValueName2(LLVMGetCalledValue(instruction), &size);
        return !strncmp(name, "llvm.fma.", 9);
    }
    default:
        return false;
    }
}

void cg_constants_to_memory(struct cg_module *m)
{
    struct constants c = {.m = m, .b = LLVMCreateBuilderInContext(m->context)};
    for (LLVMValueRef f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f)) {
        c.of_function.count = 0;
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
                for (unsigned k = 0; cg_may_read(i) && k < (unsigned)LLVMGetNumOperands(i);
                     k++) {
                    LLVMValueRef was = LLVMGetOperand(i, k), number = number_of(m, was);
                    if (number)
                        LLVMSetOperand(i, k, number_in_memory(&c, f, was, number));
                }
    }
    LLVMDisposeBuilder(c.b);
}
