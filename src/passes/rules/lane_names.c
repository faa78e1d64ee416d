// SPDX-License-Identifier: Apache-2.0
// Checks and callbacks that run for one lane after the other, with the lane in their messages.
//
//     f(x) { check p }
// becomes
//     f(x, lane) { check p, lane {lane_axes=[0]} }
//
// The lane goes along into bodies, as a const of loops.
#include "passes/rules/rules.h"

#include "ir/control.h"
#include "passes/body.h"

bool rule_is_told(const struct ir_module *m, const struct ir_node *n)
{
    return n->op == IR_callback && m->hosts.at[ir_attr_int(n->attrs, IR_KEY_host)].is_told;
}

const struct ir_attrs *rule_with_counts(struct ir_module *m, const struct ir_attrs *a,
                                        uint32_t more)
{
    struct ir_field fields[IR_KEY_COUNT];
    int count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->fields[i].key != IR_KEY_told)
            fields[count++] = a->fields[i];
    fields[count++] = (struct ir_field)IR_INT(told, ir_attr_int_or(a, IR_KEY_told, 0) + more);
    return ir_attrs_make(m, count, fields);
}

static const struct ir_attrs *with_axes(struct ir_module *m, const struct ir_attrs *a, int n,
                                        const int64_t *axes)
{
    struct ir_field fields[IR_KEY_COUNT];
    int count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->fields[i].key != IR_KEY_lane_axes)
            fields[count++] = a->fields[i];
    fields[count++] = (struct ir_field)IR_INTS(lane_axes, n, axes);
    return ir_attrs_make(m, count, fields);
}

const struct ir_attrs *rule_check_in_lanes(struct ir_module *m, const struct ir_attrs *a)
{
    int n;
    int64_t axes[IR_MAX_RANK];
    const int64_t *old = ir_attr_ints(a, IR_KEY_lane_axes, &n);
    for (int i = 0; i < n; i++)
        axes[i] = old[i] + 1;
    return n ? with_axes(m, a, n, axes) : a;
}

// The check or callback with the lane among its last operands, which are in the order of the axes they are.
static ir_id name_effect(struct ir_builder *b, const struct ir_node *n, ir_id *in, ir_id lane,
                         int axis)
{
    int n_lanes, at = 0;
    bool is_check = n->op == IR_check;
    const int64_t *old = ir_attr_ints(n->attrs, IR_KEY_lane_axes, &n_lanes);
    int64_t axes[IR_MAX_RANK + 1];
    int rank = (is_check ? ir_type_in(b, in[0]).rank : 0) + n_lanes;
    if (rank == IR_MAX_RANK || n_lanes == IR_CHECK_LANES)
        return ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, n->attrs);
    axis = axis < rank ? axis : rank;
    while (at < n_lanes && old[at] < axis)
        at++;
    for (int i = 0; i <= n_lanes; i++)
        axes[i] = i < at ? old[i] : i == at ? axis : old[i - 1] + 1;
    uint32_t place = n->n_in - (uint32_t)(n_lanes - at);
    memmove(in + place + 1, in + place, (n->n_in - place) * sizeof *in);
    in[place] = lane;
    const struct ir_attrs *attrs = with_axes(b->module, n->attrs, n_lanes + 1, axes);
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in + 1, in,
                    is_check ? attrs : rule_with_counts(b->module, attrs, 1));
}

// The node over the operands in, which have room for one more; its first result.
ir_id rule_name_node(struct ir_builder *b, const struct ir_node *n, ir_id *in, ir_id lane,
                     int axis)
{
    struct ir_module *m = b->module;
    const int64_t *f;
    if (n->op == IR_check || n->op == IR_callback)
        return name_effect(b, n, in, lane, axis);
    int count = ir_bodies_of(n, &f);
    uint32_t at = n->n_in, *made = arena_array(m->arena, uint32_t, count + 1);
    if (n->op == IR_scan)
        at = (uint32_t)ir_scan_of(n).n_consts;
    else if (n->op == IR_while)
        at = (uint32_t)ir_while_of(n).n_consts;
    for (int k = 0; k < count; k++)
        made[k] = rule_name_lane(m, (uint32_t)f[k], n->op == IR_cond ? at - 1 : at, axis);
    memmove(in + at + 1, in + at, (n->n_in - at) * sizeof *in);
    in[at] = lane;
    if (n->op == IR_scan) {
        struct ir_scan s = ir_scan_of(n);
        s.body = made[0];
        s.n_consts++;
        return ir_scan(b, &s, (int)n->n_in + 1, in);
    }
    if (n->op == IR_while) {
        struct ir_while l = ir_while_of(n);
        l.test = made[0];
        l.step = made[1];
        l.n_consts++;
        return ir_while(b, &l, (int)n->n_in + 1, in);
    }
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in + 1, in,
                    ir_with_functions(m, n->attrs, made));
}

bool rule_can_name(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_has_effect(g, n) && (n->op == IR_check || rule_is_told(g->module, n) ||
                                   n->op == IR_call || n->op == IR_checkpoint ||
                                   n->op == IR_scan || n->op == IR_while || n->op == IR_cond);
}

static uint32_t build(struct ir_module *m, uint32_t f, uint32_t at, int axis)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count), lane = IR_NONE;
    for (uint32_t i = 0; i <= g->n_params; i++) {
        if (i == at)
            lane = ir_param(&b, ir_type_make(m, JOT_I64, 0, NULL));
        if (i < g->n_params)
            map[i] = ir_param(&b, ir_type_of(g, i));
    }
    for (uint32_t i = g->n_params; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        if (!rule_can_name(g, n)) {
            pass_copy_node(&b, g, n, map);
            continue;
        }
        b.where = n->where;
        body_set_results(n, rule_name_node(&b, n, body_operands(m, g, n, map), lane, axis),
                         map);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[g->outputs.at[i]]);
    return ir_finish_function(&b);
}

uint32_t rule_name_lane(struct ir_module *m, uint32_t f, uint32_t at, int axis)
{
    struct memo_key key = {
        .kind = MEMO_NAME_LANE, .f = f, .number = (int64_t)at * (IR_MAX_RANK + 1) + axis};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    return pass_memo_add_function(m, &key, build(m, f, at, axis));
}
