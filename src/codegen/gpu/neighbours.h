// SPDX-License-Identifier: Apache-2.0
// Loads a few elements beside a thread's own elements.
#ifndef CODEGEN_GPU_NEIGHBOURS_H
#define CODEGEN_GPU_NEIGHBOURS_H

#include "codegen/lower.h"

// A load whose lanes lie across vectors or have a guard each; false: any other.
bool gpu_load_neighbours(struct cg_lowering *l, const struct nest_statement *load,
                         LLVMValueRef guard, struct cg_value *out);

#endif
