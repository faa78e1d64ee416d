// SPDX-License-Identifier: Apache-2.0
// Quotients whose operands are known to be in range.
#ifndef CODEGEN_GPU_INTERVALS_H
#define CODEGEN_GPU_INTERVALS_H

#include "codegen/lower.h"

// Whether a quotient of f32s is known to need no branch, wherever its arm is chosen.
bool gpu_is_quotient_in_range(struct cg_lowering *l, const struct nest_statement *quotient);

#endif
