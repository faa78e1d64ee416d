// SPDX-License-Identifier: Apache-2.0
// Loops that go on in time: running folds, loops with carries, branches, and what threads of a GPU share of them.
#include "nest_eval_memory.h"

#include <stdlib.h>

static const struct nest_statement *statement(const struct machine_state *m, nest_id id)
{
    return &m->nest->statements.at[id];
}

static int64_t extent(const struct machine_state *m, nest_id axis)
{
    return m->nest->axes.at[axis].extent;
}

// Sets the axis of the loop in turn i of it.
static void set_time(const struct machine_state *m, struct lane *l,
                     const struct nest_statement *s, int64_t i)
{
    l->axes[s->axes[0]] = s->reverse ? extent(m, s->axes[0]) - 1 - i : i;
}

// --- running folds

// The first element is its own running value; what runs is not rounded to a half type.
void run_yield(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    if (!m->running[id])
        m->running[id] = arena_array(m->arena, struct running, s->n_combines + 1);
    for (uint32_t k = 0; k < s->n_combines; k++) {
        const struct nest_combine *c = &s->combines[k];
        struct running *r = &m->running[id][k];
        jot_dtype d = m->nest->values.at[c->value[0]].dtype;
        struct eval_number x = wide_value(m, l, c->value[0]);
        if (m->scan_starts)
            r->best = x;
        else
            combine_number(&r->best, (enum ir_op)c->op, d, x);
        r->all = r->best;
        if (m->before) {
            r->all = *m->before;
            combine_number(&r->all, (enum ir_op)c->op, d, r->best);
        }
        set_value(m, l, s->result + k, r->all);
    }
}

// Elements first .. end of a scan; those whose puts are for later are only combined.
static jot_status run_elements(struct machine_state *m, struct lane *l, nest_id id,
                               int64_t first, int64_t end, bool puts)
{
    const struct nest_statement *s = statement(m, id);
    const struct nest_block *body = &m->nest->blocks.at[s->body];
    for (int64_t i = first; i < end; i++) {
        set_time(m, l, s, i);
        forget_locals(m, l, id);
        bool is_behind = false;
        for (uint32_t k = 0; k < body->statements.count; k++) {
            enum nest_kind kind = statement(m, body->statements.at[k])->kind;
            if (!puts && (is_behind || kind == NEST_PUT))
                continue;
            is_behind |= kind == NEST_YIELD;
            m->scan_starts = i == first; // A scan before the yield may have changed it.
            JOT_TRY(run_statement(m, l, body->statements.at[k]));
        }
    }
    return JOT_OK;
}

static nest_id yield_of(const struct machine_state *m, const struct nest_statement *scan)
{
    nest_for_each (s, m->nest, scan->body)
        if (s->kind == NEST_YIELD)
            return nest_id_of(m->nest, s);
    return NEST_NONE;
}

#define CHUNK 1024

// A worker has a chunk, which it combines for itself first, and goes through again when it knows what comes before it:
// the last one first.  How a chunk is combined inside is the device's own (docs/numerics.md).
static jot_status run_chunks(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    int64_t n = extent(m, s->axes[0]), chunks = (n + CHUNK - 1) / CHUNK;
    nest_id yield = yield_of(m, s);
    const struct nest_combine *c = &statement(m, yield)->combines[0];
    struct eval_number *before = arena_array(m->arena, struct eval_number, chunks + 1);
    uint32_t first = m->last_block + 1;
    m->last_block += (uint32_t)chunks;
    for (int64_t i = 0; i < 2 * chunks; i++) {
        bool puts = i >= chunks;
        int64_t chunk = chunks - 1 - i % chunks, start = chunk * CHUNK;
        m->who = (struct worker){first + (uint32_t)chunk, 0};
        m->before = puts && chunk ? &before[chunk] : NULL;
        JOT_TRY(run_elements(m, l, id, start, start + CHUNK < n ? start + CHUNK : n, puts));
        if (!puts)
            before[chunk + 1] = m->running[yield][0].best;
        for (int64_t k = 2; i == chunks - 1 && k < chunks; k++) {
            struct eval_number x = before[k];
            before[k] = before[k - 1];
            combine_number(&before[k], (enum ir_op)c->op, m->nest->values.at[c->value[0]].dtype,
                           x);
        }
    }
    m->before = NULL;
    return JOT_OK;
}

