// SPDX-License-Identifier: Apache-2.0
// Nodes that fold axes, and those that put rows in order.
#include "interop/from_graph.h"

#include "base/dtype.h"
#include "ir/build.h"
#include "ir/scalar.h"

#include <math.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

// What a fold of nothing is.
static hlo_value identity(struct hlo_writer *w, enum ir_op op, jot_dtype d)
{
    const struct mlir_type *t = hlo_type(w, d, 0, NULL);
    enum ir_identity i = ir_op_get(op)->identity;
    if (!dtype_is_inexact(d))
        return hlo_integer(w, t, scalar_identity(op, d));
    return hlo_number(w, t,
                      i == IR_IDENTITY_one       ? 1
                      : i == IR_IDENTITY_lowest  ? -(double)INFINITY
                      : i == IR_IDENTITY_highest ? (double)INFINITY
                                                 : 0);
}

static void write_reduce(struct hlo_node *n)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->n->attrs, IR_KEY_axes, &count);
    enum ir_op op = (enum ir_op)n->n->op;
    n->out[0] = count ? hlo_reduce(n->w, op, n->in[0], identity(n->w, op, hlo_dtype(n->in[0])),
                                   count, axes)
                      : n->in[0];
}

// ---- prefix folds ----

static void write_cumulative(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    enum ir_op op = (enum ir_op)n->n->op;
    int rank = n->type->rank, axis = (int)ir_attr_int(n->n->attrs, IR_KEY_axis);
    bool reverse = ir_attr_int_or(n->n->attrs, IR_KEY_reverse, 0) != 0;
    int64_t window[IR_MAX_RANK], padding[2 * IR_MAX_RANK] = {0}, size = n->type->dims[axis];
    if (size == 0) {
        n->out[0] = n->in[0];
        return;
    }
    for (int i = 0; i < rank; i++)
        window[i] = i == axis ? size : 1;
    padding[2 * axis + reverse] = size - 1;
    hlo_ints(w, &a, "window_dimensions", rank, window);
    hlo_ints(w, &a, "padding", 2 * rank, padding);
    hlo_value in[] = {n->in[0], identity(w, op, hlo_dtype(n->in[0]))};
    struct mlir_block body = hlo_combiner(w, op, hlo_dtype(n->in[0]));
    n->out[0] = hlo_emit(w, HLO_(reduce_window), 2, in, 1, &n->type, &a, 1, &body)->results[0];
}

// ---- indices of extremes ----

// Of two pairs the one with the greater value (or smaller one), NaN before numbers, and of equal ones the lower
// index.
static struct mlir_block arg_body(struct hlo_writer *w, bool is_max,
                                  const struct mlir_type *value,
                                  const struct mlir_type *index_type)
{
    struct hlo_block b =
        hlo_open(w, 4, (const struct mlir_type *const[]){value, index_type, value, index_type});
    hlo_value x = b.block.args[0], i = b.block.args[1], y = b.block.args[2],
              j = b.block.args[3];
    hlo_value first = hlo_compare(w, is_max ? "GT" : "LT", false, x, y);
    hlo_value tie = hlo_compare(w, "EQ", false, x, y);
    if (dtype_is_float(hlo_dtype(x))) {
        hlo_value x_nan = hlo_compare(w, "NE", false, x, x);
        hlo_value y_nan = hlo_compare(w, "NE", false, y, y);
        hlo_value y_is_number = hlo_1(w, HLO_(not), y_nan);
        first = hlo_2(w, HLO_(or), first, hlo_2(w, HLO_(and), x_nan, y_is_number));
        tie = hlo_2(w, HLO_(or), tie, hlo_2(w, HLO_(and), x_nan, y_nan));
    }
    hlo_value lower = hlo_compare(w, "LT", false, i, j);
    first = hlo_2(w, HLO_(or), first, hlo_2(w, HLO_(and), tie, lower));
    hlo_value out[] = {hlo_select(w, first, x, y), hlo_select(w, first, i, j)};
    return hlo_close(w, &b, HLO_(return), 2, out);
}

