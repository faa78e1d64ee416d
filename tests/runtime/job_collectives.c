// SPDX-License-Identifier: Apache-2.0
#include "job_collectives.h"

#include "base/dtype.h"
#include "base/hash.h"
#include "runtime/host/combine.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static size_t element_of(const struct shape *s) { return dtype_get(s->combine.dtype)->bytes; }

static size_t blocks_read(enum kind kind, size_t n)
{
    return kind == ALL_TO_ALL || kind == REDUCE_SCATTER ? n : 1;
}

static size_t blocks_written(enum kind kind, size_t n)
{
    return kind == ALL_TO_ALL || kind == ALL_GATHER ? n : 1;
}

// Small numbers whose sums and products are rounded in all float types.
void fill(jot_dtype d, int64_t member, size_t n, void *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t r = hash_mix((uint64_t)member << 32 | i);
        float x = 0.7f + (float)(r % 1000) * 0.001f;
        double y = 0.7 + (double)(r % 1000) * 0.001;
        switch (d) {
        case JOT_F16:
            ((uint16_t *)out)[i] = dtype_f16_from_f32(x);
            break;
        case JOT_BF16:
            ((uint16_t *)out)[i] = dtype_bf16_from_f32(x);
            break;
        case JOT_F32:
        case JOT_C64:
            for (size_t k = 0; k <= (d == JOT_C64); k++)
                ((float *)out)[d == JOT_C64 ? 2 * i + k : i] = x - (float)k;
            break;
        case JOT_F64:
        case JOT_C128:
            for (size_t k = 0; k <= (d == JOT_C128); k++)
                ((double *)out)[d == JOT_C128 ? 2 * i + k : i] = y - (double)k;
            break;
        case JOT_BOOL:
            ((unsigned char *)out)[i] = r & 1;
            break;
        default:
            memcpy((char *)out + i * dtype_get(d)->bytes, &r, dtype_get(d)->bytes);
        }
    }
}

// Who gives what to member `to`; -1: nobody.
static int64_t source_of(int64_t to, int64_t n) { return to == 1 ? -1 : (to * 3 + 2) % n; }
static int64_t root_of(int64_t n) { return n / 2; }

// What member `to` gets: the definition.
static void expect(enum kind kind, int64_t n, const struct shape *s, int64_t to,
                   unsigned char *out)
{
    size_t bytes = s->elements * element_of(s), read = blocks_read(kind, (size_t)n) * bytes;
    unsigned char *all = malloc((size_t)n * read + 1);
    const void *blocks[64];
    int64_t from = kind == PERMUTE ? source_of(to, n) : root_of(n);
    size_t part = kind == REDUCE_SCATTER ? (size_t)to * bytes : 0;
    for (int64_t k = 0; k < n; k++) {
        fill(s->combine.dtype, k, read / element_of(s), all + (size_t)k * read);
        blocks[k] = all + (size_t)k * read + part;
    }
    for (int64_t k = 0; k < n && (kind == ALL_TO_ALL || kind == ALL_GATHER); k++)
        memcpy(out + (size_t)k * bytes,
               all + (size_t)k * read + (kind == ALL_TO_ALL ? (size_t)to * bytes : 0), bytes);
    if (kind == PERMUTE || kind == BROADCAST)
        from < 0 ? memset(out, 0, bytes) : memcpy(out, all + (size_t)from * read, bytes);
    for (size_t i = 0; i < s->elements && (kind == REDUCE_SCATTER || kind == ALL_REDUCE); i++)
        host_combine(s->combine.combiner, s->combine.dtype, (size_t)n, blocks, i, i + 1, 1,
                     (void *[]){out}, i, false);
    free(all);
}

jot_status do_one(enum kind kind, const struct rt_group *g, const struct shape *s,
                  const void *const *from, void *const *to)
{
    int64_t sources[64];
    size_t bytes = s->elements * element_of(s);
    for (int64_t i = 0; i < g->count; i++)
        sources[i] = source_of(i, g->count);
    switch (kind) {
    case ALL_GATHER:
        return rt_distributed_all_gather(g, "here", bytes, from, to);
    case ALL_TO_ALL:
        return rt_distributed_all_to_all(g, "here", bytes, from, to);
    case PERMUTE:
        return rt_distributed_permute(g, "here", bytes, sources, from, to);
    case BROADCAST:
        return rt_distributed_broadcast(g, "here", bytes, root_of(g->count), to);
    case REDUCE_SCATTER:
        return rt_distributed_reduce_scatter(g, "here", bytes, &s->combine, from, to);
    case ALL_REDUCE:
        return rt_distributed_all_reduce(g, "here", bytes, &s->combine, from, to);
    default:
        return rt_distributed_barrier(g, "here");
    }
}

// In place where that is allowed.
void check_one(int index, enum kind kind, const struct rt_group *g, const struct shape *s)
{
    size_t bytes = s->elements * element_of(s), n = (size_t)g->count;
    size_t read = blocks_read(kind, n) * bytes, written = blocks_written(kind, n) * bytes;
    const void *from[64] = {0};
    void *to[64] = {0};
    int64_t member[64];
    int own = 0;
    for (int64_t i = 0; i < g->count; i++) {
        if (g->process[i] != index)
            continue;
        unsigned char *block = malloc(read + 1);
        fill(s->combine.dtype, i, read / element_of(s), block);
        from[own] = block;
        to[own] = kind == BROADCAST || kind == ALL_REDUCE ? block : malloc(written + 1);
        member[own++] = i;
    }
    jot_status status = do_one(kind, g, s, from, to);
    ck_assert_msg(status == JOT_OK, "%s", jot_error_message());
    unsigned char *right = malloc(written + 1);
    for (int k = 0; k < own; k++) {
        expect(kind, g->count, s, member[k], right);
        ck_assert_msg(kind == BARRIER || !memcmp(to[k], right, written),
                      "kind %d, %zu of %s, combiner %d, member %d of %d", (int)kind,
                      s->elements, dtype_get(s->combine.dtype)->name, (int)s->combine.combiner,
                      (int)member[k], (int)g->count);
        if (to[k] != from[k])
            free(to[k]);
        free((void *)(uintptr_t)from[k]);
    }
    free(right);
}
