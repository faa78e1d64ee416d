// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/sort.h"

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/radix.h"
#include "runtime/routine.h"

#include <string.h>

// What goes with the keys while they are sorted.
enum carry {
    CARRY_NOTHING, // one operand: its elements are made of the keys
    CARRY_VALUE,   // a key and one more operand of 4 bytes: its elements
    CARRY_INDEX,   // anything else: where the element was
};

struct job {
    const struct rt_sort *s;
    struct sort_key key[2 * RT_SORT_MOST]; // the last is sorted by first
    int n_keys;
    enum carry carry;
    enum radix_kind kind;
    int64_t rows_at_once; // by one worker
    struct rt_pool *pool; // of one row, NULL when rows are in parallel
};

static void add_part(struct job *j, struct sort_part part)
{
    struct sort_key *key = j->n_keys ? &j->key[j->n_keys - 1] : NULL;
    if (!key || key->n == 4 || key->bits + part.bits > 64)
        key = &j->key[j->n_keys++];
    key->part[key->n++] = part;
    key->bits += part.bits;
}

static void plan_keys(struct job *j)
{
    for (int i = 0; i < j->s->n_keys; i++) {
        jot_dtype d = j->s->dtype[i], real = dtype_real(d);
        bool is_complex = dtype_is_complex(d);
        size_t bytes = dtype_get(real)->bytes;
        struct sort_part part = {real, (int)bytes * 8, is_complex ? 2 : 1, j->s->in[i], false};
        add_part(j, part);
        part.at = (const char *)j->s->in[i] + bytes;
        if (is_complex)
            add_part(j, part);
    }
}

static enum radix_kind kind_of(int bits, enum carry carry)
{
    if (carry == CARRY_NOTHING)
        return bits > 32 ? RADIX_KEY64 : RADIX_KEY32;
    return bits > 32 ? RADIX_PAIR64 : RADIX_PAIR32;
}

static void plan(struct job *j)
{
    const struct rt_sort *s = j->s;
    int most = 0;
    plan_keys(j);
    for (int i = 0; i < j->n_keys; i++)
        most = j->key[i].bits > most ? j->key[i].bits : most;
    j->carry = CARRY_INDEX;
    if (s->n_keys == 1 && !dtype_is_complex(s->dtype[0])) {
        if (s->n == 1)
            j->carry = CARRY_NOTHING;
        else if (s->n == 2 && dtype_get(s->dtype[1])->bytes == 4)
            j->carry = CARRY_VALUE;
    }
    j->kind = kind_of(most, j->carry);
}

// One row being sorted.
struct row {
    const struct job *j;
    struct radix r;
    int64_t start;       // its first element in the operands
    struct sort_key key; // of the row
    void *x, *spare;
    uint32_t *indices; // where elements come from so far; NULL at first
};

static size_t operand_bytes(const struct rt_sort *s, int i)
{
    return dtype_get(s->dtype[i])->bytes;
}

static const void *in_row(const struct row *w, int i)
{
    return (const char *)w->j->s->in[i] + (size_t)w->start * operand_bytes(w->j->s, i);
}

static void *out_row(const struct row *w, int i)
{
    return (char *)w->j->s->out[i] + (size_t)w->start * operand_bytes(w->j->s, i);
}

// The elements of a chunk are words that become keys, and nothing else.
static bool is_of_words(const struct row *w)
{
    return w->r.kind == RADIX_KEY32 && sort_has_words(&w->key);
}

static void fill(void *ctx, int64_t chunk, int worker)
{
    (void)worker;
    const struct row *w = ctx;
    int64_t start = radix_start(&w->r, chunk), end = radix_end(&w->r, chunk);
    uint64_t keys[SORT_BLOCK];
    uint32_t tags[SORT_BLOCK];
    if (is_of_words(w)) {
        sort_encode_words(&w->key, start, end - start, (uint32_t *)w->x + start);
        return;
    }
    for (int64_t i = start; i < end; i += SORT_BLOCK) {
        int n = end - i < SORT_BLOCK ? (int)(end - i) : SORT_BLOCK;
        sort_encode(&w->key, w->indices, i, n, keys);
        if (w->j->carry == CARRY_VALUE)
            memcpy(tags, (const uint32_t *)in_row(w, 1) + i, (size_t)n * sizeof *tags);
        for (int k = 0; k < n && w->j->carry == CARRY_INDEX; k++)
            tags[k] = w->indices ? w->indices[i + k] : (uint32_t)(i + k);
        radix_pack(w->r.kind, keys, tags, i, n, w->x);
    }
}

