// SPDX-License-Identifier: Apache-2.0
// Loops over a mapped axis.
//
// Which carries have the axis is known only when the body has been mapped: it is mapped until no
// carry is added.  Of a scan time stays axis 0 and the mapped axis of rows is axis 1.  A while
// whose test has the axis is one loop in which each lane ends by itself: every carry has the
// axis, and the attribute `batched` counts the leading axes of lanes.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "ir/collective.h"
#include "ir/control.h"
#include "passes/body.h"

#define B c->b

// f mapped, with results that have the axis where out says so.
static jot_status map_body(struct batch *c, uint32_t f, const bool *in, const bool *out,
                           uint32_t *out_f)
{
    uint32_t mapped, n_out = ir_function(B->module, f)->outputs.count;
    bool *have = body_mask(B->module, n_out);
    JOT_TRY(batch_function(c, f, in, &mapped, have));
    struct body w = body_of(B->module, mapped);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < n_out; i++)
        ir_output(&w.b, out[i] && !have[i] ? batch_repeat(&w.b, w.out[i], c->size) : w.out[i]);
    return pass_finish(&w.b, out_f);
}

// The carries that have the axis, added to in; out is by result of the body.
static jot_status find_batched(struct batch *c, uint32_t body, bool *in_carry, const bool *in,
                               bool *out, uint32_t n_carry)
{
    uint32_t f;
    do {
        JOT_TRY(batch_function(c, body, in, &f, out));
    } while (body_grow(in_carry, out, n_carry));
    for (uint32_t i = 0; i < n_carry; i++)
        out[i] = in_carry[i];
    return JOT_OK;
}

// Whether lanes may act one after the other: not those that exchange something.
static bool can_take_turns(const struct batch *c)
{
    return c->axis < 0 || !(ir_axes_exchanged(c->g, c->n) >> c->axis & 1);
}

void batch_scan(struct batch *c)
{
    struct ir_scan s = ir_scan_of(c->n);
    uint32_t n_consts = (uint32_t)s.n_consts, n_carry = (uint32_t)s.n_carry, n_in = c->n->n_in;
    if (s.lanes && ir_has_effect(c->g, c->n) && can_take_turns(c)) {
        // Lanes that act one after the other: those of an outer map are the slower ones.
        memset(c->y_batched, 1, c->n->n_out * sizeof *c->y_batched);
        batch_by_lanes(c);
        return;
    }
    bool *in = arena_copy(B->module->arena, c->batched, n_in * sizeof *in);
    bool *out = c->y_batched;
    jot_status status = find_batched(c, s.body, in + n_consts, in, out, n_carry);
    if (status == JOT_OK)
        status = map_body(c, s.body, in, out, &s.body);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    ir_id *x = pass_no_values(B->module, n_in);
    for (uint32_t i = 0; i < n_in; i++) {
        x[i] = in[i] && !c->batched[i] ? batch_repeat(B, c->x[i], c->size) : c->x[i];
        if (i >= n_consts + n_carry && in[i])
            x[i] = rule_swap(B, x[i], 0, 1);
    }
    s.lanes += s.lanes > 0;
    ir_id y = ir_scan(B, &s, (int)n_in, x);
    for (uint32_t i = 0; i < c->n->n_out && y != IR_NONE; i++)
        c->y[i] = i >= n_carry && out[i] ? rule_swap(B, y + i, 0, 1) : y + i;
}

void batch_while(struct batch *c)
{
    struct ir_while l = ir_while_of(c->n);
    uint32_t n_consts = (uint32_t)l.n_consts, n_carry = c->n->n_out, n_in = c->n->n_in, f;
    bool *in = arena_copy(B->module->arena, c->batched, n_in * sizeof *in);
    bool *out = c->y_batched, test = false;
    jot_status status = find_batched(c, l.body, in + n_consts, in, out, n_carry);
    if (status == JOT_OK)
        status = batch_function(c, l.test, in, &f, &test);
    // Lanes lead in every carry, so those of an outer map go in front of those there are.
    bool lanes = test || (l.batched && body_any(out, n_carry));
    if (status == JOT_OK && lanes && ir_has_effect(c->g, c->n) && can_take_turns(c)) {
        memset(out, 1, n_carry * sizeof *out);
        batch_by_lanes(c);
        return;
    }
    for (uint32_t i = 0; i < n_carry && lanes; i++)
        out[i] = in[n_consts + i] = true;
    if (status == JOT_OK)
        status = map_body(c, l.body, in, out, &l.body);
    if (status == JOT_OK)
        status = map_body(c, l.test, in, &lanes, &l.test);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    l.batched += lanes;
    ir_id *x = pass_no_values(B->module, n_in);
    for (uint32_t i = 0; i < n_in; i++)
        x[i] = in[i] && !c->batched[i] ? batch_repeat(B, c->x[i], c->size) : c->x[i];
    ir_id y = ir_while(B, &l, (int)n_in, x);
    for (uint32_t i = 0; i < n_carry && y != IR_NONE; i++)
        c->y[i] = y + i;
}
