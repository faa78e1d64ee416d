// SPDX-License-Identifier: Apache-2.0
// LAPACK on the host: the Fortran routines in the OpenBLAS of blas.h.  Matrices are column-major, every
// argument is an address, and the lengths of characters, all 1, follow the arguments.
//
// Thread-safety: any thread.
#ifndef RUNTIME_HOST_LAPACK_H
#define RUNTIME_HOST_LAPACK_H

#include "jot/dtype.h"
#include "jot/status.h"
#include "runtime/host/pool.h"
#include "runtime/routine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lapack_name {
#define LAPACK(name, complex_name) LAPACK_##name,
#include "runtime/host/lapack.def"
#undef LAPACK
    LAPACK_COUNT
};

// Its type is the caller's affair.
typedef void lapack_function(void);

// Loads the library.  JOT_ERR_LIBRARY with what to install when there is none, or none with LAPACK.
jot_status rt_lapack_open(void);
// The form for matrices of f32, f64, c64 or c128; the library is open.
lapack_function *rt_lapack(enum lapack_name name, jot_dtype dtype);

// Copies row-major m by n to column-major, or n by m back, of elements of 4, 8 or 16 bytes.
void rt_transpose(size_t element, int64_t m, int64_t n, const void *from, void *to);
// The same of a part of a matrix, on the caller's thread: so many elements from row to row, and from
// column to column.
void rt_transpose_part(size_t element, int64_t m, int64_t n, const void *from, int64_t row,
                       void *to, int64_t column);

// Whether no number of them is NaN or infinite.
bool rt_is_finite(jot_dtype dtype, int64_t count, const void *x);

// Calls body for each of the chunks of a batch: on a thread each, or where there are fewer than
// threads, one after the other, so that each may have all threads.
void rt_each_matrix(const struct rt_routine_call *call, rt_pool_body *body, void *ctx,
                    int64_t chunks);

#endif
