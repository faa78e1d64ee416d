// SPDX-License-Identifier: Apache-2.0
// The stack of traces of a thread, and how a trace becomes a function.
#include "trace/tracer.h"

#include "base/bitset.h"
#include "trace/ended.h"
#include "trace/environment.h"
#include "trace/opened.h"

static _Thread_local struct trace *top;

struct trace *trace_top(void) { return top; }

static const struct trace_error out_of_memory = {
    .status = JOT_ERR_MEMORY, .op = "jot", .text = "out of memory"};

static void start(struct trace *t, enum trace_kind kind, const char *name, const char *where)
{
    t->kind = kind;
    t->name = arena_text(t->module->arena, name);
    t->where = where;
    t->b = ir_builder_make(t->module, t->name, IR_BUILD_PLAIN);
    vec_push(t->module->arena, &t->slots,
             (struct trace_slot){.kind = TRACE_ERROR, .error = &out_of_memory});
    t->placed_slots = 1;
    t->below = top;
    top = t;
    opened_add(t);
}

struct trace *trace_open_root(enum trace_kind kind, const char *name, const char *where)
{
    struct ir_module *m = ir_module_create();
    if (!m)
        return status_out_of_memory(), NULL;
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        ir_module_release(m);
        return status_out_of_memory(), NULL;
    }
    struct trace *t = arena_new(m->arena, struct trace);
    m->is_unguarded = environment_lists("JOT_NAN_GUARD", "off");
    t->module = m;
    t->root = t;
    start(t, kind, name, where);
    arena_guard_close(&guard);
    return t;
}

struct trace *trace_open_nested(enum trace_kind kind, const char *name, const char *where)
{
    struct trace *parent = top, *t = arena_new(parent->module->arena, struct trace);
    t->module = parent->module;
    t->parent = parent;
    t->root = parent->root;
    start(t, kind, name, where);
    return t;
}

void trace_end(struct trace *t)
{
    ended_add(t);
    opened_remove(t);
    top = t->below;
    if (t->parent && t->error) {
        t->root->latest = t->error;
        if (!t->parent->error)
            t->parent->error = t->error;
    }
    if (t->parent && t->is_broken)
        t->parent->is_broken = true;
}

static void release_root(struct trace *root)
{
    for (uint32_t i = 0; i < root->hidden.count; i++)
        jot_array_release(root->hidden.at[i].array);
    ir_module_release(root->module);
}

void trace_end_inside(struct trace *t)
{
    while (top != t) {
        struct trace *inner = top;
        trace_end(inner);
        if (inner->root == inner) // a scope that was left open
            release_root(inner);
    }
}

void trace_abandon(struct trace *root)
{
    trace_end_inside(root);
    trace_end(root);
    release_root(root);
}

struct trace *trace_replace_scope(struct trace *old)
{
    struct trace *t = trace_open_root(TRACE_SCOPE, old->name, old->where);
    if (!t)
        return NULL;
    t->below = old->below;
    ended_add(old);
    opened_remove(old);
    release_root(old);
    return t;
}

jot_value trace_param(struct ir_type type, bool weak)
{
    return trace_value(ir_param(&top->b, type), weak);
}

// ---------------------------------------------------------------------------------------
// Closing

struct closing {
    struct trace *t;
    int n_out;
    const ir_id *outs;
    const struct ir_graph *g;
    struct arena *scratch;
    struct ir_builder b;
    ir_id *map;         // by value of g; IR_NONE until made
    uint32_t *hidden;   // by value of g that becomes a hidden parameter: its number plus 1
    VEC(uint32_t) used; // hidden parameters in the order of their first use
    uint32_t made;
};

// What a value stands for: a variable is only a name, and has done its work when the trace ends.
static ir_id resolve(const struct closing *c, ir_id v)
{
    while (ir_node_of(c->g, v)->op == IR_variable && !c->hidden[v])
        v = ir_operand(c->g, ir_node_of(c->g, v), 0);
    return v;
}

// What gives a value: its node, or, numbered behind the nodes, the value itself where it is a hidden
// parameter: an array, or what an earlier evaluation of a scope has left.
static uint32_t giver(const struct closing *c, ir_id v)
{
    v = resolve(c, v);
    return c->hidden[v] ? c->g->nodes.count + v : c->g->values.at[v].node;
}

typedef void visit(struct closing *c, uint32_t giver);

