// SPDX-License-Identifier: Apache-2.0
// Transposed reads: a block of threads goes over tiles of 32 by 32 points, or of 64 by 64 where there
// are many. What is contiguous across them is read so, and turned in shared memory, whose rows are
// one element longer than the tile so that a column lies in as many banks.
#include "codegen/gpu/gpu.h"

#define SIDE 32
#define WIDE 64
#define TURNS 4                                // in which the threads do the rows of a tile
#define MANY_TILES (GPU_MULTIPROCESSORS * 128) // wide ones

static bool is_turned(const struct cg_lowering *l, const struct nest_statement *s,
                      nest_id along, nest_id across)
{
    if (!cg_is_plain_load(l, s))
        return false;
    int64_t factor = nest_index_factor(&s->index, along), other;
    other = nest_index_factor(&s->index, across);
    return (other == 1 || other == -1) && (factor >= SIDE || factor <= -SIDE);
}

bool gpu_tiles_find(const struct cg_lowering *l, nest_id loop, struct gpu_tiles *out)
{
    const struct nest_statement *s = cg_statement(l, loop);
    const struct nest_block *b = &l->nest->blocks.at[s->body];
    *out = (struct gpu_tiles){
        .s = s, .along = s->axes[s->n_axes - 1], .across = NEST_NONE, .count = 1};
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *t = cg_statement(l, b->statements.at[i]);
        if (t->kind > NEST_PUT)
            return false;
        for (uint32_t k = 0; k + 1 < s->n_axes && out->across == NEST_NONE; k++)
            if (is_turned(l, t, out->along, s->axes[k]))
                out->across = s->axes[k];
    }
    if (out->across == NEST_NONE)
        return false;
    int64_t along = l->nest->axes.at[out->along].extent;
    int64_t across = l->nest->axes.at[out->across].extent;
    if (along < SIDE || across < SIDE)
        return false;
    bool are_many = cg_extent(l, s) / (WIDE * WIDE) >= MANY_TILES && !l->gpu->is_phase;
    out->width = are_many && along % WIDE == 0 && across % WIDE == 0 ? WIDE : SIDE;
    out->is_exact = along % out->width == 0 && across % out->width == 0;
    for (uint32_t k = 0; k < s->n_axes; k++) {
        int64_t extent = l->nest->axes.at[s->axes[k]].extent;
        bool is_side = s->axes[k] == out->along || s->axes[k] == out->across;
        out->count *= is_side ? (extent + out->width - 1) / out->width : extent;
    }
    int64_t side = (along + out->width - 1) / out->width;
    if (s->n_axes == 2 && side % 2 == 0 && out->count == side * side)
        out->side = side;
    return true;
}

unsigned gpu_tile_threads(const struct gpu_tiles *t) { return t->width * t->width / TURNS; }

static int64_t rows_at_once(const struct gpu_tiles *t) { return t->width / TURNS; }

static LLVMValueRef axis_value(struct cg_lowering *l, LLVMValueRef first, LLVMValueRef more)
{
    return LLVMBuildAdd(l->m.b, first, gpu_wide(l, more), "");
}

// if both axes are inside.  Of exact tiles all is: without a branch the reads of a thread are on
// their way at once.
static struct cg_branch inside_open(struct cg_lowering *l, const struct gpu_tiles *t)
{
    LLVMBuilderRef b = l->m.b;
    if (t->is_exact)
        return (struct cg_branch){0};
    LLVMValueRef inside[2];
    nest_id axes[] = {t->along, t->across};
    for (int i = 0; i < 2; i++)
        inside[i] = LLVMBuildICmp(b, LLVMIntSLT, l->axes[axes[i]],
                                  cg_int(l->module, l->nest->axes.at[axes[i]].extent), "");
    return cg_if_open(l, LLVMBuildAnd(b, inside[0], inside[1], ""));
}

static void inside_close(struct cg_lowering *l, const struct gpu_tiles *t,
                         struct cg_branch *inside)
{
    if (!t->is_exact)
        cg_if_close(l, inside);
}

static LLVMValueRef place_in_tile(struct cg_lowering *l, const struct nest_statement *s,
                                  LLVMValueRef row, LLVMValueRef column)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef at = LLVMBuildMul(b, row, gpu_i32(l, l->gpu->tile + 1), "");
    at = LLVMBuildAdd(b, at, column, "");
    nest_id id = (nest_id)(s - l->nest->statements.at);
    LLVMTypeRef lane = cg_memory_type(l->module, s->dtype);
    return cg_at(l, lane, l->staged[id], gpu_wide(l, at));
}

struct cg_value gpu_load_turned(struct cg_lowering *l, const struct nest_statement *s)
{
    struct cg_gpu *g = l->gpu;
    LLVMValueRef at = place_in_tile(l, s, g->column, g->line);
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_memory_type(l->module, s->dtype), at, "");
    return (struct cg_value){cg_from_memory(l, v, s->dtype), NULL};
}

