// SPDX-License-Identifier: Apache-2.0
// Transposed reads: a block of threads goes over tiles of 32 by 32 points, or of 64 by 64 where there
// are many. What is contiguous across them is read so, and turned in shared memory, whose rows are
// one element longer than the tile so that a column lies in as many banks.
#include "codegen/gpu/tile.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/memory.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_shared.h"

#define TURNS MAP_TILE_TURNS

struct gpu_tiles gpu_tiles_of(const struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    struct gpu_tiles t = {.of = {.s = s, .along = s->axes[s->n_axes - 1]}, .count = 1};
    t.of.width = l->nest->axes.at[t.of.along].tile;
    t.is_exact = true;
    for (uint32_t k = 0; k < s->n_axes; k++) {
        const struct nest_axis *axis = &l->nest->axes.at[s->axes[k]];
        if (axis->tile && s->axes[k] != t.of.along)
            t.of.across = s->axes[k];
        t.is_exact = t.is_exact && !(axis->tile && axis->extent % axis->tile);
        t.count *= axis->tile ? (axis->extent + axis->tile - 1) / axis->tile : axis->extent;
    }
    if (s->turns)
        t.side = (l->nest->axes.at[t.of.along].extent + t.of.width - 1) / t.of.width;
    return t;
}

static int64_t rows_at_once(const struct gpu_tiles *t) { return t->of.width / TURNS; }

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
    nest_id axes[] = {t->of.along, t->of.across};
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

static LLVMValueRef element_in_tile(struct cg_lowering *l, const struct nest_statement *s,
                                    LLVMValueRef memory, LLVMValueRef row, LLVMValueRef column)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef at = LLVMBuildMul(b, row, gpu_i32(l, l->gpu->tile.side + 1), "");
    at = LLVMBuildAdd(b, at, column, "");
    return cg_at(l, cg_memory_type(l->module, s->dtype), memory, gpu_wide(l, at));
}

struct cg_value gpu_load_turned(struct cg_lowering *l, const struct nest_statement *s)
{
    struct cg_gpu *g = l->gpu;
    nest_id id = nest_id_of(l->nest, s);
    LLVMValueRef at = element_in_tile(l, s, l->marks[id].staged, g->tile.column, g->tile.line);
    LLVMValueRef v = LLVMBuildLoad2(l->m.b, cg_memory_type(l->module, s->dtype), at, "");
    return (struct cg_value){cg_from_memory(l, v, s->dtype), NULL};
}

// A tile of the loop: where it begins, what is turned of it, by statement of the body, in shared
// memory, and what else is read of it, on its way while that is staged.
struct tile {
    LLVMValueRef along, across;
    LLVMValueRef *turned;
    struct cg_value *early[TURNS];
};

static struct tile make_tile(struct cg_lowering *l, const struct gpu_tiles *t,
                             LLVMValueRef along, LLVMValueRef across)
{
    const struct nest_block *body = &l->nest->blocks.at[t->of.s->body];
    uint32_t n = body->statements.count;
    struct tile tile = {along, across, arena_array(l->arena, LLVMValueRef, n + 1), {0}};
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (map_is_turned(l->nest, s, t->of.along, t->of.across))
            tile.turned[i] = gpu_shared(l, (uint64_t)t->of.width * (t->of.width + 1) *
                                               jot_dtype_size(s->dtype));
    }
    for (int k = 0; k < TURNS; k++)
        tile.early[k] = arena_array(l->arena, struct cg_value, n + 1);
    return tile;
}

// What is not turned is on its way while the turned is staged.
static bool is_early(const struct cg_lowering *l, const struct gpu_tiles *t,
                     const struct nest_statement *s)
{
    return t->is_exact && cg_is_plain_load(l, s) && gpu_is_read_only(l, s->buffer) &&
           !map_is_turned(l->nest, s, t->of.along, t->of.across);
}

// Row line + k * rows_at_once of the tile.
static void set_row(struct cg_lowering *l, const struct gpu_tiles *t, const struct tile *tile,
                    LLVMValueRef first, int k)
{
    l->gpu->tile.line = LLVMBuildAdd(l->m.b, first, gpu_i32(l, k * rows_at_once(t)), "");
    l->axes[t->of.along] = axis_value(l, tile->along, l->gpu->tile.column);
    l->axes[t->of.across] = axis_value(l, tile->across, l->gpu->tile.line);
}

static void load_early(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef first,
                       struct tile *tile)
{
    const struct nest_block *body = &l->nest->blocks.at[t->of.s->body];
    for (int k = 0; k < TURNS; k++) {
        set_row(l, t, tile, first, k);
        for (uint32_t i = 0; i < body->statements.count; i++) {
            const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
            if (is_early(l, t, s))
                tile->early[k][i] = cg_load(l, s);
        }
    }
}

// The statement that reads of the mirror image what this one reads turned of the tile, where it is
// early, else as many as there are.
static uint32_t same_in_image(const struct cg_lowering *l, const struct gpu_tiles *t,
                              const struct nest_statement *s)
{
    const struct nest_block *body = &l->nest->blocks.at[t->of.s->body];
    for (uint32_t i = 0; i < body->statements.count; i++) {
        const struct nest_statement *o = cg_statement(l, body->statements.at[i]);
        if (is_early(l, t, o) && o->buffer == s->buffer &&
            o->index.constant == s->index.constant &&
            nest_index_factor(&o->index, t->of.along) ==
                nest_index_factor(&s->index, t->of.across) &&
            nest_index_factor(&o->index, t->of.across) ==
                nest_index_factor(&s->index, t->of.along))
            return i;
    }
    return body->statements.count;
}

