// SPDX-License-Identifier: Apache-2.0
// Arithmetic of half types; NULL where there is nothing for it.
#ifndef CODEGEN_GPU_HALVES_H
#define CODEGEN_GPU_HALVES_H

#include "codegen/emit.h"

// From f32 to a half type, whose lanes are i16, and back; the op in numbers of a half type.
LLVMValueRef gpu_round_half(struct machine *m, LLVMValueRef x, jot_dtype d);
LLVMValueRef gpu_widen_half(struct machine *m, LLVMValueRef x, jot_dtype d);
LLVMValueRef gpu_half_op(struct machine *m, enum ir_op op, jot_dtype d, LLVMValueRef x,
                         LLVMValueRef y);

#endif
