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
    struct ir_tensor *in;  // of the bodies; carries lie in the results
    struct ir_tensor *out;
};

typedef jot_status (*loop_function)(struct loop *l);

static jot_status run_loop(const struct eval_call *c, int n_consts, int n_carry, uint32_t n_out,
                           loop_function f)
{
    struct loop l = {.c = c, .scratch = arena_create(), .n = {.attrs = c->attrs}};
    if (!l.scratch)
        arena_exhausted();
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        arena_release(l.scratch);
        arena_exhausted();
    }
    l.in = arena_array(l.scratch, struct ir_tensor, c->n_in + 1);
    l.out = arena_array(l.scratch, struct ir_tensor, n_out + 1);
    for (int i = 0; i < c->n_in; i++)
        l.in[i] = c->in[i];
    for (int i = 0; i < n_carry; i++) {
        copy_bytes(c->out[i].data, c->in[n_consts + i].data, bytes_of(c, c->out[i].type));
        l.in[n_consts + i].data = c->out[i].data;
    }
    jot_status status = f(&l);
    arena_guard_close(&guard);
    arena_release(l.scratch);
    return status;
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
    struct ir_node n = {.attrs = c->attrs};
    struct ir_scan s = ir_scan_of(&n);
    return run_loop(c, s.n_consts, s.n_carry, (uint32_t)c->n_out, scan_loop);
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
    const struct ir_graph *step = ir_function(c->module, w.step);
    int64_t lanes = ir_count(c->module, ir_type_of(test, test->outputs.at[0]));
    for (int64_t trip = 0;; trip++) {
        struct arena_mark mark = arena_mark(l->scratch);
        struct ir_tensor holds;
        JOT_TRY(ir_eval(l->scratch, test, l->in, &holds));
        const bool *p = holds.data;
        int64_t lane = 0;
        while (lane < lanes && !p[lane])
            lane++;
        if (lane == lanes)
            return JOT_OK;
        if (trip == w.max_trips && w.batched)
            return status_fail(JOT_ERR_ARGUMENT,
                               "while: lane %lld is not done after %lld trips, its bound",
                               (long long)lane, (long long)trip);
        if (trip == w.max_trips)
            return status_fail(JOT_ERR_ARGUMENT, "while: not done after %lld trips, its bound",
                               (long long)trip);
        JOT_TRY(ir_eval(l->scratch, step, l->in, l->out));
        keep_results(l);
        keep_lanes(l, p, lanes);
        arena_rewind(l->scratch, mark);
    }
}

jot_status eval_while(const struct eval_call *c)
{
    struct ir_node n = {.attrs = c->attrs};
    return run_loop(c, ir_while_of(&n).n_consts, c->n_out, (uint32_t)c->n_out, while_loop);
}

jot_status eval_cond(const struct eval_call *c)
{
    struct ir_node n = {.attrs = c->attrs};
    const int64_t *branches;
    int32_t count = ir_branches_of(&n, &branches), index;
    memcpy(&index, c->in[0].data, sizeof index);
    index = index < 0 ? 0 : index >= count ? count - 1 : index;
    return ir_eval(c->arena, ir_function(c->module, (uint32_t)branches[index]), c->in + 1,
                   c->out);
}
