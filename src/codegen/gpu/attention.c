// SPDX-License-Identifier: Apache-2.0
// Attention (passes/attention.h) by blocks of keys, with tensor cores.
//
// A block of threads has some queries, a warp 16 or 32 of them, and goes through the keys 64 at a
// time: keys and values of the next 64 are on their way to shared memory meanwhile.  Scores, what f
// makes of them and the weights stay in registers, as the tensor cores leave and take them: of a tile
// of 16 by 8 a thread has columns 2c and 2c + 1 of rows r and r + 8, where r is its number in the warp
// by 4 and c the rest.
//
// A row has the largest f so far, the sum of exp(f - largest) and the sum of weights times values;
// when the largest grows, both sums are scaled.  So weights are not divided by their sum before they
// are rounded, but the result is.
#include "codegen/gpu/gpu.h"

#include "passes/attention.h"

#include <math.h>
#include <string.h>

#define WARPS 4
#define TILE 16 // queries
#define KEYS 64 // of a turn
#define LOG2_E 1.4426950408889634

struct code {
    struct cg_lowering *l;
    struct attention a;
    LLVMBuilderRef b;
    LLVMTypeRef f32, i32, pair; // pair: two numbers of a half type, as tensor cores take them
    bool is_bf16;
    int64_t queries, keys, depth, columns;
    int tiles;                // of queries, of a warp
    int depths, widths;       // depth and columns by 16
    int64_t pitch[2], stage;  // bytes: of a row of keys, of values; of both
    LLVMValueRef shared;      // two stages
    LLVMValueRef row, column; // i64: of the thread in a tile, and twice its column
    LLVMValueRef matrix[2];   // i64: where the thread's row of a matrix begins, keys, values
    LLVMValueRef first;       // query of the warp
    LLVMValueRef *q;          // [tile][depths][4]
    struct cg_value **known;  // by row: values of the nest that its keys have in common
    LLVMValueRef *sum, *top, *part; // memory: [tile][columns / 8][4]; of rows: largest, sum
};

static LLVMValueRef call(struct code *c, const char *name, LLVMTypeRef overload, int n,
                         LLVMValueRef *arguments)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    size_t many = overload != NULL;
    LLVMValueRef f =
        LLVMGetIntrinsicDeclaration(c->l->module->module, id, many ? &overload : NULL, many);
    LLVMTypeRef type =
        LLVMIntrinsicGetType(c->l->module->context, id, many ? &overload : NULL, many);
    return LLVMBuildCall2(c->b, type, f, arguments, (unsigned)n, "");
}

static LLVMValueRef number(const struct code *c, double x) { return LLVMConstReal(c->f32, x); }

static LLVMValueRef plus(struct code *c, LLVMValueRef x, int64_t y)
{
    return y ? LLVMBuildAdd(c->b, x, cg_int(c->l->module, y), "") : x;
}

static LLVMValueRef at_most(struct code *c, LLVMValueRef x, int64_t most)
{
    LLVMValueRef limit = cg_int(c->l->module, most);
    return LLVMBuildSelect(c->b, LLVMBuildICmp(c->b, LLVMIntSLT, x, limit, ""), x, limit, "");
}

static LLVMValueRef load(struct code *c, LLVMValueRef at)
{
    return LLVMBuildLoad2(c->b, c->f32, at, "");
}

static LLVMValueRef shared_at(struct code *c, LLVMValueRef bytes)
{
    return LLVMBuildGEP2(c->b, c->l->module->i8, c->shared, &bytes, 1, "");
}

// ---- Keys and values on their way

