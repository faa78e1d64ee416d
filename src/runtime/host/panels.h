// SPDX-License-Identifier: Apache-2.0
// Factorizations of one large matrix on jot's threads, by panels of columns (Golub and Van Loan, Matrix
// Computations, 3.2.11 and 5.2.3).
//
// A step applies one panel to blocks of the columns behind it, each a chunk of the pool; the first of
// them is the next panel, which is factored at once, while others work on the rest.  Panels
// and blocks depend on the shape alone, so the bits do not depend on the number of threads.
//
// The library of lapack.h is open.  Thread-safety: any thread.
#ifndef RUNTIME_HOST_PANELS_H
#define RUNTIME_HOST_PANELS_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stddef.h>

// LU with partial pivoting of a row-major matrix, in place: pivots are the min(m, n) rows that were
// swapped, counted from 1, as those of getrf of LAPACK.  Rows are swapped by runs, and a panel is
// factored as a column-major copy, in work: panels_lu_work(m, n) numbers.
size_t panels_lu_work(int m, int n);
void panels_lu(jot_dtype dtype, int m, int n, void *a, int *pivots, void *work);

// H(0) H(1) ... H(k - 1), each I - tau v v^H with the vectors where LAPACK leaves them: v of H(i) is 0
// above row i and 1 there, and what is below is in column i of `v`, or in row i.
struct reflectors {
    jot_dtype dtype;
    int m, k; // of m rows, m >= k
    bool by_rows;
    void *v;
    int ldv;
    void *t; // reflectors_triangles(k): those of the panels (I - V T V^H)
};

// Numbers that t takes, and the work of a product with a matrix of n columns.
size_t reflectors_triangles(int k);
size_t reflectors_work(int k, int n);

// QR of the column-major m by n matrix in r->v, n >= k, as geqrf of LAPACK.  tau is room for k
// numbers, and work for those of a product with n columns.
void panels_qr(const struct reflectors *r, int n, void *tau, void *work);

// Makes the triangles, of vectors that another routine has left.
void reflectors_prepare(const struct reflectors *r, const void *tau);

// c, of n columns, becomes H(0) ... H(k - 1) c.  is_upper: column i of c is 0 below row i.
void reflectors_apply(const struct reflectors *r, bool is_upper, int n, void *c, int ldc,
                      void *work);

#endif
