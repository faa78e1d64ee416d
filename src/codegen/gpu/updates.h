// SPDX-License-Identifier: Apache-2.0
// Long loops of updates, and what the ways of making them have in common.
#ifndef CODEGEN_GPU_UPDATES_H
#define CODEGEN_GPU_UPDATES_H

#include "codegen/kernel.h"
#include "map/gpu_updates.h"

#define UPDATE_BLOCK 256 // threads

struct updates {
    struct map_updates of;
    LLVMValueRef offsets, list, values[MAP_COPIES], lane; // values: of each copy
};

// The steps of a kernel whose only loop is statement `at` of its body, a loop of updates.
void gpu_updates_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);

// The point (an i64) as axes, with the element in the window or the number of the copy; with what it knows; the turn
// (an i64) as axes.
void updates_set_axes(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                      LLVMValueRef in_window);
void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                       LLVMValueRef in_window);
void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn);
// Statements of the turn that do, or do not, depend on what is updated.
void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends);

#endif