// Calls f for every giver that effects and outs need, operands first, depth first by operand
// position.
static void walk(struct closing *c, visit *f)
{
    const struct ir_graph *g = c->g;
    uint32_t givers = g->nodes.count + g->values.count;
    struct bitset open = bitset_make(c->scratch, givers),
                  done = bitset_make(c->scratch, givers);
    uint32_t *stack =
        arena_array(c->scratch, uint32_t, g->operands.count + (uint32_t)c->n_out + 1);
    uint32_t n_roots = 0, most = g->nodes.count + (uint32_t)c->n_out;
    uint32_t *roots = arena_array(c->scratch, uint32_t, most + 1);
    for (uint32_t at = c->t->done_effects; at < g->nodes.count; at++)
        if (ir_has_effect(g, &g->nodes.at[at]))
            roots[n_roots++] = at;
    for (int o = 0; o < c->n_out; o++)
        roots[n_roots++] = giver(c, c->outs[o]);
    for (uint32_t r = 0; r < n_roots; r++) {
        uint32_t depth = 0;
        stack[depth++] = roots[r];
        while (depth) {
            uint32_t at = stack[depth - 1];
            if (bitset_has(&done, at)) {
                depth--;
                continue;
            }
            if (bitset_has(&open, at)) {
                bitset_set(&done, at);
                f(c, at);
                depth--;
                continue;
            }
            bitset_set(&open, at);
            const struct ir_node *n = at < g->nodes.count ? &g->nodes.at[at] : NULL;
            for (uint32_t i = n ? n->n_in : 0; i-- > 0;) {
                uint32_t operand = giver(c, ir_operand(g, n, i));
                if (!bitset_has(&open, operand))
                    stack[depth++] = operand;
            }
        }
    }
}

static void find_hidden(struct closing *c, uint32_t giver)
{
    if (giver >= c->g->nodes.count)
        vec_push(c->t->module->arena, &c->used, c->hidden[giver - c->g->nodes.count] - 1);
}

static void rebuild(struct closing *c, uint32_t giver)
{
    if (giver >= c->g->nodes.count || c->g->nodes.at[giver].op == IR_param)
        return;
    const struct ir_node *n = &c->g->nodes.at[giver];
    ir_id *in = arena_array(c->scratch, ir_id, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = c->map[resolve(c, ir_operand(c->g, n, i))];
    ir_id made = ir_rebuild(&c->b, c->g, n, in);
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!c->hidden[n->out + i])
            c->map[n->out + i] = made == IR_NONE ? IR_NONE : made + i;
}

static jot_status close_into(struct arena *scratch, void *ctx)
{
    struct closing *c = ctx;
    struct trace *t = c->t;
    const struct ir_graph *g = c->g;
    c->scratch = scratch;
    c->map = arena_array(c->scratch, ir_id, g->values.count + 1);
    c->hidden = arena_array(c->scratch, uint32_t, g->values.count + 1);
    for (uint32_t i = 0; i < t->hidden.count; i++)
        c->hidden[t->hidden.at[i].id] = i + 1;
    walk(c, find_hidden);

    c->b = ir_builder_make(t->module, t->name, IR_BUILD_PLAIN);
    for (uint32_t i = 0; i < g->n_params; i++)
        c->map[i] = ir_param(&c->b, ir_type_of(g, i));
    for (uint32_t i = 0; i < c->used.count; i++) {
        ir_id at = t->hidden.at[c->used.at[i]].id;
        c->map[at] = ir_param(&c->b, ir_type_of(g, at));
    }
    walk(c, rebuild);
    for (int i = 0; i < c->n_out; i++)
        ir_output(&c->b, c->map[resolve(c, c->outs[i])]);
    c->made = ir_finish_function(&c->b);
    return JOT_OK;
}

uint32_t trace_close(struct trace *t, int n_out, const ir_id *outs, uint32_t *out_n_hidden,
                     uint32_t **out_hidden)
{
    struct closing c = {.t = t, .n_out = n_out, .outs = outs, .g = t->b.graph};
    if (arena_lend(close_into, &c) != JOT_OK)
        arena_exhausted();
    if (c.made == IR_NONE)
        trace_fail(t->name, c.b.status, "%s", c.b.message ? c.b.message : "no function");
    *out_n_hidden = c.used.count;
    *out_hidden = c.used.at;
    return c.made;
}
