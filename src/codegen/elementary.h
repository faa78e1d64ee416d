// SPDX-License-Identifier: Apache-2.0
// Elementary functions on f32 or f64 lanes.
#ifndef CODEGEN_ELEMENTARY_H
#define CODEGEN_ELEMENTARY_H

#include "codegen/emit.h"

LLVMValueRef cg_math(struct machine *m, const char *name, LLVMValueRef x, LLVMValueRef y);
// Numbers of a run that is not done again yet are out of range.
void cg_outside(struct machine *m, LLVMValueRef mask);
// e^x of f32s that are not above 0, with the bits of exp.
LLVMValueRef cg_exp_of_nonpositive(struct machine *m, LLVMValueRef x);
// Two numbers whose product is that of the sine and the cosine of x, in the range of these.
void cg_sincos_factors(struct machine *m, LLVMValueRef x, LLVMValueRef *a, LLVMValueRef *b);
// A rarely taken block for the condition, from open to close; close gives quick or slow.
LLVMBasicBlockRef cg_cold_open(struct machine *m, LLVMValueRef condition,
                               LLVMBasicBlockRef *out_from);
LLVMValueRef cg_cold_close(struct machine *m, LLVMBasicBlockRef warm, LLVMBasicBlockRef from,
                           LLVMValueRef quick, LLVMValueRef slow);
// A call of a function with one result; in a long function of a GPU by one that leaves it in memory.
LLVMValueRef cg_call(struct machine *m, LLVMTypeRef type, LLVMValueRef f,
                     LLVMValueRef *arguments);

#endif
