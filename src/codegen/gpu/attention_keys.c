// SPDX-License-Identifier: Apache-2.0
// The second function of the gradient of attention: rows are keys.
//
// One shape: attention (docs/nests.md).
#include "codegen/gpu/attention_keys.h"
#include "codegen/gpu/attention_gradient.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/tensor.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "map/gpu.h"

#define DQ_KEYS 64 // that sums of dq take in one turn

struct turned {
    int64_t values, halves, half, change, statistics, bytes; // offsets in shared memory
    int64_t change_pitch;
    LLVMValueRef key_row[2], value_row[2]; // where the thread's row of matrices begins
    LLVMValueRef change_row, key_column;
    LLVMValueRef split, first, warp; // of the block; key of the warp
    LLVMValueRef *dk, *dv, *dq;      // memory
    int tiles, groups;               // of queries that a warp has of dq; of its columns
};

static void lay_out(const struct gpu_gradient *c, struct turned *t)
{
    int64_t keys = (int64_t)c->warps * ROWS;
    t->change_pitch = gpu_tensor_pitch(AT_ONCE);
    t->values = keys * c->k.pitch;
    t->halves = t->values + keys * c->v.pitch;
    t->statistics = AT_ONCE * (c->q.pitch + c->dy.pitch);
    t->half = t->statistics + AT_ONCE * 8;
    t->change = t->halves + 2 * t->half;
    t->bytes = t->change + keys * t->change_pitch;
}

static void fetch_queries(struct gpu_gradient *c, const struct turned *t, LLVMValueRef turn)
{
    LLVMValueRef to = half_of(c, t->halves, t->half, turn), query = times(c, turn, AT_ONCE);
    gpu_tensor_fetch(&c->t, &c->q, query, AT_ONCE, to);
    gpu_tensor_fetch(&c->t, &c->dy, query, AT_ONCE,
                     gpu_tensor_plus(&c->t, to, AT_ONCE * c->q.pitch));
    LLVMValueRef thread = gpu_wide(c->l, c->l->gpu->thread);
    struct cg_branch some =
        cg_if_open(c->l, LLVMBuildICmp(c->b, LLVMIntSLT, thread, whole(c, AT_ONCE / 2), ""));
    LLVMValueRef at =
        gpu_tensor_plus(&c->t, sum_of(c, to, times(c, thread, 16)), t->statistics);
    gpu_tensor_copy(&c->t, gpu_tensor_shared_at(&c->t, at),
                    gpu_gradient_statistics_of(c, sum_of(c, query, times(c, thread, 2))), NULL);
    cg_if_close(c->l, &some);
}

// Weights of PART queries, in place of scores, and changes, in place of products.
static void weigh_part(struct gpu_gradient *c, const struct turned *t, LLVMValueRef half,
                       LLVMValueRef query, LLVMValueRef first, LLVMValueRef *x)
{
    LLVMBuilderRef b = c->b;
    for (int i = 0; i < PART / 4; i++) {
        LLVMValueRef in_part =
            gpu_tensor_plus(&c->t, sum_of(c, first, c->t.column), i / 2 * 8 + i % 2);
        LLVMValueRef at = sum_of(c, half, times(c, in_part, 8));
        LLVMValueRef from =
            gpu_tensor_shared_at(&c->t, gpu_tensor_plus(&c->t, at, t->statistics));
        LLVMValueRef log = gpu_tensor_load_f32(&c->t, from);
        for (int row = 0; row < 2 * TILES; row++) {
            LLVMValueRef *score = &x[row / 2 * (PART / 2) + row % 2 * 2 + i / 2 * 4 + i % 2];
            LLVMValueRef key =
                sum_of(c, gpu_tensor_plus(&c->t, t->first, row / 2 * GPU_TILE + row % 2 * 8),
                       c->t.row);
            LLVMValueRef f = gpu_gradient_apply(c, *score, sum_of(c, query, in_part), key);
            *score = gpu_tensor_exponential(&c->t, f, gpu_tensor_number(&c->t, LOG2_E), log);
            if (gpu_gradient_has_odd_keys(c))
                *score = LLVMBuildSelect(b, gpu_gradient_is_key(c, key), *score,
                                         gpu_tensor_number(&c->t, 0), "");
        }
    }
}

