// SPDX-License-Identifier: Apache-2.0
// What the rows of a softmax are known to be, so that less is done for the same bits: a number less
// the maximum of the row that it is in is not above 0 (or it is NaN), and its exponential not above 1.
//
// One shape: rows of a softmax (docs/nests.md).
#include "codegen/gpu/bounds.h"
#include "codegen/elementary.h"
#include "codegen/emit.h"
#include "codegen/gpu/intervals.h"
#include "codegen/gpu/memory.h"
#include "codegen/gpu/quotient.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#include <string.h>

#define DEEP 8 // operations that are looked through

// An axis of one of two loops, and that of the other which stands for it.
struct axes {
    nest_id from, to; // NEST_NONE: not known yet
};

static bool is_same_index(const struct cg_lowering *l, const struct nest_index *x,
                          const struct nest_index *y, struct axes *axes)
{
    if (x->constant != y->constant || x->count != y->count)
        return false;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *s = &x->terms[i], *t = &y->terms[i];
        if (s->factor != t->factor || s->is_value != t->is_value)
            return false;
        if (s->id == t->id)
            continue;
        if (s->is_value || s->id != axes->from)
            return false;
        if (axes->to == NEST_NONE &&
            l->nest->axes.at[s->id].extent == l->nest->axes.at[t->id].extent)
            axes->to = t->id;
        if (t->id != axes->to)
            return false;
    }
    return true;
}

// Whether y is what x is with one axis for another.
static bool is_same(const struct cg_lowering *l, nest_id x, nest_id y, struct axes *axes,
                    int deep)
{
    if (x == y)
        return true;
    const struct nest_statement *s = cg_maker_of(l, x), *t = cg_maker_of(l, y);
    if (!deep || s->kind != t->kind || s->dtype != t->dtype)
        return false;
    if (s->kind == NEST_LOAD)
        return s->buffer == t->buffer && gpu_is_read_only(l, s->buffer) &&
               s->guard == NEST_NONE && t->guard == NEST_NONE &&
               is_same_index(l, &s->index, &t->index, axes);
    if ((s->kind != NEST_OP && s->kind != NEST_CONST) ||
        memcmp(s->bits, t->bits, sizeof s->bits) != 0)
        return false;
    if (s->kind == NEST_CONST)
        return true;
    if (s->op != t->op || s->n_in != t->n_in || s->n_results != 1)
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!is_same(l, s->in[i], t->in[i], axes, deep - 1))
            return false;
    return true;
}

// What the maximum is taken of that the value is, by the fold over one axis, or NEST_NONE.
static nest_id largest_of(const struct cg_lowering *l, nest_id value, nest_id *axis)
{
    const struct nest_statement *fold = cg_maker_of(l, value);
    if (fold->kind != NEST_FOLD || fold->n_axes != 1)
        return NEST_NONE;
    *axis = fold->axes[0];
    nest_id result = fold->result;
    for (uint32_t i = 0; i < fold->n_combines; i++) {
        const struct nest_combine *c = &fold->combines[i];
        if (result == value && c->op == IR_reduce_max && c->dtype == JOT_F32)
            return c->value[0];
        result += nest_combine_results(c->op);
    }
    return NEST_NONE;
}

// x - max x
static bool is_nonpositive(const struct cg_lowering *l, nest_id value)
{
    const struct nest_statement *s = cg_maker_of(l, value);
    if (s->kind != NEST_OP || s->op != IR_sub || s->dtype != JOT_F32)
        return false;
    struct axes axes = {NEST_NONE, NEST_NONE};
    nest_id of = largest_of(l, s->in[1], &axes.from);
    return of != NEST_NONE && l->nest->values.at[of].dtype == JOT_F32 &&
           is_same(l, of, s->in[0], &axes, DEEP);
}

// Whether it is at most 1, or NaN.
static bool is_at_most_one(const struct cg_lowering *l, nest_id value)
{
    const struct nest_statement *s = cg_maker_of(l, value);
    if (s->kind == NEST_OP)
        return s->op == IR_exp && s->dtype == JOT_F32 && is_nonpositive(l, s->in[0]);
    if (s->kind != NEST_LOAD || l->nest->buffers.at[s->buffer].role != NEST_LOCAL)
        return false;
    bool is_put = false;
    nest_for_all (t, l->nest) {
        if (t->kind == NEST_CONTRACT && t->buffer == s->buffer)
            return false;
        if (t->kind != NEST_PUT || t->buffer != s->buffer)
            continue;
        const struct nest_statement *of = cg_maker_of(l, t->in[0]);
        if (t->op || of->kind != NEST_OP || !is_at_most_one(l, t->in[0]))
            return false;
        is_put = true;
    }
    return is_put;
}

bool gpu_bounded(struct cg_lowering *l, const struct nest_statement *s)
{
    if (s->dtype != JOT_F32 || l->m.ranges)
        return false;
    LLVMValueRef x = l->values[s->in[0]].re, y = NULL;
    bool is_fraction = s->op == IR_div && is_at_most_one(l, s->in[0]);
    if (s->op == IR_exp && is_nonpositive(l, s->in[0])) {
        y = cg_exp_of_nonpositive(&l->m, x);
    } else if (s->op == IR_div && (is_fraction || gpu_is_quotient_in_range(l, s))) {
        unsigned lanes = cg_lanes_of(x);
        LLVMValueRef by = l->values[s->in[1]].re;
        lanes = cg_lanes_of(by) > lanes ? cg_lanes_of(by) : lanes;
        if (cg_lanes_of(x) < lanes)
            x = cg_splat(&l->m, x, lanes);
        if (cg_lanes_of(by) < lanes)
            by = cg_splat(&l->m, by, lanes);
        y = is_fraction ? gpu_divide_fraction(&l->m, x, by) : gpu_divide_in_range(&l->m, x, by);
    }
    if (y)
        l->values[s->result] = (struct cg_value){y, NULL};
    return y != NULL;
}
