// SPDX-License-Identifier: Apache-2.0
// Folds with bodies: reduce, reduce_window, select_and_scatter and map.  Bodies that are one operation
// become reductions of the graph; two that look for the index of an extremum argmax and argmin;
// any other is applied to pairs of neighbours, in log2 rounds.
#include "interop/graph_fold.h"

#include "base/dtype.h"

#include "jot/shapes.h"
#include "jot/windows.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- values of the graph ----

static ir_id id_of(jot_value v) { return trace_strong(trace_import("stablehlo", v)); }

static bool has_failed(const struct graph_frame *frame, const struct mlir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        jot_value v = graph_operand(frame, op, i);
        if (trace_is_error(trace_import(op->name, v))) {
            graph_set_results((struct graph_frame *)(uintptr_t)frame, op, v);
            return true;
        }
    }
    return false;
}

static jot_dtype dtype_of(const struct mlir_value *v)
{
    return mlir_elements[v->type->element].dtype;
}

// The values x, each combined with its init by the body.
static void combine_with_init(struct graph_frame *frame, const struct mlir_op *op, int n,
                              jot_value *x)
{
    jot_value *args = arena_array(frame->arena, jot_value, 2 * n + 1);
    const struct mlir_type *type = op->results[0]->type;
    int64_t dims[IR_MAX_RANK + 1];
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i];
    dims[type->rank] = JOT_END;
    for (int i = 0; i < n; i++) {
        args[i] = jot_broadcast_to_dims(graph_operand(frame, op, (uint32_t)(n + i)), dims);
        args[n + i] = x[i];
    }
    graph_elements(frame, op, &op->regions[0], type->rank, args, x);
}

// ---- reduce ----

static bool reduce_by_op(struct graph_frame *frame, const struct mlir_op *op,
                         const int64_t *axes, size_t n_axes)
{
    int arg;
    if (op->n_operands != 2)
        return false;
    enum ir_op reduction =
        graph_reduction(graph_body(&op->regions[0], &arg), dtype_of(op->operands[0]));
    if (reduction == IR_OP_COUNT)
        return false;
    struct ir_builder *b = trace_builder();
    ir_id y = ir_reduce(b, reduction, id_of(graph_operand(frame, op, 0)), (int)n_axes, axes);
    if (!graph_is_neutral(frame, op->operands[1], reduction))
        y = ir_map2(b, ir_op_get(reduction)->pair, id_of(graph_operand(frame, op, 1)), y);
    graph_set_result(frame, op, 0, trace_result(op->name, y, false));
    return true;
}

// argmax or argmin along one axis: of values, and of their indices.
static bool reduce_to_index(struct graph_frame *frame, const struct mlir_op *op,
                            const int64_t *axes, size_t n_axes)
{
    enum ir_op found = n_axes == 1 && op->n_operands == 4
                           ? graph_arg_body(frame, &op->regions[0])
                           : IR_OP_COUNT;
    if (found == IR_OP_COUNT || !graph_is_iota(frame, op->operands[1], axes[0]) ||
        dtype_is_complex(dtype_of(op->operands[0])) || dtype_is_bool(dtype_of(op->operands[0])))
        return false;
    enum ir_op extremum = found == IR_argmax ? IR_reduce_max : IR_reduce_min;
    int64_t zero, extent = op->operands[0]->type->dims[axes[0]];
    if (!graph_is_neutral(frame, op->operands[2], extremum) || extent == 0 ||
        !graph_integer(frame, op->operands[3], &zero) || zero != 0)
        return false;
    struct ir_builder *b = trace_builder();
    ir_id x = id_of(graph_operand(frame, op, 0));
    ir_id index = ir_arg(b, found, x, (int)axes[0], dtype_of(op->results[1]));
    ir_id value = ir_reduce(b, extremum, x, 1, axes);
    graph_set_result(frame, op, 0, trace_result(op->name, value, false));
    graph_set_result(frame, op, 1, trace_result(op->name, index, false));
    return true;
}

