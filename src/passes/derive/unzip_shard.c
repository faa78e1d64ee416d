// SPDX-License-Identifier: Apache-2.0
// A shard_map over known and linear values, in two.
//
//     y, dy = shard_map f x dx
// becomes
//     y, r = shard_map {known f} x
//     dy = shard_map {linear f} x r dx
//
// A residual stays on the device that has computed it: it leaves as a row of an array that all axes
// split over which it varies.
#include "passes/derive/unzip.h"

#include "base/status.h"
#include "ir/collective.h"
#include "ir/shard.h"
#include "passes/body.h"

struct split_shard {
    struct ir_builder *b;
    struct ir_module *m;
    struct ir_shard s;
    struct pass_split parts;
    uint32_t n_in, n_out, n_known; // known results
    const ir_id *x;
    const bool *linear_in;
    ir_id *y;    // by result of the node
    ir_id *kept; // by result of the known function
    struct ir_split *kept_split;
};

static bool is_row(const struct split_shard *c, uint32_t i) { return i >= c->n_known; }

// The known function, whose residuals are rows.
static jot_status known_body(struct split_shard *c, uint32_t *out_f)
{
    struct body w = body_of(c->m, c->parts.forward);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < w.f->outputs.count; i++) {
        struct ir_type t = body_result(w.f, i);
        int64_t dims[IR_MAX_RANK + 1] = {1};
        memcpy(dims + 1, ir_dims(c->m, t), sizeof *dims * t.rank);
        ir_output(&w.b, is_row(c, i) ? ir_reshape(&w.b, w.out[i], t.rank + 1, dims) : w.out[i]);
    }
    return pass_finish(&w.b, out_f);
}

static jot_status build_known(struct split_shard *c)
{
    const struct ir_graph *forward = ir_function(c->m, c->parts.forward);
    uint32_t n_kept = forward->outputs.count, at = 0, next = 0;
    struct ir_shard known = c->s;
    c->kept = pass_no_values(c->m, n_kept);
    c->kept_split = arena_array(c->m->arena, struct ir_split, n_kept + 1);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (!c->parts.linear_out[i])
            c->kept_split[next++] = c->s.split[c->n_in + i];
    for (; next < n_kept; next++) {
        struct ir_type t = body_result(forward, next);
        c->kept_split[next] = ir_split_stacked(c->m, &c->s, ir_split_none(c->m, t.rank),
                                               t.varies & ir_grid_set(&c->s));
    }
    if (n_kept == 0 && !forward->has_effects)
        return JOT_OK;
    JOT_TRY(known_body(c, &known.body));
    ir_id *in = pass_no_values(c->m, c->n_in);
    known.split = arena_array(c->m->arena, struct ir_split, c->n_in + n_kept + 1);
    int n = body_pick(c->linear_in, false, 0, c->n_in, c->x, in);
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!c->linear_in[i])
            known.split[at++] = c->s.split[i];
    memcpy(known.split + at, c->kept_split, n_kept * sizeof *known.split);
    known.n_splits = (int)(at + n_kept);
    ir_id y = ir_shard_map(c->b, &known, n, in);
    if (y == IR_NONE)
        return pass_builder_status(c->b);
    for (uint32_t i = 0; i < n_kept; i++)
        c->kept[i] = y + i;
    for (uint32_t i = 0, k = 0; i < c->n_out; i++)
        if (!c->parts.linear_out[i])
            c->y[i] = c->kept[k++];
    return JOT_OK;
}

// The linear function, which takes the rows.
static jot_status linear_body(struct split_shard *c, uint32_t *out_f)
{
    struct body w = body_of(c->m, c->parts.linear);
    const struct ir_graph *forward = ir_function(c->m, c->parts.forward);
    for (uint32_t i = 0; i < w.f->n_params; i++) {
        struct ir_type t = ir_type_of(w.f, i);
        bool is_residual = i < c->parts.n_residuals;
        const struct pass_residual *r = &c->parts.residuals[i];
        if (!is_residual || r->from == PASS_RESIDUAL_INPUT || !is_row(c, r->index)) {
            body_take(&w, i);
            continue;
        }
        // It varies as what is kept does.
        t.varies |= body_result(forward, r->index).varies;
        w.in[i] = ir_param(&w.b, ir_type_stack(c->m, t, 1));
    }
    for (uint32_t i = 0; i < w.f->n_params; i++) {
        struct ir_type t = ir_type_of(w.f, i);
        if (ir_type_in(&w.b, w.in[i]).rank != t.rank)
            w.in[i] = ir_reshape(&w.b, w.in[i], t.rank, ir_dims(c->m, t));
    }
    body_run(&w);
    for (uint32_t i = 0; i < w.f->outputs.count; i++)
        body_give(&w, i);
    return pass_finish(&w.b, out_f);
}

static jot_status build_linear(struct split_shard *c)
{
    struct ir_shard linear = c->s;
    uint32_t n_residuals = c->parts.n_residuals;
    if (!body_any(c->parts.linear_out, c->n_out))
        return JOT_OK;
    JOT_TRY(linear_body(c, &linear.body));
    ir_id *in = pass_no_values(c->m, n_residuals + c->n_in);
    linear.split =
        arena_array(c->m->arena, struct ir_split, n_residuals + c->n_in + c->n_out + 1);
    int n = 0;
    for (uint32_t i = 0; i < n_residuals; i++) {
        const struct pass_residual *r = &c->parts.residuals[i];
        bool is_input = r->from == PASS_RESIDUAL_INPUT;
        in[n] = is_input ? c->x[r->index] : c->kept[r->index];
        linear.split[n++] = is_input ? c->s.split[r->index] : c->kept_split[r->index];
    }
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->linear_in[i]) {
            in[n] = c->x[i];
            linear.split[n++] = c->s.split[i];
        }
    linear.n_splits = n;
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->parts.linear_out[i])
            linear.split[linear.n_splits++] = c->s.split[c->n_in + i];
    ir_id y = ir_shard_map(c->b, &linear, n, in);
    if (y == IR_NONE)
        return pass_builder_status(c->b);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->parts.linear_out[i])
            c->y[i] = y++;
    return JOT_OK;
}

static jot_status split_shard(struct split_shard *c)
{
    JOT_TRY(pass_split(c->m, c->s.body, c->linear_in, &c->parts));
    c->n_known = body_count(c->parts.linear_out, false, 0, c->n_out);
    JOT_TRY(build_known(c));
    return build_linear(c);
}

void unzip_shard_map(struct unzip *u, const struct ir_node *n)
{
    struct ir_module *m = u->b->module;
    struct split_shard c = {.b = u->b,
                            .m = m,
                            .s = ir_shard_of(m, n),
                            .n_in = n->n_in,
                            .n_out = n->n_out,
                            .x = unzip_operands(u, n),
                            .linear_in = unzip_linear_operands(u, n),
                            .y = pass_no_values(m, n->n_out)};
    u->b->where = n->where;
    jot_status status = split_shard(&c);
    if (status != JOT_OK && u->b->status == JOT_OK)
        ir_fail(u->b, status, "%s", jot_error_message());
    for (uint32_t i = 0; i < n->n_out && status == JOT_OK; i++) {
        u->map[n->out + i] = c.y[i];
        u->linear[n->out + i] = c.parts.linear_out[i];
    }
}
