// SPDX-License-Identifier: Apache-2.0
// The pairwise tree over rows of results.
#ifndef CODEGEN_GPU_TREE_H
#define CODEGEN_GPU_TREE_H

#include "codegen/accumulate.h"

// Room in shared memory.
struct cg_results gpu_shared_results(struct cg_lowering *l, const struct cg_accumulator *a,
                                     uint64_t rows);
// Results of n folds in memory, one after the other.
void gpu_lay_out_results(struct cg_lowering *l, uint32_t n, const struct cg_accumulator *a,
                         int64_t rows, LLVMValueRef memory, struct cg_results **out);
struct cg_element gpu_row_load(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_results *rows, LLVMValueRef row);
void gpu_row_store(struct cg_lowering *l, const struct cg_accumulator *a,
                   const struct cg_results *rows, LLVMValueRef row, const struct cg_element *t);
// By one thread, which gets the elements one by one: element number i is pushed i-th.
struct gpu_tree {
    uint32_t n;
    const struct cg_accumulator *accumulators;
    int levels;
    struct cg_results *stack; // [level][accumulator]
};
struct gpu_tree gpu_tree_make(struct cg_lowering *l, uint32_t n,
                              const struct cg_accumulator *accumulators, int64_t most);
void gpu_tree_push(struct cg_lowering *l, struct gpu_tree *t, LLVMValueRef i,
                   const struct cg_element *elements);
void gpu_tree_top(struct cg_lowering *l, const struct gpu_tree *t, int64_t count,
                  struct cg_element *out);
// The same of a count (an i64) that is known when the kernel runs; the neutral element of none.
void gpu_tree_any(struct cg_lowering *l, const struct gpu_tree *t, LLVMValueRef count,
                  struct cg_element *out);
// By the group: rows 0 .. count - 1 (an i32), at most so many, of results that all threads see.
// All threads get the result.
struct cg_element gpu_tree_rows(struct cg_lowering *l, const struct cg_accumulator *a,
                                const struct cg_results *rows, LLVMValueRef count,
                                int64_t most);

#endif
