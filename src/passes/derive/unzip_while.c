// SPDX-License-Identifier: Apache-2.0
// A while over known and linear values: see unzip_online.c.  With a bound that is too large for that,
// or with callbacks, which are made once, it is a scan, which can be separated.
//
//     x, dx = while {test, body, max_trips=9} [| x0, dx0]
// becomes
//     x, dx = scan {trip, length=9} [| x0, dx0]      where trip: cond (test x) {as it is, body}
#include "passes/derive/unzip.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

// p: bool of the lanes, brought to the rank of a carry.
static ir_id over_carry(struct ir_builder *b, ir_id p, struct ir_type carry)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, p);
    for (int i = 0; i < carry.rank; i++)
        dims[i] = i < t.rank ? ir_dims(b->module, t)[i] : 1;
    return ir_reshape(b, p, carry.rank, dims);
}

// One trip of a while whose lanes end by themselves.  Linear carries of lanes that are done do not
// enter the body, so that what is not finite there does not come back as a cotangent.
static void lane_trip(struct ir_builder *b, const struct ir_while *l, const bool *linear,
                      ir_id *x, uint32_t n_in, ir_id p)
{
    uint32_t n_consts = (uint32_t)l->n_consts;
    ir_id *in = arena_copy(b->module->arena, x, n_in * sizeof *x);
    ir_id *y = pass_no_values(b->module, n_in);
    for (uint32_t i = n_consts; i < n_in; i++)
        if (linear[i])
            in[i] = ir_select(b, over_carry(b, p, ir_type_in(b, x[i])), x[i],
                              ir_zeros(b, ir_type_in(b, x[i])));
    ir_inline(b, ir_function(b->module, l->body), in, y);
    for (uint32_t i = n_consts; i < n_in && b->status == JOT_OK; i++)
        ir_output(b,
                  ir_select(b, over_carry(b, p, ir_type_in(b, x[i])), y[i - n_consts], x[i]));
}

// One trip of a while, or none: cond over [the carries as they are, the body].
static void plain_trip(struct ir_builder *b, const struct ir_while *l, ir_id *x, uint32_t n_in,
                       ir_id p)
{
    struct ir_module *m = b->module;
    const struct ir_graph *body = ir_function(m, l->body);
    struct ir_builder same = ir_builder_make(m, body->name, IR_BUILD_PLAIN);
    ir_id *all = pass_no_values(m, n_in);
    pass_copy_params(&same, body, NULL, true, all);
    for (uint32_t i = (uint32_t)l->n_consts; i < n_in; i++)
        ir_output(&same, all[i]);
    uint32_t branches[2] = {ir_finish_function(&same), l->body};
    ir_id *in = pass_no_values(m, n_in + 1);
    in[0] = ir_convert(b, p, JOT_I32);
    memcpy(in + 1, x, n_in * sizeof *x);
    ir_id y = ir_cond(b, 2, branches, (int)n_in + 1, in);
    for (uint32_t i = 0; i < body->outputs.count && y != IR_NONE; i++)
        ir_output(b, y + i);
}

// A while of at most max_trips trips as a scan of exactly so many: once the test is false the
// carries stay, so it stays false.
static jot_status bounded_scan(struct ir_module *m, const struct ir_while *l,
                               const bool *linear, struct ir_scan *out)
{
    const struct ir_graph *body = ir_function(m, l->body);
    struct ir_builder b = ir_builder_make(m, body->name, IR_BUILD_ZEROS);
    ir_id *x = pass_no_values(m, body->n_params), p;
    pass_copy_params(&b, body, NULL, true, x);
    ir_inline(&b, ir_function(m, l->test), x, &p);
    if (l->batched)
        lane_trip(&b, l, linear, x, body->n_params, p);
    else
        plain_trip(&b, l, x, body->n_params, p);
    *out = (struct ir_scan){
        .n_consts = l->n_consts, .n_carry = (int)body->outputs.count, .length = l->max_trips};
    return pass_finish(&b, &out->body);
}

static jot_status by_states(struct unzip *u, const struct ir_node *n, const struct ir_while *l,
                            bool *is_built)
{
    struct ir_module *m = u->b->module;
    ir_id *y = pass_no_values(m, n->n_out);
    bool *linear = body_mask(m, n->n_out);
    JOT_TRY(unzip_online(u->b, l, n->n_in, unzip_operands(u, n), unzip_linear_operands(u, n), y,
                         linear, is_built));
    for (uint32_t i = 0; *is_built && i < n->n_out; i++) {
        u->map[n->out + i] = y[i];
        u->linear[n->out + i] = linear[i];
    }
    return JOT_OK;
}

void unzip_while(struct unzip *u, const struct ir_node *n)
{
    struct ir_while l = ir_while_of(n);
    struct ir_scan s;
    jot_status status = JOT_OK;
    bool is_built = false;
    u->b->where = n->where;
    if (l.max_trips != 0 && pass_is_repeatable(u->b->module, l.body))
        status = by_states(u, n, &l, &is_built);
    else if (l.max_trips == IR_NO_BOUND)
        status =
            status_fail(JOT_ERR_ARGUMENT,
                        "a callback in a while without a bound: its trips are made again on "
                        "the way back: give the while a bound");
    if (status == JOT_OK && !is_built) {
        status = bounded_scan(u->b->module, &l, unzip_linear_operands(u, n), &s);
        if (status == JOT_OK)
            unzip_loop(u, n, &s);
    }
    if (status != JOT_OK && u->b->status == JOT_OK)
        ir_fail(u->b, status, "%s", jot_error_message());
}
