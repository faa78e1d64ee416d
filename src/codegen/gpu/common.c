// SPDX-License-Identifier: Apache-2.0
// A loop over time of each thread, part of which is the same in all threads of the kernel: keys of
// random numbers that lanes share, what is made of times alone.  A block has a warp more, which does
// that part for some trips, while the others do the rest of the trips before.
//
//     turn c      the last warp: its first thread what the common part of chunk c carries from trip to
//                 trip, then a thread for each trip what the others want of it, to shared memory;
//                 threads with points: the rest of the trips of chunk c - 1, with what is there;
//                 what does not come from the trip before, of a few trips side by side
//
// Shared memory holds two chunks, the carries of the trips of one, and at the end the last ones.  Blocks
// are as large as leaves one for a multiprocessor, which then has one such warp.
#include "codegen/gpu/common.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/hoist.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_ahead.h"

#include "ir/cost.h"

#include <string.h>

#define TRIPS GPU_WARP // of a chunk
#define SLOT 8         // bytes

struct gpu_common {
    const struct map_ahead *of;
    LLVMValueRef inside; // whether the thread has a point of its own
};

struct gpu_common *gpu_common_of(struct cg_lowering *l, nest_id loop)
{
    nest_for_each (s, l->nest, cg_statement(l, loop)->body)
        if (s->level == NEST_AHEAD) {
            struct map_gpu m = gpu_map_of(l);
            struct gpu_common *c = arena_new(l->arena, struct gpu_common);
            *c = (struct gpu_common){.of = map_ahead_find(&m, loop)};
            return c;
        }
    return NULL;
}

bool gpu_common_varies(const struct gpu_common *c, nest_id value)
{
    return c->of->varies[value];
}

void gpu_common_guard(struct gpu_common *c, LLVMValueRef inside) { c->inside = inside; }

// ---- The loop

struct lowering {
    struct cg_lowering *l;
    struct gpu_common *c;
    const struct nest_statement *seq;
    LLVMValueRef state, trips, history; // shared memory
    LLVMValueRef *carries;              // memory of a thread that becomes registers
};

static LLVMTypeRef slot_type(const struct lowering *p, nest_id value)
{
    return cg_lane_type(p->l->module, p->l->nest->values.at[value].dtype);
}

static LLVMValueRef slot_at(const struct lowering *p, LLVMValueRef base, LLVMValueRef i)
{
    LLVMTypeRef slot = LLVMArrayType2(p->l->module->i8, SLOT);
    return cg_at(p->l, slot, base, i);
}

// Of trip `at` (an i64) of all.
static LLVMValueRef slot_of_trip(const struct lowering *p, LLVMValueRef at, uint32_t slot)
{
    LLVMBuilderRef b = p->l->m.b;
    LLVMValueRef row = LLVMBuildAnd(b, at, cg_int(p->l->module, 2 * TRIPS - 1), "");
    row = LLVMBuildMul(b, row, cg_int(p->l->module, p->c->of->n_slots), "");
    return slot_at(p, p->trips, LLVMBuildAdd(b, row, cg_int(p->l->module, slot), ""));
}

static LLVMValueRef load_slot(const struct lowering *p, nest_id value, LLVMValueRef at)
{
    LLVMValueRef v = LLVMBuildLoad2(p->l->m.b, slot_type(p, value), at, "");
    LLVMSetAlignment(v, dtype_get(p->l->nest->values.at[value].dtype)->bytes);
    return v;
}

static void store_slot(const struct lowering *p, nest_id value, LLVMValueRef v, LLVMValueRef at)
{
    LLVMSetAlignment(LLVMBuildStore(p->l->m.b, v, at),
                     dtype_get(p->l->nest->values.at[value].dtype)->bytes);
}