// What is contiguous across the tile, row by row, to shared memory; image: NULL, or the mirror
// image, of which the same may have been read.
static void stage(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef first,
                  const struct tile *tile, const struct tile *image)
{
    const struct nest_block *body = &l->nest->blocks.at[t->of.s->body];
    for (int k = 0; k < TURNS; k++) {
        LLVMValueRef row = LLVMBuildAdd(l->m.b, first, gpu_i32(l, k * rows_at_once(t)), "");
        l->axes[t->of.along] = axis_value(l, tile->along, row);
        l->axes[t->of.across] = axis_value(l, tile->across, l->gpu->tile.column);
        struct cg_branch inside = inside_open(l, t);
        for (uint32_t i = 0; i < body->statements.count; i++) {
            const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
            if (!tile->turned[i])
                continue;
            uint32_t same = image ? same_in_image(l, t, s) : body->statements.count;
            LLVMValueRef v =
                same < body->statements.count ? image->early[k][same].re : cg_load(l, s).re;
            LLVMBuildStore(l->m.b, cg_to_memory(l, v, s->dtype),
                           element_in_tile(l, s, tile->turned[i], row, l->gpu->tile.column));
        }
        inside_close(l, t, &inside);
    }
}

static void lower_rows(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef first,
                       const struct tile *tile)
{
    const struct nest_block *body = &l->nest->blocks.at[t->of.s->body];
    for (uint32_t i = 0; i < body->statements.count; i++)
        l->marks[body->statements.at[i]].staged = tile->turned[i];
    for (int k = 0; k < TURNS; k++) {
        set_row(l, t, tile, first, k);
        struct cg_branch inside = inside_open(l, t);
        for (uint32_t i = 0; i < body->statements.count; i++) {
            const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
            if (is_early(l, t, s))
                l->values[s->result] = tile->early[k][i];
            else
                cg_lower_statement(l, body->statements.at[i]);
        }
        inside_close(l, t, &inside);
    }
    for (uint32_t i = 0; i < body->statements.count; i++)
        l->marks[body->statements.at[i]].staged = NULL;
}

// Tile (i, j) of a square and its mirror image, which reads the same: all reads are on their way at
// once.
static void lower_two(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef first,
                      LLVMValueRef i, LLVMValueRef j)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef width = cg_int(l->module, t->of.width);
    LLVMValueRef y = LLVMBuildMul(b, i, width, ""), x = LLVMBuildMul(b, j, width, "");
    bool is_last = t->of.s->axes[1] == t->of.along;
    struct tile tile = make_tile(l, t, is_last ? x : y, is_last ? y : x);
    struct tile image = make_tile(l, t, tile.across, tile.along);
    load_early(l, t, first, &tile);
    load_early(l, t, first, &image);
    stage(l, t, first, &tile, &image);
    stage(l, t, first, &image, &tile);
    gpu_sync(l);
    lower_rows(l, t, first, &tile);
    struct cg_branch two = cg_if_open(l, LLVMBuildICmp(b, LLVMIntNE, i, j, ""));
    lower_rows(l, t, first, &image);
    cg_if_close(l, &two);
    gpu_sync(l);
}

// Row i with the tiles from the diagonal on, and behind it those of row side - 1 - i.
static void lower_mirrored(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef first,
                           LLVMValueRef chunk)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef width = cg_int(l->module, t->side + 1);
    LLVMValueRef i = LLVMBuildUDiv(b, chunk, width, ""), j = LLVMBuildURem(b, chunk, width, "");
    LLVMValueRef last = cg_int(l->module, t->side - 1);
    LLVMValueRef is_above = LLVMBuildICmp(b, LLVMIntSGT, j, i, "");
    i = LLVMBuildSelect(b, is_above, i, LLVMBuildSub(b, last, i, ""), "");
    j = LLVMBuildSelect(b, is_above, LLVMBuildSub(b, j, cg_int(l->module, 1), ""),
                        LLVMBuildSub(b, last, j, ""), "");
    lower_two(l, t, first, i, j);
}

void gpu_tiles_lower(struct cg_lowering *l, const struct gpu_tiles *t, LLVMValueRef chunk)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = t->of.s;
    unsigned width = g->tile.side = t->of.width;
    LLVMValueRef side = gpu_i32(l, width), first = LLVMBuildUDiv(b, g->thread, side, "");
    g->tile.column = LLVMBuildURem(b, g->thread, side, "");
    if (t->side) {
        lower_mirrored(l, t, first, chunk);
        return;
    }
    LLVMValueRef along = NULL, across = NULL;
    for (uint32_t k = s->n_axes; k-- > 0;) {
        nest_id axis = s->axes[k];
        bool is_side = axis == t->of.along || axis == t->of.across;
        int64_t extent = l->nest->axes.at[axis].extent;
        LLVMValueRef n = cg_int(l->module, is_side ? (extent + width - 1) / width : extent);
        LLVMValueRef at = k ? LLVMBuildURem(b, chunk, n, "") : chunk;
        chunk = k ? LLVMBuildUDiv(b, chunk, n, "") : chunk;
        if (is_side)
            at = LLVMBuildMul(b, at, cg_int(l->module, width), "");
        along = axis == t->of.along ? at : along;
        across = axis == t->of.across ? at : across;
        l->axes[axis] = at;
    }
    struct tile tile = make_tile(l, t, along, across);
    load_early(l, t, first, &tile);
    stage(l, t, first, &tile, NULL);
    gpu_sync(l);
    lower_rows(l, t, first, &tile);
    gpu_sync(l);
}
