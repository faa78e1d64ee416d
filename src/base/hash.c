// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/arena.h"

#include <string.h>

uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t h = hash_combine(seed, bytes);
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = hash_combine(h, word);
    }
    uint64_t tail = 0;
    if (bytes)
        memcpy(&tail, at, bytes);
    return hash_combine(h, tail);
}

struct hash128 hash128_bytes(const void *data, size_t bytes)
{
    return (struct hash128){.lo = hash_bytes(UINT64_C(0x6a09e667f3bcc908), data, bytes),
                            .hi = hash_bytes(UINT64_C(0xbb67ae8584caa73b), data, bytes)};
}

static void put_slot(struct hash_table *t, struct hash_slot slot)
{
    uint32_t i = (uint32_t)slot.hash & (t->capacity - 1);
    while (t->slots[i].used)
        i = (i + 1) & (t->capacity - 1);
    t->slots[i] = slot;
}

void hash_insert(struct arena *a, struct hash_table *t, uint64_t h, uint32_t id)
{
    if (t->count * 4 >= t->capacity * 3) {
        struct hash_table bigger = {.count = t->count,
                                    .capacity = t->capacity ? t->capacity * 2 : 16};
        bigger.slots = arena_array(a, struct hash_slot, bigger.capacity);
        for (uint32_t i = 0; i < t->capacity; i++)
            if (t->slots[i].used)
                put_slot(&bigger, t->slots[i]);
        *t = bigger;
    }
    put_slot(t, (struct hash_slot){.hash = h, .id = id, .used = 1});
    t->count++;
}
