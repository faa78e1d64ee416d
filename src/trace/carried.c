// SPDX-License-Identifier: Apache-2.0
#include "trace/carried.h"

#include "ir/cost.h"
#include "runtime/array.h"

#include <stdlib.h>

static size_t most_bytes = (size_t)256 << 20;

// Of what is computed again the sources are looked for among so many nodes.
#define MOST_NODES_AGAIN 64
// What is computed again is large (COST_LARGE_BYTES), and this much larger than what it is made of.
#define TIMES_LARGER 4

// What a program computed was carried: where it stands in the program, and how far before the end
// of the stage.
struct expectation {
    struct hash128 key;
    ir_id in_program;
    uint32_t from_end;
};

struct need {
    uint32_t node;
    bool is_later; // for a stage after its own
};

struct scope_history {
    VEC(uint32_t) ends; // by stage: how many nodes there were
    uint32_t evaluations;
    // Of the last evaluation.
    struct hash128 key;
    uint32_t values, mark;
    VEC(struct expectation) expectations;
    // The last evaluation that needs it: nodes in their own stage and later, and values carried.
    VEC(uint32_t) needed, carried_for;
    VEC(struct need) to_visit;
    VEC(struct carried_value) carried;
    VEC(ir_id) expected;
    VEC(uint32_t) arrays; // carried ones, as indices of hidden parameters
    size_t bytes;         // of these
};

static struct scope_history *history(struct trace *t)
{
    if (!t->history)
        t->history = arena_new(t->module->arena, struct scope_history);
    return t->history;
}

