// SPDX-License-Identifier: Apache-2.0
// Products, convolutions, Fourier transforms and linear systems.
#include "interop/to_graph.h"

#include "base/dtype.h"
#include "ir/linalg.h"

#include "jot/windows.h"

#include <stdio.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

static jot_dtype dtype_in(const struct graph_op *g, int i)
{
    return ir_dtype(ir_type_in(g->b, g->in[i]));
}

static ir_id as(struct graph_op *g, ir_id x, jot_dtype d)
{
    return ir_dtype(ir_type_in(g->b, x)) == d ? x : ir_convert(g->b, x, d);
}

// The type in which a product is made: of operands of one type it is that of the result; of mixed
// ones that become halves f32, which is rounded once.
static jot_dtype working_type(const struct graph_op *g)
{
    if (g->dtype == JOT_BOOL)
        return JOT_I32;
    return dtype_in(g, 0) != dtype_in(g, 1) && dtype_is_half(g->dtype) ? JOT_F32 : g->dtype;
}

static ir_id finished(struct graph_op *g, ir_id y)
{
    return g->dtype == JOT_BOOL ? ir_ne(g->b, y, ir_scalar_int(g->b, JOT_I32, 0))
                                : as(g, y, g->dtype);
}

static void convert_dot_general(struct graph_op *g)
{
    size_t lb, rb, lc, rc;
    struct ir_dot d = {.lhs_batch = mlir_ints(g->op, "lhs_batching_dimensions", &lb),
                       .rhs_batch = mlir_ints(g->op, "rhs_batching_dimensions", &rb),
                       .lhs_contract = mlir_ints(g->op, "lhs_contracting_dimensions", &lc),
                       .rhs_contract = mlir_ints(g->op, "rhs_contracting_dimensions", &rc),
                       .precision = trace_top()->root->precision};
    if (lb != rb || lc != rc) {
        graph_refuse(g, "%zu and %zu batching, %zu and %zu contracting dimensions", lb, rb, lc,
                     rc);
        return;
    }
    d.n_batch = (int)lb;
    d.n_contract = (int)lc;
    jot_dtype work = working_type(g);
    g->out[0] =
        finished(g, ir_dot_general(g->b, as(g, g->in[0], work), as(g, g->in[1], work), &d));
}

// Of vectors and matrices: the last axis with the first one.
static void convert_dot(struct graph_op *g)
{
    struct ir_type x = ir_type_in(g->b, g->in[0]), y = ir_type_in(g->b, g->in[1]);
    int64_t last = x.rank - 1, first = 0;
    if (x.rank < 1 || x.rank > 2 || y.rank < 1 || y.rank > 2) {
        graph_refuse(g, "operands of %d and %d axes: of one or two", x.rank, y.rank);
        return;
    }
    struct ir_dot d = {.n_contract = 1,
                       .lhs_contract = &last,
                       .rhs_contract = &first,
                       .precision = trace_top()->root->precision};
    jot_dtype work = working_type(g);
    g->out[0] =
        finished(g, ir_dot_general(g->b, as(g, g->in[0], work), as(g, g->in[1], work), &d));
}

// ---- products of groups of rows ----

// The lists of ragged_dot_dimension_numbers: by name, or in this order.
enum { LHS_BATCH, RHS_BATCH, LHS_CONTRACT, RHS_CONTRACT, LHS_RAGGED, RHS_GROUP, N_LISTS };
static const char *const ragged_names[N_LISTS] = {
    "lhs_batching_dimensions",    "rhs_batching_dimensions", "lhs_contracting_dimensions",
    "rhs_contracting_dimensions", "lhs_ragged_dimensions",   "rhs_group_dimensions"};

struct ragged {
    int n[N_LISTS];
    int64_t axes[N_LISTS][IR_MAX_RANK + 1];
};

