// SPDX-License-Identifier: Apache-2.0
// Long loops of updates at places that are data, one after the other at each place:
//
//     par p < P { seq j < n { ... %e = load y[%at]; %f = add %e, %u; put y[%at] = %f if %g } }
//
// Loops in one another are one sequence of turns.
//
// Places are dealt out to bins.  A first function sorts the turns of the loop by bin, a chunk of them
// a block of threads, without changing their order in a bin.  In a second one a warp has a bin: 32
// turns are at hand at once, and the first thread of those that have the same place makes their
// updates in order, with what the others have from shuffles, and stores the last result.  Where a
// block can count the updates of every place they are sorted by place (places.c).  Neighbouring points
// that all have the same turns in the same order are one window, and sorted once (windows.c).
#include "codegen/gpu/updates.h"

#include "passes/cost.h"

#include <string.h>

#define ORDER_BLOCK 1024
#define BATCHES 8 // of turns that a warp reads together

// ---- Pieces

static LLVMValueRef call(struct cg_lowering *l, const char *name, int n,
                         LLVMValueRef *arguments)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module->module, id, NULL, 0);
    return LLVMBuildCall2(l->m.b, LLVMIntrinsicGetType(l->module->context, id, NULL, 0), f,
                          arguments, (unsigned)n, "");
}

// The lanes of the warp that have the same key.
static LLVMValueRef match(struct cg_lowering *l, LLVMValueRef key)
{
    return call(l, "llvm.nvvm.match.any.sync.i32", 2, (LLVMValueRef[]){gpu_i32(l, -1), key});
}

static LLVMValueRef is_any(struct cg_lowering *l, LLVMValueRef condition)
{
    return call(l, "llvm.nvvm.vote.any.sync", 2, (LLVMValueRef[]){gpu_i32(l, -1), condition});
}

static LLVMValueRef population(struct cg_lowering *l, LLVMValueRef x)
{
    return cg_intrinsic(&l->m, "llvm.ctpop", l->module->i32, 1, (LLVMValueRef[]){x});
}

// How many of the lanes are before this one.
static LLVMValueRef rank_in(struct cg_lowering *l, const struct updates *u, LLVMValueRef lanes)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef below = LLVMBuildShl(b, gpu_i32(l, 1), u->lane, "");
    below = LLVMBuildSub(b, below, gpu_i32(l, 1), "");
    return population(l, LLVMBuildAnd(b, lanes, below, ""));
}

LLVMValueRef updates_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    return cg_at(l, l->module->i32, base, i);
}

static LLVMValueRef load_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    return LLVMBuildLoad2(l->m.b, l->module->i32, updates_word(l, base, i), "");
}

// The axis from the number *at of what is left, slowest axes last.
static LLVMValueRef next_axis(struct cg_lowering *l, LLVMValueRef *at, nest_id axis,
                              bool is_last)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef n = cg_int(l->module, l->nest->axes.at[axis].extent), x = *at;
    if (is_last)
        return x;
    *at = LLVMBuildUDiv(b, x, n, "");
    return LLVMBuildURem(b, x, n, "");
}

void updates_set_point(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                       LLVMValueRef in_window)
{
    uint32_t left[2] = {0};
    for (uint32_t k = 0; u->of.par && k < u->of.par->n_axes; k++)
        left[u->of.is_window[u->of.par->axes[k]]]++;
    for (uint32_t k = u->of.par ? u->of.par->n_axes : 0; k-- > 0;) {
        nest_id axis = u->of.par->axes[k];
        bool is_window = u->of.is_window[axis];
        l->axes[axis] = next_axis(l, is_window ? &in_window : &point, axis, !--left[is_window]);
    }
    const struct nest_block *body = u->of.par ? &l->nest->blocks.at[u->of.par->body] : NULL;
    for (uint32_t i = 0; body && i + 1 < body->statements.count; i++)
        cg_lower_statement(l, body->statements.at[i]);
}

