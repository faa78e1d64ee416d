// SPDX-License-Identifier: Apache-2.0
// A while that goes on as long as any lane does, whose lanes keep what they have once they have ended, as a
// while of each lane: what exporters make of a mapped while.
//
//     while any(p(c)) { c = select(p(c), f(c), c) }      becomes      while p(c) { c = f(c) }, batched
//
// Only where no op mixes the lanes: a back end may then run each to its own end.  After all differentiation.
#include "ir/control.h"
#include "passes/analysis/lanes.h"
#include "passes/body.h"

// Whether value x of f is value y of g, as far as same says by value of f so far: both have the same
// parameters.
static bool is_same(const struct ir_graph *f, ir_id x, const struct ir_graph *g, ir_id y,
                    ir_id *same)
{
    const struct ir_node *n = ir_node_of(f, x), *k = ir_node_of(g, y);
    if (same[x] != IR_NONE)
        return same[x] == y;
    bool is = n->op == k->op && n->attrs == k->attrs && n->n_in == k->n_in &&
              x - n->out == y - k->out && ir_type_equal(ir_type_of(f, x), ir_type_of(g, y)) &&
              (n->op != IR_param || x == y);
    for (uint32_t i = 0; is && i < n->n_in; i++)
        is = is_same(f, ir_operand(f, n, i), g, ir_operand(g, k, i), same);
    same[x] = is ? y : same[x];
    return is;
}

// What the test asks of any lane, or IR_NONE.
static ir_id asked_of_any(const struct ir_graph *test)
{
    const struct ir_node *n = ir_node_of(test, test->outputs.at[0]);
    return n->op == IR_reduce_or && ir_rank_of(test, n->out) == 0 ? ir_operand(test, n, 0)
                                                                  : IR_NONE;
}

// The condition, bool[lanes], that a select of arrays with leading lanes is by.
static ir_id condition_of(const struct ir_graph *g, const struct ir_node *n, int lanes)
{
    ir_id p = ir_operand(g, n, 0);
    const struct ir_node *k = ir_node_of(g, p);
    int count = 0;
    const int64_t *axes =
        k->op == IR_broadcast_in_dim ? ir_attr_ints(k->attrs, IR_KEY_axes, &count) : NULL;
    for (int i = 0; i < count; i++)
        if (axes[i] != i)
            return IR_NONE;
    p = axes ? ir_operand(g, k, 0) : p;
    return ir_rank_of(g, p) == lanes ? p : IR_NONE;
}

// By carry what lanes that go on have next; false where others have it too, or do not keep what they have.
static bool find_next(const struct ir_while *w, const struct ir_graph *test,
                      const struct ir_graph *body, ir_id asked, ir_id *next)
{
    ir_id holds = IR_NONE;
    int lanes = ir_rank_of(test, asked);
    for (uint32_t k = 0; k < body->outputs.count; k++) {
        ir_id y = body->outputs.at[k], carry = (ir_id)w->n_consts + k;
        const struct ir_node *n = ir_node_of(body, y);
        next[k] = y;
        if (y == carry)
            continue;
        if (n->op != IR_select || ir_operand(body, n, 2) != carry)
            return false;
        ir_id p = condition_of(body, n, lanes);
        if (p == IR_NONE || (holds != IR_NONE && p != holds))
            return false;
        holds = p;
        next[k] = ir_operand(body, n, 1);
    }
    return holds != IR_NONE &&
           is_same(test, asked, body, holds, pass_no_values(test->module, test->values.count));
}

static uint32_t with_results(struct ir_module *m, const struct ir_graph *g, uint32_t n,
                             const ir_id *results)
{
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_values(&b, g, map);
    for (uint32_t i = 0; i < n; i++)
        ir_output(&b, map[results[i]]);
    return ir_finish_function(&b);
}

// Whether the lanes of the while over such operands are independent.
static bool is_by_lane(const struct ir_builder *outside, const struct ir_while *w, int n_in,
                       const ir_id *in)
{
    struct ir_builder b = ir_builder_make(outside->module, "lanes", IR_BUILD_PLAIN);
    ir_id *params = pass_no_values(b.module, (uint32_t)n_in);
    for (int i = 0; i < n_in; i++)
        params[i] = ir_param(&b, ir_type_in(outside, in[i]));
    ir_id y = ir_while(&b, w, n_in, params);
    return y != IR_NONE && lanes_lead(b.graph, ir_node_of(b.graph, y));
}

static bool set_lanes(const struct ir_builder *b, struct ir_while *w, int n_in, const ir_id *in)
{
    struct ir_module *m = b->module;
    const struct ir_graph *test = ir_function(m, w->test), *body = ir_function(m, w->body);
    ir_id asked = asked_of_any(test), *next = pass_no_values(m, body->outputs.count);
    if (w->batched || asked == IR_NONE || !find_next(w, test, body, asked, next))
        return false;
    struct ir_while by_lane = *w;
    by_lane.batched = ir_rank_of(test, asked);
    by_lane.test = with_results(m, test, 1, &asked);
    by_lane.body = with_results(m, body, body->outputs.count, next);
    if (!is_by_lane(b, &by_lane, n_in, in))
        return false;
    *w = by_lane;
    return true;
}

static void copy_by_lane(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map)
{
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    uint32_t *made = body_rewrite_all(b->module, n, pass_while_lanes);
    ir_id *in = body_operands(b->module, g, n, map), y;
    struct ir_while w = n->op == IR_while ? ir_while_of(n) : (struct ir_while){0};
    b->where = n->where;
    if (n->op == IR_while) {
        w.test = made[0];
        w.body = made[1];
    }
    if (n->op == IR_while && set_lanes(b, &w, (int)n->n_in, in))
        y = ir_while(b, &w, (int)n->n_in, in);
    else
        y = ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                     ir_with_functions(b->module, n->attrs, made));
    body_set_results(n, y, map);
}

uint32_t pass_while_lanes(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_WHILE_LANES, copy_by_lane);
}
