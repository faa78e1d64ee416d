// SPDX-License-Identifier: Apache-2.0
#include "ir/origin.h"

#include "ir/indexing.h"

// An axis of the result of n, and operand i, x.
struct ask {
    const struct ir_graph *g;
    const struct ir_node *n;
    uint32_t i;
    int axis, rank;           // rank: of x
    const int64_t *dims, *to; // of x and of the result
};

static const int64_t *list(const struct ask *a, enum ir_key key, int *n)
{
    return ir_attr_ints(a->n->attrs, key, n);
}
static int64_t at_axis(const struct ask *a, enum ir_key key)
{
    int n;
    return list(a, key, &n)[a->axis];
}

// The place of x in a list, or -1.
static int find(const int64_t *list, int n, int64_t x)
{
    while (n-- > 0)
        if (list[n] == x)
            return n;
    return -1;
}

static bool along(struct ir_origin *out, int axis)
{
    *out = (struct ir_origin){axis, 1, 0};
    return true;
}

// The axis with the same number from the end, unless it is broadcast.
static bool same(const struct ask *a, struct ir_origin *out)
{
    int k = a->axis - (ir_rank_of(a->g, a->n->out) - a->rank);
    return along(out, k >= 0 && a->dims[k] == a->to[a->axis] ? k : -1);
}

static bool broadcast(const struct ask *a, struct ir_origin *out)
{
    int n, k = find(list(a, IR_KEY_axes, &n), a->rank, a->axis);
    return along(out, k >= 0 && a->dims[k] == a->to[a->axis] ? k : -1);
}

static bool reshaped(const struct ask *a, struct ir_origin *out)
{
    int64_t before = 1, wanted = 1;
    for (int k = 0; k < a->axis; k++)
        wanted *= a->to[k];
    for (int k = 0; k < a->rank; before *= a->dims[k++])
        if (before == wanted && a->dims[k] == a->to[a->axis])
            return along(out, k);
    return false;
}

static bool transposed(const struct ask *a, struct ir_origin *out)
{
    return along(out, (int)at_axis(a, IR_KEY_axes));
}

static bool reversed(const struct ask *a, struct ir_origin *out)
{
    int n;
    const int64_t *axes = list(a, IR_KEY_axes, &n);
    along(out, a->axis);
    if (find(axes, n, a->axis) >= 0)
        *out = (struct ir_origin){a->axis, -1, a->dims[a->axis] - 1};
    return true;
}

static bool sliced(const struct ask *a, struct ir_origin *out)
{
    *out = (struct ir_origin){a->axis, at_axis(a, IR_KEY_strides), at_axis(a, IR_KEY_starts)};
    return true;
}

static bool padded(const struct ask *a, struct ir_origin *out)
{
    if (a->i > 0)
        return along(out, -1);
    *out = (struct ir_origin){a->axis, 1, -at_axis(a, IR_KEY_low)};
    return at_axis(a, IR_KEY_interior) == 0;
}

static bool concatenated(const struct ask *a, struct ir_origin *out)
{
    along(out, a->axis);
    for (uint32_t i = 0; i < a->i && ir_attr_int(a->n->attrs, IR_KEY_axis) == a->axis; i++)
        out->offset -= ir_dims_of(a->g, ir_operand(a->g, a->n, i))[a->axis];
    return true;
}

static bool sheared(const struct ask *a, struct ir_origin *out)
{
    return a->axis != ir_attr_int(a->n->attrs, IR_KEY_axis) &&
           a->axis != ir_attr_int(a->n->attrs, IR_KEY_along) && same(a, out);
}

static bool sliced_by_data(const struct ask *a, struct ir_origin *out)
{
    return a->i > 0 ? along(out, -1) : a->dims[a->axis] == a->to[a->axis] && same(a, out);
}

static bool gathered(const struct ask *a, struct ir_origin *out)
{
    ir_id x = ir_operand(a->g, a->n, 0), indices = ir_operand(a->g, a->n, 1);
    struct ir_window w = ir_window_of(a->g->module, a->n->attrs, ir_type_of(a->g, x),
                                      ir_type_of(a->g, indices), ir_type_of(a->g, a->n->out));
    for (int k = 0; k < w.index_rank && a->i == 1; k++)
        if (w.index_axis[k] == a->axis)
            return along(out, k);
    for (int k = 0; k < w.rank && a->i == 0; k++)
        if (w.along[k] == a->axis)
            return (w.is_batch[k] || (w.component[k] < 0 && w.size[k] == a->dims[k])) &&
                   along(out, k);
    return along(out, -1);
}

static bool reduced(const struct ask *a, struct ir_origin *out)
{
    int n, k = 0, kept = -1;
    const int64_t *axes =
        list(a, ir_is_arg((enum ir_op)a->n->op) ? IR_KEY_axis : IR_KEY_axes, &n);
    for (;; k++)
        if (find(axes, n, k) < 0 && ++kept == a->axis)
            return along(out, k);
}

static bool running(const struct ask *a, struct ir_origin *out)
{
    return a->axis != ir_attr_int(a->n->attrs, IR_KEY_axis) && same(a, out);
}

// The axes of a result: those of both operands, then what is left of the first and of the second.
static bool contracted(const struct ask *a, struct ir_origin *out)
{
    int n, n_contract, next;
    const int64_t *batch = list(a, a->i ? IR_KEY_rhs_batch : IR_KEY_lhs_batch, &n),
                  *contract =
                      list(a, a->i ? IR_KEY_rhs_contract : IR_KEY_lhs_contract, &n_contract);
    next = n + (a->i ? ir_rank_of(a->g, ir_operand(a->g, a->n, 0)) - n - n_contract : 0);
    if (a->axis < n)
        return along(out, (int)batch[a->axis]);
    for (int k = 0; k < a->rank; k++)
        if (find(batch, n, k) < 0 && find(contract, n_contract, k) < 0 && next++ == a->axis)
            return along(out, k);
    return along(out, -1);
}

typedef bool origin_rule(const struct ask *a, struct ir_origin *out);
static origin_rule *const by_class[] = {
    [IR_CLASS_MAP] = same,           [IR_CLASS_REDUCE] = reduced,
    [IR_CLASS_ARG] = reduced,        [IR_CLASS_CONTRACT] = contracted,
    [IR_CLASS_CUMULATIVE] = running, [IR_CLASS_HINT] = same,
    [IR_CLASS_EFFECT] = NULL,
};
static origin_rule *const by_op[IR_OP_COUNT] = {
    [IR_broadcast_in_dim] = broadcast,
    [IR_reshape] = reshaped,
    [IR_transpose] = transposed,
    [IR_rev] = reversed,
    [IR_slice] = sliced,
    [IR_pad] = padded,
    [IR_concatenate] = concatenated,
    [IR_shear] = sheared,
    [IR_dynamic_slice] = sliced_by_data,
    [IR_gather] = gathered,
    [IR_pvary] = same,
};

bool ir_origin_of(const struct ir_graph *g, const struct ir_node *n, uint32_t i, int axis,
                  struct ir_origin *out)
{
    ir_id x = ir_operand(g, n, i);
    struct ask a = {g, n, i, axis, ir_rank_of(g, x), ir_dims_of(g, x), ir_dims_of(g, n->out)};
    origin_rule *rule = by_op[n->op] ? by_op[n->op] : by_class[ir_op_class((enum ir_op)n->op)];
    return rule && rule(&a, out);
}