// As windows that are as large as the reduced axes.
static void reduce_by_body(struct graph_frame *frame, const struct mlir_op *op,
                           const int64_t *axes, size_t n_axes)
{
    int n = (int)op->n_operands / 2;
    const struct mlir_type *type = op->operands[0]->type, *result = op->results[0]->type;
    int64_t window[IR_MAX_RANK + 1], dims[IR_MAX_RANK + 1];
    bool is_empty = mlir_elements_of(result) == 0;
    for (int i = 0; i < type->rank; i++)
        window[i] = 1;
    window[type->rank] = JOT_END;
    for (size_t i = 0; i < n_axes; i++) {
        window[axes[i]] = type->dims[axes[i]];
        is_empty = is_empty || type->dims[axes[i]] == 0;
    }
    memcpy(dims, result->dims, sizeof *dims * (size_t)result->rank);
    dims[result->rank] = JOT_END;
    jot_value *x = arena_array(frame->arena, jot_value, n + 1);
    jot_value *init = arena_array(frame->arena, jot_value, n + 1);
    for (int i = 0; i < n; i++) {
        x[i] = graph_operand(frame, op, (uint32_t)i);
        init[i] = graph_operand(frame, op, (uint32_t)(n + i));
    }
    if (is_empty) {
        for (int i = 0; i < n; i++)
            x[i] = jot_broadcast_to_dims(init[i], dims);
    } else {
        jot_window_options o = {.window = window};
        jot_reduce_window_tree(graph_region(frame, &op->regions[0]), (size_t)n, x, init, &o,
                               graph_where(frame, op));
        for (int i = 0; i < n; i++)
            x[i] = jot_reshape_dims(x[i], dims);
        combine_with_init(frame, op, n, x);
    }
    for (int i = 0; i < n; i++)
        graph_set_result(frame, op, (uint32_t)i, x[i]);
}

static void trace_reduce(struct graph_frame *frame, const struct mlir_op *op)
{
    size_t n_axes;
    const int64_t *axes = mlir_ints(op, "dimensions", &n_axes);
    if (has_failed(frame, op) || reduce_by_op(frame, op, axes, n_axes) ||
        reduce_to_index(frame, op, axes, n_axes))
        return;
    reduce_by_body(frame, op, axes, n_axes);
}

// ---- windows ----

// The lists of an operation with windows; those that are left out are 1 and 0.
struct lists {
    int64_t window[IR_MAX_RANK + 1], strides[IR_MAX_RANK + 1];
    int64_t low[IR_MAX_RANK + 1], high[IR_MAX_RANK + 1];
    int64_t base[IR_MAX_RANK + 1], dilation[IR_MAX_RANK + 1];
    int rank;
};

static void read_list(const struct mlir_op *op, const char *name, int rank, int64_t *out)
{
    size_t n;
    const int64_t *list = mlir_ints(op, name, &n);
    for (int i = 0; i < rank; i++)
        out[i] = n == (size_t)rank ? list[i] : 1;
    out[rank] = JOT_END;
}

static struct lists read_lists(const struct mlir_op *op)
{
    struct lists l = {.rank = op->operands[0]->type->rank};
    read_list(op, "window_dimensions", l.rank, l.window);
    read_list(op, "window_strides", l.rank, l.strides);
    read_list(op, "base_dilations", l.rank, l.base);
    read_list(op, "window_dilations", l.rank, l.dilation);
    size_t n;
    const int64_t *padding = mlir_ints(op, "padding", &n);
    for (int i = 0; i < l.rank && n == 2 * (size_t)l.rank; i++) {
        l.low[i] = padding[2 * i];
        l.high[i] = padding[2 * i + 1];
    }
    l.low[l.rank] = l.high[l.rank] = JOT_END;
    return l;
}

static jot_window_options options_of(const struct lists *l)
{
    return (jot_window_options){.window = l->window,
                                .strides = l->strides,
                                .low = l->low,
                                .high = l->high,
                                .base_dilation = l->base,
                                .window_dilation = l->dilation};
}

// The axis along which each window holds all elements up to its own or from it on; -1: no such one.
static int running_axis(const struct lists *l, const int64_t *dims, bool *out_reverse)
{
    int axis = -1;
    for (int i = 0; i < l->rank; i++) {
        bool is_plain = l->strides[i] == 1 && l->base[i] == 1 && l->dilation[i] == 1;
        bool is_alone = l->window[i] == 1 && l->low[i] == 0 && l->high[i] == 0;
        if (!is_plain || (!is_alone && axis >= 0))
            return -1;
        if (!is_alone)
            axis = i;
    }
    if (axis < 0 || l->window[axis] != dims[axis])
        return -1;
    int64_t rest = dims[axis] - 1, low = l->low[axis], high = l->high[axis];
    *out_reverse = low == 0;
    return (low == rest && high == 0) || (low == 0 && high == rest) ? axis : -1;
}

// ---- windows of few elements: combined in their order, as XLA does ----

enum { MOST_IN_ORDER = 32 };

