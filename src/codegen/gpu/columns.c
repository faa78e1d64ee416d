// SPDX-License-Identifier: Apache-2.0
// Long folds of neighbouring points: threads beside one another have points beside one another, and
// several threads share the fold of a point.
//
//     columns    par i { folds ... }           a block of threads has some points whole
//     parts      par i { fold n { } ... }      few points: blocks of threads have parts of the fold, a
//                                              second function does maps that do without the fold, and a
//                                              third brings the parts together and does the rest, which
//                                              may be put over what a point, and so a map of it, reads
//
// A thread has as many units of the fold in a row as make one of the tree: blocks of it or, of parts,
// eighths of blocks, which are eight accumulators each, or less where that keeps few threads busy.  What they give goes through shared memory,
// and every thread brings its column together.
#include "codegen/gpu/columns.h"
#include "codegen/accumulate.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/fold_alone.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/points.h"
#include "codegen/gpu/tree.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/types.h"
#include "map/gpu_lanes.h"
#include "map/gpu_scratch.h"
#include "map/gpu_shared.h"

#include <string.h>

#define END_BLOCK 512
#define MAP_BLOCK 256

// What the first `rows` threads of the column have, at most so many, as one; by all of them.
static void bring_together(struct cg_lowering *l, const struct gpu_alone *p, LLVMValueRef rows,
                           int64_t most, struct cg_element *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    uint32_t n = p->s->n_combines;
    struct cg_results *shared = arena_array(l->arena, struct cg_results, n + 1);
    LLVMValueRef stride = cg_int(l->module, g->columns), column = gpu_wide(l, g->number);
    for (uint32_t i = 0; i < n; i++) {
        shared[i] = gpu_shared_results(l, &p->all[i], (uint64_t)g->group * g->columns);
        LLVMValueRef row = LLVMBuildMul(b, gpu_wide(l, g->in_group), stride, "");
        gpu_row_store(l, &p->all[i], &shared[i], LLVMBuildAdd(b, row, column, ""), &out[i]);
    }
    gpu_sync(l);
    struct gpu_tree tree = gpu_tree_make(l, n, p->all, most);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), rows, cg_int(l->module, 1));
    LLVMValueRef row = LLVMBuildMul(b, loop.index, stride, "");
    for (uint32_t i = 0; i < n; i++)
        out[i] = gpu_row_load(l, &p->all[i], &shared[i], LLVMBuildAdd(b, row, column, ""));
    gpu_tree_push(l, &tree, loop.index, out);
    cg_loop_close(l, &loop);
    if (LLVMIsConstant(rows))
        gpu_tree_top(l, &tree, most, out);
    else
        gpu_tree_any(l, &tree, rows, out);
}

// The least of x - y and most.
static LLVMValueRef left_of(struct cg_lowering *l, int64_t x, LLVMValueRef y, int64_t most)
{
    LLVMValueRef rest = LLVMBuildSub(l->m.b, cg_int(l->module, x), y, "");
    LLVMValueRef limit = cg_int(l->module, most);
    LLVMValueRef is_less = LLVMBuildICmp(l->m.b, LLVMIntSLT, rest, limit, "");
    return LLVMBuildSelect(l->m.b, is_less, rest, limit, "");
}

void gpu_fold_columns(struct cg_lowering *l, nest_id id)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, id);
    g->is_alone = true;
    if (s->level != NEST_THREAD) {
        gpu_fold_alone(l, id);
        g->is_alone = false;
        return;
    }
    struct gpu_alone p = gpu_alone_make(l, id, 1);
    struct cg_element *out = arena_array(l->arena, struct cg_element, s->n_combines + 1);
    int64_t span = 1;
    while (span * g->group < p.blocks)
        span *= 2;
    LLVMValueRef first = LLVMBuildMul(b, gpu_wide(l, g->in_group), cg_int(l->module, span), "");
    LLVMValueRef count = p.blocks % (span * g->group) ? left_of(l, p.blocks, first, span)
                                                      : cg_int(l->module, span);
    gpu_alone_units(l, &p, first, count, span, out);
    int64_t rows = (p.blocks + span - 1) / span;
    if (gpu_is_repeated(l))
        gpu_sync(l); // the rows are read from the trip before
    bring_together(l, &p, cg_int(l->module, rows), rows, out);
    g->is_alone = false;
    gpu_alone_define(l, &p, out);
}

