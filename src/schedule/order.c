// SPDX-License-Identifier: Apache-2.0
// The order of the steps: what is read comes after it is made and, where that can be, before it is
// written over.
//
//     y = at_set(x, i, u)            t = take(x, j)
//     t = take(x, j)                 y = at_set(x, i, u)      where x was
//
// Groups come by rank.  Those that read what another one writes over go before that, with all that they
// wait for; where they wait for the other one itself, a copy is made.  Of several that write the same
// value over, one is the last.
//
// With early exchanges they come as soon as what they read is there, and what reads theirs as late as can be,
// after all that waits for fewer exchanges: the rest of the way back to the gradients of earlier layers runs
// beside those of later ones.
#include "schedule/order.h"

#include "ir/control.h"
#include "passes/transform.h"
#include "schedule/group/group.h"

#include <stdlib.h>
#include <string.h>

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

// By output of function f: its source.
static const ir_id *sources_of(struct ir_module *m, uint32_t f)
{
    struct memo_key key = {.kind = MEMO_SOURCES, .f = f};
    const ir_id *kept = pass_memo_find(m, &key);
    if (kept)
        return kept;
    const struct ir_graph *g = ir_function(m, f);
    ir_id *sources = arena_array(m->arena, ir_id, g->outputs.count + 1);
    for (uint32_t k = 0; k < g->outputs.count; k++)
        sources[k] = schedule_source(g, g->outputs.at[k]);
    pass_memo_add(m, &key, sources);
    return sources;
}

ir_id schedule_overwritten(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    bool is_call = ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL;
    if (node_is_update(n))
        return ir_operand(g, n, 0);
    if (n->op == IR_while || n->op == IR_scan)
        return overwritten_by_carry(g, n, v - n->out);
    if (n->op != IR_cond && !is_call)
        return IR_NONE;
    const struct ir_field *bodies = ir_field_find(n->attrs, IR_KEY_functions);
    for (uint32_t i = 0; i < (is_call ? 1 : bodies->count); i++) {
        ir_id x = sources_of(g->module, (uint32_t)bodies->ints[i])[v - n->out];
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
    return schedule_may_die(s, x) && !s->is_output[x] &&
           s->last_reader[x] <= s->position[group];
}

// ---- The order

// Groups by rank, those of one rank by their first values.
struct ordered {
    uint64_t rank;
    uint32_t group;
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
        s->position[order[i]] = i;
    }
    return groups.count;
}

// A group that goes before another one; `next` is the edge to that one before it, or NONE.
struct edge {
    uint32_t first, next;
};

struct ordering {
    struct schedule *s;
    uint32_t n, *order;
    VEC(struct edge) edges;
    uint32_t *edge_of;     // by group: the last edge to it, or NONE
    uint32_t *trial_of;    // by group: the last trial that found it
    uint32_t trial;        // the number of this one
    VEC(uint32_t) earlier; // groups that this one moves
};

static uint32_t reader_of(const struct schedule *s, uint32_t demand)
{
    return group_root(s, s->demands.at[demand].group);
}

static void go_before(struct ordering *o, uint32_t first, uint32_t then)
{
    vec_push(o->s->scratch, &o->edges, (struct edge){first, o->edge_of[then]});
    o->edge_of[then] = o->edges.count - 1;
}

// What is read is made before, and effects keep their order.
static void add_needed(struct ordering *o)
{
    struct schedule *s = o->s;
    for (ir_id v = 0; v < s->g->values.count; v++)
        for (uint32_t d = s->first_demand[v]; s->decision[v] == DECIDE_MEMBER && d != NONE;
             d = s->demands.at[d].next)
            go_before(o, group_root(s, s->group_of[v]), reader_of(s, d));
    uint32_t last = NONE;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct group *g = &s->groups.at[o->order[i]];
        bool is_steps = g->kind == GROUP_CONTROL || g->kind == GROUP_EFFECT;
        if (!is_steps || !ir_has_effect(s->g, &s->g->nodes.at[g->node]))
            continue;
        if (last != NONE)
            go_before(o, last, o->order[i]);
        last = o->order[i];
    }
}

// Has the group, which has a position from `first` on, among those that move.
static void add_earlier(struct ordering *o, uint32_t group, uint32_t first)
{
    if (o->s->position[group] < first || o->trial_of[group] == o->trial)
        return;
    o->trial_of[group] = o->trial;
    vec_push(o->s->scratch, &o->earlier, group);
}

// Finds the readers of x that come after the group, and all behind it that they wait for; false when
// that is the group itself.
static bool find_earlier(struct ordering *o, ir_id x, uint32_t group)
{
    struct schedule *s = o->s;
    uint32_t first = s->position[group];
    o->trial++;
    o->earlier.count = 0;
    for (uint32_t d = s->first_demand[x]; d != NONE; d = s->demands.at[d].next)
        if (reader_of(s, d) != group)
            add_earlier(o, reader_of(s, d), first);
    for (uint32_t i = 0; i < o->earlier.count && o->trial_of[group] != o->trial; i++)
        for (uint32_t e = o->edge_of[o->earlier.at[i]]; e != NONE; e = o->edges.at[e].next)
            add_earlier(o, o->edges.at[e].first, first);
    return o->trial_of[group] != o->trial;
}

