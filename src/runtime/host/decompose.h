// SPDX-License-Identifier: Apache-2.0
// Decompositions of one matrix by LAPACK (decompose_one.c), and what the routines make of them
// (decompose.c).
#ifndef RUNTIME_HOST_DECOMPOSE_H
#define RUNTIME_HOST_DECOMPOSE_H

#include "runtime/host/lanes.h"
#include "runtime/routine.h"

struct job;

// The scratch of a thread; base is NULL where only its size is wanted.
struct room {
    char *base;
    size_t used;
};

// One matrix to its results; not 0 when it fails.  Without scratch it asks LAPACK for the
// workspace it wants, and once that is known, takes what it needs and ends.
typedef int one_matrix(struct job *j, struct room *room, const char *a, char *const *out);

struct job {
    const struct rt_routine_call *call;
    jot_dtype dtype;
    bool is_complex;
    size_t element, part; // bytes of an element and of a real number
    int m, n, k, mode;    // k is the smaller of m and n
    int64_t batch, a_chunk;
    // Elements of the workspace, 0 while they are not known.
    int work, wanted, rwork, iwork;
    double answers[4]; // to the question how many
    one_matrix *one;
    int n_out;
    size_t out_bytes[3];            // of the results of one matrix
    const struct lanes_code *lanes; // NULL where LAPACK has all
    enum lanes_op lanes_op;
};

one_matrix qr_one, eigh_one, svd_one, eig_one, schur_one;

#endif
