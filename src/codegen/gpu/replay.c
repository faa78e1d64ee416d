// SPDX-License-Identifier: Apache-2.0
// A loop over time that leaves a tape for one that comes back over it, where the tapes of all
// threads are more than the caches hold: what the first loop carries is kept every few trips only,
// and the way back does its trips again, a segment at a time, with the tape of a segment in
// registers.  Nothing is computed otherwise, so the bits are the same.
//
//     seq t < T { put x[t] = ... }  ...  seq t < T reverse { ... load x[t] ... }
#include "codegen/gpu/replay.h"
#include "codegen/emit.h"
#include "codegen/gpu/gpu.h"
#include "codegen/hoist.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

struct gpu_replay {
    nest_id first, second; // the loops
    int64_t segment;       // trips
    bool *is_tape;         // by buffer
    LLVMValueRef *kept;    // by carry of the first loop: its value before each segment
    struct cg_value *tape; // of a segment, by trip and buffer
    int64_t trip;          // of the segment
    enum {
        REPLAY_OUTSIDE,
        REPLAY_SKIPS, // on the way there
        REPLAY_RUNS
    } now;
};

struct gpu_replay *gpu_replay_of(struct cg_lowering *l, nest_id loop)
{
    const struct nest *n = l->nest;
    struct gpu_replay *r = arena_array(l->arena, struct gpu_replay, 1);
    r->first = r->second = NEST_NONE;
    nest_for_each (s, n, cg_statement(l, loop)->body)
        if (s->kind == NEST_SEQ && r->first != NEST_NONE)
            r->second = nest_id_of(n, s);
        else if (s->kind == NEST_SEQ && n->axes.at[s->axes[0]].segment)
            r->first = nest_id_of(n, s);
    if (r->first == NEST_NONE)
        return NULL;
    r->segment = n->axes.at[cg_statement(l, r->first)->axes[0]].segment;
    r->is_tape = arena_array(l->arena, bool, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        r->is_tape[i] = n->buffers.at[i].space == NEST_AGAIN;
    r->tape = arena_array(l->arena, struct cg_value, (size_t)r->segment * n->buffers.count + 1);
    r->kept = arena_array(l->arena, LLVMValueRef, cg_statement(l, r->first)->n_in + 1);
    return r;
}

// ---- The loops

static LLVMTypeRef type_of_carry(struct cg_lowering *l, const struct nest_statement *s,
                                 uint32_t i)
{
    return LLVMTypeOf(l->values[s->in[i]].re);
}

// Room for what is carried, which becomes registers; it holds what the loop starts from.
static LLVMValueRef *open_carries(struct cg_lowering *l, const struct nest_statement *s)
{
    LLVMValueRef *all = arena_array(l->arena, LLVMValueRef, s->n_in + 1);
    for (uint32_t i = 0; i < s->n_in; i++) {
        all[i] = cg_alloca(l, type_of_carry(l, s, i), 1);
        LLVMBuildStore(l->m.b, l->values[s->in[i]].re, all[i]);
    }
    return all;
}

static void load_carries(struct cg_lowering *l, const struct nest_statement *s,
                         const LLVMValueRef *from, nest_id to)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        LLVMTypeRef type = type_of_carry(l, s, i);
        l->values[to + i] = (struct cg_value){LLVMBuildLoad2(l->m.b, type, from[i], ""), NULL};
    }
}

// A trip at a time (an i64): carries are what memory has, and go back there.
static void do_trip(struct cg_lowering *l, const struct nest_statement *s,
                    const LLVMValueRef *carries, LLVMValueRef at)
{
    l->axes[s->axes[0]] = at;
    load_carries(l, s, carries, s->first_carry);
    cg_lower_block(l, s->body);
    for (uint32_t i = 0; i < s->n_in; i++)
        LLVMBuildStore(l->m.b, l->values[s->yields[i]].re, carries[i]);
}

static void hoist(struct cg_lowering *l, const struct nest_statement *s)
{
    cg_hoist(l, s->axes, 1, s->first_carry, s->n_in, &s->body, 1);
}

