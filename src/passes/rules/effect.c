// SPDX-License-Identifier: Apache-2.0
// Effects over a mapped axis.  What has lanes of its own to check or print does it for all of
// them at once, in order.  Checks in a branch that lanes take by themselves come after it, true
// for lanes that do not take it.  Other branches and loops with effects run lane by lane, so
// that what a lane does not do has no effect.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

#define B c->b

// Lanes lead in what must hold, so the index of the message names them.  Trips that differ from
// lane to lane are left out.
void batch_check(struct batch *c)
{
    uint32_t n = 1;
    for (uint32_t i = 1; i < c->n->n_in; i++)
        if (!c->batched[i])
            c->x[n++] = c->x[i];
    ir_build(B, IR_check, (int)n, c->x,
             c->batched[0] ? rule_in_lanes(B->module, c->n->attrs) : c->n->attrs);
}

// Whether the node asks for the number of the lane in the named map that there is.
static bool asks_for_lane(const struct batch *c)
{
    bool asks = false;
    int count =
        ir_has_bodies((enum ir_op)c->n->op) ? ir_bodies_of(c->n, &(const int64_t *){0}) : 0;
    for (int k = 0; c->axis >= 0 && k < count; k++)
        asks |= rule_asks_for_lane(ir_body(c->g, c->n, k), c->axis);
    return asks;
}

// The node on one lane: operands without the axis first, the number of the lane last where it is
// asked for, and where it is told.
static jot_status lane_body(struct batch *c, uint32_t *out_f)
{
    struct ir_module *m = B->module;
    struct ir_builder b = ir_builder_make(m, c->g->name, IR_BUILD_PLAIN);
    ir_id *x = pass_no_values(m, c->n->n_in + 1), y;
    for (int lanes = 0; lanes < 2; lanes++)
        for (uint32_t i = 0; i < c->n->n_in; i++)
            if (c->batched[i] == (lanes == 1))
                x[i] = ir_param(&b, batch_type(c, i));
    b.where = c->n->where;
    if (asks_for_lane(c))
        y = rule_name_node(&b, c->n, x, ir_param(&b, ir_type_make(m, JOT_I64, 0, NULL)),
                           c->axis, RULE_NAMED_AXIS);
    else
        y = ir_build(&b, (enum ir_op)c->n->op, (int)c->n->n_in, x, c->n->attrs);
    for (uint32_t i = 0; i < c->n->n_out && y != IR_NONE; i++)
        ir_output(&b, y + i);
    JOT_TRY(pass_finish(&b, out_f));
    if (c->axis >= 0) {
        if (rule_asks_for_lane(ir_function(m, *out_f), c->axis)) {
            rule_refuse(B,
                        "axis_index over %s in a rule in a body with effects that lanes run by "
                        "themselves: take it outside of the body",
                        m->axes.at[c->axis].name);
            return pass_builder_status(B);
        }
        *out_f = rule_unname(m, *out_f, c->axis);
    }
    if (rule_can_name(c->g, c->n, RULE_NAMED_EFFECTS))
        *out_f =
            rule_name_lane(m, *out_f, ir_function(m, *out_f)->n_params, 0, RULE_NAMED_EFFECTS);
    return JOT_OK;
}

void batch_by_lanes(struct batch *c)
{
    uint32_t n_in = c->n->n_in;
    struct ir_scan s = {.length = c->size, .lanes = 1};
    jot_status status = lane_body(c, &s.body);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *x = pass_no_values(B->module, n_in + 2);
    s.n_consts = body_pick(c->batched, false, 0, n_in, c->x, x);
    body_pick(c->batched, true, 0, n_in, c->x, x + s.n_consts);
    bool is_told = rule_can_name(c->g, c->n, RULE_NAMED_EFFECTS);
    for (int i = asks_for_lane(c) + is_told; i > 0; i--)
        x[n_in++] = ir_iota(B, ir_type_make(B->module, JOT_I64, 1, &c->size), 0);
    ir_id y = ir_scan(B, &s, (int)n_in, x);
    for (uint32_t i = 0; i < c->n->n_out && y != IR_NONE; i++)
        c->y[i] = y + i;
}

// -- Checks in branches -----------------------------------------------------------------------

// Whether all that f does are checks of its own, outside of loops.
static bool has_plain_checks(const struct ir_graph *f)
{
    ir_for_each_node (f, n)
        if (ir_has_effect(f, n) && (n->op != IR_check || n->n_in != 1))
            return false;
    return true;
}

// f without its checks, whose operands follow its results: true for those of other branches.
// checks are those of all branches, each a node of `of`.
static uint32_t branch_with_flags(struct ir_module *m, const struct ir_graph *f,
                                  const struct ir_graph *const *of,
                                  const struct ir_node *const *checks, uint32_t count)
{
    struct ir_builder b = ir_builder_make(m, f->name, IR_BUILD_PLAIN);
    const ir_id *map = body_copy_all(&b, f, pass_copy_stripped);
    for (uint32_t i = 0; i < count; i++) {
        ir_id holds = ir_operand(of[i], checks[i], 0);
        ir_output(&b, of[i] == f ? map[holds] : ir_full(&b, ir_type_of(of[i], holds), 1));
    }
    return ir_finish_function(&b);
}

