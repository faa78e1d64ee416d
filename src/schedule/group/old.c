// SPDX-License-Identifier: Apache-2.0
// Finds what is read of values that are written over and has to be stored before.
//
//     %1 = take x i                          t = take x, i
//     x' = at_set x, j, u         gives      x' = at_set x, j, u     where x was
//     y' = at_set x', i, %1                  y' = at_set x', i, t    where x' was
//
// An update computes what it writes, so it reads at the time it writes.  Elements of a value that is
// overwritten before, or by an update that waits for this one, are stored ahead of both.
#include "schedule/group/group.h"
#include "schedule/order.h"

#include <stdlib.h>

// Marks what nodes from `first` to `last` compute from marked values.
static void find_computed(const struct ir_graph *g, uint32_t first, uint32_t last,
                          bool *is_computed)
{
    for (uint32_t at = first; at <= last; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool is_any = false;
        for (uint32_t i = 0; i < n->n_in && !is_any; i++)
            is_any = is_computed[ir_operand(g, n, i)];
        for (uint32_t k = 0; is_any && k < n->n_out; k++)
            is_computed[n->out + k] = true;
    }
}

// One update reads what another writes over, and should come first.
struct before {
    ir_id reader, writer;
};

struct old {
    struct schedule *s;
    uint32_t *first_reader, *readers; // nodes by value: those from its first to the next one's
    bool *of_old, *of_new, *is_after; // by value
    VEC(ir_id) parts;                 // values of_old
    VEC(struct before) wished;
};

static void list_readers(struct old *o)
{
    const struct ir_graph *g = o->s->g;
    uint32_t n = g->values.count;
    o->first_reader = arena_array(o->s->scratch, uint32_t, n + 2);
    o->readers = arena_array(o->s->scratch, uint32_t, g->operands.count + 1);
    for (uint32_t i = 0; i < g->operands.count; i++)
        o->first_reader[g->operands.at[i] + 2]++;
    for (uint32_t v = 0; v < n; v++)
        o->first_reader[v + 2] += o->first_reader[v + 1];
    ir_for_each_node (g, m)
        for (uint32_t i = 0; i < m->n_in; i++)
            o->readers[o->first_reader[ir_operand(g, m, i) + 1]++] =
                (uint32_t)(m - g->nodes.at);
}

static void mark_computed(const struct old *o, ir_id v, uint32_t last, bool *is_computed)
{
    const struct ir_graph *g = o->s->g;
    memset(is_computed, 0, g->values.count * sizeof *is_computed);
    is_computed[v] = true;
    find_computed(g, g->values.at[v].node, last, is_computed);
}

// Finds what is computed from x, but by v.  Steps and updates store what they make, and nobody reads x
// for it any more.
static void find_parts(struct old *o, ir_id x, ir_id v)
{
    const struct ir_graph *g = o->s->g;
    for (uint32_t i = 0; i < o->parts.count; i++)
        o->of_old[o->parts.at[i]] = false;
    o->parts.count = 0;
    o->of_old[x] = true;
    vec_push(o->s->scratch, &o->parts, x);
    for (uint32_t i = 0; i < o->parts.count; i++) {
        ir_id y = o->parts.at[i];
        for (uint32_t r = o->first_reader[y]; r < o->first_reader[y + 1]; r++) {
            const struct ir_node *n = &g->nodes.at[o->readers[r]];
            if (n == ir_node_of(g, v) || node_is_steps(n) || node_is_update(n))
                continue;
            for (ir_id z = n->out; z < n->out + n->n_out; z++)
                if (!o->of_old[z]) {
                    o->of_old[z] = true;
                    vec_push(o->s->scratch, &o->parts, z);
                }
        }
    }
}

// The last node that reads a part of x, or 0.
static uint32_t last_reader(const struct old *o, ir_id x)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < o->parts.count; i++) {
        ir_id y = o->parts.at[i];
        uint32_t end = o->first_reader[y + 1];
        if (y != x && value_count(o->s, y) < value_count(o->s, x) && end > o->first_reader[y] &&
            o->readers[end - 1] > last)
            last = o->readers[end - 1];
    }
    return last;
}

