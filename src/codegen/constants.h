// SPDX-License-Identifier: Apache-2.0
// Constants of all lanes.
#ifndef CODEGEN_CONSTANTS_H
#define CODEGEN_CONSTANTS_H

#include "codegen/emit.h"

// The number that a constant vector has in all lanes, or NULL.
LLVMValueRef cg_number_of_lanes(LLVMValueRef v);
// Whether it is arithmetic of floats, whose operands may be in memory; of others LLVM wants to see the numbers.
bool cg_may_read(LLVMValueRef instruction);
// Operands that are one number in all lanes become vectors in memory.
void cg_constants_to_memory(struct cg_module *m);

#endif
