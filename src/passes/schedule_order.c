// SPDX-License-Identifier: Apache-2.0
// The order of the steps: what is read comes after it is made and, where that can be, before it is
// written over.
//
//     y = at_set(x, i, u)            t = take(x, j)
//     t = take(x, j)                 y = at_set(x, i, u)      where x was
//
// Groups come by rank.  One that reads what another writes over goes before that, with all that it
// waits for; where it waits for the other one itself, a copy is made.
#include "passes/group.h"

#include "ir/control.h"

#include <stdlib.h>

// ---- What is written over

ir_id schedule_source(const struct ir_graph *g, ir_id v)
{
    while (v != IR_NONE && v >= g->n_params)
        v = schedule_overwritten(g, v);
    return v;
}

static ir_id overwritten_by_carry(const struct ir_graph *g, const struct ir_node *n, uint32_t k)
{
    uint32_t consts, carries = n->n_out;
    if (n->op == IR_while) {
        consts = (uint32_t)ir_while_of(n).n_consts;
    } else {
        struct ir_scan s = ir_scan_of(n);
        consts = (uint32_t)s.n_consts;
        carries = (uint32_t)s.n_carry;
    }
    return k < carries ? ir_operand(g, n, consts + k) : IR_NONE;
}

ir_id schedule_overwritten(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    bool is_call = ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL;
    const int64_t *bodies;
    if (node_is_update(n))
        return ir_operand(g, n, 0);
    if (n->op == IR_while || n->op == IR_scan)
        return overwritten_by_carry(g, n, v - n->out);
    if (n->op != IR_cond && !is_call)
        return IR_NONE;
    int count = is_call ? 1 : ir_bodies_of(n, &bodies);
    for (int i = 0; i < count; i++) {
        const struct ir_graph *body = ir_body(g, n, i);
        ir_id x = schedule_source(body, body->outputs.at[v - n->out]);
        if (x != IR_NONE)
            return ir_operand(g, n, is_call ? x : x + 1);
    }
    return IR_NONE;
}

bool schedule_may_die(const struct schedule *s, ir_id x)
{
    return (x >= s->g->n_params && ir_node_of(s->g, x)->op != IR_const) ||
           (x < s->g->n_params && s->options->donated && s->options->donated[x]);
}

bool schedule_ends_with(const struct schedule *s, ir_id x, uint32_t group)
{
    if (!schedule_may_die(s, x) || s->is_output[x])
        return false;
    for (uint32_t d = s->first_demand[x]; d != NONE; d = s->demands.at[d].next)
        if (s->place[group_root(s, s->demands.at[d].group)] > s->place[group])
            return false;
    return true;
}

// ---- The order

// Groups by rank, those of one rank by their first values.
struct ordered {
    uint32_t rank, group;
    ir_id first;
};

static ir_id first_value(const struct schedule *s, const struct group *g)
{
    bool is_steps =
        g->kind == GROUP_LIBRARY || g->kind == GROUP_CONTROL || g->kind == GROUP_EFFECT;
    return is_steps ? s->g->nodes.at[g->node].out : g->roots.at[0];
}

