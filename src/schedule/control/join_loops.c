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
// to memory and come back, for all lanes; in one (control/resident.c) they are a local of the
// lanes that are on their way, and stay in the nearest caches.  That is possible when the lanes
// of the two are the same and what is between them mixes none.
#include "passes/analysis/lanes.h"
#include "passes/transform.h"
#include "schedule/control/control.h"
#include "schedule/internal.h"

#include <string.h>

#define MOST_ROUNDS 32 // in which loops are joined that were joined before
#define MOST_LOOPS 16  // that a loop is tried with

// Nodes that become a function: some of those from `first`, a loop, to `last`, another one.
struct outline {
    uint32_t first, last, f;
    VEC(ir_id) in, out; // values that go in and come out
};

// Nodes that are to be looked at, the latest first: a heap.
struct ahead {
    VEC(uint32_t) nodes;
};

// One round: joins of which none has nodes between those of another one.  Marks of a walk are its
// number, so nothing is cleared.
struct join {
    struct schedule s;    // of the graph as it is so far
    const char **refused; // by node: why it is not joined to one before
    uint32_t *outline_of; // by node: the number of its outline, or NONE
    VEC(struct outline) outlines;
    struct ahead ahead;
    uint32_t walk;
    uint32_t *met, *inside; // by node
    uint32_t *read;         // by value: the last loop that reads it, as it is or changed
    uint32_t *in;           // by value
    VEC(uint32_t) loops;    // whose results a loop reads
    VEC(uint32_t) before;   // what b is made of, from a on, the latest first
    VEC(uint32_t) members;  // the nodes inside, in order
    uint32_t *effects;      // by node: those before it
    uint32_t *readers, *first_reader; // of value v: from first_reader[v] to first_reader[v + 1]
    bool *is_output;                  // by value
    ir_id *map;                       // by value, to the function that is made
};

static uint32_t maker_of(const struct ir_graph *g, ir_id v) { return g->values.at[v].node; }

static void put_ahead(struct arena *a, struct ahead *h, uint32_t node)
{
    vec_push(a, &h->nodes, node);
    uint32_t *at = h->nodes.at, i = h->nodes.count - 1;
    for (; i && at[(i - 1) / 2] < node; i = (i - 1) / 2)
        at[i] = at[(i - 1) / 2];
    at[i] = node;
}

static uint32_t take_ahead(struct ahead *h)
{
    uint32_t *at = h->nodes.at, first = at[0], n = --h->nodes.count, last = at[n], i = 0;
    for (uint32_t k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && at[k + 1] > at[k];
        if (at[k] <= last)
            break;
        at[i] = at[k];
    }
    at[i] = last;
    return first;
}

// The makers of what the node reads are ahead, from `first` on.
static void go_on(struct join *j, const struct ir_node *n, uint32_t first)
{
    const struct ir_graph *g = j->s.g;
    for (uint32_t i = 0; i < n->n_in; i++) {
        uint32_t maker = maker_of(g, ir_operand(g, n, i));
        if (maker < first || j->met[maker] == j->walk)
            continue;
        j->met[maker] = j->walk;
        put_ahead(j->s.scratch, &j->ahead, maker);
    }
}

static void start_walk(struct join *j)
{
    j->walk++;
    j->ahead.nodes.count = 0;
}

// ---- A function of nodes

static bool is_inside(const struct join *j, uint32_t node)
{
    return j->inside[node] == j->walk;
}

static int64_t code_of(struct join *j, const struct ir_node *n)
{
    if (node_is_control(n))
        return schedule_residence(&j->s, n)->code;
    bool is_map = ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP && n->n_in;
    return is_map ? cost_code_of_op((enum ir_op)n->op, ir_dtype_of(j->s.g, n->out)) : 0;
}

// Finds the nodes on the ways from a to b, both included; or says why they are no kernel.
static const char *find_members(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *g = j->s.g;
    struct arena *scratch = j->s.scratch;
    const char *too_much = "more than one kernel's code stands between them";
    int64_t code = 0;
    start_walk(j);
    j->before.count = 0;
    put_ahead(scratch, &j->ahead, b);
    while (j->ahead.nodes.count) {
        uint32_t i = take_ahead(&j->ahead);
        vec_push(scratch, &j->before, i);
        if (cost_is_too_much_code(j->before.count))
            return too_much;
        go_on(j, &g->nodes.at[i], a);
    }
    j->members.count = 0;
    while (j->before.count) {
        uint32_t i = j->before.at[--j->before.count];
        const struct ir_node *n = &g->nodes.at[i];
        bool reads = i == a;
        for (uint32_t k = 0; k < n->n_in; k++)
            reads = reads || is_inside(j, maker_of(g, ir_operand(g, n, k)));
        if (!reads)
            continue;
        j->inside[i] = j->walk;
        vec_push(scratch, &j->members, i);
        if (node_is_control(n) && schedule_residence(&j->s, n)->reason)
            return schedule_residence(&j->s, n)->reason;
        code += code_of(j, n);
        if (cost_is_too_much_code(code))
            return too_much;
    }
    return NULL;
}