static int64_t element_of(const struct mlir_attr *a, size_t i)
{
    int64_t x = -1;
    if (a->kind == MLIR_DENSE && a->type->element == MLIR_I64)
        memcpy(&x, a->bytes + (a->is_splat ? 0 : i * sizeof x), sizeof x);
    return a->kind == MLIR_INTS                                     ? a->numbers[i]
           : a->kind == MLIR_ARRAY && a->parts[i]->kind == MLIR_INT ? a->parts[i]->integer
                                                                    : x;
}

static bool read_ragged(const struct mlir_op *op, struct ragged *d)
{
    const struct mlir_attr *all = mlir_attr_find(op, "ragged_dot_dimension_numbers");
    bool is_list = all && all->kind == MLIR_ARRAY && all->n == N_LISTS;
    for (int k = 0; k < N_LISTS; k++) {
        const struct mlir_attr *a = is_list ? all->parts[k] : NULL;
        for (size_t i = 0; all && all->kind == MLIR_DICTIONARY && i < all->n; i++)
            a = !strcmp(all->named[i].name, ragged_names[k]) ? all->named[i].attr : a;
        bool is_dense = a && a->kind == MLIR_DENSE;
        int64_t n = !a ? 0 : is_dense ? mlir_elements_of(a->type) : (int64_t)a->n;
        if (n < 0 || n > IR_MAX_RANK)
            return false;
        d->n[k] = (int)n;
        for (size_t i = 0; i < (size_t)n; i++)
            if ((d->axes[k][i] = element_of(a, i)) < 0)
                return false;
    }
    return d->n[LHS_BATCH] == d->n[RHS_BATCH] && d->n[LHS_CONTRACT] == d->n[RHS_CONTRACT] &&
           d->n[LHS_RAGGED] == 1 && d->n[RHS_GROUP] <= 1;
}

static bool has_axis(const struct ragged *d, int list, int64_t axis)
{
    for (int i = 0; i < d->n[list]; i++)
        if (d->axes[list][i] == axis)
            return true;
    return false;
}

// Sizes of groups, along their last axis, where there are others of each batch, by the axes of x and a new axis 0.
static ir_id along_groups(struct graph_op *g, const struct ragged *d, ir_id sizes, int rank,
                          const int64_t *dims)
{
    int64_t order[IR_MAX_RANK + 1], axes[IR_MAX_RANK + 1] = {0};
    int n = ir_type_in(g->b, sizes).rank;
    order[0] = n - 1;
    for (int i = 1; i < n; i++) {
        order[i] = i - 1;
        axes[i] = d->axes[LHS_BATCH][i - 1] + 1;
    }
    return ir_broadcast_in_dim(g->b, ir_transpose(g->b, sizes, order), rank, dims, axes);
}

// x by a new axis 0 of groups: what lies in the group along the ragged axis, and zeros.
static ir_id by_group(struct graph_op *g, const struct ragged *d, ir_id x, ir_id sizes)
{
    struct ir_builder *b = g->b;
    struct ir_type t = ir_type_in(b, x), s = ir_type_in(b, sizes);
    int64_t dims[IR_MAX_RANK + 1], own[IR_MAX_RANK];
    memcpy(dims + 1, ir_dims(b->module, t), sizeof *dims * t.rank);
    dims[0] = ir_dims(b->module, s)[s.rank - 1];
    for (int i = 0; i < t.rank; i++)
        own[i] = i + 1;
    sizes = as(g, sizes, JOT_I64);
    ir_id ends = ir_cumulative(b, IR_cumsum, sizes, s.rank - 1, false);
    ir_id starts = along_groups(g, d, ir_sub(b, ends, sizes), t.rank + 1, dims);
    ends = along_groups(g, d, ends, t.rank + 1, dims);
    ir_id at = ir_iota(b, ir_type_make(b->module, JOT_I64, t.rank + 1, dims),
                       (int)d->axes[LHS_RAGGED][0] + 1);
    x = ir_broadcast_in_dim(b, x, t.rank + 1, dims, own);
    ir_id is_in = ir_and(b, ir_ge(b, at, starts), ir_lt(b, at, ends));
    return ir_select(b, is_in, x, ir_zeros(b, ir_type_in(b, x)));
}