// Moves what find_earlier found before the group.
static void move_before(struct ordering *o, uint32_t group)
{
    struct schedule *s = o->s;
    uint32_t first = s->position[group], last = first, to = first;
    for (uint32_t i = 0; i < o->earlier.count; i++)
        if (s->position[o->earlier.at[i]] > last)
            last = s->position[o->earlier.at[i]];
    uint32_t *old = arena_copy(s->scratch, o->order + first, (last + 1 - first) * sizeof *old);
    for (int is_later = 0; is_later < 2; is_later++)
        for (uint32_t i = 0; i <= last - first; i++)
            if ((o->trial_of[old[i]] != o->trial) == is_later) {
                s->position[old[i]] = to;
                o->order[to++] = old[i];
            }
}

// Has all readers of x come before the group that writes it over, if that can be.
static bool make_last(struct ordering *o, ir_id x, uint32_t group)
{
    struct schedule *s = o->s;
    if (!find_earlier(o, x, group))
        return false;
    if (o->earlier.count)
        move_before(o, group);
    for (uint32_t d = s->first_demand[x]; d != NONE; d = s->demands.at[d].next)
        if (reader_of(s, d) != group)
            go_before(o, reader_of(s, d), group);
    return true;
}

// One of those that may take the memory of a value does: the first that can.
static void order_overwriters(struct ordering *o)
{
    struct schedule *s = o->s;
    uint8_t *tried = arena_array(s->scratch, uint8_t, s->g->values.count);
    for (ir_id v = s->g->n_params; v < s->g->values.count; v++) {
        if (s->decision[v] != DECIDE_MEMBER)
            continue;
        uint32_t g = group_root(s, s->group_of[v]);
        enum group_kind kind = s->groups.at[g].kind;
        ir_id x = kind == GROUP_UPDATE || kind == GROUP_CONTROL ? schedule_overwritten(s->g, v)
                                                                : IR_NONE;
        if (x == IR_NONE || !schedule_may_die(s, x) || tried[x] == COST_DEMANDS)
            continue;
        if (o->edges.count == 0)
            add_needed(o);
        tried[x] = make_last(o, x, g) ? COST_DEMANDS : tried[x] + 1;
    }
}

static bool is_exchange(const struct schedule *s, uint32_t group)
{
    const struct group *g = &s->groups.at[group];
    return g->kind == GROUP_LIBRARY && s->g->nodes.at[g->node].op == IR_exchange;
}

// Groups by how many exchanges they wait for, one after the other, then by how many groups.
static void order_early(struct ordering *o)
{
    struct schedule *s = o->s;
    struct ordered *groups = arena_array(s->scratch, struct ordered, o->n + 1);
    uint32_t *exchanges = arena_array(s->scratch, uint32_t, s->groups.count + 1);
    uint32_t *level = arena_array(s->scratch, uint32_t, s->groups.count + 1);
    add_needed(o);
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t group = o->order[i];
        for (uint32_t e = o->edge_of[group]; e != NONE; e = o->edges.at[e].next) {
            uint32_t first = o->edges.at[e].first;
            uint32_t waits = exchanges[first] + is_exchange(s, first);
            exchanges[group] = waits > exchanges[group] ? waits : exchanges[group];
            level[group] = level[first] >= level[group] ? level[first] + 1 : level[group];
        }
        uint64_t late = (uint64_t)exchanges[group] << 32 | level[group];
        groups[i] = (struct ordered){UINT64_MAX - 2 * late - !is_exchange(s, group), group, i};
    }
    if (o->n)
        qsort(groups, o->n, sizeof *groups, compare_order);
    for (uint32_t i = 0; i < o->n; i++) {
        o->order[i] = groups[i].group;
        s->position[o->order[i]] = i;
    }
}

// By value: the position of its last reader.
static void find_last_readers(struct schedule *s)
{
    s->last_reader = arena_array(s->scratch, uint32_t, s->g->values.count);
    for (ir_id v = 0; v < s->g->values.count; v++)
        for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
            if (s->position[reader_of(s, d)] > s->last_reader[v])
                s->last_reader[v] = s->position[reader_of(s, d)];
}

const uint32_t *schedule_order(struct schedule *s, uint32_t *n)
{
    struct ordering o = {.s = s};
    uint32_t count = s->groups.count + 1;
    o.order = arena_array(s->scratch, uint32_t, count);
    s->position = arena_array(s->scratch, uint32_t, count);
    *n = o.n = sort_groups(s, o.order);
    o.edge_of = arena_array(s->scratch, uint32_t, count);
    memset(o.edge_of, 0xff, count * sizeof *o.edge_of);
    o.trial_of = arena_array(s->scratch, uint32_t, count);
    if (s->options->early_exchanges)
        order_early(&o);
    order_overwriters(&o);
    find_last_readers(s);
    return o.order;
}
