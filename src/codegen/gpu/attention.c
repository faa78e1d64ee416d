// SPDX-License-Identifier: Apache-2.0
// Attention (passes/attention.h) by blocks of keys, with tensor cores.
//
// A block of threads has some queries, a warp 16 or 32 of them, and goes through the keys 64 or 128 at a
// time, a turn: keys and values of the next turn are on their way to shared memory meanwhile.  Scores, what f
// makes of them and the weights stay in registers, as the tensor cores leave and take them: of a tile
// of 16 by 8 a thread has columns 2c and 2c + 1 of rows r and r + 8, where r is its number in the warp
// by 4 and c the rest.  Where the target has them and rows are whole panels, warpgroups multiply
// (warpgroup.c), and queries are in shared memory.
//
// A row has a reference, a largest f up to some turn, the sum of exp(f - reference) and the sum of
// weights times values.  When a largest has grown to more than 2^GROWTH times the weight of its reference,
// the references of the warp's rows become the largest so far, and both sums are scaled.  So weights are
// not divided by their sum before they are rounded, but the result is.
//
// One shape: attention (docs/nests.md).
#include "codegen/gpu/tensor.h"

#include "passes/attention.h"

#include <math.h>
#include <string.h>

#define WARPS 4
#define LEAST_GROUPS 2 // warpgroups of a block, of which a multiprocessor has two
#define MOST_GROUPS 3  // where sums of longer rows leave registers for one
#define KEYS 64        // of a turn
#define MORE_KEYS 128  // of warpgroups, where sums leave registers for them
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
    bool is_scaled;              // f is `scale` times the score, which exponents take as it is
    double scale;                // else 1
    bool is_grouped, is_long;    // products by warpgroups; rows of several panels
    int warps, tiles;            // of a block; of queries, of a warp
    int turn;                    // keys of a turn
    int depths, widths;          // depth and columns by 16
    struct gpu_tensor_rows k, v; // of a turn
    int64_t stage;               // bytes of both, of which there are two
    struct gpu_tensor_rows
        in_shared;          // queries, where warpgroups multiply them, in front of the stages
    int64_t stages;         // bytes of them
    struct gpu_panels in_q; // of the warpgroup
    LLVMValueRef matrix[2]; // i64: where the thread's row of a matrix begins, keys, values
    LLVMValueRef first_of_block, first; // query, of the warp
    LLVMValueRef *q;                    // [tile][depths][4]
    struct cg_value **known;        // by row: values of the nest that its keys have in common
    LLVMValueRef *sum, *top, *part; // memory: [tile][columns / 8][4]; of rows: largest, sum
};

static LLVMValueRef number(const struct code *c, double x) { return LLVMConstReal(c->f32, x); }

static LLVMValueRef plus(struct code *c, LLVMValueRef x, int64_t y)
{
    return gpu_tensor_plus(&c->t, x, y);
}

static LLVMValueRef load(struct code *c, LLVMValueRef at)
{
    return LLVMBuildLoad2(c->b, c->f32, at, "");
}

// ---- Keys and values on their way

static LLVMValueRef stage_of(struct code *c, LLVMValueRef turn)
{
    LLVMValueRef odd = LLVMBuildAnd(c->b, turn, cg_int(c->l->module, 1), "");
    return plus(c, LLVMBuildMul(c->b, odd, cg_int(c->l->module, c->stage), ""), c->stages);
}

static void fetch_turn(struct code *c, LLVMValueRef turn)
{
    LLVMValueRef place = stage_of(c, turn);
    LLVMValueRef key = LLVMBuildMul(c->b, turn, cg_int(c->l->module, c->turn), "");
    gpu_tensor_fetch(&c->t, &c->k, key, c->turn, place);
    gpu_tensor_fetch(&c->t, &c->v, key, c->turn, plus(c, place, c->turn * c->k.pitch));
}

// ---- Products

