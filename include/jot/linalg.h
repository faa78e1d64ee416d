// SPDX-License-Identifier: Apache-2.0
// Linear algebra.
//
// Names are those of jax.numpy.linalg and jax.scipy.linalg.  Matrices are the last two axes of a
// value; axes before them, the batch, count matrices, and those of two operands broadcast.  Types
// are f32, f64, c64 and c128: integers and bool are turned into f32, those of 64 bits into f64, and
// half types are an error (JOT_ERR_DTYPE).  Shapes that do not fit are JOT_ERR_SHAPE.
//
// What has no answer is NaN or infinite, as in JAX, and does not fail the call: the factor of a
// matrix that is not positive definite, the solution of a singular system.  There are three ways to
// be told: a status of each matrix as a value, a status of the call, or a check of all operations:
//
//     jot_value l = jot_cholesky(a), status = jot_factor_status(l);
//     jot_assert(jot_equal(status, JOT_FACTORED), "a is not positive definite");   JOT_ERR_CHECK
//     JOT_CHECK=nan prog                                          names the first op that gave NaN
//
// Batches of matrices of up to 16 rows are one kernel, with a vector lane or a thread for each.  On
// the host, batches too small for code of their own, and matrices of up to 32 rows, go through
// routines in vector lanes.
#ifndef JOT_LINALG_H
#define JOT_LINALG_H

#include "jot/ops.h"

#include <stdbool.h>

JOT_BEGIN_C

// ---- Factorizations ----

// l, lower triangular with a positive diagonal, with l l^H = (a + a^H) / 2.  Where that is not positive
// definite the whole lower triangle is NaN.  Derivative: Murray, arXiv:1602.07527.
JOT_API jot_value jot_cholesky(jot_value a);

// The rows of a, in the order of permutation, as l u: u on and above the diagonal of lu, and below it
// l, whose diagonal is 1.  Step i swapped row i with row pivots[i]; both are i32.  a may have any
// number of rows and columns.  Of a singular matrix u has a zero on its diagonal.
typedef struct jot_lu_factors {
    jot_value lu, pivots, permutation;
} jot_lu_factors;
JOT_API jot_lu_factors jot_lu_factor_at(jot_value a, const char *where);

// What became of each matrix, i32 for each of the batch: by a factor with the axes of a matrix, here
// and in decompose.h, and by the factors of jot_lu_factor, which tell singular ones as well.
// decompose.h has the statuses of eigenvalues and singular values.
enum jot_factored {
    JOT_FACTORED,
    JOT_FACTOR_FAILED,    // NaN: not positive definite, not finite, or no convergence
    JOT_FACTOR_SINGULAR,  // 0 on the diagonal of u
    JOT_FACTOR_DEGENERATE // equal values: single vectors of these have no derivative
};
JOT_API jot_value jot_factor_status(jot_value factor);
JOT_API jot_value jot_lu_status(jot_lu_factors f);

// ---- Linear systems ----
// The right sides b are one vector, or the columns of matrices.

// x with a x = b, by lu_factor.  Its derivative is that of the solution, a^-1 (db - da x), which
// uses the factors again.
JOT_API jot_value jot_solve(jot_value a, jot_value b);

// The same of a matrix that has been factored, and with transposed of a^T x = b.
JOT_API jot_value jot_lu_solve_trans(jot_lu_factors f, jot_value b, bool transposed);

// x with l l^H x = b, of what jot_cholesky gives.
JOT_API jot_value jot_cho_solve(jot_value l, jot_value b);

// x with op(a) x = b for the upper triangle of a; what stands in the other one is not read.
typedef struct jot_triangular_options {
    bool lower;         // a is the lower triangle
    bool transposed;    // op(a) is a^T
    bool conjugated;    // op(a) is conj(a); with transposed a^H
    bool unit_diagonal; // the diagonal of a is 1, and not read
    bool right;         // x op(a) = b
    size_t size;        // of this struct, set by the macro; 0 is this version
} jot_triangular_options;
JOT_API jot_value jot_solve_triangular_with(jot_value a, jot_value b,
                                            const jot_triangular_options *options);

// x with dl[i] x[i-1] + d[i] x[i] + du[i] x[i+1] = b[i], by elimination with pivoting in time that
// grows with the rows alone.  The diagonals have as many elements as b has rows; dl[0] and du[n-1]
// are not read.
JOT_API jot_value jot_tridiagonal_solve(jot_value dl, jot_value d, jot_value du, jot_value b);