// Keys and tags of sorted elements to where they belong.
static void drain(void *ctx, int64_t chunk, int worker)
{
    (void)worker;
    const struct row *w = ctx;
    int64_t start = radix_start(&w->r, chunk), end = radix_end(&w->r, chunk);
    size_t bytes = operand_bytes(w->j->s, 0);
    uint64_t keys[SORT_BLOCK];
    uint32_t tags[SORT_BLOCK];
    if (is_of_words(w)) {
        sort_decode_words(w->j->s->dtype[0], (const uint32_t *)w->x + start, end - start,
                          (uint32_t *)out_row(w, 0) + start);
        return;
    }
    for (int64_t i = start; i < end; i += SORT_BLOCK) {
        int n = end - i < SORT_BLOCK ? (int)(end - i) : SORT_BLOCK;
        radix_unpack(w->r.kind, w->x, i, n, keys, tags);
        if (w->j->carry != CARRY_INDEX)
            sort_decode(w->j->s->dtype[0], keys, n, (char *)out_row(w, 0) + (size_t)i * bytes);
        uint32_t *to = w->j->carry == CARRY_VALUE ? out_row(w, 1) : w->indices;
        if (w->j->carry != CARRY_NOTHING)
            memcpy(to + i, tags, (size_t)n * sizeof *tags);
    }
}

struct sixteen {
    uint64_t half[2];
};

#define GATHER(T)                                                                              \
    for (int64_t k = first; k < end; k++)                                                      \
        ((T *)to)[k] = ((const T *)from)[w->indices[k]];

static void gather_chunk(void *ctx, int64_t chunk, int worker)
{
    (void)worker;
    const struct row *w = ctx;
    int64_t first = radix_start(&w->r, chunk), end = radix_end(&w->r, chunk);
    for (int i = 0; i < w->j->s->n; i++) {
        const void *from = in_row(w, i);
        void *to = out_row(w, i);
        switch (operand_bytes(w->j->s, i)) {
        case 1:
            GATHER(uint8_t)
            break;
        case 2:
            GATHER(uint16_t)
            break;
        case 4:
            GATHER(uint32_t)
            break;
        case 8:
            GATHER(uint64_t)
            break;
        default:
            GATHER(struct sixteen)
        }
    }
}

static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static size_t memory_of_row(const struct job *j)
{
    struct radix r = radix_make(j->kind, j->s->length, 64, j->pool);
    size_t n = (size_t)j->s->length;
    return 2 * round_up(n * radix_element_bytes(j->kind)) + round_up(n * sizeof(uint32_t)) +
           round_up(radix_count_bytes(&r));
}

static void sort_row(const struct job *j, int64_t number, char *memory)
{
    int64_t n = j->s->length;
    size_t bytes = round_up((size_t)n * radix_element_bytes(j->kind));
    struct row w = {.j = j, .start = number * n, .x = memory, .spare = memory + bytes};
    uint32_t *indices = (uint32_t *)(memory + 2 * bytes);
    for (int i = j->n_keys; i-- > 0;) {
        w.key = j->key[i];
        for (int k = 0; k < w.key.n; k++) {
            struct sort_part *p = &w.key.part[k];
            p->at = (const char *)p->at + w.start * p->step * (p->bits / 8);
        }
        w.r = radix_make(j->kind, n, w.key.bits, j->pool);
        w.r.counts = (uint32_t *)(memory + 2 * bytes + round_up((size_t)n * sizeof(uint32_t)));
        radix_run(&w.r, fill, &w);
        void *sorted = radix_sort(&w.r, w.x, w.spare);
        w.spare = sorted == w.x ? w.spare : w.x;
        w.x = sorted;
        w.indices = indices;
        radix_run(&w.r, drain, &w);
    }
    if (j->carry == CARRY_INDEX)
        radix_run(&w.r, gather_chunk, &w);
    else
        sort_restore(j->s->dtype[0], in_row(&w, 0), n, out_row(&w, 0));
}

