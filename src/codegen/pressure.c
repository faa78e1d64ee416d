// SPDX-License-Identifier: Apache-2.0
// How many vectors go side by side through a loop over time: as many as hide the latency of its
// operations and keep what they carry in registers.
//
// Turns come one after the other, so what is live only inside a trip is live once, and what stands
// between trips is live for every vector.  Measured on a processor with 32 registers of 16
// lanes, in 1e9 trips of a lane each second, for 1, 2, 4 and 8 vectors: spring 4, 9, 17, 25;
// Lorenz by Runge-Kutta .84, 1.4, 1.7, 1.2; pendulum with its sine .74, 1.4, 2.3, 3.2.  On one with
// 16 registers of 8 lanes, in cycles for a trip of a vector, for 4, 5, 6, 7 and 8: spring 2.9, 2.4,
// 2.1, 1.9, 3.9; its gradient 8.4, 7.1, 7.1, 8.3, 9.8; Lorenz 23, 22, 23, 23, 22.
#include "codegen/pressure.h"
#include "codegen/lower.h"
#include "codegen/size.h"
#include "codegen/turn.h"
#include "ir/cost.h"

#define SLOTS 384.0       // operations that the processor looks ahead by
#define LONG_TRIP 1000    // operations that have enough independent ones among them
#define SHORT_LOCAL 16    // elements
#define LOCAL_BYTES 16384 // what stays in the nearest cache
#define TAPE_BYTES (UINT64_C(1) << 20) // and in the second one

struct live {
    const struct cg_lowering *l;
    nest_id loop; // whose lanes there are
    const bool *varies;
    unsigned lanes;
    uint32_t *born, *last;  // by value: numbers in the walk, from 1
    uint32_t number;        // of the statement that the walk is at
    double times;           // that the loops around a statement inside a trip turn
    VEC(struct span) loops; // over time
};

struct span {
    uint32_t first, last;
    double ops, shared_ops;            // of each lane, of all
    bool is_inner, is_while, has_rows; // that lanes load or put
};

static double vectors_of(const struct live *p, nest_id value)
{
    jot_dtype d = p->l->nest->values.at[value].dtype;
    if (!p->varies[value] || d == JOT_BOOL)
        return 0;
    double bytes = (double)dtype_get(dtype_real(d))->bytes * p->lanes;
    unsigned vector = p->l->module->vector_bytes;
    return (bytes > vector ? bytes / vector : 1) * (dtype_is_complex(d) ? 2 : 1);
}

static void read_all(struct live *p, uint32_t n, const nest_id *values)
{
    for (uint32_t i = 0; i < n; i++)
        p->last[values[i]] = p->number;
}

static void read(struct live *p, const struct nest_statement *s)
{
    nest_for_uses (v, s)
        p->last[v] = p->number;
}

static void bear(struct live *p, nest_id first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        p->born[first + i] = p->last[first + i] = p->number;
}

static void count_block(struct live *p, uint32_t block);

static void count_loop(struct live *p, const struct nest_statement *s)
{
    bool over_time = s->kind == NEST_SEQ || s->kind == NEST_WHILE;
    uint32_t first = ++p->number, at = p->loops.count, n_values = p->l->nest->values.count;
    for (uint32_t i = 0; over_time && i < at; i++)
        if (p->loops.at[i].last == 0)
            p->loops.at[i].is_inner = false;
    if (over_time)
        vec_push(
            p->l->arena, &p->loops,
            (struct span){.first = first, .is_inner = true, .is_while = s->kind == NEST_WHILE});
    bear(p, s->first_carry, over_time ? s->n_in : 0);
    count_block(p, s->body);
    count_block(p, s->other);
    p->number++;
    read_all(p, s->n_yields, s->yields);
    for (uint32_t i = 0; i < s->n_combines; i++)
        read_all(p, s->combines[i].n, s->combines[i].value);
    // What comes from outside is read again in the next iteration.
    for (uint32_t v = 0; s->kind != NEST_IF && v < n_values; v++)
        if (p->born[v] < first && p->last[v] > first)
            p->last[v] = p->number;
    for (uint32_t i = 0; over_time && i < s->n_in; i++)
        p->last[s->first_carry + i] = p->number;
    if (over_time)
        p->loops.at[at].last = p->number;
}

static bool is_row(const struct live *p, const struct nest_statement *s)
{
    return (s->kind == NEST_PUT || (s->kind == NEST_LOAD && p->varies[s->result])) &&
           !(p->l->nest->buffers.at[s->buffer].role == NEST_LOCAL &&
             cg_is_inside(p->l, s->buffer, p->loop));
}

// The work of a statement goes to the loops around it.
static void count(struct live *p, const struct nest_statement *s)
{
    double ops = p->times * (s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 1);
    bool shared = s->n_results && !p->varies[s->result];
    for (uint32_t k = 0; k < p->loops.count; k++)
        if (p->loops.at[k].last == 0) {
            *(shared ? &p->loops.at[k].shared_ops : &p->loops.at[k].ops) += ops;
            p->loops.at[k].has_rows |= is_row(p, s);
        }
}

static void count_block(struct live *p, uint32_t block)
{
    nest_for_each (s, p->l->nest, block) {
        p->number++;
        read(p, s);
        count(p, s);
        double times = p->times;
        if (s->kind == NEST_MAP || s->kind == NEST_FOLD)
            p->times *= (double)cg_extent(p->l, s);
        if (s->body != NEST_NONE)
            count_loop(p, s);
        p->times = times;
        bear(p, s->result, s->n_results);
    }
}