static void write_arg(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    enum ir_op op = (enum ir_op)n->n->op;
    int64_t axis = ir_attr_int(n->n->attrs, IR_KEY_axis);
    hlo_value x = n->in[0];
    if (hlo_dtype(x) == JOT_BOOL)
        x = hlo_convert(w, x, JOT_U8);
    jot_dtype d = hlo_dtype(x), index = mlir_elements[n->type->element].dtype;
    const struct mlir_type *index_type = hlo_type(w, index, 0, NULL),
                           *value = hlo_type(w, d, 0, NULL);
    hlo_value in[] = {x, hlo_iota(w, hlo_type_with(w, x->type, index), (int)axis),
                      identity(w, op, d), hlo_number(w, index_type, 0)};
    struct mlir_block body = arg_body(w, ir_op_get(op)->pair == IR_gt, value, index_type);
    const struct mlir_type *types[] = {hlo_type_with(w, n->type, d), n->type};
    hlo_ints(w, &a, "dimensions", 1, &axis);
    n->out[0] = hlo_emit(w, HLO_(reduce), 4, in, 2, types, &a, 1, &body)->results[1];
}

void hlo_fold(struct hlo_node *n)
{
    enum ir_class class = ir_op_get((enum ir_op)n->n->op)->op_class;
    if (class == IR_CLASS_ARG)
        write_arg(n);
    else if (class == IR_CLASS_CUMULATIVE)
        write_cumulative(n);
    else
        write_reduce(n);
}

// ---- orders ----

// Floats with one zero and one NaN.
static hlo_value canonical(struct hlo_writer *w, hlo_value x)
{
    if (!dtype_is_float(hlo_dtype(x)))
        return x;
    hlo_value zero = hlo_number(w, x->type, 0), nan = hlo_number(w, x->type, (double)NAN);
    x = hlo_select(w, hlo_compare(w, "EQ", false, x, zero), zero, x);
    return hlo_select(w, hlo_compare(w, "NE", false, x, x), nan, x);
}

// Keys in order of two elements: of complex numbers the real part, then the other.
static int add_keys(struct hlo_writer *w, hlo_value x, hlo_value *keys)
{
    jot_dtype d = hlo_dtype(x);
    if (!dtype_is_complex(d))
        return keys[0] = canonical(w, x), 1;
    const struct mlir_type *t = hlo_type_with(w, x->type, dtype_real(d));
    keys[0] = canonical(w, hlo_op(w, HLO_(real), t, 1, &x, NULL));
    keys[1] = canonical(w, hlo_op(w, HLO_(imag), t, 1, &x, NULL));
    return 2;
}

static struct mlir_block comparator(struct hlo_node *n, int n_keys)
{
    struct hlo_writer *w = n->w;
    uint32_t count = n->n->n_in;
    const struct mlir_type **types =
        arena_array(w->arena, const struct mlir_type *, 2 * count + 1);
    hlo_value x[2 * IR_SORT_MOST], y[2 * IR_SORT_MOST], before = NULL;
    int n_parts = 0;
    for (uint32_t i = 0; i < 2 * count; i++)
        types[i] = hlo_type(w, hlo_dtype(n->in[i / 2]), 0, NULL);
    struct hlo_block b = hlo_open(w, 2 * count, types);
    for (int k = 0; k < n_keys; k++) {
        add_keys(w, b.block.args[2 * k], x + n_parts);
        n_parts += add_keys(w, b.block.args[2 * k + 1], y + n_parts);
    }
    for (int k = n_parts - 1; k >= 0; k--) {
        hlo_value less = hlo_compare(w, "LT", true, x[k], y[k]);
        if (before) {
            hlo_value same = hlo_compare(w, "EQ", true, x[k], y[k]);
            less = hlo_2(w, HLO_(or), less, hlo_2(w, HLO_(and), same, before));
        }
        before = less;
    }
    return hlo_close(w, &b, HLO_(return), 1, &before);
}

