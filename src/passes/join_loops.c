// SPDX-License-Identifier: Apache-2.0
// Loops that become one kernel: a loop and a later one that reads its rows.
//
//     y, r = scan(k, x)                         f(k, x) {
//     d = 2 y                                     y, r = scan(k, x)
//     g = scan reverse(k, d, r)      becomes      d = 2 y
//                                                 return scan reverse(k, d, r)
//                                               }
//                                               g = call f(k, x)
//
// What a gradient keeps of the way there for the way back is such rows.  In two kernels they go
// to memory and come back, for all lanes; in one (schedule_resident.c) they are a local of the
// lanes that are on their way, and stay in the nearest caches.  That is possible when the lanes
// of the two are the same and what is between them mixes none.
#include "passes/lanes.h"
#include "passes/transform.h"

#include <string.h>

#define MOST_ROUNDS 32 // in which loops are joined that were joined before

// Nodes that become a function: some of those from `first`, a loop, to `last`, another one.
struct outline {
    uint32_t first, last, f;
    VEC(ir_id) in, out; // values that go in and come out
};

// One round: joins of which none has nodes between those of another one.
struct join {
    struct schedule s;    // of the graph as it is so far
    const char **refused; // by node: why it is not joined to one before
    uint32_t *outline_of; // by node: the number of its outline, or NONE
    VEC(struct outline) outlines;
    uint32_t *read_by;    // by value: the last loop that reads it, as it is or changed
    bool *inside, *leads; // by node, between two loops
};

static bool is_loop(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_CONTROL || c == IR_CLASS_CALL;
}

static uint32_t maker_of(const struct ir_graph *g, ir_id v) { return g->values.at[v].node; }

static bool reads(const struct ir_graph *g, const struct ir_node *n, const bool *marked)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (marked[maker_of(g, ir_operand(g, n, i))])
            return true;
    return false;
}

// ---- A function of nodes

static void add_new(struct arena *a, struct outline *o, bool is_in, ir_id v)
{
    for (uint32_t i = 0; i < (is_in ? o->in.count : o->out.count); i++)
        if ((is_in ? o->in.at[i] : o->out.at[i]) == v)
            return;
    if (is_in)
        vec_push(a, &o->in, v);
    else
        vec_push(a, &o->out, v);
}

// Marks the nodes from a to b on the ways between them.
static void mark_between(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *g = j->s.g;
    memset(j->inside, 0, b * sizeof *j->inside);
    memset(j->leads, 0, b * sizeof *j->leads);
    j->inside[a] = j->leads[b] = true;
    for (uint32_t i = a + 1; i <= b; i++)
        j->inside[i] = reads(g, &g->nodes.at[i], j->inside);
    for (uint32_t i = b + 1; i-- > a;) {
        const struct ir_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; j->leads[i] && k < n->n_in; k++)
            j->leads[maker_of(g, ir_operand(g, n, k))] = true;
        j->inside[i] = j->inside[i] && j->leads[i];
    }
}

static struct outline outline_of(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *g = j->s.g;
    struct outline o = {.first = a, .last = b};
    mark_between(j, a, b);
    for (uint32_t i = a; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        bool is_inside = i <= b && j->inside[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            ir_id v = ir_operand(g, n, k);
            uint32_t from = maker_of(g, v);
            if ((from >= a && from <= b && j->inside[from]) != is_inside)
                add_new(j->s.scratch, &o, is_inside, v);
        }
    }
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        uint32_t from = maker_of(g, g->outputs.at[i]);
        if (from >= a && from <= b && j->inside[from])
            add_new(j->s.scratch, &o, false, g->outputs.at[i]);
    }
    return o;
}