// ---- Functions of a matrix ----

// a^-1, by LU: of a singular matrix it is not finite.
JOT_API jot_value jot_inv(jot_value a);

// The determinant, of up to three rows by its formula and else by lu_factor; 1 of a matrix without
// rows.  First and second derivatives are the minors, of matrices of any rank.  Those of a third
// order are, from four rows on and where a pivot is less than a hundredth of the largest, those
// of the singular value decomposition, which has none where singular values are equal.
JOT_API jot_value jot_det(jot_value a);

// sign (of modulus 1, or 0) and logabsdet (real, -inf for a singular matrix): the determinant is
// sign exp(logabsdet), which may be too large or small for its type.
typedef struct jot_slogdet_result {
    jot_value sign, logabsdet;
} jot_slogdet_result;
JOT_API jot_slogdet_result jot_slogdet_at(jot_value a, const char *where);

// a^n by repeated multiplication; of the inverse for a negative n, the unit matrix for 0.  Integers
// are converted only for a negative n.
JOT_API jot_value jot_matrix_power(jot_value a, int n);

// e^a, by scaling and squaring with a Pade approximant of degree 13: Higham, SIAM J. Matrix Anal.
// Appl. 26 (2005).  NaN where more than 16 squarings are needed, that is for a norm above about
// 350,000.
JOT_API jot_value jot_expm(jot_value a);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#define jot_cholesky(a) JOT_OP1_(jot_cholesky, #a, a)
#define jot_lu_factor(a) jot_lu_factor_at(JOT_VALUE_("jot_lu_factor", a), JOT_HERE ": jot_lu_factor(" #a ")")
#define jot_factor_status(factor) JOT_OP1_(jot_factor_status, #factor, factor)
#define jot_lu_status(f) JOT_OP_("jot_lu_status(" #f ")", jot_lu_status(f))
#define jot_solve(a, b) JOT_OP2_(jot_solve, #a ", " #b, a, b)
#define jot_lu_solve(f, b)                                                                     \
    JOT_OP_("jot_lu_solve(" #f ", " #b ")", jot_lu_solve_trans(f, JOT_VALUE_("jot_lu_solve", b), 0))
#define jot_cho_solve(l, b) JOT_OP2_(jot_cho_solve, #l ", " #b, l, b)
#if defined(__cplusplus)
#define jot_solve_triangular(a, b)                                                             \
    JOT_OP_("jot_solve_triangular(" #a ", " #b ")",                                            \
            jot_solve_triangular_with(JOT_VALUE_("jot_solve_triangular", a), JOT_VALUE_("jot_solve_triangular", b), nullptr))
#else
// jot_solve_triangular(a, b, .lower = true)
#define jot_solve_triangular(a, ...)                                                           \
    JOT_OP_("jot_solve_triangular(" #a ", " #__VA_ARGS__ ")",                                  \
            jot_solve_triangular_with(                                                         \
                JOT_VALUE_("jot_solve_triangular", a), JOT_VALUE_("jot_solve_triangular", JOT_FIRST_(__VA_ARGS__, 0)),                                   \
                JOT_OPTIONS_(jot_triangular_options,                                           \
                             "jot_solve_triangular takes (a, b, .lower = ..., .transposed = ...)", \
                             JOT_REST_(__VA_ARGS__, .size = sizeof(jot_triangular_options)))))
#endif
#define jot_tridiagonal_solve(dl, d, du, b)                                                    \
    JOT_OP_("jot_tridiagonal_solve(" #dl ", " #d ", " #du ", " #b ")",                         \
            jot_tridiagonal_solve(JOT_VALUE_("jot_tridiagonal_solve", dl), JOT_VALUE_("jot_tridiagonal_solve", d), JOT_VALUE_("jot_tridiagonal_solve", du), JOT_VALUE_("jot_tridiagonal_solve", b)))
#define jot_inv(a) JOT_OP1_(jot_inv, #a, a)
#define jot_det(a) JOT_OP1_(jot_det, #a, a)
#define jot_slogdet(a) jot_slogdet_at(JOT_VALUE_("jot_slogdet", a), JOT_HERE ": jot_slogdet(" #a ")")
#define jot_matrix_power(a, n)                                                                 \
    JOT_OP_("jot_matrix_power(" #a ", " #n ")", jot_matrix_power(JOT_VALUE_("jot_matrix_power", a), n))
#define jot_expm(a) JOT_OP1_(jot_expm, #a, a)
// clang-format on

#endif // JOT_PLAIN

#endif
