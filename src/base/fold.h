// SPDX-License-Identifier: Apache-2.0
// The shape of sums, which depends on how many elements there are and on nothing else: blocks of
// elements, in a block FOLD_LANES accumulators that take elements in turn (docs/numerics.md).
#ifndef BASE_FOLD_H
#define BASE_FOLD_H

#include <assert.h>
#include <stdint.h>

#define FOLD_LANES 64

// Elements of a block: threads take whole blocks, so there are several where there is work for
// several threads, and few partial results where there is much.
static inline int64_t fold_block(int64_t n) { return n <= 32768 ? 512 : 4096; }

// The least power of two that is n or more, at most limit, which is one.
static inline unsigned fold_power_of_two(int64_t n, unsigned limit)
{
    unsigned p = 1;
    assert((limit & (limit - 1)) == 0);
    while (p < limit && p < n)
        p *= 2;
    return p;
}

#endif
