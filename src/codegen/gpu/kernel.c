// SPDX-License-Identifier: Apache-2.0
// A nest as a kernel: who does its points, as its levels say (map/gpu.c).
//
// A kernel runs its chunks by `for (c = block number; c < chunks; c += blocks)`.
#include "codegen/gpu/kernel.h"
#include "codegen/gpu/attention.h"
#include "codegen/gpu/blocks.h"
#include "codegen/gpu/columns.h"
#include "codegen/gpu/common.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/groups.h"
#include "codegen/gpu/kept.h"
#include "codegen/gpu/memory.h"
#include "codegen/gpu/network.h"
#include "codegen/gpu/points.h"
#include "codegen/gpu/replay.h"
#include "codegen/gpu/scan.h"
#include "codegen/gpu/strips.h"
#include "codegen/gpu/tile.h"
#include "codegen/gpu/trips.h"
#include "codegen/gpu/updates.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/types.h"
#include "map/gpu_groups.h"
#include "map/gpu_lanes.h"

#include "base/status.h"
#include "ir/cost.h"

#define MOST_IN_STRIPS (COST_CODE / 4) // code of a kernel with strips of loops over time

// Of blocks that stay, a thread has some of many vectors at once.
static void by_threads(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    l->gpu->time.common = gpu_common_of(l, loop);
    struct map_points p = map_points_of(l->nest, loop);
    bool has_time = nest_has_time(l->nest, p.s->body);
    // What is read before the loop is read once by blocks that stay.
    step->exact_grid = has_time || !map_reads_before(l->nest);
    bool at_once = p.s->at_once;
    int64_t turns = at_once ? p.s->at_once : p.s->turns ? p.s->turns : 1;
    int64_t own =
        l->gpu->block - (l->gpu->time.common ? GPU_WARP : 0); // threads that have points
    int64_t size = turns * own, chunks = (p.count + size - 1) / size;
    struct cg_loop chunk =
        step->exact_grid ? gpu_own_chunk_open(l, chunks) : gpu_chunks_open(l, chunks);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, size), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside = {0};
    LLVMValueRef last = cg_int(l->module, p.count - 1);
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSLE, i, last, "");
    if (l->gpu->time.common) { // threads beyond the block of points have none
        LLVMValueRef has_one =
            LLVMBuildICmp(b, LLVMIntSLT, l->gpu->thread, gpu_i32(l, own), "");
        is_inside = LLVMBuildAnd(b, is_inside, has_one, "");
        gpu_common_guard(l->gpu->time.common, is_inside);
        i = LLVMBuildSelect(b, is_inside, i, last, "");
    } else if (p.count % size) {
        inside = cg_if_open(l, is_inside);
    }
    bool is_warp = p.lanes == 1 && p.count % GPU_WARP == 0 &&
                   l->nest->axes.at[p.axis].extent % GPU_WARP == 0;
    l->gpu->warp.points = is_warp ? &p : NULL;
    l->gpu->time.replay = has_time && p.lanes == 1 ? gpu_replay_of(l, loop) : NULL;
    if (at_once)
        gpu_points_turns(l, &p, i, turns, own);
    for (int64_t k = 0; k < turns && !at_once; k++)
        gpu_points_body(l, &p, LLVMBuildAdd(b, i, cg_int(l->module, k * own), ""));
    l->gpu->warp.points = NULL;
    l->gpu->time.replay = NULL;
    if (p.count % size && !l->gpu->time.common)
        cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = size;
}

static void by_tiles(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    struct gpu_tiles t = gpu_tiles_of(l, loop);
    l->gpu->group = l->gpu->block; // they wait for one another
    l->gpu->is_alone = true;
    step->total = t.side ? t.count / 2 + t.side / 2 : t.count;
    struct cg_loop chunk = gpu_own_chunk_open(l, step->total);
    gpu_tiles_lower(l, &t, chunk.index);
    cg_loop_close(l, &chunk);
    step->grain = 1;
    step->exact_grid = true;
}

// One block of threads, the first.
static void by_one(struct cg_lowering *l, struct cg_kernel *out)
{
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 0);
    gpu_lower_list(l, 0, l->nest->blocks.at[0].statements.count);
    step->total = step->grain = 1;
    gpu_function_close(l, step);
}

// Rows that threads keep are read once, and so much is written that the second cache does not hold it.
static bool are_streams(const struct cg_lowering *l)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++) {
        const struct nest_buffer *info = &l->nest->buffers.at[i];
        if (info->role == NEST_OUT)
            written += (uint64_t)info->count * jot_dtype_size(info->dtype);
    }
    return gpu_keeps(l) && written > GPU_SECOND_CACHE;
}

// The points of statement `at`, by threads, groups or tiles.
static void by_points(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    nest_id loop = l->nest->blocks.at[0].statements.at[at];
    const struct nest_statement *s = cg_statement(l, loop);
    bool is_group = s->level == NEST_GROUP, is_tiled = l->nest->axes.at[s->axes[0]].tile;
    for (uint32_t k = 1; k < s->n_axes; k++)
        is_tiled |= l->nest->axes.at[s->axes[k]].tile != 0;
    struct cg_kernel_step *step =
        gpu_function_open(l, out, are_streams(l) ? GPU_STREAMS : "", 0);
    gpu_lower_list(l, 0, at);
    if (l->nest->special == NEST_TRIPS)
        gpu_trips_lower(l, loop, step, &out->trips);
    else if (is_group && l->gpu->columns)
        gpu_columns_lower(l, loop, step);
    else if (is_group)
        gpu_groups_run(l, loop, step);
    else if (is_tiled)
        by_tiles(l, loop, step);
    else
        by_threads(l, loop, step);
    gpu_function_close(l, step);
}

