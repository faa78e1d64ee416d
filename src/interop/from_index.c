// SPDX-License-Identifier: Apache-2.0
// Nodes of elements at indices that are data.
#include "interop/from_graph.h"

#include "base/dtype.h"
#include "ir/indexing.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- starts ----

// A node's indices, and where windows begin that are inside of the operand.
struct starts {
    hlo_value at; // i64, or u64 as they were
    hlo_value greatest;
    struct ir_gather g;
    struct ir_window window;
};

static struct starts starts_of(struct hlo_node *n, hlo_value indices)
{
    struct hlo_writer *w = n->w;
    const struct ir_graph *g = n->g;
    struct starts p = {.g = ir_gather_of(n->n->attrs)};
    uint32_t of_y = n->n->n_in > 2 ? ir_operand(g, n->n, 2) : n->n->out;
    p.window = ir_window_of(g->module, n->n->attrs, ir_type_of(g, ir_operand(g, n->n, 0)),
                            ir_type_of(g, ir_operand(g, n->n, 1)), ir_type_of(g, of_y));
    p.at = hlo_dtype(indices) == JOT_U64 ? indices : hlo_convert(w, indices, JOT_I64);
    int64_t greatest[IR_MAX_RANK], count = p.g.n_map, axis = p.at->type->rank - 1;
    for (int k = 0; k < p.g.n_map; k++) {
        int64_t d = p.g.index_map[k];
        greatest[k] = n->in[0]->type->dims[d] - p.window.size[d];
    }
    const struct mlir_type *t = hlo_type(w, hlo_dtype(p.at), 1, &count);
    p.greatest =
        hlo_broadcast(w, hlo_constant(w, t, greatest, 8 * (size_t)count), p.at->type, &axis);
    return p;
}

// Whether each window is inside, by element of y.
static hlo_value are_inside(struct hlo_node *n, const struct starts *p,
                            const struct mlir_type *y)
{
    struct hlo_writer *w = n->w;
    hlo_value inside = hlo_compare(w, "LE", false, p->at, p->greatest);
    if (hlo_dtype(p->at) == JOT_I64)
        inside = hlo_2(w, HLO_(and), inside,
                       hlo_compare(w, "GE", false, p->at, hlo_number(w, p->at->type, 0)));
    int64_t last = p->at->type->rank - 1, axes[IR_MAX_RANK];
    hlo_value yes = hlo_number(w, hlo_type(w, JOT_BOOL, 0, NULL), 1);
    inside = hlo_reduce(w, IR_and, inside, yes, 1, &last);
    for (int i = 0; i < last; i++)
        axes[i] = p->window.index_axis[i];
    return hlo_broadcast(w, inside, y, axes);
}

// ---- gather ----

static void write_gather(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct ir_gather g = ir_gather_of(n->n->attrs);
    struct hlo_attrs a = {0};
    hlo_ints(w, &a, "offset_dims", g.n_offset, g.offset_dims);
    hlo_ints(w, &a, "collapsed_slice_dims", g.n_collapsed, g.collapsed_dims);
    hlo_ints(w, &a, "operand_batching_dims", g.n_batch, g.operand_batch);
    hlo_ints(w, &a, "start_indices_batching_dims", g.n_batch, g.index_batch);
    hlo_ints(w, &a, "start_index_map", g.n_map, g.index_map);
    hlo_int(w, &a, "index_vector_dim", n->in[1]->type->rank - 1);
    hlo_ints(w, &a, "slice_sizes", n->in[0]->type->rank, g.sizes);
    n->out[0] = hlo_op(w, HLO_(gather), n->type, 2, n->in, &a);
    if (ir_mode_moves(g.mode))
        return;
    unsigned char fill[16] = {0};
    jot_dtype d = hlo_dtype(n->out[0]);
    if (g.mode == IR_MODE_FILL)
        ir_fill_element(d, fill);
    struct starts p = starts_of(n, n->in[1]);
    n->out[0] = hlo_select(w, are_inside(n, &p, n->type), n->out[0],
                           hlo_constant(w, n->type, fill, jot_dtype_size(d)));
}

// ---- scatter ----

// A region that gives the second of two numbers.
static struct mlir_block replacer(struct hlo_writer *w, jot_dtype d)
{
    const struct mlir_type *t = hlo_type(w, d, 0, NULL);
    struct hlo_block b = hlo_open(w, 2, (const struct mlir_type *const[]){t, t});
    return hlo_close(w, &b, HLO_(return), 1, &b.block.args[1]);
}

static void write_scatter(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct ir_gather g = ir_gather_of(n->n->attrs);
    struct hlo_attrs a = {0};
    hlo_value in[] = {n->in[0], n->in[1], n->in[2]};
    if (ir_mode_moves(g.mode)) {
        struct starts p = starts_of(n, in[1]);
        in[1] = hlo_op(w, HLO_(clamp), p.at->type, 3,
                       (hlo_value[]){hlo_number(w, p.at->type, 0), p.at, p.greatest}, NULL);
    }
    hlo_ints(w, &a, "update_window_dims", g.n_offset, g.offset_dims);
    hlo_ints(w, &a, "inserted_window_dims", g.n_collapsed, g.collapsed_dims);
    hlo_ints(w, &a, "input_batching_dims", g.n_batch, g.operand_batch);
    hlo_ints(w, &a, "scatter_indices_batching_dims", g.n_batch, g.index_batch);
    hlo_ints(w, &a, "scatter_dims_to_operand_dims", g.n_map, g.index_map);
    hlo_int(w, &a, "index_vector_dim", in[1]->type->rank - 1);
    hlo_bool(w, &a, "unique_indices", g.unique);
    jot_dtype d = hlo_dtype(in[0]);
    struct mlir_block body =
        n->n->op == IR_scatter ? replacer(w, d) : hlo_combiner(w, (enum ir_op)n->n->op, d);
    n->out[0] = hlo_emit(w, HLO_(scatter), 3, in, 1, &n->type, &a, 1, &body)->results[0];
}

// ---- windows at one index ----

// Starts are of one type.
static void write_dynamic(struct hlo_node *n, enum mlir_code code, uint32_t first,
                          const struct hlo_attrs *a)
{
    hlo_value in[IR_MAX_RANK + 2];
    bool are_mixed = false;
    for (uint32_t i = 0; i < n->n->n_in; i++) {
        in[i] = n->in[i];
        are_mixed = are_mixed || (i > first && hlo_dtype(in[i]) != hlo_dtype(in[first]));
    }
    for (uint32_t i = first; i < n->n->n_in && are_mixed; i++)
        in[i] = hlo_convert(n->w, in[i], JOT_I64);
    n->out[0] = hlo_op(n->w, code, n->type, n->n->n_in, in, a);
}

void hlo_index(struct hlo_node *n)
{
    struct hlo_attrs a = {0};
    switch (n->n->op) {
    case IR_dynamic_slice:
        hlo_ints(n->w, &a, "slice_sizes", n->type->rank, n->type->dims);
        write_dynamic(n, HLO_(dynamic_slice), 1, &a);
        break;
    case IR_dynamic_update_slice:
        write_dynamic(n, HLO_(dynamic_update_slice), 2, NULL);
        break;
    case IR_gather:
        write_gather(n);
        break;
    default:
        write_scatter(n);
    }
}