// Vectors that live at a statement of the walk.
static double live_at(const struct live *p, uint32_t number)
{
    double n = 0;
    for (uint32_t v = 0; v < p->l->nest->values.count; v++)
        if (p->born[v] && p->born[v] < number && p->last[v] >= number)
            n += vectors_of(p, v);
    return n;
}

// Short locals of every lane, which stand in registers.
static double short_locals(const struct live *p, nest_id loop)
{
    double n = 0;
    unsigned vector = p->l->module->vector_bytes;
    for (uint32_t i = 0; i < p->l->nest->buffers.count; i++) {
        const struct nest_buffer *b = &p->l->nest->buffers.at[i];
        double bytes = (double)dtype_get(b->dtype)->bytes * p->lanes;
        if (b->role == NEST_LOCAL && b->count <= SHORT_LOCAL && cg_is_inside(p->l, i, loop))
            n += (double)b->count * (bytes > vector ? bytes / vector : 1);
    }
    return n;
}

// What does not fit stands in the nearest cache, which costs less than waiting while there is room; so
// what counts is what trips hand on, beside a register for what they compute.  What they only read is an
// operand in that cache, unless they load or put rows too.
static unsigned chunks_of(const struct live *p, const struct span *s, double locals)
{
    double kept = live_at(p, s->first + 1) + locals - (s->has_rows ? 0 : live_at(p, s->first));
    double fit = kept > 0 ? (p->l->module->registers - 1) / kept : CG_CHUNKS,
           hide = SLOTS / (s->ops + 1);
    // What all lanes share is computed once for all that go side by side.
    if (s->shared_ops > s->ops / 8 && hide < 4)
        hide = 4;
    // A vector that is done costs a jump in every turn of those that are not.
    if (s->is_while && hide > 4)
        hide = 4;
    double n = fit < hide ? fit : hide;
    if (2 * kept * p->l->module->vector_bytes > LOCAL_BYTES)
        return 1;
    return n >= CG_CHUNKS ? CG_CHUNKS : n >= 2 ? (unsigned)n : s->ops < LONG_TRIP ? 2 : 1;
}

// By buffer, whether trips of loops over time go through it one after the other.
static const bool *find_tapes(const struct cg_lowering *l)
{
    bool *is_time = arena_array(l->arena, bool, l->nest->axes.count + 1);
    bool *is_tape = arena_array(l->arena, bool, l->nest->buffers.count + 1);
    for (uint32_t i = 0; i < l->nest->statements.count; i++)
        if (cg_statement(l, i)->kind == NEST_SEQ)
            is_time[cg_statement(l, i)->axes[0]] = true;
    nest_for_all (s, l->nest)
        for (uint32_t k = 0; s->buffer != NEST_NONE && k < s->index.count; k++)
            if (!s->index.terms[k].is_value && is_time[s->index.terms[k].id])
                is_tape[s->buffer] = true;
    return is_tape;
}

// Memory of the locals that every lane has: of the tapes, and of the others.
struct locals {
    uint64_t tapes, state;
};

static struct locals local_bytes(const struct cg_lowering *l, nest_id loop, unsigned lanes)
{
    struct locals bytes = {0};
    const bool *is_tape = find_tapes(l);
    for (uint32_t i = 0; i < l->nest->buffers.count; i++) {
        const struct nest_buffer *b = &l->nest->buffers.at[i];
        if (b->role == NEST_LOCAL && cg_is_inside(l, i, loop))
            *(is_tape[i] ? &bytes.tapes : &bytes.state) +=
                (uint64_t)b->count * dtype_get(b->dtype)->bytes * lanes;
    }
    return bytes;
}

unsigned cg_choose_chunks(struct cg_lowering *l, nest_id id, nest_id axis, unsigned lanes)
{
    const struct nest_statement *s = cg_statement(l, id);
    if (!nest_has_time(l->nest, s->body))
        return 0;
    uint32_t n_values = l->nest->values.count + 1;
    struct live p = {.l = l,
                     .loop = id,
                     .varies = cg_variation(l, id, axis),
                     .lanes = lanes,
                     .times = 1,
                     .born = arena_array(l->arena, uint32_t, n_values),
                     .last = arena_array(l->arena, uint32_t, n_values)};
    count_block(&p, s->body);
    unsigned chunks = CG_CHUNKS;
    double locals = short_locals(&p, id);
    for (uint32_t i = 0; i < p.loops.count; i++) {
        unsigned n = p.loops.at[i].is_inner ? chunks_of(&p, &p.loops.at[i], locals) : CG_CHUNKS;
        chunks = n < chunks ? n : chunks;
    }
    while (chunks > 1 && !cg_may_repeat(l, s, chunks))
        chunks--;
    // Lanes of several vectors are side by side already.
    while (chunks > 1 && lanes > l->module->vector_bytes / 4 && chunks * lanes > CG_CHUNK)
        chunks--;
    struct locals bytes = local_bytes(l, id, lanes);
    while (chunks > 1 &&
           (bytes.state * chunks > LOCAL_BYTES || bytes.tapes * chunks > TAPE_BYTES))
        chunks--;
    // As many groups of them, but of the same size.
    int64_t vectors = (l->nest->axes.at[axis].extent + lanes - 1) / lanes,
            groups = (vectors + chunks - 1) / chunks;
    return groups ? (unsigned)((vectors + groups - 1) / groups) : 1;
}