static uint32_t stage_of(const struct scope_history *h, uint32_t node)
{
    uint32_t low = 0, high = h->ends.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (node < h->ends.at[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// ---------------------------------------------------------------------------------------
// What is carried

static size_t bytes_of(const struct ir_graph *g, ir_id id)
{
    struct ir_type type = ir_type_of(g, id);
    return (size_t)ir_count(g->module, type) * dtype_get(ir_dtype(type))->bytes;
}

static bool is_elementwise(const struct ir_node *n)
{
    enum ir_class c = ir_op_class(n->op);
    return c == IR_CLASS_MAP || c == IR_CLASS_LAYOUT || c == IR_CLASS_CONST;
}

// A change of index or type that makes nothing smaller.
static bool is_view(const struct ir_graph *g, const struct ir_node *n, ir_id v)
{
    return n->n_in == 1 && (ir_op_class(n->op) == IR_CLASS_LAYOUT || n->op == IR_convert) &&
           ir_count_of(g, v) >= ir_count_of(g, ir_operand(g, n, 0));
}

static bool is_made_again(const struct trace *t, ir_id v, bool in_stage);

// The bytes of what v is made of by elementwise operations, in its stage or, unless in_stage, from
// what is made again from earlier ones; SIZE_MAX when there are too many of these operations.
static size_t source_bytes(const struct trace *t, ir_id v, bool in_stage)
{
    const struct scope_history *h = t->history;
    const struct ir_graph *g = t->b.graph;
    ir_id stack[MOST_NODES_AGAIN];
    uint32_t depth = 0, nodes = 0, stage = stage_of(h, g->values.at[v].node);
    size_t bytes = 0;
    stack[depth++] = v;
    while (depth) {
        ir_id at = trace_resolve(t, stack[--depth]);
        uint32_t number = g->values.at[at].node;
        const struct ir_node *n = &g->nodes.at[number];
        bool is_other = stage_of(h, number) != stage;
        if (trace_hidden_find(t, at) || !is_elementwise(n) ||
            (is_other && (in_stage || !is_made_again(t, at, true)))) {
            bytes += bytes_of(g, at);
            continue;
        }
        if (++nodes > MOST_NODES_AGAIN || depth + n->n_in > MOST_NODES_AGAIN)
            return SIZE_MAX;
        for (uint32_t i = 0; !is_other && i < n->n_in; i++)
            stack[depth++] = ir_operand(g, n, i);
    }
    return bytes;
}

// Whether v costs less to compute again where it is used than to keep: a view, or so many elements
// that are made of so few others.  A view is no smaller than what it is of, which is kept instead.
static bool is_made_again(const struct trace *t, ir_id v, bool in_stage)
{
    const struct ir_graph *g = t->b.graph;
    const struct ir_node *n = ir_node_of(g, v);
    size_t bytes = bytes_of(g, v);
    if (!is_elementwise(n))
        return false;
    if (n->n_in == 0 || is_view(g, n, v))
        return true;
    if (bytes < COST_LARGE_BYTES)
        return false;
    size_t sources = source_bytes(t, v, in_stage);
    return sources != SIZE_MAX && sources < bytes / TIMES_LARGER;
}

static bool same_key(struct hash128 a, struct hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

// What the last program had computed anyway is a result of it the next time.
static void expect(struct trace *t, ir_id v)
{
    struct scope_history *h = t->history;
    uint32_t node = t->b.graph->values.at[v].node;
    if (stage_of(h, node) + 1 != h->ends.count || h->mark != t->last_mark)
        return;
    ir_id in_program = trace_closed_as(t, v);
    if (in_program == IR_NONE)
        return;
    struct expectation e = {.key = h->key, .in_program = in_program, .from_end = h->values - v};
    for (uint32_t i = 0; i < h->expectations.count; i++) {
        const struct expectation *k = &h->expectations.at[i];
        if (same_key(k->key, e.key) && k->in_program == e.in_program &&
            k->from_end == e.from_end)
            return;
    }
    vec_push(t->module->arena, &h->expectations, e);
}

static bool is_new(struct scope_history *h, uint32_t *last)
{
    bool is_new = *last != h->evaluations;
    *last = h->evaluations;
    return is_new;
}

// Something of a stage, which the node is of or one before, is made of v.
static void need(struct trace *t, ir_id v, uint32_t stage)
{
    struct scope_history *h = t->history;
    v = trace_resolve(t, v);
    if (trace_hidden_find(t, v))
        return;
    uint32_t node = t->b.graph->values.at[v].node, own = stage_of(h, node);
    bool is_later = own < stage && is_made_again(t, v, false);
    if (own < stage && !is_later && is_new(h, &h->carried_for.at[v])) {
        expect(t, v);
        vec_push(t->module->arena, &h->carried, (struct carried_value){v, own});
    }
    if (is_new(h, &h->needed.at[2 * node + is_later]))
        vec_push(t->module->arena, &h->to_visit, (struct need){node, is_later});
}

static void need_operands(struct trace *t, uint32_t node, uint32_t stage)
{
    const struct ir_node *n = &t->b.graph->nodes.at[node];
    for (uint32_t i = 0; i < n->n_in; i++)
        need(t, ir_operand(t->b.graph, n, i), stage);
}

static int by_stage(const void *a, const void *b)
{
    const struct carried_value *x = a, *y = b;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void extend(struct arena *arena, struct scope_history *h, const struct ir_graph *g)
{
    vec_reserve(arena, &h->needed, 2 * g->nodes.count);
    while (h->needed.count < 2 * g->nodes.count)
        h->needed.at[h->needed.count++] = 0;
    vec_reserve(arena, &h->carried_for, g->values.count);
    while (h->carried_for.count < g->values.count)
        h->carried_for.at[h->carried_for.count++] = 0;
}

const struct carried_value *carried_find(struct trace *t, int n, const ir_id *outs,
                                         uint32_t *out_count)
{
    struct scope_history *h = history(t);
    const struct ir_graph *g = t->b.graph;
    struct arena *arena = t->module->arena;
    uint32_t now = h->ends.count;
    h->evaluations++;
    h->carried.count = 0;
    *out_count = 0;
    if (now == 0)
        return NULL;
    extend(arena, h, g);
    for (int i = 0; i < n; i++)
        need(t, outs[i], now);
    for (uint32_t at = t->done_effects; at < g->nodes.count; at++)
        if (ir_has_effect(g, &g->nodes.at[at]))
            need_operands(t, at, now);
    while (h->to_visit.count) {
        struct need at = h->to_visit.at[--h->to_visit.count];
        need_operands(t, at.node, stage_of(h, at.node) + at.is_later);
    }
    if (h->carried.count)
        qsort(h->carried.at, h->carried.count, sizeof *h->carried.at, by_stage);
    *out_count = h->carried.count;
    return h->carried.at;
}

// ---------------------------------------------------------------------------------------
// What is expected to be

const ir_id *carried_expected(struct trace *t, struct hash128 key, uint32_t *out_count)
{
    struct scope_history *h = t->history;
    uint32_t values = t->b.graph->values.count;
    h->expected.count = 0;
    for (uint32_t i = 0; i < h->expectations.count; i++) {
        const struct expectation *e = &h->expectations.at[i];
        if (!same_key(e->key, key) || e->from_end > values)
            continue;
        ir_id v = values - e->from_end;
        if (trace_closed_as(t, v) == e->in_program && !trace_hidden_find(t, v))
            vec_push(t->module->arena, &h->expected, v);
    }
    *out_count = h->expected.count;
    return h->expected.at;
}

void carried_end_stage(struct trace *t, struct hash128 key)
{
    struct scope_history *h = t->history;
    h->key = key;
    h->values = t->b.graph->values.count;
    h->mark = t->last_mark;
    uint32_t nodes = t->b.graph->nodes.count;
    if (h->ends.count == 0 || vec_last(&h->ends) < nodes)
        vec_push(t->module->arena, &h->ends, nodes);
}

// ---------------------------------------------------------------------------------------
// Arrays

void carried_reserve(struct trace *t, uint32_t n)
{
    struct scope_history *h = t->history;
    vec_reserve(t->module->arena, &h->arrays, h->arrays.count + n);
    vec_reserve(t->module->arena, &h->ends, h->ends.count + 1);
}

void carried_use(struct trace *t, struct trace_hidden *h) { h->used = t->history->evaluations; }

void carried_add(struct trace *t, struct trace_hidden *h)
{
    struct scope_history *history = t->history;
    h->is_carried = true;
    carried_use(t, h);
    history->bytes += h->array->bytes;
    vec_push(t->module->arena, &history->arrays, (uint32_t)(h - t->hidden.at));
}

void carried_claim(struct trace *t, struct trace_hidden *h)
{
    if (h->is_carried)
        t->history->bytes -= h->array->bytes;
    h->is_carried = false;
}

// The index in arrays of the one that has not been used for the longest time, and not by this
// evaluation; drops those that are claimed.
static uint32_t oldest(struct trace *t)
{
    struct scope_history *h = t->history;
    uint32_t found = UINT32_MAX, used = h->evaluations, n = 0;
    for (uint32_t i = 0; i < h->arrays.count; i++) {
        const struct trace_hidden *at = &t->hidden.at[h->arrays.at[i]];
        if (!at->is_carried)
            continue;
        if (at->used < used) {
            used = at->used;
            found = n;
        }
        h->arrays.at[n++] = h->arrays.at[i];
    }
    h->arrays.count = n;
    return found;
}

void carried_trim(struct trace *t)
{
    struct scope_history *h = t->history;
    while (h->bytes > most_bytes) {
        uint32_t i = oldest(t);
        if (i == UINT32_MAX)
            return;
        struct trace_hidden *at = &t->hidden.at[h->arrays.at[i]];
        carried_claim(t, at);
        t->hidden_of.at[at->id] = 0;
        jot_array_release(at->array);
        at->array = NULL;
    }
}

size_t *carried_most_bytes(void) { return &most_bytes; }
