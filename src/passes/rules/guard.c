// SPDX-License-Identifier: Apache-2.0
// Products in derivative rules of the user as those in jot's own.
//
//     rule(x, dx) { s = log x; t = mul dx s; return t }
// becomes
//     rule(x, dx) { s = log x; t = mul_z dx s; return t }
#include "passes/rules/rules.h"

#include "passes/transform.h"

bool *rule_depends_on(const struct ir_graph *f, uint32_t first)
{
    bool *depends = arena_array(f->module->arena, bool, f->values.count + 1);
    ir_for_each_node (f, n) {
        bool any = n->op == IR_param && n->out >= first;
        for (uint32_t i = 0; i < n->n_in; i++)
            any = any || depends[ir_operand(f, n, i)];
        for (uint32_t i = 0; i < n->n_out; i++)
            depends[n->out + i] = any;
    }
    return depends;
}

// Adds what is zero for a tangent that there is none of.
static void add_zeros(const struct ir_graph *g, bool *of)
{
    ir_for_each_node (g, n) {
        bool passes =
            n->op == IR_convert || n->op == IR_broadcast_in_dim || n->op == IR_reshape;
        if (n->n_out == 1 && (ir_is_zero(g, n->out) || (passes && of[ir_operand(g, n, 0)])))
            of[n->out] = true;
    }
}

// A product or quotient of one of the values and another, or IR_NONE.
static ir_id guarded(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                     const bool *of, const ir_id *map)
{
    bool divides = n->op == IR_div;
    if ((n->op != IR_mul && n->op != IR_fma && !divides) ||
        !pass_is_inexact(ir_type_of(g, n->out)))
        return IR_NONE;
    ir_id x = ir_operand(g, n, 0), y = ir_operand(g, n, 1);
    b->where = n->where;
    if (of[x] == of[y] || (divides && of[y]))
        return IR_NONE;
    if (divides)
        return rule_quotient(b, map[x], map[y]);
    ir_id product = of[x] ? ir_mul_z(b, map[x], map[y]) : ir_mul_z(b, map[y], map[x]);
    return n->op == IR_mul ? product : ir_add(b, product, map[ir_operand(g, n, 2)]);
}

uint32_t rule_guarded(struct ir_module *m, uint32_t f, uint32_t first)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_GUARDED, .f = f, .number = first};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    bool *of = rule_depends_on(g, first);
    add_zeros(g, of);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id y = guarded(&b, g, n, of, map);
        if (y == IR_NONE)
            pass_copy_node(&b, g, n, map);
        else
            map[n->out] = y;
    }
    pass_copy_outputs(&b, g, map);
    uint32_t made = ir_finish_function(&b);
    return pass_memo_add_function(m, &key, made == IR_NONE ? f : made);
}
