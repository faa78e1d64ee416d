// SPDX-License-Identifier: Apache-2.0
// Factorizations and triangular systems, written out; tridiagonal systems as loops over rows.
//
// A vector is a value whose last axis runs along a row or a column of each matrix, and an element is
// a vector of 1, so that elements broadcast along vectors.
#include "ir/linalg.h"
#include "ir/control.h"
#include "passes/expand/expand.h"

#include <math.h>

static int64_t extent(struct ir_builder *b, ir_id x, int from_end)
{
    struct ir_type t = ir_type_in(b, x);
    return ir_dims(b->module, t)[t.rank - from_end];
}

static bool is_empty(struct ir_builder *b, ir_id x)
{
    return ir_count(b->module, ir_type_in(b, x)) == 0;
}

static bool is_complex(struct ir_builder *b, ir_id x)
{
    return dtype_is_complex(ir_dtype(ir_type_in(b, x)));
}

// x from first to end along the last axis but `behind`.
static ir_id part(struct ir_builder *b, ir_id x, int behind, int64_t first, int64_t end)
{
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, x);
    memcpy(limits, ir_dims(b->module, t), sizeof *limits * t.rank);
    starts[t.rank - 1 - behind] = first;
    limits[t.rank - 1 - behind] = end;
    return ir_slice(b, x, starts, limits, NULL);
}

static ir_id element(struct ir_builder *b, ir_id vector, int64_t i)
{
    return part(b, vector, 0, i, i + 1);
}

// x without its last axis but `behind`, or with one of 1 there.
static ir_id drop_axis(struct ir_builder *b, ir_id x, int behind)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, x);
    int at = t.rank - 1 - behind, n = 0;
    for (int i = 0; i < t.rank; i++)
        if (i != at)
            dims[n++] = ir_dims(b->module, t)[i];
    return ir_reshape(b, x, n, dims);
}

static ir_id add_axis(struct ir_builder *b, ir_id x, int behind)
{
    int64_t dims[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, x);
    int at = t.rank - behind, n = 0;
    for (int i = 0; i <= t.rank; i++)
        dims[i] = i == at ? 1 : ir_dims(b->module, t)[n++];
    return ir_reshape(b, x, t.rank + 1, dims);
}

static ir_id row_of(struct ir_builder *b, ir_id matrix, int64_t i)
{
    return drop_axis(b, part(b, matrix, 1, i, i + 1), 1);
}

static ir_id column_of(struct ir_builder *b, ir_id matrix, int64_t i)
{
    return drop_axis(b, part(b, matrix, 0, i, i + 1), 0);
}

static ir_id join(struct ir_builder *b, int n, const ir_id *x)
{
    return ir_concatenate(b, n, x, ir_type_in(b, x[0]).rank - 1);
}

static ir_id matrix_of_rows(struct ir_builder *b, int64_t n, ir_id *rows)
{
    for (int64_t i = 0; i < n; i++)
        rows[i] = add_axis(b, rows[i], 1);
    return ir_concatenate(b, (int)n, rows, ir_type_in(b, rows[0]).rank - 2);
}

static ir_id matrix_of_columns(struct ir_builder *b, int64_t n, ir_id *columns)
{
    for (int64_t i = 0; i < n; i++)
        columns[i] = add_axis(b, columns[i], 0);
    return join(b, (int)n, columns);
}

// z - x y
static ir_id minus_product(struct ir_builder *b, ir_id z, ir_id x, ir_id y)
{
    return is_complex(b, z) ? ir_sub(b, z, ir_mul(b, x, y)) : ir_fma(b, ir_neg(b, x), y, z);
}

// |re| + |im|
static ir_id size_of(struct ir_builder *b, ir_id x)
{
    if (!is_complex(b, x))
        return ir_abs(b, x);
    return ir_add(b, ir_abs(b, ir_real(b, x)), ir_abs(b, ir_imag(b, x)));
}

static ir_id pad_front(struct ir_builder *b, ir_id x, int64_t by)
{
    int64_t low[IR_MAX_RANK] = {0}, none[IR_MAX_RANK] = {0};
    low[ir_type_in(b, x).rank - 1] = by;
    return by ? ir_pad(b, x, ir_scalar_like(b, x, 0), low, none, none) : x;
}