// Scores of the warp's queries and the stage's keys, [tile][c->turn / 8][4].
static void make_scores(struct code *c, LLVMValueRef stage, LLVMValueRef *s)
{
    if (c->is_grouped) {
        gpu_warpgroup_multiply(&c->t, s, c->turn / 2, false, c->depths, NULL, &c->in_q,
                               &(struct gpu_panels){stage, c->turn, false});
        return;
    }
    LLVMValueRef at = LLVMBuildAdd(c->b, stage, c->matrix[0], ""), y[4];
    for (int i = 0; i < c->tiles * c->turn / 8 * 4; i++)
        s[i] = number(c, 0);
    // Sums that follow one another are other ones, for each waits for what was added to it.
    for (int d = 0; d < c->depths; d++)
        for (int j = 0; j < c->turn / 16; j++) {
            gpu_tensor_load(&c->t, plus(c, at, j * 16 * c->k.pitch + d * 32), false, y);
            for (int t = 0; t < c->tiles; t++)
                for (int half = 0; half < 2; half++)
                    gpu_tensor_multiply(&c->t, s + (t * c->turn / 8 + 2 * j + half) * 4,
                                        c->q + (t * c->depths + d) * 4, y + 2 * half);
        }
}

static void add_values_grouped(struct code *c, LLVMValueRef stage, const LLVMValueRef *weights)
{
    int sums = (int)c->columns / 2;
    LLVMValueRef *sum = arena_array(c->l->arena, LLVMValueRef, sums);
    for (int i = 0; i < sums; i++)
        sum[i] = load(c, c->sum[i]);
    gpu_warpgroup_multiply(
        &c->t, sum, sums, true, c->turn / 16, weights, NULL,
        &(struct gpu_panels){plus(c, stage, c->turn * c->k.pitch), c->turn, true});
    for (int i = 0; i < sums; i++)
        LLVMBuildStore(c->b, sum[i], c->sum[i]);
}