// 16 bytes of row `key` of keys or values from column `column` on; zeros where there are none.
static void fetch(struct code *c, const struct nest_statement *s, nest_id key_axis,
                  nest_id along, LLVMValueRef key, LLVMValueRef column, LLVMValueRef to)
{
    struct cg_lowering *l = c->l;
    LLVMBuilderRef b = c->b;
    int64_t extent = l->nest->axes.at[along].extent;
    bool is_exact = c->keys % KEYS == 0 && extent % 16 == 0;
    LLVMValueRef size = NULL;
    if (!is_exact) {
        LLVMValueRef keys = cg_int(l->module, c->keys), end = cg_int(l->module, extent);
        LLVMValueRef is_there = LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntSLT, key, keys, ""),
                                             LLVMBuildICmp(b, LLVMIntSLT, column, end, ""), "");
        size = LLVMBuildSelect(b, is_there, gpu_i32(l, 16), gpu_i32(l, 0), "");
        key = at_most(c, key, c->keys - 1);
        column = at_most(c, column, extent - 8);
    }
    l->axes[key_axis] = key;
    l->axes[along] = column;
    LLVMValueRef from =
        cg_at(l, l->module->i16, cg_buffer_base(l, s->buffer), cg_index_first(l, &s->index));
    from = LLVMBuildAddrSpaceCast(b, from, LLVMPointerTypeInContext(l->module->context, 1), "");
    LLVMValueRef arguments[] = {to, from, size};
    call(c,
         size ? "llvm.nvvm.cp.async.cg.shared.global.16.s"
              : "llvm.nvvm.cp.async.cg.shared.global.16",
         NULL, size ? 3 : 2, arguments);
}

// Piece number i of the thread in rows of so many pieces: its row and its place there.  Where rows
// are whole rounds of the threads, the row is one place further on for all i.
static void find_piece(struct code *c, int64_t i, int64_t pieces, LLVMValueRef *out_row,
                       LLVMValueRef *out_piece)
{
    enum { THREADS = WARPS * GPU_WARP };
    bool is_round = THREADS % pieces == 0;
    LLVMValueRef at = plus(c, gpu_wide(c->l, c->l->gpu->thread), is_round ? 0 : i * THREADS);
    LLVMValueRef n = cg_int(c->l->module, pieces);
    *out_row = plus(c, LLVMBuildUDiv(c->b, at, n, ""), is_round ? i * (THREADS / pieces) : 0);
    *out_piece = LLVMBuildURem(c->b, at, n, "");
}

// The threads' shares of 64 rows from `key` on, to the stage at a place of the shared memory.
static void fetch_rows(struct code *c, const struct nest_statement *s, nest_id key_axis,
                       nest_id along, int64_t pitch, LLVMValueRef key, LLVMValueRef place)
{
    int64_t pieces = (pitch - 16) / 16;
    for (int64_t i = 0; i < KEYS * pieces / (WARPS * GPU_WARP); i++) {
        LLVMValueRef row, piece;
        find_piece(c, i, pieces, &row, &piece);
        LLVMValueRef offset =
            LLVMBuildAdd(c->b, LLVMBuildMul(c->b, row, cg_int(c->l->module, pitch), ""),
                         LLVMBuildMul(c->b, piece, cg_int(c->l->module, 16), ""), "");
        LLVMValueRef column = LLVMBuildMul(c->b, piece, cg_int(c->l->module, 8), "");
        fetch(c, s, key_axis, along, LLVMBuildAdd(c->b, key, row, ""), column,
              shared_at(c, LLVMBuildAdd(c->b, place, offset, "")));
    }
}

static LLVMValueRef stage_of(struct code *c, LLVMValueRef turn)
{
    LLVMValueRef odd = LLVMBuildAnd(c->b, turn, cg_int(c->l->module, 1), "");
    return LLVMBuildMul(c->b, odd, cg_int(c->l->module, c->stage), "");
}

static void fetch_turn(struct code *c, LLVMValueRef turn)
{
    const struct attention *a = &c->a;
    LLVMValueRef place = stage_of(c, turn);
    LLVMValueRef key = LLVMBuildMul(c->b, turn, cg_int(c->l->module, KEYS), "");
    fetch_rows(c, a->k, a->key_of_k, a->depth, c->pitch[0], key, place);
    fetch_rows(c, a->v, a->key_of_v, a->column, c->pitch[1], key,
               plus(c, place, KEYS * c->pitch[0]));
}

// ---- Products

