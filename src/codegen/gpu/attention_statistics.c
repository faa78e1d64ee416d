// SPDX-License-Identifier: Apache-2.0
// The first function of the gradient of attention: statistics of rows.
//
// One shape: attention (docs/nests.md).
#include "codegen/gpu/attention_gradient.h"

struct statistics {
    LLVMValueRef *q, *dy;            // [tile][pieces][4]
    LLVMValueRef *top, *sum, *delta; // memory, by row
    LLVMValueRef first;              // query of the warp
};

// The largest as what exponents are taken from: rows that are all -infinity weigh nothing.
static LLVMValueRef base_of(struct gpu_gradient *c, LLVMValueRef top)
{
    LLVMValueRef is_lowest = LLVMBuildFCmp(c->b, LLVMRealOEQ, top, number(c, -INFINITY), "");
    return LLVMBuildSelect(c->b, is_lowest, number(c, 0), top, "");
}

static void add_row(struct gpu_gradient *c, struct statistics *s, int row,
                    LLVMValueRef first_key, LLVMValueRef *scores, const LLVMValueRef *products)
{
    LLVMBuilderRef b = c->b;
    LLVMValueRef top = NULL;
    LLVMValueRef query =
        sum_of(c, plus(c, s->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
    for (int i = 0; i < PART / 4; i++) {
        LLVMValueRef key = sum_of(c, plus(c, first_key, i / 2 * 8 + i % 2), c->t.column);
        LLVMValueRef *x = &scores[i / 2 * 4 + i % 2];
        *x = gpu_gradient_apply(c, *x, query, key);
        if (c->keys % STEP)
            *x = LLVMBuildSelect(b, gpu_gradient_is_key(c, key), *x, number(c, -INFINITY), "");
        top = top ? gpu_tensor_largest(&c->t, top, *x) : *x;
    }
    // The largest is kept times log2 e, so that what is rounded there is so once.
    LLVMValueRef scaled = LLVMBuildFMul(b, top, number(c, LOG2_E), "");
    LLVMValueRef old = load(c, s->top[row]);
    top = gpu_tensor_largest(&c->t, old, scaled);
    LLVMBuildStore(b, top, s->top[row]);
    top = base_of(c, top);
    LLVMValueRef factor = gpu_tensor_exponential(&c->t, old, number(c, 1), top);
    LLVMValueRef sum = LLVMBuildFMul(b, load(c, s->sum[row]), factor, "");
    LLVMValueRef delta = LLVMBuildFMul(b, load(c, s->delta[row]), factor, "");
    for (int i = 0; i < PART / 4; i++) {
        int at = i / 2 * 4 + i % 2;
        LLVMValueRef x = gpu_tensor_exponential(&c->t, scores[at], number(c, LOG2_E), top);
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
    LLVMValueRef top = load(c, s->top[row]), own = top,
                 x[2] = {load(c, s->sum[row]), load(c, s->delta[row])};
    for (int by = 1; by <= 2; by *= 2)
        top = gpu_tensor_largest(&c->t, top, gpu_tensor_other(&c->t, top, by));
    top = base_of(c, top);
    LLVMValueRef factor = gpu_tensor_exponential(&c->t, own, number(c, 1), top);
    for (int i = 0; i < 2; i++) {
        x[i] = LLVMBuildFMul(b, x[i], factor, "");
        for (int by = 1; by <= 2; by *= 2)
            x[i] = LLVMBuildFAdd(b, x[i], gpu_tensor_other(&c->t, x[i], by), "");
    }
    LLVMValueRef query =
        sum_of(c, plus(c, s->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
    LLVMValueRef log = gpu_tensor_call(&c->t, "llvm.nvvm.lg2.approx.ftz.f", NULL, 1, &x[0]);
    LLVMValueRef is_row = LLVMBuildICmp(b, LLVMIntSLT, query, whole(c, c->queries), "");
    // Rows that there are not weigh nothing.
    log = LLVMBuildSelect(b, is_row, LLVMBuildFAdd(b, top, log, ""), number(c, INFINITY), "");
    LLVMValueRef delta =
        LLVMBuildSelect(b, is_row, LLVMBuildFDiv(b, x[1], x[0], ""), number(c, 0), "");
    struct cg_branch first =
        cg_if_open(c->l, LLVMBuildICmp(b, LLVMIntEQ, c->t.column, whole(c, 0), ""));
    LLVMValueRef to = gpu_gradient_statistics_of(c, query);
    LLVMBuildStore(b, log, to);
    LLVMBuildStore(b, delta, cg_at(c->l, c->f32, to, whole(c, 1)));
    cg_if_close(c->l, &first);
}

static void fetch_keys(struct gpu_gradient *c, LLVMValueRef turn, int64_t stage)
{
    LLVMValueRef place = times(c, LLVMBuildAnd(c->b, turn, whole(c, 1), ""), stage);
    LLVMValueRef key = times(c, turn, STEP);
    gpu_tensor_fetch(&c->t, &c->k, key, STEP, place);
    gpu_tensor_fetch(&c->t, &c->v, key, STEP, plus(c, place, STEP * c->k.pitch));
}

void gpu_gradient_statistics(struct gpu_gradient *c, struct cg_kernel *out, uint32_t at)
{
    struct cg_lowering *l = c->l;
    l->gpu->resident = 2;
    struct cg_kernel_step *step =
        gpu_gradient_open_function(c, out, "_rows", STATISTICS_WARPS * GPU_WARP, at);
    int64_t stage = STEP * (c->k.pitch + c->v.pitch), turns = (c->keys + STEP - 1) / STEP;
    c->t = gpu_tensor_make(l, c->g.a.q->dtype, STATISTICS_WARPS, 2 * (uint64_t)stage);
    struct statistics s = {.top = gpu_gradient_room(c, 2 * TILES),
                           .sum = gpu_gradient_room(c, 2 * TILES),
                           .delta = gpu_gradient_room(c, 2 * TILES)};
    s.q = arena_array(l->arena, LLVMValueRef, TILES * c->depths * 4);
    s.dy = arena_array(l->arena, LLVMValueRef, TILES * c->widths * 4);
    LLVMValueRef key_row = gpu_tensor_matrix(&c->t, c->k.pitch, false);
    LLVMValueRef value_row = gpu_tensor_matrix(&c->t, c->v.pitch, false);
    int64_t blocks = c->padded / QUERIES;
    struct cg_loop chunk = gpu_chunks_open(l, c->batches * blocks);
    LLVMValueRef block = gpu_gradient_set_batch(c, chunk.index, blocks);
    s.first = sum_of(c, times(c, block, QUERIES), times(c, gpu_gradient_warp_of(c), ROWS));
    fetch_keys(c, whole(c, 0), stage);
    gpu_gradient_load_rows(c, &c->q, s.first, c->depths, s.q);
    gpu_gradient_load_rows(c, &c->dy, s.first, c->widths, s.dy);
    gpu_gradient_set_all(c, s.top, 2 * TILES, -INFINITY);
    gpu_gradient_set_all(c, s.sum, 2 * TILES, 0);
    gpu_gradient_set_all(c, s.delta, 2 * TILES, 0);
    struct cg_loop loop = cg_loop_open(l, whole(c, 0), whole(c, turns), whole(c, 1));
    gpu_tensor_wait(&c->t);
    gpu_sync(l); // this turn's rows are there, and all threads are done with the last turn's
    LLVMValueRef next = plus(c, loop.index, 1);
    struct cg_branch more =
        cg_if_open(l, LLVMBuildICmp(c->b, LLVMIntSLT, next, whole(c, turns), ""));
    fetch_keys(c, next, stage);
    cg_if_close(l, &more);
    LLVMValueRef place = times(c, LLVMBuildAnd(c->b, loop.index, whole(c, 1), ""), stage);
    LLVMValueRef scores[TILES * PART / 2], products[TILES * PART / 2];
    struct cg_loop parts = cg_loop_open(l, whole(c, 0), whole(c, STEP), whole(c, PART));
    LLVMValueRef from = sum_of(c, place, times(c, parts.index, c->k.pitch));
    gpu_gradient_multiply_rows(c, s.q, NULL, c->k.pitch, c->depths, sum_of(c, from, key_row),
                               scores);
    from = plus(c, sum_of(c, place, times(c, parts.index, c->v.pitch)), STEP * c->k.pitch);
    gpu_gradient_multiply_rows(c, s.dy, NULL, c->v.pitch, c->widths, sum_of(c, from, value_row),
                               products);
    LLVMValueRef key = sum_of(c, times(c, loop.index, STEP), parts.index);
    for (int row = 0; row < 2 * TILES; row++) {
        int from_row = row / 2 * (PART / 2) + row % 2 * 2;
        add_row(c, &s, row, key, scores + from_row, products + from_row);
    }
    cg_loop_close(l, &parts);
    cg_loop_close(l, &loop);
    for (int row = 0; row < 2 * TILES; row++)
        store_row(c, &s, row);
    gpu_sync(l);
    cg_loop_close(l, &chunk);
    l->gpu->resident = 0;
    gpu_gradient_close_function(c, step, c->batches * blocks);
}
