// SPDX-License-Identifier: Apache-2.0
// Long blocks of instructions.
#ifndef CODEGEN_LONG_BLOCKS_H
#define CODEGEN_LONG_BLOCKS_H

#include "codegen/emit.h"

// Blocks of instructions become parts where LLVM's time for them grows with their square.
void cg_cut_blocks(const struct cg_module *m, LLVMModuleRef module);

#endif