// The rows along the ragged axis of x lie in groups, one after the other, of which each has its own y, or its own
// result where that axis is contracted.
static void convert_ragged_dot(struct graph_op *g)
{
    struct ragged d = {0};
    struct ir_type x = ir_type_in(g->b, g->in[0]);
    int rank = ir_type_in(g->b, g->in[2]).rank;
    bool is_read = read_ragged(g->op, &d) && d.axes[LHS_RAGGED][0] < x.rank &&
                   x.rank < IR_MAX_RANK && (rank == 1 || rank == d.n[LHS_BATCH] + 1);
    for (int i = 0; i < d.n[LHS_BATCH]; i++)
        is_read &= d.axes[LHS_BATCH][i] < x.rank &&
                   (!i || d.axes[LHS_BATCH][i] > d.axes[LHS_BATCH][i - 1]);
    if (!is_read) {
        graph_refuse(g, "one ragged dimension, and sizes of groups, of each batch or all, are "
                        "read");
        return;
    }
    bool is_batch = has_axis(&d, LHS_BATCH, d.axes[LHS_RAGGED][0]),
         is_row = d.n[RHS_GROUP] == 1;
    jot_dtype work = working_type(g);
    ir_id lhs = as(g, g->in[0], work), rhs = as(g, g->in[1], work);
    if (!is_batch) {
        lhs = by_group(g, &d, lhs, g->in[2]);
        for (int i = 0; i < d.n[LHS_BATCH]; i++)
            d.axes[LHS_BATCH][i]++;
        for (int i = 0; i < d.n[LHS_CONTRACT]; i++)
            d.axes[LHS_CONTRACT][i]++;
        d.axes[LHS_CONTRACT][d.n[LHS_CONTRACT]] = 0;
        d.axes[RHS_CONTRACT][d.n[RHS_CONTRACT]] = d.axes[RHS_GROUP][0];
    }
    struct ir_dot dot = {.n_batch = d.n[LHS_BATCH],
                         .n_contract = d.n[LHS_CONTRACT] + is_row,
                         .lhs_batch = d.axes[LHS_BATCH],
                         .rhs_batch = d.axes[RHS_BATCH],
                         .lhs_contract = d.axes[LHS_CONTRACT],
                         .rhs_contract = d.axes[RHS_CONTRACT],
                         .precision = trace_top()->root->precision};
    ir_id y = ir_dot_general(g->b, lhs, rhs, &dot);
    if (!is_batch && !is_row && d.n[LHS_BATCH] && y != IR_NONE) { // groups first
        int64_t order[IR_MAX_RANK + 1];
        int groups = d.n[LHS_BATCH];
        for (int i = 0; i < ir_type_in(g->b, y).rank; i++)
            order[i] = i == 0 ? groups : i <= groups ? i - 1 : i;
        y = ir_transpose(g->b, y, order);
    }
    g->out[0] = finished(g, y);
}

// ---- convolutions ----

// Letters for the axes: spatial axis k is 'a' + k.  False with an error.
static bool letters(struct graph_op *g, const char *first, char a, const char *second, char b,
                    const char *spatial, char *out)
{
    size_t n;
    const int64_t *axes = mlir_ints(g->op, spatial, &n);
    int64_t x = mlir_int(g->op, first, -1), y = mlir_int(g->op, second, -1),
            rank = (int64_t)n + 2;
    bool ok = rank <= IR_MAX_RANK && x >= 0 && y >= 0 && x < rank && y < rank && x != y;
    memset(out, 0, IR_MAX_RANK + 1);
    if (ok) {
        out[x] = a;
        out[y] = b;
    }
    for (size_t k = 0; k < n && ok; k++) {
        ok = axes[k] >= 0 && axes[k] < rank && !out[axes[k]];
        if (ok)
            out[axes[k]] = (char)('a' + k);
    }
    if (!ok)
        graph_refuse(g, "its dimension numbers do not name each axis once");
    return ok;
}