// What is contiguous across the tile in one of its rows: stored in shared memory.
static void stage_row(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef row)
{
    const struct nest_block *body = &l->nest->blocks.at[t->s->body];
    for (uint32_t i = 0; i < body->statements.count; i++) {
        nest_id id = body->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (!is_turned(l, s, t->along, t->across))
            continue;
        LLVMValueRef memory = l->staged[id];
        l->staged[id] = NULL;
        LLVMValueRef v = cg_to_memory(l, cg_load(l, s).re, s->dtype);
        l->staged[id] = memory;
        LLVMBuildStore(l->m.b, v, place_in_tile(l, s, row, l->gpu->column));
    }
}

// What is not turned is on its way while the turned is staged.
static bool is_early(const struct cg_lowering *l, const struct gpu_tiles *t,
                     const struct nest_statement *s)
{
    return t->is_exact && cg_is_plain_load(l, s) && gpu_is_read_only(l, s->buffer) &&
           !is_turned(l, s, t->along, t->across);
}

static void set_row(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef along,
                    LLVMValueRef across, LLVMValueRef first, int k)
{
    l->gpu->line = LLVMBuildAdd(l->m.b, first, gpu_i32(l, k * rows_at_once(t)), "");
    l->axes[t->along] = axis_value(l, along, l->gpu->column);
    l->axes[t->across] = axis_value(l, across, l->gpu->line);
}

static void lower_row(struct cg_lowering *l, const struct gpu_tiles *t,
                      const struct cg_value *early)
{
    const struct nest_block *body = &l->nest->blocks.at[t->s->body];
    for (uint32_t i = 0; i < body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (is_early(l, t, s))
            l->values[s->result] = early[i];
        else
            cg_lower_statement(l, body->statements.at[i]);
    }
}

// Rows line, line + rows_at_once, ... of the tile.
static void stage(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef along,
                  LLVMValueRef across)
{
    for (int k = 0; k < TURNS; k++) {
        LLVMValueRef row =
            LLVMBuildAdd(l->m.b, l->gpu->line, gpu_i32(l, k * rows_at_once(t)), "");
        l->axes[t->along] = axis_value(l, along, row);
        l->axes[t->across] = axis_value(l, across, l->gpu->column);
        struct cg_branch inside = inside_open(l, t);
        stage_row(l, t, row);
        inside_close(l, t, &inside);
    }
}

void gpu_tiles_lower(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef tile)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = t->s;
    const struct nest_block *body = &l->nest->blocks.at[s->body];
    unsigned width = g->tile = t->width;
    for (uint32_t i = 0; i < body->statements.count; i++) {
        nest_id id = body->statements.at[i];
        const struct nest_statement *load = cg_statement(l, id);
        if (is_turned(l, load, t->along, t->across))
            l->staged[id] =
                gpu_shared(l, (uint64_t)width * (width + 1) * jot_dtype_size(load->dtype));
    }
    LLVMValueRef along = NULL, across = NULL;
    for (uint32_t k = s->n_axes; k-- > 0;) {
        nest_id axis = s->axes[k];
        bool is_side = axis == t->along || axis == t->across;
        int64_t extent = l->nest->axes.at[axis].extent;
        LLVMValueRef n = cg_int(l->module, is_side ? (extent + width - 1) / width : extent);
        LLVMValueRef at = k ? LLVMBuildURem(b, tile, n, "") : tile;
        tile = k ? LLVMBuildUDiv(b, tile, n, "") : tile;
        if (is_side)
            at = LLVMBuildMul(b, at, cg_int(l->module, width), "");
        along = axis == t->along ? at : along;
        across = axis == t->across ? at : across;
        l->axes[axis] = at;
    }
    LLVMValueRef side = gpu_i32(l, width), first = LLVMBuildUDiv(b, g->thread, side, "");
    g->column = LLVMBuildURem(b, g->thread, side, "");
    g->line = first;
    stage(l, t, along, across);
    struct cg_value *early[TURNS];
    for (int k = 0; k < TURNS; k++) {
        early[k] = arena_array(l->arena, struct cg_value, body->statements.count + 1);
        set_row(l, t, along, across, first, k);
        for (uint32_t i = 0; i < body->statements.count; i++) {
            const struct nest_statement *load = cg_statement(l, body->statements.at[i]);
            if (is_early(l, t, load))
                early[k][i] = cg_load(l, load);
        }
    }
    gpu_sync(l);
    for (int k = 0; k < TURNS; k++) {
        set_row(l, t, along, across, first, k);
        struct cg_branch inside = inside_open(l, t);
        lower_row(l, t, early[k]);
        inside_close(l, t, &inside);
    }
    gpu_sync(l);
}