static struct cg_loop open_segments(struct cg_lowering *l, const struct gpu_replay *r)
{
    int64_t n = cg_extent(l, cg_statement(l, r->first)) / r->segment;
    return cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, n), cg_int(l->module, 1));
}

static void go_there(struct cg_lowering *l, struct gpu_replay *r)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_statement *s = cg_statement(l, r->first);
    int64_t segments = cg_extent(l, s) / r->segment;
    LLVMValueRef *carries = open_carries(l, s), size = cg_int(l->module, r->segment);
    for (uint32_t i = 0; i < s->n_in; i++)
        r->kept[i] = cg_alloca(l, type_of_carry(l, s, i), segments);
    hoist(l, s);
    r->now = REPLAY_SKIPS;
    struct cg_loop segment = open_segments(l, r);
    for (uint32_t i = 0; i < s->n_in; i++) {
        LLVMTypeRef type = type_of_carry(l, s, i);
        LLVMBuildStore(b, LLVMBuildLoad2(b, type, carries[i], ""),
                       cg_at(l, type, r->kept[i], segment.index));
    }
    struct cg_loop trip = cg_loop_open(l, cg_int(l->module, 0), size, cg_int(l->module, 1));
    LLVMValueRef first = LLVMBuildMul(b, segment.index, size, "");
    do_trip(l, s, carries, LLVMBuildAdd(b, first, trip.index, ""));
    cg_loop_close(l, &trip);
    cg_loop_close(l, &segment);
    r->now = REPLAY_OUTSIDE;
    cg_forget_hoisted(l, s->body);
    load_carries(l, s, carries, s->result);
}

static void come_back(struct cg_lowering *l, struct gpu_replay *r)
{
    LLVMBuilderRef b = l->m.b;
    const struct nest_statement *s = cg_statement(l, r->first),
                                *back = cg_statement(l, r->second);
    int64_t segments = cg_extent(l, s) / r->segment;
    LLVMValueRef *again = open_carries(l, s), *carries = open_carries(l, back);
    hoist(l, s);
    hoist(l, back);
    r->now = REPLAY_RUNS;
    struct cg_loop segment = open_segments(l, r);
    LLVMValueRef number = LLVMBuildSub(b, cg_int(l->module, segments - 1), segment.index, "");
    LLVMValueRef first = LLVMBuildMul(b, number, cg_int(l->module, r->segment), "");
    for (uint32_t i = 0; i < s->n_in; i++) {
        LLVMTypeRef type = type_of_carry(l, s, i);
        LLVMValueRef kept = cg_at(l, type, r->kept[i], number);
        LLVMBuildStore(b, LLVMBuildLoad2(b, type, kept, ""), again[i]);
    }
    for (r->trip = 0; r->trip < r->segment; r->trip++)
        do_trip(l, s, again, LLVMBuildAdd(b, first, cg_int(l->module, r->trip), ""));
    while (r->trip-- > 0)
        do_trip(l, back, carries, LLVMBuildAdd(b, first, cg_int(l->module, r->trip), ""));
    cg_loop_close(l, &segment);
    r->now = REPLAY_OUTSIDE;
    cg_forget_hoisted(l, s->body);
    cg_forget_hoisted(l, back->body);
    load_carries(l, back, carries, back->result);
}

bool gpu_replay(struct cg_lowering *l, nest_id id)
{
    struct gpu_replay *r = l->gpu->time.replay;
    const struct nest_statement *s = cg_statement(l, id);
    bool is_loop = r && s->kind == NEST_SEQ && (id == r->first || id == r->second);
    if (is_loop && id == r->first)
        go_there(l, r);
    else if (is_loop)
        come_back(l, r);
    if (!r || is_loop || r->now == REPLAY_OUTSIDE ||
        (s->kind != NEST_PUT && s->kind != NEST_LOAD) || !r->is_tape[s->buffer])
        return is_loop;
    struct cg_value *taped = &r->tape[(size_t)r->trip * l->nest->buffers.count + s->buffer];
    if (r->now == REPLAY_RUNS && s->kind == NEST_PUT)
        *taped = l->values[s->in[0]];
    else if (r->now == REPLAY_RUNS)
        l->values[s->result] = *taped;
    return true;
}
