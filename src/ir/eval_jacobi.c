// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of Hermitian matrices by cyclic Jacobi rotations, singular values by one-sided ones
// (Golub, Van Loan, Matrix Computations, 8.5 and 8.6.3): sweeps over all pairs until none turns.
#include "ir/eval_matrix.h"

enum { SWEEPS = 60 };

// The rotation (x, y) <- (c x - conj(s) y, s x + c y) that makes a Hermitian pair diagonal: app and
// aqq real, apq between them.
struct rotation {
    double c;
    double complex s;
};

static struct rotation rotation_for(double app, double aqq, double complex apq)
{
    double size = cabs(apq), theta = (aqq - app) / (2 * size);
    double t = copysign(1 / (fabs(theta) + hypot(1, theta)), theta), c = 1 / hypot(1, t);
    return (struct rotation){c, t * c * (apq / size)};
}

static void rotate_columns(struct matrix a, int64_t p, int64_t q, struct rotation r)
{
    for (int64_t i = 0; i < a.rows; i++) {
        double complex x = *entry(a, i, p), y = *entry(a, i, q);
        *entry(a, i, p) = r.c * x - conj(r.s) * y;
        *entry(a, i, q) = r.s * x + r.c * y;
    }
}

// The adjoint of the same from the left.
static void rotate_rows(struct matrix a, int64_t p, int64_t q, struct rotation r)
{
    for (int64_t j = 0; j < a.cols; j++) {
        double complex x = *entry(a, p, j), y = *entry(a, q, j);
        *entry(a, p, j) = r.c * x - r.s * y;
        *entry(a, q, j) = conj(r.s) * x + r.c * y;
    }
}

// Puts columns of a (and of b) in the order of their keys.
static void sort_columns(struct matrix a, struct matrix b, double *keys, bool descending)
{
    for (int64_t i = 0; i < a.cols; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < a.cols; j++)
            if (descending ? keys[j] > keys[best] : keys[j] < keys[best])
                best = j;
        double key = keys[i];
        keys[i] = keys[best];
        keys[best] = key;
        const struct matrix both[] = {a, b};
        for (int k = 0; k < 2; k++)
            for (int64_t row = 0; row < both[k].rows; row++) {
                double complex x = *entry(both[k], row, i);
                *entry(both[k], row, i) = *entry(both[k], row, best);
                *entry(both[k], row, best) = x;
            }
    }
}

static struct matrix column_of(struct arena *arena, int64_t n, const double *x)
{
    struct matrix a = matrix_make(arena, n, 1);
    for (int64_t i = 0; i < n; i++)
        a.at[i] = x[i];
    return a;
}

// Elements smaller than this are 0 to their row and column.
static double negligible(struct matrix a)
{
    double sum = 0;
    for (int64_t i = 0; i < a.rows * a.cols; i++)
        sum = hypot(sum, cabs(a.at[i]));
    return sum * 0x1p-60;
}

// The lower triangle of a, which is overwritten; columns of v.  False if it does not converge.
static bool eigh(struct matrix a, struct matrix v, double *w)
{
    int64_t n = a.rows;
    bool turns = true;
    for (int64_t i = 0; i < n; i++) {
        *entry(a, i, i) = creal(*entry(a, i, i));
        for (int64_t j = i + 1; j < n; j++)
            *entry(a, i, j) = conj(*entry(a, j, i));
    }
    double least = negligible(a);
    for (int sweep = 0; sweep < SWEEPS && turns; sweep++) {
        turns = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                if (cabs(*entry(a, p, q)) <= least)
                    continue;
                struct rotation r = rotation_for(creal(*entry(a, p, p)), creal(*entry(a, q, q)),
                                                 *entry(a, p, q));
                rotate_columns(a, p, q, r);
                rotate_rows(a, p, q, r);
                *entry(a, p, q) = *entry(a, q, p) = 0;
                rotate_columns(v, p, q, r);
                turns = true;
            }
    }
    for (int64_t i = 0; i < n; i++)
        w[i] = creal(*entry(a, i, i));
    sort_columns(v, (struct matrix){0}, w, false);
    return !turns;
}