static void change_part(struct gpu_gradient *c, const struct turned *t, LLVMValueRef half,
                        LLVMValueRef query, LLVMValueRef first, const LLVMValueRef *weights,
                        LLVMValueRef *x)
{
    LLVMBuilderRef b = c->b;
    for (int i = 0; i < PART / 4; i++) {
        LLVMValueRef in_part =
            gpu_tensor_plus(&c->t, sum_of(c, first, c->t.column), i / 2 * 8 + i % 2);
        LLVMValueRef at = sum_of(c, half, times(c, in_part, 8));
        LLVMValueRef from =
            gpu_tensor_shared_at(&c->t, gpu_tensor_plus(&c->t, at, t->statistics + 4));
        LLVMValueRef delta = gpu_tensor_load_f32(&c->t, from);
        for (int row = 0; row < 2 * TILES; row++) {
            int of = row / 2 * (PART / 2) + row % 2 * 2 + i / 2 * 4 + i % 2;
            LLVMValueRef key =
                sum_of(c, gpu_tensor_plus(&c->t, t->first, row / 2 * GPU_TILE + row % 2 * 8),
                       c->t.row);
            LLVMValueRef change =
                LLVMBuildFMul(b, weights[of], LLVMBuildFSub(b, x[of], delta, ""), "");
            x[of] = gpu_gradient_apply_change(c, change, sum_of(c, query, in_part), key);
            if (gpu_gradient_has_odd_keys(c))
                x[of] = LLVMBuildSelect(b, gpu_gradient_is_key(c, key), x[of],
                                        gpu_tensor_number(&c->t, 0), "");
        }
    }
}

static void store_changes(struct gpu_gradient *c, const struct turned *t, LLVMValueRef first,
                          const LLVMValueRef *pairs)
{
    LLVMValueRef row = sum_of(c, times(c, t->warp, ROWS), c->t.row);
    LLVMValueRef query = sum_of(c, first, c->t.column);
    LLVMValueRef at = sum_of(c, times(c, row, t->change_pitch), times(c, query, 2));
    for (int tile = 0; tile < TILES; tile++)
        for (int i = 0; i < PART / 8; i++)
            for (int side = 0; side < 2; side++) {
                int64_t offset =
                    t->change + (tile * GPU_TILE + side * 8) * t->change_pitch + i * 16;
                LLVMBuildStore(c->b, pairs[(tile * PART / 8 + i) * 2 + side],
                               gpu_tensor_shared_at(&c->t, gpu_tensor_plus(&c->t, at, offset)));
            }
}

static void take_part(struct gpu_gradient *c, struct turned *t, LLVMValueRef half,
                      LLVMValueRef query, LLVMValueRef first)
{
    LLVMValueRef s[TILES * PART / 2], p[TILES * PART / 2], pairs[TILES * PART / 4];
    LLVMValueRef of_warp = times(c, t->warp, ROWS * c->k.pitch);
    LLVMValueRef q = sum_of(c, half, times(c, first, c->q.pitch));
    LLVMValueRef dy = gpu_tensor_plus(&c->t, sum_of(c, half, times(c, first, c->dy.pitch)),
                                      AT_ONCE * c->q.pitch);
    gpu_gradient_multiply_rows(c, NULL, sum_of(c, of_warp, t->key_row[1]), c->k.pitch,
                               c->depths, sum_of(c, q, t->key_row[0]), s);
    weigh_part(c, t, half, query, first, s);
    gpu_gradient_round_all(c, s, pairs);
    gpu_gradient_add_rows(c, pairs, sum_of(c, dy, t->value_row[1]), c->dy.pitch, c->columns / 8,
                          t->dv);
    of_warp = gpu_tensor_plus(&c->t, times(c, t->warp, ROWS * c->v.pitch), t->values);
    gpu_gradient_multiply_rows(c, NULL, sum_of(c, of_warp, t->value_row[1]), c->v.pitch,
                               c->widths, sum_of(c, dy, t->value_row[0]), p);
    change_part(c, t, half, query, first, s, p);
    gpu_gradient_round_all(c, p, pairs);
    gpu_gradient_add_rows(c, pairs, sum_of(c, q, t->key_row[1]), c->q.pitch, c->depth / 8,
                          t->dk);
    store_changes(c, t, first, pairs);
}

// The warp's first query of the step, and first column.
static void find_warp(struct gpu_gradient *c, const struct turned *t, LLVMValueRef *query,
                      LLVMValueRef *column)
{
    LLVMValueRef n = whole(c, t->groups);
    *query = times(c, LLVMBuildUDiv(c->b, t->warp, n, ""), t->tiles * GPU_TILE);
    *column = times(c, LLVMBuildURem(c->b, t->warp, n, ""), c->depths / t->groups * 16);
}

