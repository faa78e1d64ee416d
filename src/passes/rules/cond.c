// SPDX-License-Identifier: Apache-2.0
// Rules of cond.  A result has a tangent, a cotangent or the mapped axis when it has in one branch;
// the others give zeros, or repeat what they give.
//
// With a mapped index each lane takes its branch: the cond is the body of a scan over the lanes,
// which are those of a kernel (write/control.c).  Cheap branches are all computed, and each lane
// selects.  A lane's operands are hidden from the derivatives of branches that it does not take,
// so that what is not finite there does not spoil its gradients.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "ir/control.h"
#include "ir/cost.h"
#include "passes/body.h"

#define B c->b

static uint32_t *new_branches(struct ir_builder *b, int n)
{
    return arena_array(b->module->arena, uint32_t, n + 1);
}

// -- Forward mode -----------------------------------------------------------------------------

// A branch with tangents, those of the mask: own says which there are.
static jot_status jvp_branch(struct ir_module *m, const struct ir_graph *branch, uint32_t jvp,
                             const bool *own, const bool *mask, uint32_t *out_f)
{
    struct body w = body_of(m, jvp);
    uint32_t n = branch->outputs.count, next = n;
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < n; i++)
        body_give(&w, i);
    for (uint32_t i = 0; i < n; i++) {
        if (mask[i])
            body_give_or_zeros(&w, own[i], next, body_result(branch, i));
        next += own[i];
    }
    return pass_finish(&w.b, out_f);
}

static jot_status jvp_branches(struct jvp *c, int n, const int64_t *from, const bool *in,
                               bool *out, uint32_t *to)
{
    struct ir_module *m = B->module;
    uint32_t n_out = c->n.n_out;
    bool *own = body_mask(m, (uint32_t)n * n_out);
    for (int k = 0; k < n; k++) {
        JOT_TRY(pass_jvp(m, (uint32_t)from[k], in, &to[k], own + (uint32_t)k * n_out));
        body_add_mask(out, own + (uint32_t)k * n_out, n_out);
    }
    for (int k = 0; k < n; k++)
        JOT_TRY(jvp_branch(m, ir_function(m, (uint32_t)from[k]), to[k],
                           own + (uint32_t)k * n_out, out, &to[k]));
    return JOT_OK;
}

void jvp_cond(struct jvp *c)
{
    const int64_t *from;
    int n = ir_bodies_of(&c->n, &from);
    uint32_t *to = new_branches(B, n), n_in = c->n.n_in, n_out = c->n.n_out;
    bool *in = body_mask(B->module, n_in), *out = body_mask(B->module, n_out);
    for (uint32_t i = 1; i < n_in; i++)
        in[i - 1] = c->dx[i] != IR_NONE;
    jot_status status = jvp_branches(c, n, from, in, out, to);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *x = pass_no_values(B->module, 2 * n_in);
    memcpy(x, c->x, n_in * sizeof *x);
    int count = (int)n_in + body_pick(in, true, 0, n_in - 1, c->dx + 1, x + n_in);
    ir_id y = ir_cond(B, n, to, count, x);
    for (uint32_t i = 0; i < n_out && y != IR_NONE; i++)
        c->y[i] = y++;
    for (uint32_t i = 0; i < n_out && y != IR_NONE; i++)
        c->dy[i] = out[i] ? y++ : IR_NONE;
}

// -- Reverse mode -----------------------------------------------------------------------------

static jot_status transpose_branches(struct transpose *c, int n, const int64_t *from,
                                     const bool *linear, const bool *ct, bool *nonzero,
                                     bool *handed, uint32_t *to)
{
    struct ir_module *m = B->module;
    uint32_t n_in = c->n->n_in - 1;
    bool *own = body_mask(m, (uint32_t)n * n_in);
    for (int k = 0; k < n; k++) {
        bool *mine = own + (uint32_t)k * n_in;
        JOT_TRY(pass_transpose_function(m, (uint32_t)from[k], linear, ct, NULL, &to[k], mine));
        body_add_mask(nonzero, mine, n_in);
    }
    for (uint32_t i = 0; i < n_in; i++)
        handed[i] = nonzero[i] && transpose_has_sum(c, i + 1);
    for (int k = 0; k < n; k++)
        JOT_TRY(pass_transpose_function(m, (uint32_t)from[k], linear, ct, handed, &to[k],
                                        own + (uint32_t)k * n_in));
    for (int k = 0; k < n; k++) {
        struct body w = body_of(m, to[k]);
        uint32_t next = 0;
        body_take_all(&w);
        body_run(&w);
        for (uint32_t i = 0; i < n_in; i++) {
            bool there = own[(uint32_t)k * n_in + i];
            if (nonzero[i])
                body_give_or_zeros(&w, there, next, transpose_type(c, i + 1));
            next += there;
        }
        JOT_TRY(pass_finish(&w.b, &to[k]));
    }
    return JOT_OK;
}

