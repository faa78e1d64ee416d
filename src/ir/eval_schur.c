// SPDX-License-Identifier: Apache-2.0
// Schur decompositions by Francis's double steps (Golub, Van Loan, Matrix Computations, 7.5), and
// eigenvectors by substitution.  A step puts the first column of (H - a)(H - b), a and b the
// eigenvalues of the last block, to the front and makes H Hessenberg again.
#include "ir/eval_matrix.h"

enum { STEPS = 60 }; // for each eigenvalue

// H <- P H P^H, Z <- Z P^H with the reflector P that clears x, of at most three elements, but for its
// first, on rows and columns from `at`.
static void reflect(struct matrix h, struct matrix z, int64_t at, int64_t n,
                    const double complex *x)
{
    double complex v[3], tau;
    matrix_reflector(n, x, v, &tau);
    matrix_reflect_rows(h, at, 0, n, v, tau);
    matrix_reflect_columns(h, at, n, v, conj(tau));
    matrix_reflect_columns(z, at, n, v, conj(tau));
}

static void to_hessenberg(struct arena *arena, struct matrix h, struct matrix z)
{
    int64_t n = h.rows;
    double complex *x = matrix_make(arena, n, 1).at, *v = matrix_make(arena, n, 1).at, tau;
    for (int64_t k = 0; k + 2 < n; k++) {
        int64_t m = n - k - 1;
        for (int64_t i = 0; i < m; i++)
            x[i] = *entry(h, k + 1 + i, k);
        matrix_reflector(m, x, v, &tau);
        matrix_reflect_rows(h, k + 1, 0, m, v, tau);
        matrix_reflect_columns(h, k + 1, m, v, conj(tau));
        matrix_reflect_columns(z, k + 1, m, v, conj(tau));
        for (int64_t i = k + 2; i < n; i++)
            *entry(h, i, k) = 0;
    }
}

// One double step on the block of rows first .. last.
static void francis(struct matrix h, struct matrix z, int64_t first, int64_t last,
                    bool is_stuck)
{
    double complex a = *entry(h, last - 1, last - 1), b = *entry(h, last - 1, last),
                   c = *entry(h, last, last - 1), d = *entry(h, last, last);
    double complex sum = a + d, product = a * d - b * c;
    if (is_stuck) { // the exceptional shifts of EISPACK's hqr
        double size = cabs(c) + cabs(*entry(h, last - 1, last - 2));
        sum = 1.5 * size;
        product = size * size;
    }
    double complex p = *entry(h, first, first), q = *entry(h, first, first + 1),
                   r = *entry(h, first + 1, first), s = *entry(h, first + 1, first + 1);
    double complex x[3] = {p * p + q * r - sum * p + product, r * (p + s - sum),
                           r * *entry(h, first + 2, first + 1)};
    for (int64_t k = first; k < last; k++) {
        int64_t n = last - k + 1 < 3 ? last - k + 1 : 3;
        if (k > first)
            for (int64_t i = 0; i < n; i++)
                x[i] = *entry(h, k + i, k - 1);
        reflect(h, z, k, n, x);
        for (int64_t i = 1; i < n && k > first; i++)
            *entry(h, k + i, k - 1) = 0;
    }
}

// Makes the block of rows k, k + 1 triangular; one of a real matrix with a complex pair stays.
static void split(struct matrix h, struct matrix z, int64_t k, bool is_real)
{
    double complex a = *entry(h, k, k), b = *entry(h, k, k + 1), c = *entry(h, k + 1, k),
                   d = *entry(h, k + 1, k + 1), half = (a - d) / 2;
    double complex square = half * half + b * c;
    if (is_real && creal(square) < 0)
        return;
    double complex root = csqrt(square);
    if (creal(conj(half) * root) < 0)
        root = -root;
    reflect(h, z, k, 2, (double complex[]){half + root, c}); // an eigenvector comes first
    *entry(h, k + 1, k) = 0;
}

static bool is_split(struct matrix h, int64_t i)
{
    double around = cabs(*entry(h, i, i)) + cabs(*entry(h, i - 1, i - 1));
    if (cabs(*entry(h, i, i - 1)) > 0x1p-53 * around)
        return false;
    *entry(h, i, i - 1) = 0;
    return true;
}

