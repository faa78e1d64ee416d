// SPDX-License-Identifier: Apache-2.0
// A loop over time that leaves a tape for one that comes back over it, where the tapes of all
// threads are more than the caches hold: what the first loop carries is kept every few steps only,
// and the way back does its steps again, a segment at a time, with the tape of a segment in
// registers.  Nothing is computed otherwise, so the bits are the same.
//
//     seq t < T { put x[t] = ... }  ...  seq t < T reverse { ... load x[t] ... }
#include "codegen/gpu/gpu.h"

#define MOST_STEPS 32          // of a segment
#define MOST_TAPE 64           // values of a segment
#define MOST_WORK 1000.0       // operations of a segment, there and back
#define FITS_CACHES (16 << 20) // bytes of the tapes of all threads

struct gpu_replay {
    nest_id first, second; // the loops
    int64_t segment;       // steps
    const bool *is_tape;   // by buffer
    LLVMValueRef *kept;    // by carry of the first loop: its value before each segment
    struct cg_value *tape; // of a segment, by step and buffer
    int64_t step;          // of the segment
    enum {
        REPLAY_OUTSIDE,
        REPLAY_SKIPS, // on the way there
        REPLAY_RUNS
    } now;
};

static const struct nest_term *only_term(const struct nest_index *x)
{
    return x->constant == 0 && x->count == 1 && !x->terms[0].is_value && x->terms[0].factor == 1
               ? &x->terms[0]
               : NULL;
}

// Whether all that a step does is computing, but for what it puts on tapes, or loads from there.
static bool is_straight(const struct cg_lowering *l, const struct nest_statement *seq,
                        enum nest_kind access, bool *is_tape)
{
    nest_for_each (s, l->nest, seq->body) {
        bool moves = s->kind == NEST_LOAD || s->kind == NEST_PUT;
        if (moves && l->nest->buffers.at[s->buffer].role == NEST_LOCAL) {
            const struct nest_term *t = only_term(&s->index);
            if (s->kind != access || s->op || s->guard != NEST_NONE || !t ||
                t->id != seq->axes[0])
                return false;
            is_tape[s->buffer] = true;
        } else if (s->kind != NEST_OP && s->kind != NEST_CONST && s->kind != NEST_INDEX &&
                   !(s->kind == NEST_LOAD && gpu_is_read_only(l, s->buffer))) {
            return false;
        }
    }
    return true;
}

static int64_t choose_segment(const struct cg_lowering *l, const struct nest_statement *there,
                              const struct nest_statement *back, int64_t tapes)
{
    double work = map_turn_work(l->nest, there->body) + map_turn_work(l->nest, back->body);
    int64_t n = cg_extent(l, there), steps = MOST_STEPS;
    while (steps > 1 &&
           (n % steps || steps * tapes > MOST_TAPE || (double)steps * work > MOST_WORK))
        steps--;
    // What is kept is to be much less than the tape.
    return steps * tapes >= 4 * (int64_t)there->n_in ? steps : 0;
}

// The two loops, if they are all that the tapes are for.
static bool is_pair(const struct cg_lowering *l, nest_id loop, struct gpu_replay *r)
{
    const struct nest_statement *there = cg_statement(l, r->first),
                                *back = cg_statement(l, r->second);
    uint32_t n = l->nest->buffers.count;
    bool *put = arena_array(l->arena, bool, n + 1), *read = arena_array(l->arena, bool, n + 1);
    if (there->reverse || !back->reverse || cg_extent(l, there) != cg_extent(l, back) ||
        !is_straight(l, there, NEST_PUT, put) || !is_straight(l, back, NEST_LOAD, read) ||
        map_carries_complex(l->nest, there) || map_carries_complex(l->nest, back))
        return false;
    int64_t tapes = 0, bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_buffer *b = &l->nest->buffers.at[i];
        if (put[i] != read[i] || (put[i] && dtype_is_complex(b->dtype)))
            return false;
        tapes += put[i];
        bytes += put[i] ? b->count * (int64_t)jot_dtype_size(b->dtype) : 0;
    }
    nest_for_all (s, l->nest) { // by anyone else
        bool uses = (s->kind == NEST_LOAD || s->kind == NEST_PUT) && put[s->buffer];
        nest_id axis = uses ? only_term(&s->index) ? only_term(&s->index)->id : NEST_NONE : 0;
        if (uses && axis != there->axes[0] && axis != back->axes[0])
            return false;
    }
    r->is_tape = put;
    r->segment = tapes ? choose_segment(l, there, back, tapes) : 0;
    return r->segment && bytes * cg_extent(l, cg_statement(l, loop)) > FITS_CACHES;
}

struct gpu_replay *gpu_replay_find(struct cg_lowering *l, nest_id loop)
{
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, loop)->body];
    struct gpu_replay *r = arena_array(l->arena, struct gpu_replay, 1);
    r->first = r->second = NEST_NONE;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        enum nest_kind kind = cg_statement(l, id)->kind;
        if (kind > NEST_PUT && kind != NEST_SEQ)
            return NULL;
        if (kind == NEST_SEQ && r->second != NEST_NONE)
            return NULL;
        if (kind == NEST_SEQ)
            *(r->first == NEST_NONE ? &r->first : &r->second) = id;
    }
    if (r->second == NEST_NONE || !is_pair(l, loop, r))
        return NULL;
    size_t values = (size_t)r->segment * l->nest->buffers.count;
    r->tape = arena_array(l->arena, struct cg_value, values + 1);
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

// A step at a time (an i64): carries are what memory has, and go back there.
static void do_step(struct cg_lowering *l, const struct nest_statement *s,
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
    struct cg_loop step = cg_loop_open(l, cg_int(l->module, 0), size, cg_int(l->module, 1));
    LLVMValueRef first = LLVMBuildMul(b, segment.index, size, "");
    do_step(l, s, carries, LLVMBuildAdd(b, first, step.index, ""));
    cg_loop_close(l, &step);
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
    for (r->step = 0; r->step < r->segment; r->step++)
        do_step(l, s, again, LLVMBuildAdd(b, first, cg_int(l->module, r->step), ""));
    while (r->step-- > 0)
        do_step(l, back, carries, LLVMBuildAdd(b, first, cg_int(l->module, r->step), ""));
    cg_loop_close(l, &segment);
    r->now = REPLAY_OUTSIDE;
    cg_forget_hoisted(l, s->body);
    cg_forget_hoisted(l, back->body);
    load_carries(l, back, carries, back->result);
}

bool gpu_replay(struct cg_lowering *l, nest_id id)
{
    struct gpu_replay *r = l->gpu->replay;
    const struct nest_statement *s = cg_statement(l, id);
    bool is_loop = r && s->kind == NEST_SEQ && (id == r->first || id == r->second);
    if (is_loop && id == r->first)
        go_there(l, r);
    else if (is_loop)
        come_back(l, r);
    if (!r || is_loop || r->now == REPLAY_OUTSIDE ||
        (s->kind != NEST_PUT && s->kind != NEST_LOAD) || !r->is_tape[s->buffer])
        return is_loop;
    struct cg_value *taped = &r->tape[(size_t)r->step * l->nest->buffers.count + s->buffer];
    if (r->now == REPLAY_RUNS && s->kind == NEST_PUT)
        *taped = l->values[s->in[0]];
    else if (r->now == REPLAY_RUNS)
        l->values[s->result] = *taped;
    return true;
}
