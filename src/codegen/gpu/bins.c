// SPDX-License-Identifier: Apache-2.0
// Updates (updates.c) of a bin, which a warp makes in the order of their turns.
//
// The turns of a bin stand in the list chunk by chunk.  Each of 32 lanes looks up where those of a chunk begin; the lanes
// then have 32 turns that follow one another, of whatever chunks, and read several such rows together.  Where the order
// has what updates take of their turns, the lanes that have the same element find one another, and each of them makes
// the updates of all, lowest lane first; the first one keeps the result: in a table of the bin's elements, which is read
// before and stored behind all turns, or else in memory.
#include "codegen/gpu/bins.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/order.h"
#include "codegen/gpu/updates.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_updates.h"

#define ROWS 4     // of 32 turns that are read together
#define ELEMENTS 8 // of a table, of a lane, likewise
#define ROUNDS 4   // updates of an element that are made in a turn of their loop
#define FEW_OPS 2  // of an update, of which many are written out

// ---- The turns of a bin

struct updates_bin updates_bin_open(struct cg_lowering *l, const struct updates *u,
                                    struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    int64_t warps = UPDATE_BLOCK / GPU_WARP;
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    struct updates_bin bin = {.loop = gpu_own_chunk_open(l, u->of.points * u->of.bins / warps),
                              .warp = gpu_wide(l, warp)};
    LLVMValueRef task = LLVMBuildMul(b, bin.loop.index, cg_int(l->module, warps), "");
    task = LLVMBuildAdd(b, task, bin.warp, "");
    bin.point = LLVMBuildUDiv(b, task, cg_int(l->module, u->of.bins), "");
    bin.index = LLVMBuildURem(b, task, cg_int(l->module, u->of.bins), "");
    updates_set_point(l, u, bin.point, cg_int(l->module, 0));
    step->total = u->of.points * u->of.bins;
    step->grain = warps;
    step->exact_grid = true;
    return bin;
}

struct cg_loop updates_chunks_open(struct cg_lowering *l, const struct updates *u,
                                   struct updates_bin *bin)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef chunks = cg_int(l->module, u->of.chunks);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), chunks, cg_int(l->module, GPU_WARP));
    LLVMValueRef chunk = LLVMBuildAdd(b, loop.index, gpu_wide(l, u->lane), "");
    LLVMValueRef is_one = LLVMBuildICmp(b, LLVMIntSLT, chunk, chunks, "");
    chunk = LLVMBuildSelect(b, is_one, chunk, cg_int(l->module, 0), "");
    chunk = LLVMBuildAdd(b, LLVMBuildMul(b, bin->point, chunks, ""), chunk, "");
    LLVMValueRef at = LLVMBuildMul(b, chunk, cg_int(l->module, u->of.bins + 1), "");
    at = LLVMBuildAdd(b, at, bin->index, "");
    LLVMValueRef begin = updates_load_word(l, u->offsets, at);
    LLVMValueRef end =
        updates_load_word(l, u->offsets, LLVMBuildAdd(b, at, cg_int(l->module, 1), ""));
    LLVMValueRef own = LLVMBuildSub(b, end, begin, "");
    own = LLVMBuildSelect(b, is_one, own, gpu_i32(l, 0), "");
    bin->sums = updates_sum_to(l, u, own);
    bin->count = updates_word_from(l, bin->sums, gpu_i32(l, GPU_WARP - 1));
    LLVMValueRef first = LLVMBuildMul(b, chunk, cg_int(l->module, u->of.length), "");
    first = LLVMBuildAdd(b, LLVMBuildTrunc(b, first, i32, ""), begin, "");
    bin->begin = LLVMBuildSub(b, first, LLVMBuildSub(b, bin->sums, own, ""), "");
    return loop;
}

LLVMValueRef updates_at(struct cg_lowering *l, const struct updates_bin *bin, LLVMValueRef i,
                        LLVMValueRef *out_is_there)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef chunk = gpu_i32(l, 0);
    *out_is_there = LLVMBuildICmp(b, LLVMIntULT, i, bin->count, "");
    i = LLVMBuildSelect(b, *out_is_there, i, gpu_i32(l, 0), "");
    // The first chunk with more turns up to its end.
    for (int step = GPU_WARP / 2; step; step /= 2) {
        LLVMValueRef next = LLVMBuildAdd(b, chunk, gpu_i32(l, step), "");
        LLVMValueRef last = LLVMBuildSub(b, next, gpu_i32(l, 1), "");
        LLVMValueRef sum = updates_word_from(l, bin->sums, last);
        LLVMValueRef is_behind = LLVMBuildICmp(b, LLVMIntULE, sum, i, "");
        chunk = LLVMBuildSelect(b, is_behind, next, chunk, "");
    }
    return gpu_wide(l, LLVMBuildAdd(b, updates_word_from(l, bin->begin, chunk), i, ""));
}