// A cond and then the checks of its branches, as a function of its operands; IR_NONE when
// branches do something else.
static uint32_t checks_behind(struct batch *c)
{
    struct ir_module *m = B->module;
    const int64_t *branches;
    int n = ir_bodies_of(c->n, &branches);
    uint32_t count = 0, most = 0;
    for (int k = 0; k < n; k++)
        most += ir_body(c->g, c->n, k)->nodes.count;
    const struct ir_graph **of = arena_array(m->arena, const struct ir_graph *, most + 1);
    const struct ir_node **checks = arena_array(m->arena, const struct ir_node *, most + 1);
    for (int k = 0; k < n; k++) {
        const struct ir_graph *f = ir_body(c->g, c->n, k);
        if (!has_plain_checks(f))
            return IR_NONE;
        for (int before = 0; before < k; before++)
            if (ir_body(c->g, c->n, before) == f)
                return IR_NONE;
        ir_for_each_node (f, node)
            if (node->op == IR_check) {
                of[count] = f;
                checks[count++] = node;
            }
    }
    uint32_t *made = arena_array(m->arena, uint32_t, n + 1);
    for (int k = 0; k < n; k++)
        made[k] = branch_with_flags(m, ir_body(c->g, c->n, k), of, checks, count);
    struct ir_builder b = ir_builder_make(m, c->g->name, IR_BUILD_PLAIN);
    ir_id *x = pass_no_values(m, c->n->n_in);
    for (uint32_t i = 0; i < c->n->n_in; i++)
        x[i] = ir_param(&b, batch_type(c, i));
    b.where = c->n->where;
    ir_id y = ir_cond(&b, n, made, (int)c->n->n_in, x);
    for (uint32_t i = 0; i < count && y != IR_NONE; i++) {
        ir_id holds = y + c->n->n_out + i;
        b.where = checks[i]->where;
        ir_build(&b, IR_check, 1, &holds, checks[i]->attrs);
    }
    for (uint32_t i = 0; i < c->n->n_out && y != IR_NONE; i++)
        ir_output(&b, y + i);
    return ir_finish_function(&b);
}

bool batch_checks_behind(struct batch *c)
{
    uint32_t f = checks_behind(c);
    if (f == IR_NONE)
        return false;
    jot_status status = batch_function(c, f, c->batched, &f, c->y_batched);
    if (status != JOT_OK)
        rule_fail_nested(B, status);
    else
        ir_inline(B, ir_function(B->module, f), c->x, c->y);
    return true;
}

void jvp_callback(struct jvp *c)
{
    const struct ir_host *h = &B->module->hosts.at[ir_attr_int(c->n.attrs, IR_KEY_host)];
    bool is_named = strcmp(h->name, IR_HOST_UNNAMED) != 0;
    ir_fail(B, JOT_ERR_ARGUMENT,
            "the callback%s%s has no derivative: give it one by jot_custom_vjp or "
            "jot_custom_jvp, or take jot_stop_gradient of its arguments",
            is_named ? " " : " of ", is_named ? h->name : h->where);
}

static void copy_hidden(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        ir_id *map)
{
    struct ir_module *m = b->module;
    if (!ir_has_effect(g, n)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    ir_id *in = body_operands(m, g, n, map);
    const struct ir_attrs *attrs = n->attrs;
    for (uint32_t i = 0; i < n->n_in && n->op == IR_callback; i++)
        in[i] = ir_stop_gradient(b, in[i]);
    if (ir_has_bodies((enum ir_op)n->op))
        attrs = ir_with_functions(m, attrs, body_rewrite_all(m, n, rule_hide_callbacks));
    b->where = n->where;
    body_set_results(n, ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, attrs), map);
}

uint32_t rule_hide_callbacks(struct ir_module *m, uint32_t f)
{
    return ir_function(m, f)->has_effects ? body_rewrite(m, f, MEMO_HIDE_CALLBACKS, copy_hidden)
                                          : f;
}

// All lanes in one call: every operand and result has the axis.
static void batch_whole(struct batch *c, const struct ir_host *h)
{
    struct ir_module *m = B->module;
    uint32_t n_in = c->n->n_in, n_out = c->n->n_out;
    ir_id *x = pass_no_values(m, n_in);
    struct ir_type *types = arena_array(m->arena, struct ir_type, n_out + 1);
    uint32_t n_told = (uint32_t)ir_attr_int_or(c->n->attrs, IR_KEY_told, 0);
    n_in -= n_told;
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = batch_materialise(c, i);
    if (h->names_lanes && n_told && n_out == 0) {
        memcpy(x + n_in, c->x + n_in, n_told * sizeof *x);
        ir_build(B, IR_callback, (int)c->n->n_in, x, rule_in_lanes(m, c->n->attrs));
        return;
    }
    // All lanes are one call, which can tell of no single one: without the operands that do.
    for (uint32_t i = 0; i < n_out; i++)
        types[i] = ir_type_stack(m, ir_type_of(c->g, c->n->out + i), c->size);
    ir_id y = ir_callback(B, (uint32_t)ir_attr_int(c->n->attrs, IR_KEY_host),
                          (int)ir_attr_int(c->n->attrs, IR_KEY_lanes) + 1, (int)n_in, x,
                          (int)n_out, types);
    for (uint32_t i = 0; i < n_out && y != IR_NONE; i++)
        c->y[i] = y + i;
}

void batch_callback(struct batch *c)
{
    const struct ir_host *h = &B->module->hosts.at[ir_attr_int(c->n->attrs, IR_KEY_host)];
    if (h->maps_batch)
        batch_whole(c, h);
    else
        batch_by_lanes(c);
}
