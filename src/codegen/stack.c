// SPDX-License-Identifier: Apache-2.0
// What a loop over time reads and puts at every trip, where times are next to each other in memory
// and lanes far apart.
//
//     seq t < T { load x[T*b + t]; ...; put y[T*b + t] }
//
// 16 trips are done between memory of this worker with one vector a trip, and what they read and
// put is transposed on the way there and back, so that memory sees whole cache lines.
#include "codegen/stack.h"
#include "codegen/contiguous.h"
#include "codegen/index.h"
#include "codegen/line.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/turn.h"
#include "codegen/types.h"
#include "ir/cost.h"

#define SHORTEST 8 // loops that are worth it

static uint32_t count_buffer_uses(const struct cg_lowering *l, uint32_t block, nest_id buffer)
{
    uint32_t n = 0;
    nest_for_below (s, l->nest, block)
        n += s->buffer == buffer;
    return n;
}

bool cg_lies_along_time(const struct cg_lowering *l, const struct nest_statement *seq,
                        const struct nest_statement *s)
{
    bool load = s->kind == NEST_LOAD;
    if ((!load && s->kind != NEST_PUT) || s->op || s->guard != NEST_NONE ||
        nest_index_has_values(&s->index) || cg_extent(l, seq) < SHORTEST)
        return false;
    const struct nest_buffer *b = &l->nest->buffers.at[s->buffer];
    int64_t along = nest_index_factor(&s->index, seq->axes[0]);
    if ((along != 1 && along != -1) || dtype_is_complex(b->dtype))
        return false;
    // Nobody may ask for what is put before it is there.
    return load ? b->role == NEST_IN
                : b->role != NEST_LOCAL && count_buffer_uses(l, seq->body, s->buffer) == 1;
}

static bool may_stack(const struct cg_lowering *l, const struct nest_statement *seq,
                      const struct nest_statement *s, nest_id lanes)
{
    int64_t across = nest_index_factor(&s->index, lanes);
    return (across <= -4 || across >= 4) && cg_lies_along_time(l, seq, s);
}

// Puts whose rows begin anywhere in a cache line, with a line for every trip of a tile.
static bool lies_across_lines(const struct cg_lowering *l, const struct nest_statement *seq,
                              const struct nest_statement *s)
{
    const struct nest_buffer *b = &l->nest->buffers.at[s->buffer];
    int64_t bytes = dtype_get(b->dtype)->bytes, trips = cg_stack_trips(l);
    return s->kind == NEST_PUT && bytes * trips == COST_LINE_BYTES &&
           cg_is_streamed(l, s->buffer, true) && trips == l->vector.lanes &&
           cg_extent(l, seq) >= 2 * trips && nest_index_factor(&s->index, seq->axes[0]) == 1 &&
           nest_index_factor(&s->index, l->vector.axis) * bytes % COST_LINE_BYTES != 0;
}

bool cg_stack_find(struct cg_lowering *l, const struct nest_statement *seq)
{
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    bool any = false;
    for (uint32_t i = 0; l->vector.lanes > 1 && i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (l->marks[id].is_hoisted || !may_stack(l, seq, s, l->vector.axis))
            continue;
        unsigned bytes = dtype_get(l->nest->buffers.at[s->buffer].dtype)->bytes;
        uint64_t n_lanes = l->vector.lanes * (l->chunks.together ? l->chunks.count : 1);
        l->marks[id].stack = (struct cg_stack){
            .memory = cg_scratch(l, n_lanes * (uint64_t)cg_stack_trips(l) * bytes),
            .by_chunk = l->chunks.together};
        if (lies_across_lines(l, seq, s))
            l->marks[id].stack.lines = cg_scratch(l, n_lanes * 2 * COST_LINE_BYTES);
        any = true;
    }
    return any;
}

int64_t cg_stack_trips(const struct cg_lowering *l)
{
    return l->vector.lanes >= 8 ? l->vector.lanes : 16;
}

// Trip i of the loop, from 0 on, is this time.
static LLVMValueRef time_of(struct cg_lowering *l, const struct nest_statement *seq,
                            LLVMValueRef i)
{
    LLVMValueRef last = cg_int(l->module, cg_extent(l, seq) - 1);
    return seq->reverse ? LLVMBuildSub(l->m.b, last, i, "") : i;
}

// Whether elements fall from trip to trip.
static bool falls(const struct nest_statement *seq, const struct nest_statement *s)
{
    return (nest_index_factor(&s->index, seq->axes[0]) < 0) != seq->reverse;
}

