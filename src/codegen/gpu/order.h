// SPDX-License-Identifier: Apache-2.0
// The turns of updates by their bins, and what threads of a warp tell each other.
#ifndef CODEGEN_GPU_ORDER_H
#define CODEGEN_GPU_ORDER_H

#include "codegen/gpu/updates.h"

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

#endif
