// SPDX-License-Identifier: Apache-2.0
// A set of small integers, in an arena.
#ifndef BASE_BITSET_H
#define BASE_BITSET_H

#include "base/arena.h"

struct bitset {
    uint64_t *words;
    uint32_t bits;
};

static inline struct bitset bitset_make(struct arena *a, uint32_t bits)
{
    return (struct bitset){.words = arena_array(a, uint64_t, (bits + 63) / 64 + 1),
                           .bits = bits};
}
static inline bool bitset_has(const struct bitset *s, uint32_t i)
{
    return s->words[i / 64] >> (i % 64) & 1;
}
static inline void bitset_set(struct bitset *s, uint32_t i)
{
    s->words[i / 64] |= UINT64_C(1) << (i % 64);
}

#endif