static int compare_order(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static uint32_t sort_groups(struct schedule *s, uint32_t *order)
{
    VEC(struct ordered) groups = {0};
    for (uint32_t i = 0; i < s->groups.count; i++)
        if (group_root(s, i) == i)
            vec_push(
                s->scratch, &groups,
                (struct ordered){s->groups.at[i].rank, i, first_value(s, &s->groups.at[i])});
    if (groups.count)
        qsort(groups.at, groups.count, sizeof *groups.at, compare_order);
    for (uint32_t i = 0; i < groups.count; i++) {
        order[i] = groups.at[i].group;
        s->place[order[i]] = i;
    }
    return groups.count;
}

// Which groups go before others, as pairs.
struct before {
    uint32_t first, then;
};

struct ordering {
    struct schedule *s;
    uint32_t n, *order;
    VEC(struct before) needed; // what is read is made before
    VEC(struct before) wished; // and is read before it is written over
};

static void find_needed(struct ordering *o)
{
    struct schedule *s = o->s;
    for (ir_id v = 0; v < s->g->values.count; v++)
        for (uint32_t d = s->first_demand[v]; s->decision[v] == DECIDE_MEMBER && d != NONE;
             d = s->demands.at[d].next)
            vec_push(s->scratch, &o->needed,
                     (struct before){group_root(s, s->group_of[v]),
                                     group_root(s, s->demands.at[d].group)});
    uint32_t last = NONE;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct group *g = &s->groups.at[o->order[i]];
        bool is_steps = g->kind == GROUP_CONTROL || g->kind == GROUP_EFFECT;
        if (!is_steps || !ir_has_effect(s->g, &s->g->nodes.at[g->node]))
            continue;
        if (last != NONE)
            vec_push(s->scratch, &o->needed, (struct before){last, o->order[i]});
        last = o->order[i];
    }
}

static void find_wished(struct ordering *o)
{
    struct schedule *s = o->s;
    for (ir_id v = s->g->n_params; v < s->g->values.count; v++) {
        if (s->decision[v] != DECIDE_MEMBER)
            continue;
        uint32_t g = group_root(s, s->group_of[v]);
        enum group_kind kind = s->groups.at[g].kind;
        ir_id x = kind == GROUP_UPDATE || kind == GROUP_CONTROL ? schedule_overwritten(s->g, v)
                                                                : IR_NONE;
        if (x == IR_NONE || !schedule_may_die(s, x))
            continue;
        for (uint32_t d = s->first_demand[x]; d != NONE; d = s->demands.at[d].next) {
            uint32_t reader = group_root(s, s->demands.at[d].group);
            if (reader != g)
                vec_push(s->scratch, &o->wished, (struct before){reader, g});
        }
    }
}

// Marks the groups that go before a marked one and have places from `first` on.  The pairs are in
// the order of values, so that the last come first.
static void mark_before(const struct ordering *o, const struct before *at, uint32_t n,
                        uint32_t first, bool *is_marked, bool *changed)
{
    const uint32_t *place = o->s->place;
    for (uint32_t i = n; i-- > 0;)
        if (is_marked[at[i].then] && !is_marked[at[i].first] && place[at[i].first] >= first &&
            place[at[i].first] < place[at[i].then])
            *changed = is_marked[at[i].first] = true;
}

// Moves group w.first before w.then, unless it waits for that.
static void move_before(struct ordering *o, struct before w)
{
    struct schedule *s = o->s;
    uint32_t first = s->place[w.then], last = s->place[w.first], to = first;
    bool *is_marked = arena_array(s->scratch, bool, s->groups.count), changed = true;
    is_marked[w.first] = true;
    while (changed) {
        changed = false;
        mark_before(o, o->needed.at, o->needed.count, first, is_marked, &changed);
        mark_before(o, o->wished.at, o->wished.count, first, is_marked, &changed);
    }
    if (is_marked[w.then])
        return;
    uint32_t *old = arena_copy(s->scratch, o->order + first, (last + 1 - first) * sizeof *old);
    for (int moved = 1; moved >= 0; moved--)
        for (uint32_t i = 0; i <= last - first; i++)
            if (is_marked[old[i]] == moved) {
                s->place[old[i]] = to;
                o->order[to++] = old[i];
            }
}

const uint32_t *schedule_order(struct schedule *s, uint32_t *n)
{
    struct ordering o = {.s = s};
    o.order = arena_array(s->scratch, uint32_t, s->groups.count + 1);
    s->place = arena_array(s->scratch, uint32_t, s->groups.count + 1);
    *n = o.n = sort_groups(s, o.order);
    find_wished(&o);
    for (uint32_t i = 0; i < o.wished.count; i++)
        if (s->place[o.wished.at[i].first] > s->place[o.wished.at[i].then]) {
            if (!o.needed.count)
                find_needed(&o);
            move_before(&o, o.wished.at[i]);
        }
    return o.order;
}