void updates_set_turn(struct cg_lowering *l, const struct updates *u, LLVMValueRef turn)
{
    for (uint32_t k = u->of.n_loops; k-- > 0;) {
        const struct nest_statement *s = u->of.loops[k];
        LLVMValueRef at = next_axis(l, &turn, s->axes[0], k == 0);
        LLVMValueRef last = cg_int(l->module, cg_extent(l, s) - 1);
        l->axes[s->axes[0]] = s->reverse ? LLVMBuildSub(l->m.b, last, at, "") : at;
    }
}

void updates_lower_turn(struct cg_lowering *l, const struct updates *u, bool depends)
{
    for (uint32_t i = 0; i < u->of.body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, u->of.body->statements.at[i]);
        if (nest_is_scalar(s) && s != u->of.load && u->of.depends[s->result] == depends)
            cg_lower_statement(l, u->of.body->statements.at[i]);
    }
}

static LLVMValueRef place(struct cg_lowering *l, const struct updates *u)
{
    LLVMValueRef at = cg_index_value(l, &u->of.put->index, JOT_I64);
    return LLVMBuildTrunc(l->m.b, at, l->module->i32, "");
}

// ---- Turns by bin

struct order {
    LLVMValueRef counts; // [warp][bin], then where the next one of them goes
    LLVMValueRef totals; // [bin]
    LLVMValueRef turns;  // [MAP_CHUNK], sorted
};

// 32 turns of the chunk: the thread's one, and the bin that it goes to.
struct batch {
    LLVMValueRef turn, is_there, bin;
};

static struct batch read_batch(struct cg_lowering *l, const struct updates *u,
                               LLVMValueRef turn)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef last = cg_int(l->module, u->of.turns - 1);
    struct batch t = {.is_there = LLVMBuildICmp(b, LLVMIntSLE, turn, last, "")};
    t.turn = LLVMBuildSelect(b, t.is_there, turn, last, "");
    updates_set_turn(l, u, t.turn);
    updates_lower_turn(l, u, false);
    LLVMValueRef row = cg_index_value(l, &u->of.row, JOT_I64);
    row = LLVMBuildTrunc(b, row, l->module->i32, "");
    t.bin = LLVMBuildAnd(b, row, gpu_i32(l, u->of.bins - 1), "");
    return t;
}

// Counts the turns of each bin or, when that is done, places them.
static void count_batch(struct cg_lowering *l, const struct updates *u, const struct order *o,
                        LLVMValueRef counts, const struct batch *t, bool places)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef key = LLVMBuildSelect(b, t->is_there, t->bin, gpu_i32(l, u->of.bins), "");
    LLVMValueRef peers = match(l, key), rank = rank_in(l, u, peers);
    LLVMValueRef at = gpu_wide(l, t->bin), count = load_word(l, counts, at);
    if (places) {
        struct cg_branch there = cg_if_open(l, t->is_there);
        LLVMValueRef to = LLVMBuildAdd(b, count, rank, "");
        LLVMBuildStore(b, LLVMBuildTrunc(b, t->turn, l->module->i32, ""),
                       updates_word(l, o->turns, gpu_wide(l, to)));
        cg_if_close(l, &there);
    }
    gpu_sync_warp(l);
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, rank, gpu_i32(l, 0), "");
    struct cg_branch lead = cg_if_open(l, LLVMBuildAnd(b, leads, t->is_there, ""));
    LLVMBuildStore(b, LLVMBuildAdd(b, count, population(l, peers), ""),
                   updates_word(l, counts, at));
    cg_if_close(l, &lead);
    gpu_sync_warp(l);
}

