// SPDX-License-Identifier: Apache-2.0
#include "ir/origin.h"

#include "ir/index_map.h"
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

// The index of x in a list, or -1.
static int index_in(const int64_t *list, int n, int64_t x)
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

// What one coordinate of the operand is made of, and that alone.
static bool mapped(const struct ask *a, struct ir_origin *out)
{
    struct ir_index_map map;
    ir_index_map_of(a->g, a->n, a->i, &map);
    along(out, -1);
    for (int d = 0; d < map.rank; d++) {
        const struct ir_index_axis *k = &map.axes[d];
        for (int t = 0; t < k->n_terms; t++) {
            if (k->axis[t] != a->axis)
                continue;
            if (k->n_terms > 1 || k->spread > 1 || out->axis >= 0)
                return false;
            *out = (struct ir_origin){d, k->step[0], k->offset};
        }
    }
    return true;
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
        if (index_in(axes, n, k) < 0 && ++kept == a->axis)
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
        if (index_in(batch, n, k) < 0 && index_in(contract, n_contract, k) < 0 &&
            next++ == a->axis)
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
    [IR_reshape] = reshaped,
    [IR_dynamic_slice] = sliced_by_data,
    [IR_gather] = gathered,
    [IR_pvary] = same,
};

bool ir_origin_of(const struct ir_graph *g, const struct ir_node *n, uint32_t i, int axis,
                  struct ir_origin *out)
{
    ir_id x = ir_operand(g, n, i);
    struct ask a = {g, n, i, axis, ir_rank_of(g, x), ir_dims_of(g, x), ir_dims_of(g, n->out)};
    if (ir_op_get((enum ir_op)n->op)->index)
        return mapped(&a, out);
    origin_rule *rule = by_op[n->op] ? by_op[n->op] : by_class[ir_op_class((enum ir_op)n->op)];
    return rule && rule(&a, out);
}
