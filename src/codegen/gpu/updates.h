// SPDX-License-Identifier: Apache-2.0
// What the ways of making updates have in common (updates.c, places.c).
#ifndef CODEGEN_GPU_UPDATES_H
#define CODEGEN_GPU_UPDATES_H

#include "codegen/gpu/gpu.h"

#define CHUNK 16384 // turns that a block of threads sorts

struct updates {
    const struct nest_statement *par, *seq;  // par: NULL for none
    const struct nest_statement *put, *load; // load: of what is updated, or NULL
    const struct nest_block *body;           // of the loop
    bool *depends;                           // by value: on what is loaded
    int64_t points, turns, chunks;           // chunks of a point
    LLVMValueRef offsets, list, lane;
};

// updates.c
// The point (an i64) as axes, and what it knows; the turn (an i64) as an axis.
void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point);
void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn);
// Statements of the turn that do, or do not, depend on what is updated.
void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends);
// Whether the value is made in a turn.
bool updates_is_in_turn(const struct cg_lowering *l, const struct updates *u, nest_id value);

// places.c
// Whether a block of threads can count the updates of every place; the two steps that do.
bool places_are_few(struct cg_lowering *l, const struct updates *u);
void places_lower(struct cg_lowering *l, struct updates *u, uint32_t at, struct cg_kernel *out);

#endif