// Four matrices of 8 by 8 whose rows begin where the threads of the warp say.
static void load_matrices(struct code *c, LLVMValueRef at, bool turned, LLVMValueRef out[4])
{
    LLVMValueRef m = call(c,
                          turned ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                                 : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                          LLVMPointerTypeInContext(c->l->module->context, 3), 1, &at);
    for (unsigned i = 0; i < 4; i++)
        out[i] = LLVMBuildExtractValue(c->b, m, i, "");
}

// sum += x y, of 16 by 16 and 16 by 8 numbers.
static void multiply(struct code *c, LLVMValueRef sum[4], const LLVMValueRef x[4],
                     const LLVMValueRef y[2])
{
    LLVMValueRef arguments[10];
    for (int i = 0; i < 4; i++)
        arguments[i] = LLVMBuildBitCast(c->b, x[i], c->pair, "");
    for (int i = 0; i < 2; i++)
        arguments[4 + i] = LLVMBuildBitCast(c->b, y[i], c->pair, "");
    memcpy(arguments + 6, sum, 4 * sizeof *sum);
    LLVMValueRef r = call(c,
                          c->is_bf16 ? "llvm.nvvm.mma.m16n8k16.row.col.bf16"
                                     : "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
                          NULL, 10, arguments);
    for (unsigned i = 0; i < 4; i++)
        sum[i] = LLVMBuildExtractValue(c->b, r, i, "");
}

// Scores of the warp's queries and the stage's keys, [tile][KEYS / 8][4].
static void make_scores(struct code *c, LLVMValueRef stage, LLVMValueRef *s)
{
    LLVMValueRef at = LLVMBuildAdd(c->b, stage, c->matrix[0], ""), y[4];
    for (int i = 0; i < c->tiles * KEYS / 8 * 4; i++)
        s[i] = number(c, 0);
    // Sums that follow one another are other ones, for each waits for what was added to it.
    for (int d = 0; d < c->depths; d++)
        for (int j = 0; j < KEYS / 16; j++) {
            load_matrices(c, shared_at(c, plus(c, at, j * 16 * c->pitch[0] + d * 32)), false,
                          y);
            for (int t = 0; t < c->tiles; t++)
                for (int half = 0; half < 2; half++)
                    multiply(c, s + (t * KEYS / 8 + 2 * j + half) * 4,
                             c->q + (t * c->depths + d) * 4, y + 2 * half);
        }
}

// Weights, [tile][KEYS / 8][2] pairs, times the stage's values.
static void add_values(struct code *c, LLVMValueRef stage, const LLVMValueRef *weights)
{
    int eighths = (int)(c->columns / 8);
    LLVMValueRef at = LLVMBuildAdd(c->b, stage, c->matrix[1], ""), y[4], sum[4];
    at = plus(c, at, KEYS * c->pitch[0]);
    for (int j = 0; j < KEYS / 16; j++)
        for (int w = 0; w < c->widths; w++) {
            load_matrices(c, shared_at(c, plus(c, at, j * 16 * c->pitch[1] + w * 32)), true, y);
            for (int t = 0; t < c->tiles; t++)
                for (int half = 0; half < 2 && 2 * w + half < eighths; half++) {
                    LLVMValueRef *to = c->sum + (t * eighths + 2 * w + half) * 4;
                    for (int i = 0; i < 4; i++)
                        sum[i] = load(c, to[i]);
                    multiply(c, sum, weights + (t * KEYS / 8 + 2 * j) * 2, y + 2 * half);
                    for (int i = 0; i < 4; i++)
                        LLVMBuildStore(c->b, sum[i], to[i]);
                }
        }
}

// ---- Rows

static LLVMValueRef largest_of(struct code *c, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef arguments[] = {x, y};
    return call(c, "llvm.maximum", c->f32, 2, arguments);
}

static LLVMValueRef sum_of(struct code *c, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFAdd(c->b, x, y, "");
}

