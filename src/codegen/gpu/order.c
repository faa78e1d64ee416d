// SPDX-License-Identifier: Apache-2.0
// The order of updates (updates.c): the turns of a loop, sorted by bin, a chunk of them a block of threads.
//
// A thread has up to MAP_ORDER_TURNS turns in registers, a warp neighbouring ones.  Turn by turn the lanes of a warp that
// have the same bin number themselves behind those of it that the warp has had.  Sums over warps and bins say where they
// go, so that the turns of a bin keep their order.  They gather in shared memory and are stored from there: either their
// numbers, or what the updates take of them.
#include "codegen/gpu/order.h"
#include "codegen/accumulate.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/updates.h"
#include "codegen/index.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_counting_sort.h"
#include "map/gpu_updates.h"

#define WARPS (MAP_ORDER_BLOCK / GPU_WARP)

// ---- What the ways of making updates have in common

LLVMValueRef updates_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    return cg_at(l, l->module->i32, base, i);
}

LLVMValueRef updates_load_word(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    return LLVMBuildLoad2(l->m.b, l->module->i32, updates_word(l, base, i), "");
}

LLVMValueRef updates_any(struct cg_lowering *l, LLVMValueRef condition)
{
    return gpu_call(&l->m, "llvm.nvvm.vote.any.sync", 2,
                    (LLVMValueRef[]){gpu_i32(l, -1), condition});
}

static LLVMValueRef ballot(struct cg_lowering *l, LLVMValueRef condition)
{
    return gpu_call(&l->m, "llvm.nvvm.vote.ballot.sync", 2,
                    (LLVMValueRef[]){gpu_i32(l, -1), condition});
}

LLVMValueRef updates_peers(struct cg_lowering *l, LLVMValueRef key, int64_t count,
                           LLVMValueRef is_there)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef peers = ballot(l, is_there);
    for (unsigned bit = 0; (int64_t)1 << bit < count; bit++) {
        LLVMValueRef is_set = LLVMBuildAnd(b, key, gpu_i32(l, (int64_t)1 << bit), "");
        is_set = LLVMBuildICmp(b, LLVMIntNE, is_set, gpu_i32(l, 0), "");
        LLVMValueRef set = ballot(l, is_set);
        LLVMValueRef same = LLVMBuildSelect(b, is_set, set, LLVMBuildNot(b, set, ""), "");
        peers = LLVMBuildAnd(b, peers, same, "");
    }
    return peers;
}

LLVMValueRef updates_population(struct cg_lowering *l, LLVMValueRef x)
{
    return cg_intrinsic(&l->m, "llvm.ctpop", l->module->i32, 1, (LLVMValueRef[]){x});
}

LLVMValueRef updates_rank(struct cg_lowering *l, const struct updates *u, LLVMValueRef lanes)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef below = LLVMBuildShl(b, gpu_i32(l, 1), u->lane, "");
    below = LLVMBuildSub(b, below, gpu_i32(l, 1), "");
    return updates_population(l, LLVMBuildAnd(b, lanes, below, ""));
}

LLVMValueRef updates_sum_to(struct cg_lowering *l, const struct updates *u, LLVMValueRef own)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef sum = own;
    for (unsigned by = 1; by < GPU_WARP; by *= 2) {
        struct cg_element e = {{sum}};
        LLVMValueRef below = gpu_shuffle_up(l, &e, by).v[0];
        LLVMValueRef has = LLVMBuildICmp(b, LLVMIntUGE, u->lane, gpu_i32(l, by), "");
        below = LLVMBuildSelect(b, has, below, gpu_i32(l, 0), "");
        sum = LLVMBuildAdd(b, sum, below, "");
    }
    return sum;
}

LLVMValueRef updates_word_from(struct cg_lowering *l, LLVMValueRef word, LLVMValueRef lane)
{
    struct cg_element e = {{word}};
    return gpu_shuffle_from(l, &e, lane).v[0];
}

