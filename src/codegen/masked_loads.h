// SPDX-License-Identifier: Apache-2.0
// Masked loads that LLVM makes wrong code of.
#ifndef CODEGEN_MASKED_LOADS_H
#define CODEGEN_MASKED_LOADS_H

#include "codegen/emit.h"

// Masked loads of several registers go register by register where their masks never have some.
void cg_split_masked_loads(struct cg_module *m);

#endif