void transpose_cond(struct transpose *c)
{
    const int64_t *from;
    int n = ir_bodies_of(c->n, &from);
    uint32_t *to = new_branches(B, n), n_in = c->n->n_in, n_out = c->n->n_out;
    bool *linear = body_mask(B->module, n_in), *nonzero = body_mask(B->module, n_in);
    bool *ct = body_mask(B->module, n_out), *handed = body_mask(B->module, n_in);
    for (uint32_t i = 1; i < n_in; i++)
        linear[i - 1] = transpose_is_linear(c, i);
    for (uint32_t i = 0; i < n_out; i++)
        ct[i] = c->ct[i] != IR_NONE;
    jot_status status = transpose_branches(c, n, from, linear, ct, nonzero, handed, to);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *x = pass_no_values(B->module, 2 * n_in + n_out);
    x[0] = c->x[0];
    int count = 1 + body_pick(linear, false, 0, n_in - 1, c->x + 1, x + 1);
    count += body_pick(ct, true, 0, n_out, c->ct, x + count);
    for (uint32_t i = 1; i < n_in; i++)
        if (handed[i - 1])
            x[count++] = transpose_take_sum(c, i);
    ir_id y = ir_cond(B, n, to, count, x);
    for (uint32_t i = 1; i < n_in && y != IR_NONE; i++)
        if (nonzero[i - 1])
            transpose_give(c, i, y++);
}

// -- Batching ---------------------------------------------------------------------------------

static jot_status map_branches(struct batch *c, int n, const int64_t *from, bool *have,
                               uint32_t *to)
{
    uint32_t n_out = c->n->n_out;
    for (int k = 0; k < n; k++)
        JOT_TRY(batch_function(c, (uint32_t)from[k], c->batched + 1, &to[k],
                               have + (uint32_t)k * n_out));
    return JOT_OK;
}

// One index for all lanes: a result has the axis when a branch gives it so.
static jot_status map_choice(struct batch *c, int n, const bool *have, uint32_t *to)
{
    uint32_t n_out = c->n->n_out;
    memset(c->y_batched, 0, n_out * sizeof *c->y_batched);
    for (int k = 0; k < n; k++)
        body_add_mask(c->y_batched, have + (uint32_t)k * n_out, n_out);
    for (int k = 0; k < n; k++) {
        struct body w = body_of(B->module, to[k]);
        body_take_all(&w);
        body_run(&w);
        for (uint32_t i = 0; i < n_out; i++) {
            bool repeats = c->y_batched[i] && !have[(uint32_t)k * n_out + i];
            ir_output(&w.b, repeats ? batch_repeat(&w.b, w.out[i], c->size) : w.out[i]);
        }
        JOT_TRY(pass_finish(&w.b, &to[k]));
    }
    ir_id y = ir_cond(B, n, to, (int)c->n->n_in, c->x);
    for (uint32_t i = 0; i < n_out && y != IR_NONE; i++)
        c->y[i] = y + i;
    return JOT_OK;
}

// -- An index for each lane -------------------------------------------------------------------

// What one lane computes of what differs from lane to lane, and of what does not.
struct work {
    int64_t own, shared;
};

static int64_t work_of_node(const struct ir_graph *g, const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    struct ir_type t = ir_type_of(g, n->out);
    int64_t count = ir_count(g->module, t), in = n->n_in ? ir_operand(g, n, 0) : IR_NONE;
    if (c == IR_CLASS_LAYOUT || c == IR_CLASS_HINT || c == IR_CLASS_CONST ||
        c == IR_CLASS_PARAM)
        return 0;
    if (c == IR_CLASS_MAP)
        return count * cost_of_op((enum ir_op)n->op, ir_dtype(t));
    return n->n_in ? count + ir_count_of(g, (ir_id)in) : count;
}

