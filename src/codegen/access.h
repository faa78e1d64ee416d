// SPDX-License-Identifier: Apache-2.0
// Loads and stores, and the memory that they go to.
#ifndef CODEGEN_ACCESS_H
#define CODEGEN_ACCESS_H

#include "codegen/emit.h"
#include "nest/nest.h"

struct cg_lowering;

// What is known of an access while it is lowered: who loads or stores sets it.
struct cg_access {
    bool is_constant;  // no store of the kernel is to its memory
    unsigned align;    // bytes; 0: that of an element
    bool streams;      // the store is to an array that no cache holds
    bool has_streamed; // some store of the function was
};

LLVMValueRef cg_wide(struct cg_lowering *l, LLVMValueRef v); // splat to the lanes now
struct cg_value cg_wide_value(struct cg_lowering *l, struct cg_value v);
struct cg_value cg_load(struct cg_lowering *l, const struct nest_statement *s);
void cg_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);
// Loads and stores on memory at base with elements of dtype d.  `all`: what the guard says of all lanes at once, or NULL.
struct cg_value cg_load_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                           const struct nest_index *x, LLVMValueRef guard, LLVMValueRef all);
void cg_store_at(struct cg_lowering *l, LLVMValueRef base, jot_dtype d,
                 const struct nest_index *x, LLVMValueRef guard, LLVMValueRef all,
                 struct cg_value v);
// Of real numbers of an operand, at an index that no guard and no value decides.
bool cg_is_plain_load(const struct cg_lowering *l, const struct nest_statement *s);

// Copies what a transposed load reads in a tile to memory where it is close together: row i is what
// lane i reads.  cg_load then takes it from there.
#define CG_TILE 64
bool cg_may_stage(const struct cg_lowering *l, const struct nest_statement *s, nest_id across);
void cg_stage(struct cg_lowering *l, nest_id statement);

// A bool is a byte in memory, a bit elsewhere.
LLVMValueRef cg_from_memory(struct cg_lowering *l, LLVMValueRef v, jot_dtype d);
LLVMValueRef cg_to_memory(struct cg_lowering *l, LLVMValueRef v, jot_dtype d);
// The lanes of both; NULL is all.
LLVMValueRef cg_and_masks(struct cg_lowering *l, LLVMValueRef a, LLVMValueRef b);
// The lanes that count where others may not be touched; NULL: all, or all but lanes past the end.
LLVMValueRef cg_control_mask(struct cg_lowering *l, LLVMValueRef guard);
LLVMValueRef cg_gather(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                       LLVMValueRef offsets, unsigned align, LLVMValueRef mask);
void cg_scatter(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                LLVMValueRef offsets, unsigned align, LLVMValueRef mask, LLVMValueRef v);

#endif