// Moves the carries that do not vary from shared memory, or there.
static void move_state(const struct lowering *p, bool is_load)
{
    for (uint32_t i = 0; i < p->seq->n_in; i++) {
        nest_id v = p->seq->first_carry + i;
        LLVMValueRef shared = slot_at(p, p->state, cg_int(p->l->module, i));
        if (!p->c->of->varies[v])
            store_slot(p, v, load_slot(p, v, is_load ? shared : p->carries[i]),
                       is_load ? p->carries[i] : shared);
    }
}

// What of a trip is done: what the common part carries, what others want of it, the rest.
enum part { CARRIED, WANTED, REST };

// The common carries as trip `at` finds them.
static LLVMValueRef carry_of_trip(const struct lowering *p, LLVMValueRef at, uint32_t carry)
{
    LLVMBuilderRef b = p->l->m.b;
    LLVMValueRef row = LLVMBuildAnd(b, at, cg_int(p->l->module, TRIPS - 1), "");
    row = LLVMBuildMul(b, row, cg_int(p->l->module, p->seq->n_in), "");
    return slot_at(p, p->history, LLVMBuildAdd(b, row, cg_int(p->l->module, carry), ""));
}

static void load_carries(const struct lowering *p, LLVMValueRef at, enum part part)
{
    for (uint32_t i = 0; i < p->seq->n_in; i++) {
        nest_id v = p->seq->first_carry + i;
        if (p->c->of->varies[v] != (part == REST))
            continue;
        LLVMValueRef from = part == WANTED ? carry_of_trip(p, at, i) : p->carries[i];
        p->l->values[v].re = load_slot(p, v, from);
        if (part == CARRIED)
            store_slot(p, v, p->l->values[v].re, carry_of_trip(p, at, i));
    }
}

static void store_carries(const struct lowering *p, enum part part)
{
    for (uint32_t i = 0; i < p->seq->n_in; i++)
        if (p->c->of->varies[p->seq->first_carry + i] == (part == REST))
            store_slot(p, p->seq->first_carry + i, p->l->values[p->seq->yields[i]].re,
                       p->carries[i]);
}

static void set_trip(const struct lowering *p, LLVMValueRef at)
{
    struct cg_lowering *l = p->l;
    LLVMValueRef last = cg_int(l->module, cg_extent(l, p->seq) - 1);
    l->axes[p->seq->axes[0]] = p->seq->reverse ? LLVMBuildSub(l->m.b, last, at, "") : at;
}

// The common part; what nobody takes of it is left out when the code is simplified.
static void do_common(const struct lowering *p, LLVMValueRef at, enum part part)
{
    struct cg_lowering *l = p->l;
    set_trip(p, at);
    load_carries(p, at, part);
    nest_for_each (t, l->nest, p->seq->body) {
        nest_id id = nest_id_of(l->nest, t);
        bool is_made_anywhere = t->kind == NEST_CONST || t->kind == NEST_INDEX;
        if (!l->marks[id].is_hoisted && (is_made_anywhere || map_is_common(p->c->of, t)))
            cg_lower_statement(l, id);
    }
    for (uint32_t i = 0; part == WANTED && i < p->c->of->n_slots; i++)
        store_slot(p, p->c->of->slots[i], l->values[p->c->of->slots[i]].re,
                   slot_of_trip(p, at, i));
    if (part == CARRIED)
        store_carries(p, part);
}

// The slots of the trips of a strip, a lane each.
static void load_slots(const struct lowering *p, LLVMValueRef at)
{
    struct cg_lowering *l = p->l;
    LLVMBuilderRef b = l->m.b;
    for (uint32_t i = 0; i < p->c->of->n_slots; i++) {
        nest_id slot = p->c->of->slots[i];
        LLVMValueRef all = load_slot(p, slot, slot_of_trip(p, at, i));
        all = cg_splat(&l->m, all, l->vector.lanes);
        for (unsigned k = 1; k < l->vector.lanes; k++) {
            LLVMValueRef trip = LLVMBuildAdd(b, at, cg_int(l->module, k), "");
            LLVMValueRef one = load_slot(p, slot, slot_of_trip(p, trip, i));
            all = LLVMBuildInsertElement(b, all, one, gpu_i32(l, k), "");
        }
        l->values[slot] = (struct cg_value){all, NULL};
    }
}

