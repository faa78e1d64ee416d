// SPDX-License-Identifier: Apache-2.0
// Cotangents through linear nodes, from the results back.
//
//     linear(c, dx) { dy = mul_z dx c; return dy }
// becomes
//     (c, ct) { ct_dx = mul_z ct c; return ct_dx }
//
// Needs a closed graph with distinct parameters, each node linear in the linear parameters or not
// reading them (unzip).  What is not linear is computed where a linear node reads it.
#include "base/status.h"
#include "ir/collective.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

static bool keeps_effect(const struct transpose_sweep *s, const struct ir_node *n)
{
    return s->keeps_effects && !pass_is_marked(s->linear, n) && ir_has_effect(s->g, n);
}

// Marks linear nodes with a cotangent to come in `live` and values to be built in s->needed.
static bool *find_live(struct transpose_sweep *s)
{
    const struct ir_graph *g = s->g;
    bool *live = arena_array(g->module->arena, bool, g->values.count + 1);
    for (ir_id v = 0; v < g->values.count; v++)
        live[v] = s->cotangent[v] != IR_NONE;
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool linear = pass_is_marked(s->linear, n), wanted = false;
        for (uint32_t i = 0; i < n->n_out; i++) {
            ir_id v = n->out + i;
            wanted = wanted || (linear ? live[v] : s->needed[v] && s->value[v] == IR_NONE);
        }
        wanted = wanted || keeps_effect(s, n);
        for (uint32_t i = 0; wanted && i < n->n_in; i++) {
            ir_id v = ir_operand(g, n, i);
            if (s->linear[v])
                live[v] = true;
            else
                s->needed[v] = true;
        }
    }
    return live;
}

static void build_needed(struct transpose_sweep *s)
{
    ir_for_each_node (s->g, n) {
        bool wanted = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            wanted = wanted || (s->needed[n->out + i] && s->value[n->out + i] == IR_NONE);
        wanted = wanted || keeps_effect(s, n);
        if (!wanted || n->op == IR_param || s->b->status != JOT_OK)
            continue;
        // A node some of whose results are given already is built for the others.
        ir_id given[8], *keep = given;
        if (n->n_out > 8)
            keep = arena_array(s->g->module->arena, ir_id, n->n_out);
        memcpy(keep, s->value + n->out, sizeof *keep * n->n_out);
        pass_copy_node(s->b, s->g, n, s->value);
        for (uint32_t i = 0; i < n->n_out; i++)
            if (keep[i] != IR_NONE)
                s->value[n->out + i] = keep[i];
    }
}

static void pull_back(struct transpose_sweep *s, const struct ir_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->n_out; i++)
        any = any || s->cotangent[n->out + i] != IR_NONE;
    if (!any)
        return;
    ir_id few[8];
    struct transpose c = {.b = s->b,
                          .g = s->g,
                          .n = n,
                          .linear = s->linear,
                          .ct = s->cotangent + n->out,
                          .cotangent = s->cotangent,
                          .x = few};
    if (n->n_in > 8)
        c.x = arena_array(s->g->module->arena, ir_id, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id v = ir_operand(s->g, n, i);
        c.x[i] = s->linear[v] ? IR_NONE : s->value[v];
    }
    s->b->where = n->where;
    transpose_rules[n->op](&c);
    for (uint32_t i = 0; i < n->n_in && s->b->status == JOT_OK; i++) {
        ir_id v = ir_operand(s->g, n, i), ct = s->cotangent[v];
        if (s->linear[v] && ct != IR_NONE)
            s->cotangent[v] = ct = ir_pvary(s->b, ct, ir_type_of(s->g, v).varies);
        if (s->linear[v] && ct != IR_NONE &&
            !ir_type_equal(ir_type_in(s->b, ct), ir_type_of(s->g, v)))
            ir_fail(s->b, JOT_ERR_INTERNAL, "the cotangent of operand %u of %s is %s, not %s",
                    i, ir_op_get(n->op)->name, ir_type_text(s->g->module, ir_type_in(s->b, ct)),
                    ir_type_text(s->g->module, ir_type_of(s->g, v)));
    }
}

void pass_transpose_sweep(struct transpose_sweep *s)
{
    find_live(s);
    build_needed(s);
    for (uint32_t at = s->g->nodes.count; at-- > 0 && s->b->status == JOT_OK;) {
        const struct ir_node *n = &s->g->nodes.at[at];
        if (n->op != IR_param && pass_is_marked(s->linear, n))
            pull_back(s, n);
    }
}