// ---- Their updates

struct bin {
    const struct updates *u;
    struct updates_bin of;
    // By copy: what is known of it without a turn, and its elements at hand, or NULL.
    struct cg_value *outside[MAP_COPIES];
    LLVMValueRef tables[MAP_COPIES], is_set; // is_set: of the elements of all copies
    jot_dtype dtype;                         // of an element
    LLVMTypeRef lane;
};

struct turn {
    LLVMValueRef slot, is_there, values[MAP_COPIES]; // slot: i32
};

// An element of a copy in memory; fresh: what is put there, NULL to read it.
static LLVMValueRef memory(struct cg_lowering *l, const struct bin *bin, int copy,
                           LLVMValueRef slot, LLVMValueRef fresh)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_updates *u = &bin->u->of;
    nest_id row = u->at.terms[u->at.count - 1].id, buffer = u->put->buffer;
    LLVMTypeRef type = cg_lane_type(l->module, l->nest->values.at[row].dtype);
    LLVMValueRef number = LLVMBuildMul(b, gpu_wide(l, slot), cg_int(l->module, u->bins), "");
    number = LLVMBuildAdd(b, number, bin->of.index, "");
    updates_set_axes(l, bin->u, bin->of.point, cg_int(l->module, copy));
    l->values = arena_copy(l->arena, l->values, l->nest->values.count * sizeof *l->values);
    l->values[row] = (struct cg_value){LLVMBuildIntCast2(b, number, type, false, ""), NULL};
    LLVMValueRef base = cg_buffer_base(l, buffer);
    if (!fresh)
        return cg_load_at(l, base, bin->dtype, &u->at, NULL, NULL).re;
    cg_store_at(l, base, bin->dtype, &u->at, NULL, NULL, (struct cg_value){fresh, NULL});
    return NULL;
}

static LLVMValueRef in_table(struct cg_lowering *l, const struct bin *bin, int copy,
                             LLVMValueRef slot)
{
    return cg_at(l, bin->lane, bin->tables[copy], gpu_wide(l, slot));
}

static LLVMValueRef flag_of(struct cg_lowering *l, const struct bin *bin, LLVMValueRef slot)
{
    return cg_at(l, l->module->i8, bin->is_set, gpu_wide(l, slot));
}

// Whether the bin has the slot, an i64.
static LLVMValueRef has_slot(struct cg_lowering *l, const struct bin *bin, LLVMValueRef slot)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef row = LLVMBuildMul(b, slot, cg_int(l->module, bin->u->of.bins), "");
    row = LLVMBuildAdd(b, row, bin->of.index, "");
    return LLVMBuildICmp(b, LLVMIntSLT, row, cg_int(l->module, bin->u->of.rows), "");
}

static void read_table(struct cg_lowering *l, const struct bin *bin)
{
    LLVMBuilderRef b = l->m.b;
    int64_t slots = bin->u->of.slots, n = (slots + GPU_WARP - 1) / GPU_WARP;
    int copies = (int)bin->u->of.copies;
    n = n < ELEMENTS ? n : ELEMENTS;
    // A bin of none reads none.
    struct cg_branch some = cg_if_open(l, has_slot(l, bin, cg_int(l->module, 0)));
    struct cg_loop loop = cg_loop_open(l, gpu_wide(l, bin->u->lane), cg_int(l->module, slots),
                                       cg_int(l->module, n * GPU_WARP));
    LLVMValueRef slot[ELEMENTS], is_one[ELEMENTS], old[ELEMENTS][MAP_COPIES];
    for (int k = 0; k < n; k++) {
        LLVMValueRef at = cg_int(l->module, (int64_t)k * GPU_WARP);
        at = LLVMBuildAdd(b, loop.index, at, "");
        is_one[k] = has_slot(l, bin, at);
        slot[k] = LLVMBuildSelect(b, is_one[k], at, cg_int(l->module, 0), "");
        slot[k] = LLVMBuildTrunc(b, slot[k], l->module->i32, "");
        for (int c = 0; c < copies; c++)
            old[k][c] = memory(l, bin, c, slot[k], NULL);
    }
    for (int k = 0; k < n; k++) {
        struct cg_branch one = cg_if_open(l, is_one[k]);
        for (int c = 0; c < copies; c++)
            LLVMBuildStore(b, old[k][c], in_table(l, bin, c, slot[k]));
        LLVMBuildStore(b, LLVMConstNull(l->module->i8), flag_of(l, bin, slot[k]));
        cg_if_close(l, &one);
    }
    cg_loop_close(l, &loop);
    cg_if_close(l, &some);
    gpu_sync_warp(l);
}

