// SPDX-License-Identifier: Apache-2.0
// Rules of shard_map: each is a shard_map of what the transform makes of the body.  Tangents and
// cotangents are split as what they belong to; that they are sums where a piece is on several devices,
// the types in the body see to.
#include "ir/shard.h"

#include "base/status.h"
#include "ir/collective.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

#define B c->b

// The splits of a node that is being made.
struct splits {
    struct ir_split *at;
    int n;
};

static struct splits room_for(struct ir_builder *b, uint32_t n)
{
    return (struct splits){arena_array(b->module->arena, struct ir_split, n + 1), 0};
}

// Adds those of the values whose mask is `which`.
static void add(struct splits *s, const struct ir_split *from, uint32_t n, const bool *mask,
                bool which)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mask || mask[i] == which)
            s->at[s->n++] = from[i];
}

static struct ir_shard with(struct ir_shard s, uint32_t body, struct splits splits)
{
    s.body = body;
    s.split = splits.at;
    s.n_splits = splits.n;
    return s;
}

void jvp_shard_map(struct jvp *c)
{
    struct ir_shard s = ir_shard_of(B->module, &c->n);
    uint32_t n_in = c->n.n_in, n_out = c->n.n_out, f;
    bool *in = body_mask(B->module, n_in), *out = body_mask(B->module, n_out);
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = c->dx[i] != IR_NONE;
    jot_status status = pass_jvp(B->module, s.body, in, &f, out);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    struct splits splits = room_for(B, 2 * (n_in + n_out));
    add(&splits, s.split, n_in, NULL, true);
    add(&splits, s.split, n_in, in, true);
    add(&splits, s.split + n_in, n_out, NULL, true);
    add(&splits, s.split + n_in, n_out, out, true);
    ir_id *x = pass_no_values(B->module, 2 * n_in);
    memcpy(x, c->x, n_in * sizeof *x);
    int count = (int)n_in + body_pick(in, true, 0, n_in, c->dx, x + n_in);
    struct ir_shard made = with(s, f, splits);
    ir_id y = ir_shard_map(B, &made, count, x);
    for (uint32_t i = 0; i < n_out && y != IR_NONE; i++)
        c->y[i] = y++;
    for (uint32_t i = 0; i < n_out && y != IR_NONE; i++)
        c->dy[i] = out[i] ? y++ : IR_NONE;
}

void transpose_shard_map(struct transpose *c)
{
    struct ir_shard s = ir_shard_of(B->module, c->n);
    uint32_t n_in = c->n->n_in, n_out = c->n->n_out, f;
    bool *linear = body_mask(B->module, n_in), *nonzero = body_mask(B->module, n_in);
    bool *ct = body_mask(B->module, n_out);
    for (uint32_t i = 0; i < n_in; i++)
        linear[i] = transpose_is_linear(c, i);
    for (uint32_t i = 0; i < n_out; i++)
        ct[i] = c->ct[i] != IR_NONE;
    jot_status status =
        pass_transpose_function(B->module, s.body, linear, ct, NULL, &f, nonzero);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    struct splits splits = room_for(B, 2 * n_in + n_out);
    add(&splits, s.split, n_in, linear, false);
    add(&splits, s.split + n_in, n_out, ct, true);
    add(&splits, s.split, n_in, nonzero, true);
    ir_id *x = pass_no_values(B->module, n_in + n_out);
    int count = body_pick(linear, false, 0, n_in, c->x, x);
    count += body_pick(ct, true, 0, n_out, c->ct, x + count);
    if (!body_any(nonzero, n_in))
        return;
    struct ir_shard made = with(s, f, splits);
    ir_id y = ir_shard_map(B, &made, count, x);
    for (uint32_t i = 0; i < n_in && y != IR_NONE; i++)
        if (nonzero[i])
            transpose_give(c, i, y++);
}

// The mapped axis is one more dimension in front, which nothing splits.
void batch_shard_map(struct batch *c)
{
    struct ir_shard s = ir_shard_of(B->module, c->n);
    uint32_t n_in = c->n->n_in, n_out = c->n->n_out, f;
    jot_status status = batch_function(c, s.body, c->batched, &f, c->y_batched);
    if (status != JOT_OK) {
        rule_fail_nested(B, status);
        return;
    }
    struct splits splits = room_for(B, n_in + n_out);
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        bool has = i < n_in ? c->batched[i] : c->y_batched[i - n_in];
        splits.at[splits.n++] =
            has ? ir_split_stacked(B->module, &s, s.split[i], 0) : s.split[i];
    }
    struct ir_shard made = with(s, f, splits);
    ir_id y = ir_shard_map(B, &made, (int)n_in, c->x);
    for (uint32_t i = 0; i < n_out; i++)
        c->y[i] = y == IR_NONE ? IR_NONE : y + i;
}
