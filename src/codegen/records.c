// SPDX-License-Identifier: Apache-2.0
// Records: what each lane loads or puts next to each other while lanes are far apart, as matrices
// of a batch do.
//
//     par i < n { load x[64*i]; load x[64*i + 1]; ...; put y[64*i] = ...; put y[64*i + 1] = ... }
//
// Elements go by tiles, a row for each lane, that are transposed in registers: an access of one
// element for all lanes touches as many cache lines as there are lanes.  On a GPU, where a thread has
// a lane, the rows of a warp go through shared memory.
#include "codegen/records.h"
#include "base/vec.h"
#include "codegen/access.h"
#include "codegen/contiguous.h"
#include "codegen/hooks.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/stack.h"
#include "codegen/types.h"
#include "ir/cost.h"

#include <stdlib.h>

#define WIDEST CG_ROW_WIDEST // elements of a row
#define WIDEST_OF_HOST 16

// `width` elements of each lane, from the constant `first` on.
struct tile {
    const struct nest_statement *s; // one of those that it is of
    int64_t first;
    unsigned width, missing; // missing: elements that are not put yet
    LLVMValueRef at[WIDEST]; // of all lanes; NULL: not loaded or put yet
};

struct cg_records {
    VEC(struct tile) tiles;
    bool *has; // per statement: it is of a tile
};

// The axis along which lanes are neighbours.
static nest_id axis_of_lanes(const struct cg_lowering *l)
{
    return l->gpu ? l->module->hooks->records_axis(l) : l->vector.axis;
}

static bool may_be_of_tile(const struct cg_lowering *l, nest_id id)
{
    const struct nest_statement *s = cg_statement(l, id);
    if ((s->kind != NEST_LOAD && s->kind != NEST_PUT) || s->op || s->guard != NEST_NONE ||
        l->marks[id].is_hoisted || nest_index_has_values(&s->index))
        return false;
    const struct nest_buffer *b = &l->nest->buffers.at[s->buffer];
    int64_t bytes = dtype_get(b->dtype)->bytes;
    return b->role == (s->kind == NEST_LOAD ? NEST_IN : NEST_OUT) &&
           !dtype_is_complex(b->dtype) && (bytes == 4 || bytes == 8) &&
           nest_index_factor(&s->index, axis_of_lanes(l)) * bytes >=
               (l->gpu ? COST_ROW_BYTES + 1 : COST_ROW_BYTES);
}

// Whether the indices of two statements differ by a constant.
static bool is_alike(const struct nest_statement *a, const struct nest_statement *b)
{
    return a->kind == b->kind && a->buffer == b->buffer &&
           nest_index_same_terms(&a->index, &b->index);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Tiles of the n constants at `at`, which rise.  Loads may read what lies between.
static void add_tiles(struct cg_lowering *l, struct cg_records *r,
                      const struct nest_statement *s, const int64_t *at, uint32_t n)
{
    unsigned bytes = dtype_get(l->nest->buffers.at[s->buffer].dtype)->bytes;
    unsigned width = l->gpu ? CG_ROW_BYTES / bytes : l->module->vector_bytes / bytes;
    width = l->gpu || width < WIDEST_OF_HOST ? width : WIDEST_OF_HOST;
    int64_t last = at[n - 1];
    while ((!l->gpu && width > l->vector.lanes) || width > last - at[0] + 1)
        width /= 2;
    if (width * bytes < COST_ROW_BYTES)
        return;
    for (uint32_t i = 0, end; i < n; i = end) {
        int64_t first = at[i] < last - width + 1 ? at[i] : last - width + 1;
        for (end = i + 1; end < n && at[end] < first + width;)
            end++;
        if (s->kind == NEST_PUT || 2 * (end - i) >= width || first < at[i])
            vec_push(l->arena, &r->tiles,
                     (struct tile){.s = s, .first = first, .width = width, .missing = width});
    }
}

// The statements of the block from number `from` on whose indices differ by a constant.
static void add_record(struct cg_lowering *l, struct cg_records *r, const struct nest_block *b,
                       uint32_t from)
{
    const struct nest_statement *s = cg_statement(l, b->statements.at[from]);
    int64_t *at = arena_array(l->arena, int64_t, b->statements.count);
    uint32_t n = 0;
    for (uint32_t i = from; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (r->has[id] || !may_be_of_tile(l, id) || !is_alike(s, cg_statement(l, id)))
            continue;
        r->has[id] = true;
        at[n++] = cg_statement(l, id)->index.constant;
    }
    qsort(at, n, sizeof *at, by_size);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && (s->kind == NEST_LOAD || at[end] == at[end - 1] + 1);)
            end++;
        add_tiles(l, r, s, at + i, end - i);
    }
}

void cg_records_open(struct cg_lowering *l, uint32_t block)
{
    const struct nest_block *b = &l->nest->blocks.at[block];
    if (axis_of_lanes(l) == NEST_NONE)
        return;
    struct cg_records *r = arena_new(l->arena, struct cg_records);
    r->has = arena_array(l->arena, bool, l->nest->statements.count + 1);
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (!r->has[b->statements.at[i]] && may_be_of_tile(l, b->statements.at[i]))
            add_record(l, r, b, i);
    l->body.records = r->tiles.count ? r : NULL;
}

void cg_records_close(struct cg_lowering *l) { l->body.records = NULL; }

