// SPDX-License-Identifier: Apache-2.0
// Factorizations and linear systems, one matrix after the other, unblocked, in complex numbers of
// double precision whatever the type.
#include "ir/eval_ops.h"
#include "ir/linalg.h"

#include <complex.h>

typedef double complex number;

static number load_number(const struct ir_tensor *t, int64_t i)
{
    jot_dtype d = ir_dtype(t->type);
    struct eval_number x = eval_convert(d, JOT_C128, eval_load(d, t->data, i));
    return CMPLX(scalar_f64(x.re), scalar_f64(x.im));
}

static void store(const struct ir_tensor *t, int64_t i, number x)
{
    jot_dtype d = ir_dtype(t->type);
    struct eval_number wide = {scalar_from_f64(creal(x)), scalar_from_f64(cimag(x))};
    eval_store(d, t->data, i, eval_convert(JOT_C128, d, wide));
}

// The matrices, or the rows, of a tensor: how many, of how many numbers.
struct parts {
    const struct ir_tensor *t;
    int64_t count, rows, columns;
    number *at; // one of them, while it is worked on
};

static struct parts parts_of(const struct eval_call *c, const struct ir_tensor *t, int axes)
{
    const int64_t *dims = ir_dims(c->module, t->type);
    int rank = t->type.rank;
    struct parts p = {
        .t = t, .count = 1, .rows = axes == 2 ? dims[rank - 2] : 1, .columns = dims[rank - 1]};
    for (int i = 0; i < rank - axes; i++)
        p.count *= dims[i];
    p.at = arena_array(c->arena, number, p.rows * p.columns + 1);
    return p;
}

static void load_part(const struct parts *p, int64_t i)
{
    int64_t n = p->rows * p->columns;
    for (int64_t k = 0; k < n; k++)
        p->at[k] = load_number(p->t, i * n + k);
}

static void store_part(const struct parts *p, const struct ir_tensor *to, int64_t i)
{
    int64_t n = p->rows * p->columns;
    for (int64_t k = 0; k < n; k++)
        store(to, i * n + k, p->at[k]);
}

static void symmetrize(number *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k <= i; k++)
            a[i * n + k] = (a[i * n + k] + conj(a[k * n + i])) / 2;
}

// l in place of the lower triangle of a, column by column; false when a is not positive definite.
static bool factor_cholesky(number *a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double d = creal(a[j * n + j]);
        for (int64_t k = 0; k < j; k++)
            d -= creal(a[j * n + k] * conj(a[j * n + k]));
        if (!(d > 0))
            return false;
        a[j * n + j] = sqrt(d);
        for (int64_t i = j + 1; i < n; i++) {
            for (int64_t k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * conj(a[j * n + k]);
            a[i * n + j] /= a[j * n + j];
        }
    }
    return true;
}

jot_status eval_cholesky(const struct eval_call *c)
{
    struct parts a = parts_of(c, &c->in[0], 2);
    int64_t n = a.rows;
    for (int64_t i = 0; i < a.count; i++) {
        load_part(&a, i);
        symmetrize(a.at, n);
        bool is_definite = factor_cholesky(a.at, n);
        for (int64_t row = 0; row < n; row++)
            for (int64_t k = 0; k < n; k++)
                if (k > row || !is_definite)
                    a.at[row * n + k] = k > row ? 0 : NAN;
        store_part(&a, &c->out[0], i);
    }
    return JOT_OK;
}

static double size_of(number x) { return fabs(creal(x)) + fabs(cimag(x)); }

static void swap_rows(number *a, int64_t columns, int64_t i, int64_t k)
{
    for (int64_t j = 0; j < columns; j++) {
        number x = a[i * columns + j];
        a[i * columns + j] = a[k * columns + j];
        a[k * columns + j] = x;
    }
}

// Step k of the elimination; the row that it swapped with row k.
static int64_t eliminate(const struct parts *a, int64_t k)
{
    int64_t n = a->columns, pivot = k;
    for (int64_t i = k + 1; i < a->rows; i++)
        if (size_of(a->at[i * n + k]) > size_of(a->at[pivot * n + k]))
            pivot = i;
    swap_rows(a->at, n, k, pivot);
    number p = a->at[k * n + k];
    for (int64_t i = k + 1; i < a->rows && p != 0; i++) {
        number factor = a->at[i * n + k] /= p;
        for (int64_t j = k + 1; j < n; j++)
            a->at[i * n + j] -= factor * a->at[k * n + j];
    }
    return pivot;
}