// Weights, [tile][c->turn / 8][2] pairs, times the stage's values.
static void add_values(struct code *c, LLVMValueRef stage, const LLVMValueRef *weights)
{
    if (c->is_grouped) {
        add_values_grouped(c, stage, weights);
        return;
    }
    int eighths = (int)(c->columns / 8);
    LLVMValueRef at = LLVMBuildAdd(c->b, stage, c->matrix[1], ""), y[4], sum[4];
    at = plus(c, at, c->turn * c->k.pitch);
    for (int j = 0; j < c->turn / 16; j++)
        for (int w = 0; w < c->widths; w++) {
            gpu_tensor_load(&c->t, plus(c, at, j * 16 * c->v.pitch + w * 32), true, y);
            for (int t = 0; t < c->tiles; t++)
                for (int half = 0; half < 2 && 2 * w + half < eighths; half++) {
                    LLVMValueRef *to = c->sum + (t * eighths + 2 * w + half) * 4;
                    for (int i = 0; i < 4; i++)
                        sum[i] = load(c, to[i]);
                    gpu_tensor_multiply(&c->t, sum, weights + (t * c->turn / 8 + 2 * j) * 2,
                                        y + 2 * half);
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
    return LLVMBuildAdd(c->b, plus(c, c->first, row / 2 * GPU_TILE + row % 2 * 8), c->t.row,
                        "");
}

// f of a score, in the nest's words.
static LLVMValueRef apply(struct code *c, LLVMValueRef score, LLVMValueRef key)
{
    struct cg_lowering *l = c->l;
    const struct nest_block *body = &l->nest->blocks.at[c->a.largest->body];
    LLVMValueRef x = score;
    l->axes[c->a.key] = c->keys % c->turn ? gpu_tensor_at_most(&c->t, key, c->keys - 1) : key;
    for (uint32_t i = 0; i < body->statements.count && !c->is_scaled; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (s->kind == NEST_LOAD && s->buffer == c->a.score)
            l->values[s->result].re = score;
        else if (s->kind != NEST_PUT && s->kind != NEST_YIELD)
            cg_lower_statement(l, body->statements.at[i]);
    }
    if (!c->is_scaled)
        x = l->values[c->a.value].re;
    if (c->keys % c->turn == 0)
        return x;
    LLVMValueRef is_key = LLVMBuildICmp(c->b, LLVMIntSLT, key, cg_int(l->module, c->keys), "");
    return LLVMBuildSelect(c->b, is_key, x, number(c, -INFINITY), "");
}

// What exponents of a row are relative to: what is all -infinity up to here weighs nothing.
static LLVMValueRef reference_of(struct code *c, LLVMValueRef top)
{
    LLVMValueRef is_lowest = LLVMBuildFCmp(c->b, LLVMRealOEQ, top, number(c, -INFINITY), "");
    return LLVMBuildSelect(c->b, is_lowest, number(c, 0), top, "");
}

// f of the scores of a row, elements 2 i and 2 i + 1 of which are 4 i and 4 i + 1 of s; what is
// largest of them and of those before, times log2 e.
static LLVMValueRef apply_to_row(struct code *c, int row, LLVMValueRef first_key,
                                 LLVMValueRef *s)
{
    LLVMBuilderRef b = c->b;
    LLVMValueRef top = NULL;
    c->l->values = c->known[row];
    c->l->axes[c->a.query] = gpu_tensor_at_most(&c->t, query_of(c, row), c->queries - 1);
    for (int i = 0; i < c->turn / 4; i++) {
        LLVMValueRef key =
            LLVMBuildAdd(b, plus(c, first_key, i / 2 * 8 + i % 2), c->t.column, "");
        LLVMValueRef *x = &s[i / 2 * 4 + i % 2];
        *x = apply(c, *x, key);
        top = top ? gpu_tensor_largest(&c->t, top, *x) : *x;
    }
    // Times log2 e, so that what is rounded there is so once.
    top =
        LLVMBuildFMul(b, of_row(c, top, gpu_tensor_largest), number(c, c->scale * LOG2_E), "");
    return gpu_tensor_largest(&c->t, load(c, c->top[row]), top);
}

// The reference of the row is its largest from here on.
static void raise_row(struct code *c, int row, LLVMValueRef largest)
{
    LLVMValueRef factor = gpu_tensor_exponential(&c->t, load(c, c->top[row]), number(c, 1),
                                                 reference_of(c, largest));
    LLVMBuildStore(c->b, largest, c->top[row]);
    LLVMBuildStore(c->b, LLVMBuildFMul(c->b, load(c, c->part[row]), factor, ""), c->part[row]);
    for (int i = 0; i < c->columns / 8 * 2; i++) {
        int64_t at = (row / 2 * (c->columns / 8) + i / 2) * 4 + row % 2 * 2 + i % 2;
        LLVMBuildStore(c->b, LLVMBuildFMul(c->b, load(c, c->sum[at]), factor, ""), c->sum[at]);
    }
}

// Where a row of the warp has outgrown its reference, all get another one.
static void raise_rows(struct code *c, const LLVMValueRef *largest)
{
    LLVMValueRef any = LLVMConstInt(c->l->module->i1, 0, 0);
    for (int row = 0; row < 2 * c->tiles; row++) {
        LLVMValueRef most = LLVMBuildFAdd(c->b, load(c, c->top[row]), number(c, GROWTH), "");
        LLVMValueRef is_far = LLVMBuildFCmp(c->b, LLVMRealUGT, largest[row], most, "");
        any = LLVMBuildOr(c->b, any, is_far, "");
    }
    LLVMValueRef arguments[] = {gpu_i32(c->l, -1), any};
    any = gpu_tensor_call(&c->t, "llvm.nvvm.vote.any.sync", NULL, 2, arguments);
    struct cg_branch far = cg_if_open(c->l, any);
    for (int row = 0; row < 2 * c->tiles; row++)
        raise_row(c, row, largest[row]);
    cg_if_close(c->l, &far);
}

static void weigh_row(struct code *c, int row, LLVMValueRef *s)
{
    LLVMValueRef sum = load(c, c->part[row]), top = reference_of(c, load(c, c->top[row]));
    for (int i = 0; i < c->turn / 4; i++) {
        LLVMValueRef *x = &s[i / 2 * 4 + i % 2];
        *x = gpu_tensor_exponential(&c->t, *x, number(c, c->scale * LOG2_E), top);
        sum = LLVMBuildFAdd(c->b, sum, *x, "");
    }
    LLVMBuildStore(c->b, sum, c->part[row]);
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
            LLVMValueRef at =
                cg_at(l, l->module->i16, cg_buffer_base(l, q->buffer), plus(c, from, 8 * i));
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
        LLVMBuildStore(c->b, number(c, -INFINITY), c->top[row]);
        LLVMBuildStore(c->b, number(c, 0), c->part[row]);
    }
    for (int i = 0; i < c->tiles * (int)(c->columns / 8) * 4; i++)
        LLVMBuildStore(c->b, number(c, 0), c->sum[i]);
    l->values = values;
}

static void store_rows(struct code *c)
{
    struct cg_lowering *l = c->l;
    const struct nest_statement *put = c->a.put;
    for (int row = 0; row < 2 * c->tiles; row++) {
        LLVMValueRef query = query_of(c, row);
        LLVMValueRef sum = of_row(c, load(c, c->part[row]), sum_of);
        LLVMValueRef scale = LLVMBuildFDiv(c->b, number(c, 1), sum, "");
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
                    load(c, c->sum[(row / 2 * (c->columns / 8) + i) * 4 + row % 2 * 2 + k]),
                    scale, "");
            LLVMValueRef at =
                cg_at(l, l->module->i16, cg_buffer_base(l, put->buffer), plus(c, to, 8 * i));
            LLVMBuildStore(c->b, gpu_tensor_round(&c->t, x[0], x[1]), at);
        }
        cg_if_close(l, &inside);
    }
}

