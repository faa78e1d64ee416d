// SPDX-License-Identifier: Apache-2.0
// What a loop over time puts is contiguous along time, and the rows of neighbouring threads are far
// apart.  A warp keeps some steps of its rows in shared memory, where a row is longer by one so that
// a column lies in as many banks, and stores row after row with its threads side by side.
#include "codegen/gpu/rows.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/stack.h"
#include "codegen/types.h"
#include "map/gpu.h"

#define MOST_STEPS 48  // GPU_WARP and 8 or 16 more
#define MOST_BYTES 384 // of shared memory of a thread
#define AT_ONCE 8      // elements that a thread moves together

// Rows of steps in shared memory, and outside.
struct store {
    LLVMTypeRef type;
    LLVMValueRef memory, outside, lane;
    int64_t across, steps;
    unsigned bytes;
};

static unsigned bytes_of(const struct cg_lowering *l, const struct nest_statement *s)
{
    return dtype_get(l->nest->buffers.at[s->buffer].dtype)->bytes;
}

static bool is_direct(const struct cg_lowering *l, const struct nest_statement *seq)
{
    nest_for_each (t, l->nest, l->gpu->warp.points->s->body)
        if (t == seq)
            return true;
    return false;
}

int64_t gpu_rows_find(struct cg_lowering *l, const struct nest_statement *seq)
{
    int64_t n = cg_extent(l, seq), steps = MOST_STEPS;
    while (steps >= GPU_WARP && n % steps)
        steps -= 8;
    if (!l->gpu->warp.points || steps < GPU_WARP || !is_direct(l, seq))
        return 0;
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    LLVMValueRef thread = gpu_wide(l, l->gpu->thread);
    uint64_t used = 0;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (s->kind != NEST_PUT || l->marks[id].is_hoisted || !cg_lies_along_time(l, seq, s))
            continue;
        int64_t across = nest_index_factor(&s->index, l->gpu->warp.points->axis);
        int64_t row = (steps + 1) * bytes_of(l, s), room = (row + 15) / 16 * 16;
        if (across < steps || used + (uint64_t)room > MOST_BYTES)
            continue;
        LLVMValueRef memory = gpu_shared(l, (uint64_t)room);
        LLVMValueRef less = LLVMBuildMul(l->m.b, thread, cg_int(l->module, row - room), "");
        l->marks[id].stack.memory = cg_at(l, l->module->i8, memory, less);
        used += (uint64_t)room;
    }
    return used ? steps : 0;
}

// So many columns, a power of two, of the 32 rows.  A row in shared memory is one longer than its
// steps, and one outside `across`.
static void store_columns(struct cg_lowering *l, const struct store *to, int64_t first,
                          int64_t width)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef row = LLVMBuildUDiv(b, to->lane, gpu_i32(l, width), "");
    LLVMValueRef column = LLVMBuildURem(b, to->lane, gpu_i32(l, width), "");
    column = gpu_wide(l, LLVMBuildAdd(b, column, gpu_i32(l, first), ""));
    row = gpu_wide(l, row);
    LLVMValueRef near = LLVMBuildMul(b, row, cg_int(l->module, to->steps + 1), "");
    near = cg_at(l, to->type, to->memory, LLVMBuildAdd(b, near, column, ""));
    LLVMValueRef far = LLVMBuildMul(b, row, cg_int(l->module, to->across), "");
    far = cg_at(l, to->type, to->outside, LLVMBuildAdd(b, far, column, ""));
    int64_t rows = GPU_WARP / width; // at once
    for (int64_t k = 0; k < GPU_WARP; k += rows * AT_ONCE) {
        LLVMValueRef v[AT_ONCE];
        for (int64_t j = 0; j < AT_ONCE; j++) {
            LLVMValueRef at = cg_int(l->module, (k + j * rows) * (to->steps + 1));
            v[j] = LLVMBuildLoad2(b, to->type, cg_at(l, to->type, near, at), "");
            LLVMSetAlignment(v[j], to->bytes);
        }
        for (int64_t j = 0; j < AT_ONCE; j++) {
            LLVMValueRef at = cg_int(l->module, (k + j * rows) * to->across);
            LLVMSetAlignment(LLVMBuildStore(b, v[j], cg_at(l, to->type, far, at)), to->bytes);
        }
    }
}

void gpu_rows_store(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef first,
                    int64_t steps)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef lane = LLVMBuildAnd(b, l->gpu->thread, gpu_i32(l, GPU_WARP - 1), "");
    LLVMValueRef back = LLVMBuildNeg(b, gpu_wide(l, lane), "");
    gpu_sync_warp(l);
    nest_for_each (s, l->nest, seq->body) {
        nest_id id = nest_id_of(l->nest, s);
        if (!l->marks[id].stack.memory)
            continue;
        LLVMTypeRef type = cg_memory_type(l->module, l->nest->buffers.at[s->buffer].dtype);
        int64_t across = nest_index_factor(&s->index, l->gpu->warp.points->axis);
        LLVMValueRef to = cg_stack_row(l, seq, s, type, first, cg_int(l->module, steps));
        to = cg_at(l, type, to, LLVMBuildMul(b, back, cg_int(l->module, across), ""));
        LLVMValueRef from = cg_at(l, type, l->marks[id].stack.memory,
                                  LLVMBuildMul(b, back, cg_int(l->module, steps + 1), ""));
        struct store all = {type, from, to, lane, across, steps, bytes_of(l, s)};
        store_columns(l, &all, 0, GPU_WARP);
        if (steps > GPU_WARP)
            store_columns(l, &all, GPU_WARP, steps - GPU_WARP);
    }
    gpu_sync_warp(l);
}
