// SPDX-License-Identifier: Apache-2.0
// Numbers of elements, bytes and operations, none below 0, of which too large ones stay INT64_MAX.
#ifndef BASE_COUNT_H
#define BASE_COUNT_H

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

#endif
