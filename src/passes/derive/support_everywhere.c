// SPDX-License-Identifier: Apache-2.0
// Supports that are known to be everywhere (support.c).
//
//     p = pad true false {low=[1]}; q = reduce_or p      q is true
//
// Of a bool it follows one box in which all elements are true, back to constants.  Zeros that a layout
// makes, as those around a part of a stack, mostly meet others in a sum.
#include "passes/derive/support_rules.h"

enum { LOOKS = 64 }; // nodes that are looked at for one support

struct box {
    bool is_known; // and not empty
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK];
};

struct finder {
    const struct ir_graph *g;
    int looks; // left
};

static struct box whole(const struct ir_graph *g, ir_id v)
{
    struct box x = {.is_known = true};
    for (int i = 0; i < ir_rank_of(g, v); i++) {
        x.high[i] = ir_dims_of(g, v)[i];
        x.is_known &= x.high[i] > 0;
    }
    return x;
}

static bool is_whole(const struct ir_graph *g, ir_id v, const struct box *x)
{
    for (int i = 0; i < ir_rank_of(g, v); i++)
        if (x->low[i] != 0 || x->high[i] != ir_dims_of(g, v)[i])
            return false;
    return x->is_known;
}

static bool is_true(const struct ir_node *n)
{
    const struct ir_field *data = ir_field_find(n->attrs, IR_KEY_data);
    for (uint32_t i = 0; i < data->count; i++)
        if (!((const uint8_t *)data->bytes)[i])
            return false;
    return true;
}

static struct box cut(struct box x, const struct box *y, int rank)
{
    x.is_known &= y->is_known;
    for (int i = 0; i < rank; i++) {
        x.low[i] = x.low[i] > y->low[i] ? x.low[i] : y->low[i];
        x.high[i] = x.high[i] < y->high[i] ? x.high[i] : y->high[i];
        x.is_known &= x.low[i] < x.high[i];
    }
    return x;
}

// A box of what is in one of the two.
static struct box joined(struct box x, const struct box *y, int rank)
{
    int differ = 0, axis = 0;
    bool is_inside = x.is_known && y->is_known;
    for (int i = 0; i < rank; i++) {
        bool same = x.low[i] == y->low[i] && x.high[i] == y->high[i];
        differ += !same;
        axis = same ? axis : i;
        is_inside = is_inside && y->low[i] <= x.low[i] && x.high[i] <= y->high[i];
    }
    if (!x.is_known || is_inside)
        return *y;
    if (y->is_known && differ == 1 && x.low[axis] <= y->high[axis] &&
        y->low[axis] <= x.high[axis]) {
        x.low[axis] = x.low[axis] < y->low[axis] ? x.low[axis] : y->low[axis];
        x.high[axis] = x.high[axis] > y->high[axis] ? x.high[axis] : y->high[axis];
    }
    return x;
}

static struct box find_box(struct finder *f, ir_id v);

// That of an operand, spread to the result.
static struct box spread(struct finder *f, const struct ir_node *n, uint32_t i)
{
    ir_id x = ir_operand(f->g, n, i);
    struct box in = find_box(f, x), out = whole(f->g, n->out);
    int rank = ir_rank_of(f->g, x);
    out.is_known = in.is_known && (rank == 0 || rank == ir_rank_of(f->g, n->out));
    for (int a = 0; out.is_known && a < rank; a++)
        if (ir_dims_of(f->g, x)[a] == ir_dims_of(f->g, n->out)[a]) {
            out.low[a] = in.low[a];
            out.high[a] = in.high[a];
        }
    return out;
}

// Axes of extent 1 come and go.
static struct box reshaped(const struct ir_graph *g, ir_id x, ir_id y, const struct box *in)
{
    struct box out = whole(g, y);
    int n_x = ir_rank_of(g, x), n_y = ir_rank_of(g, y), i = 0;
    for (int k = 0; k < n_y; k++) {
        if (ir_dims_of(g, y)[k] == 1)
            continue;
        while (i < n_x && ir_dims_of(g, x)[i] == 1)
            i++;
        if (i == n_x || ir_dims_of(g, x)[i] != ir_dims_of(g, y)[k])
            return (struct box){.is_known = false};
        out.low[k] = in->low[i];
        out.high[k] = in->high[i++];
    }
    return out;
}

