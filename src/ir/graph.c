// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include "base/memory.h"
#include "ir/collective.h"
#include "ir/control.h"

static void fill_module(struct ir_module *m)
{
    // Number 0 of the places is "none".
    vec_push(m->arena, &m->wheres, (struct ir_where){0});
}

struct ir_module *ir_module_create(void)
{
    struct ir_module *m = memory_allocate_zeroed(sizeof *m);
    if (!m)
        return NULL;
    m->arena = arena_create();
    if (!m->arena) {
        ir_module_release(m);
        return NULL;
    }
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        ir_module_release(m);
        return NULL;
    }
    fill_module(m);
    arena_guard_close(&guard);
    return m;
}

void ir_module_release(struct ir_module *m)
{
    if (!m)
        return;
    arena_release(m->arena);
    memory_release(m);
}

static uint64_t ir_graph_hash(const struct ir_graph *g)
{
    uint64_t h = hash_combine(g->n_params, g->nodes.count);
    ir_for_each_node (g, n) {
        h = hash_combine(h, n->op);
        h = hash_combine(h, (uint64_t)(uintptr_t)(n->attrs ? n->attrs->hash : 0));
        for (uint32_t i = 0; i < n->n_in; i++)
            h = hash_combine(h, ir_operand(g, n, i));
        for (uint32_t i = 0; i < n->n_out; i++) {
            struct ir_type t = ir_type_of(g, n->out + i);
            h = hash_bytes(h, &t, sizeof t);
        }
    }
    return hash_bytes(h, g->outputs.at, sizeof(ir_id) * g->outputs.count);
}

static bool nodes_equal(const struct ir_graph *a, const struct ir_node *x,
                        const struct ir_graph *b, const struct ir_node *y)
{
    if (x->op != y->op || x->n_in != y->n_in || x->n_out != y->n_out || x->attrs != y->attrs)
        return false;
    for (uint32_t i = 0; i < x->n_in; i++)
        if (ir_operand(a, x, i) != ir_operand(b, y, i))
            return false;
    for (uint32_t i = 0; i < x->n_out; i++)
        if (!ir_type_equal(ir_type_of(a, x->out + i), ir_type_of(b, y->out + i)))
            return false;
    return true;
}

bool ir_graph_equal(const struct ir_graph *a, const struct ir_graph *b)
{
    if (a->n_params != b->n_params || a->nodes.count != b->nodes.count ||
        a->outputs.count != b->outputs.count)
        return false;
    for (uint32_t i = 0; i < a->nodes.count; i++)
        if (!nodes_equal(a, &a->nodes.at[i], b, &b->nodes.at[i]))
            return false;
    for (uint32_t i = 0; i < a->outputs.count; i++)
        if (a->outputs.at[i] != b->outputs.at[i])
            return false;
    return true;
}

bool ir_has_effect(const struct ir_graph *g, const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    if (c != IR_CLASS_CALL && c != IR_CLASS_CONTROL)
        return c == IR_CLASS_EFFECT;
    // What runs of a call is the first function; others are its derivatives.
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    for (uint32_t i = 0; f && i < (c == IR_CLASS_CALL ? 1 : f->count); i++)
        if (ir_function(g->module, (uint32_t)f->ints[i])->has_effects)
            return true;
    return false;
}

uint32_t ir_function_add(struct ir_module *m, struct ir_graph *g)
{
    g->hash = ir_graph_hash(g);
    ir_for_each_node (g, n) {
        g->has_effects = g->has_effects || ir_has_effect(g, n);
        g->names |= ir_axes_named(g, n);
        g->exchanges |= ir_axes_exchanged(g, n);
    }
    g->control_depth = ir_control_depth(g);
    for (struct hash_probe p = hash_probe(&m->function_table, g->hash);
         hash_next(&m->function_table, &p);)
        if (ir_graph_equal(m->functions.at[p.id], g))
            return p.id;
    vec_push(m->arena, &m->functions, g);
    hash_insert(m->arena, &m->function_table, g->hash, m->functions.count - 1);
    return m->functions.count - 1;
}

static uint32_t intern_where(struct ir_module *m, const char *text, uint32_t next)
{
    uint64_t hash = hash_bytes(next, text, strlen(text));
    for (struct hash_probe p = hash_probe(&m->where_table, hash);
         hash_next(&m->where_table, &p);) {
        const struct ir_where *w = &m->wheres.at[p.id];
        if (w->next == next && !strcmp(w->text, text))
            return p.id;
    }
    vec_push(m->arena, &m->wheres,
             (struct ir_where){.text = arena_text(m->arena, text), .next = next});
    hash_insert(m->arena, &m->where_table, hash, m->wheres.count - 1);
    return m->wheres.count - 1;
}

uint32_t ir_where_make(struct ir_module *m, const char *text)
{
    return text ? intern_where(m, text, 0) : 0;
}

