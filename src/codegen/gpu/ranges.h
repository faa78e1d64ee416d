// SPDX-License-Identifier: Apache-2.0
// A run of operations without branches for functions that hold in a range.
#ifndef CODEGEN_GPU_RANGES_H
#define CODEGEN_GPU_RANGES_H

#include "codegen/lower.h"

// How many statements of the n from the first on it has lowered, 0: there are no such functions among
// them.  none_before: in front of which statement no run of either kind begins, 0 at first.
uint32_t gpu_lower_ranged(struct cg_lowering *l, const nest_id *statements, uint32_t first,
                          uint32_t n, uint32_t none_before[2]);

#endif
