// SPDX-License-Identifier: Apache-2.0
// The order in which the factors of an einsum are multiplied.
//
// A label is a letter of the subscripts or an axis of "...", numbered from 0; a set of labels
// is a bit each.
#ifndef NUMPY_EINSUM_H
#define NUMPY_EINSUM_H

#include <stdint.h>

enum {
    EINSUM_LABELS = 64,
    EINSUM_MOST = 64, // factors
};

struct einsum_pair {
    int to, from; // factor `from` is multiplied into `to`, which is the lower one
};

// The n - 1 products of n factors, n <= EINSUM_MOST, with the sets of their labels, the sizes
// of labels, and the set of labels of the result.  The fewest multiplications for few factors,
// greedy for many.
void einsum_order(int n, const uint64_t *sets, const int64_t *sizes, uint64_t result,
                  struct einsum_pair *out);

#endif