// The warp goes over its part of the chunk; several batches are read together.
static void go_over(struct cg_lowering *l, const struct updates *u, const struct order *o,
                    LLVMValueRef first, bool places)
{
    LLVMBuilderRef b = l->m.b;
    int64_t share = MAP_CHUNK / (ORDER_BLOCK / GPU_WARP);
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef counts = updates_word(
        l, o->counts, gpu_wide(l, LLVMBuildMul(b, warp, gpu_i32(l, u->of.bins), "")));
    LLVMValueRef start = LLVMBuildMul(b, warp, gpu_i32(l, share), "");
    start = gpu_wide(l, LLVMBuildAdd(b, start, u->lane, ""));
    start = LLVMBuildAdd(b, first, start, "");
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, share),
                                       cg_int(l->module, (int64_t)GPU_WARP * BATCHES));
    struct batch t[BATCHES];
    for (int k = 0; k < BATCHES; k++) {
        LLVMValueRef at = cg_int(l->module, (int64_t)k * GPU_WARP);
        at = LLVMBuildAdd(b, LLVMBuildAdd(b, start, loop.index, ""), at, "");
        t[k] = read_batch(l, u, at);
    }
    for (int k = 0; k < BATCHES; k++)
        count_batch(l, u, o, counts, &t[k], places);
    cg_loop_close(l, &loop);
}

// Adds words first, first + step, ... and, where they are to begin somewhere, makes them that.
static LLVMValueRef add_words(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef first,
                              LLVMValueRef end, int64_t step, LLVMValueRef start, bool replaces)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef slot = cg_alloca(l, l->module->i32, 1);
    LLVMBuildStore(b, start, slot);
    struct cg_loop loop = cg_loop_open(l, first, end, cg_int(l->module, step));
    LLVMValueRef sum = LLVMBuildLoad2(b, l->module->i32, slot, "");
    LLVMValueRef word = load_word(l, base, loop.index);
    if (replaces)
        LLVMBuildStore(b, sum, updates_word(l, base, loop.index));
    LLVMBuildStore(b, LLVMBuildAdd(b, sum, word, ""), slot);
    cg_loop_close(l, &loop);
    return LLVMBuildLoad2(b, l->module->i32, slot, "");
}

// Where the turns of each bin begin in the chunk, for all and for each warp.
static void place_bins(struct cg_lowering *l, const struct updates *u, const struct order *o,
                       LLVMValueRef chunk)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef zero = gpu_i32(l, 0), thread = gpu_wide(l, l->gpu->thread);
    LLVMValueRef end = cg_int(l->module, u->of.bins * (ORDER_BLOCK / GPU_WARP));
    LLVMValueRef has = LLVMBuildICmp(b, LLVMIntULT, l->gpu->thread, gpu_i32(l, u->of.bins), "");
    struct cg_branch one = cg_if_open(l, has);
    LLVMBuildStore(b, add_words(l, o->counts, thread, end, u->of.bins, zero, false),
                   updates_word(l, o->totals, thread));
    cg_if_close(l, &one);
    gpu_sync(l);
    one = cg_if_open(l, has);
    LLVMValueRef begins = add_words(l, o->totals, cg_int(l->module, 0), thread, 1, zero, false);
    LLVMValueRef at = LLVMBuildMul(b, chunk, cg_int(l->module, u->of.bins + 1), "");
    at = LLVMBuildAdd(b, at, thread, "");
    LLVMBuildStore(b, begins, updates_word(l, u->offsets, at));
    LLVMValueRef next = add_words(l, o->counts, thread, end, u->of.bins, begins, true);
    at = LLVMBuildAdd(b, at, cg_int(l->module, 1), "");
    LLVMValueRef is_last =
        LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, u->of.bins - 1), "");
    struct cg_branch last = cg_if_open(l, is_last);
    LLVMBuildStore(b, next, updates_word(l, u->offsets, at));
    cg_if_close(l, &last);
    cg_if_close(l, &one);
    gpu_sync(l);
}

