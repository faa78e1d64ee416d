// SPDX-License-Identifier: Apache-2.0
// Matrices of the evaluator, and their QR decomposition by Householder reflectors.
#include "ir/eval_matrix.h"

struct matrix matrix_make(struct arena *arena, int64_t rows, int64_t cols)
{
    int64_t n;
    if (__builtin_mul_overflow(rows, cols, &n))
        arena_exhausted();
    return (struct matrix){rows, cols, arena_array(arena, double complex, n + 1)};
}

struct matrix matrix_identity(struct arena *arena, int64_t n)
{
    struct matrix a = matrix_make(arena, n, n);
    for (int64_t i = 0; i < n; i++)
        *entry(a, i, i) = 1;
    return a;
}

struct matrix matrix_columns(struct arena *arena, struct matrix a, int64_t n)
{
    struct matrix part = matrix_make(arena, a.rows, n);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < n; j++)
            *entry(part, i, j) = *entry(a, i, j);
    return part;
}

struct matrix matrix_copy(struct arena *arena, struct matrix a)
{
    return matrix_columns(arena, a, a.cols);
}

struct matrix matrix_adjoint(struct arena *arena, struct matrix a)
{
    struct matrix t = matrix_make(arena, a.cols, a.rows);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.cols; j++)
            *entry(t, j, i) = conj(*entry(a, i, j));
    return t;
}

// The extents of the matrices, or of the vectors as columns, that the last axes of a type are.
static int64_t inner_count(const struct eval_call *c, struct ir_type t, int inner)
{
    int64_t count = 1;
    for (int axis = t.rank - inner; axis < t.rank; axis++)
        count *= ir_dims(c->module, t)[axis];
    return count;
}

int64_t matrix_count(const struct eval_call *c)
{
    struct ir_type t = c->in[0].type;
    int64_t count = 1;
    for (int axis = 0; axis < t.rank - 2; axis++)
        count *= ir_dims(c->module, t)[axis];
    return count;
}

bool matrix_load(const struct eval_call *c, int64_t i, struct matrix *out)
{
    struct ir_type t = c->in[0].type;
    const int64_t *dims = ir_dims(c->module, t) + t.rank - 2;
    int64_t n = dims[0] * dims[1];
    bool is_finite = true;
    *out = matrix_make(c->arena, dims[0], dims[1]);
    for (int64_t k = 0; k < n; k++) {
        struct eval_number x = eval_convert(ir_dtype(t), JOT_C128,
                                            eval_load(ir_dtype(t), c->in[0].data, i * n + k));
        double re = scalar_f64(x.re), im = scalar_f64(x.im);
        is_finite = is_finite && isfinite(re) && isfinite(im);
        out->at[k] = CMPLX(re, im);
    }
    return is_finite;
}

static void store(const struct eval_call *c, int result, int64_t at, double complex x)
{
    jot_dtype d = ir_dtype(c->out[result].type);
    struct eval_number wide = {scalar_from_f64(creal(x)), scalar_from_f64(cimag(x))};
    eval_store(d, c->out[result].data, at, eval_convert(JOT_C128, d, wide));
}

void matrix_store(const struct eval_call *c, int result, int64_t i, struct matrix a)
{
    int64_t n = a.rows * a.cols;
    for (int64_t k = 0; k < n; k++)
        store(c, result, i * n + k, a.at[k]);
}

void matrix_store_nan(const struct eval_call *c, int64_t i)
{
    int axes = c->in[0].type.rank - 2;
    for (int r = 0; r < c->n_out; r++) {
        struct ir_type t = c->out[r].type;
        int64_t n = inner_count(c, t, t.rank - axes);
        for (int64_t k = 0; k < n; k++)
            store(c, r, i * n + k, CMPLX(NAN, dtype_is_complex(ir_dtype(t)) ? NAN : 0));
    }
}

double complex matrix_reflector(int64_t n, const double complex *x, double complex *v,
                                double complex *tau)
{
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, cabs(x[i]));
    bool is_done = n == 0 || cimag(x[0]) == 0;
    for (int64_t i = 1; i < n; i++)
        is_done = is_done && x[i] == 0;
    *tau = 0;
    for (int64_t i = 0; i < n; i++)
        v[i] = i == 0;
    if (is_done)
        return n ? x[0] : 0;
    for (int64_t i = 0; i < n; i++) // scaled, so that squares are in range
        sum += creal(x[i] / largest * conj(x[i] / largest));
    double beta = -copysign(largest * sqrt(sum), creal(x[0]));
    // conj, since it is H^H of larfg that is applied.
    *tau = conj((beta - x[0]) / beta);
    for (int64_t i = 1; i < n; i++)
        v[i] = x[i] / (x[0] - beta);
    return beta;
}

void matrix_reflect_rows(struct matrix a, int64_t row, int64_t col, int64_t n,
                         const double complex *v, double complex tau)
{
    for (int64_t j = col; j < a.cols; j++) {
        double complex sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += conj(v[i]) * *entry(a, row + i, j);
        for (int64_t i = 0; i < n; i++)
            *entry(a, row + i, j) -= tau * v[i] * sum;
    }
}

void matrix_reflect_columns(struct matrix a, int64_t col, int64_t n, const double complex *v,
                            double complex tau)
{
    for (int64_t i = 0; i < a.rows; i++) {
        double complex sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += *entry(a, i, col + j) * v[j];
        for (int64_t j = 0; j < n; j++)
            *entry(a, i, col + j) -= tau * sum * conj(v[j]);
    }
}

// With H_k the reflector that clears column k, H_n ... H_1 A = R, so Q = H_1^H ... H_n^H.
struct matrix matrix_qr(struct arena *arena, struct matrix a)
{
    int64_t m = a.rows, least = m < a.cols ? m : a.cols;
    struct matrix q = matrix_identity(arena, m);
    double complex *x = matrix_make(arena, m, 1).at, *v = matrix_make(arena, m, 1).at, tau;
    for (int64_t k = 0; k < least; k++) {
        for (int64_t i = k; i < m; i++)
            x[i - k] = *entry(a, i, k);
        double complex beta = matrix_reflector(m - k, x, v, &tau);
        matrix_reflect_rows(a, k, k + 1, m - k, v, tau);
        for (int64_t i = k; i < m; i++)
            *entry(a, i, k) = i == k ? beta : 0;
        matrix_reflect_columns(q, k, m - k, v, conj(tau));
    }
    return q;
}

jot_status eval_qr(const struct eval_call *c)
{
    bool full = ir_attr_int_or(c->attrs, IR_KEY_mode, 0) == 1;
    for (int64_t i = 0; i < matrix_count(c); i++) {
        struct matrix r;
        if (!matrix_load(c, i, &r)) {
            matrix_store_nan(c, i);
            continue;
        }
        struct matrix q = matrix_qr(c->arena, r);
        if (!full && r.rows > r.cols) {
            q = matrix_columns(c->arena, q, r.cols);
            r.rows = r.cols;
        }
        matrix_store(c, 0, i, q);
        matrix_store(c, 1, i, r);
    }
    return JOT_OK;
}
