// SPDX-License-Identifier: Apache-2.0
// Matrices of the evaluator's decompositions: row-major, and complex in double precision whatever the
// operands are.  Real matrices have imaginary parts that are 0 and keep them.
// Private to eval_qr.c, eval_jacobi.c and eval_schur.c.
#ifndef IR_EVAL_MATRIX_H
#define IR_EVAL_MATRIX_H

#include "ir/eval_ops.h"

#include <complex.h>

struct matrix {
    int64_t rows, cols;
    double complex *at;
};

static inline double complex *entry(struct matrix a, int64_t i, int64_t j)
{
    return a.at + i * a.cols + j;
}

struct matrix matrix_make(struct arena *arena, int64_t rows, int64_t cols); // zeros
struct matrix matrix_identity(struct arena *arena, int64_t n);
struct matrix matrix_copy(struct arena *arena, struct matrix a);
struct matrix matrix_adjoint(struct arena *arena, struct matrix a);
// The first columns.
struct matrix matrix_columns(struct arena *arena, struct matrix a, int64_t n);

// How many matrices operand 0 is, and number i of them; false when an element is not finite.
int64_t matrix_count(const struct eval_call *c);
bool matrix_load(const struct eval_call *c, int64_t i, struct matrix *out);
// Puts number i of a result; a vector is a matrix of one column.
void matrix_store(const struct eval_call *c, int result, int64_t i, struct matrix a);
// NaN in number i of all results.
void matrix_store_nan(const struct eval_call *c, int64_t i);

// (I - tau v v^H) x = (beta, 0, ...) with beta real, as LAPACK's larfg: v[0] is 1, beta has the sign
// that is not that of Re x[0], and tau is 0 when there is nothing to do.  Returns beta.
double complex matrix_reflector(int64_t n, const double complex *x, double complex *v,
                                double complex *tau);
// (I - tau v v^H) A on rows from `row` and columns from `col`; A (I - tau v v^H) on columns from `col`.
void matrix_reflect_rows(struct matrix a, int64_t row, int64_t col, int64_t n,
                         const double complex *v, double complex tau);
void matrix_reflect_columns(struct matrix a, int64_t col, int64_t n, const double complex *v,
                            double complex tau);

// A = Q R: R takes the place of A, and Q is square.
struct matrix matrix_qr(struct arena *arena, struct matrix a);

#endif