// The statements that differ: those that are apart from the trip before, or the others.
static void do_rest(const struct lowering *p, bool apart)
{
    const struct nest_block *b = &p->l->nest->blocks.at[p->seq->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (!p->l->marks[id].is_hoisted && p->c->of->is_apart[id] == apart &&
            !map_is_common(p->c->of, cg_statement(p->l, id)))
            cg_lower_statement(p->l, id);
    }
}

// Takes lane k of a value that was made for a strip.
static void take_lane(struct cg_lowering *l, nest_id value, const struct cg_value *all,
                      unsigned k)
{
    struct cg_value v = all[value];
    if (!v.re || cg_lanes_of(v.re) == 1)
        return;
    l->values[value].re = cg_extract(&l->m, v.re, k, 1);
    l->values[value].im = v.im ? cg_extract(&l->m, v.im, k, 1) : NULL;
}

static void take_trip(const struct lowering *p, const struct cg_value *all, unsigned k)
{
    for (uint32_t i = 0; i < p->c->of->n_slots; i++)
        take_lane(p->l, p->c->of->slots[i], all, k);
    nest_for_each (s, p->l->nest, p->seq->body)
        for (uint32_t j = 0; p->c->of->is_apart[nest_id_of(p->l->nest, s)] && j < s->n_results;
             j++)
            take_lane(p->l, s->result + j, all, k);
}

// The rest of the trips of a strip: side by side what does not come from the trips before.
static void do_strip(const struct lowering *p, LLVMValueRef at)
{
    struct cg_lowering *l = p->l;
    uint32_t n = l->nest->values.count;
    struct cg_value *all = arena_array(l->arena, struct cg_value, n + 1);
    l->vector.lanes = (unsigned)p->c->of->strip;
    load_slots(p, at);
    do_rest(p, true);
    l->vector.lanes = 1;
    memcpy(all, l->values, n * sizeof *all);
    for (unsigned k = 0; k < p->c->of->strip; k++) {
        LLVMValueRef trip = LLVMBuildAdd(l->m.b, at, cg_int(l->module, k), "");
        set_trip(p, trip);
        take_trip(p, all, k);
        load_carries(p, trip, REST);
        do_rest(p, false);
        store_carries(p, REST);
    }
}

// The trips of a chunk: by a thread each, or all by each thread.
static void do_chunk(const struct lowering *p, LLVMValueRef chunk, enum part part)
{
    struct cg_lowering *l = p->l;
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef size = cg_int(l->module, TRIPS), n = cg_int(l->module, cg_extent(l, p->seq));
    LLVMValueRef first = LLVMBuildMul(b, chunk, size, "");
    LLVMValueRef end = LLVMBuildNSWAdd(b, first, size, "");
    end = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, end, n, ""), end, n, "");
    if (part == WANTED) {
        LLVMValueRef lane = LLVMBuildURem(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
        LLVMValueRef at = LLVMBuildAdd(b, first, gpu_wide(l, lane), "");
        struct cg_branch is_trip = cg_if_open(l, LLVMBuildICmp(b, LLVMIntSLT, at, end, ""));
        do_common(p, at, part);
        cg_if_close(l, &is_trip);
        return;
    }
    int64_t strip = part == REST ? p->c->of->strip : 1;
    struct cg_loop trip = cg_loop_open(l, first, end, cg_int(l->module, strip));
    if (part == REST)
        do_strip(p, trip.index);
    else
        do_common(p, trip.index, part);
    cg_loop_close(l, &trip);
}

// Shared memory of the block; groups are single threads here.
static LLVMValueRef shared_of_block(struct cg_lowering *l, uint64_t bytes)
{
    uint64_t room = (bytes / l->gpu->block + 16) / 16 * 16;
    LLVMValueRef mine = gpu_shared(l, room), thread = gpu_wide(l, l->gpu->thread);
    LLVMValueRef back = LLVMBuildMul(l->m.b, thread, cg_int(l->module, -(int64_t)room), "");
    return cg_at(l, l->module->i8, mine, back);
}

