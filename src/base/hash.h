// SPDX-License-Identifier: Apache-2.0
// Hashes: 64 bits for tables, 128 for cache keys.
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t lo, hi;
};

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
static inline uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t hash_combine(uint64_t h, uint64_t x)
{
    return hash_mix(h + UINT64_C(0x9e3779b97f4a7c15) + x * UINT64_C(0xd6e8feb86659fd93));
}

uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes);
struct hash128 hash128_bytes(const void *data, size_t bytes);

// A table from hash to a 32-bit id, open addressing, in an arena.  The caller compares.
//
//     for (struct hash_probe p = hash_probe(&t, h); hash_next(&t, &p);)
//         if (equal(p.id, key)) return p.id;
//     hash_insert(arena, &t, h, id);
struct arena;
struct hash_slot {
    uint64_t hash;
    uint32_t id, used;
};
struct hash_table {
    struct hash_slot *slots;
    uint32_t count, capacity;
};
struct hash_probe {
    uint64_t hash;
    uint32_t at, id;
};
static inline struct hash_probe hash_probe(const struct hash_table *t, uint64_t h)
{
    return (struct hash_probe){.hash = h,
                               .at = t->capacity ? (uint32_t)h & (t->capacity - 1) : 0};
}
// Moves to the next entry with the same hash; false at the end.
static inline int hash_next(const struct hash_table *t, struct hash_probe *p)
{
    while (t->capacity && t->slots[p->at].used) {
        const struct hash_slot *s = &t->slots[p->at];
        p->at = (p->at + 1) & (t->capacity - 1);
        if (s->hash == p->hash) {
            p->id = s->id;
            return 1;
        }
    }
    return 0;
}
void hash_insert(struct arena *a, struct hash_table *t, uint64_t h, uint32_t id);

#endif
