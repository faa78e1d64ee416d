// SPDX-License-Identifier: Apache-2.0
// select_and_scatter by any bodies.
#include "interop/graph_fold.h"

#include "base/dtype.h"
#include "ir/indexing.h"

#include "jot/shapes.h"

// The windows on x and on the flat indices of its elements, element after element.
struct windows {
    struct graph_frame *frame;
    const struct mlir_op *op;
    const int64_t *window, *strides;
    ir_id x, indices; // padded; -1 is no index
    int rank;
    const int64_t *result; // how many windows
};

static ir_id element(const struct windows *w, ir_id of, const int64_t *at)
{
    int64_t limits[IR_MAX_RANK];
    for (int i = 0; i < w->rank; i++)
        limits[i] = at[i] + (w->result[i] - 1) * w->strides[i] + 1;
    return ir_slice(trace_builder(), of, at, limits, w->strides);
}

static bool step_to_next(const struct windows *w, int64_t *at)
{
    for (int i = w->rank; i-- > 0;) {
        if (++at[i] < w->window[i])
            return true;
        at[i] = 0;
    }
    return false;
}

// The index of the element that is chosen of each window.
static ir_id chosen(const struct windows *w)
{
    struct ir_builder *b = trace_builder();
    int64_t at[IR_MAX_RANK] = {0};
    ir_id zero = ir_scalar_int(b, JOT_I64, 0);
    ir_id best = element(w, w->x, at), index = element(w, w->indices, at);
    while (step_to_next(w, at)) {
        ir_id x = element(w, w->x, at), i = element(w, w->indices, at);
        jot_value args[] = {trace_value(best, false), trace_value(x, false)}, keeps;
        graph_elements(w->frame, w->op, &w->op->regions[0], w->rank, args, &keeps);
        ir_id is_better = ir_or(b, ir_lt(b, index, zero), ir_not(b, trace_strong(keeps)));
        ir_id takes = ir_and(b, ir_ge(b, i, zero), is_better);
        best = ir_select(b, takes, x, best);
        index = ir_select(b, takes, i, index);
    }
    return index;
}

// By the body, one after the other: a scatter of the program on a flat array.
static jot_value scattered(struct windows *w, ir_id init, ir_id indices, ir_id source,
                           int64_t count)
{
    struct ir_builder *b = trace_builder();
    struct ir_type type = ir_type_in(b, source);
    int64_t n = ir_count(b->module, type), rows[] = {n, 1};
    ir_id flat = ir_broadcast_in_dim(b, init, 1, &count, NULL);
    return graph_scatter_elements(w->frame, w->op, &w->op->regions[1], flat,
                                  ir_reshape(b, indices, 2, rows),
                                  ir_reshape(b, source, 1, &n));
}

void graph_select_and_scatter(struct graph_frame *frame, const struct mlir_op *op,
                              const int64_t *window, const int64_t *strides, const int64_t *low,
                              const int64_t *high)
{
    struct ir_builder *b = trace_builder();
    jot_value v[3];
    ir_id in[3];
    for (uint32_t i = 0; i < 3; i++) {
        v[i] = trace_import(op->name, graph_operand(frame, op, i));
        in[i] = trace_strong(v[i]);
    }
    struct ir_type type = ir_type_in(b, in[0]), source = ir_type_in(b, in[1]);
    int64_t count = ir_count(b->module, type), none[IR_MAX_RANK] = {0}, dims[IR_MAX_RANK + 1];
    struct ir_type flat = ir_type_make(b->module, JOT_I64, 1, &count);
    ir_id indices = ir_reshape(b, ir_iota(b, flat, 0), type.rank, ir_dims(b->module, type));
    memcpy(dims, ir_dims(b->module, type), sizeof *dims * type.rank);
    dims[type.rank] = JOT_END;
    struct windows w = {.frame = frame,
                        .op = op,
                        .window = window,
                        .strides = strides,
                        .x = ir_pad(b, in[0], ir_scalar_like(b, in[0], 0), low, high, none),
                        .indices =
                            ir_pad(b, indices, ir_scalar_int(b, JOT_I64, -1), low, high, none),
                        .rank = type.rank,
                        .result = ir_dims(b->module, source)};
    jot_value y = ir_count(b->module, source)
                      ? scattered(&w, in[2], chosen(&w), in[1], count)
                      : jot_broadcast_to_dims(v[2], (const int64_t[]){count, JOT_END});
    graph_set_result(frame, op, 0, jot_reshape_dims(y, dims));
}
