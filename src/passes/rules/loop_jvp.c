// SPDX-License-Identifier: Apache-2.0
// Tangents of loops.
//
//     c = scan {body} c0                  becomes      c, dc = scan {body'} c0, dc0
//
// Which carries have a tangent is known only when the body has been transformed, and a carry may
// have one because another has: the body is transformed until no carry is added, at most once for
// each of them.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

#define B c->b

// The groups of the operands of a loop: consts, carries, rows.
struct groups {
    uint32_t ends[3];
};

// Each group, followed by the tangents of its members in the mask.
static void take_pairs(struct body *w, const struct groups *groups, const bool *mask)
{
    uint32_t next = groups->ends[2], first = 0;
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = first; i < groups->ends[k]; i++)
            body_take(w, i);
        for (uint32_t i = first; i < groups->ends[k]; i++)
            if (mask[i])
                body_take(w, next++);
        first = groups->ends[k];
    }
}

// (consts, dconsts | carries, dcarries | rows, drows) -> (carries, dcarries | rows, drows)
static jot_status pair_body(struct ir_module *m, const struct ir_graph *body, uint32_t jvp,
                            const struct groups *groups, const bool *in, const bool *out,
                            uint32_t n_carry, uint32_t *out_f)
{
    struct body w = body_of(m, jvp);
    const bool *carry = in + groups->ends[0];
    uint32_t n_out = body->outputs.count, next = n_out;
    take_pairs(&w, groups, in);
    body_run(&w);
    for (uint32_t i = 0; i < n_carry; i++)
        body_give(&w, i);
    for (uint32_t i = 0; i < n_carry; i++) {
        if (carry[i])
            body_give_or_zeros(&w, out[i], next, body_result(body, i));
        next += out[i];
    }
    for (uint32_t i = n_carry; i < n_out; i++)
        body_give(&w, i);
    for (uint32_t i = n_carry; i < n_out; i++)
        if (out[i])
            body_give(&w, next++);
    return pass_finish(&w.b, out_f);
}

// The operands in the order of take_pairs, zeros made for carries that start with none.
static int pair_operands(struct jvp *c, const struct groups *groups, const bool *mask, ir_id *x)
{
    int n = 0;
    uint32_t first = 0;
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = first; i < groups->ends[k]; i++)
            x[n++] = c->x[i];
        for (uint32_t i = first; i < groups->ends[k]; i++)
            if (mask[i])
                x[n++] = c->dx[i] != IR_NONE ? c->dx[i] : rule_zeros_like(B, c->x[i]);
        first = groups->ends[k];
    }
    return n;
}

// Results carries, dcarries, rows, drows to y and dy.
static void take_results(struct jvp *c, ir_id y, uint32_t n_carry, const bool *carry,
                         const bool *out, bool runs)
{
    uint32_t n_out = c->n.n_out;
    for (uint32_t i = 0; i < n_carry; i++)
        c->y[i] = y++;
    for (uint32_t i = 0; i < n_carry; i++) {
        c->dy[i] = carry[i] && (out[i] || !runs) ? y : IR_NONE;
        y += carry[i];
    }
    for (uint32_t i = n_carry; i < n_out; i++)
        c->y[i] = y++;
    for (uint32_t i = n_carry; i < n_out; i++)
        c->dy[i] = out[i] ? y++ : IR_NONE;
}

static bool *operand_mask(struct jvp *c)
{
    bool *mask = body_mask(B->module, c->n.n_in);
    for (uint32_t i = 0; i < c->n.n_in; i++)
        mask[i] = c->dx[i] != IR_NONE;
    return mask;
}

// The node again: no result has a tangent.
static void keep_primal(struct jvp *c)
{
    ir_id y = ir_build(B, (enum ir_op)c->n.op, (int)c->n.n_in, c->x, c->n.attrs);
    for (uint32_t i = 0; i < c->n.n_out && y != IR_NONE; i++)
        c->y[i] = y + i;
}