// Two of the thread's numbers of dq, from or to what the block of threads has of it.
static LLVMValueRef gradient_address(struct gpu_gradient *c, const struct turned *t,
                                     LLVMValueRef query, LLVMValueRef column, int row,
                                     int eighth)
{
    LLVMValueRef at =
        sum_of(c, gpu_tensor_plus(&c->t, query, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
    return gpu_gradient_part_of(
        c, t->split, at, gpu_tensor_plus(&c->t, sum_of(c, column, c->t.column), eighth * 8));
}

static void move_dq(struct gpu_gradient *c, const struct turned *t, LLVMValueRef turn,
                    bool stores)
{
    LLVMValueRef query, column;
    LLVMTypeRef two = LLVMVectorType(c->f32, 2);
    int eighths = c->depths / t->groups * 2;
    find_warp(c, t, &query, &column);
    query = sum_of(c, query, times(c, turn, AT_ONCE));
    for (int row = 0; row < 2 * t->tiles; row++)
        for (int i = 0; i < eighths; i++) {
            LLVMValueRef *own = t->dq + (row / 2 * eighths + i) * 4 + row % 2 * 2;
            LLVMValueRef at = gradient_address(c, t, query, column, row, i), x;
            x = stores ? LLVMGetUndef(two) : LLVMBuildLoad2(c->b, two, at, "");
            for (int k = 0; k < 2; k++)
                if (stores)
                    x = LLVMBuildInsertElement(c->b, x, gpu_tensor_load_f32(&c->t, own[k]),
                                               gpu_i32(c->l, k), "");
                else
                    LLVMBuildStore(c->b, LLVMBuildExtractElement(c->b, x, gpu_i32(c->l, k), ""),
                                   own[k]);
            if (stores)
                LLVMBuildStore(c->b, x, at);
        }
}

static void add_dq(struct gpu_gradient *c, const struct turned *t)
{
    LLVMValueRef query, column, x[4], y[4], sum[4];
    int eighths = c->depths / t->groups * 2;
    find_warp(c, t, &query, &column);
    LLVMValueRef left =
        gpu_tensor_plus(&c->t, sum_of(c, t->change_row, times(c, query, 2)), t->change);
    LLVMValueRef right = sum_of(c, t->key_column, times(c, column, 2));
    LLVMValueRef all[TILES][4];
    struct cg_loop loop =
        cg_loop_open(c->l, whole(c, 0), whole(c, (int64_t)c->warps * ROWS), whole(c, DQ_KEYS));
    left = sum_of(c, left, times(c, loop.index, t->change_pitch));
    right = sum_of(c, right, times(c, loop.index, c->k.pitch));
    for (int key = 0; key < DQ_KEYS; key += 16) {
        for (int tile = 0; tile < t->tiles; tile++) {
            gpu_tensor_load(&c->t,
                            gpu_tensor_plus(&c->t, left, key * t->change_pitch + tile * 32),
                            true, x);
            memcpy(all[tile], x, sizeof x);
        }
        for (int w = 0; w < eighths / 2; w++) {
            gpu_tensor_load(&c->t, gpu_tensor_plus(&c->t, right, key * c->k.pitch + w * 32),
                            true, y);
            for (int tile = 0; tile < t->tiles; tile++)
                for (int half = 0; half < 2; half++) {
                    LLVMValueRef *to = t->dq + (tile * eighths + 2 * w + half) * 4;
                    for (int i = 0; i < 4; i++)
                        sum[i] = gpu_tensor_load_f32(&c->t, to[i]);
                    gpu_tensor_multiply(&c->t, sum, all[tile], y + 2 * half);
                    for (int i = 0; i < 4; i++)
                        LLVMBuildStore(c->b, sum[i], to[i]);
                }
        }
    }
    cg_loop_close(c->l, &loop);
}

static void take_queries(struct gpu_gradient *c, struct turned *t, LLVMValueRef turn,
                         LLVMValueRef is_first)
{
    LLVMValueRef half = half_of(c, t->halves, t->half, turn), query = times(c, turn, AT_ONCE);
    struct cg_loop parts = cg_loop_open(c->l, whole(c, 0), whole(c, AT_ONCE), whole(c, PART));
    take_part(c, t, half, query, parts.index);
    cg_loop_close(c->l, &parts);
    gpu_gradient_set_all(c, t->dq, t->tiles * (c->depths / t->groups) * 8, 0);
    struct cg_branch again = cg_if_open(c->l, LLVMBuildNot(c->b, is_first, ""));
    move_dq(c, t, turn, false);
    cg_if_close(c->l, &again);
    gpu_sync(c->l); // all changes are there
    add_dq(c, t);
    move_dq(c, t, turn, true);
}

// dk or dv, rows of keys.
static void store_keys(struct gpu_gradient *c, const struct turned *t,
                       const struct nest_statement *put, nest_id key_axis, nest_id column_axis,
                       int64_t eighths, LLVMValueRef *from)
{
    struct cg_lowering *l = c->l;
    for (int row = 0; row < 2 * TILES; row++) {
        LLVMValueRef key = sum_of(
            c, gpu_tensor_plus(&c->t, t->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row);
        struct cg_branch inside = cg_if_open(l, gpu_gradient_is_key(c, key));
        l->axes[key_axis] = key;
        l->axes[column_axis] = c->t.column;
        LLVMValueRef to = cg_index_first(l, &put->index);
        for (int i = 0; i < eighths; i++) {
            LLVMValueRef *x = from + (row / 2 * eighths + i) * 4 + row % 2 * 2;
            LLVMValueRef at = cg_at(l, l->module->i16, cg_buffer_base(l, put->buffer),
                                    gpu_tensor_plus(&c->t, to, 8 * i));
            LLVMBuildStore(c->b,
                           gpu_tensor_round(&c->t, gpu_tensor_load_f32(&c->t, x[0]),
                                            gpu_tensor_load_f32(&c->t, x[1])),
                           at);
        }
        cg_if_close(l, &inside);
    }
}

static void take_keys(struct gpu_gradient *c, struct turned *t, LLVMValueRef block)
{
    struct cg_lowering *l = c->l;
    const struct attention_gradient *g = &c->g;
    int64_t keys = (int64_t)c->warps * ROWS, turns = (c->queries + AT_ONCE - 1) / AT_ONCE;
    LLVMValueRef first = times(c, block, keys);
    t->first = sum_of(c, first, times(c, t->warp, ROWS));
    gpu_sync(l); // all threads are done with the keys before
    gpu_tensor_fetch(&c->t, &c->k, first, keys, whole(c, 0));
    gpu_tensor_fetch(&c->t, &c->v, first, keys, whole(c, t->values));
    fetch_queries(c, t, whole(c, 0));
    gpu_gradient_set_all(c, t->dk, TILES * (c->depth / 8) * 4, 0);
    gpu_gradient_set_all(c, t->dv, TILES * (c->columns / 8) * 4, 0);
    LLVMValueRef is_first = LLVMBuildICmp(c->b, LLVMIntEQ, block, t->split, "");
    struct cg_loop loop = cg_loop_open(l, whole(c, 0), whole(c, turns), whole(c, 1));
    gpu_tensor_wait(&c->t);
    gpu_sync(l); // this turn's rows are there, and all threads are done with the last turn's
    LLVMValueRef next = gpu_tensor_plus(&c->t, loop.index, 1);
    struct cg_branch more =
        cg_if_open(l, LLVMBuildICmp(c->b, LLVMIntSLT, next, whole(c, turns), ""));
    fetch_queries(c, t, next);
    cg_if_close(l, &more);
    take_queries(c, t, loop.index, is_first);
    cg_loop_close(l, &loop);
    gpu_sync(l); // what is stored may stand where others were still reading
    store_keys(c, t, g->dk, g->result_key, g->dk_column, c->depth / 8, t->dk);
    store_keys(c, t, g->dv, g->result_key, g->dv_column, c->columns / 8, t->dv);
}

void gpu_gradient_keys(struct gpu_gradient *c, struct cg_kernel *out, uint32_t at)
{
    struct cg_lowering *l = c->l;
    struct turned t = {0};
    lay_out(c, &t);
    struct cg_kernel_step *step =
        gpu_gradient_open_function(c, out, "_keys", (unsigned)c->warps * GPU_WARP, at);
    c->t = gpu_tensor_make(l, c->g.a.q->dtype, (unsigned)c->warps, (uint64_t)t.bytes);
    t.groups = c->depths % 2 ? 1 : 2;
    t.tiles = AT_ONCE / GPU_TILE * t.groups / c->warps;
    t.dk = gpu_gradient_room(c, TILES * (c->depth / 8) * 4);
    t.dv = gpu_gradient_room(c, TILES * (c->columns / 8) * 4);
    t.dq = gpu_gradient_room(c, (int64_t)t.tiles * (c->depths / t.groups) * 8);
    for (int i = 0; i < 2; i++) {
        t.key_row[i] = gpu_tensor_matrix(&c->t, c->k.pitch, i);
        t.value_row[i] = gpu_tensor_matrix(&c->t, c->v.pitch, i);
    }
    t.key_column = t.key_row[1];
    t.change_row = gpu_tensor_matrix(&c->t, t.change_pitch, false);
    t.warp = gpu_gradient_warp_of(c);
    struct cg_loop chunk = gpu_chunks_open(l, c->batches * c->splits);
    t.split = gpu_gradient_set_batch(c, chunk.index, c->splits);
    int64_t keys = (int64_t)c->warps * ROWS, blocks = (c->keys + keys - 1) / keys;
    struct cg_loop loop = cg_loop_open(l, t.split, whole(c, blocks), whole(c, c->splits));
    take_keys(c, &t, loop.index);
    cg_loop_close(l, &loop);
    cg_loop_close(l, &chunk);
    gpu_gradient_close_function(c, step, c->batches * c->splits);
}
