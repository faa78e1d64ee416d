// SPDX-License-Identifier: Apache-2.0
// Functions that a GPU has no operation or library for.
#ifndef CODEGEN_GPU_FUNCTIONS_H
#define CODEGEN_GPU_FUNCTIONS_H

#include "codegen/emit.h"

// math_reduce of an f64 (the quadrant is an i32), and the remainder of any lanes.
void gpu_reduce(struct machine *m, LLVMValueRef x, LLVMValueRef *out_hi, LLVMValueRef *out_lo,
                LLVMValueRef *out_quadrant);
LLVMValueRef gpu_fmod(struct machine *m, LLVMValueRef x, LLVMValueRef y);
// i + j; of 32 bits 1 i + j, of a 1 that the assembler does not know: products have a unit
// of their own there, beside that of shifts and logic.
LLVMValueRef gpu_add_by_product(struct machine *m, LLVMValueRef i, LLVMValueRef j);
// One operation for what LLVM selects five for.
LLVMValueRef gpu_copysign(struct machine *m, LLVMValueRef x, LLVMValueRef sign);

#endif