// ---- Parts

struct parts {
    struct map_points points;
    nest_id fold;
    uint32_t at; // the fold, in the body of the loop
    struct map_parts of;
    int64_t groups;             // of columns
    bool *depends;              // by value: on the fold
    struct cg_results *results; // by combine: [part][vector of points]
    LLVMValueRef is_there;      // an i1: the thread has a vector of its own
};

static void set_columns(struct cg_lowering *l, struct parts *t, unsigned block, unsigned most)
{
    struct cg_gpu *g = l->gpu;
    for (g->columns = 1; g->columns < most && g->columns < t->points.count;)
        g->columns *= 2;
    t->groups = (t->points.count + g->columns - 1) / g->columns;
    g->block = block;
    g->group = block / g->columns;
}

static struct parts parts_of(const struct cg_lowering *l, nest_id loop)
{
    struct parts t = {.points = map_points_of(l->nest, loop)};
    const struct nest_block *b = &l->nest->blocks.at[t.points.s->body];
    t.depends = arena_array(l->arena, bool, l->nest->values.count + 1);
    t.fold = map_only_fold(l->nest, t.points.s, t.depends);
    while (b->statements.at[t.at] != t.fold)
        t.at++;
    return t;
}

static void lay_out_parts(struct cg_lowering *l, struct parts *t, const struct gpu_alone *p)
{
    gpu_lay_out_results(l, p->s->n_combines, p->all, t->of.parts * t->points.count,
                        gpu_scratch(l), &t->results);
}

// Opens the loop over blocks: the part, and the thread's vector of points; those behind the last
// have the last one's, do nothing of its fold, and put nothing.
static struct cg_loop open_chunks(struct cg_lowering *l, struct parts *t, int64_t parts,
                                  LLVMValueRef *part, LLVMValueRef *vector)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_loop chunk = gpu_chunks_open(l, parts * t->groups);
    LLVMValueRef groups = cg_int(l->module, t->groups);
    *part = LLVMBuildUDiv(b, chunk.index, groups, "");
    LLVMValueRef at = LLVMBuildURem(b, chunk.index, groups, "");
    at = LLVMBuildMul(b, at, cg_int(l->module, l->gpu->columns), "");
    at = LLVMBuildAdd(b, at, gpu_wide(l, l->gpu->number), "");
    LLVMValueRef last = cg_int(l->module, t->points.count - 1);
    t->is_there = LLVMBuildICmp(b, LLVMIntSLE, at, last, "");
    *vector = LLVMBuildSelect(b, t->is_there, at, last, "");
    gpu_points_set(l, &t->points, *vector);
    return chunk;
}

// Without maps; puts are of the end, by the first threads of the columns that are there.
static void lower_statements(struct cg_lowering *l, const struct parts *t, uint32_t from,
                             uint32_t to, bool is_end)
{
    const struct nest_block *b = &l->nest->blocks.at[t->points.s->body];
    LLVMValueRef in_group = l->gpu->in_group;
    if (is_end)
        l->gpu->in_group = LLVMBuildSelect(l->m.b, t->is_there, in_group, gpu_i32(l, 1), "");
    for (uint32_t i = from; i < to && i < b->statements.count; i++) {
        enum nest_kind kind = cg_statement(l, b->statements.at[i])->kind;
        if (kind != NEST_MAP && (is_end || kind != NEST_PUT))
            cg_lower_statement(l, b->statements.at[i]);
    }
    l->gpu->in_group = in_group;
}

