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

struct join {
    struct schedule s;    // of the graph as it is so far
    const char **refused; // by node: why it is not joined to one before
};

static bool is_loop(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return c == IR_CLASS_CONTROL || c == IR_CLASS_CALL;
}

static uint32_t number_of(const struct ir_graph *g, const struct ir_node *n)
{
    return (uint32_t)(n - g->nodes.at);
}

static bool reads(const struct ir_graph *g, const struct ir_node *n, const bool *marked)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (marked[g->values.at[ir_operand(g, n, i)].node])
            return true;
    return false;
}

// The nodes from a to b on the ways between them, by node.
static bool *between(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *g = j->s.g;
    bool *inside = arena_array(j->s.scratch, bool, g->nodes.count);
    bool *leads = arena_array(j->s.scratch, bool, g->nodes.count);
    inside[a] = leads[b] = true;
    for (uint32_t i = a + 1; i <= b; i++)
        inside[i] = reads(g, &g->nodes.at[i], inside);
    for (uint32_t i = b + 1; i-- > a;) {
        const struct ir_node *n = &g->nodes.at[i];
        for (uint32_t k = 0; leads[i] && k < n->n_in; k++)
            leads[g->values.at[ir_operand(g, n, k)].node] = true;
        inside[i] = inside[i] && leads[i];
    }
    return inside;
}

// Whether node b reads, as it is or changed, rows of node a.
static bool reads_rows(struct join *j, uint32_t a, uint32_t b)
{
    const struct ir_graph *g = j->s.g;
    struct lanes *l = schedule_residence(&j->s, &g->nodes.at[a])->lanes;
    bool *from = arena_array(j->s.scratch, bool, g->values.count);
    const struct ir_node *n = &g->nodes.at[a];
    for (ir_id v = n->out; v < n->out + n->n_out; v++)
        from[v] = lanes_inner_count(l, l->top->view[v]) >= COST_ROWS;
    for (uint32_t i = a + 1; i <= b; i++) {
        n = &g->nodes.at[i];
        bool any = false;
        for (uint32_t k = 0; k < n->n_in; k++)
            any = any || from[ir_operand(g, n, k)];
        for (ir_id v = n->out; v < n->out + n->n_out; v++)
            from[v] = any;
        if (i == b)
            return any;
    }
    return false;
}

// ---- The graph with a function

struct outline {
    const struct ir_graph *g;
    const bool *inside; // by node
    VEC(ir_id) in, out; // values that go in and come out
    uint32_t last;      // node inside
};

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

static struct outline outline_of(struct arena *a, const struct ir_graph *g, const bool *inside)
{
    struct outline o = {.g = g, .inside = inside};
    ir_for_each_node (g, n) {
        bool is_inside = inside[number_of(g, n)];
        if (is_inside)
            o.last = number_of(g, n);
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id v = ir_operand(g, n, i);
            if (inside[g->values.at[v].node] != is_inside)
                add_new(a, &o, is_inside, v);
        }
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (inside[g->values.at[g->outputs.at[i]].node])
            add_new(a, &o, false, g->outputs.at[i]);
    return o;
}

// The function of what is inside.  Functions in it are put in their places.
static uint32_t make_function(const struct outline *o)
{
    const struct ir_graph *g = o->g;
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    for (uint32_t i = 0; i < o->in.count; i++)
        map[o->in.at[i]] = ir_param(&b, ir_type_of(g, o->in.at[i]));
    ir_for_each_node (g, n) {
        if (!o->inside[number_of(g, n)])
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

// g with a call of the function: behind what it reads, in front of what reads it.
static const struct ir_graph *with_call(const struct outline *o, uint32_t *out_f)
{
    const struct ir_graph *g = o->g;
    struct ir_module *m = g->module;
    uint32_t f = *out_f = make_function(o);
    if (f == IR_NONE)
        return NULL;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    bool *is_late = arena_array(m->arena, bool, g->nodes.count);
    for (int late = 0; late < 2; late++) {
        ir_for_each_node (g, n) {
            uint32_t i = number_of(g, n);
            is_late[i] = i > o->last || o->inside[i] || reads(g, n, is_late);
            if (n->op == IR_param && !late)
                map[n->out] = ir_param(&b, ir_type_of(g, n->out));
            else if (!o->inside[i] && is_late[i] == late)
                pass_copy_node(&b, g, n, map);
        }
        if (late)
            break;
        ir_id *in = pass_no_values(m, o->in.count);
        for (uint32_t i = 0; i < o->in.count; i++)
            in[i] = map[o->in.at[i]];
        b.where = g->nodes.at[o->last].where;
        ir_id y = ir_call(&b, IR_call, 1, &f, (int)o->in.count, in);
        for (uint32_t i = 0; i < o->out.count; i++)
            map[o->out.at[i]] = y + i;
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
    t.residents = arena_array(s->scratch, const struct resident *, g->nodes.count + 1);
    return t;
}

static int64_t lane_count(struct schedule *s, const struct ir_node *n)
{
    struct lanes *l = schedule_residence(s, n)->lanes;
    return axes_product(&l->space, l->lanes);
}

// The loops a and b, with what is between them, as a call in a new graph; or NULL, and why not.
static const struct ir_graph *join(struct join *j, uint32_t a, uint32_t b, const char **reason)
{
    const struct ir_graph *g = j->s.g;
    *reason = "an effect stands between them";
    if (has_effects(g, a, b))
        return NULL;
    struct outline o = outline_of(j->s.scratch, g, between(j, a, b));
    uint32_t f;
    const struct ir_graph *made = with_call(&o, &f);
    *reason = "they cannot be a function";
    if (!made)
        return NULL;
    struct schedule s = over(&j->s, made);
    ir_for_each_node (made, n) {
        if (!is_loop(n) || ir_body(made, n, 0) != ir_function(made->module, f))
            continue;
        *reason = schedule_residence(&s, n)->reason;
        if (*reason)
            return NULL;
        int64_t lanes = lane_count(&s, n);
        *reason = "they have different lanes";
        return lanes == lane_count(&j->s, &g->nodes.at[a]) &&
                       lanes == lane_count(&j->s, &g->nodes.at[b])
                   ? made
                   : NULL;
    }
    return NULL;
}

static bool may_join(struct join *j, uint32_t i)
{
    const struct ir_node *n = &j->s.g->nodes.at[i];
    return is_loop(n) && !schedule_residence(&j->s, n)->reason;
}

// The graph with the first two joined that can be, or NULL.
static const struct ir_graph *join_two(struct join *j)
{
    uint32_t count = j->s.g->nodes.count;
    for (uint32_t b = 0; b < count; b++)
        for (uint32_t a = b; may_join(j, b) && a-- > 0;) {
            if (!may_join(j, a) || !reads_rows(j, a, b))
                continue;
            const struct ir_graph *made = join(j, a, b, &j->refused[b]);
            if (made)
                return made;
        }
    return NULL;
}

const struct ir_graph *schedule_join_loops(struct schedule *s, const struct ir_graph *g)
{
    if (s->options->separate || s->options->steps)
        return g;
    const struct ir_graph *joined = g;
    while (joined) {
        g = joined;
        struct join j = {.s = over(s, g)};
        j.refused = arena_array(s->scratch, const char *, g->nodes.count + 1);
        s->apart = j.refused;
        joined = join_two(&j);
    }
    return g;
}
