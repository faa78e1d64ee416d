// SPDX-License-Identifier: Apache-2.0
// Factorizations and solutions of linear systems.  Matrices are the last two axes of an operand; the
// axes before them, the batch, count matrices and are the same in all operands.
//
//     l = cholesky(a)                     l l^H = (a + a^H) / 2; zeros above the diagonal
//     p, pivots, permutation = lu(a)      the rows of a in the order of permutation are l u
//     x = triangular_solve(a, b)          op(a) x = b, or x op(a) = b
//     x = tridiagonal_solve(dl, d, du, b) dl[i] x[i-1] + d[i] x[i] + du[i] x[i+1] = b[i]
//
// Of a matrix that is not positive definite cholesky gives NaN in the whole lower triangle.  lu
// is by partial pivoting: p holds u on and above the diagonal, and below it l, whose diagonal
// is 1; step i swapped row i with row pivots[i], i32.  A pivot that is 0 is kept, and the step
// left out.  Of tridiagonal_solve dl[0] and du[n-1] are not read.
#ifndef IR_LINALG_H
#define IR_LINALG_H

#include "ir/build.h"

// What triangular_solve reads of a, and how.
struct ir_triangular {
    bool left;          // op(a) x = b; otherwise x op(a) = b
    bool lower;         // the lower triangle of a; otherwise the upper one
    bool transposed;    // op transposes
    bool conjugated;    // op conjugates
    bool unit_diagonal; // the diagonal is 1 and not read
};
struct ir_triangular ir_triangular_of(const struct ir_attrs *attrs);

ir_id ir_cholesky(struct ir_builder *b, ir_id a);
// The first of three results, which follow each other.
ir_id ir_lu(struct ir_builder *b, ir_id a);
ir_id ir_triangular_solve(struct ir_builder *b, ir_id a, ir_id x,
                          const struct ir_triangular *t);
ir_id ir_tridiagonal_solve(struct ir_builder *b, ir_id dl, ir_id d, ir_id du, ir_id x);

#endif