static void store_table(struct cg_lowering *l, const struct bin *bin)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i8 = l->module->i8;
    struct cg_loop loop =
        cg_loop_open(l, gpu_wide(l, bin->u->lane), cg_int(l->module, bin->u->of.slots),
                     cg_int(l->module, GPU_WARP));
    struct cg_branch one = cg_if_open(l, has_slot(l, bin, loop.index));
    LLVMValueRef slot = LLVMBuildTrunc(b, loop.index, l->module->i32, "");
    LLVMValueRef flag = LLVMBuildLoad2(b, i8, flag_of(l, bin, slot), "");
    struct cg_branch set =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntNE, flag, LLVMConstNull(i8), ""));
    for (int c = 0; c < bin->u->of.copies; c++)
        memory(l, bin, c, slot, LLVMBuildLoad2(b, bin->lane, in_table(l, bin, c, slot), ""));
    cg_if_close(l, &set);
    cg_if_close(l, &one);
    cg_loop_close(l, &loop);
    gpu_sync_warp(l);
}

// What an update of a copy with the value makes of the old number.
static LLVMValueRef updated(struct cg_lowering *l, const struct bin *bin, int copy,
                            LLVMValueRef old, LLVMValueRef value)
{
    const struct map_updates *u = &bin->u->of;
    l->values =
        arena_copy(l->arena, bin->outside[copy], l->nest->values.count * sizeof *l->values);
    if (u->load)
        l->values[u->load->result] = (struct cg_value){old, NULL};
    if (value)
        l->values[u->value] = (struct cg_value){value, NULL};
    updates_lower_turn(l, bin->u, true);
    return cg_wide_value(l, l->values[u->put->in[0]]).re;
}

static LLVMValueRef value_from(struct cg_lowering *l, LLVMValueRef value, LLVMValueRef lane)
{
    struct cg_element e = {{value}};
    return value ? gpu_shuffle_from(l, &e, lane).v[0] : NULL;
}

// Whether an update is so short that many are written out.
static bool is_short(const struct cg_lowering *l, const struct map_updates *u)
{
    int ops = 0;
    for (uint32_t i = 0; i < u->body->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, u->body->statements.at[i]);
        ops += s->kind == NEST_OP && u->depends[s->result];
    }
    return ops <= FEW_OPS;
}

// The updates of the lanes `rest`, lowest first, some of them at a time, until no lane of the warp has any left.
static void update_rest(struct cg_lowering *l, const struct bin *bin, const LLVMValueRef *now,
                        LLVMValueRef rest, const struct turn *t)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    LLVMContextRef c = l->module->context;
    LLVMValueRef zero = gpu_i32(l, 0), one = gpu_i32(l, 1), left = cg_alloca(l, i32, 1);
    LLVMValueRef has[ROUNDS], from[ROUNDS], no_poison = LLVMConstInt(l->module->i1, 0, 0);
    int rounds = is_short(l, &bin->u->of) ? ROUNDS : 1;
    LLVMBuildStore(b, rest, left);
    LLVMBasicBlockRef some = LLVMAppendBasicBlockInContext(c, l->frame.function, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, l->frame.function, "");
    LLVMBuildCondBr(b, updates_any(l, LLVMBuildICmp(b, LLVMIntNE, rest, zero, "")), some, done);
    LLVMPositionBuilderAtEnd(b, some);
    rest = LLVMBuildLoad2(b, i32, left, "");
    for (int k = 0; k < rounds; k++) {
        from[k] = cg_intrinsic(&l->m, "llvm.cttz", i32, 2, (LLVMValueRef[]){rest, no_poison});
        from[k] = LLVMBuildAnd(b, from[k], gpu_i32(l, GPU_WARP - 1), "");
        has[k] = LLVMBuildICmp(b, LLVMIntNE, rest, zero, "");
        rest = LLVMBuildAnd(b, rest, LLVMBuildSub(b, rest, one, ""), "");
    }
    for (int i = 0; i < bin->u->of.copies; i++) {
        LLVMValueRef fresh = LLVMBuildLoad2(b, bin->lane, now[i], ""), next[ROUNDS];
        for (int k = 0; k < rounds; k++)
            next[k] = value_from(l, t->values[i], from[k]);
        for (int k = 0; k < rounds; k++)
            fresh = LLVMBuildSelect(b, has[k], updated(l, bin, i, fresh, next[k]), fresh, "");
        LLVMBuildStore(b, fresh, now[i]);
    }
    LLVMBuildStore(b, rest, left);
    LLVMBuildCondBr(b, updates_any(l, LLVMBuildICmp(b, LLVMIntNE, rest, zero, "")), some, done);
    LLVMPositionBuilderAtEnd(b, done);
}

