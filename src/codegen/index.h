// SPDX-License-Identifier: Apache-2.0
// Affine indices as values.
#ifndef CODEGEN_INDEX_H
#define CODEGEN_INDEX_H

#include "codegen/lower.h"

// The index at lane 0.
LLVMValueRef cg_index_first(struct cg_lowering *l, const struct nest_index *x);
LLVMValueRef cg_index_value(struct cg_lowering *l, const struct nest_index *x, jot_dtype d);

// An index split into what is the same in all lanes, the factor along the vector axis, and what
// differs otherwise (a vector of i64, or NULL).
struct cg_parts {
    LLVMValueRef uniform;
    int64_t factor;
    LLVMValueRef varying;
};

struct cg_parts cg_split_index(struct cg_lowering *l, const struct nest_index *x);
// The index of each lane, as a vector of i64.
LLVMValueRef cg_lane_offsets(struct cg_lowering *l, const struct cg_parts *p);
LLVMValueRef cg_add(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef cg_times(struct cg_lowering *l, LLVMValueRef a, int64_t factor);

#endif