// Of the four threads that have a row.
static LLVMValueRef of_row(struct code *c, LLVMValueRef x,
                           LLVMValueRef (*join)(struct code *, LLVMValueRef, LLVMValueRef))
{
    for (int by = 1; by <= 2; by *= 2) {
        LLVMValueRef arguments[] = {gpu_i32(c->l, -1), x, gpu_i32(c->l, by), gpu_i32(c->l, 31)};
        x = join(c, x, call(c, "llvm.nvvm.shfl.sync.bfly.f32", NULL, 4, arguments));
    }
    return x;
}

// 2^(x log2 e - top)
static LLVMValueRef exponential(struct code *c, LLVMValueRef x, LLVMValueRef factor,
                                LLVMValueRef top)
{
    LLVMValueRef arguments[] = {x, factor, LLVMBuildFNeg(c->b, top, "")};
    LLVMValueRef y = call(c, "llvm.fma", c->f32, 3, arguments);
    return call(c, "llvm.nvvm.ex2.approx.ftz.f", NULL, 1, &y);
}

// Two numbers as a half type, the first in the lower bits.
static LLVMValueRef rounded(struct code *c, LLVMValueRef low, LLVMValueRef high)
{
    LLVMValueRef arguments[] = {high, low};
    LLVMValueRef pair = call(c, c->is_bf16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn",
                             NULL, 2, arguments);
    return LLVMBuildBitCast(c->b, pair, c->i32, "");
}

static LLVMValueRef query_of(struct code *c, int row)
{
    return LLVMBuildAdd(c->b, plus(c, c->first, row / 2 * TILE + row % 2 * 8), c->row, "");
}

// f of a score, in the nest's words.
static LLVMValueRef apply(struct code *c, LLVMValueRef score, LLVMValueRef key)
{
    struct cg_lowering *l = c->l;
    const struct nest_block *body = &l->nest->blocks.at[c->a.largest->body];
    l->axes[c->a.key] = c->keys % KEYS ? at_most(c, key, c->keys - 1) : key;
    for (uint32_t i = 0; i < body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, body->statements.at[i]);
        if (s->kind == NEST_LOAD && s->buffer == c->a.score)
            l->values[s->result].re = score;
        else if (s->kind != NEST_PUT && s->kind != NEST_YIELD)
            cg_lower_statement(l, body->statements.at[i]);
    }
    LLVMValueRef x = l->values[c->a.value].re;
    if (c->keys % KEYS == 0)
        return x;
    LLVMValueRef is_key = LLVMBuildICmp(c->b, LLVMIntSLT, key, cg_int(l->module, c->keys), "");
    return LLVMBuildSelect(c->b, is_key, x, number(c, -INFINITY), "");
}

// Scores of a row, elements 2 i and 2 i + 1 of which are 4 i and 4 i + 1 of s, as weights.
static void weigh_row(struct code *c, int row, LLVMValueRef first_key, LLVMValueRef *s)
{
    LLVMBuilderRef b = c->b;
    LLVMValueRef top = NULL, sum = NULL;
    c->l->values = c->known[row];
    c->l->axes[c->a.query] = at_most(c, query_of(c, row), c->queries - 1);
    for (int i = 0; i < KEYS / 4; i++) {
        LLVMValueRef key =
            LLVMBuildAdd(b, plus(c, first_key, i / 2 * 8 + i % 2), c->column, "");
        LLVMValueRef *x = &s[i / 2 * 4 + i % 2];
        *x = apply(c, *x, key);
        top = top ? largest_of(c, top, *x) : *x;
    }
    // The largest is kept times log2 e, so that what is rounded there is so once.
    LLVMValueRef scaled = LLVMBuildFMul(b, of_row(c, top, largest_of), number(c, LOG2_E), "");
    LLVMValueRef old = load(c, c->top[row]), lowest = number(c, -INFINITY);
    top = largest_of(c, old, scaled);
    LLVMBuildStore(b, top, c->top[row]);
    // What is all -infinity up to here weighs nothing.
    LLVMValueRef is_lowest = LLVMBuildFCmp(b, LLVMRealOEQ, top, lowest, "");
    top = LLVMBuildSelect(b, is_lowest, number(c, 0), top, "");
    for (int i = 0; i < KEYS / 4; i++) {
        LLVMValueRef *x = &s[i / 2 * 4 + i % 2];
        *x = exponential(c, *x, number(c, LOG2_E), top);
        sum = sum ? LLVMBuildFAdd(b, sum, *x, "") : *x;
    }
    LLVMValueRef factor = exponential(c, old, number(c, 1), top);
    LLVMValueRef before = LLVMBuildFMul(b, load(c, c->part[row]), factor, "");
    LLVMBuildStore(b, LLVMBuildFAdd(b, before, sum, ""), c->part[row]);
    for (int i = 0; i < c->columns / 8 * 2; i++) {
        int64_t at = (row / 2 * (c->columns / 8) + i / 2) * 4 + row % 2 * 2 + i % 2;
        LLVMBuildStore(b, LLVMBuildFMul(b, load(c, c->sum[at]), factor, ""), c->sum[at]);
    }
}

