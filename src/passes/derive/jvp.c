// SPDX-License-Identifier: Apache-2.0
// Forward-mode differentiation.
//
//     f(x) { y = sin x; return y }
// becomes, with a tangent for x,
//     (x, dx) { y = sin x; c = cos x; dy = mul_z dx c; return y, dy }
//
// Needs nothing.  Tangents that are zero are no values, and neither are those that cancel (shift.c).  Equal values become one, and so do their
// tangents: transposed, what was written twice has one cotangent and not two.  Calls become calls of
// the transformed function.
#include "base/status.h"
#include "ir/collective.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

static void check_tangent(struct jvp *c, uint32_t i)
{
    if (c->dy[i] == IR_NONE || c->y[i] == IR_NONE)
        return;
    struct ir_type have = ir_type_in(c->b, c->dy[i]), want = ir_type_in(c->b, c->y[i]);
    if (!ir_type_equal(have, want))
        ir_fail(c->b, JOT_ERR_INTERNAL, "the tangent of %s is %s, not %s",
                ir_op_get(c->n.op)->name, ir_type_text(c->b->module, have),
                ir_type_text(c->b->module, want));
}

static void apply_rule(struct jvp_sweep *s, struct jvp *c)
{
    bool is_call = ir_has_bodies(c->n.op);
    if (!is_call && !s->in_place) {
        ir_id y = ir_rebuild(c->b, c->g, &c->n, c->x);
        for (uint32_t i = 0; i < c->n.n_out; i++)
            c->y[i] = y == IR_NONE ? IR_NONE : y + i;
    } else if (!is_call) {
        for (uint32_t i = 0; i < c->n.n_out; i++)
            c->y[i] = c->n.out + i;
    }
    c->b->where = c->n.where;
    if (c->b->status == JOT_OK)
        jvp_rules[c->n.op](c);
    for (uint32_t i = 0; i < c->n.n_out && c->b->status == JOT_OK; i++) {
        if (ir_op_class(c->n.op) == IR_CLASS_MAP && c->dy[i] != IR_NONE)
            c->dy[i] = rule_broadcast_to(c->b, c->dy[i], ir_type_in(c->b, c->y[i]));
        if (c->dy[i] != IR_NONE && c->y[i] != IR_NONE)
            c->dy[i] = ir_pvary(c->b, c->dy[i], ir_type_in(c->b, c->y[i]).varies);
        check_tangent(c, i);
    }
}

static void pass_jvp_sweep_node(struct jvp_sweep *s, uint32_t node)
{
    struct jvp c = {.b = s->b, .g = s->g, .n = s->g->nodes.at[node]};
    ir_id few[32], *room = few;
    if (2 * (c.n.n_in + c.n.n_out) > 32)
        room = arena_array(s->b->module->arena, ir_id, 2 * (c.n.n_in + c.n.n_out));
    c.x = room;
    c.dx = c.x + c.n.n_in;
    c.y = c.dx + c.n.n_in;
    c.dy = c.y + c.n.n_out;
    bool any = false, inexact = false;
    for (uint32_t i = 0; i < c.n.n_in; i++) {
        ir_id v = ir_operand(s->g, &c.n, i);
        c.x[i] = s->primal[v];
        c.dx[i] = s->tangent[v];
        any = any || c.dx[i] != IR_NONE;
    }
    for (uint32_t i = 0; i < c.n.n_out; i++) {
        inexact = inexact || pass_is_inexact(ir_type_of(s->g, c.n.out + i));
        c.y[i] = c.dy[i] = IR_NONE;
    }
    if (any && inexact)
        apply_rule(s, &c);
    else if (!s->in_place)
        pass_copy_node(s->b, s->g, &c.n, s->primal);
    for (uint32_t i = 0; i < c.n.n_out; i++) {
        if (any && inexact && !s->in_place)
            s->primal[c.n.out + i] = c.y[i];
        s->tangent[c.n.out + i] = c.dy[i];
    }
}

static jot_status check_mask(const struct ir_graph *g, const bool *nonzero_in)
{
    for (uint32_t i = 0; i < g->n_params; i++)
        if (nonzero_in[i] && !pass_is_inexact(ir_type_of(g, i)))
            return status_fail(
                JOT_ERR_DTYPE,
                "input %u is %s: only floats and complex numbers have derivatives", i,
                ir_type_text(g->module, ir_type_of(g, i)));
    return JOT_OK;
}

jot_status pass_jvp_graph(struct ir_module *m, const struct ir_graph *g, const bool *nonzero_in,
                          struct ir_graph **out_g, ir_id *primal, bool *out_nonzero)
{
    JOT_TRY(check_mask(g, nonzero_in));
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ZEROS | IR_BUILD_CSE);
    struct jvp_sweep s = {.b = &b, .g = g, .primal = primal};
    s.tangent = pass_no_values(m, g->values.count);
    bool *is_shift = arena_array(m->arena, bool, g->values.count + 1);
    pass_find_shifts(g, is_shift);
    pass_copy_params(&b, g, NULL, true, s.primal);
    pass_copy_params(&b, g, nonzero_in, true, s.tangent);
    for (uint32_t i = 0; i < g->nodes.count && b.status == JOT_OK; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        if (i >= g->n_params)
            pass_jvp_sweep_node(&s, i);
        for (ir_id v = n->out; v < n->out + n->n_out; v++)
            if (is_shift[v])
                s.tangent[v] = IR_NONE;
    }
    JOT_TRY(pass_builder_status(&b));
    pass_copy_outputs(&b, g, s.primal);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id t = s.tangent[g->outputs.at[i]];
        out_nonzero[i] = t != IR_NONE;
        if (t != IR_NONE)
            ir_output(&b, t);
    }
    JOT_TRY(pass_builder_status(&b));
    *out_g = ir_finish(&b);
    return JOT_OK;
}

struct jvp_result {
    uint32_t f;
    bool *nonzero;
};

jot_status pass_jvp(struct ir_module *m, uint32_t f, const bool *nonzero_in, uint32_t *out_f,
                    bool *out_nonzero)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_JVP, .f = f, .n = g->n_params, .mask = nonzero_in};
    const struct jvp_result *known = pass_memo_find(m, &key);
    if (!known) {
        struct jvp_result *r = arena_new(m->arena, struct jvp_result);
        r->nonzero = arena_array(m->arena, bool, g->outputs.count + 1);
        struct ir_graph *made;
        ir_id *primal = arena_array(m->arena, ir_id, g->values.count + 1);
        JOT_TRY(pass_jvp_graph(m, g, nonzero_in, &made, primal, r->nonzero));
        r->f = ir_function_add(m, ir_canonical(made));
        pass_memo_add(m, &key, r);
        known = r;
    }
    *out_f = known->f;
    if (out_nonzero && g->outputs.count)
        memcpy(out_nonzero, known->nonzero, sizeof(bool) * g->outputs.count);
    return JOT_OK;
}