void cg_stack_trip(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef trip,
                   LLVMValueRef count)
{
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    LLVMValueRef last = LLVMBuildSub(l->m.b, count, cg_int(l->module, 1), "");
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (l->marks[id].stack.memory)
            l->marks[id].stack.row =
                falls(seq, cg_statement(l, id)) ? LLVMBuildSub(l->m.b, last, trip, "") : trip;
    }
}

LLVMValueRef cg_stack_address(struct cg_lowering *l, nest_id id, LLVMTypeRef vector)
{
    LLVMValueRef row = l->marks[id].stack.row;
    if (l->marks[id].stack.by_chunk)
        row =
            LLVMBuildAdd(l->m.b, row, cg_int(l->module, cg_stack_trips(l) * l->chunks.now), "");
    return cg_at(l, vector, l->marks[id].stack.memory, row);
}

// In each round halves of squares of 2, 4, ... are swapped.
void cg_transpose(struct cg_lowering *l, LLVMValueRef *row, unsigned n)
{
    LLVMValueRef order[2][64];
    for (unsigned s = 1; s < n; s *= 2) {
        for (unsigned j = 0; j < n; j++) {
            order[0][j] = LLVMConstInt(l->module->i32, j & s ? n + j - s : j, 0);
            order[1][j] = LLVMConstInt(l->module->i32, j & s ? n + j : j + s, 0);
        }
        LLVMValueRef low = LLVMConstVector(order[0], n), high = LLVMConstVector(order[1], n);
        for (unsigned i = 0; i < n; i++)
            if (!(i & s)) {
                LLVMValueRef a = row[i], b = row[i + s];
                row[i] = LLVMBuildShuffleVector(l->m.b, a, b, low, "");
                row[i + s] = LLVMBuildShuffleVector(l->m.b, a, b, high, "");
            }
    }
}

// One side of a transposition: vectors at a distance, of which some count.
struct side {
    LLVMValueRef at;
    int64_t stride;     // elements
    LLVMValueRef first; // a vector of bools: the vectors that count, or NULL
    LLVMValueRef lanes; // elements of each that count, or NULL
    bool streams;
};

static LLVMValueRef side_mask(struct cg_lowering *l, const struct side *s, unsigned i)
{
    LLVMBuilderRef b = l->m.b;
    if (!s->first)
        return s->lanes;
    LLVMValueRef one = cg_extract(&l->m, s->first, i, 1);
    LLVMValueRef all = cg_splat(&l->m, one, cg_lanes_of(s->first));
    return s->lanes ? LLVMBuildAnd(b, all, s->lanes, "") : all;
}

// Moves a square of n by n elements.
static void move_square(struct cg_lowering *l, LLVMTypeRef lane, unsigned n, unsigned align,
                        const struct side *from, const struct side *to)
{
    LLVMValueRef rows[64];
    for (unsigned i = 0; i < n; i++)
        rows[i] = cg_load_row(l, cg_with_lanes(lane, n),
                              cg_at(l, lane, from->at, cg_int(l->module, i * from->stride)),
                              align, side_mask(l, from, i));
    cg_transpose(l, rows, n);
    for (unsigned i = 0; i < n; i++)
        cg_store_row(l, rows[i], cg_at(l, lane, to->at, cg_int(l->module, i * to->stride)),
                     align, side_mask(l, to, i), to->streams);
}

// The trips of a square from `first` on that are below count.
static LLVMValueRef trips_mask(struct cg_lowering *l, unsigned first, LLVMValueRef count)
{
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef n = LLVMBuildTrunc(l->m.b, count, i32, "");
    return LLVMBuildICmp(l->m.b, LLVMIntULT,
                         cg_sequence(l->module, i32, l->vector.lanes, first, 1),
                         cg_splat(&l->m, n, l->vector.lanes), "");
}

struct tile {
    const struct nest_statement *s;
    jot_dtype dtype;
    LLVMTypeRef lane;
    LLVMValueRef memory, outside; // of lane 0, at the lowest of the trips
    LLVMValueRef mask;            // lanes, or NULL
    LLVMValueRef count;           // trips, or NULL for all
    bool streams;
};

static void move_tile(struct cg_lowering *l, const struct tile *t)
{
    unsigned n = l->vector.lanes, align = dtype_get(t->dtype)->bytes;
    int64_t across = nest_index_factor(&t->s->index, l->vector.axis);
    for (unsigned k = 0; k < cg_stack_trips(l); k += n) {
        LLVMValueRef trips = t->count ? trips_mask(l, k, t->count) : NULL;
        struct side own = {.at = cg_at(l, t->lane, t->memory, cg_int(l->module, k * n)),
                           .stride = n};
        struct side outside = {.at = cg_at(l, t->lane, t->outside, cg_int(l->module, k)),
                               .stride = across,
                               .first = t->mask,
                               .lanes = trips,
                               .streams = t->streams};
        if (t->s->kind == NEST_LOAD)
            move_square(l, t->lane, n, align, &outside, &own);
        else
            move_square(l, t->lane, n, align, &own, &outside);
    }
}

