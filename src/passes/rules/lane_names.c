// SPDX-License-Identifier: Apache-2.0
// Checks and callbacks that run for one lane after the other, with the lane in their messages.
//
//     f(x) { check p }
// becomes
//     f(x, lane) { check p, lane {lane_axes=[0]} }
//
// The lane goes along into bodies, as a const of loops.  So does what stands for the axis_index of a named
// map whose lanes run one after the other.
#include "passes/rules/rules.h"

#include "ir/collective.h"
#include "ir/control.h"
#include "passes/body.h"

static const struct ir_host *host_of(const struct ir_module *m, const struct ir_node *n)
{
    return n->op == IR_callback ? &m->hosts.at[ir_attr_int(n->attrs, IR_KEY_host)] : NULL;
}

bool rule_is_told(const struct ir_module *m, const struct ir_node *n)
{
    const struct ir_host *h = host_of(m, n);
    return h && h->is_told;
}

static const struct ir_attrs *with_field(struct ir_module *m, const struct ir_attrs *a,
                                         struct ir_field field)
{
    struct ir_field fields[IR_KEY_COUNT];
    int count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->fields[i].key != field.key)
            fields[count++] = a->fields[i];
    fields[count++] = field;
    return ir_attrs_make(m, count, fields);
}

static const struct ir_attrs *with_more(struct ir_module *m, const struct ir_attrs *a,
                                        enum ir_key key, int64_t more)
{
    int64_t sum = ir_attr_int_or(a, key, 0) + more;
    return with_field(m, a, (struct ir_field){.key = key, .count = 1, .ints = &sum});
}

const struct ir_attrs *rule_with_counts(struct ir_module *m, const struct ir_attrs *a,
                                        uint32_t more)
{
    return with_more(m, a, IR_KEY_told, more);
}

const struct ir_attrs *rule_in_lanes(struct ir_module *m, const struct ir_attrs *a)
{
    int n;
    int64_t axes[IR_MAX_RANK];
    const int64_t *old = ir_attr_ints(a, IR_KEY_lane_axes, &n);
    for (int i = 0; i < n; i++)
        axes[i] = old[i] + 1;
    if (n)
        a = with_field(m, a, (struct ir_field)IR_INTS(lane_axes, n, axes));
    return with_more(m, a, IR_KEY_lanes, 1);
}

// The check or callback with the lane among its last operands, which are in the order of the axes
// they are.
static ir_id name_effect(struct ir_builder *b, const struct ir_node *n, ir_id *in, ir_id lane,
                         int axis)
{
    int n_lanes, at = 0;
    bool is_check = n->op == IR_check;
    const int64_t *old = ir_attr_ints(n->attrs, IR_KEY_lane_axes, &n_lanes);
    int64_t axes[IR_MAX_RANK + 1], lanes = ir_attr_int_or(n->attrs, IR_KEY_lanes, 0);
    int rank = (is_check ? ir_type_in(b, in[0]).rank : (int)lanes) + n_lanes;
    if (rank == IR_MAX_RANK || n_lanes == IR_CHECK_LANES)
        return ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, n->attrs);
    axis = axis < rank ? axis : rank;
    while (at < n_lanes && old[at] < axis)
        at++;
    for (int i = 0; i <= n_lanes; i++)
        axes[i] = i < at ? old[i] : i == at ? axis : old[i - 1] + 1;
    uint32_t index = n->n_in - (uint32_t)(n_lanes - at);
    memmove(in + index + 1, in + index, (n->n_in - index) * sizeof *in);
    in[index] = lane;
    const struct ir_attrs *attrs =
        with_field(b->module, n->attrs, (struct ir_field)IR_INTS(lane_axes, n_lanes + 1, axes));
    if (!is_check)
        attrs = rule_with_counts(b->module, attrs, 1);
    else if (lanes >= 0)
        attrs = with_more(b->module, attrs, IR_KEY_lanes, 1);
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in + 1, in, attrs);
}

// Which effects are named: those of the user, or the checks that nobody wrote.
static bool is_named(const struct ir_module *m, const struct ir_node *n, enum rule_named which)
{
    bool is_of_numbers =
        n->op == IR_check && ir_attr_int_or(n->attrs, IR_KEY_lanes, 0) == IR_LANES_UNKNOWN;
    if (which == RULE_NAMED_NUMBERS)
        return is_of_numbers;
    const struct ir_host *h = host_of(m, n);
    return n->op == IR_check ? !is_of_numbers : h && (h->is_told || h->names_lanes);
}

// The node over the operands in, which have room for one more; its first result.
ir_id rule_name_node(struct ir_builder *b, const struct ir_node *n, ir_id *in, ir_id lane,
                     int axis, enum rule_named which)
{
    struct ir_module *m = b->module;
    const int64_t *f;
    if (n->op == IR_check || n->op == IR_callback)
        return name_effect(b, n, in, lane, axis);
    if (n->op == IR_axis_index)
        return ir_convert(b, lane, JOT_I32);
    int count = ir_bodies_of(n, &f);
    uint32_t at = n->n_in, *made = arena_array(m->arena, uint32_t, count + 1);
    if (n->op == IR_scan)
        at = (uint32_t)ir_scan_of(n).n_consts;
    else if (n->op == IR_while)
        at = (uint32_t)ir_while_of(n).n_consts;
    for (int k = 0; k < count; k++)
        made[k] =
            rule_name_lane(m, (uint32_t)f[k], n->op == IR_cond ? at - 1 : at, axis, which);
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
        l.body = made[1];
        l.n_consts++;
        return ir_while(b, &l, (int)n->n_in + 1, in);
    }
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in + 1, in,
                    ir_with_functions(m, n->attrs, made));
}

static bool takes_lane(const struct ir_node *n)
{
    return n->op == IR_call || n->op == IR_checkpoint || n->op == IR_scan ||
           n->op == IR_while || n->op == IR_cond;
}

bool rule_can_name(const struct ir_graph *g, const struct ir_node *n, enum rule_named which)
{
    return ir_has_effect(g, n) && (is_named(g->module, n, which) || takes_lane(n));
}

// The same for that axis_index.
static bool asks(const struct ir_graph *g, const struct ir_node *n, int axis)
{
    bool any = n->op == IR_axis_index && ir_over_set(n->attrs) >> axis & 1;
    int count = takes_lane(n) ? ir_bodies_of(n, &(const int64_t *){0}) : 0;
    for (int k = 0; k < count; k++)
        any |= rule_asks_for_lane(ir_body(g, n, k), axis);
    return any;
}

static uint32_t build(struct ir_module *m, uint32_t f, uint32_t at, int axis,
                      enum rule_named which)
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
        if (which == RULE_NAMED_AXIS ? !asks(g, n, axis) : !rule_can_name(g, n, which)) {
            pass_copy_node(&b, g, n, map);
            continue;
        }
        b.where = n->where;
        ir_id *in = body_operands(m, g, n, map);
        body_set_results(n, rule_name_node(&b, n, in, lane, axis, which), map);
    }
    pass_copy_outputs(&b, g, map);
    return ir_finish_function(&b);
}

uint32_t rule_name_lane(struct ir_module *m, uint32_t f, uint32_t at, int axis,
                        enum rule_named which)
{
    int64_t number = ((int64_t)at * (IR_MAX_RANK + 1) + axis) * 3 + which;
    struct memo_key key = {.kind = MEMO_NAME_LANE, .f = f, .number = number};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    return pass_memo_add_function(m, &key, build(m, f, at, axis, which));
}
