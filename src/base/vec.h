// SPDX-License-Identifier: Apache-2.0
// A growing array in an arena.
//
//     VEC(uint32_t) ids = {0};
//     vec_push(arena, &ids, 7);
//     for (uint32_t i = 0; i < ids.count; i++) use(ids.at[i]);
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/arena.h"

#include <string.h>

#define VEC(T)                                                                                 \
    struct {                                                                                   \
        T *at;                                                                                 \
        uint32_t count, capacity;                                                              \
    }

static inline void *vec_grown_(struct arena *a, const void *at, uint32_t count,
                               uint32_t *capacity, uint32_t need, size_t element)
{
    uint32_t n = *capacity ? *capacity : 8;
    while (n < need)
        n = n > UINT32_MAX / 2 ? need : n * 2;
    void *grown = arena_allocate(a, (size_t)n * element);
    if (count)
        memcpy(grown, at, (size_t)count * element);
    *capacity = n;
    return grown;
}

// Room for n elements in all.
#define vec_reserve(a, v, n)                                                                   \
    ((v)->capacity < (n) ? (void)((v)->at = vec_grown_((a), (v)->at, (v)->count,               \
                                                       &(v)->capacity, (n), sizeof *(v)->at))  \
                         : (void)0)

#define vec_push(a, v, ...)                                                                    \
    (vec_reserve((a), (v), (v)->count + 1), (void)((v)->at[(v)->count++] = (__VA_ARGS__)))

#define vec_last(v) ((v)->at[(v)->count - 1])

#endif