static void take_turn(struct code *c, LLVMValueRef turn)
{
    LLVMValueRef stage = stage_of(c, turn);
    LLVMValueRef key = LLVMBuildMul(c->b, turn, cg_int(c->l->module, c->turn), "");
    LLVMValueRef *s = arena_array(c->l->arena, LLVMValueRef, c->tiles * c->turn / 2);
    LLVMValueRef *weights = arena_array(c->l->arena, LLVMValueRef, c->tiles * c->turn / 4);
    struct cg_value *values = c->l->values;
    make_scores(c, stage, s);
    LLVMValueRef largest[2 * MOST_TILES];
    for (int row = 0; row < 2 * c->tiles; row++)
        largest[row] = apply_to_row(c, row, key, s + row / 2 * (c->turn / 2) + row % 2 * 2);
    raise_rows(c, largest);
    for (int row = 0; row < 2 * c->tiles; row++)
        weigh_row(c, row, s + row / 2 * (c->turn / 2) + row % 2 * 2);
    for (int i = 0; i < c->tiles * c->turn / 4; i++)
        weights[i] = gpu_tensor_round(&c->t, s[2 * i], s[2 * i + 1]);
    add_values(c, stage, weights);
    c->l->values = values;
}

static void lower_queries(struct code *c)
{
    struct cg_lowering *l = c->l;
    int64_t turns = (c->keys + c->turn - 1) / c->turn;
    if (c->is_grouped)
        fetch_queries(c);
    fetch_turn(c, cg_int(l->module, 0));
    if (!c->is_grouped)
        load_queries(c);
    lower_rows(c);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, turns), cg_int(l->module, 1));
    gpu_tensor_wait(&c->t);
    if (c->is_grouped)
        gpu_warpgroup_publish(&c->t);
    gpu_sync(l); // this turn's rows are there, and all threads are done with the last turn's
    LLVMValueRef next = plus(c, loop.index, 1);
    struct cg_branch more =
        cg_if_open(l, LLVMBuildICmp(c->b, LLVMIntSLT, next, cg_int(l->module, turns), ""));
    fetch_turn(c, next);
    cg_if_close(l, &more);
    take_turn(c, loop.index);
    cg_loop_close(l, &loop);
    gpu_sync(l);
    store_rows(c);
}

// ---- The kernel

static LLVMValueRef *room(struct code *c, int64_t count)
{
    LLVMValueRef *all = arena_array(c->l->arena, LLVMValueRef, count + 1);
    for (int64_t i = 0; i < count; i++)
        all[i] = cg_alloca(c->l, c->f32, 1);
    return all;
}

