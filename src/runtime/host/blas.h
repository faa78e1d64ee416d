// SPDX-License-Identifier: Apache-2.0
// Matrix products on the host, by OpenBLAS, which is loaded at the first use.
//
// OpenBLAS runs serial; tiles of the result go to jot's own threads.  The tiles depend on the
// shape alone, so the bits do not depend on the number of threads.
//
// Thread-safety: any thread.
#ifndef RUNTIME_HOST_BLAS_H
#define RUNTIME_HOST_BLAS_H

#include "base/launch.h"

struct rt_pool;

// Loads the library.  JOT_ERR_LIBRARY with what to install when there is none.
jot_status rt_blas_open(void);

// Name and kernels of the loaded library, for reports; "" when there is none.  Nothing compiled
// depends on them: a program only says which product it needs.
const char *rt_blas_version(void);

// Another entry point of the library, which has been opened; NULL when there is none.
void *rt_blas_symbol(const char *name);

// c = alpha op(a) op(b) + beta c, as struct rt_gemm says; its numbers are known to be good.
// JOT_ERR_SHAPE for extents beyond what the library's 32-bit integers hold.  Of a product that is one of so
// many shares of a larger one, as when devices have some rows each, tiles are those of the larger one: the
// bits are too, where shares are whole tiles.
jot_status rt_gemm(struct rt_pool *pool, const struct rt_gemm *gemm, int64_t shares,
                   const void *a, const void *b, void *c);

#endif