static void add_work(const struct ir_graph *g, const bool *batched, struct work *sum)
{
    struct ir_module *m = g->module;
    bool *own = body_mask(m, g->values.count);
    memcpy(own, batched, g->n_params * sizeof *own);
    ir_for_each_node (g, n) {
        if (n->op == IR_param)
            continue;
        bool is_own = false, *in = body_mask(m, n->n_in);
        for (uint32_t i = 0; i < n->n_in; i++)
            is_own |= in[i] = own[ir_operand(g, n, i)];
        memset(own + n->out, is_own, n->n_out * sizeof *own);
        if (n->op == IR_scan || n->op == IR_while)
            *(is_own ? &sum->own : &sum->shared) += COST_KERNEL_OPS;
        else if (!ir_has_bodies((enum ir_op)n->op))
            *(is_own ? &sum->own : &sum->shared) += work_of_node(g, n);
        else if (n->op == IR_cond)
            for (int k = 0, count = ir_bodies_of(n, &(const int64_t *){0}); k < count; k++)
                add_work(ir_body(g, n, k), in + 1, sum);
        else
            add_work(ir_body(g, n, 0), in, sum);
    }
}

// Whether lanes take branches by themselves.  Not when both are cheap; not when there is much
// that lanes share, which would be done for each of them; and not when an operand that they
// share is large, for each lane would have a cotangent of it.
static bool keeps_branches(const struct batch *c, int n)
{
    int64_t most = 0;
    for (uint32_t i = 1; i < c->n->n_in; i++)
        if (!c->batched[i] && pass_is_inexact(batch_type(c, i)) &&
            ir_count(B->module, batch_type(c, i)) > COST_EXPANDED_STATE)
            return false;
    for (int k = 0; k < n; k++) {
        struct work w = {0};
        add_work(ir_body(c->g, c->n, k), c->batched + 1, &w);
        most = w.own > most ? w.own : most;
        if (w.shared > COST_JUMP)
            return false;
    }
    return most > COST_JUMP;
}

// All branches, and a select.
static jot_status select_branches(struct batch *c)
{
    struct ir_module *m = B->module;
    struct ir_builder b = ir_builder_make(m, c->g->name, IR_BUILD_PLAIN);
    ir_id *x = pass_no_values(m, c->n->n_in), *y = pass_no_values(m, c->n->n_out);
    bool *hidden = body_mask(m, c->n->n_in);
    uint32_t f;
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        x[i] = ir_param(&b, batch_type(c, i));
        hidden[i] = c->batched[i] && pass_is_inexact(batch_type(c, i));
    }
    b.where = c->n->where;
    pass_select_branches(&b, c->n, x, hidden, y);
    for (uint32_t i = 0; i < c->n->n_out; i++)
        ir_output(&b, y[i]);
    JOT_TRY(pass_finish(&b, &f));
    JOT_TRY(batch_function(c, f, c->batched, &f, c->y_batched));
    ir_inline(B, ir_function(m, f), c->x, c->y);
    return JOT_OK;
}

static jot_status batch_lanes(struct batch *c)
{
    bool has_effect = ir_has_effect(c->g, c->n);
    if (has_effect && batch_checks_behind(c))
        return JOT_OK;
    bool asks = false;
    int n = ir_bodies_of(c->n, &(const int64_t *){0});
    for (int k = 0; c->axis >= 0 && k < n; k++)
        asks |= rule_asks_for_lane(ir_body(c->g, c->n, k), c->axis);
    if (!has_effect && (asks || !keeps_branches(c, n)))
        return select_branches(c);
    batch_by_lanes(c);
    return JOT_OK;
}

static jot_status batch_choice(struct batch *c)
{
    const int64_t *from;
    int n = ir_bodies_of(c->n, &from);
    uint32_t *to = new_branches(B, n);
    bool *have = body_mask(B->module, (uint32_t)n * c->n->n_out);
    JOT_TRY(map_branches(c, n, from, have, to));
    return map_choice(c, n, have, to);
}

void batch_cond(struct batch *c)
{
    jot_status status = c->batched[0] ? batch_lanes(c) : batch_choice(c);
    if (status != JOT_OK)
        rule_fail_nested(B, status);
}
