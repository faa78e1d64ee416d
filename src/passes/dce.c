// SPDX-License-Identifier: Apache-2.0
// Removes nodes that no output needs, and results of calls that nothing reads.
//
//     a = add x y
//     b = mul x x        becomes       a = add x y
//     return a                         return a
//
// Needs nothing.  Keeps the parameters of the function itself; a call whose results are partly
// unread calls a function that lacks them, and lacks the parameters that only they needed.
#include "passes/transform.h"

struct trimmed {
    uint32_t f;
    bool *used; // by parameter of the function before
};

struct trim {
    struct ir_module *m;
    const struct ir_graph *g;
    bool *live;                  // by value
    const struct trimmed **call; // by node: the body that is left
};

static const struct trimmed *trim(struct ir_module *m, uint32_t f, const bool *out_mask,
                                  bool keep_params);

// Calls and checkpoints can lose results; custom rules have a fixed signature.
static bool is_trimmable(const struct ir_node *n)
{
    return n->op == IR_call || n->op == IR_checkpoint;
}

static uint32_t body_of(const struct ir_node *n)
{
    return (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[0];
}

static bool any_live(const struct trim *t, const struct ir_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (t->live[n->out + i])
            return true;
    return false;
}

static void find_live(struct trim *t, const bool *out_mask)
{
    const struct ir_graph *g = t->g;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (out_mask[i])
            t->live[g->outputs.at[i]] = true;
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        if (!any_live(t, n))
            continue;
        const bool *used = NULL;
        if (is_trimmable(n)) {
            t->call[at] = trim(t->m, body_of(n), t->live + n->out, false);
            used = t->call[at]->used;
        }
        for (uint32_t i = 0; i < n->n_in; i++)
            if (!used || used[i])
                t->live[ir_operand(g, n, i)] = true;
    }
}

static void copy_call(const struct trim *t, struct ir_builder *b, const struct ir_node *n,
                      const struct trimmed *body, ir_id *map)
{
    ir_id *in = pass_no_values(t->m, n->n_in);
    int count = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (body->used[i])
            in[count++] = map[ir_operand(t->g, n, i)];
    b->where = n->where;
    ir_id y = ir_call(b, n->op, 1, &body->f, count, in);
    for (uint32_t i = 0; i < n->n_out && y != IR_NONE; i++)
        if (t->live[n->out + i])
            map[n->out + i] = y++;
}

static const struct trimmed *trim(struct ir_module *m, uint32_t f, const bool *out_mask,
                                  bool keep_params)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_RESTRICT,
                           .f = f,
                           .number = keep_params,
                           .n = g->outputs.count,
                           .mask = out_mask};
    const struct trimmed *known = pass_memo_find(m, &key);
    if (known)
        return known;
    struct trim t = {.m = m,
                     .g = g,
                     .live = arena_array(m->arena, bool, g->values.count + 1),
                     .call = arena_array(m->arena, const struct trimmed *, g->nodes.count + 1)};
    find_live(&t, out_mask);
    struct trimmed *made = arena_new(m->arena, struct trimmed);
    made->used = arena_array(m->arena, bool, g->n_params + 1);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    for (uint32_t i = 0; i < g->n_params; i++)
        made->used[i] = keep_params || t.live[i];
    pass_copy_params(&b, g, made->used, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        if (t.call[at])
            copy_call(&t, &b, n, t.call[at], map);
        else if (any_live(&t, n))
            pass_copy_node(&b, g, n, map);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (out_mask[i])
            ir_output(&b, map[g->outputs.at[i]]);
    made->f = ir_finish_function(&b);
    pass_memo_add(m, &key, made);
    return made;
}

uint32_t pass_dce(struct ir_module *m, uint32_t f)
{
    uint32_t n = ir_function(m, f)->outputs.count;
    bool any = false;
    ir_for_each_node (ir_function(m, f), node)
        any = any || is_trimmable(node);
    if (!any)
        return ir_function_add(m, ir_canonical(ir_function(m, f)));
    bool *all = arena_array(m->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++)
        all[i] = true;
    return trim(m, f, all, true)->f;
}
