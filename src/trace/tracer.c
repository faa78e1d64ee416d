// SPDX-License-Identifier: Apache-2.0
// The stack of traces of a thread, and how a trace becomes a function.
#include "trace/tracer.h"

#include "runtime/stack.h"
#include "trace/block.h"
#include "trace/ended.h"
#include "trace/environment.h"
#include "trace/opened.h"
#include "trace/stacks.h"

#include <stdio.h>

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
    t->axes = parent->axes;
    t->rule_before = t->root->rule;
    start(t, kind, name, where);
    return t;
}

void trace_end(struct trace *t)
{
    ended_add(t);
    opened_remove(t);
    rt_frame_forget(&t->frame);
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
        block_free(inner->block);
        trace_end(inner);
        if (inner->root == inner) // a scope that was left open
            release_root(inner);
    }
}

void trace_abandon_body(struct rt_frame *frame)
{
    struct trace *t = (struct trace *)frame;
    for (struct trace *inner = top; inner != t->below; inner = inner->below)
        inner->error = NULL;
    trace_end_inside(t);
    t->root->rule = t->rule_before;
    trace_end(t);
}

static void abandon_scope(struct rt_frame *frame) { trace_abandon((struct trace *)frame); }

void trace_guard_scope(struct trace *t) { rt_frame_open(&t->frame, NULL, abandon_scope); }

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
    rt_frame_forget(&old->frame);
    trace_guard_scope(t);
    release_root(old);
    return t;
}

// ---------------------------------------------------------------------------------------
// Stack

#define MOST_FUNCTIONS 500 // in each other; one that applies itself never ends
#define MOST_BLOCKS 4000

struct stack_work {
    struct trace *top;
    bool (*body)(void *ctx);
    void *ctx;
    bool ok, is_out_of_memory;
};

static jot_status do_work(void *ctx)
{
    struct stack_work *w = ctx;
    struct trace *own = top;
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        top = own;
        return JOT_OK;
    }
    top = w->top;
    w->ok = w->body(w->ctx);
    top = own;
    arena_guard_close(&guard);
    w->is_out_of_memory = false;
    return w->ok ? JOT_OK : status_last();
}

bool trace_with_stack(bool (*body)(void *ctx), void *ctx)
{
    // Until it has been run to its end.
    struct stack_work w = {.top = top, .body = body, .ctx = ctx, .is_out_of_memory = true};
    size_t functions = top->module->functions.count;
    rt_stack_lend(STACK_OF_PASSES + functions * STACK_OF_TRACED_FUNCTION, do_work, &w);
    if (w.is_out_of_memory)
        arena_exhausted();
    return w.ok;
}

const char *trace_too_deep(enum trace_kind kind)
{
    static _Thread_local char why[120];
    int n = 0, most = kind == TRACE_BLOCK ? MOST_BLOCKS : MOST_FUNCTIONS;
    size_t left = rt_stack_left();
    for (const struct trace *t = top; t; t = t->parent)
        n += t->kind == kind;
    if (left < STACK_OF_TRACE)
        snprintf(why, sizeof why,
                 "the stack of the thread has %zu KiB left, and tracing takes %zu: give it a "
                 "larger one",
                 left >> 10, STACK_OF_TRACE >> 10);
    else if (n >= most && kind == TRACE_BLOCK)
        snprintf(why, sizeof why, "%d blocks in each other: at most %d", n + 1, most);
    else if (n >= most)
        snprintf(why, sizeof why, "one applies itself without end");
    else
        return NULL;
    return why;
}

jot_value trace_param(struct ir_type type, bool weak)
{
    return trace_value(ir_param(&top->b, type), weak);
}

// ---------------------------------------------------------------------------------------
// Closing

void trace_hide(struct trace *t, struct trace_hidden h)
{
    vec_push(t->module->arena, &t->hidden, h);
    vec_reserve(t->module->arena, &t->hidden_of, h.id + 1);
    while (t->hidden_of.count <= h.id)
        t->hidden_of.at[t->hidden_of.count++] = 0;
    t->hidden_of.at[h.id] = t->hidden.count;
}

void trace_unhide(struct trace *t, uint32_t n)
{
    for (; n > 0; n--)
        t->hidden_of.at[t->hidden.at[--t->hidden.count].id] = 0;
}

ir_id trace_resolve(const struct trace *t, ir_id v)
{
    const struct ir_graph *g = t->b.graph;
    while (ir_node_of(g, v)->op == IR_variable && !trace_hidden_find(t, v))
        v = ir_operand(g, ir_node_of(g, v), 0);
    return v;
}

struct closing {
    struct trace *t;
    int n_out;
    const ir_id *outs;
    const struct ir_graph *g;
    struct arena *scratch;
    struct ir_builder b;
    VEC(uint32_t) used; // hidden parameters in the order of their first use
    uint32_t made;
};