// Column j of (a + a^H) / 2 from the diagonal on.
static ir_id symmetrized_column(struct ir_builder *b, ir_id a, int64_t j, int64_t n)
{
    ir_id row = row_of(b, a, j), sum;
    row = is_complex(b, a) ? ir_conj(b, row) : row;
    sum = ir_add(b, part(b, column_of(b, a, j), 0, j, n), part(b, row, 0, j, n));
    return ir_mul(b, sum, ir_scalar_like(b, sum, 0.5));
}

// Column j of l from the diagonal on, which is column j of a less its products with the columns
// before, over the square root of its first element.
void expand_cholesky(struct ir_builder *b, const struct ir_attrs *attrs, const ir_id *in,
                     ir_id *out)
{
    (void)attrs;
    ir_id a = in[0], columns[EXPAND_SIZE], is_definite = IR_NONE;
    int64_t n = extent(b, a, 1);
    out[0] = a;
    if (is_empty(b, a))
        return;
    for (int64_t j = 0; j < n; j++) {
        ir_id c = symmetrized_column(b, a, j, n);
        for (int64_t k = 0; k < j; k++) {
            ir_id factor = element(b, columns[k], j - k);
            factor = is_complex(b, a) ? ir_conj(b, factor) : factor;
            c = minus_product(b, c, factor, part(b, columns[k], 0, j - k, n - k));
        }
        ir_id d = element(b, c, 0);
        d = is_complex(b, a) ? ir_real(b, d) : d;
        ir_id is_positive = ir_gt(b, d, ir_scalar_like(b, d, 0));
        is_definite = j ? ir_and(b, is_definite, is_positive) : is_positive;
        ir_id root = ir_sqrt(b, d);
        ir_id scale =
            ir_convert(b, ir_div(b, ir_scalar_like(b, d, 1), root), ir_dtype(ir_type_in(b, a)));
        root = ir_convert(b, root, ir_dtype(ir_type_in(b, a)));
        ir_id below = ir_mul(b, part(b, c, 0, 1, n - j), scale);
        columns[j] = j + 1 < n ? join(b, 2, (ir_id[]){root, below}) : root;
    }
    for (int64_t j = 0; j < n; j++) {
        ir_id c = ir_select(b, is_definite, columns[j], ir_scalar_like(b, a, (double)NAN));
        columns[j] = pad_front(b, c, j);
    }
    out[0] = matrix_of_columns(b, n, columns);
}

// Exchanges rows k and one behind it, whose number is `pivot`, in a list of vectors.
static void swap_rows(struct ir_builder *b, ir_id pivot, int64_t n, int64_t k, ir_id *rows)
{
    ir_id row = rows[k];
    for (int64_t i = k + 1; i < n; i++) {
        ir_id is_pivot = ir_eq(b, pivot, ir_scalar_int(b, JOT_I32, i)), old = rows[i];
        rows[i] = ir_select(b, is_pivot, row, old);
        rows[k] = ir_select(b, is_pivot, old, rows[k]);
    }
}

// The number of the first row from k on whose element k is largest.
static ir_id find_pivot(struct ir_builder *b, int64_t n, int64_t k, const ir_id *rows)
{
    ir_id most = size_of(b, element(b, rows[k], k));
    ir_id pivot = ir_full(b, ir_type_with(ir_type_in(b, most), JOT_I32), (double)k);
    for (int64_t i = k + 1; i < n; i++) {
        ir_id size = size_of(b, element(b, rows[i], k)), is_more = ir_gt(b, size, most);
        most = ir_select(b, is_more, size, most);
        pivot = ir_select(b, is_more, ir_scalar_int(b, JOT_I32, i), pivot);
    }
    return pivot;
}

// Step k of the elimination: factors in column k, and rows less their multiple of row k.
static void eliminate(struct ir_builder *b, int64_t n, int64_t columns, int64_t k, ir_id *rows)
{
    ir_id p = element(b, rows[k], k), zero = ir_scalar_like(b, p, 0);
    ir_id divisor = ir_select(b, ir_eq(b, p, zero), ir_scalar_like(b, p, 1), p);
    for (int64_t i = k + 1; i < n; i++) {
        ir_id parts[3] = {part(b, rows[i], 0, 0, k)};
        parts[1] = ir_div(b, element(b, rows[i], k), divisor);
        parts[2] = minus_product(b, part(b, rows[i], 0, k + 1, columns), parts[1],
                                 part(b, rows[k], 0, k + 1, columns));
        rows[i] = join(b, 3, parts);
    }
}