// So many, of columns that are not there none.
static LLVMValueRef if_there(struct cg_lowering *l, const struct parts *t, LLVMValueRef count)
{
    return LLVMBuildSelect(l->m.b, t->is_there, count, cg_int(l->module, 0), "");
}

static LLVMValueRef part_row(struct cg_lowering *l, const struct parts *t, LLVMValueRef part,
                             LLVMValueRef vector)
{
    LLVMValueRef row = LLVMBuildMul(l->m.b, part, cg_int(l->module, t->points.count), "");
    return LLVMBuildAdd(l->m.b, row, vector, "");
}

// The vector of points is the lanes of what is lowered.
static void set_lanes(struct cg_lowering *l, const struct parts *t, bool are_lanes)
{
    are_lanes = are_lanes && t->points.lanes > 1;
    l->vector.lanes = are_lanes ? t->points.lanes : 1;
    l->vector.axis = are_lanes ? t->points.axis : NEST_NONE;
    l->vector.loop = nest_id_of(l->nest, t->points.s);
}

static void lower_parts(struct cg_lowering *l, struct parts *t, struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    t->groups = (t->points.count + g->columns - 1) / g->columns;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_parts" GPU_STREAMS, 0);
    gpu_lower_list(l, 0, l->nest->blocks.at[0].statements.count - 1);
    set_lanes(l, t, true);
    t->of = map_parts_of(l->nest, cg_statement(l, t->fold), t->groups, g->group);
    struct gpu_alone p = gpu_alone_make(l, t->fold, t->of.units);
    int64_t units = p.blocks * p.units, span = t->of.span;
    lay_out_parts(l, t, &p);
    LLVMValueRef part, vector;
    g->is_alone = true;
    struct cg_loop chunk = open_chunks(l, t, t->of.parts, &part, &vector);
    lower_statements(l, t, 0, t->at, false);
    LLVMValueRef first = LLVMBuildMul(b, part, cg_int(l->module, g->group), "");
    first = LLVMBuildAdd(b, first, gpu_wide(l, g->in_group), "");
    first = LLVMBuildMul(b, first, cg_int(l->module, span), "");
    LLVMValueRef count = left_of(l, units, first, span);
    struct cg_element *all = arena_array(l->arena, struct cg_element, p.s->n_combines + 1);
    gpu_alone_units(l, &p, first, if_there(l, t, count), span, all);
    int64_t rows = (units + span - 1) / span;
    LLVMValueRef before = LLVMBuildMul(b, part, cg_int(l->module, g->group), "");
    bring_together(l, &p, left_of(l, rows, before, g->group), g->group, all);
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, g->in_group, gpu_i32(l, 0), "");
    struct cg_branch lead = cg_if_open(l, LLVMBuildAnd(b, leads, t->is_there, ""));
    for (uint32_t i = 0; i < p.s->n_combines; i++)
        gpu_row_store(l, &p.all[i], &t->results[i], part_row(l, t, part, vector), &all[i]);
    cg_if_close(l, &lead);
    set_lanes(l, t, false);
    gpu_sync(l);
    cg_loop_close(l, &chunk);
    g->is_alone = false;
    step->total = t->of.parts * t->groups;
    step->exact_grid = true;
    gpu_function_close(l, step);
}

// Threads for the parts of as many columns as a warp has threads.
static unsigned end_block(const struct parts *t)
{
    unsigned block = GPU_WARP;
    while (block < END_BLOCK && block < t->of.parts * GPU_WARP)
        block *= 2;
    return block;
}