static void lower_order(struct cg_lowering *l, struct updates *u, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef thread = gpu_wide(l, l->gpu->thread);
    LLVMValueRef block = cg_int(l->module, ORDER_BLOCK);
    int64_t words = u->of.bins * (ORDER_BLOCK / GPU_WARP);
    struct order o = {.counts = gpu_shared(l, (uint64_t)words * 4),
                      .totals = gpu_shared(l, (uint64_t)u->of.bins * 4),
                      .turns = gpu_shared(l, (uint64_t)MAP_CHUNK * 4)};
    int64_t chunks = u->of.points * u->of.chunks;
    struct cg_loop own = gpu_own_chunk_open(l, chunks);
    LLVMValueRef chunk = own.index, n = cg_int(l->module, u->of.chunks);
    updates_set_point(l, u, LLVMBuildUDiv(b, chunk, n, ""), cg_int(l->module, 0));
    LLVMValueRef first =
        LLVMBuildMul(b, LLVMBuildURem(b, chunk, n, ""), cg_int(l->module, MAP_CHUNK), "");
    struct cg_loop clear = cg_loop_open(l, thread, cg_int(l->module, words), block);
    LLVMBuildStore(b, gpu_i32(l, 0), updates_word(l, o.counts, clear.index));
    cg_loop_close(l, &clear);
    gpu_sync(l);
    go_over(l, u, &o, first, false);
    gpu_sync(l);
    place_bins(l, u, &o, chunk);
    go_over(l, u, &o, first, true);
    gpu_sync(l);
    LLVMValueRef rest = LLVMBuildSub(b, cg_int(l->module, u->of.turns), first, "");
    LLVMValueRef most = cg_int(l->module, MAP_CHUNK);
    LLVMValueRef is_rest = LLVMBuildICmp(b, LLVMIntSLT, rest, most, "");
    rest = LLVMBuildSelect(b, is_rest, rest, most, "");
    LLVMValueRef to = LLVMBuildMul(b, chunk, cg_int(l->module, u->of.length), "");
    struct cg_loop copy = cg_loop_open(l, thread, rest, block);
    LLVMBuildStore(b, load_word(l, o.turns, copy.index),
                   updates_word(l, u->list, LLVMBuildAdd(b, to, copy.index, "")));
    cg_loop_close(l, &copy);
    if (own.body)
        gpu_sync(l);
    cg_loop_close(l, &own);
    step->total = chunks;
    step->exact_grid = true;
}

// ---- The updates of a bin

static struct cg_value from_lane(struct cg_lowering *l, struct cg_value v, LLVMValueRef lane)
{
    struct cg_element e = {{v.re, v.im, NULL}};
    e = gpu_shuffle_from(l, &e, lane);
    return (struct cg_value){e.v[0], e.v[1]};
}

// The values that an update takes of its turn, from the lane that has the turn.
static void fetch(struct cg_lowering *l, const struct updates *u, const struct cg_value *own,
                  LLVMValueRef lane)
{
    bool *done = arena_array(l->arena, bool, l->nest->values.count + 1);
    for (uint32_t i = 0; i < u->of.body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, u->of.body->statements.at[i]);
        bool wants = s == u->of.put || (s->kind == NEST_OP && u->of.depends[s->result]);
        for (uint32_t k = 0; wants && k < s->n_in; k++) {
            nest_id v = s->in[k];
            if (done[v] || u->of.depends[v] || !map_is_in_turn(l->nest, &u->of, v) ||
                LLVMIsConstant(own[v].re))
                continue;
            l->values[v] = from_lane(l, own[v], lane);
            done[v] = true;
        }
    }
}

static void store_value(struct cg_lowering *l, const struct cg_value slot, struct cg_value v)
{
    LLVMBuildStore(l->m.b, v.re, slot.re);
    if (v.im)
        LLVMBuildStore(l->m.b, v.im, slot.im);
}

static struct cg_value load_value(struct cg_lowering *l, struct cg_value slot, LLVMTypeRef type)
{
    return (struct cg_value){LLVMBuildLoad2(l->m.b, type, slot.re, ""),
                             slot.im ? LLVMBuildLoad2(l->m.b, type, slot.im, "") : NULL};
}

