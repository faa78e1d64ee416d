// SPDX-License-Identifier: Apache-2.0
// Pieces of loads and stores: index.c, access.c, own.c.
#ifndef CODEGEN_ACCESS_H
#define CODEGEN_ACCESS_H

#include "codegen/lower.h"

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

// The lanes of both; NULL is all.
LLVMValueRef cg_and_masks(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b);
// The lanes that count where others may not be touched; NULL: all, or all but lanes past the end.
LLVMValueRef cg_control_mask(struct cg_lowering *l, LLVMValueRef guard);
LLVMValueRef cg_gather(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                       LLVMValueRef offsets, unsigned align, LLVMValueRef mask);
void cg_scatter(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                LLVMValueRef offsets, unsigned align, LLVMValueRef mask, LLVMValueRef v);

// A local that every lane has one of.
bool cg_is_own(struct cg_lowering *l, nest_id buffer);
struct cg_value cg_own_load(struct cg_lowering *l, const struct nest_statement *s);
void cg_own_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);

#endif
