// SPDX-License-Identifier: Apache-2.0
// Attention (schedule/kernels/attention.h) by blocks of keys, with tensor cores.
//
// A block of threads has some queries, a warp 16 or 32 of them, and goes through the keys 64 at a time, a
// turn: keys and values of the next turn are on their way to shared memory meanwhile.  Scores, what f
// makes of them and the weights stay in registers, as the tensor cores leave and take them: of a tile
// of 16 by 8 a thread has columns 2c and 2c + 1 of rows r and r + 8, where r is its number in the warp
// by 4 and c the rest.  Where the target has them and rows are whole panels, warpgroups multiply
// (warpgroup.c), and queries are in shared memory.
//
// A row has a reference, the largest f up to some turn, the sum of exp(f - reference) and the sum of
// weights times values.  A turn is weighed by the references of before, and the largest f is looked for only
// where a sum of the new weights is more than 2^GROWTH, or a row has seen nothing but -infinity: then all
// rows of the warp get their largest so far, the turn is weighed again and both sums are scaled.  So weights
// are not divided by their sum before they are rounded, but the result is.
//
// One shape: attention (docs/nests.md).
#include "codegen/gpu/attention.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/tensor.h"
#include "codegen/gpu/warpgroup.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu.h"

#include "schedule/kernels/attention.h"

#include <math.h>
#include <string.h>

#define KEYS 64 // of a turn
#define MOST_TILES 2

#define LOG2_E 1.4426950408889634
#define GROWTH 8 // of a largest times log2 e, before sums are scaled

struct code {
    struct cg_lowering *l;
    struct gpu_tensor t;
    struct attention a;
    LLVMBuilderRef b;
    LLVMTypeRef f32;
    int64_t queries, keys, depth, columns;
    bool is_scaled;           // f is `scale` times the score, which exponents take as it is
    double scale;             // else 1
    bool is_grouped, is_long; // products by warpgroups; rows of several panels
    int warps, tiles;         // of a block; of queries, of a warp
    int turn;                 // keys of a turn
    int64_t turns;
    int depths, widths;          // depth and columns by 16
    struct gpu_tensor_rows k, v; // of a turn
    int64_t half;                // bytes of both, of which there are two
    struct gpu_tensor_rows
        in_shared;          // queries, where warpgroups multiply them, in front of the halves
    int64_t halves;         // bytes of them
    struct gpu_panels in_q; // of the warpgroup
    LLVMValueRef matrix[2]; // i64: where the thread's row of a matrix begins, keys, values
    LLVMValueRef first_of_block, first; // query, of the warp
    LLVMValueRef *q;                    // [tile][depths][4]
    struct cg_value **known;        // by row: values of the nest that its keys have in common
    LLVMValueRef *sum, *top, *part; // memory: [tile][columns / 8][4]; of rows: largest, sum
    LLVMValueRef *next,
        *factor;           // memory, of rows: the sum with the turn, what scales sums before
    LLVMValueRef *weights; // memory: pairs, [tile][turn / 8][2]
};

// ---- Keys and values on their way

static LLVMValueRef half_of(struct code *c, LLVMValueRef turn)
{
    LLVMValueRef odd = LLVMBuildAnd(c->b, turn, cg_int(c->l->module, 1), "");
    return gpu_tensor_plus(&c->t, LLVMBuildMul(c->b, odd, cg_int(c->l->module, c->half), ""),
                           c->halves);
}

static LLVMValueRef first_key(struct code *c, LLVMValueRef turn)
{
    return LLVMBuildMul(c->b, turn, cg_int(c->l->module, KEYS), "");
}

static LLVMValueRef values_of(struct code *c, LLVMValueRef half)
{
    return gpu_tensor_plus(&c->t, half, KEYS * c->k.pitch);
}

static void fetch_keys(struct code *c, LLVMValueRef turn)
{
    gpu_tensor_fetch(&c->t, &c->k, first_key(c, turn), KEYS, half_of(c, turn));
}

