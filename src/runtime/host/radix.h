// SPDX-License-Identifier: Apache-2.0
// Elements to be sorted: a key, and perhaps a number of 32 bits that goes with it.
#ifndef RUNTIME_HOST_RADIX_H
#define RUNTIME_HOST_RADIX_H

#include "runtime/host/pool.h"
#include "runtime/host/sort_keys.h"

#include <stddef.h>

enum {
    RADIX_LEAST = 48,      // shorter rows are sorted by insertion
    RADIX_MOST_DIGIT = 11, // bits
    RADIX_CHUNK = 1 << 14, // elements of a chunk, at least
};

enum radix_kind {
    RADIX_KEY32,  // uint32_t
    RADIX_KEY64,  // uint64_t
    RADIX_PAIR32, // uint64_t: the key above the number
    RADIX_PAIR64, // struct radix_pair
};

struct radix_pair {
    uint64_t key;
    uint32_t tag;
};

// How n elements are sorted by the low `bits` bits of their keys.
struct radix {
    enum radix_kind kind;
    int64_t n;
    int low, high; // bits of an element that are the key's
    int digit;     // bits of a pass
    struct rt_pool *pool;
    int64_t chunks, chunk; // how many, of how many elements
    uint32_t *counts;      // of each chunk, of each digit: n is below 2^32
};

// With chunks for the threads of a pool, which may be NULL.
struct radix radix_make(enum radix_kind kind, int64_t n, int bits, struct rt_pool *pool);
static inline size_t radix_element_bytes(enum radix_kind kind)
{
    return kind == RADIX_KEY32 ? 4 : kind == RADIX_PAIR64 ? sizeof(struct radix_pair) : 8;
}
// Of r->counts, to be set.
static inline size_t radix_count_bytes(const struct radix *r)
{
    return (size_t)r->chunks * sizeof *r->counts << r->digit;
}

static inline int64_t radix_start(const struct radix *r, int64_t chunk)
{
    return chunk * r->chunk;
}
static inline int64_t radix_end(const struct radix *r, int64_t chunk)
{
    int64_t end = (chunk + 1) * r->chunk;
    return end < r->n ? end : r->n;
}
// Calls body for every chunk.
void radix_run(const struct radix *r, rt_pool_body *body, void *ctx);

// Elements of keys and tags (which kinds of keys alone do not read), and back.
void radix_pack(enum radix_kind kind, const uint64_t *keys, const uint32_t *tags, int64_t first,
                int n, void *x);
void radix_unpack(enum radix_kind kind, const void *x, int64_t first, int n, uint64_t *keys,
                  uint32_t *tags);

// Sorts x stably; gives x or the spare, whichever the elements have ended in.
void *radix_sort(const struct radix *r, void *x, void *spare);

#endif