uint32_t ir_where_merge(struct ir_module *m, uint32_t a, uint32_t b)
{
    enum { LONGEST = 8 }; // places beyond it say nothing more to a reader
    if (!a || !b || a == b)
        return a ? a : b;
    uint32_t merged = a, length = 0;
    for (uint32_t w = a; w; w = m->wheres.at[w].next)
        length++;
    for (uint32_t w = b; w && length < LONGEST; w = m->wheres.at[w].next) {
        const char *text = m->wheres.at[w].text;
        bool known = false;
        for (uint32_t v = merged; v && !known; v = m->wheres.at[v].next)
            known = !strcmp(m->wheres.at[v].text, text);
        if (!known) {
            merged = intern_where(m, text, merged);
            length++;
        }
    }
    return merged;
}

const char *ir_where_text(const struct ir_module *m, uint32_t where)
{
    return where ? m->wheres.at[where].text : NULL;
}

enum visit { UNSEEN, OPEN, DONE };

// Depth-first over operands, with a stack of our own: graphs may be deep.
static void number_from(const struct ir_graph *g, uint32_t root, uint8_t *seen, uint32_t *stack,
                        uint32_t *order, uint32_t *n_order)
{
    uint32_t depth = 0;
    stack[depth++] = root;
    while (depth) {
        uint32_t at = stack[depth - 1];
        const struct ir_node *n = &g->nodes.at[at];
        if (seen[at] != UNSEEN) {
            if (seen[at] == OPEN)
                order[(*n_order)++] = at;
            seen[at] = DONE;
            depth--;
            continue;
        }
        seen[at] = OPEN;
        for (uint32_t i = n->n_in; i-- > 0;) {
            uint32_t operand = g->values.at[ir_operand(g, n, i)].node;
            if (seen[operand] == UNSEEN)
                stack[depth++] = operand;
        }
    }
}

static void copy_node(struct ir_graph *to, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *new_id)
{
    struct arena *arena = g->module->arena;
    struct ir_node copy = *n;
    copy.in = to->operands.count;
    copy.out = to->values.count;
    for (uint32_t i = 0; i < n->n_in; i++)
        vec_push(arena, &to->operands, new_id[ir_operand(g, n, i)]);
    for (uint32_t i = 0; i < n->n_out; i++) {
        new_id[n->out + i] = to->values.count;
        vec_push(arena, &to->values,
                 (struct ir_value){.type = ir_type_of(g, n->out + i), .node = to->nodes.count});
    }
    vec_push(arena, &to->nodes, copy);
}

struct ordering {
    const struct ir_graph *g;
    struct ir_graph *made;
};

static jot_status make_canonical(struct arena *scratch, void *ctx)
{
    struct ordering *o = ctx;
    const struct ir_graph *g = o->g;
    uint8_t *seen = arena_array(scratch, uint8_t, g->nodes.count);
    uint32_t *order = arena_array(scratch, uint32_t, g->nodes.count), n_order = 0;
    uint32_t *stack = arena_array(scratch, uint32_t, g->operands.count + 1);
    ir_id *new_id = arena_array(scratch, ir_id, g->values.count);
    for (; n_order < g->n_params; n_order++) {
        order[n_order] = n_order;
        seen[n_order] = DONE;
    }
    for (uint32_t i = g->n_params; i < g->nodes.count; i++)
        if (ir_has_effect(g, &g->nodes.at[i]))
            number_from(g, i, seen, stack, order, &n_order);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        number_from(g, g->values.at[g->outputs.at[i]].node, seen, stack, order, &n_order);

    struct arena *arena = g->module->arena;
    struct ir_graph *to = arena_new(arena, struct ir_graph);
    *to = (struct ir_graph){.module = g->module, .name = g->name, .n_params = g->n_params};
    vec_reserve(arena, &to->nodes, n_order);
    vec_reserve(arena, &to->values, n_order);
    for (uint32_t i = 0; i < n_order; i++)
        copy_node(to, g, &g->nodes.at[order[i]], new_id);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        vec_push(arena, &to->outputs, new_id[g->outputs.at[i]]);
    o->made = to;
    return JOT_OK;
}

struct ir_graph *ir_canonical(const struct ir_graph *g)
{
    struct ordering o = {.g = g};
    if (arena_lend(make_canonical, &o) != JOT_OK)
        arena_exhausted();
    return o.made;
}

bool ir_is_zero(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    while (n->op == IR_broadcast_in_dim || n->op == IR_reshape || n->op == IR_pvary)
        n = ir_node_of(g, ir_operand(g, n, 0));
    if (n->op != IR_const)
        return false;
    const struct ir_field *data = ir_field_find(n->attrs, IR_KEY_data);
    bool is_zero = data->count > 0;
    for (uint32_t i = 0; i < data->count; i++)
        is_zero &= ((const char *)data->bytes)[i] == 0;
    return is_zero;
}

const char *ir_graph_text(const struct ir_graph *g)
{
    struct strbuf s = strbuf_make(g->module->arena);
    ir_graph_print(&s, g);
    return s.text;
}