// The function of what is inside.  Functions in it are put in their places.
static uint32_t make_function(struct join *j, const struct outline *o)
{
    const struct ir_graph *g = j->s.g;
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = arena_array(j->s.scratch, ir_id, g->values.count);
    for (uint32_t i = 0; i < o->in.count; i++)
        map[o->in.at[i]] = ir_param(&b, ir_type_of(g, o->in.at[i]));
    for (uint32_t at = o->first; at <= o->last; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        if (!j->inside[at])
            continue;
        ir_id *in = pass_no_values(m, n->n_in);
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = map[ir_operand(g, n, i)];
        if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL)
            ir_inline(&b, ir_body(g, n, 0), in, map + n->out);
        else
            pass_copy_node(&b, g, n, map);
    }
    for (uint32_t i = 0; i < o->out.count; i++)
        ir_output(&b, map[o->out.at[i]]);
    return ir_finish_function(&b);
}

// A call of the function, and nothing else.
static const struct ir_graph *call_alone(const struct join *j, const struct outline *o)
{
    const struct ir_graph *g = j->s.g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *in = pass_no_values(g->module, o->in.count);
    for (uint32_t i = 0; i < o->in.count; i++)
        in[i] = ir_param(&b, ir_type_of(g, o->in.at[i]));
    ir_id y = ir_call(&b, IR_call, 1, &o->f, (int)o->in.count, in);
    for (uint32_t i = 0; i < o->out.count; i++)
        ir_output(&b, y + i);
    return ir_finish(&b);
}

// ---- The graph with calls

// The call: behind what it reads, in front of what reads it.
static void add_call(struct join *j, struct ir_builder *b, const struct outline *o, ir_id *map,
                     bool *is_late)
{
    const struct ir_graph *g = j->s.g;
    for (int late = 0; late < 2; late++) {
        for (uint32_t i = o->first; i <= o->last; i++) {
            const struct ir_node *n = &g->nodes.at[i];
            bool is_inside = j->outline_of[i] != NONE;
            is_late[i] = is_inside || reads(g, n, is_late);
            if (!is_inside && is_late[i] == late)
                pass_copy_node(b, g, n, map);
        }
        if (late)
            break;
        ir_id *in = pass_no_values(g->module, o->in.count);
        for (uint32_t i = 0; i < o->in.count; i++)
            in[i] = map[o->in.at[i]];
        b->where = g->nodes.at[o->last].where;
        ir_id y = ir_call(b, IR_call, 1, &o->f, (int)o->in.count, in);
        for (uint32_t i = 0; i < o->out.count; i++)
            map[o->out.at[i]] = y + i;
    }
    memset(is_late + o->first, 0, (o->last + 1 - o->first) * sizeof *is_late);
}

static const struct ir_graph *with_calls(struct join *j)
{
    const struct ir_graph *g = j->s.g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = arena_array(j->s.scratch, ir_id, g->values.count);
    bool *is_late = arena_array(j->s.scratch, bool, g->nodes.count);
    const struct outline *next = j->outlines.at;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        if (n->op == IR_param) {
            map[n->out] = ir_param(&b, ir_type_of(g, n->out));
        } else if (j->outline_of[i] != NONE) {
            add_call(j, &b, next, map, is_late);
            i = next++->last;
        } else {
            pass_copy_node(&b, g, n, map);
        }
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[g->outputs.at[i]]);
    struct ir_graph *made = ir_finish(&b);
    return made ? ir_canonical(made) : NULL;
}

// ---- Which

static bool has_effects(const struct ir_graph *g, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++)
        if (ir_has_effect(g, &g->nodes.at[i]))
            return true;
    return false;
}

static struct schedule over(const struct schedule *s, const struct ir_graph *g)
{
    struct schedule t = *s;
    t.g = g;
    t.loops = NULL;
    t.residents = arena_array(s->scratch, const struct resident *, g->nodes.count + 1);
    return t;
}

static int64_t lane_count(struct schedule *s, const struct ir_node *n)
{
    struct lanes *l = schedule_residence(s, n)->lanes;
    return axes_product(&l->space, l->lanes);
}