static void open_carries(struct lowering *p)
{
    struct cg_lowering *l = p->l;
    p->carries = arena_array(l->arena, LLVMValueRef, p->seq->n_in + 1);
    for (uint32_t i = 0; i < p->seq->n_in; i++) {
        nest_id v = p->seq->first_carry + i;
        p->carries[i] = cg_alloca(l, slot_type(p, v), 1);
        store_slot(p, v, l->values[p->seq->in[i]].re, p->carries[i]);
    }
}

static void lower(struct lowering *p)
{
    struct cg_lowering *l = p->l;
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef zero = cg_int(l->module, 0), one = cg_int(l->module, 1);
    LLVMValueRef end =
        cg_int(l->module, (cg_extent(l, p->seq) + TRIPS - 1) / TRIPS); // of the chunks
    LLVMValueRef maker = gpu_i32(l, l->gpu->block - GPU_WARP), thread = l->gpu->thread;
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, thread, maker, "");
    LLVMValueRef has_point = LLVMBuildICmp(b, LLVMIntSLT, thread, maker, "");
    LLVMValueRef is_maker = LLVMBuildNot(b, has_point, "");
    struct cg_loop turn = cg_loop_open(l, zero, LLVMBuildAdd(b, end, one, ""), one);
    LLVMValueRef is_any = LLVMBuildICmp(b, LLVMIntSLT, turn.index, end, "");
    struct cg_branch ahead = cg_if_open(l, LLVMBuildAnd(b, is_maker, is_any, ""));
    struct cg_branch carried = cg_if_open(l, is_first);
    do_chunk(p, turn.index, CARRIED);
    cg_if_close(l, &carried);
    gpu_sync_warp(l);
    do_chunk(p, turn.index, WANTED);
    gpu_sync_warp(l);
    cg_if_close(l, &ahead);
    is_any = LLVMBuildICmp(b, LLVMIntSGT, turn.index, zero, "");
    struct cg_branch rest = cg_if_open(l, LLVMBuildAnd(b, has_point, is_any, ""));
    do_chunk(p, LLVMBuildSub(b, turn.index, one, ""), REST);
    cg_if_close(l, &rest);
    gpu_barrier(&l->m);
    cg_loop_close(l, &turn);
    struct cg_branch last = cg_if_open(l, is_first);
    move_state(p, false);
    cg_if_close(l, &last);
    gpu_barrier(&l->m);
    move_state(p, true);
}

bool gpu_common(struct cg_lowering *l, nest_id id)
{
    struct gpu_common *c = l->gpu->time.common;
    const struct nest_statement *s = cg_statement(l, id);
    if (c && c->inside && s->kind == NEST_PUT) {
        struct cg_branch inside = cg_if_open(l, c->inside);
        cg_store(l, s, l->values[s->in[0]]);
        cg_if_close(l, &inside);
        return true;
    }
    if (!c || id != c->of->loop)
        return false;
    cg_hoist(l, s->axes, 1, s->first_carry, s->n_in, &s->body, 1);
    struct lowering p = {.l = l, .c = c, .seq = s};
    p.state = shared_of_block(l, (uint64_t)s->n_in * SLOT);
    p.trips = shared_of_block(l, (uint64_t)2 * TRIPS * c->of->n_slots * SLOT);
    p.history = shared_of_block(l, (uint64_t)TRIPS * s->n_in * SLOT);
    open_carries(&p);
    lower(&p);
    cg_forget_hoisted(l, s->body);
    for (uint32_t i = 0; i < s->n_in; i++)
        l->values[s->result + i] =
            (struct cg_value){load_slot(&p, s->first_carry + i, p.carries[i]), NULL};
    return true;
}
