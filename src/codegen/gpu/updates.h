// SPDX-License-Identifier: Apache-2.0
// What the ways of making updates have in common (updates.c, places.c).
#ifndef CODEGEN_GPU_UPDATES_H
#define CODEGEN_GPU_UPDATES_H

#include "codegen/gpu/gpu.h"

#define CHUNK 16384      // turns that a block of threads sorts
#define UPDATE_BLOCK 256 // threads

#define TURN_LOOPS 8 // that are one sequence of turns, at most

struct updates {
    const struct nest_statement *par; // NULL for none
    // The loops over turns, the outer ones with nothing but plain statements beside the next one.
    const struct nest_statement *loops[TURN_LOOPS];
    uint32_t n_loops;
    const struct nest_statement *put, *load; // load: of what is updated, or NULL
    const struct nest_block *body;           // all statements of a turn
    struct nest_index row;         // of the place, what turns change, as small as it goes
    bool *depends;                 // by value: on what is loaded
    bool *is_window;               // by axis of par: turns and guards do not depend on it
    int64_t points, turns, chunks; // chunks of a point
    int64_t window;                // places of an update of a point, 1: the one
    int64_t bins;                  // of places, a power of two
    LLVMValueRef offsets, list, lane;
};

// updates.c
// The point (an i64) as axes, with the place in the window, and what it knows; the turn (an i64) as axes.
void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                       LLVMValueRef in_window);
bool updates_is_of_turns(const struct updates *u, nest_id axis);
void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn);
// Statements of the turn that do, or do not, depend on what is updated.
void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends);
// Whether the value is made in a turn.
bool updates_is_in_turn(const struct cg_lowering *l, const struct updates *u, nest_id value);

// Word i of those from base on.
LLVMValueRef updates_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i);

// windows.c: the second step, for updates of windows.
void windows_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step);

// places.c
// Whether a block of threads can count the updates of every place; the two steps that do.
bool places_are_few(struct cg_lowering *l, const struct updates *u);
void places_lower(struct cg_lowering *l, struct updates *u, uint32_t at, struct cg_kernel *out);

#endif