// The first of the lanes with the same place makes the updates of all, lowest lane first.
static void update(struct cg_lowering *l, const struct updates *u, LLVMValueRef is_there)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i1 = l->module->i1, i32 = l->module->i32;
    size_t bytes = l->nest->values.count * sizeof *l->values;
    struct cg_value *own = arena_copy(l->arena, l->values, bytes), *outside = l->values;
    jot_dtype d = l->nest->buffers.at[u->of.put->buffer].dtype;
    LLVMTypeRef lane = cg_lane_type(l->module, dtype_real(d));
    LLVMValueRef guard = u->of.put->guard == NEST_NONE
                             ? is_there
                             : LLVMBuildAnd(b, is_there, own[u->of.put->guard].re, "");
    LLVMValueRef none = LLVMBuildOr(b, u->lane, gpu_i32(l, INT32_MIN), "");
    LLVMValueRef peers = match(l, LLVMBuildSelect(b, is_there, place(l, u), none, ""));
    LLVMValueRef is_first =
        LLVMBuildICmp(b, LLVMIntEQ, rank_in(l, u, peers), gpu_i32(l, 0), "");
    LLVMValueRef leads = LLVMBuildAnd(b, is_first, is_there, "");
    struct cg_value slot = {cg_alloca(l, lane, 1),
                            dtype_is_complex(d) ? cg_alloca(l, lane, 1) : NULL};
    LLVMValueRef left = cg_alloca(l, i32, 1), has = cg_alloca(l, i1, 1);
    LLVMValueRef nothing = LLVMConstNull(lane);
    store_value(l, slot, (struct cg_value){nothing, slot.im ? nothing : NULL});
    LLVMBuildStore(b, LLVMConstInt(i1, 0, 0), has);
    LLVMBuildStore(b, peers, left);
    if (u->of.load) {
        struct cg_branch lead = cg_if_open(l, leads);
        store_value(l, slot, cg_load(l, u->of.load));
        cg_if_close(l, &lead);
    }

    LLVMContextRef c = l->module->context;
    LLVMBasicBlockRef turn = LLVMAppendBasicBlockInContext(c, l->function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, l->function, "");
    LLVMBuildBr(b, turn);
    LLVMPositionBuilderAtEnd(b, turn);
    l->values = arena_copy(l->arena, own, bytes);
    LLVMValueRef rest = LLVMBuildLoad2(b, i32, left, "");
    LLVMValueRef from = cg_intrinsic(&l->m, "llvm.cttz", i32, 2,
                                     (LLVMValueRef[]){rest, LLVMConstInt(i1, 0, 0)});
    from = LLVMBuildAnd(b, from, gpu_i32(l, GPU_WARP - 1), "");
    fetch(l, u, own, from);
    LLVMValueRef counts = from_lane(l, (struct cg_value){guard, NULL}, from).re;
    counts = LLVMBuildAnd(b, counts, LLVMBuildICmp(b, LLVMIntNE, rest, gpu_i32(l, 0), ""), "");
    struct cg_value old = load_value(l, slot, lane);
    if (u->of.load)
        l->values[u->of.load->result] = old;
    updates_lower_turn(l, u, true);
    struct cg_value fresh = cg_wide_value(l, l->values[u->of.put->in[0]]);
    fresh.re = LLVMBuildSelect(b, counts, fresh.re, old.re, "");
    fresh.im = fresh.im ? LLVMBuildSelect(b, counts, fresh.im, old.im, "") : NULL;
    store_value(l, slot, fresh);
    LLVMBuildStore(b, LLVMBuildOr(b, counts, LLVMBuildLoad2(b, i1, has, ""), ""), has);
    rest = LLVMBuildAnd(b, rest, LLVMBuildSub(b, rest, gpu_i32(l, 1), ""), "");
    LLVMBuildStore(b, rest, left);
    LLVMValueRef goes_on = LLVMBuildICmp(b, LLVMIntNE, rest, gpu_i32(l, 0), "");
    LLVMBuildCondBr(b, is_any(l, goes_on), turn, done);
    LLVMPositionBuilderAtEnd(b, done);

    l->values = arena_copy(l->arena, own, bytes);
    if (u->of.put->guard != NEST_NONE)
        l->values[u->of.put->guard].re = LLVMConstInt(i1, 1, 0);
    LLVMValueRef stores = LLVMBuildAnd(b, leads, LLVMBuildLoad2(b, i1, has, ""), "");
    struct cg_branch lead = cg_if_open(l, stores);
    cg_store(l, u->of.put, load_value(l, slot, lane));
    cg_if_close(l, &lead);
    l->values = outside;
    gpu_sync_warp(l);
}

