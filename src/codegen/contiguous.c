// SPDX-License-Identifier: Apache-2.0
// Vectors that lie together in memory, and stores that go past the caches.
#include "codegen/contiguous.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/types.h"
#include "ir/cost.h"

#define STREAMED_BYTES (INT64_C(16) << 20) // arrays that leave the caches before they are read
#define APART_BYTES (INT64_C(1) << 20)     // the same where lanes put far apart
#define TRIPS_BYTES (INT64_C(8) << 20)     // and where the trips of a loop do

// Loads of what nobody writes are one wherever they are the same.
LLVMValueRef cg_load_plain(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef at,
                           unsigned align)
{
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, type, at, "");
    LLVMSetAlignment(v, align);
    LLVMContextRef c = l->module->context;
    if (l->access.is_constant)
        LLVMSetMetadata(v, LLVMGetMDKindIDInContext(c, "invariant.load", 14),
                        LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, NULL, 0)));
    return v;
}

// `unit` consecutive elements of `type` for each of the lanes at a factor of one unit.
LLVMValueRef cg_load_contiguous(struct cg_lowering *l, LLVMTypeRef lane, LLVMValueRef at,
                                unsigned lanes, unsigned align, LLVMValueRef mask)
{
    LLVMTypeRef type = cg_with_lanes(lane, lanes);
    if (!mask)
        return cg_load_plain(l, type, at, align);
    LLVMValueRef arguments[] = {at, LLVMConstInt(l->module->i32, align, 0), mask,
                                LLVMConstNull(type)};
    return cg_intrinsic_of_two(&l->m, "llvm.masked.load", type, l->module->ptr, 4, arguments);
}

void cg_store_contiguous(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align,
                         LLVMValueRef mask)
{
    if (!mask) {
        LLVMSetAlignment(LLVMBuildStore(l->m.b, v, at), align);
        return;
    }
    LLVMValueRef arguments[] = {v, at, LLVMConstInt(l->module->i32, align, 0), mask};
    cg_intrinsic_of_two(&l->m, "llvm.masked.store", LLVMTypeOf(v), l->module->ptr, 4,
                        arguments);
}

// At the start of a cache line.
static void store_past_caches(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at)
{
    LLVMValueRef store = LLVMBuildStore(l->m.b, v, at);
    LLVMSetAlignment(store, COST_LINE_BYTES);
    LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(l->module->i32, 1, 0));
    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(l->module->context, "nontemporal", 11),
                    LLVMMetadataAsValue(l->module->context,
                                        LLVMMDNodeInContext2(l->module->context, &one, 1)));
    l->access.has_streamed = true;
}

// Past the caches where the address is the start of a line: the line is not read first.
void cg_store_streamed(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef address = LLVMBuildPtrToInt(b, at, l->module->i64, "");
    LLVMValueRef in_line = LLVMBuildAnd(b, address, cg_int(l->module, COST_LINE_BYTES - 1), "");
    struct cg_branch starts =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, in_line, cg_int(l->module, 0), ""));
    store_past_caches(l, v, at);
    cg_else_open(l, &starts);
    LLVMSetAlignment(LLVMBuildStore(b, v, at), align);
    cg_if_close(l, &starts);
}

LLVMValueRef cg_load_row(struct cg_lowering *l, LLVMTypeRef vector, LLVMValueRef at,
                         unsigned align, LLVMValueRef mask)
{
    return cg_load_contiguous(l, LLVMGetElementType(vector), at, LLVMGetVectorSize(vector),
                              align, mask);
}

void cg_store_row(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef at, unsigned align,
                  LLVMValueRef mask, bool streams)
{
    if (streams)
        store_past_caches(l, v, at);
    else
        cg_store_contiguous(l, v, at, align, mask);
}

bool cg_is_streamed(const struct cg_lowering *l, nest_id buffer, bool far_apart)
{
    const struct nest_buffer *to = &l->nest->buffers.at[buffer];
    int64_t least = far_apart ? APART_BYTES : l->chunks.at ? TRIPS_BYTES : STREAMED_BYTES;
    return !l->gpu && to->role == NEST_OUT && to->count * dtype_get(to->dtype)->bytes >= least;
}

void cg_end_streams(struct cg_lowering *l)
{
    if (!l->access.has_streamed)
        return;
    unsigned id = LLVMLookupIntrinsicID("llvm.x86.sse.sfence", 19);
    LLVMValueRef fence = LLVMGetIntrinsicDeclaration(l->module->module, id, NULL, 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(l->module->context, id, NULL, 0);
    LLVMBuildCall2(l->m.b, type, fence, NULL, 0, "");
}