static void fetch_values(struct code *c, LLVMValueRef turn)
{
    gpu_tensor_fetch(&c->t, &c->v, first_key(c, turn), KEYS, values_of(c, half_of(c, turn)));
}

// Starts what `fetch` does of the turn behind, where there is one.
static void fetch_next(struct code *c, LLVMValueRef turn,
                       void (*fetch)(struct code *, LLVMValueRef))
{
    LLVMValueRef next = gpu_tensor_plus(&c->t, turn, 1), turns = cg_int(c->l->module, c->turns);
    struct cg_branch more = cg_if_open(c->l, LLVMBuildICmp(c->b, LLVMIntSLT, next, turns, ""));
    fetch(c, next);
    cg_if_close(c->l, &more);
}

// ---- Products

// Scores of the warp's queries and the half's keys, [tile][KEYS / 8][4].
static void make_scores(struct code *c, LLVMValueRef half, LLVMValueRef *s)
{
    LLVMValueRef at = LLVMBuildAdd(c->b, half, c->matrix[0], ""), y[4];
    for (int i = 0; i < c->tiles * KEYS / 8 * 4; i++)
        s[i] = gpu_tensor_number(&c->t, 0);
    // Sums that follow one another are other ones, for each waits for what was added to it.
    for (int d = 0; d < c->depths; d++)
        for (int j = 0; j < KEYS / 16; j++) {
            gpu_tensor_load(&c->t, gpu_tensor_plus(&c->t, at, j * 16 * c->k.pitch + d * 32),
                            false, y);
            for (int t = 0; t < c->tiles; t++)
                for (int side = 0; side < 2; side++)
                    gpu_tensor_multiply(&c->t, s + (t * KEYS / 8 + 2 * j + side) * 4,
                                        c->q + (t * c->depths + d) * 4, y + 2 * side);
        }
}

// Weights, [tile][KEYS / 8][2] pairs, times the half's values.
static void add_values(struct code *c, LLVMValueRef half, const LLVMValueRef *weights)
{
    int eighths = (int)(c->columns / 8);
    LLVMValueRef at = LLVMBuildAdd(c->b, half, c->matrix[1], ""), y[4], sum[4];
    at = values_of(c, at);
    for (int j = 0; j < KEYS / 16; j++)
        for (int w = 0; w < c->widths; w++) {
            gpu_tensor_load(&c->t, gpu_tensor_plus(&c->t, at, j * 16 * c->v.pitch + w * 32),
                            true, y);
            for (int t = 0; t < c->tiles; t++)
                for (int side = 0; side < 2 && 2 * w + side < eighths; side++) {
                    LLVMValueRef *to = c->sum + (t * eighths + 2 * w + side) * 4;
                    for (int i = 0; i < 4; i++)
                        sum[i] = gpu_tensor_load_f32(&c->t, to[i]);
                    gpu_tensor_multiply(&c->t, sum, weights + (t * KEYS / 8 + 2 * j) * 2,
                                        y + 2 * side);
                    for (int i = 0; i < 4; i++)
                        LLVMBuildStore(c->b, sum[i], to[i]);
                }
        }
}

// ---- Rows

static LLVMValueRef sum_of(struct gpu_tensor *t, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFAdd(t->b, x, y, "");
}

// Of the four threads that have a row.
static LLVMValueRef of_row(struct code *c, LLVMValueRef x,
                           LLVMValueRef (*join)(struct gpu_tensor *, LLVMValueRef,
                                                LLVMValueRef))
{
    for (int by = 1; by <= 2; by *= 2)
        x = join(&c->t, x, gpu_tensor_other(&c->t, x, by));
    return x;
}

