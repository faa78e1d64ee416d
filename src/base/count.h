// SPDX-License-Identifier: Apache-2.0
// Numbers of elements, bytes and operations: sums and products, none below 0, of which too large ones stay
// INT64_MAX; and indices.
#ifndef BASE_COUNT_H
#define BASE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

static inline int64_t count_times(int64_t a, int64_t b)
{
    int64_t p;
    return __builtin_mul_overflow(a, b, &p) ? INT64_MAX : p;
}

static inline int64_t count_plus(int64_t a, int64_t b)
{
    int64_t p;
    return __builtin_add_overflow(a, b, &p) ? INT64_MAX : p;
}

// The greatest number that divides both, of 0 and b it is b.
static inline int64_t count_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static inline int64_t count_clip(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

// The next index of an array of n axes, row-major; false after the last.
static inline bool count_next_index(int n, const int64_t *dims, int64_t *index)
{
    for (int i = n - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

#endif
