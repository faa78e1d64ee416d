// SPDX-License-Identifier: Apache-2.0
// Rules of cond.  A result has a tangent, a cotangent or the mapped axis when it has in one branch;
// the others give zeros, or repeat what they give.
//
// A mapped index takes no branch: all are computed and each lane selects.  A lane's operands are
// hidden from the derivatives of branches that it does not take, so that what is not finite there
// does not spoil its gradients.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

#define B c->b

static uint32_t *new_branches(struct ir_builder *b, int n)
{
    return arena_array(b->module->arena, uint32_t, n + 1);
}

static void add_to(bool *mask, const bool *other, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        mask[i] = mask[i] || other[i];
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
        add_to(out, own + (uint32_t)k * n_out, n_out);
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
                                     uint32_t *to)
{
    struct ir_module *m = B->module;
    uint32_t n_in = c->n->n_in - 1;
    bool *own = body_mask(m, (uint32_t)n * n_in);
    for (int k = 0; k < n; k++) {
        bool *mine = own + (uint32_t)k * n_in;
        JOT_TRY(pass_transpose_function(m, (uint32_t)from[k], linear, ct, &to[k], mine));
        add_to(nonzero, mine, n_in);
    }
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
    bool *ct = body_mask(B->module, n_out);
    for (uint32_t i = 1; i < n_in; i++)
        linear[i - 1] = transpose_is_linear(c, i);
    for (uint32_t i = 0; i < n_out; i++)
        ct[i] = c->ct[i] != IR_NONE;
    jot_status status = transpose_branches(c, n, from, linear, ct, nonzero, to);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *x = pass_no_values(B->module, n_in + n_out);
    x[0] = c->x[0];
    int count = 1 + body_pick(linear, false, 0, n_in - 1, c->x + 1, x + 1);
    count += body_pick(ct, true, 0, n_out, c->ct, x + count);
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
        JOT_TRY(pass_vmap(B->module, (uint32_t)from[k], c->batched + 1, c->size, &to[k],
                          have + (uint32_t)k * n_out));
    return JOT_OK;
}

// One index for all lanes: a result has the axis when a branch gives it so.
static jot_status map_choice(struct batch *c, int n, const bool *have, uint32_t *to)
{
    uint32_t n_out = c->n->n_out;
    memset(c->y_batched, 0, n_out * sizeof *c->y_batched);
    for (int k = 0; k < n; k++)
        add_to(c->y_batched, have + (uint32_t)k * n_out, n_out);
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

// p: bool[lanes], brought to a rank.
static ir_id over_rank(struct ir_builder *b, ir_id p, int64_t lanes, int rank)
{
    int64_t dims[IR_MAX_RANK] = {lanes};
    for (int i = 1; i < rank; i++)
        dims[i] = 1;
    return ir_reshape(b, p, rank, dims);
}

// Whether a lane takes branch k of n: the index is clamped.
static ir_id takes_branch(struct batch *c, int k, int n)
{
    ir_id number = ir_scalar_int(B, JOT_I32, k);
    return k == 0       ? ir_le(B, c->x[0], number)
           : k == n - 1 ? ir_ge(B, c->x[0], number)
                        : ir_eq(B, c->x[0], number);
}

// Branch k on operands that only the lanes in p have derivatives in.
static ir_id call_branch(struct batch *c, uint32_t f, ir_id p)
{
    uint32_t n = c->n->n_in - 1;
    ir_id *x = pass_no_values(B->module, n);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = c->x[i + 1];
        struct ir_type t = ir_type_in(B, x[i]);
        if (c->batched[i + 1] && pass_is_inexact(t))
            x[i] =
                ir_select(B, over_rank(B, p, c->size, t.rank), x[i], ir_stop_gradient(B, x[i]));
    }
    return ir_call(B, IR_call, 1, &f, (int)n, x);
}

// An index for each lane.  Results of a branch may lack the axis.
static void select_branches(struct batch *c, int n, const bool *have, const uint32_t *to)
{
    uint32_t n_out = c->n->n_out;
    for (int k = 0; k < n && B->status == JOT_OK; k++) {
        ir_id p = takes_branch(c, k, n), y = call_branch(c, to[k], p);
        for (uint32_t i = 0; i < n_out && y != IR_NONE; i++) {
            int rank = ir_rank_of(c->g, c->n->out + i) + 1;
            ir_id mine =
                have[(uint32_t)k * n_out + i] ? y + i : batch_repeat(B, y + i, c->size);
            c->y[i] =
                k == 0 ? mine : ir_select(B, over_rank(B, p, c->size, rank), mine, c->y[i]);
        }
    }
}

void batch_cond(struct batch *c)
{
    if (c->batched[0] && ir_has_effect(c->g, c->n)) {
        if (!batch_checks_behind(c))
            batch_by_lanes(c);
        return;
    }
    const int64_t *from;
    int n = ir_bodies_of(c->n, &from);
    uint32_t *to = new_branches(B, n);
    bool *have = body_mask(B->module, (uint32_t)n * c->n->n_out);
    jot_status status = map_branches(c, n, from, have, to);
    if (status == JOT_OK && c->batched[0])
        select_branches(c, n, have, to);
    else if (status == JOT_OK)
        status = map_choice(c, n, have, to);
    if (status != JOT_OK)
        rule_fail_nested(B, status);
}