static void lower_end(struct cg_lowering *l, struct parts *t, struct cg_kernel *out)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    set_columns(l, t, end_block(t), GPU_WARP);
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 0);
    gpu_lower_list(l, 0, l->nest->blocks.at[0].statements.count - 1);
    set_lanes(l, t, true);
    struct gpu_alone p = gpu_alone_make(l, t->fold, t->of.units);
    lay_out_parts(l, t, &p);
    int64_t span = 1;
    while (span * g->group < t->of.parts)
        span *= 2;
    int64_t rows = (t->of.parts + span - 1) / span;
    LLVMValueRef none, vector;
    struct cg_loop chunk = open_chunks(l, t, 1, &none, &vector);
    lower_statements(l, t, 0, t->at, true);
    g->is_alone = true;
    LLVMValueRef first = LLVMBuildMul(b, gpu_wide(l, g->in_group), cg_int(l->module, span), "");
    LLVMValueRef count = left_of(l, t->of.parts, first, span);
    struct cg_element *all = arena_array(l->arena, struct cg_element, p.s->n_combines + 1);
    struct gpu_tree tree = gpu_tree_make(l, p.s->n_combines, p.all, span);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    LLVMValueRef part = LLVMBuildAdd(b, first, loop.index, "");
    for (uint32_t i = 0; i < p.s->n_combines; i++)
        all[i] = gpu_row_load(l, &p.all[i], &t->results[i], part_row(l, t, part, vector));
    gpu_tree_push(l, &tree, loop.index, all);
    cg_loop_close(l, &loop);
    gpu_tree_any(l, &tree, count, all);
    bring_together(l, &p, cg_int(l->module, rows), rows, all);
    gpu_alone_define(l, &p, all);
    g->is_alone = false;
    lower_statements(l, t, t->at + 1, UINT32_MAX, true);
    set_lanes(l, t, false);
    gpu_sync(l);
    cg_loop_close(l, &chunk);
    step->total = t->groups;
    step->exact_grid = true;
    gpu_function_close(l, step);
}

// The points of the loop and of the map in it, a thread for each, those of the loop beside one
// another.
static void lower_map(struct cg_lowering *l, const struct parts *t,
                      const struct nest_statement *map, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_statement *loop = t->points.s;
    struct nest_statement both = *map;
    nest_id *axes = arena_array(l->arena, nest_id, map->n_axes + loop->n_axes);
    memcpy(axes, map->axes, map->n_axes * sizeof *axes);
    memcpy(axes + map->n_axes, loop->axes, loop->n_axes * sizeof *axes);
    both.axes = axes;
    both.n_axes = map->n_axes + loop->n_axes;
    struct map_points p = {.s = &both,
                           .axis = axes[both.n_axes - 1],
                           .lanes = 1,
                           .rows = 1,
                           .count = cg_extent(l, &both)};
    struct cg_loop chunk = gpu_own_chunk_open(l, (p.count + MAP_BLOCK - 1) / MAP_BLOCK);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, MAP_BLOCK), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, i, cg_int(l->module, p.count), ""));
    gpu_points_set(l, &p, i);
    nest_for_each (s, l->nest, loop->body)
        if (s->kind < NEST_PUT && !t->depends[s->result])
            cg_lower_statement(l, nest_id_of(l->nest, s));
    cg_lower_block(l, map->body);
    cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = p.count > step->total ? p.count : step->total;
    step->grain = MAP_BLOCK;
    step->exact_grid = true;
}

static void lower_maps(struct cg_lowering *l, const struct parts *t, struct cg_kernel *out)
{
    struct cg_kernel_step *step = NULL;
    l->gpu->columns = 0;
    l->gpu->block = MAP_BLOCK;
    l->gpu->group = 1;
    nest_for_each (s, l->nest, t->points.s->body) {
        if (s->kind != NEST_MAP)
            continue;
        if (!step) {
            step = gpu_function_open(l, out, "_maps", 0);
            gpu_lower_list(l, 0, l->nest->blocks.at[0].statements.count - 1);
        }
        lower_map(l, t, s, step);
    }
    if (step)
        gpu_function_close(l, step);
}

void gpu_parts_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel *out)
{
    struct parts t = parts_of(l, loop);
    lower_parts(l, &t, out);
    lower_maps(l, &t, out);
    lower_end(l, &t, out);
    l->gpu->columns = 0;
}