// One thread of a group goes through a running fold for all of it.
jot_status run_scan(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    struct worker before = m->who;
    bool outer = m->scan_starts, is_shared = m->is_mapped && s->level == NEST_THREAD;
    unsigned team = m->team;
    const struct eval_number *outside = m->before;
    nest_id loop = m->shared_loop;
    m->shared_loop = is_shared ? id : loop;
    if (team != 1)
        m->loop++;
    m->before = NULL;
    m->who.thread = team > 1 ? 0 : m->who.thread;
    m->team = 1;
    jot_status status = is_shared ? run_chunks(m, l, id)
                                  : run_elements(m, l, id, 0, extent(m, s->axes[0]), true);
    m->loop += team != 1;
    m->who = before;
    m->team = team;
    m->before = outside;
    m->shared_loop = loop;
    m->scan_starts = outer;
    return status;
}

// --- loops with state

// to[0 .. n) = from, all at once.
static void copy_values(struct machine_state *m, struct lane *l, uint32_t n, nest_id to,
                        const nest_id *from)
{
    struct arena_mark mark = arena_mark(m->arena);
    struct cell *values = arena_array(m->arena, struct cell, n);
    for (uint32_t i = 0; i < n; i++)
        values[i] = l->values[from[i]];
    for (uint32_t i = 0; i < n; i++)
        l->values[to + i] = values[i];
    arena_rewind(m->arena, mark);
}

// to[0 .. n) = first[0 .. n).
static void move_values(struct lane *l, uint32_t n, nest_id to, nest_id first)
{
    if (n)
        memmove(&l->values[to], &l->values[first], n * sizeof(struct cell));
}

// --- steps that are made again

// The loop whose tape the loop over time comes back over; NULL: it does not.
static bool comes_back(const struct machine_state *m, const struct nest_statement *s)
{
    if (m->again.loop == NEST_NONE)
        return false;
    nest_for_each (t, m->nest, s->body)
        if (t->kind == NEST_LOAD && m->nest->buffers.at[t->buffer].space == NEST_AGAIN)
            return true;
    return false;
}

static void forget_tapes(struct machine_state *m, struct lane *l)
{
    for (uint32_t b = 0; b < m->nest->buffers.count; b++)
        if (m->nest->buffers.at[b].space == NEST_AGAIN)
            instance_forget(m, instance_of(m, l, b), b);
}

// Where carries are kept before the segment that step i of a loop begins.
static struct cell *start_of(struct machine_state *m, const struct nest_statement *s, int64_t i)
{
    return m->again.starts + i / m->again.segment * s->n_in;
}

static jot_status run_step(struct machine_state *m, struct lane *l,
                           const struct nest_statement *s, int64_t i)
{
    set_time(m, l, s, i);
    JOT_TRY(run_block(m, l, s->body));
    copy_values(m, l, s->n_in, s->first_carry, s->yields);
    return JOT_OK;
}

// Makes the steps of the segment that ends in step `last` again.
static jot_status make_again(struct machine_state *m, struct lane *l, int64_t last)
{
    const struct nest_statement *s = statement(m, m->again.loop);
    int64_t first = last + 1 - m->again.segment;
    forget_tapes(m, l);
    if (s->n_in)
        memcpy(&l->values[s->first_carry], start_of(m, s, first),
               s->n_in * sizeof(struct cell));
    for (int64_t i = first; i <= last; i++)
        JOT_TRY(run_step(m, l, s, i));
    return JOT_OK;
}

// --- updates that threads share by owner

// The loops over turns, which are one sequence: each stands last in the one around it.
struct updates {
    const struct nest_statement *loops[16];
    uint32_t n;
    const struct nest_statement *put;
};

static struct updates updates_of(const struct machine_state *m, nest_id id)
{
    struct updates p = {{0}, 0, NULL};
    for (const struct nest_statement *s = statement(m, id); s && p.n < 16;) {
        p.loops[p.n++] = s;
        const struct nest_statement *next = NULL;
        nest_for_each (t, m->nest, s->body) {
            p.put = t->kind == NEST_PUT ? t : p.put;
            next = t->kind == NEST_SEQ ? t : NULL;
        }
        s = next;
    }
    return p;
}