// Whole tiles of puts to large arrays pass the caches by where rows are cache lines.
static void move_whole(struct cg_lowering *l, struct tile *t)
{
    LLVMBuilderRef b = l->m.b;
    int64_t bytes = dtype_get(t->dtype)->bytes;
    int64_t across = nest_index_factor(&t->s->index, l->vector.axis) * bytes;
    if (t->s->kind == NEST_LOAD || t->mask || bytes * l->vector.lanes != 64 ||
        across % 64 != 0 || !cg_is_streamed(l, t->s->buffer, true)) {
        move_tile(l, t);
        return;
    }
    LLVMValueRef low = LLVMBuildPtrToInt(b, t->outside, l->module->i64, "");
    low = LLVMBuildAnd(b, low, cg_int(l->module, 63), "");
    struct cg_branch branch =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, low, cg_int(l->module, 0), ""));
    t->streams = true;
    move_tile(l, t);
    cg_else_open(l, &branch);
    t->streams = false;
    move_tile(l, t);
    cg_if_close(l, &branch);
}

static LLVMTypeRef mask_word(const struct cg_lowering *l)
{
    return LLVMIntTypeInContext(l->module->context, l->vector.lanes);
}

// The masks of all turns in memory, or NULL when all lanes count.
static LLVMValueRef keep_masks(struct cg_lowering *l)
{
    LLVMValueRef masks = NULL;
    unsigned c = 0;
    for (struct cg_turn turn = {0}; cg_turn_next(l, &turn); c++) {
        if (!l->vector.mask)
            continue;
        masks = masks ? masks : cg_alloca(l, mask_word(l), CG_CHUNKS);
        LLVMBuildStore(l->m.b, LLVMBuildBitCast(l->m.b, l->vector.mask, mask_word(l), ""),
                       cg_at(l, mask_word(l), masks, cg_int(l->module, c)));
    }
    return masks;
}

static LLVMValueRef kept_mask(struct cg_lowering *l, LLVMValueRef masks, LLVMValueRef c)
{
    if (!masks)
        return NULL;
    LLVMValueRef word =
        LLVMBuildLoad2(l->m.b, mask_word(l), cg_at(l, mask_word(l), masks, c), "");
    return LLVMBuildBitCast(l->m.b, word, LLVMVectorType(l->module->i1, l->vector.lanes), "");
}

LLVMValueRef cg_stack_row(struct cg_lowering *l, const struct nest_statement *seq,
                          const struct nest_statement *s, LLVMTypeRef lane, LLVMValueRef first,
                          LLVMValueRef count)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef last =
        LLVMBuildSub(b, LLVMBuildAdd(b, first, count, ""), cg_int(l->module, 1), "");
    LLVMValueRef outer = l->axes[seq->axes[0]];
    l->axes[seq->axes[0]] = time_of(l, seq, falls(seq, s) ? last : first);
    LLVMValueRef at =
        cg_at(l, lane, cg_buffer_base(l, s->buffer), cg_index_first(l, &s->index));
    l->axes[seq->axes[0]] = outer;
    return at;
}

// A tile to or from the elements next to each other that its lines take, or memory outside.
static void move_one(struct cg_lowering *l, const struct nest_statement *seq,
                     const struct cg_stack *stack, struct tile *t)
{
    LLVMBuilderRef b = l->m.b;
    if (stack->lines) {
        struct side from = {.at = t->memory, .stride = l->vector.lanes};
        struct side to = {.at = t->outside, .stride = 2 * cg_stack_trips(l)};
        move_square(l, t->lane, l->vector.lanes, dtype_get(t->dtype)->bytes, &from, &to);
        return;
    }
    LLVMValueRef count = t->count;
    t->count = NULL;
    if (cg_extent(l, seq) % cg_stack_trips(l) == 0) {
        move_whole(l, t);
        return;
    }
    LLVMValueRef trips = cg_int(l->module, cg_stack_trips(l));
    struct cg_branch branch = cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, count, trips, ""));
    move_whole(l, t);
    cg_else_open(l, &branch);
    t->count = count;
    move_tile(l, t);
    cg_if_close(l, &branch);
}

static LLVMValueRef select_at(struct cg_lowering *l, LLVMValueRef is_first, LLVMValueRef a,
                              LLVMValueRef b)
{
    return LLVMBuildSelect(l->m.b, is_first, a, b, "");
}

