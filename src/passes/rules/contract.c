// SPDX-License-Identifier: Apache-2.0
// Transpose and batching of contractions.
#include "passes/rules/rules.h"

#define B c->b

// The axes of one operand of a contraction by their part in it.
struct side {
    int n_free;
    const int64_t *batch, *contract;
    int64_t free[IR_MAX_RANK];
};

struct dot_axes {
    int n_batch, n_contract, precision;
    struct side side[2];
};

static bool has(const int64_t *list, int n, int64_t axis)
{
    for (int i = 0; i < n; i++)
        if (list[i] == axis)
            return true;
    return false;
}

static struct dot_axes axes_of(const struct ir_graph *g, const struct ir_node *n)
{
    struct dot_axes d = {.precision = (int)ir_attr_int_or(n->attrs, IR_KEY_precision, 0)};
    d.side[0].contract = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &d.n_contract);
    d.side[1].contract = ir_attr_ints(n->attrs, IR_KEY_rhs_contract, &d.n_contract);
    d.side[0].batch = ir_attr_ints(n->attrs, IR_KEY_lhs_batch, &d.n_batch);
    d.side[1].batch = ir_attr_ints(n->attrs, IR_KEY_rhs_batch, &d.n_batch);
    for (int i = 0; i < 2; i++) {
        struct side *s = &d.side[i];
        for (int axis = 0; axis < ir_rank_of(g, ir_operand(g, n, (uint32_t)i)); axis++)
            if (!has(s->batch, d.n_batch, axis) && !has(s->contract, d.n_contract, axis))
                s->free[s->n_free++] = axis;
    }
    return d;
}

// The cotangent of the result, whose axes are batch and free ones of x alone, with the axes of x.
static ir_id spread_cotangent(struct transpose *c, const struct dot_axes *d, int mine)
{
    const struct side *x = &d->side[mine];
    struct ir_type t = transpose_type(c, (uint32_t)mine);
    int64_t order[IR_MAX_RANK], axes[IR_MAX_RANK];
    int n = 0;
    for (int64_t axis = 0; axis < t.rank; axis++)
        for (int i = 0; i < d->n_batch + x->n_free; i++)
            if ((i < d->n_batch ? x->batch[i] : x->free[i - d->n_batch]) == axis) {
                order[n] = i;
                axes[n++] = axis;
            }
    return ir_broadcast_in_dim(B, ir_transpose(B, c->ct[0], order), t.rank,
                               ir_dims(B->module, t), axes);
}

// With y = x . z, the cotangent of x is ct . z over the free axes of z: its axes come out as batch,
// free of x, contracted (in the order of z's axes), and are put back where x has them.
static void transpose_side(struct transpose *c, const struct dot_axes *d, int mine, ir_id other)
{
    const struct side *x = &d->side[mine], *z = &d->side[1 - mine];
    int64_t ct_batch[IR_MAX_RANK], ct_free[IR_MAX_RANK], back[IR_MAX_RANK];
    for (int i = 0; i < d->n_batch; i++)
        ct_batch[i] = i;
    for (int i = 0; i < z->n_free; i++)
        ct_free[i] = d->n_batch + (mine == 0 ? x->n_free : 0) + i;
    struct ir_dot dot = {.n_batch = d->n_batch,
                         .n_contract = z->n_free,
                         .lhs_batch = ct_batch,
                         .rhs_batch = z->batch,
                         .lhs_contract = ct_free,
                         .rhs_contract = z->free,
                         .precision = d->precision};
    ir_id t = ir_dot_general(B, c->ct[0], other, &dot);
    for (int i = 0; i < d->n_batch; i++)
        back[x->batch[i]] = i;
    for (int i = 0; i < x->n_free; i++)
        back[x->free[i]] = d->n_batch + i;
    for (int i = 0; i < d->n_contract; i++) {
        int before = 0;
        for (int k = 0; k < d->n_contract; k++)
            before += z->contract[k] < z->contract[i];
        back[x->contract[i]] = d->n_batch + x->n_free + before;
    }
    t = ir_transpose(B, t, back);
    if (z->n_free == 0) // each element is one product
        t = ir_guard(B, spread_cotangent(c, d, mine), t);
    transpose_give(c, (uint32_t)mine, t);
}

void transpose_dot_general(struct transpose *c)
{
    struct dot_axes d = axes_of(c->g, c->n);
    if (transpose_is_linear(c, 0) && transpose_is_linear(c, 1))
        transpose_none(c);
    else if (transpose_is_linear(c, 0))
        transpose_side(c, &d, 0, c->x[1]);
    else
        transpose_side(c, &d, 1, c->x[0]);
}

static void shift(const int64_t *from, int n, int64_t delta, int64_t *to)
{
    for (int i = 0; i < n; i++)
        to[i] = from[i] + delta;
}

// Both mapped: one more batch axis in front.  One mapped: one more free axis of it, which is moved
// to the front of the result.
void batch_dot_general(struct batch *c)
{
    struct dot_axes d = axes_of(c->g, c->n);
    bool both = c->batched[0] && c->batched[1];
    int64_t batch[2][IR_MAX_RANK + 1] = {{0}}, contract[2][IR_MAX_RANK];
    for (int i = 0; i < 2; i++) {
        shift(d.side[i].batch, d.n_batch, c->batched[i], batch[i] + both);
        shift(d.side[i].contract, d.n_contract, c->batched[i], contract[i]);
    }
    struct ir_dot dot = {.n_batch = d.n_batch + both,
                         .n_contract = d.n_contract,
                         .lhs_batch = batch[0],
                         .rhs_batch = batch[1],
                         .lhs_contract = contract[0],
                         .rhs_contract = contract[1],
                         .precision = d.precision};
    ir_id y = ir_dot_general(B, c->x[0], c->x[1], &dot);
    c->y[0] = y;
    if (both || y == IR_NONE)
        return;
    // The mapped axis is axis 0 of its operand, so the first of that operand's free axes.
    int at = d.n_batch + (c->batched[1] ? d.side[0].n_free : 0);
    int64_t axes[IR_MAX_RANK] = {at};
    for (int i = 1; i < ir_type_in(B, y).rank; i++)
        axes[i] = i <= at ? i - 1 : i;
    c->y[0] = at ? ir_transpose(B, y, axes) : y;
}
