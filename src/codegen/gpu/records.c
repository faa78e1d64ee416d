// SPDX-License-Identifier: Apache-2.0
// Rows of the threads of a warp, far apart in memory: each access is of neighbouring threads to
// neighbouring elements of a few rows, where that of each thread to its own row would be to 32 lines.
// Between, rows are in shared memory, 16 bytes further apart than they are long, so that threads that
// read their own meet in no bank.
#include "codegen/gpu/records.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/memory.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/records.h"
#include "codegen/types.h"
#include "map/gpu.h"

#define PITCH (CG_ROW_BYTES + 16)
#define MOST 32 // accesses of a thread

// The accesses that a thread makes for the rows of its warp: `count`, each `step` rows further.
struct accesses {
    LLVMTypeRef type;
    LLVMValueRef near, far; // of the first
    unsigned bytes, count, step;
};

static LLVMValueRef bytes_behind(struct cg_lowering *l, LLVMValueRef at, LLVMValueRef bytes)
{
    return cg_at(l, l->module->i8, at, bytes);
}

static LLVMTypeRef piece_type(const struct cg_record_row *r, unsigned bytes)
{
    return cg_with_lanes(r->lane, bytes / r->bytes);
}

// Bytes of an access: those that the memory is aligned to, where all rows begin at multiples of them.
static unsigned access_of(const struct cg_lowering *l, const struct cg_record_row *r)
{
    unsigned wide = gpu_align_of(l, r->s->buffer);
    bool is_wide = r->first * r->bytes % wide == 0 && r->width * r->bytes >= wide;
    for (uint32_t i = 0; is_wide && i < r->s->index.count; i++)
        is_wide = r->s->index.terms[i].factor * r->bytes % wide == 0;
    return is_wide ? wide : r->bytes;
}

static struct accesses accesses_of(struct cg_lowering *l, const struct cg_record_row *r)
{
    LLVMBuilderRef b = l->m.b;
    unsigned bytes = access_of(l, r), of_row = r->width * r->bytes / bytes;
    if (!l->gpu->warp.record)
        l->gpu->warp.record = gpu_shared(l, PITCH);
    LLVMValueRef lane = LLVMBuildAnd(b, l->gpu->thread, gpu_i32(l, GPU_WARP - 1), "");
    LLVMValueRef row = LLVMBuildUDiv(b, lane, gpu_i32(l, of_row), "");
    LLVMValueRef piece = gpu_wide(l, LLVMBuildURem(b, lane, gpu_i32(l, of_row), ""));
    piece = LLVMBuildMul(b, piece, cg_int(l->module, bytes), "");
    LLVMValueRef by = LLVMBuildSub(b, gpu_wide(l, row), gpu_wide(l, lane), "");
    LLVMValueRef near = LLVMBuildMul(b, by, cg_int(l->module, PITCH), "");
    LLVMValueRef far = LLVMBuildMul(b, by, cg_int(l->module, r->across * r->bytes), "");
    return (struct accesses){
        .type = piece_type(r, bytes),
        .near = bytes_behind(l, l->gpu->warp.record, LLVMBuildAdd(b, near, piece, "")),
        .far = bytes_behind(l, r->at, LLVMBuildAdd(b, far, piece, "")),
        .bytes = bytes,
        .count = of_row,
        .step = GPU_WARP / of_row,
    };
}

static LLVMValueRef load_piece(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef from,
                               int64_t bytes, unsigned align)
{
    LLVMValueRef at = bytes_behind(l, from, cg_int(l->module, bytes));
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, type, at, "");
    LLVMSetAlignment(v, align);
    return v;
}

static void store_piece(struct cg_lowering *l, LLVMValueRef v, LLVMValueRef to, int64_t bytes,
                        unsigned align)
{
    LLVMValueRef at = bytes_behind(l, to, cg_int(l->module, bytes));
    LLVMSetAlignment(LLVMBuildStore(l->m.b, v, at), align);
}

void gpu_records_load(struct cg_lowering *l, const struct cg_record_row *r, LLVMValueRef *out)
{
    struct accesses a = accesses_of(l, r);
    LLVMValueRef v[MOST];
    LLVMTypeRef wide = piece_type(r, 16);
    unsigned lanes = 16 / r->bytes;
    for (unsigned k = 0; k < a.count; k++)
        v[k] = load_piece(l, a.type, a.far, k * a.step * r->across * r->bytes, a.bytes);
    gpu_sync_warp(l);
    for (unsigned k = 0; k < a.count; k++)
        store_piece(l, v[k], a.near, (int64_t)k * a.step * PITCH, a.bytes);
    gpu_sync_warp(l);
    for (unsigned i = 0; i < r->width; i += lanes) {
        LLVMValueRef own = load_piece(l, wide, l->gpu->warp.record, (int64_t)i * r->bytes, 16);
        for (unsigned k = 0; k < lanes; k++)
            out[i + k] = cg_extract(&l->m, own, k, 1);
    }
}

void gpu_records_store(struct cg_lowering *l, const struct cg_record_row *r, LLVMValueRef *in)
{
    struct accesses a = accesses_of(l, r);
    LLVMValueRef v[MOST];
    unsigned lanes = 16 / r->bytes;
    gpu_sync_warp(l);
    for (unsigned i = 0; i < r->width; i += lanes) {
        LLVMValueRef own = LLVMGetPoison(piece_type(r, 16));
        for (unsigned k = 0; k < lanes; k++)
            own = LLVMBuildInsertElement(l->m.b, own, in[i + k], gpu_i32(l, k), "");
        store_piece(l, own, l->gpu->warp.record, (int64_t)i * r->bytes, 16);
    }
    gpu_sync_warp(l);
    for (unsigned k = 0; k < a.count; k++)
        v[k] = load_piece(l, a.type, a.near, (int64_t)k * a.step * PITCH, a.bytes);
    for (unsigned k = 0; k < a.count; k++)
        store_piece(l, v[k], a.far, k * a.step * r->across * r->bytes, a.bytes);
}

nest_id gpu_records_axis(const struct cg_lowering *l)
{
    const struct cg_gpu *g = l->gpu;
    bool are_threads =
        g->warp.points && !g->time.common && !g->nest.is_phase && l->vector.lanes == 1;
    return are_threads ? g->warp.points->axis : NEST_NONE;
}