static void write_sort(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    uint32_t count = n->n->n_in;
    const struct mlir_type **types = arena_array(w->arena, const struct mlir_type *, count + 1);
    for (uint32_t i = 0; i < count; i++)
        types[i] = n->in[i]->type;
    struct mlir_block body = comparator(n, (int)ir_attr_int(n->n->attrs, IR_KEY_num_keys));
    hlo_int(w, &a, "dimension", n->type->rank - 1);
    hlo_bool(w, &a, "is_stable", true);
    const struct mlir_op *op =
        hlo_emit(w, HLO_(sort), count, n->in, count, types, &a, 1, &body);
    for (uint32_t i = 0; i < count; i++)
        n->out[i] = op->results[i];
}

// The decomposition: all of each row, the greatest first, of which the first k are taken.
static const char *top_k_by_sort(struct hlo_node *n, const struct mlir_type *indices)
{
    struct hlo_writer *w = n->w;
    const struct mlir_type *x = n->in[0]->type, *t = hlo_type(w, hlo_dtype(n->in[0]), 0, NULL);
    const struct mlir_type *all = hlo_type_with(w, x, JOT_I32),
                           *i = hlo_type(w, JOT_I32, 0, NULL);
    struct hlo_function f = hlo_open_function(w, "top_k", 1, &x);
    hlo_value in[] = {f.block.block.args[0], hlo_iota(w, all, x->rank - 1)}, out[2];
    struct hlo_block b = hlo_open(w, 4, (const struct mlir_type *const[]){t, t, i, i});
    hlo_value greater = hlo_compare(w, "GT", true, b.block.args[0], b.block.args[1]);
    struct mlir_block body = hlo_close(w, &b, HLO_(return), 1, &greater);
    struct hlo_attrs a = {0};
    hlo_int(w, &a, "dimension", x->rank - 1);
    hlo_bool(w, &a, "is_stable", true);
    const struct mlir_op *op = hlo_emit(
        w, HLO_(sort), 2, in, 2, (const struct mlir_type *const[]){x, all}, &a, 1, &body);
    int64_t starts[IR_MAX_RANK] = {0};
    for (int k = 0; k < 2; k++)
        out[k] = hlo_slice(w, op->results[k], starts, indices->dims, NULL);
    return hlo_close_function(w, &f, 2, out);
}

static void write_top_k(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0}, options = {0};
    const struct mlir_type *indices = hlo_type_with(w, n->type, JOT_I32);
    const struct mlir_type *types[] = {n->type, indices};
    hlo_add(&options, "k",
            hlo_attr(w, (struct mlir_attr){.kind = MLIR_INT,
                                           .type = hlo_word_type(w, MLIR_I64),
                                           .integer = n->type->dims[n->type->rank - 1]}));
    hlo_text(w, &a, "name", MLIR_STRING, "chlo.top_k");
    hlo_text(w, &a, "decomposition", MLIR_SYMBOL, top_k_by_sort(n, indices));
    hlo_add(&a, "composite_attributes",
            hlo_attr(w, (struct mlir_attr){
                            .kind = MLIR_DICTIONARY,
                            .n = 1,
                            .named = arena_copy(w->arena, options.at, sizeof *options.at)}));
    const struct mlir_op *op = hlo_emit(w, HLO_(composite), 1, n->in, 2, types, &a, 0, NULL);
    jot_dtype d = ir_dtype_of(n->g, n->n->out + 1);
    n->out[0] = op->results[0];
    n->out[1] = hlo_convert(w, op->results[1], d);
}

void hlo_order(struct hlo_node *n)
{
    if (n->n->op == IR_sort)
        write_sort(n);
    else
        write_top_k(n);
}
