// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices, and what is computed from them.
//
// A matrix is the last two axes of a value, f32, f64, c64 or c128 (integers are converted); axes before
// them count matrices, each decomposed alone.  ^H is the conjugate transpose, and k the smaller of the
// extents m and n.
//
// A matrix that has an element which is not finite, or whose iteration does not converge, gives NaN.
// Other matrices of the batch are not affected.
//
// Signs and phases of vectors are those of LAPACK on the host, except for eigenvectors and singular
// vectors of many small matrices.  A function whose value depends on them depends on the device.
//
// Matrices of up to 32 rows and columns are factored several at a time on the host, one in each
// lane of a vector (qr, eigh, svd), which is six to ten times faster.
//
// Results come as a struct of values:
//
//     jot_qr_factors f = jot_qr(a);
//     jot_value x = jot_matmul(f.q, f.r);
//
// Derivatives.  Vectors of equal eigenvalues or singular values are not unique, and have no
// derivative by themselves.  The space that they span has one, and so have functions that treat
// equal values alike.  For these two kinds derivatives are right everywhere (JAX gives NaN): terms
// with a gap of 0 between values are left out, and gaps within rounding errors count as 0.
//
// Reverse mode gives NaN where a function depends on the choice of vectors.  It cannot see one kind:
// v sqrt(w) v^H weighs vectors alike only as long as their values are equal, and its derivative
// there lacks the part between them.  jot_eigen_status and jot_svd_status tell such matrices.
//
// First derivatives of jot_pinv and jot_lstsq do not go through vectors.  They are right for all
// matrices whose rank stays.
#ifndef JOT_DECOMPOSE_H
#define JOT_DECOMPOSE_H

#include "jot/trace.h"

JOT_BEGIN_C

// ---- Decompositions ----

// The factors of jot_qr.
typedef struct jot_qr_factors {
    jot_value q, r;
} jot_qr_factors;

// a = q r by Householder reflectors: q, m by k, has orthonormal columns; r, k by n, is upper
// triangular.  jot_qr_full: q is m by m and r m by n.  Derivatives need independent columns (of a wide
// matrix the first m), and are not finite without.
JOT_API jot_qr_factors jot_qr(jot_value a);
JOT_API jot_qr_factors jot_qr_full(jot_value a);

// Eigenvalues, and eigenvectors as columns in the same order.
typedef struct jot_eigen {
    jot_value values, vectors;
} jot_eigen;

// a = vectors diag(values) vectors^H of a Hermitian matrix: real values, ascending, and orthonormal
// vectors.  Of any other square matrix that of (a + a^H) / 2.
JOT_API jot_eigen jot_eigh(jot_value a);
// The same of a matrix of which only the lower or only the upper triangle is read, and that is taken for
// Hermitian.
JOT_API jot_eigen jot_eigh_lower(jot_value a);
JOT_API jot_eigen jot_eigh_upper(jot_value a);
// The values alone.
JOT_API jot_value jot_eigvalsh(jot_value a);

// The factors of jot_svd.
typedef struct jot_svd_factors {
    jot_value u, s, vh;
} jot_svd_factors;

// a = u diag(s) vh: singular values, real, descending; u, m by k, and vh, k by n, have
// orthonormal columns and rows.  jot_svd_full: u is m by m and vh n by n.
JOT_API jot_svd_factors jot_svd(jot_value a);
JOT_API jot_svd_factors jot_svd_full(jot_value a);
// Of the k largest values, 0 <= k <= the smaller of m and n: u diag(s) vh is nearest to a among
// the matrices of that rank.  A GPU finds at most an eighth of the values of a real matrix that
// has 512 or more of them (2,048 of f32) by random projection (Halko, Martinsson, Tropp, 2011:
// cuSOLVER's Xgesvdr), looks at what came, and computes all of them where that is not as good,
// as where values hardly descend.  The host computes all of them, and so do derivatives.
JOT_API jot_svd_factors jot_svd_truncated(jot_value a, int64_t k);
// The values alone.
JOT_API jot_value jot_svdvals(jot_value a);