jot_status eval_lu(const struct eval_call *c)
{
    struct parts a = parts_of(c, &c->in[0], 2);
    int64_t steps = a.rows < a.columns ? a.rows : a.columns;
    for (int64_t i = 0; i < a.count; i++) {
        int32_t *pivots = (int32_t *)c->out[1].data + i * steps,
                *order = (int32_t *)c->out[2].data + i * a.rows;
        for (int64_t k = 0; k < a.rows; k++)
            order[k] = (int32_t)k;
        load_part(&a, i);
        for (int64_t k = 0; k < steps; k++) {
            pivots[k] = (int32_t)eliminate(&a, k);
            int32_t row = order[k];
            order[k] = order[pivots[k]];
            order[pivots[k]] = row;
        }
        store_part(&a, &c->out[0], i);
    }
    return JOT_OK;
}

// Element (i, k) of op(a), of which the other triangle is zero.
static number coefficient(const struct parts *a, const struct ir_triangular *t, int64_t i,
                          int64_t k)
{
    if (t->unit_diagonal && i == k)
        return 1;
    number x = t->transposed ? a->at[k * a->rows + i] : a->at[i * a->rows + k];
    return t->conjugated ? conj(x) : x;
}

// op(a) x = b for one vector, whose elements are so far apart.
static void substitute(const struct parts *a, const struct ir_triangular *t, number *x,
                       int64_t step)
{
    int64_t n = a->rows;
    bool is_lower = t->lower != t->transposed;
    for (int64_t at = 0; at < n; at++) {
        int64_t i = is_lower ? at : n - 1 - at;
        for (int64_t k = is_lower ? 0 : i + 1; k < (is_lower ? i : n); k++)
            x[i * step] -= coefficient(a, t, i, k) * x[k * step];
        x[i * step] /= coefficient(a, t, i, i);
    }
}

jot_status eval_triangular_solve(const struct eval_call *c)
{
    struct ir_triangular t = ir_triangular_of(c->attrs);
    struct parts a = parts_of(c, &c->in[0], 2), b = parts_of(c, &c->in[1], 2);
    // x op(a) = b is op(a)^T x^T = b^T.
    t.transposed ^= !t.left;
    for (int64_t i = 0; i < b.count; i++) {
        load_part(&a, i);
        load_part(&b, i);
        for (int64_t k = 0; k < (t.left ? b.columns : b.rows); k++)
            substitute(&a, &t, b.at + (t.left ? k : k * b.columns), t.left ? b.columns : 1);
        store_part(&b, &c->out[0], i);
    }
    return JOT_OK;
}

// Gaussian elimination with partial pivoting, as LAPACK's gtsv: u has a third diagonal, in dl.
static void solve_tridiagonal(int64_t n, number *dl, number *d, number *du, number *x,
                              int64_t columns)
{
    for (int64_t i = 0; i + 1 < n; i++) {
        number next = i + 2 < n ? du[i + 1] : 0, low = dl[i + 1];
        bool swaps = size_of(d[i]) < size_of(low);
        number factor = swaps ? d[i] / low : low == 0 ? 0 : low / d[i];
        number diagonal = swaps ? du[i] - factor * d[i + 1] : d[i + 1] - factor * du[i];
        dl[i] = swaps ? next : 0;
        if (swaps) {
            d[i] = low;
            du[i] = d[i + 1];
            next = -factor * next;
        }
        d[i + 1] = diagonal;
        if (i + 2 < n)
            du[i + 1] = next;
        if (swaps)
            swap_rows(x, columns, i, i + 1);
        for (int64_t k = 0; k < columns; k++)
            x[(i + 1) * columns + k] -= factor * x[i * columns + k];
    }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t k = 0; k < columns; k++) {
            number *at = x + i * columns + k;
            if (i + 1 < n)
                *at -= du[i] * at[columns];
            if (i + 2 < n)
                *at -= dl[i] * at[2 * columns];
            *at /= d[i];
        }
}

jot_status eval_tridiagonal_solve(const struct eval_call *c)
{
    struct parts d[3], b = parts_of(c, &c->in[3], 2);
    for (int i = 0; i < 3; i++)
        d[i] = parts_of(c, &c->in[i], 1);
    for (int64_t i = 0; i < b.count; i++) {
        for (int k = 0; k < 3; k++)
            load_part(&d[k], i);
        load_part(&b, i);
        solve_tridiagonal(b.rows, d[0].at, d[1].at, d[2].at, b.at, b.columns);
        store_part(&b, &c->out[0], i);
    }
    return JOT_OK;
}
