// SPDX-License-Identifier: Apache-2.0
// Nodes of linear algebra: operations of StableHLO, and calls of the routines that JAX has on the host, by its
// names for them.
#include "interop/from_graph.h"

#include "base/dtype.h"
#include "ir/linalg.h"

#include <stdio.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- matrices ----

// The same with other last axes.
static const struct mlir_type *matrix_type(struct hlo_writer *w, const struct mlir_type *like,
                                           jot_dtype d, int64_t rows, int64_t columns)
{
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, like->dims, sizeof *dims * (size_t)like->rank);
    dims[like->rank - 2] = rows;
    dims[like->rank - 1] = columns;
    return hlo_type(w, d, like->rank, dims);
}

// A row for each matrix, and a number for each.
static const struct mlir_type *row_type(struct hlo_writer *w, const struct mlir_type *like,
                                        jot_dtype d, int64_t n)
{
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, like->dims, sizeof *dims * (size_t)(like->rank - 2));
    dims[like->rank - 2] = n;
    return hlo_type(w, d, like->rank - 1, dims);
}

static const struct mlir_type *batch_type(struct hlo_writer *w, const struct mlir_type *like)
{
    return hlo_type(w, JOT_I32, like->rank - 2, like->dims);
}

static hlo_value cut(struct hlo_writer *w, hlo_value x, int64_t rows, int64_t columns)
{
    int64_t starts[IR_MAX_RANK] = {0};
    const struct mlir_type *t = matrix_type(w, x->type, hlo_dtype(x), rows, columns);
    return mlir_types_equal(t, x->type) ? x : hlo_slice(w, x, starts, t->dims, NULL);
}

