// SPDX-License-Identifier: Apache-2.0
// Lanes whose elements are 2 to 4 apart.
#ifndef CODEGEN_STRIDED_H
#define CODEGEN_STRIDED_H

#include "codegen/emit.h"
#include "nest/nest.h"

struct cg_lowering;
struct cg_parts;

struct cg_strided {
    LLVMTypeRef lane;
    LLVMValueRef at; // of lane 0
    unsigned factor, align;
    LLVMValueRef mask; // or NULL
};

// Whether accesses are such: stores only where those under masks are as quick as others.
bool cg_has_short_stride(const struct cg_lowering *l, const struct cg_parts *p, bool is_complex,
                         bool is_store);
struct cg_strided cg_strided_of(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef base,
                                const struct cg_parts *p, unsigned align, LLVMValueRef mask);
// Lanes from number `first` on, n of them.
LLVMValueRef cg_load_strided(struct cg_lowering *l, const struct cg_strided *a, unsigned first,
                             unsigned n);
void cg_store_strided(struct cg_lowering *l, const struct cg_strided *a, LLVMValueRef v);

#endif