// Rows that workers sort by themselves.
struct rows {
    const struct job *j;
    char *memory; // of each worker
    size_t stride;
};

static void sort_rows(void *ctx, int64_t chunk, int worker)
{
    const struct rows *r = ctx;
    const struct job *j = r->j;
    int64_t first = chunk * j->rows_at_once, end = first + j->rows_at_once;
    for (int64_t i = first; i < end && i < j->s->rows; i++)
        sort_row(j, i, r->memory + (size_t)worker * r->stride);
}

static jot_status out_of_memory(size_t bytes)
{
    return status_fail(JOT_ERR_MEMORY, "out of memory: %zu bytes to sort in", bytes);
}

jot_status rt_sort(struct rt_pool *pool, const struct rt_sort *s)
{
    struct job j = {.s = s};
    if (s->length > (int64_t)UINT32_MAX)
        return status_fail(JOT_ERR_SHAPE, "rows of %lld elements to sort: at most %lld",
                           (long long)s->length, (long long)UINT32_MAX);
    plan(&j);
    int size = rt_pool_size(pool);
    if (s->rows < size && s->length >= 2 * RADIX_CHUNK)
        j.pool = pool;
    struct rows r = {.j = &j, .stride = memory_of_row(&j)};
    j.rows_at_once = s->length < RADIX_CHUNK ? RADIX_CHUNK / (s->length + 1) : 1;
    int64_t chunks = j.pool ? 1 : (s->rows + j.rows_at_once - 1) / j.rows_at_once;
    size_t bytes = r.stride * (size_t)(chunks > 1 ? size : 1);
    r.memory = rt_block_allocate(bytes);
    if (!r.memory)
        return out_of_memory(bytes);
    if (j.pool) {
        for (int64_t i = 0; i < s->rows; i++)
            sort_row(&j, i, r.memory);
    } else if (chunks > 1) {
        rt_pool_run(pool, size, sort_rows, &r, chunks);
    } else {
        sort_rows(&r, 0, 0);
    }
    rt_block_release(r.memory, bytes);
    return JOT_OK;
}

// ---- The routine

static jot_status sort_of(const struct rt_routine_call *c, struct rt_sort *out)
{
    const int64_t *p = c->params;
    uint32_t n = c->read_count;
    if (c->param_count < 5 || n < 1 || n > RT_SORT_MOST || c->operand_count != 2 * n ||
        p[2] < 0 || p[3] < 1 || p[3] > n ||
        (c->param_count != 4 + n && c->param_count != 4 + n + (uint32_t)p[3]))
        return rt_routine_damaged("sort");
    *out = (struct rt_sort){.n = (int)n, .n_keys = (int)p[3], .rows = p[1], .length = p[2]};
    for (uint32_t i = 0; i < n; i++) {
        if (!dtype_is_valid((int)p[4 + i]))
            return rt_routine_damaged("sort");
        out->dtype[i] = (jot_dtype)p[4 + i];
        uint64_t bytes = (uint64_t)(p[1] * p[2]) * operand_bytes(out, (int)i);
        if (c->bytes[i] < bytes || c->bytes[n + i] < bytes)
            return rt_routine_damaged("sort");
        out->in[i] = c->operands ? c->operands[i] : NULL;
        out->out[i] = c->operands ? c->operands[n + i] : NULL;
    }
    return JOT_OK;
}

jot_status host_sort_check(const struct rt_routine_call *call)
{
    struct rt_sort s;
    return sort_of(call, &s);
}

jot_status host_sort_bind(const struct rt_routine_call *call, size_t *out_scratch)
{
    (void)call;
    *out_scratch = 0;
    return JOT_OK;
}

jot_status host_sort(const struct rt_routine_call *call)
{
    struct rt_sort s;
    JOT_TRY(sort_of(call, &s));
    return rt_sort(rt_pool_default(), &s);
}
