// SPDX-License-Identifier: Apache-2.0
// Which groups want a value, and where: what a value is made of is wanted where the value is.
#include "schedule/group/group.h"

#include "ir/index_map.h"

void group_want(struct schedule *s, ir_id v, struct demand d)
{
    if (s->g->values.at[v].node < s->g->n_params && d.view.rank == 0 &&
        s->first_demand[v] != NONE && s->demands.at[s->first_demand[v]].group == d.group)
        return; // scalar parameters of large graphs
    d.next = s->first_demand[v];
    vec_push(s->scratch, &s->demands, d);
    s->first_demand[v] = s->demands.count - 1;
}

static bool is_new_demand(struct schedule *s, const demand_list *l, const struct demand *d)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i].group == d->group && l->at[i].outer == d->outer &&
            l->at[i].is_repeated == d->is_repeated &&
            axes_view_equal(&s->axes, l->at[i].view, d->view) &&
            axes_equal(&s->axes, l->at[i].context, d->context) &&
            axes_equal(&s->axes, l->at[i].stored, d->stored))
            return false;
    return true;
}

demand_list group_demands_on(struct schedule *s, ir_id v)
{
    demand_list l = {0};
    for (uint32_t i = s->first_demand[v]; i != NONE; i = s->demands.at[i].next) {
        struct demand d = s->demands.at[i];
        d.group = group_root(s, d.group);
        if (l.count > 2 * COST_DEMANDS || is_new_demand(s, &l, &d))
            vec_push(s->scratch, &l, d);
    }
    return l;
}

static struct atoms join_sets(struct schedule *s, struct atoms a, struct atoms b)
{
    return axes_concat(&s->axes, a, axes_minus(&s->axes, b, a));
}

// Whether it gives windows of its operand, which overlap, again and again: a broadcast is behind them.
static bool is_windowed(const struct schedule *s, const struct ir_node *n)
{
    if (!ir_index_has_windows(s->g, n))
        return false;
    while (ir_index_has_windows(s->g, n))
        n = ir_node_of(s->g, ir_operand(s->g, n, 0));
    return n->op == IR_broadcast_in_dim;
}

// Whether elements of the operand are wanted much more often than there are any: by a gather of
// more than the operand, in windows, and by the lanes outside of a small update.
static bool repeats_operand(const struct schedule *s, const struct ir_node *n, uint32_t i)
{
    ir_id x = ir_operand(s->g, n, i);
    return is_windowed(s, n) ||
           (n->op == IR_gather && i == 0 && value_count(s, n->out) > value_count(s, x)) ||
           (n->op == IR_dynamic_update_slice && i == 1 &&
            value_count(s, n->out) / 4 > value_count(s, x));
}

void group_pass_on(struct schedule *s, ir_id v, const struct demand *d)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    struct demand to = *d;
    if (value_count(s, v) == 0)
        return;
    if (node_is_index(n))
        to.depth++;
    else
        to.depth = 0;
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_HINT) {
        group_want(s, ir_operand(s->g, n, v - n->out), to);
        return;
    }
    if (!node_is_index(n))
        to.context = axes_of_view(&s->axes, d->view);
    for (uint32_t i = 0; i < n->n_in; i++) {
        to.view = axes_operand_view(&s->axes, n, i, d->view);
        to.is_repeated = d->is_repeated || repeats_operand(s, n, i);
        group_want(s, ir_operand(s->g, n, i), to);
    }
}

// Whether x is what a product is given in place of an operand that lies wrong (gemm.c).
static bool is_packed(const struct schedule *s, const struct ir_node *product, ir_id x)
{
    const struct ir_node *n = ir_node_of(s->g, x);
    return product->op == IR_dot_general && n->op == IR_barrier &&
           ir_node_of(s->g, ir_operand(s->g, n, 0))->op == IR_transpose;
}

void group_pass_on_fold(struct schedule *s, ir_id v, uint32_t group, struct view view)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct demand to = {.group = group, .outer = v};
        to.view = axes_folded_view(&s->axes, n, i, view, s->folded_of[v]);
        to.context = to.around = join_sets(s, axes_of_view(&s->axes, view), s->folded_of[v]);
        s->is_forced[ir_operand(s->g, n, i)] |= is_packed(s, n, ir_operand(s->g, n, i));
        group_want(s, ir_operand(s->g, n, i), to);
    }
}
