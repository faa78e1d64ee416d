// SPDX-License-Identifier: Apache-2.0
// Loads of 16 bytes.  The back end of LLVM 19 makes one access of any load of <16 x i8>, as if it were aligned
// to 16 bytes.  Those that are aligned to less are loads of their halves, which it takes apart as they need.
#include "codegen/gpu/bytes.h"

#include <stdbool.h>

enum { BYTES = 16, HALF = BYTES / 2 };

static bool is_split(LLVMValueRef i)
{
    if (!LLVMIsALoadInst(i) || LLVMGetAlignment(i) >= BYTES)
        return false;
    LLVMTypeRef type = LLVMTypeOf(i);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind && LLVMGetVectorSize(type) == BYTES &&
           LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMIntegerTypeKind &&
           LLVMGetIntTypeWidth(LLVMGetElementType(type)) == 8;
}

static LLVMValueRef load_half(LLVMBuilderRef b, LLVMValueRef load, unsigned first)
{
    LLVMContextRef c = LLVMGetTypeContext(LLVMTypeOf(load));
    LLVMTypeRef i8 = LLVMInt8TypeInContext(c);
    LLVMValueRef offset = LLVMConstInt(LLVMInt64TypeInContext(c), first, 0);
    LLVMValueRef at = LLVMBuildGEP2(b, i8, LLVMGetOperand(load, 0), &offset, 1, "");
    LLVMValueRef half = LLVMBuildLoad2(b, LLVMVectorType(i8, HALF), at, "");
    LLVMSetAlignment(half, LLVMGetAlignment(load));
    LLVMSetVolatile(half, LLVMGetVolatile(load));
    unsigned invariant = LLVMGetMDKindIDInContext(c, "invariant.load", 14);
    if (LLVMGetMetadata(load, invariant))
        LLVMSetMetadata(half, invariant, LLVMGetMetadata(load, invariant));
    return half;
}

static void split(LLVMBuilderRef b, LLVMValueRef load)
{
    LLVMValueRef order[BYTES], halves[2];
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(load)));
    LLVMPositionBuilderBefore(b, load);
    for (unsigned k = 0; k < 2; k++)
        halves[k] = load_half(b, load, k * HALF);
    for (unsigned k = 0; k < BYTES; k++)
        order[k] = LLVMConstInt(i32, k, 0);
    LLVMReplaceAllUsesWith(load, LLVMBuildShuffleVector(b, halves[0], halves[1],
                                                        LLVMConstVector(order, BYTES), ""));
    LLVMInstructionEraseFromParent(load);
}

void gpu_split_bytes(LLVMModuleRef module)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef at = LLVMGetFirstBasicBlock(f); at;
             at = LLVMGetNextBasicBlock(at))
            for (LLVMValueRef i = LLVMGetFirstInstruction(at), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (is_split(i))
                    split(b, i);
            }
    LLVMDisposeBuilder(b);
}