void expand_lu(struct ir_builder *b, const struct ir_attrs *attrs, const ir_id *in, ir_id *out)
{
    (void)attrs;
    ir_id a = in[0], rows[EXPAND_SIZE], order[EXPAND_SIZE], pivots[EXPAND_SIZE];
    int64_t n = extent(b, a, 2), columns = extent(b, a, 1), steps = n < columns ? n : columns;
    struct ir_type t = ir_type_in(b, a);
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(b->module, t), sizeof *dims * t.rank);
    struct ir_type numbers = ir_type_make(b->module, JOT_I32, t.rank - 1, dims);
    if (is_empty(b, a)) {
        out[0] = a;
        out[2] = ir_iota(b, numbers, t.rank - 2);
        dims[t.rank - 2] = steps;
        out[1] = ir_zeros(b, ir_type_make(b->module, JOT_I32, t.rank - 1, dims));
        return;
    }
    dims[t.rank - 2] = 1;
    numbers = ir_type_make(b->module, JOT_I32, t.rank - 1, dims);
    for (int64_t i = 0; i < n; i++) {
        rows[i] = row_of(b, a, i);
        order[i] = ir_full(b, numbers, (double)i);
    }
    for (int64_t k = 0; k < steps; k++) {
        pivots[k] = find_pivot(b, n, k, rows);
        swap_rows(b, pivots[k], n, k, rows);
        swap_rows(b, pivots[k], n, k, order);
        eliminate(b, n, columns, k, rows);
    }
    out[0] = matrix_of_rows(b, n, rows);
    out[1] = join(b, (int)steps, pivots);
    out[2] = join(b, (int)n, order);
}

// Element (i, k) of op(a).
static ir_id coefficient(struct ir_builder *b, ir_id a, const struct ir_triangular *t,
                         int64_t i, int64_t k)
{
    ir_id x = t->transposed ? element(b, row_of(b, a, k), i) : element(b, row_of(b, a, i), k);
    return t->conjugated && is_complex(b, a) ? ir_conj(b, x) : x;
}

// Substitution, in vectors of all right sides: rows of b, or columns where x op(a) = b.
void expand_triangular_solve(struct ir_builder *b, const struct ir_attrs *attrs,
                             const ir_id *in, ir_id *out)
{
    struct ir_triangular t = ir_triangular_of(attrs);
    int64_t n = extent(b, in[0], 1);
    ir_id x[EXPAND_SIZE];
    out[0] = in[1];
    if (is_empty(b, in[1]))
        return;
    t.transposed ^= !t.left;
    bool is_lower = t.lower != t.transposed;
    for (int64_t at = 0; at < n; at++) {
        int64_t i = is_lower ? at : n - 1 - at;
        x[i] = t.left ? row_of(b, in[1], i) : column_of(b, in[1], i);
        for (int64_t k = is_lower ? 0 : i + 1; k < (is_lower ? i : n); k++)
            x[i] = minus_product(b, x[i], coefficient(b, in[0], &t, i, k), x[k]);
        if (!t.unit_diagonal)
            x[i] = ir_div(b, x[i], coefficient(b, in[0], &t, i, i));
    }
    out[0] = t.left ? matrix_of_rows(b, n, x) : matrix_of_columns(b, n, x);
}

// ---- Tridiagonal systems: gtsv of LAPACK

// x with the axis of rows, the last one but `behind`, in front.
static ir_id rows_first(struct ir_builder *b, ir_id x, int behind)
{
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(b, x).rank, at = rank - 1 - behind;
    for (int i = 0; i < rank; i++)
        axes[i] = i == 0 ? at : i <= at ? i - 1 : i;
    return ir_transpose(b, x, axes);
}

static ir_id rows_back(struct ir_builder *b, ir_id x)
{
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(b, x).rank, at = rank - 2;
    for (int i = 0; i < rank; i++)
        axes[i] = i < at ? i + 1 : i == at ? 0 : i;
    return ir_transpose(b, x, axes);
}

// Along axis 0: the rows behind the first, and a row of zeros.
static ir_id next_rows(struct ir_builder *b, ir_id x)
{
    int64_t low[IR_MAX_RANK] = {-1}, high[IR_MAX_RANK] = {1}, none[IR_MAX_RANK] = {0};
    return ir_pad(b, x, ir_scalar_like(b, x, 0), low, high, none);
}

static ir_id zero_last(struct ir_builder *b, ir_id x)
{
    int64_t low[IR_MAX_RANK] = {0}, off[IR_MAX_RANK] = {-1}, on[IR_MAX_RANK] = {1},
            none[IR_MAX_RANK] = {0};
    ir_id zero = ir_scalar_like(b, x, 0);
    return ir_pad(b, ir_pad(b, x, zero, low, off, none), zero, low, on, none);
}

