// SPDX-License-Identifier: Apache-2.0
// Cuts scatter_adds of many updates into few elements into parts that run side by side.
//
//     y = scatter_add(x, i[N], u[N])    becomes    p = scatter_add(-0[P, M], i[P, N/P], u[P, N/P])
//                                                  y = x + ((p0 + p1) + (p2 + p3))
//
// The value of scatter_add says so already (ir_scatter_parts): nothing is rounded differently.
#include "passes/expand/scatter_parts.h"

#include "ir/indexing.h"

ir_id scatter_cut(struct ir_builder *b, ir_id x, int axis, int64_t start, int64_t limit)
{
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    memcpy(limits, ir_dims(b->module, t), (size_t)t.rank * sizeof *limits);
    starts[axis] = start;
    limits[axis] = limit;
    return ir_slice(b, x, starts, limits, NULL);
}

// The first parts * length elements along the axis as two axes.
static ir_id in_parts(struct ir_builder *b, ir_id x, int axis, int64_t parts, int64_t length)
{
    int64_t dims[IR_MAX_RANK + 1];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    for (int i = 0; i <= t.rank; i++)
        dims[i] = i == axis       ? parts
                  : i == axis + 1 ? length
                                  : ir_dims(b->module, t)[i - (i > axis)];
    return ir_reshape(b, scatter_cut(b, x, axis, 0, parts * length), t.rank + 1, dims);
}

ir_id scatter_sum_pairs(struct ir_builder *b, ir_id x, int64_t parts)
{
    ir_id sum[64];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    for (int64_t p = 0; p < parts; p++)
        sum[p] = ir_reshape(b, scatter_cut(b, x, 0, p, p + 1), t.rank - 1,
                            ir_dims(b->module, t) + 1);
    for (; parts > 1; parts /= 2)
        for (int64_t p = 0; p < parts / 2; p++)
            sum[p] = ir_add(b, sum[2 * p], sum[2 * p + 1]);
    return sum[0];
}

ir_id scatter_in_parts(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                       int64_t parts)
{
    struct ir_type x = ir_type_in(b, in[0]);
    struct ir_gather g = ir_gather_of(n->attrs);
    struct ir_window w =
        ir_window_of(b->module, n->attrs, x, ir_type_in(b, in[1]), ir_type_in(b, in[2]));
    int64_t whole[IR_MAX_RANK + 1] = {parts}, zero = 0;
    int64_t offset[IR_MAX_RANK], collapsed[IR_MAX_RANK], map[IR_MAX_RANK];
    int axis = w.index_axis[0];
    int64_t total = ir_dims(b->module, ir_type_in(b, in[1]))[0], length = total / parts;
    for (int i = 0; i < x.rank; i++)
        whole[i + 1] = ir_dims(b->module, x)[i];
    for (int i = 0; i < g.n_offset; i++)
        offset[i] = g.offset_dims[i] + (g.offset_dims[i] > axis);
    for (int i = 0; i < g.n_collapsed; i++)
        collapsed[i] = g.collapsed_dims[i] + 1;
    for (int i = 0; i < g.n_map; i++)
        map[i] = g.index_map[i] + 1;
    struct ir_gather of_parts = g;
    of_parts.offset_dims = offset;
    of_parts.collapsed_dims = collapsed;
    of_parts.index_map = map;
    of_parts.n_batch = 1;
    of_parts.operand_batch = of_parts.index_batch = &zero;
    struct ir_type t = ir_type_make(b->module, ir_dtype(x), x.rank + 1, whole);
    ir_id sums =
        ir_scatter(b, IR_scatter_add, ir_full(b, t, -0.0), in_parts(b, in[1], 0, parts, length),
                   in_parts(b, in[2], axis, parts, length), &of_parts);
    ir_id y = ir_add(b, in[0], scatter_sum_pairs(b, sums, parts));
    if (parts * length == total)
        return y;
    return ir_scatter(b, IR_scatter_add, y, scatter_cut(b, in[1], 0, parts * length, total),
                      scatter_cut(b, in[2], axis, parts * length, total), &g);
}
