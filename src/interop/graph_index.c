// SPDX-License-Identifier: Apache-2.0
// Indices that are data, read: gather, dynamic_slice; and dynamic_update_slice.
#include "interop/to_graph.h"

#include "ir/indexing.h"

#include "jot/indexing.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

ir_id graph_indices(struct graph_op *g, ir_id indices, const char *batch_name,
                    struct ir_gather *out)
{
    struct ir_type type = ir_type_in(g->b, indices);
    int rank = type.rank, vector = (int)mlir_int(g->op, "index_vector_dim", 0);
    size_t n;
    const int64_t *batch = mlir_ints(g->op, batch_name, &n);
    int64_t *moved = arena_array(g->frame->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        moved[i] = batch[i] - (batch[i] > vector);
    out->index_batch = moved;
    out->n_batch = (int)n;
    if (vector < 0 || vector > rank) {
        graph_refuse(g, "index_vector_dim is %d of %d axes", vector, rank);
        return IR_NONE;
    }
    int64_t dims[IR_MAX_RANK + 1], axes[IR_MAX_RANK];
    if (vector == rank) {
        for (int i = 0; i < rank; i++)
            dims[i] = ir_dims(g->b->module, type)[i];
        dims[rank] = 1;
        return ir_reshape(g->b, indices, rank + 1, dims);
    }
    for (int i = 0, at = 0; i < rank; i++)
        if (i != vector)
            axes[at++] = i;
    axes[rank - 1] = vector;
    return ir_transpose(g->b, indices, axes);
}

static const int64_t *list(const struct graph_op *g, const char *name, int *out_n)
{
    size_t n;
    const int64_t *numbers = mlir_ints(g->op, name, &n);
    *out_n = (int)n;
    return numbers;
}

static void convert_gather(struct graph_op *g)
{
    struct ir_gather d = {.mode = IR_MODE_CLIP};
    int n_batch, n_sizes, rank = ir_type_in(g->b, g->in[0]).rank;
    d.offset_dims = list(g, "offset_dims", &d.n_offset);
    d.collapsed_dims = list(g, "collapsed_slice_dims", &d.n_collapsed);
    d.operand_batch = list(g, "operand_batching_dims", &n_batch);
    d.index_map = list(g, "start_index_map", &d.n_map);
    d.sizes = list(g, "slice_sizes", &n_sizes);
    ir_id indices = graph_indices(g, g->in[1], "start_indices_batching_dims", &d);
    if (n_sizes != rank || n_batch != d.n_batch)
        graph_refuse(g, "%d slice_sizes of %d axes, %d and %d batching dimensions", n_sizes,
                     rank, n_batch, d.n_batch);
    else
        g->out[0] = ir_gather(g->b, g->in[0], indices, &d);
}

static void convert_dynamic_slice(struct graph_op *g)
{
    int n, rank = ir_type_in(g->b, g->in[0]).rank;
    const int64_t *sizes = list(g, "slice_sizes", &n);
    if (n != rank || (int)g->op->n_operands != rank + 1)
        graph_refuse(g, "%d sizes and %d starts of %d axes", n, (int)g->op->n_operands - 1,
                     rank);
    else
        g->out[0] = rank ? ir_dynamic_slice(g->b, g->in[0], g->in + 1, sizes) : g->in[0];
}

static void convert_dynamic_update_slice(struct graph_op *g)
{
    int rank = ir_type_in(g->b, g->in[0]).rank;
    if ((int)g->op->n_operands != rank + 2)
        graph_refuse(g, "%d starts of %d axes", (int)g->op->n_operands - 2, rank);
    else
        g->out[0] =
            rank ? ir_dynamic_update_slice(g->b, g->in[0], g->in[1], g->in + 2) : g->in[1];
}

static const struct {
    enum mlir_code code;
    graph_convert *convert;
} indexed[] = {
    {HLO_(gather), convert_gather},
    {HLO_(dynamic_slice), convert_dynamic_slice},
    {HLO_(dynamic_update_slice), convert_dynamic_update_slice},
};

ir_id graph_taken(ir_id x, ir_id numbers)
{
    jot_value v = jot_take_values(trace_value(x, false), trace_value(numbers, false), 0);
    return trace_is_error(v) ? IR_NONE : trace_strong(v);
}

graph_convert *graph_index_find(enum mlir_code code)
{
    for (size_t i = 0; i < sizeof indexed / sizeof *indexed; i++)
        if (indexed[i].code == code)
            return indexed[i].convert;
    return NULL;
}
