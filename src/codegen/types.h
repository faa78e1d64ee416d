// SPDX-License-Identifier: Apache-2.0
// LLVM types of element types and lane counts, and values of so many lanes.
#ifndef CODEGEN_TYPES_H
#define CODEGEN_TYPES_H

#include "codegen/emit.h"

LLVMTypeRef cg_lane_type(const struct cg_module *m,
                         jot_dtype d); // i1 for bool; the part's type
LLVMTypeRef cg_memory_type(const struct cg_module *m,
                           jot_dtype d); // i8 for bool; the part's type
LLVMTypeRef cg_with_lanes(LLVMTypeRef lane, unsigned lanes);
LLVMTypeRef cg_lane_of(LLVMValueRef v); // the type of a lane
unsigned cg_lanes_of(LLVMValueRef v);
LLVMValueRef cg_splat(struct machine *m, LLVMValueRef v, unsigned lanes); // of one lane
LLVMValueRef cg_int(const struct cg_module *m, int64_t x);                // an i64
LLVMValueRef cg_intrinsic(struct machine *m, const char *name, LLVMTypeRef overload, int n,
                          LLVMValueRef *arguments);
// One whose name has two types.
LLVMValueRef cg_intrinsic_of_two(struct machine *m, const char *name, LLVMTypeRef a,
                                 LLVMTypeRef b, int n, LLVMValueRef *arguments);
static inline LLVMValueRef cg_call1(struct machine *m, const char *name, LLVMValueRef x)
{
    return cg_intrinsic(m, name, LLVMTypeOf(x), 1, &x);
}
static inline LLVMValueRef cg_call2(struct machine *m, const char *name, LLVMValueRef x,
                                    LLVMValueRef y)
{
    return cg_intrinsic(m, name, LLVMTypeOf(x), 2, (LLVMValueRef[]){x, y});
}
// Constant vector first, first + step, ... of i64 or i32.
LLVMValueRef cg_sequence(const struct cg_module *m, LLVMTypeRef lane, unsigned lanes,
                         int64_t first, int64_t step);
// Lanes first .. first + count - 1 of v.
LLVMValueRef cg_extract(struct machine *m, LLVMValueRef v, unsigned first, unsigned count);

// Whether some lane of a mask is set, lane by lane.
LLVMValueRef cg_any_lane(struct machine *m, LLVMValueRef mask);

#endif
