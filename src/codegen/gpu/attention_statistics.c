// SPDX-License-Identifier: Apache-2.0
// The first function of the gradient of attention: statistics of rows.
//
// One shape: attention (docs/nests.md).
#include "codegen/gpu/attention_statistics.h"
#include "codegen/gpu/attention_gradient.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/tensor.h"
#include "codegen/gpu/warpgroup.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "map/gpu_scratch.h"

struct statistics {
    bool is_grouped;             // products by warpgroups, of queries that are in shared memory
    unsigned warps;              // of the block
    int rows, part;              // of the thread; keys that a warp has in registers
    struct gpu_tensor_rows k, v; // of a turn
    int64_t halves, half;        // where they stand, bytes of both
    LLVMValueRef *q, *dy;        // [tile][pieces][4]
    struct gpu_panels in_q, in_dy;      // of the warpgroup
    LLVMValueRef key_row, value_row;    // where the thread's row of matrices begins
    LLVMValueRef *top, *sum, *delta;    // memory, by row
    LLVMValueRef *scores, *products;    // [tile][part / 8][4]
    LLVMValueRef first_of_block, first; // query, of the warp
};

static void add_row(struct gpu_gradient *c, struct statistics *s, int row,
                    LLVMValueRef first_key, LLVMValueRef *scores, const LLVMValueRef *products)
{
    LLVMBuilderRef b = c->b;
    LLVMValueRef top = NULL;
    LLVMValueRef query =
        sum_of(c, gpu_tensor_plus(&c->t, s->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
    for (int i = 0; i < s->part / 4; i++) {
        LLVMValueRef key =
            sum_of(c, gpu_tensor_plus(&c->t, first_key, i / 2 * 8 + i % 2), c->t.column);
        LLVMValueRef *x = &scores[i / 2 * 4 + i % 2];
        *x = gpu_gradient_apply(c, *x, query, key);
        if (c->keys % AT_ONCE)
            *x = LLVMBuildSelect(b, gpu_gradient_is_key(c, key), *x,
                                 gpu_tensor_number(&c->t, -INFINITY), "");
        top = top ? gpu_tensor_largest(&c->t, top, *x) : *x;
    }
    // The largest is kept times log2 e, so that what is rounded there is so once.
    LLVMValueRef scaled = LLVMBuildFMul(b, top, gpu_tensor_number(&c->t, LOG2_E), "");
    LLVMValueRef old = gpu_tensor_load_f32(&c->t, s->top[row]);
    top = gpu_tensor_largest(&c->t, old, scaled);
    LLVMBuildStore(b, top, s->top[row]);
    top = gpu_tensor_reference(&c->t, top);
    LLVMValueRef factor = gpu_tensor_exponential(&c->t, old, gpu_tensor_number(&c->t, 1), top);
    LLVMValueRef sum = LLVMBuildFMul(b, gpu_tensor_load_f32(&c->t, s->sum[row]), factor, "");
    LLVMValueRef delta =
        LLVMBuildFMul(b, gpu_tensor_load_f32(&c->t, s->delta[row]), factor, "");
    for (int i = 0; i < s->part / 4; i++) {
        int at = i / 2 * 4 + i % 2;
        LLVMValueRef x =
            gpu_tensor_exponential(&c->t, scores[at], gpu_tensor_number(&c->t, LOG2_E), top);
        LLVMValueRef terms[] = {x, products[at], delta};
        sum = LLVMBuildFAdd(b, sum, x, "");
        delta = gpu_tensor_call(&c->t, "llvm.fma", c->f32, 3, terms);
    }
    LLVMBuildStore(b, sum, s->sum[row]);
    LLVMBuildStore(b, delta, s->delta[row]);
}

// Of the four threads that have a row.
static void store_row(struct gpu_gradient *c, struct statistics *s, int row)
{
    LLVMBuilderRef b = c->b;
    LLVMValueRef top = gpu_tensor_load_f32(&c->t, s->top[row]), own = top,
                 x[2] = {gpu_tensor_load_f32(&c->t, s->sum[row]),
                         gpu_tensor_load_f32(&c->t, s->delta[row])};
    for (int by = 1; by <= 2; by *= 2)
        top = gpu_tensor_largest(&c->t, top, gpu_tensor_other(&c->t, top, by));
    top = gpu_tensor_reference(&c->t, top);
    LLVMValueRef factor = gpu_tensor_exponential(&c->t, own, gpu_tensor_number(&c->t, 1), top);
    for (int i = 0; i < 2; i++) {
        x[i] = LLVMBuildFMul(b, x[i], factor, "");
        for (int by = 1; by <= 2; by *= 2)
            x[i] = LLVMBuildFAdd(b, x[i], gpu_tensor_other(&c->t, x[i], by), "");
    }
    LLVMValueRef query =
        sum_of(c, gpu_tensor_plus(&c->t, s->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
    LLVMValueRef log = gpu_tensor_call(&c->t, "llvm.nvvm.lg2.approx.ftz.f", NULL, 1, &x[0]);
    LLVMValueRef is_row = LLVMBuildICmp(b, LLVMIntSLT, query, whole(c, c->queries), "");
    // Rows that there are not weigh nothing.
    log = LLVMBuildSelect(b, is_row, LLVMBuildFAdd(b, top, log, ""),
                          gpu_tensor_number(&c->t, INFINITY), "");
    LLVMValueRef delta = LLVMBuildSelect(b, is_row, LLVMBuildFDiv(b, x[1], x[0], ""),
                                         gpu_tensor_number(&c->t, 0), "");
    struct cg_branch first =
        cg_if_open(c->l, LLVMBuildICmp(b, LLVMIntEQ, c->t.column, whole(c, 0), ""));
    LLVMValueRef to = gpu_gradient_statistics_of(c, query);
    LLVMBuildStore(b, log, to);
    LLVMBuildStore(b, delta, cg_at(c->l, c->f32, to, whole(c, 1)));
    cg_if_close(c->l, &first);
}

// ---- A block of queries

static void fetch_keys(struct gpu_gradient *c, const struct statistics *s, LLVMValueRef turn)
{
    LLVMValueRef to = half_of(c, s->halves, s->half, turn), key = times(c, turn, AT_ONCE);
    gpu_tensor_fetch(&c->t, &s->k, key, AT_ONCE, to);
    gpu_tensor_fetch(&c->t, &s->v, key, AT_ONCE,
                     gpu_tensor_plus(&c->t, to, AT_ONCE * s->k.pitch));
}

static struct gpu_tensor_rows rows_of(const struct gpu_gradient *c, const struct statistics *s,
                                      const struct gpu_tensor_rows *r)
{
    return gpu_tensor_rows_of(c->l, r->load, r->row, r->column, s->is_grouped);
}

static void fetch_queries(struct gpu_gradient *c, struct statistics *s)
{
    struct gpu_tensor_rows q = rows_of(c, s, &c->q), dy = rows_of(c, s, &c->dy);
    gpu_tensor_fetch(&c->t, &q, s->first_of_block, MAP_GRADIENT_QUERIES, whole(c, 0));
    gpu_tensor_fetch(&c->t, &dy, s->first_of_block, MAP_GRADIENT_QUERIES,
                     whole(c, MAP_GRADIENT_QUERIES * q.pitch));
    LLVMValueRef group = LLVMBuildLShr(c->b, gpu_gradient_warp_of(c), whole(c, 2), "");
    LLVMValueRef at = times(c, group, (int64_t)GPU_WARPGROUP * GPU_TILE * GPU_PANEL_ROW);
    s->in_q = (struct gpu_panels){at, MAP_GRADIENT_QUERIES, false};
    s->in_dy = (struct gpu_panels){gpu_tensor_plus(&c->t, at, MAP_GRADIENT_QUERIES * q.pitch),
                                   MAP_GRADIENT_QUERIES, false};
}

// Scores and products of the warp's queries and a part of the half's keys.
static void multiply(struct gpu_gradient *c, struct statistics *s, LLVMValueRef half,
                     LLVMValueRef part)
{
    LLVMValueRef k = sum_of(c, half, times(c, part, s->k.pitch));
    LLVMValueRef v = gpu_tensor_plus(&c->t, sum_of(c, half, times(c, part, s->v.pitch)),
                                     AT_ONCE * s->k.pitch);
    if (!s->is_grouped) {
        gpu_gradient_multiply_rows(c, s->q, NULL, s->k.pitch, c->depths,
                                   sum_of(c, k, s->key_row), s->scores);
        gpu_gradient_multiply_rows(c, s->dy, NULL, s->v.pitch, c->widths,
                                   sum_of(c, v, s->value_row), s->products);
        return;
    }
    gpu_warpgroup_multiply(&c->t, s->scores, s->part / 2, false, c->depths, NULL, &s->in_q,
                           &(struct gpu_panels){k, AT_ONCE, false});
    gpu_warpgroup_multiply(&c->t, s->products, s->part / 2, false, c->widths, NULL, &s->in_dy,
                           &(struct gpu_panels){v, AT_ONCE, false});
}

static void take_keys(struct gpu_gradient *c, struct statistics *s, LLVMValueRef turn)
{
    struct cg_loop parts =
        cg_loop_open(c->l, whole(c, 0), whole(c, AT_ONCE), whole(c, s->part));
    multiply(c, s, half_of(c, s->halves, s->half, turn), parts.index);
    LLVMValueRef key = sum_of(c, times(c, turn, AT_ONCE), parts.index);
    for (int row = 0; row < s->rows; row++) {
        int from_row = row / 2 * (s->part / 2) + row % 2 * 2;
        add_row(c, s, row, key, s->scores + from_row, s->products + from_row);
    }
    cg_loop_close(c->l, &parts);
}

static void take_queries(struct gpu_gradient *c, struct statistics *s)
{
    struct cg_lowering *l = c->l;
    int64_t turns = (c->keys + AT_ONCE - 1) / AT_ONCE;
    if (s->is_grouped)
        fetch_queries(c, s);
    fetch_keys(c, s, whole(c, 0));
    if (!s->is_grouped) {
        gpu_gradient_load_rows(c, &c->q, s->first, c->depths, s->q);
        gpu_gradient_load_rows(c, &c->dy, s->first, c->widths, s->dy);
    }
    gpu_gradient_set_all(c, s->top, s->rows, -INFINITY);
    gpu_gradient_set_all(c, s->sum, s->rows, 0);
    gpu_gradient_set_all(c, s->delta, s->rows, 0);
    struct cg_loop loop = cg_loop_open(l, whole(c, 0), whole(c, turns), whole(c, 1));
    gpu_tensor_wait(&c->t);
    if (s->is_grouped)
        gpu_warpgroup_publish(&c->t);
    gpu_sync(l); // this turn's rows are there, and all threads are done with the last turn's
    LLVMValueRef next = gpu_tensor_plus(&c->t, loop.index, 1);
    struct cg_branch more =
        cg_if_open(l, LLVMBuildICmp(c->b, LLVMIntSLT, next, whole(c, turns), ""));
    fetch_keys(c, s, next);
    cg_if_close(l, &more);
    take_keys(c, s, loop.index);
    cg_loop_close(l, &loop);
    for (int row = 0; row < s->rows; row++)
        store_row(c, s, row);
    gpu_sync(l);
}

// ---- The function

static void choose_sizes(struct gpu_gradient *c, struct statistics *s)
{
    s->is_grouped = c->l->nest->threads[NEST_GROUP_THREADS] == MAP_WARPGROUP;
    s->rows = s->is_grouped ? 2 : 2 * TILES;
    s->part = s->is_grouped ? AT_ONCE : PART;
    s->warps = (unsigned)(MAP_GRADIENT_QUERIES / (s->rows / 2 * GPU_TILE));
    s->k = rows_of(c, s, &c->k);
    s->v = rows_of(c, s, &c->v);
    s->halves = s->is_grouped ? MAP_GRADIENT_QUERIES * (s->k.pitch + s->v.pitch) : 0;
    s->half = AT_ONCE * (s->k.pitch + s->v.pitch);
}

void gpu_gradient_statistics(struct gpu_gradient *c, struct cg_kernel *out, uint32_t at)
{
    struct cg_lowering *l = c->l;
    struct statistics s = {0};
    choose_sizes(c, &s);
    l->gpu->function.resident = 2;
    struct cg_kernel_step *step =
        gpu_gradient_open_function(c, out, "_rows", s.warps * GPU_WARP, at);
    c->t = gpu_tensor_make(l, c->g.a.q->dtype, s.warps, (uint64_t)(s.halves + 2 * s.half));
    s.top = gpu_gradient_room(c, s.rows);
    s.sum = gpu_gradient_room(c, s.rows);
    s.delta = gpu_gradient_room(c, s.rows);
    s.q = arena_array(l->arena, LLVMValueRef, TILES * c->depths * 4);
    s.dy = arena_array(l->arena, LLVMValueRef, TILES * c->widths * 4);
    s.scores = arena_array(l->arena, LLVMValueRef, s.rows * s.part / 4);
    s.products = arena_array(l->arena, LLVMValueRef, s.rows * s.part / 4);
    s.key_row = gpu_tensor_matrix(&c->t, c->k.pitch, false);
    s.value_row = gpu_tensor_matrix(&c->t, c->v.pitch, false);
    int64_t blocks = c->padded / MAP_GRADIENT_QUERIES;
    struct cg_loop chunk = gpu_chunks_open(l, c->batches * blocks);
    LLVMValueRef block = gpu_gradient_set_batch(c, chunk.index, blocks);
    s.first_of_block = times(c, block, MAP_GRADIENT_QUERIES);
    s.first =
        sum_of(c, s.first_of_block, times(c, gpu_gradient_warp_of(c), s.rows / 2 * GPU_TILE));
    take_queries(c, &s);
    cg_loop_close(l, &chunk);
    l->gpu->function.resident = 0;
    gpu_gradient_close_function(c, step, c->batches * blocks);
}
