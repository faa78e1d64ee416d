// SPDX-License-Identifier: Apache-2.0
// Puts the bodies of calls in their place, in the bodies of loops and branches too.
//
//     g(x) { y = sin x; return y }   f(x) { z = call g x; return z }
// becomes
//     f(x) { y = sin x; return y }
//
// Needs all differentiation done: what is left of a custom rule or a checkpoint is its function.
// Recomputation stays apart from what it repeats, because its operands come out of a barrier.
// A body goes in when it is small or called once, while the result stays within the bound.
#include "ir/control.h"
#include "passes/transform.h"

enum { SMALL = 64 };

struct inliner {
    struct ir_module *m;
    uint32_t max_nodes;
    uint32_t *uses;   // by function: calls of it
    uint32_t *result; // by function, IR_NONE before it is done
    uint32_t count;   // functions there were at the start
};

static uint32_t body_of(const struct ir_node *n)
{
    return (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[0];
}

static bool is_call(const struct ir_node *n) { return ir_op_class(n->op) == IR_CLASS_CALL; }

static bool is_control(const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL;
}

// Bodies are older than their callers, so one walk from the newest counts every call.
static void count_uses(struct inliner *s, uint32_t f)
{
    bool *reached = arena_array(s->m->arena, bool, s->count + 1);
    reached[f] = true;
    for (uint32_t at = f + 1; at-- > 0;) {
        if (!reached[at])
            continue;
        ir_for_each_node (ir_function(s->m, at), n) {
            if (is_call(n)) {
                s->uses[body_of(n)]++;
                reached[body_of(n)] = true;
            }
            const int64_t *bodies;
            int count = is_control(n) ? ir_bodies_of(n, &bodies) : 0;
            for (int i = 0; i < count; i++)
                reached[bodies[i]] = true;
        }
    }
}

static uint32_t inline_function(struct inliner *s, uint32_t f);

// A loop or a branch of inlined bodies.
static ir_id inline_bodies(struct inliner *s, struct ir_builder *b, const struct ir_node *n,
                           const ir_id *in)
{
    const int64_t *bodies;
    int count = ir_bodies_of(n, &bodies);
    uint32_t *made = arena_array(s->m->arena, uint32_t, count);
    for (int i = 0; i < count; i++)
        made[i] = inline_function(s, (uint32_t)bodies[i]);
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                    ir_with_functions(s->m, n->attrs, made));
}

static uint32_t inline_function(struct inliner *s, uint32_t f)
{
    if (s->result[f] != IR_NONE)
        return s->result[f];
    const struct ir_graph *g = ir_function(s->m, f);
    bool any = false;
    ir_for_each_node (g, n)
        any = any || ir_has_bodies((enum ir_op)n->op);
    if (!any)
        return s->result[f] = f;

    struct ir_builder b = ir_builder_make(s->m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(s->m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        if (!ir_has_bodies((enum ir_op)n->op)) {
            pass_copy_node(&b, g, n, map);
            continue;
        }
        ir_id *in = pass_no_values(s->m, n->n_in), y;
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = map[ir_operand(g, n, i)];
        b.where = n->where;
        if (is_control(n)) {
            y = inline_bodies(s, &b, n, in);
        } else {
            uint32_t callee = inline_function(s, body_of(n));
            const struct ir_graph *body = ir_function(s->m, callee);
            uint32_t size = body->nodes.count - body->n_params;
            bool fits = size <= s->max_nodes && b.graph->nodes.count <= s->max_nodes - size;
            if (fits && (size <= SMALL || s->uses[body_of(n)] == 1)) {
                ir_inline(&b, body, in, map + n->out);
                continue;
            }
            y = ir_call(&b, IR_call, 1, &callee, (int)n->n_in, in);
        }
        for (uint32_t i = 0; i < n->n_out; i++)
            map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
    }
    pass_copy_outputs(&b, g, map);
    return s->result[f] = ir_finish_function(&b);
}

uint32_t pass_inline(struct ir_module *m, uint32_t f, uint32_t max_nodes)
{
    struct inliner s = {.m = m, .max_nodes = max_nodes, .count = m->functions.count};
    s.uses = arena_array(m->arena, uint32_t, s.count + 1);
    s.result = pass_no_values(m, s.count);
    count_uses(&s, f);
    return inline_function(&s, f);
}