// Whether the windows are small, and not of an extremum, whose derivative goes to its first winner.
static bool is_in_order(const struct mlir_op *op, const struct lists *l)
{
    int arg;
    int64_t count = 1;
    enum mlir_code code = graph_body(&op->regions[0], &arg);
    for (int i = 0; i < l->rank; i++)
        if (__builtin_mul_overflow(count, l->window[i], &count))
            return false;
    return count <= MOST_IN_ORDER && code != HLO_(maximum) && code != HLO_(minimum);
}

// Element `at` of every window.
static jot_value element_of(const struct lists *l, const int64_t *at, const int64_t *counts,
                            ir_id x)
{
    int64_t starts[IR_MAX_RANK], limits[IR_MAX_RANK];
    for (int i = 0; i < l->rank; i++) {
        starts[i] = at[i] * l->dilation[i];
        limits[i] = starts[i] + (counts[i] - 1) * l->strides[i] + 1;
    }
    return trace_result("stablehlo.reduce_window",
                        ir_slice(trace_builder(), x, starts, limits, l->strides), false);
}

static bool next_element(const struct lists *l, int64_t *at)
{
    for (int i = l->rank; i-- > 0;) {
        if (++at[i] < l->window[i])
            return true;
        at[i] = 0;
    }
    return false;
}

static void window_in_order(struct graph_frame *frame, const struct mlir_op *op,
                            const struct lists *l)
{
    int n = (int)op->n_operands / 2;
    struct ir_builder *b = trace_builder();
    const struct mlir_type *type = op->results[0]->type;
    ir_id *x = arena_array(frame->arena, ir_id, n + 1);
    jot_value *args = arena_array(frame->arena, jot_value, 2 * n + 1);
    int64_t interior[IR_MAX_RANK], at[IR_MAX_RANK] = {0}, dims[IR_MAX_RANK + 1];
    for (int i = 0; i < l->rank; i++) {
        interior[i] = l->base[i] - 1;
        dims[i] = type->dims[i];
    }
    dims[l->rank] = JOT_END;
    for (int i = 0; i < n; i++) {
        jot_value init = graph_operand(frame, op, (uint32_t)(n + i));
        x[i] = ir_pad(b, id_of(graph_operand(frame, op, (uint32_t)i)), id_of(init), l->low,
                      l->high, interior);
        args[i] = jot_broadcast_to_dims(init, dims);
    }
    do {
        for (int i = 0; i < n; i++)
            args[n + i] = element_of(l, at, type->dims, x[i]);
        graph_elements(frame, op, &op->regions[0], l->rank, args, args);
    } while (next_element(l, at));
    for (int i = 0; i < n; i++)
        graph_set_result(frame, op, (uint32_t)i, args[i]);
}

// ---- others ----

enum ir_op graph_running(enum ir_op reduction)
{
    for (int op = 0; op < IR_OP_COUNT; op++)
        if (ir_op_class((enum ir_op)op) == IR_CLASS_CUMULATIVE &&
            ir_op_get((enum ir_op)op)->combiner == reduction)
            return (enum ir_op)op;
    return IR_OP_COUNT;
}

static bool window_by_op(struct graph_frame *frame, const struct mlir_op *op,
                         const struct lists *l)
{
    int arg;
    bool is_reversed = false;
    if (op->n_operands != 2)
        return false;
    jot_dtype d = dtype_of(op->operands[0]);
    enum mlir_code code = graph_body(&op->regions[0], &arg);
    enum ir_op reduction = graph_reduction(code, d);
    if (!graph_is_neutral(frame, op->operands[1], reduction))
        return false;
    jot_value x = graph_operand(frame, op, 0);
    int axis = running_axis(l, op->operands[0]->type->dims, &is_reversed);
    if (is_in_order(op, l) && axis < 0)
        return false;
    enum ir_op running = graph_running(reduction);
    if (axis >= 0 && running != IR_OP_COUNT) {
        ir_id y = ir_cumulative(trace_builder(), running, id_of(x), axis, is_reversed);
        graph_set_result(frame, op, 0, trace_result(op->name, y, false));
        return true;
    }
    int kind = code == HLO_(add)        ? JOT_WINDOW_SUM
               : code == HLO_(multiply) ? JOT_WINDOW_PROD
               : code == HLO_(maximum)  ? JOT_WINDOW_MAX
               : code == HLO_(minimum)  ? JOT_WINDOW_MIN
                                        : -1;
    if (kind < 0 || d == JOT_BOOL)
        return false;
    jot_window_options o = options_of(l);
    graph_set_result(frame, op, 0, jot_reduce_window_with(x, (jot_window_kind)kind, &o));
    return true;
}

