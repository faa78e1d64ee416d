// SPDX-License-Identifier: Apache-2.0
// Several trips of a loop over time in one launch, where a trip makes of an array its like from
// neighbours: trips of a stencil.
//
//     loop 1000 {                                         loop 200 {
//       par i < 1024, j < 1024 {                            a warp: tiles of 8 by 112 points, of which it
//         load carry[1024*i + j], carry[.. - 1], ...   =>     reads 5 more on each side, makes 5 trips in
//         put next[1024*i + j]                                registers, and stores what has been right
//       }                                                     to the end
//     }                                                     }
//
// A thread has neighbouring columns of all rows of its tile; those of the threads beside it come through
// shuffles.  Points near a side are computed by several warps, in the same way, so that the bits are
// those of one trip after the other, and no warp waits for another.
#include "codegen/gpu/trips.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/contiguous.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_trips.h"

#define LANES MAP_TRIPS_LANES
#define ROWS 8 // of a tile
#define HALO MAP_TRIPS_HALO
#define WIDTH (GPU_WARP * LANES - 2 * HALO)

// The columns of a row that are so far from the thread's own.
static LLVMValueRef beside(struct cg_lowering *l, LLVMValueRef row, int by)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef all = row;
    for (int i = 0; by && i < LANES; i++) {
        int at = i + by;
        struct cg_element x = {{cg_extract(&l->m, row, (unsigned)(at + LANES) % LANES, 1)}};
        if (at < 0)
            x = gpu_shuffle_up(l, &x, 1);
        else if (at >= LANES)
            x = gpu_shuffle_down(l, &x, 1);
        all = LLVMBuildInsertElement(b, all, x.v[0], gpu_i32(l, i), "");
    }
    return all;
}

// Row r after one more trip, of the rows as they are.
static LLVMValueRef advance(struct cg_lowering *l, const struct map_trips *t,
                            const LLVMValueRef *rows, int64_t r)
{
    const struct nest_block *b = &l->nest->blocks.at[t->loop->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (!t->is_needed[id])
            continue;
        const struct map_neighbour *n = &t->at[s->result];
        if (!n->is) {
            cg_lower_statement(l, id);
            continue;
        }
        LLVMValueRef v = beside(l, rows[r + n->row], n->column);
        if (s->kind == NEST_LOAD && s->guard != NEST_NONE) {
            LLVMValueRef is = cg_splat(&l->m, l->values[s->guard].re, LANES);
            v = LLVMBuildSelect(l->m.b, is, v, LLVMConstNull(LLVMTypeOf(v)), "");
        }
        l->values[s->result] = (struct cg_value){v, NULL};
    }
    return cg_wide_value(l, l->values[t->put->in[0]]).re;
}

static LLVMValueRef modulo(struct cg_lowering *l, LLVMValueRef x, int64_t extent)
{
    return LLVMBuildURem(l->m.b, x, gpu_i32(l, extent), "");
}

// The memory of the thread's columns of a row.
static LLVMValueRef columns_of_row(struct cg_lowering *l, const struct map_trips *t,
                                   nest_id buffer, LLVMValueRef row)
{
    LLVMValueRef at = LLVMBuildMul(l->m.b, row, cg_int(l->module, t->width), "");
    at = LLVMBuildAdd(l->m.b, at, l->axes[t->column], "");
    return cg_at(l, l->module->f32, cg_buffer_base(l, buffer), at);
}