// A number for each spatial axis, and JOT_END; NULL when the list is not there.
static const int64_t *of_axes(struct graph_op *g, const char *name, size_t n)
{
    size_t count;
    const int64_t *numbers = mlir_ints(g->op, name, &count);
    if (count && count != n)
        graph_refuse(g, "%s has %zu numbers where %zu are needed", name, count, n);
    if (count != n || !n)
        return NULL;
    int64_t *list = arena_array(g->frame->arena, int64_t, n + 1);
    memcpy(list, numbers, sizeof *list * n);
    list[n] = JOT_END;
    return list;
}

static ir_id reversed(struct graph_op *g, ir_id w, size_t n)
{
    size_t n_axes;
    const int64_t *reversal = of_axes(g, "window_reversal", n);
    const int64_t *axes = mlir_ints(g->op, "kernel_spatial_dimensions", &n_axes);
    int64_t turned[IR_MAX_RANK];
    int count = 0;
    for (size_t k = 0; k < n && reversal; k++)
        if (reversal[k])
            turned[count++] = axes[k];
    return count ? ir_rev(g->b, w, count, turned) : w;
}

static void convert_convolution(struct graph_op *g)
{
    char x[IR_MAX_RANK + 1], w[IR_MAX_RANK + 1], y[IR_MAX_RANK + 1];
    size_t n;
    mlir_ints(g->op, "input_spatial_dimensions", &n);
    if (!letters(g, "input_batch_dimension", 'N', "input_feature_dimension", 'C',
                 "input_spatial_dimensions", x) ||
        !letters(g, "kernel_output_feature_dimension", 'O', "kernel_input_feature_dimension",
                 'I', "kernel_spatial_dimensions", w) ||
        !letters(g, "output_batch_dimension", 'N', "output_feature_dimension", 'C',
                 "output_spatial_dimensions", y))
        return;
    size_t n_padding;
    const int64_t *padding = mlir_ints(g->op, "padding", &n_padding);
    int64_t low[IR_MAX_RANK + 1] = {0}, high[IR_MAX_RANK + 1] = {0};
    for (size_t k = 0; k < n && n_padding == 2 * n; k++) {
        low[k] = padding[2 * k];
        high[k] = padding[2 * k + 1];
    }
    low[n] = high[n] = JOT_END;
    jot_conv_options o = {.strides = of_axes(g, "window_strides", n),
                          .low = low,
                          .high = high,
                          .lhs_dilation = of_axes(g, "lhs_dilation", n),
                          .rhs_dilation = of_axes(g, "rhs_dilation", n),
                          .x = x,
                          .w = w,
                          .out = y,
                          .feature_group_count = mlir_int(g->op, "feature_group_count", 1),
                          .batch_group_count = mlir_int(g->op, "batch_group_count", 1)};
    struct ir_type type = ir_type_make(g->b->module, g->dtype, g->rank, g->dims);
    if (ir_count(g->b->module, type) == 0) {
        g->out[0] = ir_zeros(g->b, type);
        return;
    }
    jot_dtype work = working_type(g);
    ir_id kernel = reversed(g, as(g, g->in[1], work), n);
    if (g->b->status != JOT_OK)
        return;
    jot_value v = jot_conv_general_dilated_with(trace_value(as(g, g->in[0], work), false),
                                                trace_value(kernel, false), &o);
    graph_take(g, 0, v);
    if (g->b->status == JOT_OK)
        g->out[0] = finished(g, g->out[0]);
}

// ---- transforms and matrices ----