static void window_by_body(struct graph_frame *frame, const struct mlir_op *op,
                           const struct lists *l)
{
    int n = (int)op->n_operands / 2;
    jot_value *x = arena_array(frame->arena, jot_value, n + 1);
    jot_value *init = arena_array(frame->arena, jot_value, n + 1);
    for (int i = 0; i < n; i++) {
        x[i] = graph_operand(frame, op, (uint32_t)i);
        init[i] = graph_operand(frame, op, (uint32_t)(n + i));
    }
    jot_window_options o = options_of(l);
    jot_reduce_window_tree(graph_region(frame, &op->regions[0]), (size_t)n, x, init, &o,
                           graph_where(frame, op));
    combine_with_init(frame, op, n, x);
    for (int i = 0; i < n; i++)
        graph_set_result(frame, op, (uint32_t)i, x[i]);
}

static void trace_reduce_window(struct graph_frame *frame, const struct mlir_op *op)
{
    struct lists l = read_lists(op);
    if (has_failed(frame, op))
        return;
    if (mlir_elements_of(op->results[0]->type) == 0)
        for (uint32_t i = 0; i < op->n_results; i++) {
            struct ir_type type;
            bool ok = graph_type(trace_builder(), op->results[i]->type, &type);
            ir_id y = ok ? ir_zeros(trace_builder(), type) : IR_NONE;
            graph_set_result(frame, op, i, trace_result(op->name, y, false));
        }
    else if (window_by_op(frame, op, &l))
        return;
    else if (is_in_order(op, &l))
        window_in_order(frame, op, &l);
    else
        window_by_body(frame, op, &l);
}

// ---- select_and_scatter ----

// GE gives the largest of a window, LE the smallest one; -1 for other bodies.
static int selection(const struct graph_frame *frame, const struct mlir_block *block)
{
    const struct mlir_op *end = block->ops[block->n_ops - 1];
    const struct mlir_op *compare = graph_maker(frame, end->operands[0]);
    int arg;
    if (graph_body(block, &arg) != HLO_(compare) || compare->operands[0] != block->args[0])
        return -1;
    const char *direction = mlir_text(compare, "comparison_direction");
    return !direction                 ? -1
           : !strcmp(direction, "GE") ? JOT_WINDOW_MAX
           : !strcmp(direction, "LE") ? JOT_WINDOW_MIN
                                      : -1;
}

static bool select_by_op(struct graph_frame *frame, const struct mlir_op *op,
                         const struct lists *l)
{
    int arg, kind = selection(frame, &op->regions[0]);
    bool is_sum = graph_body(&op->regions[1], &arg) == HLO_(add);
    if (kind < 0 || !is_sum || !dtype_is_float(dtype_of(op->operands[0])) ||
        mlir_elements_of(op->operands[1]->type) == 0)
        return false;
    jot_window_options o = options_of(l);
    jot_value y = jot_select_and_scatter_add_with(
        graph_operand(frame, op, 1), graph_operand(frame, op, 0), (jot_window_kind)kind, &o);
    if (!graph_is_neutral(frame, op->operands[2], IR_reduce_sum))
        y = jot_add(y, graph_operand(frame, op, 2));
    graph_set_result(frame, op, 0, y);
    return true;
}

static void trace_select_and_scatter(struct graph_frame *frame, const struct mlir_op *op)
{
    struct lists l = read_lists(op);
    if (!has_failed(frame, op) && !select_by_op(frame, op, &l))
        graph_select_and_scatter(frame, op, l.window, l.strides, l.low, l.high);
}

static void trace_elementwise(struct graph_frame *frame, const struct mlir_op *op)
{
    jot_value *args = arena_array(frame->arena, jot_value, op->n_operands + 1), y;
    for (uint32_t i = 0; i < op->n_operands; i++)
        args[i] = graph_operand(frame, op, i);
    graph_elements(frame, op, &op->regions[0], op->results[0]->type->rank, args, &y);
    graph_set_result(frame, op, 0, y);
}

graph_trace *graph_fold_find(enum mlir_code code)
{
    return code == HLO_(reduce)               ? trace_reduce
           : code == HLO_(reduce_window)      ? trace_reduce_window
           : code == HLO_(select_and_scatter) ? trace_select_and_scatter
           : code == HLO_(map)                ? trace_elementwise
                                              : NULL;
}
