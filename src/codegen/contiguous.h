// SPDX-License-Identifier: Apache-2.0
// Vectors that lie together in memory, and stores that go past the caches.
#ifndef CODEGEN_CONTIGUOUS_H
#define CODEGEN_CONTIGUOUS_H

#include "codegen/emit.h"
#include "nest/nest.h"

struct cg_lowering;

// Of any type.
LLVMValueRef cg_load_plain(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef at,
                           unsigned align);
// So many elements one behind the other, those that the mask says.
LLVMValueRef cg_load_contiguous(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef at,
                                unsigned lanes, unsigned align, LLVMValueRef mask);
void cg_store_contiguous(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align,
                         LLVMValueRef mask);
// Past the caches where the address is the start of a line.
void cg_store_streamed(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align);
// Whether puts of the buffer go past the caches: the buffer is larger than they, or the puts, one
// after the other, are far apart.
bool cg_is_streamed(const struct cg_lowering *l, nest_id buffer, bool far_apart);
// A vector in memory; the store goes past the caches when it streams, at the start of a cache line.
LLVMValueRef cg_load_row(struct cg_lowering *l, LLVMTypeRef vector, LLVMValueRef at,
                         unsigned align, LLVMValueRef mask);
void cg_store_row(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align,
                  LLVMValueRef mask, bool streams);
// Ends a function that may have streamed: other threads see what it stored.
void cg_end_streams(struct cg_lowering *l);

#endif