// a = z t z^H; t takes the place of a, and z is unitary.  Of a real matrix t has blocks of 2 by 2 for
// complex pairs.  False if it does not converge.
static bool schur(struct arena *arena, struct matrix a, struct matrix z, bool is_real)
{
    to_hessenberg(arena, a, z);
    int64_t last = a.rows - 1;
    for (int steps = 0; last > 0;) {
        int64_t first = last;
        while (first > 0 && !is_split(a, first))
            first--;
        if (last - first < 2) {
            if (last > first)
                split(a, z, first, is_real);
            last = first - 1;
            steps = 0;
        } else if (++steps > STEPS) {
            return false;
        } else {
            francis(a, z, first, last, steps % 10 == 0);
        }
    }
    return true;
}

jot_status eval_schur(const struct eval_call *c)
{
    bool is_real = !dtype_is_complex(ir_dtype(c->in[0].type));
    for (int64_t i = 0; i < matrix_count(c); i++) {
        struct matrix t;
        bool is_done = matrix_load(c, i, &t);
        struct matrix z = matrix_identity(c->arena, t.rows);
        if (is_done && schur(c->arena, t, z, is_real)) {
            matrix_store(c, 0, i, t);
            matrix_store(c, 1, i, z);
        } else {
            matrix_store_nan(c, i);
        }
    }
    return JOT_OK;
}

// x / y; where y is 0 to the matrix, by something that small, as LAPACK's trevc.
static double complex divide(double complex x, double complex y, double least)
{
    return x / (cabs(y) < least ? least : y);
}

// Column k of x: t x = t_kk x above the diagonal.
static void solve_right(struct matrix t, struct matrix x, int64_t k, double least)
{
    for (int64_t i = k; i >= 0; i--) {
        double complex sum = 0;
        for (int64_t j = i + 1; j <= k; j++)
            sum += *entry(t, i, j) * *entry(x, j, k);
        *entry(x, i, k) = i == k ? 1 : divide(sum, *entry(t, k, k) - *entry(t, i, i), least);
    }
}

// The same of x^H t = t_kk x^H, below.
static void solve_left(struct matrix t, struct matrix x, int64_t k, double least)
{
    for (int64_t j = k; j < t.rows; j++) {
        double complex sum = 0;
        for (int64_t i = k; i < j; i++)
            sum += conj(*entry(x, i, k)) * *entry(t, i, j);
        *entry(x, j, k) =
            j == k ? 1 : conj(divide(sum, *entry(t, k, k) - *entry(t, j, j), least));
    }
}

// z x with columns of length 1 whose largest element is real, as LAPACK's geev.
static struct matrix normalised(struct arena *arena, struct matrix z, struct matrix x)
{
    struct matrix y = matrix_make(arena, z.rows, x.cols);
    for (int64_t j = 0; j < x.cols; j++) {
        double length = 0;
        double complex largest = 1;
        for (int64_t i = 0; i < z.rows; i++) {
            for (int64_t k = 0; k < z.cols; k++)
                *entry(y, i, j) += *entry(z, i, k) * *entry(x, k, j);
            length = hypot(length, cabs(*entry(y, i, j)));
        }
        for (int64_t i = 0; i < z.rows; i++)
            if (cabs(*entry(y, i, j)) > (i ? cabs(largest) : 0) * (1 + 0x1p-40))
                largest = *entry(y, i, j);
        for (int64_t i = 0; i < z.rows; i++)
            *entry(y, i, j) *= conj(largest) / cabs(largest) / length;
    }
    return y;
}

static void store_eig(const struct eval_call *c, int64_t i, struct matrix t, struct matrix z)
{
    int64_t n = t.rows, mode = ir_attr_int_or(c->attrs, IR_KEY_mode, 0);
    struct matrix w = matrix_make(c->arena, n, 1), left = matrix_make(c->arena, n, n),
                  right = matrix_make(c->arena, n, n);
    double least = 0;
    for (int64_t k = 0; k < n * n; k++)
        least = fmax(least, 0x1p-52 * cabs(t.at[k]));
    for (int64_t k = 0; k < n; k++) {
        w.at[k] = *entry(t, k, k);
        solve_right(t, right, k, fmax(least, 0x1p-1000));
        solve_left(t, left, k, fmax(least, 0x1p-1000));
    }
    matrix_store(c, 0, i, w);
    if (mode == 2)
        matrix_store(c, 1, i, normalised(c->arena, z, left));
    if (mode)
        matrix_store(c, (int)mode, i, normalised(c->arena, z, right));
}

jot_status eval_eig(const struct eval_call *c)
{
    for (int64_t i = 0; i < matrix_count(c); i++) {
        struct matrix t;
        bool is_done = matrix_load(c, i, &t);
        struct matrix z = matrix_identity(c->arena, t.rows);
        if (is_done && schur(c->arena, t, z, false))
            store_eig(c, i, t, z);
        else
            matrix_store_nan(c, i);
    }
    return JOT_OK;
}
