// SPDX-License-Identifier: Apache-2.0
// Sorting of rows on the host, in the order of the op sort (host/sort_keys.h).
//
// What comes out does not depend on the number of threads.  Thread-safety: any thread.
#ifndef RUNTIME_HOST_SORT_H
#define RUNTIME_HOST_SORT_H

#include "jot/dtype.h"
#include "jot/status.h"

#include <stdint.h>

struct rt_pool;

enum { RT_SORT_MOST = 8 }; // operands

// Rows of `length` of each of n operands, dense and row-major, are put into the order of the first
// n_keys of them, of which the first decides most; equal elements stay in their order.
struct rt_sort {
    int n, n_keys;
    jot_dtype dtype[RT_SORT_MOST];
    int64_t rows, length;
    const void *in[RT_SORT_MOST];
    void *out[RT_SORT_MOST];
};

// JOT_ERR_MEMORY; JOT_ERR_SHAPE for rows of 2^32 elements and more.
jot_status rt_sort(struct rt_pool *pool, const struct rt_sort *s);

// The k last of each row in that order, the last first, of equal elements the one with the lowest index
// first; indices are of index_dtype, i32 or i64.  Real dtypes, k <= length.
struct rt_top_k {
    jot_dtype dtype, index_dtype;
    int64_t rows, length, k;
    const void *in;
    void *values, *indices;
};

jot_status rt_top_k(struct rt_pool *pool, const struct rt_top_k *t);

#endif