// The tile of the warp, whose first row and column are given.
static void lower_tile(struct cg_lowering *l, const struct map_trips *t, LLVMValueRef row,
                       LLVMValueRef column)
{
    LLVMBuilderRef b = l->m.b;
    enum { BYTES = LANES * sizeof(float), MOST = ROWS + 2 * HALO };
    LLVMTypeRef type = LLVMVectorType(l->module->f32, LANES);
    LLVMValueRef at[MOST], rows[MOST], next[MOST];
    int64_t trips = l->nest->threads[NEST_TRIPS_OF_LAUNCH], halo = trips * t->reach,
            n = ROWS + 2 * halo;
    LLVMValueRef lane = modulo(l, l->gpu->thread, GPU_WARP);
    LLVMValueRef own = LLVMBuildMul(b, lane, gpu_i32(l, LANES), "");
    LLVMValueRef to = LLVMBuildAdd(b, column, own, ""); // HALO behind the column itself
    l->axes[t->column] =
        gpu_wide(l, modulo(l, LLVMBuildAdd(b, to, gpu_i32(l, t->width - HALO), ""), t->width));
    for (int64_t r = 0; r < n; r++) {
        at[r] = LLVMBuildAdd(b, row, gpu_i32(l, r + t->height - halo), "");
        at[r] = gpu_wide(l, modulo(l, at[r], t->height));
        rows[r] = cg_load_row(l, type, columns_of_row(l, t, 0, at[r]), BYTES, NULL);
    }
    for (int64_t k = 1; k <= trips; k++) {
        for (int64_t r = k * t->reach; r < n - k * t->reach; r++) {
            l->axes[t->row] = at[r];
            next[r] = advance(l, t, rows, r);
        }
        for (int64_t r = k * t->reach; r < n - k * t->reach; r++)
            rows[r] = next[r];
    }
    LLVMValueRef low = LLVMBuildICmp(b, LLVMIntUGE, own, gpu_i32(l, HALO), "");
    LLVMValueRef high = LLVMBuildICmp(b, LLVMIntULT, own, gpu_i32(l, HALO + WIDTH), "");
    LLVMValueRef end = LLVMBuildICmp(b, LLVMIntULT, to, gpu_i32(l, t->width + HALO), "");
    struct cg_branch is_own =
        cg_if_open(l, LLVMBuildAnd(b, LLVMBuildAnd(b, low, high, ""), end, ""));
    for (int64_t r = halo; r < n - halo; r++) {
        LLVMValueRef last = gpu_i32(l, t->height - (r - halo));
        struct cg_branch is_there = {0};
        if (t->height % ROWS)
            is_there = cg_if_open(l, LLVMBuildICmp(b, LLVMIntULT, row, last, ""));
        cg_store_row(l, rows[r], columns_of_row(l, t, 1, at[r]), BYTES, NULL, false);
        if (t->height % ROWS)
            cg_if_close(l, &is_there);
    }
    cg_if_close(l, &is_own);
}

void gpu_trips_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step,
                     int64_t *out_trips)
{
    LLVMBuilderRef b = l->m.b;
    struct map_gpu m = gpu_map_of(l);
    struct map_trips t;
    map_trips_find(&m, loop, &t);
    int64_t across = (t.width + WIDTH - 1) / WIDTH, down = (t.height + ROWS - 1) / ROWS;
    int64_t warps = l->gpu->block / GPU_WARP;
    step->total = (across * down + warps - 1) / warps;
    step->grain = 1;
    step->exact_grid = true;
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef tile = LLVMBuildMul(b, gpu_block_number(l), gpu_i32(l, warps), "");
    tile = LLVMBuildAdd(b, tile, warp, "");
    struct cg_branch is_there = {0};
    if (across * down % warps)
        is_there =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntULT, tile, gpu_i32(l, across * down), ""));
    LLVMValueRef row = LLVMBuildUDiv(b, tile, gpu_i32(l, across), "");
    LLVMValueRef column = modulo(l, tile, across);
    l->vector.axis = t.column;
    l->vector.loop = loop;
    l->vector.lanes = LANES;
    lower_tile(l, &t, LLVMBuildMul(b, row, gpu_i32(l, ROWS), ""),
               LLVMBuildMul(b, column, gpu_i32(l, WIDTH), ""));
    l->vector.lanes = 1;
    l->vector.axis = NEST_NONE;
    if (across * down % warps)
        cg_if_close(l, &is_there);
    *out_trips = l->nest->threads[NEST_TRIPS_OF_LAUNCH];
}