void jvp_scan(struct jvp *c)
{
    struct ir_module *m = B->module;
    struct ir_scan s = ir_scan_of(&c->n);
    uint32_t n_consts = (uint32_t)s.n_consts, n_carry = (uint32_t)s.n_carry, f;
    struct groups groups = {{n_consts, n_consts + n_carry, c->n.n_in}};
    bool *in = operand_mask(c), *out = body_mask(B->module, c->n.n_out);
    jot_status status;
    do {
        status = pass_jvp(m, s.body, in, &f, out);
    } while (status == JOT_OK && body_grow(in + n_consts, out, n_carry));
    if (status == JOT_OK && !body_any(in + n_consts, n_carry) && !body_any(out, c->n.n_out)) {
        keep_primal(c);
        return;
    }
    if (status == JOT_OK)
        status = pair_body(m, ir_function(m, s.body), f, &groups, in, out, n_carry, &s.body);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    s.n_consts += (int)body_count(in, true, 0, n_consts);
    s.n_carry += (int)body_count(in, true, n_consts, n_consts + n_carry);
    ir_id *x = pass_no_values(B->module, 2 * c->n.n_in);
    int n = pair_operands(c, &groups, in, x);
    ir_id y = ir_scan(B, &s, n, x);
    if (y != IR_NONE)
        take_results(c, y, n_carry, in + n_consts, out, s.length > 0);
}

// The test over carries with tangents, which it does not read.
static jot_status pair_test(struct ir_module *m, uint32_t test, const struct groups *groups,
                            const bool *mask, uint32_t *out_f)
{
    struct body w = body_of(m, test);
    uint32_t first = 0;
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = first; i < groups->ends[k]; i++)
            body_take(&w, i);
        for (uint32_t i = first; i < groups->ends[k]; i++)
            if (mask[i])
                ir_param(&w.b, ir_type_of(w.f, i));
        first = groups->ends[k];
    }
    body_run(&w);
    body_give(&w, 0);
    return pass_finish(&w.b, out_f);
}

// The test as a last carry: made before the loop and at the end of each trip.
static jot_status carry_test(struct ir_builder *b, struct ir_while *l, ir_id *x, int *n)
{
    struct ir_module *m = b->module;
    const struct ir_graph *test = ir_function(m, l->test), *body = ir_function(m, l->body);
    struct ir_type flag = body_result(test, 0);
    ir_inline(b, test, x, &x[*n]);
    ++*n;
    struct body w = body_of(m, l->test);
    body_take_all(&w);
    ir_output(&w.b, ir_param(&w.b, flag));
    JOT_TRY(pass_finish(&w.b, &l->test));
    w = body_of(m, l->body);
    body_take_all(&w);
    ir_param(&w.b, flag);
    body_run(&w);
    for (uint32_t i = 0; i < body->outputs.count; i++)
        body_give(&w, i);
    memcpy(w.in + l->n_consts, w.out, body->outputs.count * sizeof *w.in);
    ir_id p = IR_NONE;
    ir_inline(&w.b, test, w.in, &p);
    ir_output(&w.b, p);
    return pass_finish(&w.b, &l->body);
}

// As a scan without rows; the test ignores tangents.
void jvp_while(struct jvp *c)
{
    struct ir_module *m = B->module;
    struct ir_while l = ir_while_of(&c->n);
    uint32_t n_consts = (uint32_t)l.n_consts, n_carry = c->n.n_out, f;
    struct groups groups = {{n_consts, c->n.n_in, c->n.n_in}};
    bool *in = operand_mask(c), *out = body_mask(B->module, n_carry);
    jot_status status;
    do {
        status = pass_jvp(m, l.body, in, &f, out);
    } while (status == JOT_OK && body_grow(in + n_consts, out, n_carry));
    if (status == JOT_OK && !body_any(in + n_consts, n_carry)) {
        keep_primal(c);
        return;
    }
    if (status == JOT_OK)
        status = pair_body(m, ir_function(m, l.body), f, &groups, in, out, n_carry, &l.body);
    if (status == JOT_OK)
        status = pair_test(m, l.test, &groups, in, &l.test);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    l.n_consts += (int)body_count(in, true, 0, n_consts);
    ir_id *x = pass_no_values(B->module, 2 * c->n.n_in + 1);
    int n = pair_operands(c, &groups, in, x);
    // The scan that reverse mode makes of a bounded loop comes by the test in trips that do nothing.
    if (l.max_trips != IR_NO_BOUND && ir_function(m, l.test)->has_effects &&
        carry_test(B, &l, x, &n) != JOT_OK) {
        rule_fail_nested(B, JOT_ERR_INTERNAL);
        return;
    }
    ir_id y = ir_while(B, &l, n, x);
    if (y != IR_NONE)
        take_results(c, y, n_carry, in + n_consts, out, false);
}