// What turn i does, or only what it is made of, without updates.
static jot_status run_update_turn(struct machine_state *m, struct lane *l,
                                  const struct updates *p, int64_t i)
{
    for (uint32_t k = p->n; k-- > 0;) {
        int64_t n = extent(m, p->loops[k]->axes[0]);
        set_time(m, l, p->loops[k], i % n);
        i /= n;
    }
    for (uint32_t k = 0; k < p->n; k++)
        nest_for_each (s, m->nest, p->loops[k]->body)
            if (s->kind != NEST_SEQ && !(m->is_looking && s->kind == NEST_PUT))
                JOT_TRY(run_statement(m, l, nest_id_of(m->nest, s)));
    return JOT_OK;
}

struct update {
    int64_t index, turn;
};

static int later_index_first(const void *a, const void *b)
{
    const struct update *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? 1 : -1;
    return (x->turn > y->turn) - (x->turn < y->turn);
}

// Turns that put something are sorted by indices first; whoever has an element makes its updates, in the order of the loop.
static jot_status run_updates(struct machine_state *m, struct lane *l, nest_id id)
{
    struct updates p = updates_of(m, id);
    struct worker before = m->who;
    nest_id loop = m->shared_loop;
    int64_t n = 1, count = 0;
    jot_status status = JOT_OK;
    m->shared_loop = id;
    for (uint32_t k = 0; k < p.n; k++)
        n *= extent(m, p.loops[k]->axes[0]);
    struct update *all = malloc((size_t)(n + 1) * sizeof *all);
    m->is_looking = true;
    for (int64_t i = 0; i < n && status == JOT_OK; i++) {
        status = run_update_turn(m, l, &p, i);
        if (is_true(l, p.put->guard))
            all[count++] = (struct update){index_at(m, l, &p.put->index), i};
    }
    m->is_looking = false;
    qsort(all, (size_t)count, sizeof *all, later_index_first);
    for (int64_t i = 0; i < count && status == JOT_OK; i++) {
        if (!i || all[i].index != all[i - 1].index)
            m->who = (struct worker){++m->last_block, 0};
        status = run_update_turn(m, l, &p, all[i].turn);
    }
    free(all);
    m->who = before;
    m->shared_loop = loop;
    return status;
}

// ---

jot_status run_seq(struct machine_state *m, struct lane *l, nest_id id)
{
    const struct nest_statement *s = statement(m, id);
    int64_t n = extent(m, s->axes[0]), segment = m->nest->axes.at[s->axes[0]].segment;
    if (m->is_mapped && s->level == NEST_OWNER)
        return run_updates(m, l, id);
    copy_values(m, l, s->n_in, s->first_carry, s->in);
    if (segment)
        m->again = (struct again){
            id, segment, arena_array(m->arena, struct cell, n / segment * s->n_in + 1)};
    bool is_back = !segment && comes_back(m, s);
    for (int64_t i = 0; i < n; i++) {
        if (is_back && i % m->again.segment == 0)
            JOT_TRY(make_again(m, l, n - 1 - i));
        if (segment && i % segment == 0 && s->n_in)
            memcpy(start_of(m, s, i), &l->values[s->first_carry],
                   s->n_in * sizeof(struct cell));
        JOT_TRY(run_step(m, l, s, i));
    }
    if (segment)
        forget_tapes(m, l);
    move_values(l, s->n_in, s->result, s->first_carry);
    return JOT_OK;
}

jot_status run_while(struct machine_state *m, struct lane *l, const struct nest_statement *s)
{
    copy_values(m, l, s->n_in, s->first_carry, s->in);
    for (;;) {
        JOT_TRY(run_block(m, l, s->body));
        if (!is_true(l, s->yields[0]))
            break;
        JOT_TRY(run_block(m, l, s->other));
        copy_values(m, l, s->n_in, s->first_carry, s->yields + 1);
    }
    move_values(l, s->n_in, s->result, s->first_carry);
    return JOT_OK;
}

jot_status run_if(struct machine_state *m, struct lane *l, const struct nest_statement *s)
{
    bool first = is_true(l, s->in[0]);
    uint32_t block = first ? s->body : s->other;
    if (block != NEST_NONE)
        JOT_TRY(run_block(m, l, block));
    copy_values(m, l, s->n_results, s->result, s->yields + (first ? 0 : s->n_results));
    return JOT_OK;
}
