// SPDX-License-Identifier: Apache-2.0
// Updates of which no two are of one element, as their indices tell:
//
//     scatter_add x (concatenate (iota, labels)) u        row i has one update, whatever its label is
//
// Along each axis that counts windows a component of the indices grows by the same number and stays inside of the
// operand, where no mode moves it.  Its window is one element wide.
#include "ir/indexing.h"
#include "passes/analysis/affine.h"
#include "passes/transform.h"

// Component k of the indices, with its axis of one element where there are several.
static ir_id component_of(const struct ir_builder *b, ir_id indices, const struct ir_gather *g,
                          int k)
{
    const struct ir_node *n = ir_node_in(b, indices);
    int last = ir_type_in(b, indices).rank - 1;
    if (g->n_map == 1)
        return indices;
    if (n->op != IR_concatenate || ir_attr_int(n->attrs, IR_KEY_axis) != last ||
        (int)n->n_in != g->n_map)
        return IR_NONE;
    return ir_operand(b->graph, n, (uint32_t)k); // of one element each, for there are as many
}

static bool is_wider(const struct ir_builder *b, ir_id x, ir_id y)
{
    return dtype_get(ir_dtype(ir_type_in(b, x)))->bits >=
           dtype_get(ir_dtype(ir_type_in(b, y)))->bits;
}

// The rows of numbers that v repeats along all axes but this one, of which its elements are others.
static ir_id rows_along(const struct ir_builder *b, ir_id v, int axis, int64_t length)
{
    for (;;) {
        const struct ir_node *n = ir_node_in(b, v);
        struct ir_type t = ir_type_in(b, v);
        if (t.rank == 1)
            return ir_dims(b->module, t)[0] == length ? v : IR_NONE;
        ir_id x = n->n_in == 1 ? ir_operand(b->graph, n, 0) : IR_NONE;
        int count, at = -1;
        if (n->op == IR_reshape && ir_count(b->module, t) == length) {
            at = 0;
            while (at < ir_type_in(b, x).rank &&
                   ir_dims(b->module, ir_type_in(b, x))[at] != length)
                at++;
        } else if (n->op == IR_broadcast_in_dim) {
            const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
            for (int i = 0; i < count; i++)
                at = axes[i] == axis && ir_dims(b->module, ir_type_in(b, x))[i] == length ? i
                                                                                          : at;
        } else if (n->op == IR_convert && is_wider(b, v, x)) {
            at = axis;
        }
        if (at < 0)
            return IR_NONE;
        v = x;
        axis = at;
    }
}

// Whether the indices that v has along the axis are all different, and are below the extent.
static bool grows_along(const struct ir_builder *b, ir_id v, int axis, int64_t length,
                        int64_t extent)
{
    const struct ir_node *n = v == IR_NONE ? NULL : ir_node_in(b, v);
    struct ir_scan rows = {.length = length};
    struct affine a;
    if (n && n->op == IR_iota && ir_type_in(b, v).rank > 1)
        return ir_attr_int(n->attrs, IR_KEY_axis) == axis && length <= extent;
    v = n ? rows_along(b, v, axis, length) : IR_NONE;
    if (v == IR_NONE || !affine_rows(&(struct affine_loop){.b = b, .scan = &rows}, v, &a))
        return false;
    int64_t last = a.start + a.step * (length - 1);
    return a.step != 0 && a.start >= 0 && a.start < extent && last >= 0 && last < extent;
}

static bool is_unique(const struct ir_builder *b, const struct ir_gather *g,
                      const struct ir_window *w, ir_id operand, ir_id indices)
{
    const int64_t *x = ir_dims(b->module, ir_type_in(b, operand));
    const int64_t *dims = ir_dims(b->module, ir_type_in(b, indices));
    for (int a = 0; a < w->index_rank; a++) {
        bool is = dims[a] == 1;
        for (int i = 0; i < g->n_batch; i++)
            is |= g->index_batch[i] == a;
        for (int d = 0; d < w->rank && !is; d++)
            is = w->component[d] >= 0 && w->size[d] == 1 &&
                 grows_along(b, component_of(b, indices, g, w->component[d]), a, dims[a], x[d]);
        if (!is)
            return false;
    }
    return true;
}

ir_id pass_unique_updates(struct ir_builder *b, const struct ir_node *n, const ir_id *in)
{
    struct ir_gather g = ir_gather_of(n->attrs);
    if (g.unique)
        return IR_NONE;
    struct ir_window w = ir_window_of(b->module, n->attrs, ir_type_in(b, in[0]),
                                      ir_type_in(b, in[1]), ir_type_in(b, in[2]));
    if (!is_unique(b, &g, &w, in[0], in[1]))
        return IR_NONE;
    g.unique = true;
    return ir_scatter(b, (enum ir_op)n->op, in[0], in[1], in[2], &g);
}
