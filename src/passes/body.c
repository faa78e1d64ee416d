// SPDX-License-Identifier: Apache-2.0
#include "passes/body.h"

#include "ir/control.h"

#include <assert.h>

struct body body_of(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    return (struct body){.b = ir_builder_make(m, g->name, IR_BUILD_ZEROS),
                         .f = g,
                         .in = pass_no_values(m, g->n_params),
                         .out = pass_no_values(m, g->outputs.count)};
}

void body_take(struct body *w, uint32_t i) { w->in[i] = ir_param(&w->b, ir_type_of(w->f, i)); }

void body_take_all(struct body *w)
{
    for (uint32_t i = 0; i < w->f->n_params; i++)
        body_take(w, i);
}

void body_run(struct body *w) { ir_inline(&w->b, w->f, w->in, w->out); }

void body_give(struct body *w, uint32_t i) { ir_output(&w->b, w->out[i]); }

void body_give_or_zeros(struct body *w, bool there, uint32_t i, struct ir_type t)
{
    if (there)
        body_give(w, i);
    else
        ir_output(&w->b, ir_zeros(&w->b, t));
}

void body_copy_wanted(struct ir_builder *b, const struct ir_graph *g, const bool *wanted,
                      ir_id *map)
{
    bool *needed = body_mask(b->module, g->values.count);
    bool *is_made = body_mask(b->module, g->nodes.count);
    for (uint32_t at = g->nodes.count; at-- > g->n_params;) {
        const struct ir_node *n = &g->nodes.at[at];
        for (uint32_t k = 0; k < n->n_out; k++)
            is_made[at] |= needed[n->out + k] || wanted[n->out + k];
        for (uint32_t i = 0; i < n->n_in && is_made[at]; i++)
            needed[ir_operand(g, n, i)] = true;
    }
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        if (is_made[at])
            pass_copy_node(b, g, &g->nodes.at[at], map);
}

ir_id *body_copy_all(struct ir_builder *b, const struct ir_graph *g, body_copy *copy)
{
    ir_id *map = pass_no_values(b->module, g->values.count);
    pass_copy_params(b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        copy(b, g, &g->nodes.at[at], map);
    pass_copy_outputs(b, g, map);
    return map;
}

uint32_t body_rewrite(struct ir_module *m, uint32_t f, enum memo_kind kind, body_copy *copy)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = kind, .f = f};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    body_copy_all(&b, g, copy);
    return pass_memo_add_function(m, &key, ir_finish_function(&b));
}

uint32_t *body_rewrite_all(struct ir_module *m, const struct ir_node *n,
                           uint32_t (*rewrite)(struct ir_module *m, uint32_t f))
{
    const int64_t *functions;
    int count = ir_bodies_of(n, &functions);
    uint32_t *made = arena_array(m->arena, uint32_t, count + 1);
    for (int i = 0; i < count; i++)
        made[i] = rewrite(m, (uint32_t)functions[i]);
    return made;
}

ir_id *body_operands(struct ir_module *m, const struct ir_graph *g, const struct ir_node *n,
                     const ir_id *map)
{
    ir_id *in = pass_no_values(m, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++) {
        assert(n->n_out == 0 || ir_operand(g, n, i) < n->out); // operands come first
        in[i] = map[ir_operand(g, n, i)];
    }
    return in;
}

void body_set_results(const struct ir_node *n, ir_id y, ir_id *map)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
}

void body_copy_rewritten(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map,
                         uint32_t (*rewrite)(struct ir_module *m, uint32_t f))
{
    struct ir_module *m = b->module;
    uint32_t *made = body_rewrite_all(m, n, rewrite);
    ir_id *in = body_operands(m, g, n, map);
    b->where = n->where;
    ir_id y =
        ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, ir_with_functions(m, n->attrs, made));
    body_set_results(n, y, map);
}