// What all lanes with the element of this one make of it, in `now`, which has what its first lane has made.
static void update_element(struct cg_lowering *l, const struct bin *bin,
                           const LLVMValueRef *now, LLVMValueRef peers, const struct turn *t)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef all = gpu_i32(l, -1), one = gpu_i32(l, 1), zero = gpu_i32(l, 0);
    LLVMValueRef rest = LLVMBuildAnd(b, peers, LLVMBuildSub(b, peers, one, ""), "");
    rest = LLVMBuildSelect(b, t->is_there, rest, zero, "");
    if (!is_short(l, &bin->u->of)) {
        update_rest(l, bin, now, rest, t);
        return;
    }
    // Where all of them have it, each has the updates of all, known by their numbers.
    LLVMValueRef is_apart = updates_any(l, LLVMBuildICmp(b, LLVMIntNE, peers, all, ""));
    struct cg_branch apart = cg_if_open(l, is_apart);
    update_rest(l, bin, now, rest, t);
    cg_else_open(l, &apart);
    for (int i = 0; i < bin->u->of.copies; i++) {
        LLVMValueRef fresh = LLVMBuildLoad2(b, bin->lane, now[i], "");
        for (int k = 1; k < GPU_WARP; k++)
            fresh = updated(l, bin, i, fresh, value_from(l, t->values[i], gpu_i32(l, k)));
        LLVMBuildStore(b, fresh, now[i]);
    }
    cg_if_close(l, &apart);
}

// What the element of each lane, or of the first one that has it, holds in the copy.
static void read_element(struct cg_lowering *l, const struct bin *bin, int copy,
                         const struct turn *t, LLVMValueRef leads, LLVMValueRef now)
{
    LLVMBuilderRef b = l->m.b;
    if (bin->tables[copy]) {
        LLVMValueRef at = in_table(l, bin, copy, t->slot);
        LLVMBuildStore(b, LLVMBuildLoad2(b, bin->lane, at, ""), now);
        return;
    }
    LLVMBuildStore(b, LLVMConstNull(bin->lane), now);
    if (!bin->u->of.load)
        return;
    struct cg_branch lead = cg_if_open(l, leads);
    LLVMBuildStore(b, memory(l, bin, copy, t->slot, NULL), now);
    cg_if_close(l, &lead);
}

// The updates of a row of turns.
static void update_row(struct cg_lowering *l, const struct bin *bin, const struct turn *t)
{
    LLVMBuilderRef b = l->m.b;
    int copies = (int)bin->u->of.copies;
    LLVMValueRef peers = updates_peers(l, t->slot, bin->u->of.slots, t->is_there);
    LLVMValueRef rank = updates_rank(l, bin->u, peers), now[MAP_COPIES];
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, rank, gpu_i32(l, 0), "");
    leads = LLVMBuildAnd(b, leads, t->is_there, "");
    for (int c = 0; c < copies; c++) {
        now[c] = cg_alloca(l, bin->lane, 1);
        read_element(l, bin, c, t, leads, now[c]);
        LLVMValueRef old = LLVMBuildLoad2(b, bin->lane, now[c], "");
        LLVMBuildStore(b, updated(l, bin, c, old, t->values[c]), now[c]);
    }
    update_element(l, bin, now, peers, t);
    gpu_sync_warp(l);
    struct cg_branch lead = cg_if_open(l, leads);
    for (int c = 0; c < copies; c++) {
        LLVMValueRef fresh = LLVMBuildLoad2(b, bin->lane, now[c], "");
        if (bin->tables[c])
            LLVMBuildStore(b, fresh, in_table(l, bin, c, t->slot));
        else
            memory(l, bin, c, t->slot, fresh);
    }
    if (bin->is_set)
        LLVMBuildStore(b, LLVMConstInt(l->module->i8, 1, 0), flag_of(l, bin, t->slot));
    cg_if_close(l, &lead);
    gpu_sync_warp(l);
}

