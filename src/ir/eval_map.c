// SPDX-License-Identifier: Apache-2.0
// Elementwise ops.
#include "ir/eval_ops.h"

// How operand t is walked under the result: axes of extent 1 and rank 0 stay in place.
static struct eval_view broadcast_view(const struct eval_call *c, struct ir_type t)
{
    struct ir_type result = c->out[0].type;
    struct eval_view v = eval_view_dense(c->module, t);
    const int64_t *dims = ir_dims(c->module, result);
    for (int a = 0; a < result.rank; a++) {
        bool stays = t.rank == 0 || (v.dims[a] == 1 && dims[a] != 1);
        v.steps[a] = stays ? 0 : v.steps[a];
        v.dims[a] = dims[a];
    }
    v.rank = result.rank;
    return v;
}

struct walk {
    struct eval_view view;
    int64_t index[IR_MAX_RANK];
    int64_t at;
};

static struct walk *walks_make(const struct eval_call *c)
{
    struct walk *walks = arena_array(c->arena, struct walk, c->n_in);
    for (int i = 0; i < c->n_in; i++)
        walks[i].view = broadcast_view(c, c->in[i].type);
    return walks;
}

static int64_t walk_step(struct walk *w)
{
    int64_t at = w->at;
    w->at = eval_view_next(&w->view, w->index, at);
    return at;
}

// Operand k of the next element.
static struct eval_number next_operand(const struct eval_call *c, struct walk *w, int k)
{
    jot_dtype d = ir_dtype(c->in[k].type);
    int64_t at = walk_step(w);
    return scalar_is_on_storage(c->op) ? eval_load(d, c->in[k].data, at)
                                       : eval_load_wide(d, c->in[k].data, at);
}

jot_status eval_map(const struct eval_call *c)
{
    jot_dtype result = ir_dtype(c->out[0].type);
    jot_dtype last = ir_dtype(c->in[c->n_in - 1].type);
    struct machine m = {.dtype = last, .attrs = c->attrs};
    struct walk *walks = walks_make(c);
    int64_t count = eval_count(c, c->out[0].type);
    struct eval_number x[3] = {0};
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < c->n_in; k++)
            x[k] = next_operand(c, &walks[k], k);
        struct eval_number r = c->op == IR_convert ? eval_convert(last, result, x[0])
                                                   : eval_scalar(&m, c->op, x[0], x[1], x[2]);
        eval_store(result, c->out[0].data, i, r);
    }
    return JOT_OK;
}

jot_status eval_threefry(const struct eval_call *c)
{
    struct walk *walks = walks_make(c);
    int64_t count = eval_count(c, c->out[0].type);
    for (int64_t i = 0; i < count; i++) {
        uint32_t x[4];
        for (int k = 0; k < 4; k++)
            x[k] = ((const uint32_t *)c->in[k].data)[walk_step(&walks[k])];
        eval_threefry2x32(x, x + 2);
        ((uint32_t *)c->out[0].data)[i] = x[2];
        ((uint32_t *)c->out[1].data)[i] = x[3];
    }
    return JOT_OK;
}
