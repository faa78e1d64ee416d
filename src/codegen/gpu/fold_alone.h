// SPDX-License-Identifier: Apache-2.0
// Folds by one thread.
#ifndef CODEGEN_GPU_FOLD_ALONE_H
#define CODEGEN_GPU_FOLD_ALONE_H

#include "codegen/accumulate.h"

void gpu_fold_alone(struct cg_lowering *l, nest_id fold);

// What one thread needs of a fold: units of its blocks, a power of two, are a tree each.
struct gpu_alone {
    const struct nest_statement *s;
    struct cg_accumulator *all;
    int64_t length, block, blocks, units;
    unsigned rows; // accumulators of a block
    int bits;
};
struct gpu_alone gpu_alone_make(struct cg_lowering *l, nest_id fold, int64_t units);
// Units first .. first + count - 1 (i64), at most so many.
void gpu_alone_units(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef first,
                     LLVMValueRef count, int64_t most, struct cg_element *out);
void gpu_alone_define(struct cg_lowering *l, const struct gpu_alone *p,
                      const struct cg_element *results);

#endif