static ir_id first_row(struct ir_builder *b, ir_id x)
{
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, x);
    memcpy(limits, ir_dims(b->module, t), sizeof *limits * t.rank);
    limits[0] = 1;
    return ir_reshape(b, ir_slice(b, x, starts, limits, NULL), t.rank - 1,
                      ir_dims(b->module, t) + 1);
}

// (d, e, x | low, d', e', x') -> (the next d, e, x | d, e, f, x of this row of u and its right
// side): the row below is swapped with this one when its first element is larger.
static uint32_t elimination(struct ir_module *m, struct ir_type element, struct ir_type vector)
{
    struct ir_builder f = ir_builder_make(m, "eliminate", IR_BUILD_ALL), *b = &f;
    ir_id d = ir_param(b, element), e = ir_param(b, element), x = ir_param(b, vector);
    ir_id low = ir_param(b, element), d2 = ir_param(b, element), e2 = ir_param(b, element),
          x2 = ir_param(b, vector), zero = ir_scalar_like(b, d, 0);
    ir_id swaps = ir_lt(b, size_of(b, d), size_of(b, low));
    ir_id divisor = ir_select(b, swaps, low, d), dividend = ir_select(b, swaps, d, low);
    ir_id is_zero = ir_eq(b, dividend, zero);
    ir_id factor = ir_select(b, is_zero, zero, ir_div(b, dividend, divisor));
    ir_id top_e = ir_select(b, swaps, d2, e), bottom_e = ir_select(b, swaps, e, d2);
    ir_id top_f = ir_select(b, swaps, e2, zero), bottom_f = ir_select(b, swaps, zero, e2);
    ir_id top_x = ir_select(b, swaps, x2, x), bottom_x = ir_select(b, swaps, x, x2);
    ir_output(b, minus_product(b, bottom_e, factor, top_e));
    ir_output(b, minus_product(b, bottom_f, factor, top_f));
    ir_output(b, minus_product(b, bottom_x, factor, top_x));
    ir_output(b, divisor);
    ir_output(b, top_e);
    ir_output(b, top_f);
    ir_output(b, top_x);
    return ir_finish_function(b);
}

// (x', x'' | d, e, f, x) -> (x', x'' of the row above | x of this one)
static uint32_t substitution(struct ir_module *m, struct ir_type element, struct ir_type vector)
{
    struct ir_builder f = ir_builder_make(m, "substitute", IR_BUILD_ALL), *b = &f;
    ir_id x1 = ir_param(b, vector), x2 = ir_param(b, vector);
    ir_id d = ir_param(b, element), e = ir_param(b, element), third = ir_param(b, element),
          x = ir_param(b, vector);
    x = minus_product(b, minus_product(b, x, e, x1), third, x2);
    x = ir_div(b, x, d);
    ir_output(b, x);
    ir_output(b, x1);
    ir_output(b, x);
    return ir_finish_function(b);
}

void expand_tridiagonal_solve(struct ir_builder *b, const struct ir_attrs *attrs,
                              const ir_id *in, ir_id *out)
{
    (void)attrs;
    out[0] = in[3];
    if (is_empty(b, in[3]))
        return;
    ir_id rows[4];
    for (int i = 0; i < 4; i++)
        rows[i] = rows_first(b, i < 3 ? add_axis(b, in[i], 0) : in[3], 1);
    rows[2] = zero_last(b, rows[2]);
    struct ir_type element = ir_type_in(b, first_row(b, rows[0])),
                   vector = ir_type_in(b, first_row(b, rows[3]));
    int64_t n = ir_dims(b->module, ir_type_in(b, rows[3]))[0];
    ir_id down[7] = {first_row(b, rows[1]), first_row(b, rows[2]), first_row(b, rows[3])};
    for (int i = 0; i < 4; i++)
        down[3 + i] = next_rows(b, rows[i]);
    struct ir_scan s = {
        .body = elimination(b->module, element, vector), .n_carry = 3, .length = n};
    ir_id y = ir_scan(b, &s, 7, down), zero = ir_zeros(b, vector);
    ir_id up[6] = {zero, zero, y + 3, y + 4, y + 5, y + 6};
    s = (struct ir_scan){.body = substitution(b->module, element, vector),
                         .n_carry = 2,
                         .length = n,
                         .reverse = true};
    out[0] = rows_back(b, ir_scan(b, &s, 6, up) + 2);
}