LLVMValueRef updates_sum_before(struct cg_lowering *l, const struct updates *u,
                                LLVMValueRef sums, LLVMValueRef own)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef sum = updates_sum_to(l, u, own), end = gpu_i32(l, GPU_WARP - 1);
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    struct cg_branch last = cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, u->lane, end, ""));
    LLVMBuildStore(b, sum, updates_word(l, sums, gpu_wide(l, warp)));
    cg_if_close(l, &last);
    gpu_sync(l);
    // A lane has the sum of a warp.
    LLVMValueRef of_warp = updates_load_word(l, sums, gpu_wide(l, u->lane));
    LLVMValueRef is_before = LLVMBuildICmp(b, LLVMIntULT, u->lane, warp, "");
    of_warp = LLVMBuildSelect(b, is_before, of_warp, gpu_i32(l, 0), "");
    LLVMValueRef before = updates_word_from(l, updates_sum_to(l, u, of_warp), end);
    return LLVMBuildAdd(b, before, LLVMBuildSub(b, sum, own, ""), "");
}

// ---- Turns by bin

struct order {
    LLVMValueRef counts; // [warp][bin], then those of the warps before
    LLVMValueRef begins; // [bin + 1]
    LLVMValueRef sums;   // of warps
    LLVMValueRef list, values[MAP_COPIES];
};

// A turn of the thread.
struct item {
    LLVMValueRef is_there, turn, bin, slot; // turn, bin: i32; slot: i16
    LLVMValueRef values[MAP_COPIES];        // NULL: none
    LLVMValueRef number;                    // of those of the bin that the warp has
};

static struct item read_item(struct cg_lowering *l, const struct updates *u, LLVMValueRef point,
                             LLVMValueRef turn)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_updates *of = &u->of;
    struct item t = {.is_there = LLVMConstInt(l->module->i1, 1, 0)};
    if (of->turns % of->chunk) {
        LLVMValueRef last = cg_int(l->module, of->turns - 1);
        t.is_there = LLVMBuildICmp(b, LLVMIntSLE, turn, last, "");
        turn = LLVMBuildSelect(b, t.is_there, turn, last, "");
    }
    updates_set_point(l, u, point, cg_int(l->module, 0));
    updates_set_turn(l, u, turn);
    updates_lower_turn(l, u, false);
    t.turn = LLVMBuildTrunc(b, turn, l->module->i32, "");
    LLVMValueRef row = cg_index_value(l, &of->row, JOT_I64);
    // A turn that updates nothing is not in the order.
    if (of->put->guard != NEST_NONE)
        t.is_there = LLVMBuildAnd(b, t.is_there, l->values[of->put->guard].re, "");
    t.bin = LLVMBuildTrunc(b, row, l->module->i32, "");
    t.bin = LLVMBuildAnd(b, t.bin, gpu_i32(l, of->bins - 1), "");
    if (!of->is_carried)
        return t;
    LLVMValueRef rows = cg_int(l->module, of->rows), bins = cg_int(l->module, of->bins);
    LLVMValueRef is_row = LLVMBuildICmp(b, LLVMIntULT, row, rows, "");
    t.is_there = LLVMBuildAnd(b, t.is_there, is_row, "");
    t.slot = LLVMBuildTrunc(b, LLVMBuildUDiv(b, row, bins, ""), l->module->i16, "");
    for (int c = 0; of->value != NEST_NONE && c < of->copies; c++) {
        updates_set_point(l, u, point, cg_int(l->module, c));
        updates_lower_turn(l, u, false);
        t.values[c] = l->values[of->value].re;
    }
    return t;
}

// Numbers the turn among those of its bin that the warp has.
static void count_item(struct cg_lowering *l, const struct updates *u, LLVMValueRef counts,
                       struct item *t)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef peers = updates_peers(l, t->bin, u->of.bins, t->is_there);
    LLVMValueRef rank = updates_rank(l, u, peers), at = gpu_wide(l, t->bin);
    LLVMValueRef count = updates_load_word(l, counts, at);
    t->number = LLVMBuildAdd(b, count, rank, "");
    gpu_sync_warp(l);
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, rank, gpu_i32(l, 0), "");
    struct cg_branch lead = cg_if_open(l, LLVMBuildAnd(b, leads, t->is_there, ""));
    LLVMBuildStore(b, LLVMBuildAdd(b, count, updates_population(l, peers), ""),
                   updates_word(l, counts, at));
    cg_if_close(l, &lead);
    gpu_sync_warp(l);
}

