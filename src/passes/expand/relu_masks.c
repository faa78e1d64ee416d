// SPDX-License-Identifier: Apache-2.0
// Where the gradient of an activation looks at what a product of the library takes anyway.
//
//     p = le z 0;  h = select p 0 z              p = le z 0;  h = select p 0 z
//     q = gt z 0;  ... dot h w        becomes    ... dot h w
//     select q g 0                               select (gt h 0) g 0
//
// and p likewise; or h = max z 0, as JAX has it.  h is above 0 where z is, and not where z is NaN.  z is then wanted by h
// alone, and the product that makes z may make h instead (epilogue.c).  After all
// differentiation.
#include "passes/transform.h"

struct masks {
    const struct ir_graph *g;
    ir_id *map;
    ir_id *relu_of; // by value z: h, or IR_NONE
    ir_id *above;   // by value z: q, or IR_NONE
};

// Whether a product takes v as it is in memory.
static void find_factors(const struct ir_graph *g, bool *is_factor)
{
    ir_for_each_node (g, n)
        for (uint32_t i = 0; n->op == IR_dot_general && i < 2; i++) {
            ir_id v = ir_operand(g, n, i);
            while (ir_node_of(g, v)->op == IR_transpose || ir_node_of(g, v)->op == IR_reshape)
                v = ir_operand(g, ir_node_of(g, v), 0);
            is_factor[v] = true;
        }
}

static bool compares_to_zero(const struct ir_graph *g, const struct ir_node *n, enum ir_op op)
{
    return n->op == op && ir_is_zero(g, ir_operand(g, n, 1));
}

// z of max z 0, or IR_NONE.
static ir_id rectified(const struct ir_graph *g, const struct ir_node *n, ir_id *out_zero)
{
    for (uint32_t i = 0; n->op == IR_max && i < 2; i++) {
        *out_zero = ir_operand(g, n, 1 - i);
        if (ir_is_zero(g, *out_zero))
            return ir_operand(g, n, i);
    }
    return IR_NONE;
}

// z of a rectifier, or IR_NONE.
static ir_id relu_of(const struct ir_graph *g, const struct ir_node *n, ir_id *out_zero)
{
    if (n->op != IR_select)
        return rectified(g, n, out_zero);
    ir_id z = ir_operand(g, n, 2);
    const struct ir_node *test = ir_node_of(g, ir_operand(g, n, 0));
    if (!compares_to_zero(g, test, IR_le) || ir_operand(g, test, 0) != z ||
        !ir_is_zero(g, ir_operand(g, n, 1)))
        return IR_NONE;
    *out_zero = ir_operand(g, test, 1);
    return z;
}

static bool find_relus(struct masks *s, struct arena *arena)
{
    const struct ir_graph *g = s->g;
    bool *is_factor = arena_array(arena, bool, g->values.count + 1), found = false;
    find_factors(g, is_factor);
    ir_for_each_node (g, n)
        if (compares_to_zero(g, n, IR_gt))
            s->above[ir_operand(g, n, 0)] = n->out;
    ir_for_each_node (g, n) {
        ir_id zero, z = is_factor[n->out] ? relu_of(g, n, &zero) : IR_NONE;
        if (z != IR_NONE)
            s->relu_of[z] = n->out;
        found |= z != IR_NONE;
    }
    return found;
}

// A test of z that stands behind h, as one of h.
static bool is_tested_behind(struct masks *s, struct ir_builder *b, const struct ir_node *n)
{
    if (!compares_to_zero(s->g, n, IR_gt))
        return false;
    ir_id h = s->relu_of[ir_operand(s->g, n, 0)];
    if (h == IR_NONE || s->map[h] == IR_NONE)
        return false;
    s->map[n->out] = ir_gt(b, s->map[h], s->map[ir_operand(s->g, n, 1)]);
    return true;
}

static void copy_node(struct masks *s, struct ir_builder *b, const struct ir_node *n)
{
    const struct ir_graph *g = s->g;
    if (is_tested_behind(s, b, n))
        return;
    pass_copy_node(b, g, n, s->map);
    ir_id zero, z = relu_of(g, n, &zero), h = s->map[n->out];
    if (z == IR_NONE || s->relu_of[z] != n->out)
        return;
    // From here on what reads a test of z reads one of h.
    if (n->op == IR_select)
        s->map[ir_operand(g, n, 0)] = ir_le(b, h, s->map[zero]);
    if (s->above[z] != IR_NONE)
        s->map[s->above[z]] = ir_gt(b, h, s->map[zero]);
}

uint32_t pass_relu_masks(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct masks s = {.g = g,
                      .map = pass_no_values(m, g->values.count),
                      .relu_of = pass_no_values(m, g->values.count),
                      .above = pass_no_values(m, g->values.count)};
    if (!find_relus(&s, m->arena))
        return f;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    pass_copy_params(&b, g, NULL, true, s.map);
    for (uint32_t i = g->n_params; i < g->nodes.count; i++)
        copy_node(&s, &b, &g->nodes.at[i]);
    pass_copy_outputs(&b, g, s.map);
    uint32_t changed = ir_finish_function(&b);
    return changed == IR_NONE ? f : pass_simplify(m, changed);
}
