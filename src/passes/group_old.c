// SPDX-License-Identifier: Apache-2.0
// Finds what is read of values that are written over and has to be stored before.
//
//     %1 = take x i                          t = take x, i
//     x' = at_set x, j, u         gives      x' = at_set x, j, u     where x was
//     y' = at_set x', i, %1                  y' = at_set x', i, t    where x' was
//
// An update computes what it writes, so it reads at the time it writes.  Elements of a value that is
// overwritten before, or by an update that waits for this one, are stored ahead of both.
#include "passes/group.h"

// Marks what is computed from the marked values of nodes from `first` on.
static void find_computed(const struct ir_graph *g, uint32_t first, bool *is_computed)
{
    for (uint32_t at = first; at < g->nodes.count; at++) {
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
    bool *of_old, *of_new, *is_after; // by value
    VEC(struct before) wished;
};

static void mark_computed(const struct old *o, ir_id v, bool *is_computed)
{
    const struct ir_graph *g = o->s->g;
    memset(is_computed, 0, g->values.count * sizeof *is_computed);
    is_computed[v] = true;
    find_computed(g, g->values.at[v].node, is_computed);
}

// Whether y is a part of x, without what v made of x.
static bool is_part(const struct old *o, ir_id y, ir_id x)
{
    return y != x && o->of_old[y] && !o->of_new[y] && y >= o->s->g->n_params &&
           value_count(o->s, y) < value_count(o->s, x);
}

// Stores parts of x that are read by what v, which overwrites x, is made of or that is computed from
// it.  Updates that have nothing to do with v may come before it.
static void find_old_of(struct old *o, ir_id x, ir_id v)
{
    const struct ir_graph *g = o->s->g;
    mark_computed(o, x, o->of_old);
    mark_computed(o, v, o->of_new);
    ir_for_each_node (g, n) {
        bool reads = false;
        for (uint32_t i = 0; n->n_out && i < n->n_in; i++) {
            ir_id y = ir_operand(g, n, i);
            if (!is_part(o, y, x))
                continue;
            o->s->is_old[y] |= o->of_new[n->out];
            reads |= i > 0;
        }
        if (reads && node_is_update(n) && !o->of_new[n->out])
            vec_push(o->s->scratch, &o->wished, (struct before){n->out, v});
    }
}

// Whether the reader would wait for the writer: by what it is made of, or by the wishes before n.
static bool waits(const struct old *o, const struct before *w, uint32_t n)
{
    mark_computed(o, w->writer, o->is_after);
    for (bool changed = true; changed && !o->is_after[w->reader];) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            const struct before *b = &o->wished.at[i];
            if (!o->is_after[b->reader] || o->is_after[b->writer])
                continue;
            o->is_after[b->writer] = changed = true;
            find_computed(o->s->g, o->s->g->values.at[b->writer].node, o->is_after);
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
        mark_computed(o, x, o->of_old);
        mark_computed(o, w.writer, o->of_new);
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
        if (x != IR_NONE && s->uses[x] > 1 && schedule_may_die(s, x) && !s->is_output[x])
            find_old_of(&o, x, v);
    }
    break_circles(&o);
}