// Where the turns of each bin begin in the chunk, for all and for each warp.
static void lay_out_bins(struct cg_lowering *l, const struct updates *u, const struct order *o,
                         LLVMValueRef chunk)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef thread = gpu_wide(l, l->gpu->thread), slot = cg_alloca(l, i32, 1);
    LLVMValueRef has = LLVMBuildICmp(b, LLVMIntULT, l->gpu->thread, gpu_i32(l, u->of.bins), "");
    LLVMValueRef sum = gpu_i32(l, 0), counts[WARPS];
    LLVMBuildStore(b, sum, slot);
    struct cg_branch one = cg_if_open(l, has);
    for (int w = 0; w < WARPS; w++) {
        LLVMValueRef at = LLVMBuildAdd(b, thread, cg_int(l->module, w * u->of.bins), "");
        counts[w] = updates_load_word(l, o->counts, at);
    }
    for (int w = 0; w < WARPS; w++) {
        LLVMValueRef at = LLVMBuildAdd(b, thread, cg_int(l->module, w * u->of.bins), "");
        LLVMBuildStore(b, sum, updates_word(l, o->counts, at));
        sum = LLVMBuildAdd(b, sum, counts[w], "");
    }
    LLVMBuildStore(b, sum, slot);
    cg_if_close(l, &one);
    sum = LLVMBuildLoad2(b, i32, slot, "");
    LLVMValueRef begin = updates_sum_before(l, u, o->sums, sum);
    one = cg_if_open(l, has);
    LLVMBuildStore(b, begin, updates_word(l, o->begins, thread));
    LLVMValueRef at = LLVMBuildMul(b, chunk, cg_int(l->module, u->of.bins + 1), "");
    at = LLVMBuildAdd(b, at, thread, "");
    LLVMBuildStore(b, begin, updates_word(l, u->offsets, at));
    LLVMValueRef is_last =
        LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, u->of.bins - 1), "");
    struct cg_branch last = cg_if_open(l, is_last);
    LLVMValueRef end = LLVMBuildAdd(b, begin, sum, ""), next = cg_int(l->module, 1);
    LLVMBuildStore(b, end, updates_word(l, u->offsets, LLVMBuildAdd(b, at, next, "")));
    LLVMBuildStore(b, end, updates_word(l, o->begins, LLVMBuildAdd(b, thread, next, "")));
    cg_if_close(l, &last);
    cg_if_close(l, &one);
    gpu_sync(l);
}

static void gather_item(struct cg_lowering *l, const struct updates *u, const struct order *o,
                        LLVMValueRef counts, const struct item *t)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef bin = gpu_wide(l, t->bin);
    struct cg_branch there = cg_if_open(l, t->is_there);
    LLVMValueRef to = LLVMBuildAdd(b, t->number, updates_load_word(l, counts, bin), "");
    to = gpu_wide(l, LLVMBuildAdd(b, to, updates_load_word(l, o->begins, bin), ""));
    if (u->of.is_carried)
        LLVMBuildStore(b, t->slot, cg_at(l, l->module->i16, o->list, to));
    else
        LLVMBuildStore(b, t->turn, updates_word(l, o->list, to));
    for (int c = 0; c < MAP_COPIES && t->values[c]; c++)
        LLVMBuildStore(b, t->values[c], cg_at(l, LLVMTypeOf(t->values[c]), o->values[c], to));
    cg_if_close(l, &there);
}

// As many numbers of so many bytes, sixteen of these at a time.
static void copy_list(struct cg_lowering *l, LLVMValueRef from, LLVMValueRef to,
                      LLVMValueRef count, int64_t bytes)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef four = LLVMVectorType(l->module->i32, 4);
    int64_t of_four = 16 / bytes;
    LLVMValueRef fours = LLVMBuildAdd(b, count, gpu_i32(l, of_four - 1), "");
    fours = gpu_wide(l, LLVMBuildUDiv(b, fours, gpu_i32(l, of_four), ""));
    struct cg_loop copy =
        cg_loop_open(l, gpu_wide(l, l->gpu->thread), fours, cg_int(l->module, MAP_ORDER_BLOCK));
    LLVMValueRef words = LLVMBuildLoad2(b, four, cg_at(l, four, from, copy.index), "");
    LLVMSetAlignment(words, 16);
    LLVMSetAlignment(LLVMBuildStore(b, words, cg_at(l, four, to, copy.index)), 16);
    cg_loop_close(l, &copy);
}