// Whether y is a part of x, without what v made of x.
static bool is_part(const struct old *o, ir_id y, ir_id x)
{
    return y != x && o->of_old[y] && !o->of_new[y] && y >= o->s->g->n_params &&
           value_count(o->s, y) < value_count(o->s, x);
}

static bool changes_by(const struct ir_graph *g, const struct ir_node *update, ir_id y)
{
    for (uint32_t i = 1; i < update->n_in; i++)
        if (ir_operand(g, update, i) == y)
            return true;
    return false;
}

static int compare_readers(const void *a, const void *b)
{
    const struct before *x = a, *y = b;
    return x->reader < y->reader ? -1 : x->reader > y->reader;
}

// Stores parts of x that are read by what v, which overwrites x, is made of or that is computed from
// it.  Updates that have nothing to do with v may come before it.
static void find_old_of(struct old *o, ir_id x, ir_id v)
{
    const struct ir_graph *g = o->s->g;
    find_parts(o, x, v);
    uint32_t last = last_reader(o, x);
    if (!last)
        return;
    mark_computed(o, v, last, o->of_new);
    uint32_t first = o->wished.count, n_wished = first;
    for (uint32_t k = 0; k < o->parts.count; k++) {
        ir_id y = o->parts.at[k];
        for (uint32_t r = o->first_reader[y]; r < o->first_reader[y + 1]; r++) {
            const struct ir_node *n = &g->nodes.at[o->readers[r]];
            if (!n->n_out || !is_part(o, y, x))
                continue;
            o->s->is_old[y] |= o->of_new[n->out];
            if (node_is_update(n) && !o->of_new[n->out] && changes_by(g, n, y))
                vec_push(o->s->scratch, &o->wished, (struct before){n->out, v});
        }
    }
    if (o->wished.count > first)
        qsort(o->wished.at + first, o->wished.count - first, sizeof *o->wished.at,
              compare_readers);
    for (uint32_t i = first; i < o->wished.count; i++)
        if (i == first || o->wished.at[i].reader != o->wished.at[i - 1].reader)
            o->wished.at[n_wished++] = o->wished.at[i];
    o->wished.count = n_wished;
}

// Whether the reader would wait for the writer: by what it is made of, or by the wishes before n.
static bool waits(const struct old *o, const struct before *w, uint32_t n)
{
    uint32_t last = o->s->g->nodes.count - 1;
    mark_computed(o, w->writer, last, o->is_after);
    for (bool changed = true; changed && !o->is_after[w->reader];) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            const struct before *b = &o->wished.at[i];
            if (!o->is_after[b->reader] || o->is_after[b->writer])
                continue;
            o->is_after[b->writer] = changed = true;
            find_computed(o->s->g, o->s->g->values.at[b->writer].node, last, o->is_after);
        }
    }
    return o->is_after[w->reader];
}

// Of wishes that wait for each other, stores what the last one reads.
static void break_circles(struct old *o)
{
    struct schedule *s = o->s;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < o->wished.count; k++) {
        struct before w = o->wished.at[k];
        if (!waits(o, &w, kept)) {
            o->wished.at[kept++] = w;
            continue;
        }
        ir_id x = schedule_overwritten(s->g, w.writer);
        const struct ir_node *reader = ir_node_of(s->g, w.reader);
        find_parts(o, x, w.writer);
        mark_computed(o, w.writer, s->g->nodes.count - 1, o->of_new);
        for (uint32_t i = 1; i < reader->n_in; i++) {
            ir_id y = ir_operand(s->g, reader, i);
            s->is_old[y] |= is_part(o, y, x);
        }
    }
}

void group_find_old(struct schedule *s)
{
    uint32_t n = s->g->values.count + 1;
    struct old o = {.s = s,
                    .of_old = arena_array(s->scratch, bool, n),
                    .of_new = arena_array(s->scratch, bool, n),
                    .is_after = arena_array(s->scratch, bool, n)};
    for (ir_id v = s->g->n_params; v < s->g->values.count; v++) {
        ir_id x = schedule_overwritten(s->g, v);
        if (x == IR_NONE || s->uses[x] <= 1 || !schedule_may_die(s, x) || s->is_output[x])
            continue;
        if (!o.readers)
            list_readers(&o);
        find_old_of(&o, x, v);
    }
    break_circles(&o);
}
