// SPDX-License-Identifier: Apache-2.0
// A run of operations without branches for functions that hold in a range.
#ifndef CODEGEN_GPU_RANGES_H
#define CODEGEN_GPU_RANGES_H

#include "codegen/lower.h"

struct gpu_ranges {
    LLVMValueRef outside;   // whether some number has been out of range, or NULL: none could be
    bool is_redo;           // what is lowered does numbers of any size
    bool is_known;          // operands of what is lowered need no look
    struct gpu_size *sizes; // by value of the nest
};
// How many statements of the n from the first on it has lowered, 0: there are no such functions among
// them.  none_before: in front of which statement no run of either kind begins, 0 at first.
uint32_t gpu_lower_ranged(struct cg_lowering *l, const nest_id *statements, uint32_t first,
                          uint32_t n, uint32_t none_before[2]);
// Of a run that is not done again yet: numbers out of range.
void gpu_outside(struct machine *m, LLVMValueRef mask);

#endif
