// SPDX-License-Identifier: Apache-2.0
// For GPUs: products of a batch of matrices whose sums are long and whose results are few tiles.
//
//     dot x y : f32[16, 8, 8] over 200000     becomes     reduce_sum (dot x y : f32[16, 160, 8, 8] over 1250)
//
// The library cuts the sum of a single product into parts, and gives each tile of a batch to one block of threads,
// which goes through the whole sum.  The axis is cut where it lies, so that parts are a batch of the same memory.
// After all differentiation, of products for the library.
#include "ir/control.h"
#include "ir/cost.h"
#include "passes/body.h"
#include "passes/passes.h"

// A product in one type, and the axis of its sum that is cut: which of those that are contracted.
struct long_product {
    struct ir_dot d;
    int axis;
    int64_t parts;
};

static int64_t longest_axis(const struct ir_graph *g, const struct ir_node *n,
                            const struct ir_dot *d, int *out)
{
    const int64_t *dims = ir_dims_of(g, ir_operand(g, n, 0));
    *out = 0;
    for (int i = 1; i < d->n_contract; i++)
        if (dims[d->lhs_contract[i]] > dims[d->lhs_contract[*out]])
            *out = i;
    return dims[d->lhs_contract[*out]];
}

static int64_t tiles_of(int64_t rows, int64_t columns)
{
    return ((rows + COST_LIBRARY_TILE - 1) / COST_LIBRARY_TILE) *
           ((columns + COST_LIBRARY_TILE - 1) / COST_LIBRARY_TILE);
}

static bool is_even(int64_t extent, int64_t parts)
{
    return extent % parts == 0 && extent / parts >= COST_LONG_SUM_PART;
}

// How many parts keep a GPU busy with one matrix, or as many as there are; 1: the axis has none that are even.
static int64_t parts_of(int64_t extent, int64_t tiles)
{
    int64_t wanted = (COST_MULTIPROCESSORS + tiles - 1) / tiles;
    for (int64_t parts = wanted; parts <= 8 * wanted; parts++)
        if (is_even(extent, parts))
            return parts;
    while (--wanted > 1 && !is_even(extent, wanted))
        ;
    return wanted > 1 ? wanted : 1;
}

static bool is_long(const struct ir_graph *g, const struct ir_node *n, struct long_product *p)
{
    jot_dtype dtype = ir_dtype_of(g, n->out);
    if (n->op != IR_dot_general || !dtype_is_inexact(dtype) || dtype_is_half(dtype) ||
        !cost_is_product(g, n, dtype, true))
        return false;
    struct ir_dot *d = &p->d;
    d->lhs_batch = ir_attr_ints(n->attrs, IR_KEY_lhs_batch, &d->n_batch);
    d->rhs_batch = ir_attr_ints(n->attrs, IR_KEY_rhs_batch, &d->n_batch);
    d->lhs_contract = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &d->n_contract);
    d->rhs_contract = ir_attr_ints(n->attrs, IR_KEY_rhs_contract, &d->n_contract);
    d->precision = (int)ir_attr_int_or(n->attrs, IR_KEY_precision, 0);
    int64_t batch = 1, terms = 1, sizes[2];
    const int64_t *dims = ir_dims_of(g, ir_operand(g, n, 0));
    for (int i = 0; i < d->n_batch; i++)
        batch *= dims[d->lhs_batch[i]];
    for (int i = 0; i < d->n_contract; i++)
        terms *= dims[d->lhs_contract[i]];
    for (uint32_t i = 0; i < 2; i++) {
        sizes[i] = ir_count_of(g, ir_operand(g, n, i)) / batch / terms;
        if (ir_rank_of(g, ir_operand(g, n, i)) == IR_MAX_RANK)
            return false;
    }
    int64_t tiles = tiles_of(sizes[0], sizes[1]);
    if (batch == 1 || terms < COST_LONG_SUM || batch * tiles > COST_MULTIPROCESSORS / 2 ||
        ir_rank_of(g, n->out) == IR_MAX_RANK)
        return false;
    p->parts = parts_of(longest_axis(g, n, d, &p->axis), tiles);
    return p->parts > 1;
}

// x with the axis in so many parts, in the memory that x has.
static ir_id cut(struct ir_builder *b, ir_id x, int64_t axis, int64_t parts)
{
    const struct ir_node *n = ir_node_in(b, x);
    struct ir_type t = ir_type_in(b, x);
    int64_t order[IR_MAX_RANK], dims[IR_MAX_RANK];
    if (n->op == IR_transpose) {
        int count, at = 0;
        const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
        for (int i = 0; i < count; i++) {
            order[at++] = axes[i] + (axes[i] > axes[axis]);
            if (i == axis)
                order[at++] = axes[i] + 1;
        }
        ir_id y = cut(b, ir_operand(b->graph, n, 0), axes[axis], parts);
        return ir_transpose(b, y, order);
    }
    for (int i = 0, at = 0; i < t.rank; i++) {
        int64_t dim = ir_dims(b->module, t)[i];
        dims[at++] = i == axis ? parts : dim;
        if (i == axis)
            dims[at++] = dim / parts;
    }
    return ir_reshape(b, x, t.rank + 1, dims);
}

// Axes of an operand, before and behind the one that is cut.
static void move_axes(int n, const int64_t *axes, int64_t axis, int64_t *out)
{
    for (int i = 0; i < n; i++)
        out[i] = axes[i] + (axes[i] >= axis);
}

static ir_id multiply(struct ir_builder *b, const struct long_product *p, ir_id x, ir_id y)
{
    const struct ir_dot *d = &p->d;
    const int64_t *batch[] = {d->lhs_batch, d->rhs_batch};
    const int64_t *contract[] = {d->lhs_contract, d->rhs_contract};
    int64_t batches[2][IR_MAX_RANK], contracts[2][IR_MAX_RANK];
    ir_id in[] = {x, y};
    for (int i = 0; i < 2; i++) {
        int64_t axis = contract[i][p->axis];
        move_axes(d->n_batch, batch[i], axis, batches[i]);
        move_axes(d->n_contract, contract[i], axis,
                  contracts[i]); // the cut one: its second half
        batches[i][d->n_batch] = axis;
        in[i] = cut(b, in[i], axis, p->parts);
    }
    struct ir_dot of_parts = {.n_batch = d->n_batch + 1,
                              .n_contract = d->n_contract,
                              .lhs_batch = batches[0],
                              .rhs_batch = batches[1],
                              .lhs_contract = contracts[0],
                              .rhs_contract = contracts[1],
                              .precision = d->precision};
    ir_id z = ir_dot_general(b, in[0], in[1], &of_parts);
    return ir_reduce(b, IR_reduce_sum, z, 1, (int64_t[]){d->n_batch});
}

static void copy_cut(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                     ir_id *map)
{
    struct long_product p = {0};
    if (is_long(g, n, &p)) {
        b->where = n->where;
        map[n->out] = multiply(b, &p, map[ir_operand(g, n, 0)], map[ir_operand(g, n, 1)]);
    } else if (ir_has_bodies((enum ir_op)n->op)) {
        body_copy_rewritten(b, g, n, map, pass_long_products);
    } else {
        pass_copy_node(b, g, n, map);
    }
}

uint32_t pass_long_products(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_LONG_PRODUCTS, copy_cut);
}
