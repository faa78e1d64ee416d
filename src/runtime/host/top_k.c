// SPDX-License-Identifier: Apache-2.0
// The greatest elements of rows: those above the least of the k best so far are kept until there is no
// room, and then the best k of these.  Room is little at first, so that there is soon something to compare
// with.  A long row is done in parts, whose best are sorted once more.
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/radix.h"
#include "runtime/host/sort.h"
#include "runtime/routine.h"

#include <string.h>

// Elements kept beside the k best: at first, and after some doublings at least.
enum { FIRST_ROOM = 64, LAST_ROOM = 1024 };

struct job {
    const struct rt_top_k *t;
    struct sort_key key;
    int64_t parts, part; // of a row: how many, of how many elements
    int64_t most;        // elements kept at once
    char *memory;        // of each part, or of each worker
    size_t stride;
};

// Those kept, the greatest first once they are compacted.
struct kept {
    struct radix_pair *x, *spare;
    uint32_t *counts;
    int64_t n, most, room; // elements, the most, and how many before they are compacted
    uint64_t limit;        // keys from here on are not among the best
};

static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static struct kept kept_in(const struct job *j, char *memory, int64_t most)
{
    int64_t room = j->t->k + FIRST_ROOM;
    size_t bytes = round_up((size_t)most * sizeof(struct radix_pair));
    return (struct kept){.x = (struct radix_pair *)memory,
                         .spare = (struct radix_pair *)(memory + bytes),
                         .counts = (uint32_t *)(memory + 2 * bytes),
                         .most = most,
                         .room = room < most ? room : most,
                         .limit = UINT64_MAX};
}

static void compact(const struct job *j, struct kept *s)
{
    struct radix r = radix_make(RADIX_PAIR64, s->n, j->key.bits, NULL);
    r.counts = s->counts;
    struct radix_pair *sorted = radix_sort(&r, s->x, s->spare);
    if (sorted != s->x)
        s->spare = s->x;
    s->x = sorted;
    int64_t room = j->t->k + 2 * (s->room - j->t->k);
    s->room = room < s->most ? room : s->most;
    if (s->n < j->t->k)
        return;
    s->n = j->t->k;
    s->limit = s->x[s->n - 1].key;
}

static void keep_element(const struct job *j, struct kept *s, uint64_t turned, int64_t at)
{
    if (s->n == s->room)
        compact(j, s);
    if (turned < s->limit || s->n < j->t->k)
        s->x[s->n++] = (struct radix_pair){turned, (uint32_t)at};
}

// Of words those that are no better than the least of the best are passed over together.
static void select_words(const struct job *j, const struct sort_key *key, int64_t first, int n,
                         struct kept *s)
{
    uint32_t keys[SORT_BLOCK];
    sort_encode_words(key, first, n, keys);
    for (int k = 0; k < n; k++) {
        if (s->n >= j->t->k && s->limit == 0)
            return;
        uint32_t bound =
            s->n < j->t->k || s->limit > UINT32_MAX ? 0 : ~(uint32_t)(s->limit - 1);
        k = sort_find_word(keys, k, n, bound);
        if (k < n)
            keep_element(j, s, (uint32_t)~keys[k], first + k);
    }
}

static void select_numbers(const struct job *j, const struct sort_key *key, int64_t first,
                           int n, struct kept *s)
{
    uint64_t keys[SORT_BLOCK];
    uint64_t mask = UINT64_MAX >> (64 - j->key.bits);
    sort_encode(key, NULL, first, n, keys);
    for (int k = 0; k < n; k++) {
        uint64_t turned = ~keys[k] & mask;
        if (turned < s->limit || s->n < j->t->k)
            keep_element(j, s, turned, first + k);
    }
}

// The best of elements first, ..., end - 1 of a row; keys are turned, so that the greatest are least.
static void select_best(const struct job *j, const struct sort_key *key, int64_t first,
                        int64_t end, struct kept *s)
{
    bool has_words = sort_has_words(key);
    for (int64_t i = first; i < end; i += SORT_BLOCK) {
        int n = end - i < SORT_BLOCK ? (int)(end - i) : SORT_BLOCK;
        if (has_words)
            select_words(j, key, i, n, s);
        else
            select_numbers(j, key, i, n, s);
    }
    compact(j, s);
}

static struct sort_key key_of_row(const struct job *j, int64_t row)
{
    struct sort_key key = j->key;
    key.part[0].at = (const char *)key.part[0].at + row * j->t->length * (key.part[0].bits / 8);
    return key;
}

static void put(const struct job *j, int64_t row, const struct kept *s)
{
    const struct rt_top_k *t = j->t;
    size_t bytes = dtype_get(t->dtype)->bytes;
    const char *in = (const char *)t->in + (size_t)(row * t->length) * bytes;
    char *values = (char *)t->values + (size_t)(row * t->k) * bytes;
    for (int64_t i = 0; i < t->k; i++) {
        uint32_t at = s->x[i].tag;
        memcpy(values + (size_t)i * bytes, in + at * bytes, bytes);
        if (t->index_dtype == JOT_I64)
            ((int64_t *)t->indices)[row * t->k + i] = at;
        else
            ((int32_t *)t->indices)[row * t->k + i] = (int32_t)at;
    }
}