static hlo_value widened(struct hlo_writer *w, hlo_value x, int64_t columns)
{
    int64_t none[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    int rank = x->type->rank;
    struct hlo_attrs a = {0};
    if (x->type->dims[rank - 1] == columns)
        return x;
    high[rank - 1] = columns - x->type->dims[rank - 1];
    hlo_ints(w, &a, "edge_padding_low", rank, none);
    hlo_ints(w, &a, "edge_padding_high", rank, high);
    hlo_ints(w, &a, "interior_padding", rank, none);
    hlo_value zero = hlo_number(w, hlo_type(w, hlo_dtype(x), 0, NULL), 0);
    return hlo_op(w, HLO_(pad),
                  matrix_type(w, x->type, hlo_dtype(x), x->type->dims[rank - 2], columns), 2,
                  (hlo_value[]){x, zero}, &a);
}

// What is above the diagonal, or below it, is 0.
static hlo_value triangle(struct hlo_writer *w, hlo_value x, bool is_lower)
{
    const struct mlir_type *t = hlo_type_with(w, x->type, JOT_I32);
    hlo_value row = hlo_iota(w, t, t->rank - 2), column = hlo_iota(w, t, t->rank - 1);
    hlo_value keeps = hlo_compare(w, is_lower ? "GE" : "LE", false, row, column);
    return hlo_select(w, keeps, x, hlo_number(w, x->type, 0));
}

static hlo_value conjugate(struct hlo_writer *w, hlo_value x)
{
    if (!dtype_is_complex(hlo_dtype(x)))
        return x;
    const struct mlir_type *t = hlo_type_with(w, x->type, dtype_real(hlo_dtype(x)));
    hlo_value re = hlo_op(w, HLO_(real), t, 1, &x, NULL);
    hlo_value im = hlo_op(w, HLO_(imag), t, 1, &x, NULL);
    return hlo_op(w, HLO_(complex), x->type, 2, (hlo_value[]){re, hlo_1(w, HLO_(negate), im)},
                  NULL);
}

static hlo_value adjoint(struct hlo_writer *w, hlo_value x)
{
    int64_t axes[IR_MAX_RANK];
    int rank = x->type->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    axes[rank - 2] = rank - 1;
    axes[rank - 1] = rank - 2;
    return conjugate(w, hlo_transpose(w, x, axes));
}

// ---- calls ----

// Matrices column by column; others row by row.
static const struct mlir_attr *layout_of(struct hlo_writer *w, const struct mlir_type *t,
                                         bool is_matrix)
{
    int64_t order[IR_MAX_RANK], rank = t->rank;
    for (int i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    if (is_matrix) {
        order[0] = rank - 2;
        order[1] = rank - 1;
    }
    struct mlir_type *type = arena_new(w->arena, struct mlir_type);
    *type = (struct mlir_type){.kind = MLIR_TENSOR, .element = MLIR_INDEX, .rank = 1};
    type->dims = arena_copy(w->arena, &rank, sizeof rank);
    size_t n = sizeof *order * (size_t)rank;
    return hlo_attr(w, (struct mlir_attr){.kind = MLIR_DENSE,
                                          .type = type,
                                          .is_splat = rank == 1,
                                          .n = n,
                                          .bytes = arena_copy(w->arena, order, n ? n : 1)});
}

struct call {
    const char *routine; // "getrf"
    uint32_t n_in, n_out;
    const hlo_value *in;
    const struct mlir_type *out[6];
    uint32_t rows_in, rows_out; // bits: operands and results that are no matrices
    uint32_t n_letters;
    const char *names[2]; // what the routine is configured by, in the order of the alphabet
    char letters[2];
};

static const struct mlir_attr *layouts_of(struct hlo_writer *w, uint32_t n,
                                          const struct mlir_type *const *types, uint32_t rows)
{
    const struct mlir_attr **parts = arena_array(w->arena, const struct mlir_attr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = layout_of(w, types[i], !(rows >> i & 1));
    return hlo_attr(w, (struct mlir_attr){.kind = MLIR_ARRAY, .n = n, .parts = parts});
}

static const struct mlir_attr *configuration(struct hlo_writer *w, const struct call *c)
{
    struct mlir_named *named = arena_array(w->arena, struct mlir_named, c->n_letters + 1);
    for (uint32_t i = 0; i < c->n_letters; i++)
        named[i] = (struct mlir_named){
            c->names[i], hlo_attr(w, (struct mlir_attr){.kind = MLIR_INT,
                                                        .type = hlo_word_type(w, MLIR_UI8),
                                                        .integer = c->letters[i]})};
    return hlo_attr(
        w, (struct mlir_attr){.kind = MLIR_DICTIONARY, .n = c->n_letters, .named = named});
}

static hlo_value const *call(struct hlo_writer *w, const struct call *c)
{
    struct hlo_attrs a = {0};
    char target[64];
    const struct mlir_type *types[4];
    jot_dtype d = hlo_dtype(c->in[0]);
    char letter = d == JOT_F32 ? 's' : d == JOT_F64 ? 'd' : d == JOT_C64 ? 'c' : 'z';
    snprintf(target, sizeof target, "lapack_%c%s_ffi", letter, c->routine);
    for (uint32_t i = 0; i < c->n_in; i++)
        types[i] = c->in[i]->type;
    hlo_text(w, &a, "call_target_name", MLIR_STRING, arena_text(w->arena, target));
    hlo_add(&a, "operand_layouts", layouts_of(w, c->n_in, types, c->rows_in));
    hlo_add(&a, "result_layouts", layouts_of(w, c->n_out, c->out, c->rows_out));
    hlo_add(&a, "mhlo.backend_config", configuration(w, c));
    struct mlir_op *op =
        hlo_emit(w, HLO_(custom_call), c->n_in, c->in, c->n_out, c->out, &a, 0, NULL);
    return op->results;
}

// ---- factorizations ----

static void write_cholesky(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    hlo_value x = n->in[0];
    x = hlo_2(w, HLO_(add), x, adjoint(w, x));
    x = hlo_2(w, HLO_(multiply), x, hlo_number(w, x->type, 0.5));
    hlo_bool(w, &a, "lower", true);
    n->out[0] = triangle(w, hlo_op(w, HLO_(cholesky), n->type, 1, &x, &a), true);
}

static void write_triangular_solve(struct hlo_node *n)
{
    struct ir_triangular t = ir_triangular_of(n->n->attrs);
    struct hlo_attrs a = {0};
    bool is_plain = t.conjugated && !t.transposed;
    hlo_value in[] = {is_plain ? conjugate(n->w, n->in[0]) : n->in[0], n->in[1]};
    hlo_bool(n->w, &a, "left_side", t.left);
    hlo_bool(n->w, &a, "lower", t.lower);
    hlo_bool(n->w, &a, "unit_diagonal", t.unit_diagonal);
    hlo_text(n->w, &a, "transpose_a", MLIR_ENUM,
             !t.transposed   ? "NO_TRANSPOSE"
             : !t.conjugated ? "TRANSPOSE"
                             : "ADJOINT");
    n->out[0] = hlo_op(n->w, HLO_(triangular_solve), n->type, 2, in, &a);
}

static void write_tridiagonal_solve(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const struct mlir_type *t = n->in[0]->type;
    struct call c = {.routine = "gtsv",
                     .n_in = 4,
                     .in = n->in,
                     .n_out = 5,
                     .out = {t, t, t, n->type, batch_type(w, n->type)},
                     .rows_in = 7,
                     .rows_out = 7 | 16};
    n->out[0] = call(w, &c)[3];
}

// The order of the rows after swaps, one after the other.
static hlo_value permutation(struct hlo_writer *w, hlo_value pivots, const struct mlir_type *t)
{
    int rank = t->rank;
    int64_t last = rank - 1, axes[IR_MAX_RANK];
    const struct mlir_type *count = hlo_type(w, JOT_I32, 0, NULL);
    const struct mlir_type *types[] = {count, t, pivots->type};
    hlo_value zero = hlo_number(w, count, 0), in[] = {zero, hlo_iota(w, t, (int)last), pivots};
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    struct hlo_block test = hlo_open(w, 3, types);
    hlo_value n = hlo_number(w, count, (double)pivots->type->dims[last]);
    hlo_value goes_on = hlo_compare(w, "LT", false, test.block.args[0], n);
    struct mlir_block regions[2] = {hlo_close(w, &test, HLO_(return), 1, &goes_on)};
    struct hlo_block step = hlo_open(w, 3, types);
    hlo_value i = step.block.args[0], p = step.block.args[1], starts[IR_MAX_RANK + 1];
    hlo_value none = hlo_number(w, count, 0), zeros = hlo_number(w, t, 0);
    int64_t sizes[IR_MAX_RANK];
    starts[0] = step.block.args[2];
    for (int k = 0; k < rank; k++) {
        starts[k + 1] = k == last ? i : none;
        sizes[k] = k == last ? 1 : t->dims[k];
    }
    struct hlo_attrs a = {0};
    hlo_ints(w, &a, "slice_sizes", rank, sizes);
    hlo_value pivot = hlo_op(w, HLO_(dynamic_slice), hlo_type(w, JOT_I32, rank, sizes),
                             (uint32_t)rank + 1, starts, &a);
    hlo_value index = hlo_iota(w, t, (int)last);
    hlo_value here = hlo_compare(w, "EQ", false, index, hlo_broadcast(w, i, t, NULL));
    hlo_value there = hlo_compare(w, "EQ", false, index, hlo_broadcast(w, pivot, t, axes));
    hlo_value at_here = hlo_reduce(w, IR_add, hlo_select(w, here, p, zeros), none, 1, &last);
    hlo_value at_there = hlo_reduce(w, IR_add, hlo_select(w, there, p, zeros), none, 1, &last);
    p = hlo_select(w, there, hlo_broadcast(w, at_here, t, axes), p);
    p = hlo_select(w, here, hlo_broadcast(w, at_there, t, axes), p);
    hlo_value out[] = {hlo_2(w, HLO_(add), i, hlo_number(w, count, 1)), p, step.block.args[2]};
    regions[1] = hlo_close(w, &step, HLO_(return), 3, out);
    return hlo_emit(w, HLO_(while), 3, in, 3, types, NULL, 2, regions)->results[1];
}

static void write_lu(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const int64_t *dims = n->type->dims + n->type->rank - 2;
    int64_t k = dims[0] < dims[1] ? dims[0] : dims[1];
    const struct mlir_type *pivots = row_type(w, n->type, JOT_I32, k);
    struct call c = {.routine = "getrf",
                     .n_in = 1,
                     .in = n->in,
                     .n_out = 3,
                     .out = {n->type, pivots, batch_type(w, n->type)},
                     .rows_out = 6};
    hlo_value const *got = call(w, &c);
    n->out[0] = got[0];
    n->out[1] = hlo_2(w, HLO_(subtract), got[1], hlo_number(w, pivots, 1));
    n->out[2] = permutation(w, n->out[1], row_type(w, n->type, JOT_I32, dims[0]));
}

static void write_qr(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    hlo_value a = n->in[0];
    jot_dtype d = hlo_dtype(a);
    const int64_t *dims = a->type->dims + a->type->rank - 2;
    int64_t k = dims[0] < dims[1] ? dims[0] : dims[1], rows = dims[0];
    int64_t columns = n->type->dims[n->type->rank - 1]; // of Q
    struct call c = {.routine = "geqrf",
                     .n_in = 1,
                     .in = &a,
                     .n_out = 2,
                     .out = {a->type, row_type(w, a->type, d, k)},
                     .rows_out = 2};
    hlo_value const *got = call(w, &c);
    hlo_value in[] = {widened(w, cut(w, got[0], rows, k), columns), got[1]};
    struct call q = {.routine = dtype_is_complex(d) ? "ungqr" : "orgqr",
                     .n_in = 2,
                     .in = in,
                     .n_out = 1,
                     .out = {n->type},
                     .rows_in = 2};
    n->out[1] = triangle(w, cut(w, got[0], columns, dims[1]), false);
    n->out[0] = call(w, &q)[0];
}

static void write_eigh(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const struct mlir_type *t = n->in[0]->type;
    struct call c = {.routine = dtype_is_complex(hlo_dtype(n->in[0])) ? "heevd" : "syevd",
                     .n_in = 1,
                     .in = n->in,
                     .n_out = 3,
                     .out = {t, n->type, batch_type(w, t)},
                     .rows_out = 6,
                     .n_letters = 2,
                     .names = {"mode", "uplo"},
                     .letters = {'V', 'L'}};
    hlo_value const *got = call(w, &c);
    n->out[0] = got[1];
    if (n->n->n_out > 1)
        n->out[1] = got[0];
}

static void write_svd(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const struct mlir_type *t = n->in[0]->type;
    jot_dtype d = hlo_dtype(n->in[0]);
    int64_t mode = ir_attr_int_or(n->n->attrs, IR_KEY_mode, 0);
    int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    int64_t k = rows < columns ? rows : columns, kept = n->type->dims[n->type->rank - 1];
    struct call c = {.routine = "gesdd",
                     .n_in = 1,
                     .in = n->in,
                     .n_out = 5,
                     .out = {t, row_type(w, t, dtype_real(d), k),
                             matrix_type(w, t, d, rows, mode == 2 ? rows : k),
                             matrix_type(w, t, d, mode == 2 ? columns : k, columns),
                             batch_type(w, t)},
                     .rows_out = 2 | 16,
                     .n_letters = 1,
                     .names = {"mode"},
                     .letters = {mode == 0   ? 'N'
                                 : mode == 2 ? 'A'
                                             : 'S'}};
    hlo_value const *got = call(w, &c);
    int64_t starts[IR_MAX_RANK] = {0};
    n->out[0] = mode == 3 ? hlo_slice(w, got[1], starts, n->type->dims, NULL) : got[1];
    if (mode) {
        n->out[1] = mode == 3 ? cut(w, got[2], rows, kept) : got[2];
        n->out[2] = mode == 3 ? cut(w, got[3], kept, columns) : got[3];
    }
}

static void write_eig(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const struct mlir_type *t = n->in[0]->type;
    jot_dtype d = hlo_dtype(n->in[0]);
    int64_t mode = ir_attr_int_or(n->n->attrs, IR_KEY_mode, 0);
    bool is_complex = dtype_is_complex(d);
    const struct mlir_type *values = row_type(w, t, d, t->dims[t->rank - 1]);
    const struct mlir_type *vectors = hlo_type_with(w, t, is_complex ? d : dtype_complex(d));
    struct call c = {.routine = "geev",
                     .n_in = 1,
                     .in = n->in,
                     .n_out = is_complex ? 4 : 5,
                     .n_letters = 2,
                     .names = {"compute_left", "compute_right"},
                     .letters = {mode == 2 ? 'V' : 'N', mode ? 'V' : 'N'}};
    uint32_t at = 0;
    c.out[at++] = values;
    if (!is_complex)
        c.out[at++] = values;
    c.rows_out = (1u << at) - 1;
    c.out[at++] = vectors;
    c.out[at++] = vectors;
    c.rows_out |= 1u << at;
    c.out[at++] = batch_type(w, t);
    hlo_value const *got = call(w, &c), *found = got + (is_complex ? 1 : 2);
    n->out[0] = is_complex ? got[0] : hlo_op(w, HLO_(complex), n->type, 2, got, NULL);
    for (int i = 1; i <= mode; i++)
        n->out[i] = mode == 1 ? found[1] : found[i - 1];
}

static void write_schur(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    const struct mlir_type *t = n->type, *numbers = batch_type(w, t);
    jot_dtype d = hlo_dtype(n->in[0]);
    bool is_complex = dtype_is_complex(d);
    const struct mlir_type *values = row_type(w, t, d, t->dims[t->rank - 1]);
    struct call c = {.routine = "gees",
                     .n_in = 1,
                     .in = n->in,
                     .n_out = is_complex ? 5 : 6,
                     .out = {t, t, values, is_complex ? numbers : values, numbers, numbers},
                     .rows_out = ~3u,
                     .n_letters = 2,
                     .names = {"mode", "sort"},
                     .letters = {'V', 'N'}};
    hlo_value const *got = call(w, &c);
    n->out[0] = got[0];
    n->out[1] = got[1];
}

// ---- nothing to compute ----

// Of matrices without elements: ones on the diagonals of what is square, and rows in their order.
static void write_empty(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    for (uint32_t i = 0; i < n->n->n_out; i++) {
        const struct mlir_type *t = hlo_type_of(w, ir_type_of(n->g, n->n->out + i));
        if (t->element == MLIR_I32 && i == 2) {
            n->out[i] = hlo_iota(w, t, t->rank - 1);
        } else if (t->rank >= 2 && mlir_elements_of(t) > 0 &&
                   t->dims[t->rank - 1] == t->dims[t->rank - 2]) {
            const struct mlir_type *index = hlo_type_with(w, t, JOT_I32);
            hlo_value row = hlo_iota(w, index, t->rank - 2);
            hlo_value column = hlo_iota(w, index, t->rank - 1);
            n->out[i] = hlo_select(w, hlo_compare(w, "EQ", false, row, column),
                                   hlo_number(w, t, 1), hlo_number(w, t, 0));
        } else {
            n->out[i] = hlo_number(w, t, 0);
        }
    }
}

void hlo_library(struct hlo_node *n)
{
    switch (mlir_elements_of(n->in[0]->type) ? n->n->op : IR_OP_COUNT) {
    case IR_cholesky:
        write_cholesky(n);
        break;
    case IR_triangular_solve:
        write_triangular_solve(n);
        break;
    case IR_tridiagonal_solve:
        write_tridiagonal_solve(n);
        break;
    case IR_lu:
        write_lu(n);
        break;
    case IR_qr:
        write_qr(n);
        break;
    case IR_eigh:
        write_eigh(n);
        break;
    case IR_svd:
        write_svd(n);
        break;
    case IR_eig:
        write_eig(n);
        break;
    case IR_schur:
        write_schur(n);
        break;
    default:
        write_empty(n);
    }
}
