// SPDX-License-Identifier: Apache-2.0
// What the ways of making updates have in common (updates.c, order.c, bins.c, windows.c, places.c).
#ifndef CODEGEN_GPU_UPDATES_H
#define CODEGEN_GPU_UPDATES_H

#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "map/gpu.h"

#define UPDATE_BLOCK 256 // threads

struct updates {
    struct map_updates of;
    LLVMValueRef offsets, list, values[MAP_COPIES], lane; // values: of each copy
};

// The steps of a kernel whose only loop is statement `at` of its body, a loop of updates.
void gpu_updates_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);

// The point (an i64) as axes, with the place in the window or the number of the copy; with what it knows; the turn (an
// i64) as axes.
void updates_set_axes(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                      LLVMValueRef in_window);
void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                       LLVMValueRef in_window);
void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn);
// Statements of the turn that do, or do not, depend on what is updated.
void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends);

// order.c
// Word i of those from base on.
LLVMValueRef updates_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i);
LLVMValueRef updates_load_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i);
// Of the warp: whether the condition holds somewhere; an i32 of another lane; the sum of those up to this lane.
LLVMValueRef updates_any(struct cg_lowering *l, LLVMValueRef condition);
LLVMValueRef updates_word_from(struct cg_lowering *l, LLVMValueRef word, LLVMValueRef lane);
LLVMValueRef updates_sum_to(struct cg_lowering *l, const struct updates *u, LLVMValueRef own);
// The sum over the threads before this one in a block of 1024, by memory of 32 words.
LLVMValueRef updates_sum_before(struct cg_lowering *l, const struct updates *u,
                                LLVMValueRef sums, LLVMValueRef own);
// The lanes that are there and have the same key, one of so many, as bits; how many, and how many before this one.
LLVMValueRef updates_peers(struct cg_lowering *l, LLVMValueRef key, int64_t count,
                           LLVMValueRef is_there);
LLVMValueRef updates_population(struct cg_lowering *l, LLVMValueRef lanes);
LLVMValueRef updates_rank(struct cg_lowering *l, const struct updates *u, LLVMValueRef lanes);
// The first step of updates.
void order_lower(struct cg_lowering *l, struct updates *u, struct cg_kernel_step *step);

// bins.c: the second step, a bin for each warp.
struct updates_bin {
    struct cg_loop loop;       // over the bins of the block
    LLVMValueRef warp;         // in the block, an i64
    LLVMValueRef point, index; // i64
    // Of 32 chunks, i32: the turns; those up to the lane's chunk; where its first one would stand in the list if those
    // before it stood there too.
    LLVMValueRef count, sums, begin;
};
struct updates_bin updates_bin_open(struct cg_lowering *l, const struct updates *u,
                                    struct cg_kernel_step *step);
// Over the chunks of the point, 32 at a time, one of which a lane looks up.
struct cg_loop updates_chunks_open(struct cg_lowering *l, const struct updates *u,
                                   struct updates_bin *bin);
// Where turn i of them stands in the list, an i64; where there is none, that of the first one.
LLVMValueRef updates_at(struct cg_lowering *l, const struct updates_bin *bin, LLVMValueRef i,
                        LLVMValueRef *out_is_there);
void bins_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step);

// windows.c: the second step, for updates of windows.
void windows_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step);

// places.c: the two steps of updates of few places.
void places_lower(struct cg_lowering *l, struct updates *u, const struct map_places *of,
                  uint32_t at, struct cg_kernel *out);

#endif
