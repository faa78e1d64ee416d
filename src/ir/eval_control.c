// SPDX-License-Identifier: Apache-2.0
// Loops and branches: the bodies, run by the evaluator.  Each trip's memory goes with the trip.
#include "base/status.h"
#include "ir/control.h"
#include "ir/eval_ops.h"

static size_t bytes_of(const struct eval_call *c, struct ir_type t)
{
    return (size_t)eval_count(c, t) * dtype_get(ir_dtype(t))->bytes;
}

static void copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
}

// A loop: operands of its bodies, and room for carries beside those of the results.
struct loop {
    const struct eval_call *c;
    struct arena *scratch; // of one trip
    struct ir_node n;      // what control.h reads
    int n_consts, n_carry;
    jot_status (*run)(struct loop *l);
    struct ir_tensor *in; // of the bodies; carries lie in the results
    struct ir_tensor *out;
};

static jot_status run_loop(struct arena *scratch, void *ctx)
{
    struct loop *l = ctx;
    const struct eval_call *c = l->c;
    l->scratch = scratch;
    l->in = arena_array(scratch, struct ir_tensor, c->n_in + 1);
    l->out = arena_array(scratch, struct ir_tensor, c->n_out + 1);
    for (int i = 0; i < c->n_in; i++)
        l->in[i] = c->in[i];
    for (int i = 0; i < l->n_carry; i++) {
        copy_bytes(c->out[i].data, c->in[l->n_consts + i].data, bytes_of(c, c->out[i].type));
        l->in[l->n_consts + i].data = c->out[i].data;
    }
    return l->run(l);
}

// A result of a body may be the memory of a carry: none is overwritten before all are kept.
static void keep_results(struct loop *l)
{
    for (int i = 0; i < l->c->n_out; i++)
        l->out[i].data = arena_copy(l->scratch, l->out[i].data, bytes_of(l->c, l->out[i].type));
}

static jot_status scan_loop(struct loop *l)
{
    const struct eval_call *c = l->c;
    struct ir_scan s = ir_scan_of(&l->n);
    const struct ir_graph *body = ir_function(c->module, s.body);
    int first = s.n_consts + s.n_carry;
    for (int64_t trip = 0; trip < s.length; trip++) {
        struct arena_mark mark = arena_mark(l->scratch);
        int64_t t = s.reverse ? s.length - 1 - trip : trip;
        for (int i = first; i < c->n_in; i++) {
            l->in[i].type = ir_type_of(body, (ir_id)i);
            size_t bytes = bytes_of(c, l->in[i].type);
            if (bytes)
                l->in[i].data = (char *)c->in[i].data + (size_t)t * bytes;
        }
        JOT_TRY(ir_eval(l->scratch, body, l->in, l->out));
        keep_results(l);
        for (int i = 0; i < c->n_out; i++) {
            size_t bytes = bytes_of(c, l->out[i].type);
            if (bytes)
                memcpy((char *)c->out[i].data + (i < s.n_carry ? 0 : (size_t)t * bytes),
                       l->out[i].data, bytes);
        }
        arena_rewind(l->scratch, mark);
    }
    return JOT_OK;
}

jot_status eval_scan(const struct eval_call *c)
{
    struct loop l = {.c = c, .n = {.attrs = c->attrs}, .run = scan_loop};
    struct ir_scan s = ir_scan_of(&l.n);
    l.n_consts = s.n_consts;
    l.n_carry = s.n_carry;
    return arena_lend(run_loop, &l);
}

// Carries of the lanes whose test holds.  A lane is a row of each carry.
static void keep_lanes(struct loop *l, const bool *holds, int64_t lanes)
{
    const struct eval_call *c = l->c;
    for (int i = 0; i < c->n_out; i++) {
        size_t bytes = bytes_of(c, c->out[i].type) / (lanes ? (size_t)lanes : 1);
        for (int64_t k = 0; bytes && k < lanes; k++)
            if (holds[k])
                memcpy((char *)c->out[i].data + (size_t)k * bytes,
                       (char *)l->out[i].data + (size_t)k * bytes, bytes);
    }
}

static jot_status while_loop(struct loop *l)
{
    const struct eval_call *c = l->c;
    struct ir_while w = ir_while_of(&l->n);
    const struct ir_graph *test = ir_function(c->module, w.test);
    const struct ir_graph *body = ir_function(c->module, w.body);
    int64_t lanes = ir_count(c->module, ir_type_of(test, test->outputs.at[0]));
    for (int64_t trip = 0;; trip++) {
        struct arena_mark mark = arena_mark(l->scratch);
        struct ir_tensor holds;
        JOT_TRY(ir_eval(l->scratch, test, l->in, &holds));
        // The test may be a carry itself, which the body changes.
        const bool *p = arena_copy(l->scratch, holds.data, (size_t)lanes);
        int64_t lane = 0;
        while (lane < lanes && !p[lane])
            lane++;
        if (lane == lanes || trip == w.max_trips)
            return JOT_OK;
        JOT_TRY(ir_eval(l->scratch, body, l->in, l->out));
        keep_results(l);
        keep_lanes(l, p, lanes);
        arena_rewind(l->scratch, mark);
    }
}

jot_status eval_while(const struct eval_call *c)
{
    struct loop l = {.c = c, .n = {.attrs = c->attrs}, .n_carry = c->n_out, .run = while_loop};
    l.n_consts = ir_while_of(&l.n).n_consts;
    return arena_lend(run_loop, &l);
}

jot_status eval_cond(const struct eval_call *c)
{
    struct ir_node n = {.attrs = c->attrs};
    const int64_t *branches;
    int32_t count = ir_bodies_of(&n, &branches), index;
    memcpy(&index, c->in[0].data, sizeof index);
    index = index < 0 ? 0 : index >= count ? count - 1 : index;
    return ir_eval(c->arena, ir_function(c->module, (uint32_t)branches[index]), c->in + 1,
                   c->out);
}
