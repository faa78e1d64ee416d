// SPDX-License-Identifier: Apache-2.0
// Mapped nests of few elements, and numbers for them: what threads do of many is done of as many as a test has time for.
#ifndef SUPPORT_SMALL_NEST_H
#define SUPPORT_SMALL_NEST_H

#include "base/hash.h"
#include "nest/nest.h"

#include <string.h>

#define SMALL_POINTS 64   // of an axis
#define SMALL_TURNS 40000 // of other loops
#define SMALL_BUFFERS 16

static inline void small_axes(struct nest *n, int64_t points)
{
    nest_for_all (s, n)
        for (uint32_t k = 0; k < s->n_axes; k++) {
            struct nest_axis *a = &n->axes.at[s->axes[k]];
            int64_t most = s->kind == NEST_PAR ? points : SMALL_TURNS;
            most = a->rows ? a->extent : most;
            a->extent = a->extent < most ? a->extent : most;
        }
}

// One more than the largest index that an access has, of which all that is data is no more than the buffer.
static inline int64_t small_end(const struct nest *n, const struct nest_index *x, int64_t count)
{
    int64_t last = x->constant;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        if (t->is_value)
            return count;
        last += t->factor > 0 ? t->factor * (n->axes.at[t->id].extent - 1) : 0;
    }
    return last + 1;
}

static inline void small_buffers(struct nest *n)
{
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        struct nest_buffer *x = &n->buffers.at[b];
        int64_t end = 1;
        nest_for_all (s, n) {
            int64_t of[3] = {0};
            if (s->buffer == b && (s->kind == NEST_LOAD || s->kind == NEST_PUT))
                of[0] = small_end(n, &s->index, x->count);
            for (int k = 0; s->kind == NEST_CONTRACT && k < 2; k++)
                of[k] = s->source[k] == b ? small_end(n, &s->source_index[k], x->count) : 0;
            if (s->kind == NEST_CONTRACT && s->buffer == b)
                of[2] = small_end(n, &s->index, x->count);
            for (int k = 0; k < 3; k++)
                end = of[k] > end ? of[k] : end;
        }
        if (x->role != NEST_LOCAL && x->role != NEST_OUT)
            x->count = end;
    }
}

struct small_data {
    void *of[SMALL_BUFFERS];
};

// Of f32 and i32 some that are drawn, others zeros.
static inline struct small_data small_data_of(struct arena *arena, const struct nest *n,
                                              uint64_t seed)
{
    struct small_data d = {{NULL}};
    uint32_t given = 0;
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        const struct nest_buffer *x = &n->buffers.at[b];
        if (x->role == NEST_LOCAL)
            continue;
        uint32_t *words =
            arena_allocate(arena, (size_t)x->count * jot_dtype_size(x->dtype) + 8);
        for (int64_t i = 0; i < x->count; i++) {
            uint64_t bits = hash_mix((seed << 40) + (uint64_t)i * 977 + b);
            float f = (float)(int32_t)bits * 0x1p-31f;
            if (x->dtype == JOT_F32)
                memcpy(&words[i], &f, 4);
            else if (x->dtype == JOT_I32)
                words[i] = (uint32_t)(bits % 1003);
        }
        d.of[given++] = words;
    }
    return d;
}

#endif