static void clear_counts(struct cg_lowering *l, const struct updates *u, const struct order *o)
{
    LLVMTypeRef four = LLVMVectorType(l->module->i32, 4);
    struct cg_loop clear =
        cg_loop_open(l, gpu_wide(l, l->gpu->thread), cg_int(l->module, u->of.bins * WARPS / 4),
                     cg_int(l->module, MAP_ORDER_BLOCK));
    LLVMValueRef at = cg_at(l, four, o->counts, clear.index);
    LLVMSetAlignment(LLVMBuildStore(l->m.b, LLVMConstNull(four), at), 16);
    cg_loop_close(l, &clear);
    gpu_sync(l);
}

void order_lower(struct cg_lowering *l, struct updates *u, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    const struct map_updates *of = &u->of;
    int64_t each = of->chunk / MAP_ORDER_BLOCK, value = map_value_bytes(of->dtype);
    int64_t bytes = of->is_carried ? MAP_SLOT_BYTES : (int64_t)sizeof(uint32_t);
    struct order o = {.counts = gpu_shared(l, (uint64_t)(of->bins * WARPS) * 4),
                      .begins = gpu_shared(l, (uint64_t)(of->bins + 1) * 4),
                      .sums = gpu_shared(l, WARPS * 4),
                      .list = gpu_shared(l, (uint64_t)(of->chunk * bytes))};
    for (int c = 0; of->is_carried && value && c < of->copies; c++)
        o.values[c] = gpu_shared(l, (uint64_t)(of->chunk * value));
    int64_t chunks = of->points * of->chunks;
    struct cg_loop own = gpu_own_chunk_open(l, chunks);
    LLVMValueRef n = cg_int(l->module, of->chunks);
    LLVMValueRef point = LLVMBuildUDiv(b, own.index, n, "");
    LLVMValueRef first = LLVMBuildURem(b, own.index, n, "");
    first = LLVMBuildMul(b, first, cg_int(l->module, of->chunk), "");
    clear_counts(l, u, &o);

    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef mine = gpu_wide(l, LLVMBuildMul(b, warp, gpu_i32(l, of->bins), ""));
    LLVMValueRef counts = updates_word(l, o.counts, mine);
    LLVMValueRef start = LLVMBuildMul(b, warp, gpu_i32(l, each * GPU_WARP), "");
    start = LLVMBuildAdd(b, first, gpu_wide(l, LLVMBuildAdd(b, start, u->lane, "")), "");
    struct item t[MAP_ORDER_TURNS];
    for (int k = 0; k < each; k++)
        t[k] = read_item(l, u, point,
                         LLVMBuildAdd(b, start, cg_int(l->module, (int64_t)k * GPU_WARP), ""));
    for (int k = 0; k < each; k++)
        count_item(l, u, counts, &t[k]);
    gpu_sync(l);
    lay_out_bins(l, u, &o, own.index);
    for (int k = 0; k < each; k++)
        gather_item(l, u, &o, counts, &t[k]);
    gpu_sync(l);
    LLVMValueRef count = updates_load_word(l, o.begins, cg_int(l->module, of->bins));
    LLVMValueRef to = LLVMBuildMul(b, own.index, cg_int(l->module, of->length), "");
    LLVMTypeRef i8 = l->module->i8;
    LLVMValueRef at = LLVMBuildMul(b, to, cg_int(l->module, bytes), "");
    copy_list(l, o.list, cg_at(l, i8, u->list, at), count, bytes);
    for (int c = 0; c < MAP_COPIES && o.values[c]; c++) {
        at = LLVMBuildMul(b, to, cg_int(l->module, value), "");
        copy_list(l, o.values[c], cg_at(l, i8, u->values[c], at), count, value);
    }
    if (own.body)
        gpu_sync(l);
    cg_loop_close(l, &own);
    step->total = chunks;
    step->exact_grid = true;
}
