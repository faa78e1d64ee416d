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

#endif