// ---- A block of queries

static void load_queries(struct code *c)
{
    struct cg_lowering *l = c->l;
    const struct nest_statement *q = c->a.q;
    for (int row = 0; row < 2 * c->tiles; row++) {
        l->axes[c->a.query] = at_most(c, query_of(c, row), c->queries - 1);
        l->axes[c->a.depth] = cg_int(l->module, 0);
        LLVMValueRef from = LLVMBuildAdd(c->b, cg_index_first(l, &q->index), c->column, "");
        for (int i = 0; i < 2 * c->depths; i++) {
            LLVMValueRef at =
                cg_at(l, l->module->i16, cg_buffer_base(l, q->buffer), plus(c, from, 8 * i));
            LLVMValueRef pair =
                8 * i < c->depth ? LLVMBuildLoad2(c->b, c->i32, at, "") : gpu_i32(l, 0);
            c->q[(row / 2 * c->depths + i / 2) * 4 + i % 2 * 2 + row % 2] = pair;
        }
    }
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
        l->axes[c->a.query] = at_most(c, query_of(c, row), c->queries - 1);
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
        l->axes[c->a.column] = c->column;
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
            LLVMBuildStore(c->b, rounded(c, x[0], x[1]), at);
        }
        cg_if_close(l, &inside);
    }
}

static void take_turn(struct code *c, LLVMValueRef turn)
{
    LLVMValueRef stage = stage_of(c, turn);
    LLVMValueRef key = LLVMBuildMul(c->b, turn, cg_int(c->l->module, KEYS), "");
    LLVMValueRef *s = arena_array(c->l->arena, LLVMValueRef, c->tiles * KEYS / 2);
    LLVMValueRef *weights = arena_array(c->l->arena, LLVMValueRef, c->tiles * KEYS / 4);
    struct cg_value *values = c->l->values;
    make_scores(c, stage, s);
    for (int row = 0; row < 2 * c->tiles; row++)
        weigh_row(c, row, key, s + row / 2 * (KEYS / 2) + row % 2 * 2);
    for (int i = 0; i < c->tiles * KEYS / 4; i++)
        weights[i] = rounded(c, s[2 * i], s[2 * i + 1]);
    add_values(c, stage, weights);
    c->l->values = values;
}

static void lower_queries(struct code *c)
{
    struct cg_lowering *l = c->l;
    int64_t turns = (c->keys + KEYS - 1) / KEYS;
    fetch_turn(c, cg_int(l->module, 0));
    load_queries(c);
    lower_rows(c);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, turns), cg_int(l->module, 1));
    call(c, "llvm.nvvm.cp.async.wait.all", NULL, 0, NULL);
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
    return is_small && rows >= 2 * TILE * WARPS * GPU_MULTIPROCESSORS ? 2 : 1;
}

