// SPDX-License-Identifier: Apache-2.0
// Factorizations and systems of many small matrices, each in a lane of the processor's vectors.
//
// A call of LAPACK for a matrix of 16 rows is mostly what goes before its loops.  Here as many
// matrices as a vector has lanes go through one algorithm together, which has no branches that
// depend on the numbers: rotations of Jacobi's until all of them are done, reflectors of
// Householder's.
#ifndef RUNTIME_HOST_LANES_H
#define RUNTIME_HOST_LANES_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LANES_SIDE 32 // the most rows and columns
#define LANES_MOST 16 // matrices of a group

enum lanes_op {
    LANES_EIGH,
    LANES_SVD,
    LANES_QR,
    LANES_CHOLESKY,
    LANES_LU,
    LANES_TRIANGULAR_SOLVE,
    LANES_OPS
};

// Matrices of m by n, those of the right sides of triangular systems, and the mode of the op,
// bits of enum lanes_triangular for systems.
struct lanes_shape {
    int m, n, mode;
    size_t in_stride[2], out_stride[3]; // from a matrix to the next, in bytes
};

enum lanes_triangular {
    LANES_LEFT = 1,
    LANES_LOWER = 2,
    LANES_TRANSPOSED = 4,
    LANES_CONJUGATED = 8,
    LANES_UNIT = 16
};

// `count` matrices, at most as many as there are lanes, row by row as the op has its operands
// and results.  Bits of lanes whose results are not made, for numbers are not finite, vanish or
// do not converge, and are left to LAPACK.
typedef uint32_t lanes_function(const struct lanes_shape *s, int count, const void *const *in,
                                void *const *out, void *scratch);

struct lanes_code {
    int lanes;
    size_t number; // bytes of an element of all lanes
    lanes_function *run[LANES_OPS];
};

// The code for this processor, or NULL where it has none for the op and shape.
const struct lanes_code *lanes_code_of(enum lanes_op op, jot_dtype dtype,
                                       const struct lanes_shape *s);
size_t lanes_scratch(const struct lanes_code *c, const struct lanes_shape *s);
// So many at once that half of the lanes have one.
bool lanes_are_many(const struct lanes_code *c, int64_t batch);

#endif
