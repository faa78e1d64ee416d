// SPDX-License-Identifier: Apache-2.0
// Which axes of a result go along axes of the shift, from those of the operands (shift.c).
#include "passes/shift.h"

#include "ir/indexing.h"

// Each from the axes of operand i; false: some result would go with several elements of m.

static const int64_t *dims(const struct shift_step *c, ir_id v)
{
    return ir_dims_of(c->at->g, v);
}
static ir_id operand(const struct shift_step *c, uint32_t i)
{
    return ir_operand(c->at->g, c->n, i);
}

static const int64_t *list(const struct shift_step *c, enum ir_key key, int *n)
{
    return ir_attr_ints(c->n->attrs, key, n);
}

static bool is_in(const int64_t *list, int n, int64_t x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static bool align(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int rank = ir_rank_of(c->at->g, operand(c, i));
    memcpy(out, c->in[i]->axis, (size_t)rank);
    return true;
}

static bool align_kept(const struct shift_step *c, uint32_t i, int8_t *out)
{
    const int64_t *from = dims(c, operand(c, i)), *to = dims(c, c->n->out);
    for (int k = 0; k < ir_rank_of(c->at->g, c->n->out); k++)
        if (c->in[i]->axis[k] >= 0 && from[k] != to[k])
            return false;
    return align(c, i, out);
}

static bool align_padded(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int n;
    const int64_t *low = list(c, IR_KEY_low, &n), *high = list(c, IR_KEY_high, &n);
    for (int k = 0; k < n && i == 0; k++)
        if (c->in[i]->axis[k] >= 0 && (low[k] != 0 || high[k] != 0))
            return false;
    return i == 0 && align_kept(c, i, out);
}

// Along the axes of the attribute the elements of an operand are mixed.
static bool align_others(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int n;
    const int64_t *axes = list(c, c->n->op == IR_rev ? IR_KEY_axes : IR_KEY_axis, &n);
    for (int k = 0; k < n; k++)
        if (c->in[i]->axis[axes[k]] >= 0)
            return false;
    return align(c, i, out);
}

static bool align_reduced(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int n, next = 0;
    const int64_t *axes = list(c, IR_KEY_axes, &n);
    for (int k = 0; k < ir_rank_of(c->at->g, operand(c, i)); k++) {
        if (!is_in(axes, n, k))
            out[next++] = c->in[i]->axis[k];
        else if (c->in[i]->axis[k] >= 0)
            return false;
    }
    return true;
}

static bool align_broadcast(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int n;
    const int64_t *axes = list(c, IR_KEY_axes, &n);
    for (int k = 0; k < n; k++)
        out[axes[k]] = c->in[i]->axis[k];
    return true;
}

static bool align_transposed(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int n;
    const int64_t *axes = list(c, IR_KEY_axes, &n);
    for (int k = 0; k < n; k++)
        out[k] = c->in[i]->axis[axes[k]];
    return true;
}

static int64_t stride(const int64_t *dims, int rank, int axis)
{
    int64_t n = 1;
    for (int k = axis + 1; k < rank; k++)
        n *= dims[k];
    return n;
}

static bool align_reshaped(const struct shift_step *c, uint32_t i, int8_t *out)
{
    ir_id x = operand(c, i), y = c->n->out;
    int from = ir_rank_of(c->at->g, x), to = ir_rank_of(c->at->g, y);
    for (int k = 0; k < from; k++) {
        int found = -1;
        for (int j = 0; j < to && c->in[i]->axis[k] >= 0; j++)
            if (dims(c, x)[k] == dims(c, y)[j] &&
                stride(dims(c, x), from, k) == stride(dims(c, y), to, j))
                found = j;
        if (c->in[i]->axis[k] >= 0 && found < 0)
            return false;
        if (found >= 0)
            out[found] = c->in[i]->axis[k];
    }
    return true;
}

static bool align_gathered(const struct shift_step *c, uint32_t i, int8_t *out)
{
    const struct ir_graph *g = c->at->g;
    ir_id x = operand(c, 0);
    struct ir_window w = ir_window_of(g->module, c->n->attrs, ir_type_of(g, x),
                                      ir_type_of(g, operand(c, 1)), ir_type_of(g, c->n->out));
    for (int k = 0; k < w.rank; k++) {
        if (c->in[i]->axis[k] < 0)
            continue;
        if (!w.is_batch[k] && (w.component[k] >= 0 || w.size[k] != dims(c, x)[k]))
            return false;
        out[w.along[k]] = c->in[i]->axis[k];
    }
    return true;
}

static bool align_contracted(const struct shift_step *c, uint32_t i, int8_t *out)
{
    int n_batch, n_contract, n_other, next;
    const int64_t *batch = list(c, i ? IR_KEY_rhs_batch : IR_KEY_lhs_batch, &n_batch),
                  *contract =
                      list(c, i ? IR_KEY_rhs_contract : IR_KEY_lhs_contract, &n_contract);
    n_other = ir_rank_of(c->at->g, operand(c, 1 - i)) - n_batch - n_contract;
    for (int k = 0; k < n_batch; k++)
        out[k] = c->in[i]->axis[batch[k]];
    next = n_batch + (i ? n_other : 0);
    for (int k = 0; k < ir_rank_of(c->at->g, operand(c, i)); k++) {
        if (is_in(contract, n_contract, k) && c->in[i]->axis[k] >= 0)
            return false;
        if (!is_in(contract, n_contract, k) && !is_in(batch, n_batch, k))
            out[next++] = c->in[i]->axis[k];
    }
    return true;
}

// Other ops keep theirs.
static bool (*const aligns[IR_OP_COUNT])(const struct shift_step *c, uint32_t i,
                                         int8_t *out) = {
    [IR_broadcast_in_dim] = align_broadcast,
    [IR_reshape] = align_reshaped,
    [IR_transpose] = align_transposed,
    [IR_rev] = align_others,
    [IR_slice] = align_kept,
    [IR_pad] = align_padded,
    [IR_concatenate] = align_others,
    [IR_dynamic_slice] = align_kept,
    [IR_gather] = align_gathered,
    [IR_reduce_sum] = align_reduced,
    [IR_reduce_max] = align_reduced,
    [IR_reduce_min] = align_reduced,
    [IR_cumsum] = align_others,
    [IR_cummax] = align_others,
    [IR_cummin] = align_others,
    [IR_cumlogsumexp] = align_others,
    [IR_dot_general] = align_contracted,
};

bool shift_align(struct shift_step *c)
{
    bool (*align_one)(const struct shift_step *, uint32_t, int8_t *) =
        aligns[c->n->op] ? aligns[c->n->op] : align;
    bool is_first = true;
    memset(c->y.axis, -1, sizeof c->y.axis);
    for (uint32_t i = 0; i < c->n->n_in; i++) {
        int8_t axis[IR_MAX_RANK];
        memset(axis, -1, sizeof axis);
        if (!c->in[i])
            continue;
        if (!align_one(c, i, axis) || (!is_first && (memcmp(axis, c->y.axis, sizeof axis) ||
                                                     !shift_has_unit(c->in[i], &c->y.unit))))
            return false;
        c->y.unit = c->in[i]->unit;
        memcpy(c->y.axis, axis, sizeof axis);
        is_first = false;
    }
    return true;
}