jot_status eval_eigh(const struct eval_call *c)
{
    for (int64_t i = 0; i < matrix_count(c); i++) {
        struct matrix a;
        if (!matrix_load(c, i, &a)) {
            matrix_store_nan(c, i);
            continue;
        }
        double *w = arena_array(c->arena, double, a.rows + 1);
        struct matrix v = matrix_identity(c->arena, a.rows);
        if (!eigh(a, v, w)) {
            matrix_store_nan(c, i);
            continue;
        }
        matrix_store(c, 0, i, column_of(c->arena, a.rows, w));
        matrix_store(c, 1, i, v);
    }
    return JOT_OK;
}

static double complex dot_columns(struct matrix a, int64_t p, int64_t q)
{
    double complex sum = 0;
    for (int64_t i = 0; i < a.rows; i++)
        sum += conj(*entry(a, i, p)) * *entry(a, i, q);
    return sum;
}

// Turns the columns of w, at least as many rows as columns, until they are orthogonal: w = a v.
static bool orthogonalise(struct matrix w, struct matrix v, double *s)
{
    bool turns = true;
    double rounding = (double)w.rows * 0x1p-53; // of a product of columns, beside their lengths
    for (int sweep = 0; sweep < SWEEPS && turns; sweep++) {
        turns = false;
        for (int64_t p = 0; p < w.cols; p++)
            for (int64_t q = p + 1; q < w.cols; q++) {
                double x = creal(dot_columns(w, p, p)), y = creal(dot_columns(w, q, q));
                double complex z = dot_columns(w, p, q);
                if (cabs(z) <= fmax(rounding, 0x1p-52) * sqrt(x) * sqrt(y) ||
                    cabs(z) < 0x1p-1000)
                    continue;
                struct rotation r = rotation_for(x, y, z);
                rotate_columns(w, p, q, r);
                rotate_columns(v, p, q, r);
                turns = true;
            }
    }
    for (int64_t j = 0; j < w.cols; j++)
        s[j] = sqrt(creal(dot_columns(w, j, j)));
    sort_columns(w, v, s, true);
    return !turns;
}

// w / s, completed to a square unitary matrix: the Q of w, whose R is diagonal but for its signs.
static struct matrix left_vectors(struct arena *arena, struct matrix w)
{
    struct matrix r = matrix_copy(arena, w), u = matrix_qr(arena, r);
    for (int64_t j = 0; j < w.cols; j++) {
        double complex sign = *entry(r, j, j);
        for (int64_t i = 0; i < u.rows; i++)
            *entry(u, i, j) *= sign == 0 ? 1 : sign / cabs(sign);
    }
    return u;
}

static void store_svd(const struct eval_call *c, int64_t i, struct matrix a)
{
    bool is_wide = a.rows < a.cols;
    int64_t mode = ir_attr_int_or(c->attrs, IR_KEY_mode, 0), least = is_wide ? a.rows : a.cols;
    int64_t count = mode == 3 ? ir_attr_int(c->attrs, IR_KEY_length) : least;
    struct matrix w = is_wide ? matrix_adjoint(c->arena, a) : a;
    struct matrix v = matrix_identity(c->arena, w.cols);
    double largest = 0, *s = arena_array(c->arena, double, w.cols + 1);
    for (int64_t k = 0; k < a.rows * a.cols; k++)
        largest = fmax(largest, cabs(a.at[k]));
    for (int64_t k = 0; k < a.rows * a.cols && largest > 0; k++)
        w.at[k] /= largest; // so that squares are in range
    if (!orthogonalise(w, v, s)) {
        matrix_store_nan(c, i);
        return;
    }
    for (int64_t k = 0; k < w.cols; k++)
        s[k] *= largest;
    matrix_store(c, 0, i, column_of(c->arena, count, s));
    if (c->n_out == 1)
        return;
    struct matrix u = left_vectors(c->arena, w);
    if (mode != 2) {
        u = matrix_columns(c->arena, u, count);
        v = matrix_columns(c->arena, v, count);
    }
    matrix_store(c, 1, i, is_wide ? v : u);
    matrix_store(c, 2, i, matrix_adjoint(c->arena, is_wide ? u : v));
}

jot_status eval_svd(const struct eval_call *c)
{
    for (int64_t i = 0; i < matrix_count(c); i++) {
        struct matrix a;
        if (matrix_load(c, i, &a))
            store_svd(c, i, a);
        else
            matrix_store_nan(c, i);
    }
    return JOT_OK;
}