// A row of one part.
static void do_row(void *ctx, int64_t row, int worker)
{
    const struct job *j = ctx;
    struct sort_key key = key_of_row(j, row);
    struct kept s = kept_in(j, j->memory + (size_t)worker * j->stride, j->most);
    select_best(j, &key, 0, j->t->length, &s);
    put(j, row, &s);
}

struct part_of_row {
    const struct job *j;
    int64_t row;
    struct kept *best; // of each part
};

static void do_part(void *ctx, int64_t i, int worker)
{
    (void)worker;
    const struct part_of_row *p = ctx;
    const struct job *j = p->j;
    int64_t first = i * j->part, end = first + j->part;
    struct sort_key key = key_of_row(j, p->row);
    p->best[i] = kept_in(j, j->memory + (size_t)i * j->stride, j->most);
    select_best(j, &key, first, end < j->t->length ? end : j->t->length, &p->best[i]);
}

static void do_long_row(const struct job *j, struct rt_pool *pool, int64_t row,
                        struct kept *best)
{
    struct part_of_row p = {j, row, best};
    rt_pool_run(pool, rt_pool_size(pool), do_part, &p, j->parts);
    struct kept all = kept_in(j, j->memory + (size_t)j->parts * j->stride, j->parts * j->t->k);
    for (int64_t i = 0; i < j->parts; i++) {
        memcpy(all.x + all.n, best[i].x, (size_t)best[i].n * sizeof *all.x);
        all.n += best[i].n;
    }
    compact(j, &all);
    put(j, row, &all);
}

// Of an array of so many elements with what it is sorted in.
static size_t memory_for(int64_t most)
{
    struct radix r = radix_make(RADIX_PAIR64, most, 64, NULL);
    return 2 * round_up((size_t)most * sizeof(struct radix_pair)) +
           round_up(radix_count_bytes(&r));
}

jot_status rt_top_k(struct rt_pool *pool, const struct rt_top_k *t)
{
    int bits = dtype_get(t->dtype)->bytes * 8, size = rt_pool_size(pool);
    struct job j = {.t = t,
                    .key = {1, {{t->dtype, bits, 1, t->in, true}}, bits},
                    .parts = 1,
                    .part = t->length};
    if (t->k == 0 || t->rows == 0)
        return JOT_OK;
    if (t->length > (int64_t)UINT32_MAX)
        return status_fail(JOT_ERR_SHAPE, "rows of %lld elements: at most %lld",
                           (long long)t->length, (long long)UINT32_MAX);
    if (t->rows < size && t->length / size >= RADIX_CHUNK && t->k < t->length / size / 4) {
        j.parts = size;
        j.part = (t->length + size - 1) / size;
    }
    j.most = 2 * t->k > t->k + LAST_ROOM ? 2 * t->k : t->k + LAST_ROOM;
    j.most = j.most < j.part ? j.most : j.part;
    j.stride = memory_for(j.most);
    size_t best = round_up((size_t)j.parts * sizeof(struct kept));
    size_t bytes = j.stride * (size_t)size + memory_for(j.parts * t->k) + best;
    char *memory = rt_block_allocate(bytes);
    if (!memory)
        return status_fail(JOT_ERR_MEMORY, "out of memory: %zu bytes to choose in", bytes);
    j.memory = memory + best;
    if (j.parts > 1) {
        for (int64_t i = 0; i < t->rows; i++)
            do_long_row(&j, pool, i, (struct kept *)memory);
    } else {
        rt_pool_run(pool, size, do_row, &j, t->rows);
    }
    rt_block_release(memory, bytes);
    return JOT_OK;
}

// ---- The routine

static jot_status top_k_of(const struct rt_routine_call *c, struct rt_top_k *out)
{
    const int64_t *p = c->params;
    if (c->param_count != 5 || c->operand_count != 3 || c->read_count != 1 ||
        !dtype_is_valid((int)p[0]) || dtype_is_complex((jot_dtype)p[0]) || p[3] < 0 ||
        p[3] > p[2] || (p[4] != JOT_I32 && p[4] != JOT_I64))
        return rt_routine_damaged("top_k");
    *out = (struct rt_top_k){.dtype = (jot_dtype)p[0],
                             .index_dtype = (jot_dtype)p[4],
                             .rows = p[1],
                             .length = p[2],
                             .k = p[3]};
    uint64_t bytes = dtype_get(out->dtype)->bytes, count = (uint64_t)(p[1] * p[3]);
    if (c->bytes[0] < (uint64_t)(p[1] * p[2]) * bytes || c->bytes[1] < count * bytes ||
        c->bytes[2] < count * dtype_get(out->index_dtype)->bytes)
        return rt_routine_damaged("top_k");
    out->in = c->operands ? c->operands[0] : NULL;
    out->values = c->operands ? c->operands[1] : NULL;
    out->indices = c->operands ? c->operands[2] : NULL;
    return JOT_OK;
}

jot_status host_top_k_check(const struct rt_routine_call *call)
{
    struct rt_top_k t;
    return top_k_of(call, &t);
}

jot_status host_top_k_bind(const struct rt_routine_call *call, size_t *out_scratch)
{
    (void)call;
    *out_scratch = 0;
    return JOT_OK;
}

jot_status host_top_k(const struct rt_routine_call *call)
{
    struct rt_top_k t;
    JOT_TRY(top_k_of(call, &t));
    return rt_top_k(rt_pool_default(), &t);
}