static void convert_fft(struct graph_op *g)
{
    static const char *const kinds[] = {
        [FFT_FFT] = "FFT", [FFT_IFFT] = "IFFT", [FFT_RFFT] = "RFFT", [FFT_IRFFT] = "IRFFT"};
    const char *type = mlir_text(g->op, "fft_type");
    size_t n;
    const int64_t *lengths = mlir_ints(g->op, "fft_length", &n);
    struct ir_type x = ir_type_in(g->b, g->in[0]);
    struct ir_type y = ir_type_make(g->b->module, g->dtype, g->rank, g->dims);
    if (ir_count(g->b->module, x) == 0 || ir_count(g->b->module, y) == 0) {
        g->out[0] = ir_zeros(g->b, y);
        return;
    }
    for (int k = 0; k < 4; k++)
        if (type && !strcmp(type, kinds[k])) {
            g->out[0] = ir_fft(g->b, (enum fft_kind)k, g->in[0], (int)n, lengths);
            return;
        }
    graph_refuse(g, "fft_type is %s", type ? type : "missing");
}

static ir_id swapped(struct graph_op *g, ir_id x)
{
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(g->b, x).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    axes[rank - 2] = rank - 1;
    axes[rank - 1] = rank - 2;
    return ir_transpose(g->b, x, axes);
}

static ir_id conjugated(struct graph_op *g, ir_id x)
{
    return dtype_is_complex(ir_dtype(ir_type_in(g->b, x))) ? ir_conj(g->b, x) : x;
}

// One triangle of the matrix, and the other one made of it: x l^T is of a real or complex x.
static ir_id mirrored(struct graph_op *g, ir_id x, bool is_lower)
{
    struct ir_builder *b = g->b;
    struct ir_type type = ir_type_in(b, x);
    struct ir_type index = ir_type_with(type, JOT_I32);
    ir_id row = ir_iota(b, index, type.rank - 2), column = ir_iota(b, index, type.rank - 1);
    ir_id keeps = is_lower ? ir_ge(b, row, column) : ir_le(b, row, column);
    return ir_select(b, keeps, x, conjugated(g, swapped(g, x)));
}

static void convert_cholesky(struct graph_op *g)
{
    bool is_lower = mlir_int(g->op, "lower", 0) != 0;
    if (g->rank < 2) {
        graph_refuse(g, "no matrix: %d axes", g->rank);
        return;
    }
    jot_dtype work = dtype_is_half(g->dtype) ? JOT_F32 : g->dtype;
    ir_id l = ir_cholesky(g->b, mirrored(g, as(g, g->in[0], work), is_lower));
    g->out[0] = as(g, is_lower ? l : conjugated(g, swapped(g, l)), g->dtype);
}

static void convert_triangular_solve(struct graph_op *g)
{
    const char *word = mlir_text(g->op, "transpose_a");
    bool is_adjoint = word && !strcmp(word, "ADJOINT");
    struct ir_triangular t = {.left = mlir_int(g->op, "left_side", 0) != 0,
                              .lower = mlir_int(g->op, "lower", 0) != 0,
                              .transposed = is_adjoint || (word && !strcmp(word, "TRANSPOSE")),
                              .conjugated = is_adjoint,
                              .unit_diagonal = mlir_int(g->op, "unit_diagonal", 0) != 0};
    jot_dtype work = dtype_is_half(g->dtype) ? JOT_F32 : g->dtype;
    g->out[0] =
        as(g, ir_triangular_solve(g->b, as(g, g->in[0], work), as(g, g->in[1], work), &t),
           g->dtype);
}

static const struct {
    enum mlir_code code;
    graph_convert *convert;
} products[] = {
    {HLO_(dot_general), convert_dot_general},
    {HLO_(dot), convert_dot},
    {MLIR_OP_chlo_ragged_dot, convert_ragged_dot},
    {HLO_(convolution), convert_convolution},
    {HLO_(fft), convert_fft},
    {HLO_(cholesky), convert_cholesky},
    {HLO_(triangular_solve), convert_triangular_solve},
};

graph_convert *graph_product_find(enum mlir_code code)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (products[i].code == code)
            return products[i].convert;
    return NULL;
}
