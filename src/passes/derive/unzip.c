// SPDX-License-Identifier: Apache-2.0
// Makes each node of a graph either linear in some inputs or independent of them.
//
//     g(x, dx) { y = sin x; c = cos x; dy = mul_z dx c; return y, dy }
//     f(x, dx) { y, dy = call g x dx; return y, dy }
// becomes
//     f(x, dx) { y, c = call forward x; dy = call linear c dx; return y, dy }
//
// Only nodes with bodies and barriers can be both; loops and branches are separated in the other
// files called unzip.  A checkpoint is separated into two checkpoints without residuals between
// them: the second computes again what it needs, without effects.
//
// Needs nothing.  Keeps the order of nodes.
#include "passes/derive/unzip.h"

#include "base/status.h"

static bool reads_linear(const struct unzip *u, const struct ir_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++)
        if (u->linear[ir_operand(u->g, n, i)])
            return true;
    return false;
}

// The operands of n that are linear or not, appended to out.
static int pick(const struct unzip *u, const struct ir_node *n, bool linear, ir_id *out)
{
    int count = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id v = ir_operand(u->g, n, i);
        if (u->linear[v] == linear)
            out[count++] = u->map[v];
    }
    return count;
}

ir_id *unzip_operands(const struct unzip *u, const struct ir_node *n)
{
    ir_id *x = pass_no_values(u->b->module, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        x[i] = u->map[ir_operand(u->g, n, i)];
    return x;
}

bool *unzip_linear_operands(const struct unzip *u, const struct ir_node *n)
{
    bool *mask = arena_array(u->b->module->arena, bool, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        mask[i] = u->linear[ir_operand(u->g, n, i)];
    return mask;
}

// Hands the results of two calls to those of n: linear_out says which call has a result.
static void set_results(struct unzip *u, const struct ir_node *n, const bool *linear_out,
                        ir_id known, ir_id linear)
{
    for (uint32_t i = 0; i < n->n_out; i++) {
        u->linear[n->out + i] = linear_out[i];
        u->map[n->out + i] = linear_out[i] ? linear++ : known++;
    }
}

// call f(x, dx) -> call forward(x), call linear(residuals, dx).  A checkpoint has no residuals but
// operands, unless what it does may not be done again.
static void split_call(struct unzip *u, const struct ir_node *n)
{
    struct ir_builder *b = u->b;
    struct ir_module *m = b->module;
    uint32_t f = (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[0];
    bool *mask = unzip_linear_operands(u, n);
    bool is_checkpoint = n->op == IR_checkpoint && pass_is_repeatable(m, f);
    enum ir_op op = is_checkpoint ? IR_checkpoint : IR_call;
    struct pass_split s;
    jot_status status = (is_checkpoint ? pass_split_replay : pass_split)(m, f, mask, &s);
    if (status != JOT_OK) {
        ir_fail(b, status, "%s", jot_error_message());
        return;
    }
    ir_id *in = arena_array(m->arena, ir_id, n->n_in + s.n_residuals + 1);
    b->where = n->where;
    ir_id known = IR_NONE, linear = IR_NONE;
    if (ir_function(m, s.forward)->outputs.count || ir_function(m, s.forward)->has_effects)
        known = ir_call(b, op, 1, &s.forward, pick(u, n, false, in), in);
    for (uint32_t i = 0; i < s.n_residuals; i++) {
        struct pass_residual r = s.residuals[i];
        in[i] = r.from == PASS_RESIDUAL_INPUT ? u->map[ir_operand(u->g, n, r.index)]
                                              : known + r.index;
    }
    int count = (int)s.n_residuals + pick(u, n, true, in + s.n_residuals);
    if (ir_function(m, s.linear)->outputs.count)
        linear = ir_call(b, op, 1, &s.linear, count, in);
    if (b->status == JOT_OK)
        set_results(u, n, s.linear_out, known, linear);
}

// Known and linear operands each get a barrier of their own.
static void split_barrier(struct unzip *u, const struct ir_node *n)
{
    struct ir_builder *b = u->b;
    ir_id *in = arena_array(b->module->arena, ir_id, n->n_in + 1);
    b->where = n->where;
    int count = pick(u, n, false, in);
    ir_id known = count ? ir_build(b, IR_barrier, count, in, NULL) : IR_NONE;
    count = pick(u, n, true, in);
    ir_id linear = ir_build(b, IR_barrier, count, in, NULL);
    if (b->status == JOT_OK)
        set_results(u, n, unzip_linear_operands(u, n), known, linear);
}

static void unzip_node(struct unzip *u, const struct ir_node *n)
{
    bool linear = reads_linear(u, n);
    if (linear && n->op == IR_barrier) {
        split_barrier(u, n);
    } else if (linear && n->op == IR_scan) {
        unzip_scan(u, n);
    } else if (linear && n->op == IR_while) {
        unzip_while(u, n);
    } else if (linear && n->op == IR_cond) {
        unzip_cond(u, n);
    } else if (linear && n->op == IR_shard_map) {
        unzip_shard_map(u, n);
    } else if (linear && ir_op_class(n->op) == IR_CLASS_CALL && n->op != IR_linear_call &&
               n->op != IR_linear_solve) {
        // Inside a derivative rule a custom rule is applied to a tangent: its function is linear.
        split_call(u, n);
    } else {
        pass_copy_node(u->b, u->g, n, u->map);
        for (uint32_t i = 0; i < n->n_out; i++)
            u->linear[n->out + i] = linear && pass_is_inexact(ir_type_of(u->g, n->out + i));
    }
}

jot_status pass_unzip(struct ir_module *m, const struct ir_graph *g, const bool *linear_in,
                      ir_id *map, struct unzipped *out)
{
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    struct unzip u = {.b = &b, .g = g, .map = map};
    if (!map)
        u.map = arena_array(m->arena, ir_id, g->values.count + 1);
    u.linear = arena_array(m->arena, bool, g->values.count + 1);
    pass_copy_params(&b, g, NULL, true, u.map);
    for (uint32_t i = 0; i < g->n_params; i++)
        u.linear[i] = linear_in[i];
    for (uint32_t i = g->n_params; i < g->nodes.count && b.status == JOT_OK; i++)
        unzip_node(&u, &g->nodes.at[i]);
    for (uint32_t i = 0; i < g->outputs.count && b.status == JOT_OK; i++)
        ir_output(&b, u.map[g->outputs.at[i]]);
    JOT_TRY(pass_builder_status(&b));
    out->g = ir_finish(&b);
    out->linear = arena_array(m->arena, bool, out->g->values.count + 1);
    for (uint32_t v = 0; v < g->values.count; v++)
        out->linear[u.map[v]] = u.linear[v];
    for (uint32_t i = 0; i < u.made.count; i++)
        out->linear[u.made.at[i]] = true;
    // The builder has put some before what varies.
    ir_for_each_node (out->g, n)
        if (n->op == IR_pvary)
            out->linear[n->out] = out->linear[ir_operand(out->g, n, 0)];
    return JOT_OK;
}