static LLVMValueRef query_of(struct code *c, int row)
{
    return LLVMBuildAdd(
        c->b, gpu_tensor_plus(&c->t, c->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row, "");
}

// f of a score, in the nest's words.
static LLVMValueRef apply(struct code *c, LLVMValueRef score, LLVMValueRef key)
{
    struct cg_lowering *l = c->l;
    const struct nest_block *body = &l->nest->blocks.at[c->a.largest->body];
    LLVMValueRef x = score;
    l->axes[c->a.key] = c->keys % KEYS ? gpu_tensor_at_most(&c->t, key, c->keys - 1) : key;
    for (uint32_t i = 0; i < body->statements.count && !c->is_scaled; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (s->kind == NEST_LOAD && s->buffer == c->a.score)
            l->values[s->result].re = score;
        else if (s->kind != NEST_PUT && s->kind != NEST_YIELD)
            cg_lower_statement(l, body->statements.at[i]);
    }
    if (!c->is_scaled)
        x = l->values[c->a.value].re;
    if (c->keys % KEYS == 0)
        return x;
    LLVMValueRef is_key = LLVMBuildICmp(c->b, LLVMIntSLT, key, cg_int(l->module, c->keys), "");
    return LLVMBuildSelect(c->b, is_key, x, gpu_tensor_number(&c->t, -INFINITY), "");
}

// f of the scores of a row, elements 2 i and 2 i + 1 of which are 4 i and 4 i + 1 of s.
static void apply_to_row(struct code *c, int row, LLVMValueRef first_key, LLVMValueRef *s)
{
    c->l->values = c->known[row];
    c->l->axes[c->a.query] = gpu_tensor_at_most(&c->t, query_of(c, row), c->queries - 1);
    for (int i = 0; i < KEYS / 4; i++) {
        LLVMValueRef key = LLVMBuildAdd(
            c->b, gpu_tensor_plus(&c->t, first_key, i / 2 * 8 + i % 2), c->t.column, "");
        s[i / 2 * 4 + i % 2] = apply(c, s[i / 2 * 4 + i % 2], key);
    }
}

// What is largest of f of the row and of those before, times log2 e, so that what is rounded there is so once.
static LLVMValueRef largest_of(struct code *c, int row, const LLVMValueRef *s)
{
    LLVMValueRef top = s[0];
    for (int i = 1; i < KEYS / 4; i++)
        top = gpu_tensor_largest(&c->t, top, s[i / 2 * 4 + i % 2]);
    top = LLVMBuildFMul(c->b, of_row(c, top, gpu_tensor_largest),
                        gpu_tensor_number(&c->t, c->scale * LOG2_E), "");
    return gpu_tensor_largest(&c->t, gpu_tensor_load_f32(&c->t, c->top[row]), top);
}

// Weights of a row relative to its reference, in the registers of its scores, and their sum.
static LLVMValueRef weigh_row(struct code *c, int row, const LLVMValueRef *s,
                              LLVMValueRef *weights)
{
    LLVMValueRef sum = NULL,
                 top = gpu_tensor_reference(&c->t, gpu_tensor_load_f32(&c->t, c->top[row]));
    for (int i = 0; i < KEYS / 4; i++) {
        int at = i / 2 * 4 + i % 2;
        weights[at] = gpu_tensor_exponential(&c->t, s[at],
                                             gpu_tensor_number(&c->t, c->scale * LOG2_E), top);
        sum = sum ? LLVMBuildFAdd(c->b, sum, weights[at], "") : weights[at];
    }
    return sum;
}

static void keep_weights(struct code *c, const LLVMValueRef *weights)
{
    for (int i = 0; i < c->tiles * KEYS / 4; i++)
        LLVMBuildStore(c->b, gpu_tensor_round(&c->t, weights[2 * i], weights[2 * i + 1]),
                       c->weights[i]);
}

static int of_tile(int row) { return row / 2 * (KEYS / 2) + row % 2 * 2; }

// Whether a row of the warp has outgrown its reference, or has none.
static LLVMValueRef is_outgrown(struct code *c, const LLVMValueRef *sums)
{
    LLVMValueRef any = LLVMConstInt(c->l->module->i1, 0, 0);
    for (int row = 0; row < 2 * c->tiles; row++) {
        LLVMValueRef is_far = LLVMBuildFCmp(c->b, LLVMRealUGT, sums[row],
                                            gpu_tensor_number(&c->t, 1 << GROWTH), "");
        LLVMValueRef is_lowest =
            LLVMBuildFCmp(c->b, LLVMRealOEQ, gpu_tensor_load_f32(&c->t, c->top[row]),
                          gpu_tensor_number(&c->t, -INFINITY), "");
        any = LLVMBuildOr(c->b, any, LLVMBuildOr(c->b, is_far, is_lowest, ""), "");
    }
    LLVMValueRef arguments[] = {gpu_i32(c->l, -1), any};
    return gpu_tensor_call(&c->t, "llvm.nvvm.vote.any.sync", NULL, 2, arguments);
}

static void scale_sums(struct code *c, LLVMValueRef any)
{
    struct cg_branch far = cg_if_open(c->l, any);
    for (int i = 0; i < c->tiles * (c->columns / 8) * 4; i++) {
        LLVMValueRef factor =
            gpu_tensor_load_f32(&c->t, c->factor[i / 4 / (c->columns / 8) * 2 + i % 4 / 2]);
        LLVMBuildStore(c->b,
                       LLVMBuildFMul(c->b, gpu_tensor_load_f32(&c->t, c->sum[i]), factor, ""),
                       c->sum[i]);
    }
    cg_if_close(c->l, &far);
}

// ---- A block of queries

static void load_queries(struct code *c)
{
    struct cg_lowering *l = c->l;
    const struct nest_statement *q = c->a.q;
    for (int row = 0; row < 2 * c->tiles; row++) {
        l->axes[c->a.query] = gpu_tensor_at_most(&c->t, query_of(c, row), c->queries - 1);
        l->axes[c->a.depth] = cg_int(l->module, 0);
        LLVMValueRef from = LLVMBuildAdd(c->b, cg_index_first(l, &q->index), c->t.column, "");
        for (int i = 0; i < 2 * c->depths; i++) {
            LLVMValueRef at = cg_at(l, l->module->i16, cg_buffer_base(l, q->buffer),
                                    gpu_tensor_plus(&c->t, from, 8 * i));
            LLVMValueRef pair =
                8 * i < c->depth ? LLVMBuildLoad2(c->b, c->t.i32, at, "") : gpu_i32(l, 0);
            c->q[(row / 2 * c->depths + i / 2) * 4 + i % 2 * 2 + row % 2] = pair;
        }
    }
}

// The same of warpgroups, to shared memory.
static void fetch_queries(struct code *c)
{
    int64_t rows = (int64_t)c->warps * GPU_TILE;
    gpu_tensor_fetch(&c->t, &c->in_shared, c->first_of_block, rows, cg_int(c->l->module, 0));
    LLVMValueRef group = LLVMBuildLShr(c->b, c->l->gpu->thread, gpu_i32(c->l, 7), "");
    LLVMValueRef at = LLVMBuildMul(
        c->b, gpu_wide(c->l, group),
        cg_int(c->l->module, (int64_t)GPU_WARPGROUP * GPU_TILE * GPU_PANEL_ROW), "");
    c->in_q = (struct gpu_panels){at, rows, false};
}

// What does not depend on keys, for each row.
static void lower_rows(struct code *c)
{
    struct cg_lowering *l = c->l;
    const struct nest_block *body = &l->nest->blocks.at[c->a.loop->body];
    struct cg_value *values = l->values;
    for (int row = 0; row < 2 * c->tiles; row++) {
        memcpy(c->known[row], values, l->nest->values.count * sizeof *values);
        l->values = c->known[row];
        l->axes[c->a.query] = gpu_tensor_at_most(&c->t, query_of(c, row), c->queries - 1);
        for (uint32_t i = 0; cg_statement(l, body->statements.at[i]) != c->a.largest; i++) {
            enum nest_kind kind = cg_statement(l, body->statements.at[i])->kind;
            if (kind != NEST_MAP)
                cg_lower_statement(l, body->statements.at[i]);
        }
        LLVMBuildStore(c->b, gpu_tensor_number(&c->t, -INFINITY), c->top[row]);
        LLVMBuildStore(c->b, gpu_tensor_number(&c->t, 0), c->part[row]);
    }
    for (int i = 0; i < c->tiles * (int)(c->columns / 8) * 4; i++)
        LLVMBuildStore(c->b, gpu_tensor_number(&c->t, 0), c->sum[i]);
    l->values = values;
}

static void store_rows(struct code *c)
{
    struct cg_lowering *l = c->l;
    const struct nest_statement *put = c->a.put;
    for (int row = 0; row < 2 * c->tiles; row++) {
        LLVMValueRef query = query_of(c, row);
        LLVMValueRef sum = of_row(c, gpu_tensor_load_f32(&c->t, c->part[row]), sum_of);
        LLVMValueRef scale = LLVMBuildFDiv(c->b, gpu_tensor_number(&c->t, 1), sum, "");
        LLVMValueRef limit = cg_int(l->module, c->queries);
        struct cg_branch inside =
            cg_if_open(l, LLVMBuildICmp(c->b, LLVMIntSLT, query, limit, ""));
        l->axes[c->a.query] = query;
        l->axes[c->a.column] = c->t.column;
        LLVMValueRef to = cg_index_first(l, &put->index);
        for (int i = 0; i < c->columns / 8; i++) {
            LLVMValueRef x[2];
            for (int k = 0; k < 2; k++)
                x[k] = LLVMBuildFMul(
                    c->b,
                    gpu_tensor_load_f32(
                        &c->t, c->sum[(row / 2 * (c->columns / 8) + i) * 4 + row % 2 * 2 + k]),
                    scale, "");
            LLVMValueRef at = cg_at(l, l->module->i16, cg_buffer_base(l, put->buffer),
                                    gpu_tensor_plus(&c->t, to, 8 * i));
            LLVMBuildStore(c->b, gpu_tensor_round(&c->t, x[0], x[1]), at);
        }
        cg_if_close(l, &inside);
    }
}

// Weights of scores.  Where a row has outgrown its reference, all of the warp get their largest so far as one:
// whether, so that what is summed up of values is still to be scaled by their factors.
static LLVMValueRef weigh(struct code *c, LLVMValueRef turn, LLVMValueRef *s)
{
    struct cg_value *values = c->l->values;
    int rows = 2 * c->tiles;
    LLVMValueRef *weights = arena_array(c->l->arena, LLVMValueRef, c->tiles * KEYS / 2);
    LLVMValueRef sums[2 * MOST_TILES];
    for (int row = 0; row < rows; row++) {
        apply_to_row(c, row, first_key(c, turn), s + of_tile(row));
        sums[row] = weigh_row(c, row, s + of_tile(row), weights + of_tile(row));
    }
    for (int row = 0; row < rows; row++)
        LLVMBuildStore(
            c->b, LLVMBuildFAdd(c->b, gpu_tensor_load_f32(&c->t, c->part[row]), sums[row], ""),
            c->next[row]);
    keep_weights(c, weights);
    LLVMValueRef any = is_outgrown(c, sums);
    struct cg_branch far = cg_if_open(c->l, any);
    for (int row = 0; row < rows; row++) {
        LLVMValueRef top = largest_of(c, row, s + of_tile(row));
        LLVMValueRef factor = gpu_tensor_exponential(
            &c->t, gpu_tensor_load_f32(&c->t, c->top[row]), gpu_tensor_number(&c->t, 1),
            gpu_tensor_reference(&c->t, top));
        LLVMBuildStore(c->b, top, c->top[row]);
        LLVMBuildStore(c->b, factor, c->factor[row]);
        sums[row] = weigh_row(c, row, s + of_tile(row), weights + of_tile(row));
        LLVMValueRef part =
            LLVMBuildFMul(c->b, gpu_tensor_load_f32(&c->t, c->part[row]), factor, "");
        LLVMBuildStore(c->b, LLVMBuildFAdd(c->b, part, sums[row], ""), c->next[row]);
    }
    keep_weights(c, weights);
    cg_if_close(c->l, &far);
    for (int row = 0; row < rows; row++)
        LLVMBuildStore(c->b, gpu_tensor_load_f32(&c->t, c->next[row]), c->part[row]);
    c->l->values = values;
    return any;
}

// Copies of the thread's are there, and all threads are done with what they replaced.
static void finish_copies(struct code *c)
{
    gpu_tensor_wait(&c->t);
    if (c->is_grouped)
        gpu_warpgroup_publish(&c->t);
    gpu_sync(c->l);
}

static void load_weights(struct code *c, LLVMValueRef *weights)
{
    for (int i = 0; i < c->tiles * KEYS / 4; i++)
        weights[i] = LLVMBuildLoad2(c->b, c->t.i32, c->weights[i], "");
}

static void go_through_keys(struct code *c)
{
    struct cg_loop loop = cg_loop_open(c->l, cg_int(c->l->module, 0),
                                       cg_int(c->l->module, c->turns), cg_int(c->l->module, 1));
    LLVMValueRef *s = arena_array(c->l->arena, LLVMValueRef, c->tiles * KEYS / 2);
    LLVMValueRef *weights = arena_array(c->l->arena, LLVMValueRef, c->tiles * KEYS / 4);
    LLVMValueRef half = half_of(c, loop.index);
    finish_copies(c);
    fetch_next(c, loop.index, fetch_keys);
    fetch_next(c, loop.index, fetch_values);
    make_scores(c, half, s);
    scale_sums(c, weigh(c, loop.index, s));
    load_weights(c, weights);
    add_values(c, half, weights);
    cg_loop_close(c->l, &loop);
}

// ---- By warpgroups: the scores of a turn and the values of the one before are multiplied together, and the
// tensor cores are at work on the values while scores become weights.

static void start_scores(struct code *c, LLVMValueRef turn, LLVMValueRef *s)
{
    gpu_warpgroup_start(&c->t, s, KEYS / 2, false, c->depths, NULL, &c->in_q,
                        &(struct gpu_panels){half_of(c, turn), KEYS, false});
}

static void start_values(struct code *c, LLVMValueRef turn, LLVMValueRef *sum,
                         LLVMValueRef *weights)
{
    load_weights(c, weights);
    for (int i = 0; i < c->columns / 2; i++)
        sum[i] = gpu_tensor_load_f32(&c->t, c->sum[i]);
    gpu_warpgroup_start(&c->t, sum, (int)c->columns / 2, true, KEYS / 16, weights, NULL,
                        &(struct gpu_panels){values_of(c, half_of(c, turn)), KEYS, true});
}

static void finish_values(struct code *c, LLVMValueRef *sum, const LLVMValueRef *weights)
{
    gpu_warpgroup_finish(&c->t, sum, (int)c->columns / 2, 0, KEYS / 4, weights);
    for (int i = 0; i < c->columns / 2; i++)
        LLVMBuildStore(c->b, sum[i], c->sum[i]);
}

static void go_through_keys_grouped(struct code *c)
{
    LLVMValueRef *s = arena_array(c->l->arena, LLVMValueRef, KEYS / 2);
    LLVMValueRef *sum = arena_array(c->l->arena, LLVMValueRef, c->columns / 2);
    LLVMValueRef *weights = arena_array(c->l->arena, LLVMValueRef, KEYS / 4);
    LLVMValueRef zero = cg_int(c->l->module, 0), one = cg_int(c->l->module, 1);
    LLVMValueRef last = cg_int(c->l->module, c->turns - 1);
    finish_copies(c);
    fetch_next(c, zero, fetch_keys);
    fetch_values(c, zero);
    start_scores(c, zero, s);
    gpu_warpgroup_finish(&c->t, s, KEYS / 2, 0, 0, NULL);
    weigh(c, zero, s);
    struct cg_loop loop = cg_loop_open(c->l, one, cg_int(c->l->module, c->turns), one);
    finish_copies(c);
    fetch_next(c, loop.index, fetch_keys);
    fetch_values(c, loop.index);
    start_scores(c, loop.index, s);
    start_values(c, LLVMBuildSub(c->b, loop.index, one, ""), sum, weights);
    gpu_warpgroup_finish(&c->t, s, KEYS / 2, 1, 0, NULL);
    LLVMValueRef any = weigh(c, loop.index, s);
    finish_values(c, sum, weights);
    scale_sums(c, any);
    cg_loop_close(c->l, &loop);
    finish_copies(c);
    start_values(c, last, sum, weights);
    finish_values(c, sum, weights);
}

static void lower_queries(struct code *c)
{
    LLVMValueRef first = cg_int(c->l->module, 0);
    if (c->is_grouped)
        fetch_queries(c);
    else
        load_queries(c);
    fetch_keys(c, first);
    if (!c->is_grouped)
        fetch_values(c, first);
    lower_rows(c);
    if (c->is_grouped)
        go_through_keys_grouped(c);
    else
        go_through_keys(c);
    gpu_sync(c->l);
    store_rows(c);
}

// ---- The kernel

static LLVMValueRef *room(struct code *c, LLVMTypeRef type, int64_t count)
{
    LLVMValueRef *all = arena_array(c->l->arena, LLVMValueRef, count + 1);
    for (int64_t i = 0; i < count; i++)
        all[i] = cg_alloca(c->l, type, 1);
    return all;
}

// Whether f is the score times a positive power of two, or divided by one, so that it may as well be
// a part of the factor of exponents.
static void find_scale(struct code *c)
{
    const struct cg_lowering *l = c->l;
    const struct nest_value *values = l->nest->values.at;
    const struct nest_statement *s = cg_statement(l, values[c->a.value].statement);
    LLVMBool is_rounded;
    int exponent;
    c->scale = 1;
    if (s->kind != NEST_OP || s->dtype != JOT_F32 || (s->op != IR_div && s->op != IR_mul))
        return;
    const struct nest_statement *x = cg_statement(l, values[s->in[0]].statement);
    LLVMValueRef y = l->values[s->in[1]].re;
    if (x->kind != NEST_LOAD || x->buffer != c->a.score || !y || !LLVMIsAConstantFP(y))
        return;
    double by = LLVMConstRealGetDouble(y, &is_rounded);
    if (!(by >= 0x1p-20 && by <= 0x1p20) || frexp(by, &exponent) != 0.5)
        return;
    c->scale = s->op == IR_div ? 1 / by : by;
    c->is_scaled = true;
}

static void choose_sizes(struct code *c)
{
    const struct nest *n = c->l->nest;
    c->queries = n->axes.at[c->a.query].extent;
    c->keys = n->axes.at[c->a.key].extent;
    c->depth = n->axes.at[c->a.depth].extent;
    c->columns = n->axes.at[c->a.column].extent;
    c->is_grouped = n->threads[NEST_GROUP_THREADS] == MAP_WARPGROUP;
    c->tiles = (int)c->a.loop->turns;
    c->is_long = c->depth > GPU_PANEL || c->columns > GPU_PANEL;
    c->warps = (int)n->threads[NEST_BLOCK_THREADS] / GPU_WARP;
    c->turns = (c->keys + KEYS - 1) / KEYS;
    c->depths = (int)(c->depth + 15) / 16;
    c->widths = (int)(c->columns + 15) / 16;
    c->k = gpu_tensor_rows_of(c->l, c->a.k, c->a.key_of_k, c->a.depth, c->is_grouped);
    c->v = gpu_tensor_rows_of(c->l, c->a.v, c->a.key_of_v, c->a.column, c->is_grouped);
    c->half = KEYS * (c->k.pitch + c->v.pitch);
    c->in_shared = gpu_tensor_rows_of(c->l, c->a.q, c->a.query, c->a.depth, true);
    c->halves = c->is_grouped ? c->warps * GPU_TILE * c->in_shared.pitch : 0;
}

// The axes of the chunk and the first query of the warp.
static void set_query(struct code *c, LLVMValueRef chunk, int64_t blocks)
{
    struct cg_lowering *l = c->l;
    LLVMValueRef n = cg_int(l->module, blocks);
    LLVMValueRef block = LLVMBuildURem(c->b, chunk, n, ""), rest;
    rest = LLVMBuildUDiv(c->b, chunk, n, "");
    for (uint32_t i = c->a.loop->n_axes - 1; i-- > 0;) {
        nest_id axis = c->a.loop->axes[i];
        n = cg_int(l->module, l->nest->axes.at[axis].extent);
        l->axes[axis] = LLVMBuildURem(c->b, rest, n, "");
        rest = LLVMBuildUDiv(c->b, rest, n, "");
    }
    LLVMValueRef warp = LLVMBuildLShr(c->b, l->gpu->thread, gpu_i32(l, 5), "");
    LLVMValueRef of_block = LLVMBuildMul(
        c->b, block, cg_int(l->module, (int64_t)c->warps * GPU_TILE * c->tiles), "");
    LLVMValueRef of_warp = LLVMBuildMul(c->b, gpu_wide(l, warp),
                                        cg_int(l->module, (int64_t)GPU_TILE * c->tiles), "");
    c->first_of_block = of_block;
    c->first = LLVMBuildAdd(c->b, of_block, of_warp, "");
}

void gpu_attention_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct code c = {.l = l, .b = l->m.b, .f32 = l->module->f32};
    attention_find(l->nest, &c.a);
    choose_sizes(&c);
    l->gpu->group = l->gpu->block; // they wait for one another
    l->gpu->is_alone = true;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 0);
    gpu_lower_list(l, 0, at);
    find_scale(&c);
    c.t =
        gpu_tensor_make(l, c.a.q->dtype, (unsigned)c.warps, (uint64_t)(c.halves + 2 * c.half));
    int rows = 2 * c.tiles;
    c.q = arena_array(l->arena, LLVMValueRef, c.tiles * c.depths * 4);
    c.known = arena_array(l->arena, struct cg_value *, rows);
    for (int i = 0; i < rows; i++)
        c.known[i] = arena_array(l->arena, struct cg_value, l->nest->values.count + 1);
    c.sum = room(&c, c.f32, c.tiles * (c.columns / 8) * 4);
    c.top = room(&c, c.f32, rows);
    c.part = room(&c, c.f32, rows);
    c.next = room(&c, c.f32, rows);
    c.factor = room(&c, c.f32, rows);
    c.weights = room(&c, c.t.i32, c.tiles * KEYS / 4);
    c.matrix[0] = gpu_tensor_matrix(&c.t, c.k.pitch, false);
    c.matrix[1] = gpu_tensor_matrix(&c.t, c.v.pitch, true);
    int64_t queries = (int64_t)c.warps * GPU_TILE * c.tiles;
    int64_t blocks = (c.queries + queries - 1) / queries;
    int64_t chunks = cg_extent(l, c.a.loop) / c.queries * blocks;
    struct cg_loop chunk = gpu_chunks_open(l, chunks);
    set_query(&c, chunk.index, blocks);
    lower_queries(&c);
    cg_loop_close(l, &chunk);
    step->total = chunks;
    step->grain = 1;
    step->exact_grid = true;
    gpu_function_close(l, step);
}