static struct turn read_turn(struct cg_lowering *l, const struct bin *bin, LLVMValueRef i)
{
    LLVMBuilderRef b = l->m.b;
    const struct updates *u = bin->u;
    struct turn t = {0};
    LLVMValueRef at = updates_at(l, &bin->of, i, &t.is_there);
    LLVMTypeRef i16 = l->module->i16, type = cg_memory_type(l->module, u->of.dtype);
    t.slot = LLVMBuildLoad2(b, i16, cg_at(l, i16, u->list, at), "");
    t.slot = LLVMBuildZExt(b, t.slot, l->module->i32, "");
    for (int c = 0; u->of.value != NEST_NONE && c < u->of.copies; c++)
        t.values[c] = LLVMBuildLoad2(b, type, cg_at(l, type, u->values[c], at), "");
    return t;
}

// The values that a turn does not make, of each copy.
static void find_outside(struct cg_lowering *l, struct bin *bin)
{
    const struct updates *u = bin->u;
    for (int c = 0; c < u->of.copies; c++) {
        l->values = arena_copy(l->arena, l->values, l->nest->values.count * sizeof *l->values);
        updates_set_point(l, u, bin->of.point, cg_int(l->module, c));
        for (uint32_t i = 0; i < u->of.body->statements.count; i++)
            if (cg_statement(l, u->of.body->statements.at[i])->kind == NEST_CONST)
                cg_lower_statement(l, u->of.body->statements.at[i]);
        bin->outside[c] = l->values;
    }
}

void bins_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    struct cg_value *before = l->values;
    struct bin bin = {.u = u, .dtype = l->nest->buffers.at[u->of.put->buffer].dtype};
    bin.lane = cg_lane_type(l->module, bin.dtype);
    int64_t warps = UPDATE_BLOCK / GPU_WARP, bytes = dtype_get(bin.dtype)->bytes;
    LLVMValueRef shared[MAP_COPIES + 1], slots = cg_int(l->module, u->of.slots);
    for (int c = 0; u->of.has_table && c <= u->of.copies; c++)
        shared[c] =
            gpu_shared(l, (uint64_t)(warps * u->of.slots * (c < u->of.copies ? bytes : 1)));
    bin.of = updates_bin_open(l, u, step);
    find_outside(l, &bin);
    if (u->of.has_table) {
        LLVMValueRef first = LLVMBuildMul(b, bin.of.warp, slots, "");
        for (int c = 0; c < u->of.copies; c++)
            bin.tables[c] = cg_at(l, bin.lane, shared[c], first);
        bin.is_set = cg_at(l, l->module->i8, shared[u->of.copies], first);
        read_table(l, &bin);
    }
    struct cg_loop chunks = updates_chunks_open(l, u, &bin.of);
    struct cg_loop rows = cg_loop_open(l, cg_int(l->module, 0), gpu_wide(l, bin.of.count),
                                       cg_int(l->module, (int64_t)ROWS * GPU_WARP));
    struct turn t[ROWS];
    LLVMValueRef first = LLVMBuildTrunc(b, rows.index, l->module->i32, "");
    for (int k = 0; k < ROWS; k++) {
        LLVMValueRef i = LLVMBuildAdd(b, u->lane, gpu_i32(l, (int64_t)k * GPU_WARP), "");
        t[k] = read_turn(l, &bin, LLVMBuildAdd(b, first, i, ""));
    }
    for (int k = 0; k < ROWS; k++) {
        LLVMValueRef begin = LLVMBuildAdd(b, first, gpu_i32(l, (int64_t)k * GPU_WARP), "");
        struct cg_branch some =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntULT, begin, bin.of.count, ""));
        update_row(l, &bin, &t[k]);
        cg_if_close(l, &some);
    }
    cg_loop_close(l, &rows);
    cg_loop_close(l, &chunks);
    if (u->of.has_table)
        store_table(l, &bin);
    l->values = before;
    cg_loop_close(l, &bin.of.loop);
}