static struct box moved(const struct ir_graph *g, const struct ir_node *n, const struct box *in)
{
    int rank = ir_rank_of(g, n->out), count;
    enum ir_key from = n->op == IR_pad ? IR_KEY_low : IR_KEY_starts;
    const int64_t *start = ir_attr_ints(n->attrs, from, &count);
    const int64_t *step =
        ir_attr_ints(n->attrs, n->op == IR_pad ? IR_KEY_interior : IR_KEY_strides, &count);
    struct box out = *in, all = whole(g, n->out);
    for (int i = 0; i < rank; i++) {
        int64_t by = n->op == IR_pad ? start[i] : -start[i];
        out.low[i] += by;
        out.high[i] += by;
        out.is_known &= step[i] == (n->op == IR_slice);
    }
    return cut(out, &all, rank);
}

// broadcast_in_dim puts axes, reduce_or takes some away, transpose orders them.
static struct box with_axes(const struct ir_graph *g, const struct ir_node *n,
                            const struct box *in)
{
    ir_id x = ir_operand(g, n, 0);
    int count, next = 0, rank = ir_rank_of(g, x);
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    struct box out = whole(g, n->out);
    for (int i = 0; i < rank; i++) {
        int to = n->op == IR_broadcast_in_dim ? (int)axes[i] : next, at = i;
        bool is_gone = false;
        for (int k = 0; n->op == IR_reduce_or && k < count; k++)
            is_gone |= axes[k] == i;
        if (n->op == IR_transpose)
            at = (int)axes[i];
        next += !is_gone;
        if (is_gone || ir_dims_of(g, x)[at] != ir_dims_of(g, n->out)[to])
            continue;
        out.low[to] = in->low[at];
        out.high[to] = in->high[at];
    }
    return out;
}

static struct box concatenated(struct finder *f, const struct ir_node *n)
{
    struct box out = {.is_known = false};
    int rank = ir_rank_of(f->g, n->out);
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis), at = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct box x = find_box(f, ir_operand(f->g, n, i));
        x.low[axis] += at;
        x.high[axis] += at;
        out = joined(out, &x, rank);
        at += ir_dims_of(f->g, ir_operand(f->g, n, i))[axis];
    }
    return out;
}

static struct box find_box(struct finder *f, ir_id v)
{
    const struct ir_graph *g = f->g;
    const struct ir_node *n = ir_node_of(g, v);
    struct box none = {.is_known = false}, x, y;
    if (--f->looks < 0)
        return none;
    switch (n->op) {
    case IR_const:
        return is_true(n) ? whole(g, v) : none;
    case IR_and:
    case IR_or:
        x = spread(f, n, 0);
        y = spread(f, n, 1);
        return n->op == IR_and ? cut(x, &y, ir_rank_of(g, v)) : joined(x, &y, ir_rank_of(g, v));
    case IR_select:
        x = spread(f, n, 1);
        y = spread(f, n, 2);
        return cut(x, &y, ir_rank_of(g, v));
    case IR_concatenate:
        return concatenated(f, n);
    case IR_reshape:
    case IR_pad:
    case IR_slice:
    case IR_broadcast_in_dim:
    case IR_reduce_or:
    case IR_transpose:
        break;
    default:
        return none;
    }
    ir_id in = ir_operand(g, n, 0);
    x = find_box(f, in);
    if (!x.is_known)
        return none;
    if (n->op == IR_reshape)
        return is_whole(g, in, &x) ? whole(g, v) : reshaped(g, in, v, &x);
    if (n->op == IR_slice && is_whole(g, in, &x))
        return whole(g, v);
    return n->op == IR_pad || n->op == IR_slice ? moved(g, n, &x) : with_axes(g, n, &x);
}

bool support_is_everywhere(const struct ir_graph *g, ir_id where)
{
    struct finder f = {g, LOOKS};
    struct box x = find_box(&f, where);
    return is_whole(g, where, &x);
}
