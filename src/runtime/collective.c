// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective.h"

#include "base/dtype.h"
#include "runtime/host/combine.h"
#include "runtime/host/pool.h"

#include <limits.h>
#include <string.h>

// What a thread does at once, in bytes that one device writes, and what is worth a thread.
#define PART ((uint64_t)64 << 10)
// From how many bytes on that all devices write caches do not hold them.
#define LARGE ((uint64_t)16 << 20)

struct job {
    const struct collective *c;
    const struct rt_blocks *groups;
    uint64_t to_bytes, from_bytes;
    uint64_t parts; // of each group
    bool is_large;
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Bytes begin .. end - 1 of what is written, which are those from skip on of what is read.
static void combine(const struct job *j, const struct rt_blocks *b, uint64_t begin,
                    uint64_t end, uint64_t skip, size_t n_to, void *const *to)
{
    uint64_t size = dtype_get(j->c->dtype)->bytes, first = skip / size;
    for (uint64_t at = begin / size; at < end / size; at += COMBINE_TILE)
        host_combine(j->c->combiner, j->c->dtype, (size_t)j->c->size, b->from, first + at,
                     first + least(at + COMBINE_TILE, end / size), n_to, to, at, j->is_large);
}

// Bytes begin .. end - 1 of what is written by one device, of all of them.
static void write_part(const struct job *j, const struct rt_blocks *b, uint64_t begin,
                       uint64_t end)
{
    size_t n = (size_t)j->c->size;
    uint64_t each = j->c->kind == COLLECTIVE_ALL_TO_ALL ? j->to_bytes / n : j->from_bytes;
    for (size_t position = 0; position < n; position++) {
        char *to = b->to[position];
        switch (j->c->kind) {
        case COLLECTIVE_ALL_REDUCE: // all at once
            combine(j, b, begin, end, 0, n, b->to);
            return;
        case COLLECTIVE_REDUCE_SCATTER:
            combine(j, b, begin, end, position * j->to_bytes, 1, &b->to[position]);
            break;
        case COLLECTIVE_ALL_GATHER:
        case COLLECTIVE_ALL_TO_ALL:
            for (uint64_t at = begin, next; at < end; at = next) {
                size_t source = (size_t)(at / each);
                next = least((source + 1) * each, end);
                uint64_t from = at - source * each +
                                (j->c->kind == COLLECTIVE_ALL_TO_ALL ? position * each : 0);
                memcpy(to + at, (const char *)b->from[source] + from, next - at);
            }
            break;
        case COLLECTIVE_PERMUTE:
            if (j->c->sources[position] < 0)
                memset(to + begin, 0, end - begin);
            else
                memcpy(to + begin, (const char *)b->from[j->c->sources[position]] + begin,
                       end - begin);
            break;
        case COLLECTIVE_KIND_COUNT:
            break;
        }
    }
}

static void do_part(void *ctx, int64_t i, int worker)
{
    const struct job *j = ctx;
    uint64_t begin = (uint64_t)i % j->parts * PART;
    (void)worker;
    write_part(j, &j->groups[(uint64_t)i / j->parts], begin, least(begin + PART, j->to_bytes));
}

void rt_collective_run(const struct collective *c, size_t n_groups,
                       const struct rt_blocks *groups, uint64_t to_bytes, uint64_t from_bytes)
{
    uint64_t written = to_bytes * (uint64_t)c->size * n_groups;
    struct job j = {
        c, groups, to_bytes, from_bytes, (to_bytes + PART - 1) / PART, written >= LARGE};
    int64_t parts = (int64_t)(n_groups * j.parts);
    if (to_bytes == 0)
        return;
    if (written > PART)
        rt_pool_run(rt_pool_of_process(), INT_MAX, do_part, &j, parts);
    else
        for (int64_t i = 0; i < parts; i++)
            do_part(&j, i, 0);
}
