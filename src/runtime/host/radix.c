// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/radix.h"

#include <string.h>

struct radix radix_make(enum radix_kind kind, int64_t n, int bits, struct rt_pool *pool)
{
    int64_t chunks = pool ? rt_pool_size(pool) : 1, most = n / RADIX_CHUNK;
    int low = kind == RADIX_PAIR32 ? 32 : 0;
    chunks = chunks < most ? chunks : most > 1 ? most : 1;
    return (struct radix){.kind = kind,
                          .n = n,
                          .low = low,
                          .high = low + bits,
                          .digit = n > RADIX_CHUNK && bits > 16 ? RADIX_MOST_DIGIT : 8,
                          .pool = pool,
                          .chunks = chunks,
                          .chunk = (n + chunks - 1) / chunks};
}

void radix_run(const struct radix *r, rt_pool_body *body, void *ctx)
{
    if (r->chunks > 1)
        rt_pool_run(r->pool, rt_pool_size(r->pool), body, ctx, r->chunks);
    else
        body(ctx, 0, 0);
}

// Counts become positions: those of a digit behind those of smaller ones, and of a chunk behind those
// of the chunks before.  False if all elements have one digit.
static bool radix_spread(const struct radix *r)
{
    int64_t sum = 0;
    for (int64_t d = 0; d < INT64_C(1) << r->digit; d++) {
        int64_t before = sum;
        for (int64_t c = 0; c < r->chunks; c++) {
            uint32_t *position = &r->counts[(c << r->digit) + d], count = *position;
            *position = (uint32_t)sum;
            sum += count;
        }
        if (sum - before == r->n)
            return false;
    }
    return true;
}

#define ELEMENT uint32_t
#define KEY(e) (e)
#define NAME(x) key32_##x
#include "runtime/host/radix.inc"
#undef ELEMENT
#undef KEY
#undef NAME

#define ELEMENT uint64_t
#define KEY(e) (e)
#define NAME(x) key64_##x
#include "runtime/host/radix.inc"
#undef ELEMENT
#undef KEY
#undef NAME

#define ELEMENT struct radix_pair
#define KEY(e) ((e).key)
#define NAME(x) pair64_##x
#include "runtime/host/radix.inc"
#undef ELEMENT
#undef KEY
#undef NAME

void *radix_sort(const struct radix *r, void *x, void *spare)
{
    switch (r->kind) {
    case RADIX_KEY32:
        return key32_sort(r, x, spare);
    case RADIX_PAIR64:
        return pair64_sort(r, x, spare);
    default:
        return key64_sort(r, x, spare);
    }
}

void radix_pack(enum radix_kind kind, const uint64_t *keys, const uint32_t *tags, int64_t first,
                int n, void *x)
{
    uint32_t *narrow = (uint32_t *)x + first;
    uint64_t *wide = (uint64_t *)x + first;
    struct radix_pair *pairs = (struct radix_pair *)x + first;
    for (int i = 0; i < n && kind == RADIX_KEY32; i++)
        narrow[i] = (uint32_t)keys[i];
    for (int i = 0; i < n && kind == RADIX_KEY64; i++)
        wide[i] = keys[i];
    for (int i = 0; i < n && kind == RADIX_PAIR32; i++)
        wide[i] = keys[i] << 32 | tags[i];
    for (int i = 0; i < n && kind == RADIX_PAIR64; i++)
        pairs[i] = (struct radix_pair){keys[i], tags[i]};
}

void radix_unpack(enum radix_kind kind, const void *x, int64_t first, int n, uint64_t *keys,
                  uint32_t *tags)
{
    const uint32_t *narrow = (const uint32_t *)x + first;
    const uint64_t *wide = (const uint64_t *)x + first;
    const struct radix_pair *pairs = (const struct radix_pair *)x + first;
    for (int i = 0; i < n && kind == RADIX_KEY32; i++)
        keys[i] = narrow[i];
    for (int i = 0; i < n && kind == RADIX_KEY64; i++)
        keys[i] = wide[i];
    for (int i = 0; i < n && kind == RADIX_PAIR32; i++) {
        keys[i] = wide[i] >> 32;
        tags[i] = (uint32_t)wide[i];
    }
    for (int i = 0; i < n && kind == RADIX_PAIR64; i++) {
        keys[i] = pairs[i].key;
        tags[i] = pairs[i].tag;
    }
}