// Points that all blocks have together, or such a loop without points: of updates, a running fold or a fold.
static void by_grid(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    const struct nest_statement *s = cg_statement(l, l->nest->blocks.at[0].statements.at[at]);
    const struct nest_block *b = s->level == NEST_GRID ? &l->nest->blocks.at[s->body] : NULL;
    for (uint32_t i = 0; b && i < b->statements.count; i++)
        if (map_is_loop(cg_statement(l, b->statements.at[i])->kind))
            s = cg_statement(l, b->statements.at[i]);
    if (s->level == NEST_OWNER)
        gpu_updates_lower(l, at, out);
    else if (s->kind == NEST_SCAN)
        gpu_scan_lower(l, out);
    else if (l->gpu->columns)
        gpu_parts_lower(l, l->nest->blocks.at[0].statements.at[at], out);
    else
        gpu_blocks_lower(l, at, out);
}

// The number of the kernel's last loop in its body.
static uint32_t last_loop(const struct cg_lowering *l)
{
    const struct nest_block *b = &l->nest->blocks.at[0];
    uint32_t at = 0;
    for (uint32_t i = 0; i < b->statements.count; i++)
        at = map_is_loop(cg_statement(l, b->statements.at[i])->kind) ? i : at;
    return at;
}

// Whether one thread, or a group of them, does a point of its.
static bool is_of_points(const struct cg_lowering *l, uint32_t at)
{
    const struct nest_statement *s = cg_statement(l, l->nest->blocks.at[0].statements.at[at]);
    return (s->kind == NEST_PAR || s->kind == NEST_MAP) &&
           (s->level == NEST_THREAD || s->level == NEST_GROUP);
}

// What stands before the loop again, by one thread when all others are done, for what it puts in
// memory that they read.
static void lower_late_puts(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    struct cg_gpu *g = l->gpu;
    *g = (struct cg_gpu){.nest = g->nest, .block = 1, .group = 1};
    gpu_share_out(l);
    unsigned extra = (out->partial_bytes > 0) + (out->counters > 0);
    struct cg_kernel_step *step = gpu_function_open(l, out, "_late", extra);
    for (uint32_t i = 0; i < at; i++)
        if (!map_is_loop(cg_statement(l, body->statements.at[i])->kind))
            cg_lower_statement(l, body->statements.at[i]);
    gpu_function_close(l, step);
}

static void lower_by_levels(struct cg_lowering *l, struct cg_kernel *out)
{
    uint32_t at = last_loop(l);
    switch (l->nest->special) {
    case NEST_ATTENTION:
        gpu_attention_lower(l, at, out);
        break;
    case NEST_ATTENTION_GRADIENT:
        gpu_attention_gradient_lower(l, at, out);
        break;
    case NEST_NETWORK:
        gpu_network_lower(l, at, out);
        break;
    default:
        if (l->nest->threads[NEST_BLOCKS] == 1)
            by_one(l, out);
        else if (l->nest->special == NEST_TRIPS || is_of_points(l, at))
            by_points(l, at, out);
        else
            by_grid(l, at, out);
        break;
    }
    if (l->gpu->before.has_late_puts)
        lower_late_puts(l, at, out);
}

// Takes the threads from the text, and which rows they keep.
static void read_threads(struct cg_lowering *l)
{
    const struct nest *n = l->nest;
    struct cg_gpu *g = l->gpu;
    unsigned group = n->threads[NEST_GROUP_THREADS];
    g->block = n->threads[NEST_BLOCK_THREADS];
    g->group = group ? group : 1;
    g->columns = n->threads[NEST_COLUMNS];
    g->function.resident = n->threads[NEST_RESIDENT];
    g->kept.rows = arena_array(l->arena, struct gpu_kept, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        g->kept.rows[i].is_kept = n->buffers.at[i].space == NEST_REGISTER;
}

jot_status gpu_kernel_lower(const struct gpu_kernel *k, struct cg_kernel *out)
{
    struct nest *n = k->nest;
    struct cg_gpu g = {
        .nest = {.operands = k->operands,
                 .kernel = k->number,
                 .is_phase = k->is_phase,
                 .is_read_only = arena_array(k->arena, bool, n->buffers.count + 1),
                 .is_aligned = arena_array(k->arena, bool, n->buffers.count + 1)}};
    struct cg_lowering l = cg_lowering_make(k->module, k->arena, n);
    int64_t code = nest_code(n, 0, CG_FOLD_LANES, GPU_STRIP, l.written_out);
    l.gpu = &g;
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        g.nest.is_read_only[i] = gpu_is_read_only(&l, i);
        g.nest.is_aligned[i] = gpu_align_of(&l, i) == MAP_ALIGNMENT;
    }
    *out = (struct cg_kernel){0};
    l.m.is_long = k->is_phase || code > COST_KERNEL_OPS;
    g.nest.has_strips = code <= MOST_IN_STRIPS;
    read_threads(&l);
    gpu_share_out(&l);
    lower_by_levels(&l, out);
    LLVMDisposeBuilder(l.m.b);
    if (l.failure)
        return status_fail(JOT_ERR_INTERNAL, "%s: %s", n->name, l.failure);
    return JOT_OK;
}