// Makes a function of the loops a and b with what is between them; or says why not.
static const char *join(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *g = j->s.g, *alone;
    if (has_effects(g, a, b))
        return "an effect stands between them";
    struct outline o = outline_of(j, a, b);
    o.f = make_function(j, &o);
    if (o.f == IR_NONE || !(alone = call_alone(j, &o)))
        return "they cannot be a function";
    struct schedule s = over(&j->s, alone);
    const struct ir_node *call = &alone->nodes.at[alone->n_params];
    const char *reason = schedule_residence(&s, call)->reason;
    if (reason)
        return reason;
    int64_t lanes = lane_count(&s, call);
    if (lanes != lane_count(&j->s, &g->nodes.at[a]) ||
        lanes != lane_count(&j->s, &g->nodes.at[b]))
        return "they have different lanes";
    for (uint32_t i = a; i <= b; i++)
        if (j->inside[i])
            j->outline_of[i] = j->outlines.count;
    vec_push(j->s.scratch, &j->outlines, o);
    return NULL;
}

static bool may_join(struct join *j, uint32_t i)
{
    const struct ir_node *n = &j->s.g->nodes.at[i];
    return is_loop(n) && !schedule_residence(&j->s, n)->reason;
}

// Whether loop b reads rows of node a.
static bool reads_rows(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_node *n = &j->s.g->nodes.at[a];
    struct lanes *l = schedule_residence(&j->s, n)->lanes;
    for (ir_id v = n->out; v < n->out + n->n_out; v++)
        if (j->read_by[v] == b && lanes_inner_count(l, l->top->view[v]) >= COST_ROWS)
            return true;
    return false;
}

static bool is_read(const struct join *j, const struct ir_node *n, uint32_t b)
{
    for (ir_id v = n->out; v < n->out + n->n_out; v++)
        if (j->read_by[v] == b)
            return true;
    return false;
}

// Marks what the node, which loop b reads, reads; lowers *first to the first node that made some.
static void mark_read(struct join *j, const struct ir_node *n, uint32_t b, uint32_t *first)
{
    const struct ir_graph *g = j->s.g;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id v = ir_operand(g, n, i);
        j->read_by[v] = b;
        if (g->nodes.at[maker_of(g, v)].n_in && maker_of(g, v) < *first)
            *first = maker_of(g, v);
    }
}

// Joins loop b to one of those whose rows it reads, as they are or changed by what is no loop: to
// the last that can be.  `free` is the first node that has no part in a join.
static bool join_to_one(struct join *j, uint32_t b, uint32_t free)
{
    const struct ir_graph *g = j->s.g;
    uint32_t first = b;
    mark_read(j, &g->nodes.at[b], b, &first);
    for (uint32_t a = b; a-- > first;) {
        const struct ir_node *n = &g->nodes.at[a];
        if (!is_read(j, n, b))
            continue;
        if (!is_loop(n)) {
            mark_read(j, n, b, &first);
            continue;
        }
        if (!may_join(j, a) || !reads_rows(j, a, b))
            continue;
        if (a < free)
            return false; // in the next round
        j->refused[b] = join(j, a, b);
        if (!j->refused[b])
            return true;
    }
    return false;
}

// Finds the joins of one round.
static void find_joins(struct join *j)
{
    const struct ir_graph *g = j->s.g;
    struct arena *scratch = j->s.scratch;
    uint32_t count = g->nodes.count, free = 0;
    j->refused = arena_array(scratch, const char *, count + 1);
    j->outline_of = arena_array(scratch, uint32_t, count + 1);
    memset(j->outline_of, 0xff, count * sizeof *j->outline_of);
    j->read_by = arena_array(scratch, uint32_t, g->values.count + 1);
    j->inside = arena_array(scratch, bool, count + 1);
    j->leads = arena_array(scratch, bool, count + 1);
    for (uint32_t b = 0; b < count; b++)
        if (may_join(j, b) && join_to_one(j, b, free))
            free = b + 1;
}

const struct ir_graph *schedule_join_loops(struct schedule *s, const struct ir_graph *g)
{
    if (s->options->separate || s->options->steps)
        return g;
    for (int i = 0;; i++) {
        struct join j = {.s = over(s, g)};
        find_joins(&j);
        s->apart = j.refused;
        s->residents = j.s.residents;
        s->loops = j.s.loops;
        const struct ir_graph *joined =
            j.outlines.count && i < MOST_ROUNDS ? with_calls(&j) : NULL;
        if (!joined)
            return g;
        g = joined;
    }
}