// The lines that a tile completes, or (ends) what is left behind the last one.  A tile that is not
// whole covers the last times: it comes first where time falls.
static void store_lines(struct cg_lowering *l, const struct nest_statement *seq, nest_id id,
                        LLVMValueRef first, LLVMValueRef count, bool ends)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_statement *s = cg_statement(l, id);
    jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
    int64_t trips = cg_stack_trips(l), total = cg_extent(l, seq);
    LLVMValueRef line = cg_int(l->module, trips), zero = cg_int(l->module, 0);
    struct cg_lines x = {.rows = l->marks[id].stack.lines,
                         .lane = cg_memory_type(l->module, d),
                         .bytes = dtype_get(d)->bytes,
                         .stride = nest_index_factor(&s->index, l->vector.axis),
                         .count = (int64_t)l->vector.lanes *
                                  (l->chunks.together ? l->chunks.count : 1),
                         .falls = seq->reverse,
                         .masks = keep_masks(l),
                         .streams = cg_is_streamed(l, s->buffer, true)};
    x.outside = cg_stack_row(l, seq, s, x.lane, first, count);
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, first, zero, "");
    LLVMValueRef whole = LLVMBuildAdd(b, line, count, "");
    if (ends) {
        x.low = seq->reverse ? line : zero;
        x.high = seq->reverse ? whole : count;
    } else if (seq->reverse) {
        // The tile before was the first one, which may not have been whole.
        int64_t rest = total % trips ? total % trips : trips;
        LLVMValueRef second = LLVMBuildICmp(b, LLVMIntEQ, first, cg_int(l->module, rest), "");
        LLVMValueRef before =
            select_at(l, second, cg_int(l->module, trips + rest), cg_int(l->module, 2 * trips));
        x.low = zero;
        x.high = select_at(l, is_first, count, before);
    } else {
        x.low = select_at(l, is_first, line, zero);
        x.high = whole;
    }
    cg_lines_store(l, &x, ends);
}

// The tiles of all vectors of one statement: lanes lie as far apart from vector to vector as inside
// one, so a loop does them.
static void move_tiles(struct cg_lowering *l, const struct nest_statement *seq, nest_id id,
                       LLVMValueRef first, LLVMValueRef count)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_statement *s = cg_statement(l, id);
    const struct cg_stack *stack = &l->marks[id].stack;
    struct tile t = {.s = s, .dtype = l->nest->buffers.at[s->buffer].dtype, .count = count};
    t.lane = cg_memory_type(l->module, t.dtype);
    int64_t trips = cg_stack_trips(l), across = nest_index_factor(&s->index, l->vector.axis);
    LLVMValueRef row = cg_stack_row(l, seq, s, t.lane, first, count);
    LLVMValueRef masks = stack->lines ? NULL : keep_masks(l);
    struct cg_loop loop = cg_loop_open(
        l, cg_int(l->module, 0), cg_int(l->module, l->chunks.together ? l->chunks.count : 1),
        cg_int(l->module, 1));
    t.mask = kept_mask(l, masks, loop.index);
    LLVMValueRef lane = LLVMBuildMul(b, loop.index, cg_int(l->module, l->vector.lanes), "");
    t.outside = cg_at(l, t.lane, row, LLVMBuildMul(b, lane, cg_int(l->module, across), ""));
    if (stack->lines) {
        LLVMValueRef at = LLVMBuildMul(b, lane, cg_int(l->module, 2 * trips), "");
        at = LLVMBuildAdd(b, at, cg_int(l->module, seq->reverse ? 0 : trips), "");
        t.outside = cg_at(l, t.lane, stack->lines, at);
    }
    t.memory =
        cg_at(l, t.lane, stack->memory, LLVMBuildMul(b, lane, cg_int(l->module, trips), ""));
    move_one(l, seq, stack, &t);
    cg_loop_close(l, &loop);
    if (stack->lines)
        store_lines(l, seq, id, first, count, false);
}

void cg_stack_move(struct cg_lowering *l, const struct nest_statement *seq, enum nest_kind kind,
                   LLVMValueRef first, LLVMValueRef count)
{
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (l->marks[id].stack.memory && cg_statement(l, id)->kind == kind)
            move_tiles(l, seq, id, first, count);
    }
}

void cg_stack_end(struct cg_lowering *l, const struct nest_statement *seq)
{
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    int64_t total = cg_extent(l, seq), trips = cg_stack_trips(l);
    int64_t rest = total % trips ? total % trips : trips;
    int64_t count = seq->reverse ? (total < trips ? total : trips) : rest;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (l->marks[id].stack.lines)
            store_lines(l, seq, id, cg_int(l->module, total - count), cg_int(l->module, count),
                        true);
        l->marks[id].stack = (struct cg_stack){0};
    }
}