// What gives a value: its node, or the value itself where it is a hidden parameter: an array, or
// what an earlier evaluation of a scope has left.
struct giver {
    bool is_hidden;
    uint32_t at; // node or value
};

static struct giver giver(const struct closing *c, ir_id v)
{
    v = trace_resolve(c->t, v);
    bool is_hidden = trace_hidden_find(c->t, v) != NULL;
    return (struct giver){is_hidden, is_hidden ? v : c->g->values.at[v].node};
}

static uint32_t *mark_of(const struct trace *t, struct giver giver)
{
    return &t->marks.at[2 * giver.at + giver.is_hidden];
}

typedef void visit(struct closing *c, struct giver giver);

// Marks below the two that a walk sets are of earlier ones, so nothing is cleared.
static void start_marks(struct trace *t)
{
    const struct ir_graph *g = t->b.graph;
    uint32_t n = g->nodes.count > g->values.count ? g->nodes.count : g->values.count;
    vec_reserve(t->module->arena, &t->marks, 2 * n + 2);
    vec_reserve(t->module->arena, &t->map, g->values.count + 1);
    while (t->marks.count < 2 * n + 2)
        t->marks.at[t->marks.count++] = 0;
    if (t->last_mark > UINT32_MAX - 4) {
        memset(t->marks.at, 0, t->marks.count * sizeof *t->marks.at);
        t->last_mark = 0;
    }
    t->last_mark += 2;
}

// Calls f for every giver that effects and outs need, operands first, depth first by operand
// position.
static void walk(struct closing *c, visit *f)
{
    const struct ir_graph *g = c->g;
    VEC(struct giver) roots = {0}, stack = {0};
    start_marks(c->t);
    uint32_t done = c->t->last_mark, open = done - 1;
    for (uint32_t at = c->t->done_effects; at < g->nodes.count; at++)
        if (ir_has_effect(g, &g->nodes.at[at]))
            vec_push(c->scratch, &roots, (struct giver){.at = at});
    for (int o = 0; o < c->n_out; o++)
        vec_push(c->scratch, &roots, giver(c, c->outs[o]));
    for (uint32_t r = 0; r < roots.count; r++) {
        vec_push(c->scratch, &stack, roots.at[r]);
        while (stack.count) {
            struct giver at = vec_last(&stack);
            uint32_t *mark = mark_of(c->t, at);
            if (*mark == done) {
                stack.count--;
                continue;
            }
            if (*mark == open) {
                *mark = done;
                f(c, at);
                stack.count--;
                continue;
            }
            *mark = open;
            const struct ir_node *n = at.is_hidden ? NULL : &g->nodes.at[at.at];
            for (uint32_t i = n ? n->n_in : 0; i-- > 0;) {
                struct giver operand = giver(c, ir_operand(g, n, i));
                if (*mark_of(c->t, operand) < open)
                    vec_push(c->scratch, &stack, operand);
            }
        }
    }
}

static void find_hidden(struct closing *c, struct giver giver)
{
    if (giver.is_hidden)
        vec_push(c->t->module->arena, &c->used, c->t->hidden_of.at[giver.at] - 1);
}

static void rebuild(struct closing *c, struct giver giver)
{
    ir_id *map = c->t->map.at;
    if (giver.is_hidden || c->g->nodes.at[giver.at].op == IR_param)
        return;
    const struct ir_node *n = &c->g->nodes.at[giver.at];
    ir_id *in = arena_array(c->scratch, ir_id, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = map[trace_resolve(c->t, ir_operand(c->g, n, i))];
    ir_id made = ir_rebuild(&c->b, c->g, n, in);
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!trace_hidden_find(c->t, n->out + i))
            map[n->out + i] = made == IR_NONE ? IR_NONE : made + i;
}

static jot_status close_into(struct arena *scratch, void *ctx)
{
    struct closing *c = ctx;
    struct trace *t = c->t;
    const struct ir_graph *g = c->g;
    c->scratch = scratch;
    walk(c, find_hidden);

    c->b = ir_builder_make(t->module, t->name, IR_BUILD_PLAIN);
    for (uint32_t i = 0; i < g->n_params; i++)
        t->map.at[i] = ir_param(&c->b, ir_type_of(g, i));
    for (uint32_t i = 0; i < c->used.count; i++) {
        ir_id at = t->hidden.at[c->used.at[i]].id;
        t->map.at[at] = ir_param(&c->b, ir_type_of(g, at));
    }
    walk(c, rebuild);
    for (int i = 0; i < c->n_out; i++)
        ir_output(&c->b, t->map.at[trace_resolve(t, c->outs[i])]);
    c->made = ir_finish_function(&c->b);
    return JOT_OK;
}

ir_id trace_closed_as(const struct trace *t, ir_id v)
{
    uint32_t node = t->b.graph->values.at[v].node;
    bool was_rebuilt = 2 * node < t->marks.count && t->marks.at[2 * node] == t->last_mark;
    return was_rebuilt ? t->map.at[v] : IR_NONE;
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