static bool is_read_outside(const struct join *j, ir_id v)
{
    for (uint32_t i = j->first_reader[v]; i < j->first_reader[v + 1]; i++)
        if (!is_inside(j, j->readers[i]))
            return true;
    return j->is_output[v];
}

// Of the members.
static struct outline outline_of(struct join *j)
{
    const struct ir_graph *g = j->s.g;
    struct outline o = {.first = j->members.at[0], .last = vec_last(&j->members)};
    for (uint32_t i = 0; i < j->members.count; i++) {
        const struct ir_node *n = &g->nodes.at[j->members.at[i]];
        for (uint32_t k = 0; k < n->n_in; k++) {
            ir_id v = ir_operand(g, n, k);
            if (is_inside(j, maker_of(g, v)) || j->in[v] == j->walk)
                continue;
            j->in[v] = j->walk;
            vec_push(j->s.scratch, &o.in, v);
        }
        for (ir_id v = n->out; v < n->out + n->n_out; v++)
            if (is_read_outside(j, v))
                vec_push(j->s.scratch, &o.out, v);
    }
    return o;
}

// The function of what is inside.  Functions in it are put in the place of their calls.
static uint32_t make_function(struct join *j, const struct outline *o)
{
    const struct ir_graph *g = j->s.g;
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = j->map;
    for (uint32_t i = 0; i < o->in.count; i++)
        map[o->in.at[i]] = ir_param(&b, ir_type_of(g, o->in.at[i]));
    for (uint32_t at = 0; at < j->members.count; at++) {
        const struct ir_node *n = &g->nodes.at[j->members.at[at]];
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

static bool reads(const struct ir_graph *g, const struct ir_node *n, const bool *marked)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (marked[maker_of(g, ir_operand(g, n, i))])
            return true;
    return false;
}

// The call: behind what it reads, in front of what reads it.
static void add_call(struct join *j, struct ir_builder *b, const struct outline *o, ir_id *map,
                     bool *is_late)
{
    const struct ir_graph *g = j->s.g;
    for (int late = 0; late < 2; late++) {
        for (uint32_t i = o->first; i <= o->last; i++) {
            const struct ir_node *n = &g->nodes.at[i];
            bool is_member = j->outline_of[i] != NONE;
            is_late[i] = is_member || reads(g, n, is_late);
            if (!is_member && is_late[i] == late)
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
    pass_copy_outputs(&b, g, map);
    struct ir_graph *made = ir_finish(&b);
    return made ? ir_canonical(made) : NULL;
}

// ---- Which

static struct schedule over(const struct schedule *s, const struct ir_graph *g)
{
    struct schedule t = *s;
    t.g = g;
    t.axes = (struct axes){.scratch = s->scratch, .g = g};
    t.residents = arena_array(s->scratch, const struct resident *, g->nodes.count + 1);
    return t;
}

static int64_t lane_count(struct schedule *s, const struct ir_node *n)
{
    struct lanes *l = schedule_residence(s, n)->lanes;
    return axes_product(&l->space, l->lanes);
}

// Why the call, alone in its graph, is no kernel with the lanes of loops a and b, or NULL.  What is looked at for
// that is forgotten: most loops are asked with many others.
static const char *fault_of_call(struct join *j, const struct ir_graph *alone, uint32_t a,
                                 uint32_t b)
{
    const struct ir_node *nodes = j->s.g->nodes.at;
    struct arena_mark mark = arena_mark(j->s.scratch);
    struct schedule s = over(&j->s, alone);
    const struct ir_node *call = &alone->nodes.at[alone->n_params];
    const char *reason = schedule_residence(&s, call)->reason;
    int64_t lanes = reason ? 0 : lane_count(&s, call);
    arena_rewind(j->s.scratch, mark);
    if (reason)
        return reason;
    bool is_same =
        lanes == lane_count(&j->s, &nodes[a]) && lanes == lane_count(&j->s, &nodes[b]);
    return is_same ? NULL : "they have different lanes";
}

// Makes a function of the loops a and b with what is between them; or says why not.
static const char *join(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *alone;
    if (j->effects[a] != j->effects[b + 1])
        return "an effect stands between them";
    const char *reason = find_members(j, a, b);
    if (reason)
        return reason;
    struct outline o = outline_of(j);
    o.f = make_function(j, &o);
    if (o.f == IR_NONE || !(alone = call_alone(j, &o)))
        return "they cannot be a function";
    reason = fault_of_call(j, alone, a, b);
    if (reason)
        return reason;
    for (uint32_t i = 0; i < j->members.count; i++)
        j->outline_of[j->members.at[i]] = j->outlines.count;
    vec_push(j->s.scratch, &j->outlines, o);
    return NULL;
}

static bool may_join(struct join *j, uint32_t i)
{
    const struct ir_node *n = &j->s.g->nodes.at[i];
    return node_is_control(n) && !schedule_residence(&j->s, n)->reason;
}

// Whether loop b reads rows of node a.
static bool reads_rows(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_node *n = &j->s.g->nodes.at[a];
    struct lanes *l = schedule_residence(&j->s, n)->lanes;
    for (ir_id v = n->out; v < n->out + n->n_out; v++)
        if (j->read[v] == b && lanes_inner_count(l, l->top->view[v]) >= COST_ROWS)
            return true;
    return false;
}

// Marks what the node, which loop b reads, reads.
static void mark_read(struct join *j, const struct ir_node *n, uint32_t b)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        j->read[ir_operand(j->s.g, n, i)] = b;
    go_on(j, n, 0);
}

// The loops whose results loop b reads, as they are or changed by what is no loop, the latest first.
static void find_read(struct join *j, uint32_t b)
{
    const struct ir_graph *g = j->s.g;
    int64_t code = 0;
    start_walk(j);
    j->loops.count = 0;
    mark_read(j, &g->nodes.at[b], b);
    while (j->ahead.nodes.count && j->loops.count < MOST_LOOPS &&
           !cost_is_too_much_code(code)) {
        uint32_t a = take_ahead(&j->ahead);
        const struct ir_node *n = &g->nodes.at[a];
        if (node_is_control(n)) {
            vec_push(j->s.scratch, &j->loops, a);
        } else {
            code += 1 + code_of(j, n);
            mark_read(j, n, b);
        }
    }
}

// Joins loop b to one of those whose rows it reads: to the last that can be.  `free` is the first
// node that has no part in a join.
static bool join_to_one(struct join *j, uint32_t b, uint32_t free)
{
    find_read(j, b);
    for (uint32_t i = 0; i < j->loops.count; i++) {
        uint32_t a = j->loops.at[i];
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

static void find_readers(struct join *j)
{
    const struct ir_graph *g = j->s.g;
    struct arena *scratch = j->s.scratch;
    j->effects = arena_array(scratch, uint32_t, g->nodes.count + 1);
    j->readers = arena_array(scratch, uint32_t, g->operands.count + 1);
    j->first_reader = arena_array(scratch, uint32_t, g->values.count + 2);
    j->is_output = arena_array(scratch, bool, g->values.count + 1);
    uint32_t *end = j->first_reader + 1; // of the readers so far
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        j->effects[i + 1] = j->effects[i] + ir_has_effect(g, n);
        for (uint32_t k = 0; k < n->n_in; k++)
            end[ir_operand(g, n, k)]++;
    }
    for (ir_id v = 0, first = 0; v < g->values.count; v++) {
        uint32_t count = end[v];
        end[v] = first;
        first += count;
    }
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; k < n->n_in; k++)
            j->readers[end[ir_operand(g, n, k)]++] = i;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        j->is_output[g->outputs.at[i]] = true;
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
    j->met = arena_array(scratch, uint32_t, count + 1);
    j->inside = arena_array(scratch, uint32_t, count + 1);
    j->read = arena_array(scratch, uint32_t, g->values.count + 1);
    j->in = arena_array(scratch, uint32_t, g->values.count + 1);
    j->map = arena_array(scratch, ir_id, g->values.count + 1);
    find_readers(j);
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
        s->axes.loops = j.s.axes.loops;
        const struct ir_graph *joined =
            j.outlines.count && i < MOST_ROUNDS ? with_calls(&j) : NULL;
        if (!joined)
            return g;
        g = joined;
    }
}