static void lower_bins(struct cg_lowering *l, struct updates *u, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    int64_t warps = UPDATE_BLOCK / GPU_WARP;
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    struct cg_loop bins = gpu_own_chunk_open(l, u->of.points * u->of.bins / warps);
    LLVMValueRef task = LLVMBuildMul(b, bins.index, cg_int(l->module, warps), "");
    task = LLVMBuildAdd(b, task, gpu_wide(l, warp), "");
    LLVMValueRef point = LLVMBuildUDiv(b, task, cg_int(l->module, u->of.bins), "");
    LLVMValueRef bin = LLVMBuildURem(b, task, cg_int(l->module, u->of.bins), "");
    updates_set_point(l, u, point, cg_int(l->module, 0));
    struct cg_loop chunk = cg_loop_open(l, cg_int(l->module, 0),
                                        cg_int(l->module, u->of.chunks), cg_int(l->module, 1));
    LLVMValueRef number = LLVMBuildMul(b, point, cg_int(l->module, u->of.chunks), "");
    number = LLVMBuildAdd(b, number, chunk.index, "");
    LLVMValueRef at = LLVMBuildMul(b, number, cg_int(l->module, u->of.bins + 1), "");
    at = LLVMBuildAdd(b, at, bin, "");
    LLVMValueRef begin = gpu_wide(l, load_word(l, u->offsets, at));
    at = LLVMBuildAdd(b, at, cg_int(l->module, 1), "");
    LLVMValueRef end = gpu_wide(l, load_word(l, u->offsets, at));
    struct cg_loop turns = cg_loop_open(l, begin, end, cg_int(l->module, GPU_WARP));
    LLVMValueRef mine = LLVMBuildAdd(b, turns.index, gpu_wide(l, u->lane), "");
    LLVMValueRef is_there = LLVMBuildICmp(b, LLVMIntSLT, mine, end, "");
    mine = LLVMBuildSelect(b, is_there, mine, begin, "");
    LLVMValueRef base = LLVMBuildMul(b, number, cg_int(l->module, u->of.length), "");
    LLVMValueRef turn = load_word(l, u->list, LLVMBuildAdd(b, base, mine, ""));
    updates_set_turn(l, u, gpu_wide(l, turn));
    updates_lower_turn(l, u, false);
    update(l, u, is_there);
    cg_loop_close(l, &turns);
    cg_loop_close(l, &chunk);
    cg_loop_close(l, &bins);
    step->total = u->of.points * u->of.bins;
    step->grain = warps;
    step->exact_grid = true;
}

void gpu_updates_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    struct updates u;
    struct map_gpu m = gpu_map_of(l);
    struct map_places places;
    map_updates_find(&m, l->nest->blocks.at[0].statements.at[at], &u.of);
    l->gpu->keeps_loops = true;
    if (map_places_find(&m, &u.of, &places)) {
        places_lower(l, &u, &places, at, out);
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        l->gpu->block = pass ? UPDATE_BLOCK : ORDER_BLOCK;
        l->gpu->group = l->gpu->block;
        l->gpu->is_alone = true;
        struct cg_kernel_step *step = gpu_function_open(l, out, pass ? "" : "_order", 0);
        u.offsets = gpu_scratch(l);
        u.list = updates_word(l, u.offsets, cg_int(l->module, u.of.offsets));
        u.lane = LLVMBuildURem(l->m.b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
        gpu_lower_list(l, 0, at);
        if (pass && u.of.window > 1)
            windows_lower(l, &u, step);
        else if (pass)
            lower_bins(l, &u, step);
        else
            lower_order(l, &u, step);
        gpu_function_close(l, step);
    }
    l->gpu->is_alone = false;
}
