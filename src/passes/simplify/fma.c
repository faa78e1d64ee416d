// SPDX-License-Identifier: Apache-2.0
// Forms fused multiply-adds.
//
//     t = mul a b;  y = add t c        becomes    y = fma a b c
//     t = mul a b;  y = sub t c        becomes    n = neg c;  y = fma a b n
//     t = mul a b;  y = sub c t        becomes    n = neg a;  y = fma n b c
//
// Needs the graph as it was traced, before any transform: there alone the choice does not depend
// on what a transform keeps.  The multiplication has one use.  In f32 and f64 only: half types
// round after every op.
#include "passes/transform.h"

struct form {
    struct ir_builder *b;
    const struct ir_graph *g;
    ir_id *map;
    uint32_t *uses; // by value of g
};

// Whether operand i of n is a multiplication that nothing else reads.
static bool is_product(const struct form *s, const struct ir_node *n, uint32_t i)
{
    ir_id v = ir_operand(s->g, n, i);
    return ir_node_of(s->g, v)->op == IR_mul && s->uses[v] == 1;
}

static void form_node(struct form *s, const struct ir_node *n)
{
    bool sub = n->op == IR_sub, is_sum = sub || n->op == IR_add;
    jot_dtype dtype = is_sum ? ir_dtype_of(s->g, n->out) : JOT_BOOL;
    int which = -1;
    if (dtype == JOT_F32 || dtype == JOT_F64)
        which = is_product(s, n, 0) ? 0 : is_product(s, n, 1) ? 1 : -1;
    if (which < 0) {
        pass_copy_node(s->b, s->g, n, s->map);
        return;
    }
    const struct ir_node *product = ir_node_of(s->g, ir_operand(s->g, n, (uint32_t)which));
    ir_id x = s->map[ir_operand(s->g, product, 0)], y = s->map[ir_operand(s->g, product, 1)];
    ir_id z = s->map[ir_operand(s->g, n, 1 - (uint32_t)which)];
    s->b->where = ir_where_merge(s->b->module, n->where, product->where);
    if (sub && which == 0)
        z = ir_neg(s->b, z);
    else if (sub)
        x = ir_neg(s->b, x);
    s->map[n->out] = ir_fma(s->b, x, y, z);
}

uint32_t pass_form_fma(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    struct form s = {.b = &b,
                     .g = g,
                     .map = pass_no_values(m, g->values.count),
                     .uses = pass_count_uses(m, g)};
    pass_copy_params(&b, g, NULL, true, s.map);
    for (uint32_t i = g->n_params; i < g->nodes.count; i++)
        form_node(&s, &g->nodes.at[i]);
    pass_copy_outputs(&b, g, s.map);
    return ir_finish_function(&b);
}
