// SPDX-License-Identifier: Apache-2.0
// Large functions, for which LLVM takes long.
#ifndef CODEGEN_LARGE_H
#define CODEGEN_LARGE_H

#include "codegen/emit.h"

// Numbers, locals and indices of large functions where LLVM's time for them grows with the code.
void cg_large_functions(struct cg_module *m);
// The integer, or on a GPU a number of 32 or 64 bits, behind an assembly of no instructions, through which LLVM does not
// look.
LLVMValueRef cg_apart(struct cg_module *m, LLVMBuilderRef b, LLVMValueRef number);

#endif
