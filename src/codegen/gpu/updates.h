// SPDX-License-Identifier: Apache-2.0
// What the ways of making updates have in common (updates.c, places.c).
#ifndef CODEGEN_GPU_UPDATES_H
#define CODEGEN_GPU_UPDATES_H

#include "codegen/gpu/gpu.h"

#define UPDATE_BLOCK 256 // threads

struct updates {
    struct map_updates of;
    LLVMValueRef offsets, list, lane;
};

// updates.c
// The point (an i64) as axes, with the place in the window, and what it knows; the turn (an i64) as axes.
void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                       LLVMValueRef in_window);
void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn);
// Statements of the turn that do, or do not, depend on what is updated.
void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends);

// Word i of those from base on.
LLVMValueRef updates_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i);

// windows.c: the second step, for updates of windows.
void windows_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step);

// places.c: the two steps of updates of few places.
void places_lower(struct cg_lowering *l, struct updates *u, const struct map_places *of,
                  uint32_t at, struct cg_kernel *out);

#endif
