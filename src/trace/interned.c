// SPDX-License-Identifier: Apache-2.0
#include "trace/interned.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define BUCKETS 256

struct entry {
    struct entry *next;
    uint64_t hash;
    size_t size;
    void *bytes[]; // aligned for pointers
};

static struct entry *_Atomic buckets[BUCKETS]; // entries are only added, in front

static const struct entry *find_entry(const struct entry *from, const struct entry *end,
                                      uint64_t hash, const void *bytes, size_t size)
{
    for (const struct entry *e = from; e != end; e = e->next)
        if (e->hash == hash && e->size == size && memcmp(e->bytes, bytes, size) == 0)
            return e;
    return NULL;
}

const void *interned(const void *bytes, size_t size)
{
    uint64_t hash = hash_bytes(size, bytes, size);
    struct entry *_Atomic *bucket = &buckets[hash % BUCKETS];
    struct entry *first = atomic_load(bucket);
    const struct entry *known = find_entry(first, NULL, hash, bytes, size);
    if (known)
        return known->bytes;
    struct entry *e = memory_allocate(sizeof *e + size);
    if (!e)
        return NULL;
    *e = (struct entry){.next = first, .hash = hash, .size = size};
    memcpy(e->bytes, bytes, size);
    // Where another thread was faster, what it has added may be the same.
    while (!atomic_compare_exchange_weak(bucket, &e->next, e)) {
        known = find_entry(e->next, first, hash, bytes, size);
        if (known) {
            memory_release(e);
            return known->bytes;
        }
        first = e->next;
    }
    return e->bytes;
}