// i32 for each matrix, a value of enum jot_factored of linalg.h: JOT_FACTOR_FAILED of NaN;
// JOT_FACTOR_DEGENERATE where two values are equal for the derivatives, |w_i - w_j| <= n eps max(|w|)
// with n values, and of the factors of jot_svd and jot_svd_full also where a matrix that is not square
// has a singular value of at most max(m, n) eps max(s): vectors of 0 are as free as those of equal
// values.  `values` are eigenvalues, real or complex, in any order.
//
//     jot_eigen e = jot_eigh(a);
//     jot_assert(jot_equal(jot_eigen_status(e.values), JOT_FACTORED), "equal eigenvalues");
JOT_API jot_value jot_eigen_status(jot_value values);
JOT_API jot_value jot_svd_status(jot_svd_factors f);

// a v = w v of any square matrix: values and vectors are complex, c64 or c128.  Vectors have length 1
// and a real largest element.  Values are in no order.
JOT_API jot_eigen jot_eig(jot_value a);
JOT_API jot_value jot_eigvals(jot_value a);

// Eigenvalues, with left and right eigenvectors as columns.
typedef struct jot_eigen_pairs {
    jot_value values, left, right;
} jot_eigen_pairs;

// The same with left vectors as well: left^H a = diag(values) left^H.
JOT_API jot_eigen_pairs jot_eig_pairs(jot_value a);

// The factors of jot_schur.
typedef struct jot_schur_factors {
    jot_value t, z;
} jot_schur_factors;

// a = z t z^H, z unitary.  t is upper triangular; of a real matrix it is real and has a block of 2 by 2
// for each pair of complex eigenvalues (convert a to a complex type for a triangular one).  Without
// derivatives.
JOT_API jot_schur_factors jot_schur(jot_value a);

// ---- What they are for ----

// The pseudoinverse, n by m: vh^H diag(1 / s) u^H over singular values above rtol max(s).  A negative
// rtol is 10 max(m, n) eps.
JOT_API jot_value jot_pinv(jot_value a, double rtol);

// What jot_lstsq gives.
typedef struct jot_lstsq_result {
    jot_value x;         // n, or n by columns of b
    jot_value residuals; // |b - a x|^2 of each column, of a vector as of one
    jot_value rank;      // of a, i32
    jot_value s;         // singular values of a
} jot_lstsq_result;

// The x of least length for which |a x - b| is least; a is one matrix, b a vector or a matrix.
// Singular values below rcond max(s) count as 0; a negative rcond is max(m, n) eps.
JOT_API jot_lstsq_result jot_lstsq(jot_value a, jot_value b, double rcond);

// How many singular values are above rtol max(s), i32.  A negative rtol is max(m, n) eps.
JOT_API jot_value jot_matrix_rank(jot_value a, double rtol);

// Norms of a matrix a with singular values s.
typedef enum jot_matrix_norm_kind {
    JOT_NORM_FROBENIUS, // sqrt(sum(|a_ij|^2))
    JOT_NORM_NUCLEAR,   // sum(s)
    JOT_NORM_1,         // the largest sum of |a_ij| over a column, and over a row
    JOT_NORM_INF,
    JOT_NORM_2,       // max(s)
    JOT_NORM_MINUS_1, // the smallest ones
    JOT_NORM_MINUS_INF,
    JOT_NORM_MINUS_2,
} jot_matrix_norm_kind;

// Of no rows, columns or elements a norm is 0, and a smallest one infinite.
JOT_API jot_value jot_matrix_norm(jot_value a, jot_matrix_norm_kind kind);

// sum(|x|^ord)^(1/ord) over axes; max(|x|) and min(|x|) for INFINITY and -INFINITY, the number of
// elements that are not 0 for 0.  jot_vector_norm(x, 1, axes...).
JOT_API jot_value jot_vector_norm_axes(jot_value x, double ord, const int *axes);

// max(s) / min(s), infinite when min(s) is 0.
JOT_API jot_value jot_cond(jot_value a);
// |a| |a^-1| by another norm than the spectral one, of square matrices; infinite for a singular one,
// NaN only where a has NaN.
JOT_API jot_value jot_cond_norm(jot_value a, jot_matrix_norm_kind kind);

JOT_END_C

// ---------------------------------------------------------------------------------------
#if !defined(JOT_PLAIN)
// Places of calls (trace.h).

#define JOT_DECOMPOSE_PLACE_(type, member)                                                     \
    static inline type type##_at_(type r, const char *where)                                   \
    {                                                                                          \
        jot_place(r.member, where);                                                            \
        return r;                                                                              \
    }