// ---- Moving

// The row of a lane.  Lanes past the end load that of lane 0.
static LLVMValueRef lane_row(struct cg_lowering *l, const struct tile *t, unsigned lane)
{
    struct cg_parts p = cg_split_index(l, &t->s->index);
    jot_dtype d = l->nest->buffers.at[t->s->buffer].dtype;
    int64_t to_first = t->first - t->s->index.constant;
    LLVMValueRef far = cg_int(l->module, lane * p.factor);
    if (l->vector.mask && t->s->kind == NEST_LOAD)
        far = LLVMBuildSelect(l->m.b, cg_extract(&l->m, l->vector.mask, lane, 1), far,
                              cg_int(l->module, 0), "");
    LLVMValueRef at = cg_add(l, cg_add(l, p.uniform, cg_int(l->module, to_first)), far);
    return cg_at(l, cg_memory_type(l->module, d), cg_buffer_base(l, t->s->buffer), at);
}

static LLVMTypeRef row_type(struct cg_lowering *l, const struct tile *t)
{
    jot_dtype d = l->nest->buffers.at[t->s->buffer].dtype;
    return cg_with_lanes(cg_memory_type(l->module, d), t->width);
}

static unsigned alignment(const struct cg_lowering *l, const struct tile *t)
{
    return dtype_get(l->nest->buffers.at[t->s->buffer].dtype)->bytes;
}

// The tile for `lanes` lanes from number `lane` on: vectors of them.
static void load_lanes(struct cg_lowering *l, const struct tile *t, unsigned lane,
                       unsigned lanes, LLVMValueRef *out)
{
    LLVMValueRef high[WIDEST];
    if (lanes == t->width) {
        for (unsigned i = 0; i < lanes; i++)
            out[i] =
                cg_load_row(l, row_type(l, t), lane_row(l, t, lane + i), alignment(l, t), NULL);
        cg_transpose(l, out, lanes);
        return;
    }
    load_lanes(l, t, lane, lanes / 2, out);
    load_lanes(l, t, lane + lanes / 2, lanes / 2, high);
    LLVMValueRef order = cg_sequence(l->module, l->module->i32, lanes, 0, 1);
    for (unsigned i = 0; i < t->width; i++)
        out[i] = LLVMBuildShuffleVector(l->m.b, out[i], high[i], order, "");
}

// That of a thread of a GPU.
static struct cg_record_row row_of_thread(struct cg_lowering *l, const struct tile *t)
{
    return (struct cg_record_row){.s = t->s,
                                  .first = t->first,
                                  .across = nest_index_factor(&t->s->index, axis_of_lanes(l)),
                                  .lane = LLVMGetElementType(row_type(l, t)),
                                  .at = lane_row(l, t, 0),
                                  .width = t->width,
                                  .bytes = alignment(l, t)};
}

static void load_tile(struct cg_lowering *l, struct tile *t)
{
    if (!l->gpu) {
        load_lanes(l, t, 0, l->vector.lanes, t->at);
        return;
    }
    struct cg_record_row r = row_of_thread(l, t);
    l->module->hooks->records_load(l, &r, t->at);
}

static void store_tile(struct cg_lowering *l, struct tile *t)
{
    LLVMValueRef rows[WIDEST];
    if (l->gpu) {
        struct cg_record_row r = row_of_thread(l, t);
        l->module->hooks->records_store(l, &r, t->at);
        return;
    }
    for (unsigned lane = 0; lane < l->vector.lanes; lane += t->width) {
        for (unsigned i = 0; i < t->width; i++)
            rows[i] = cg_extract(&l->m, t->at[i], lane, t->width);
        cg_transpose(l, rows, t->width);
        for (unsigned i = 0; i < t->width; i++) {
            LLVMValueRef mask = l->vector.mask;
            if (mask)
                mask = cg_splat(&l->m, cg_extract(&l->m, mask, lane + i, 1), t->width);
            cg_store_row(l, rows[i], lane_row(l, t, lane + i), alignment(l, t), mask, false);
        }
    }
}

// The next tile from number `from` on that has the element of s, or NULL.
static struct tile *next_tile(struct cg_lowering *l, const struct nest_statement *s,
                              uint32_t from)
{
    struct cg_records *r = l->body.records;
    if (!r || !r->has[s - l->nest->statements.at] || l->vector.mask != l->vector.tail)
        return NULL;
    for (uint32_t i = from; i < r->tiles.count; i++) {
        struct tile *t = &r->tiles.at[i];
        int64_t element = s->index.constant - t->first;
        if (is_alike(s, t->s) && element >= 0 && element < t->width)
            return t;
    }
    return NULL;
}

LLVMValueRef cg_records_load(struct cg_lowering *l, const struct nest_statement *s)
{
    struct tile *t = next_tile(l, s, 0);
    if (t && !t->at[0])
        load_tile(l, t);
    return t ? t->at[s->index.constant - t->first] : NULL;
}

bool cg_records_store(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef v)
{
    bool any = false;
    for (struct tile *t = next_tile(l, s, 0); t;
         t = next_tile(l, s, (uint32_t)(t - l->body.records->tiles.at) + 1)) {
        t->at[s->index.constant - t->first] = cg_wide(l, v);
        if (--t->missing == 0)
            store_tile(l, t);
        any = true;
    }
    return any;
}
