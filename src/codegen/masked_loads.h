// SPDX-License-Identifier: Apache-2.0
// Masked loads that LLVM makes wrong code of.
#ifndef CODEGEN_MASKED_LOADS_H
#define CODEGEN_MASKED_LOADS_H

#include "codegen/emit.h"

// A masked load has half of its lanes where its mask never has the other half.
void cg_halve_masked_loads(struct cg_module *m);

#endif