static void choose_sizes(struct code *c)
{
    const struct nest *n = c->l->nest;
    c->queries = n->axes.at[c->a.query].extent;
    c->keys = n->axes.at[c->a.key].extent;
    c->depth = n->axes.at[c->a.depth].extent;
    c->columns = n->axes.at[c->a.column].extent;
    c->tiles = choose_tiles(c->l, c);
    c->depths = (int)(c->depth + 15) / 16;
    c->widths = (int)(c->columns + 15) / 16;
    // Rows that are an odd number of 16 bytes apart are in other banks.
    c->pitch[0] = c->depths * 32 + 16;
    c->pitch[1] = c->widths * 32 + 16;
    c->stage = KEYS * (c->pitch[0] + c->pitch[1]);
}

static void find_place(struct code *c)
{
    struct cg_lowering *l = c->l;
    LLVMBuilderRef b = c->b;
    LLVMValueRef thread = l->gpu->thread, lane = LLVMBuildAnd(b, thread, gpu_i32(l, 31), "");
    LLVMValueRef row = LLVMBuildLShr(b, lane, gpu_i32(l, 2), "");
    LLVMValueRef column =
        LLVMBuildShl(b, LLVMBuildAnd(b, lane, gpu_i32(l, 3), ""), gpu_i32(l, 1), "");
    LLVMValueRef in_eight = LLVMBuildAnd(b, lane, gpu_i32(l, 7), "");
    LLVMValueRef high = LLVMBuildLShr(b, lane, gpu_i32(l, 4), "");
    LLVMValueRef low =
        LLVMBuildAnd(b, LLVMBuildLShr(b, lane, gpu_i32(l, 3), ""), gpu_i32(l, 1), "");
    c->row = gpu_wide(l, row);
    c->column = gpu_wide(l, column);
    // Of keys two matrices beside one another, then those of 8 more keys; of values the other way.
    for (int i = 0; i < 2; i++) {
        LLVMValueRef eight = LLVMBuildShl(b, i ? low : high, gpu_i32(l, 3), "");
        LLVMValueRef key = LLVMBuildAdd(b, in_eight, eight, "");
        LLVMValueRef piece = LLVMBuildShl(b, i ? high : low, gpu_i32(l, 4), "");
        LLVMValueRef at = LLVMBuildMul(b, key, gpu_i32(l, c->pitch[i]), "");
        c->matrix[i] = gpu_wide(l, LLVMBuildAdd(b, at, piece, ""));
    }
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
    LLVMValueRef of_block =
        LLVMBuildMul(c->b, block, cg_int(l->module, (int64_t)WARPS * TILE * c->tiles), "");
    LLVMValueRef of_warp =
        LLVMBuildMul(c->b, gpu_wide(l, warp), cg_int(l->module, (int64_t)TILE * c->tiles), "");
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
    struct cg_module *m = l->module;
    struct code c = {.l = l, .b = l->m.b, .f32 = m->f32, .i32 = m->i32};
    attention_find(l->nest, &c.a);
    c.is_bf16 = c.a.q->dtype == JOT_BF16;
    c.pair = c.is_bf16 ? m->i32 : LLVMVectorType(LLVMHalfTypeInContext(m->context), 2);
    choose_sizes(&c);
    l->gpu->block = l->gpu->group = WARPS * GPU_WARP;
    l->gpu->is_alone = true;
    struct cg_kernel_step *step = gpu_function_open(l, out, "", 0);
    gpu_lower_list(l, 0, at);
    LLVMValueRef shared = gpu_shared(l, 2 * (uint64_t)c.stage);
    c.shared = LLVMBuildAddrSpaceCast(c.b, shared, LLVMPointerTypeInContext(m->context, 3), "");
    int rows = 2 * c.tiles;
    c.q = arena_array(l->arena, LLVMValueRef, c.tiles * c.depths * 4);
    c.known = arena_array(l->arena, struct cg_value *, rows);
    for (int i = 0; i < rows; i++)
        c.known[i] = arena_array(l->arena, struct cg_value, l->nest->values.count + 1);
    c.sum = room(&c, c.tiles * (c.columns / 8) * 4);
    c.top = room(&c, rows);
    c.part = room(&c, rows);
    find_place(&c);
    int64_t queries = (int64_t)WARPS * TILE * c.tiles;
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