struct transposed {
    uint32_t f;
    bool *nonzero; // by input
};

static jot_status build(struct ir_module *m, uint32_t f, const bool *linear_in,
                        const bool *ct_in, const bool *sum_in, bool instantiate,
                        struct transposed *out)
{
    const struct ir_graph *g = ir_function(m, f);
    struct unzipped u;
    JOT_TRY(pass_unzip(m, g, linear_in, NULL, &u));
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ZEROS);
    struct transpose_sweep s = {.b = &b, .g = u.g, .linear = u.linear};
    s.value = pass_no_values(m, u.g->values.count);
    s.cotangent = pass_no_values(m, u.g->values.count);
    s.needed = arena_array(m->arena, bool, u.g->values.count + 1);
    pass_copy_params(&b, g, linear_in, false, s.value);
    ir_id *ct = pass_no_values(m, g->outputs.count);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        if (ct_in[i])
            ct[i] = ir_param(&b, ir_type_of(g, g->outputs.at[i]));
    for (uint32_t i = 0; i < g->n_params; i++)
        if (sum_in && sum_in[i])
            s.cotangent[i] = ir_param(&b, ir_type_of(g, i));
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = u.g->outputs.at[i];
        if (u.linear[v])
            s.cotangent[v] = rule_sum(&b, s.cotangent[v], ct[i]);
    }
    pass_transpose_sweep(&s);
    JOT_TRY(pass_builder_status(&b));
    out->nonzero = arena_array(m->arena, bool, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        out->nonzero[i] = linear_in[i] && s.cotangent[i] != IR_NONE;
        if (out->nonzero[i])
            ir_output(&b, s.cotangent[i]);
        else if (linear_in[i] && instantiate)
            ir_output(&b, ir_zeros(&b, ir_type_of(g, i)));
    }
    return pass_finish(&b, &out->f);
}

static jot_status find_or_build(struct ir_module *m, uint32_t f, const bool *linear_in,
                                const bool *ct_in, const bool *sum_in, bool instantiate,
                                const struct transposed **out)
{
    const struct ir_graph *g = ir_function(m, f);
    uint32_t n_in = g->n_params, n_out = g->outputs.count, n = 2 * n_in + n_out;
    bool *mask = arena_array(m->arena, bool, n + 1);
    memcpy(mask, linear_in, n_in * sizeof *mask);
    memcpy(mask + n_in, ct_in, n_out * sizeof *mask);
    if (sum_in)
        memcpy(mask + n_in + n_out, sum_in, n_in * sizeof *mask);
    struct memo_key key = {
        .kind = MEMO_TRANSPOSE, .f = f, .number = instantiate, .n = n, .mask = mask};
    *out = pass_memo_find(m, &key);
    if (*out)
        return JOT_OK;
    struct transposed *t = arena_new(m->arena, struct transposed);
    JOT_TRY(build(m, f, linear_in, ct_in, sum_in, instantiate, t));
    pass_memo_add(m, &key, t);
    *out = t;
    return JOT_OK;
}

jot_status pass_transpose_function(struct ir_module *m, uint32_t f, const bool *linear_in,
                                   const bool *ct_in, const bool *sum_in, uint32_t *out_f,
                                   bool *out_nonzero)
{
    const struct transposed *t;
    JOT_TRY(find_or_build(m, f, linear_in, ct_in, sum_in, false, &t));
    *out_f = t->f;
    memcpy(out_nonzero, t->nonzero, sizeof(bool) * ir_function(m, f)->n_params);
    return JOT_OK;
}

jot_status pass_transpose(struct ir_module *m, uint32_t f, uint32_t n_residuals,
                          uint32_t *out_f)
{
    const struct ir_graph *g = ir_function(m, f);
    bool *linear_in = arena_array(m->arena, bool, g->n_params + 1);
    bool *ct_in = arena_array(m->arena, bool, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        linear_in[i] = i >= n_residuals;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ct_in[i] = pass_is_inexact(ir_type_of(g, g->outputs.at[i]));
    const struct transposed *t;
    JOT_TRY(find_or_build(m, f, linear_in, ct_in, NULL, true, &t));
    *out_f = t->f;
    return JOT_OK;
}
