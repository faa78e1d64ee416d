// SPDX-License-Identifier: Apache-2.0
// Quotients and roots of f32s, correctly rounded, with one branch for all lanes.
#ifndef CODEGEN_GPU_QUOTIENT_H
#define CODEGEN_GPU_QUOTIENT_H

#include "codegen/emit.h"

// DIV_OF_UNIT (base/math) of f32s, without the branch of a general quotient; x / y and the root of x.
LLVMValueRef gpu_quotient_of_unit(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef gpu_divide(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef gpu_divide_fraction(struct machine *m, LLVMValueRef x,
                                 LLVMValueRef y); // |x| <= 1 or NaN
// Of sizes between 2^-60 and 2^60; else of no meaning.
LLVMValueRef gpu_divide_in_range(struct machine *m, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef gpu_sqrt(struct machine *m, LLVMValueRef x);

#endif