JOT_DECOMPOSE_PLACE_(jot_qr_factors, q)
JOT_DECOMPOSE_PLACE_(jot_eigen, values)
JOT_DECOMPOSE_PLACE_(jot_svd_factors, s)
JOT_DECOMPOSE_PLACE_(jot_eigen_pairs, values)
JOT_DECOMPOSE_PLACE_(jot_schur_factors, t)
JOT_DECOMPOSE_PLACE_(jot_lstsq_result, x)
// clang-format off
#define JOT_DECOMPOSE_(type, f, t, a) type##_at_((JOT_ONE_IS_THERE_(#f, t), f(JOT_VALUE_(#f, a))), JOT_HERE ": " #f "(" t ")")
#define jot_qr(a) JOT_DECOMPOSE_(jot_qr_factors, jot_qr, #a, a)
#define jot_qr_full(a) JOT_DECOMPOSE_(jot_qr_factors, jot_qr_full, #a, a)
#define jot_eigh(a) JOT_DECOMPOSE_(jot_eigen, jot_eigh, #a, a)
#define jot_eigh_lower(a) JOT_DECOMPOSE_(jot_eigen, jot_eigh_lower, #a, a)
#define jot_eigh_upper(a) JOT_DECOMPOSE_(jot_eigen, jot_eigh_upper, #a, a)
#define jot_svd(a) JOT_DECOMPOSE_(jot_svd_factors, jot_svd, #a, a)
#define jot_svd_full(a) JOT_DECOMPOSE_(jot_svd_factors, jot_svd_full, #a, a)
#define jot_svd_truncated(a, k)                                                                \
    jot_svd_factors_at_(jot_svd_truncated(JOT_VALUE_("jot_svd_truncated", a), k), JOT_HERE ": jot_svd_truncated(" #a ", " #k ")")
#define jot_eig(a) JOT_DECOMPOSE_(jot_eigen, jot_eig, #a, a)
#define jot_eig_pairs(a) JOT_DECOMPOSE_(jot_eigen_pairs, jot_eig_pairs, #a, a)
#define jot_schur(a) JOT_DECOMPOSE_(jot_schur_factors, jot_schur, #a, a)
#define jot_eigvalsh(a) JOT_OP1_(jot_eigvalsh, #a, a)
#define jot_svdvals(a) JOT_OP1_(jot_svdvals, #a, a)
#define jot_eigvals(a) JOT_OP1_(jot_eigvals, #a, a)
#define jot_eigen_status(values) JOT_OP1_(jot_eigen_status, #values, values)
#define jot_svd_status(f) JOT_OP_("jot_svd_status(" #f ")", jot_svd_status(f))
#define jot_cond(a) JOT_OP1_(jot_cond, #a, a)
#define jot_cond_norm(a, kind)                                                                 \
    JOT_OP_("jot_cond_norm(" #a ", " #kind ")", jot_cond_norm(JOT_VALUE_("jot_cond_norm", a), kind))
#define jot_pinv(a, rtol)                                                                      \
    JOT_OP_("jot_pinv(" #a ", " #rtol ")", jot_pinv(JOT_VALUE_("jot_pinv", a), rtol))
#define jot_matrix_rank(a, rtol)                                                               \
    JOT_OP_("jot_matrix_rank(" #a ", " #rtol ")", jot_matrix_rank(JOT_VALUE_("jot_matrix_rank", a), rtol))
#define jot_matrix_norm(a, kind)                                                               \
    JOT_OP_("jot_matrix_norm(" #a ", " #kind ")", jot_matrix_norm(JOT_VALUE_("jot_matrix_norm", a), kind))
#define jot_vector_norm(x, ...)                                                                \
    JOT_OP_("jot_vector_norm(" #x ", " #__VA_ARGS__ ")",                                       \
            jot_vector_norm_axes(JOT_VALUE_("jot_vector_norm", x), JOT_FIRST_(__VA_ARGS__, 0),                         \
                                 JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_lstsq(a, b, rcond)                                                                 \
    jot_lstsq_result_at_(jot_lstsq(JOT_VALUE_("jot_lstsq", a), JOT_VALUE_("jot_lstsq", b), rcond),                               \
                         JOT_HERE ": jot_lstsq(" #a ", " #b ", " #rcond ")")
// clang-format on

#endif // JOT_PLAIN

#endif
