// SPDX-License-Identifier: Apache-2.0
// Operations of which more is known than of others.
#ifndef CODEGEN_GPU_BOUNDS_H
#define CODEGEN_GPU_BOUNDS_H

#include "codegen/lower.h"

// Lowers such an operation; false: as they are.
bool gpu_bounded(struct cg_lowering *l, const struct nest_statement *op);

#endif