// Two tiles of queries of a warp share what is read of keys and values; they need many registers, and
// many queries to keep the GPU busy.
static int choose_tiles(const struct cg_lowering *l, const struct code *c)
{
    int64_t rows = cg_extent(l, c->a.loop);
    bool is_small = c->depth <= 64 && c->columns <= 64;
    return is_small && rows >= 2 * GPU_TILE * WARPS * GPU_MULTIPROCESSORS ? MOST_TILES : 1;
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
    c->is_grouped =
        gpu_has_warpgroups(c->l) && c->depth % GPU_PANEL == 0 && c->columns % GPU_PANEL == 0;
    c->tiles = c->is_grouped ? 1 : choose_tiles(c->l, c);
    c->is_long = c->depth > GPU_PANEL || c->columns > GPU_PANEL;
    c->turn = c->is_grouped && !c->is_long ? MORE_KEYS : KEYS;
    c->warps =
        !c->is_grouped ? WARPS : GPU_WARPGROUP * (c->is_long ? MOST_GROUPS : LEAST_GROUPS);
    c->depths = (int)(c->depth + 15) / 16;
    c->widths = (int)(c->columns + 15) / 16;
    c->k = gpu_tensor_rows_of(c->l, c->a.k, c->a.key_of_k, c->a.depth, c->is_grouped);
    c->v = gpu_tensor_rows_of(c->l, c->a.v, c->a.key_of_v, c->a.column, c->is_grouped);
    c->stage = c->turn * (c->k.pitch + c->v.pitch);
    c->in_shared = gpu_tensor_rows_of(c->l, c->a.q, c->a.query, c->a.depth, true);
    c->stages = c->is_grouped ? c->warps * GPU_TILE * c->in_shared.pitch : 0;
}

// The axes of the chunk and the first query of the warp.
static void set_place(struct code *c, LLVMValueRef chunk, int64_t blocks)
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

static unsigned align_of(const struct cg_lowering *l, const struct nest_statement *s)
{
    return gpu_align_of(l, s->buffer);
}

bool gpu_is_attention(const struct cg_lowering *l)
{
    struct attention a;
    return attention_find(l->nest, &a) && align_of(l, a.q) >= 16 && align_of(l, a.k) >= 16 &&
           align_of(l, a.v) >= 16 && align_of(l, a.put) >= 16;
}

void gpu_attention_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct code c = {.l = l, .b = l->m.b, .f32 = l->module->f32};
    attention_find(l->nest, &c.a);
    choose_sizes(&c);
    l->gpu->block = l->gpu->group = (unsigned)c.warps * GPU_WARP;
    if (c.is_grouped)
        l->gpu->resident = c.is_long ? 1 : 2;
    l->gpu->is_alone = true;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 0);
    gpu_lower_list(l, 0, at);
    find_scale(&c);
    c.t =
        gpu_tensor_make(l, c.a.q->dtype, (unsigned)c.warps, (uint64_t)(c.stages + 2 * c.stage));
    int rows = 2 * c.tiles;
    c.q = arena_array(l->arena, LLVMValueRef, c.tiles * c.depths * 4);
    c.known = arena_array(l->arena, struct cg_value *, rows);
    for (int i = 0; i < rows; i++)
        c.known[i] = arena_array(l->arena, struct cg_value, l->nest->values.count + 1);
    c.sum = room(&c, c.tiles * (c.columns / 8) * 4);
    c.top = room(&c, rows);
    c.part = room(&c, rows);
    c.matrix[0] = gpu_tensor_matrix(&c.t, c.k.pitch, false);
    c.matrix[1] = gpu_tensor_matrix(&c.t, c.v.pitch, true);
    int64_t queries = (int64_t)c.warps * GPU_TILE * c.tiles;
    int64_t blocks = (c.queries + queries - 1) / queries;
    int64_t chunks = cg_extent(l, c.a.loop) / c.queries * blocks;
    struct cg_loop chunk = gpu_chunks_open(l, chunks);
    set_place(&c, chunk.index, blocks);
    lower_queries(&c);
    cg_loop_close(l, &chunk);
    step->total = chunks;
    step->grain = 1;
    step->exact_grid = true;
    gpu_function_close(l, step);
}
