// SPDX-License-Identifier: Apache-2.0
// What a kernel moves between memory and the nearest caches of a processor: bytes of each buffer, once for each turn of
// a loop whose elements do not fit the cache of a core, at the speed of the caches that hold all of the kernel's buffers.
// What the nearest cache holds is free: operations wait for it (price.c).
#include "ir/cost.h"
#include "map/map.h"

#define MOST_AXES 64

struct walk {
    const struct nest *n;
    nest_id around[MOST_AXES]; // axes of the loops around, outermost first
    uint32_t depth;
    double moved[2]; // of the buffer that is asked about: by loads, by puts
    nest_id buffer;
};

// Bytes that an access moves in all: each line once while it is in the cache.
static double moved_by(const struct walk *w, const struct nest_statement *s)
{
    const struct nest_buffer *b = &w->n->buffers.at[s->buffer];
    double element = (double)dtype_get(b->dtype)->bytes, all = element * (double)b->count;
    bool is_anywhere = nest_index_has_values(&s->index);
    double step = COST_LINE_BYTES; // bytes between neighbours
    for (uint32_t i = 0; i < w->depth; i++) {
        double by = element * (double)nest_index_factor(&s->index, w->around[i]);
        by = by < 0 ? -by : by;
        step = by > 0 && by < step && w->n->axes.at[w->around[i]].extent > 1 ? by : step;
    }
    double held = step > element || is_anywhere ? step : element, moved = held;
    for (uint32_t i = w->depth; i-- > 0;) {
        double extent = (double)w->n->axes.at[w->around[i]].extent;
        bool is_along = is_anywhere || nest_index_factor(&s->index, w->around[i]);
        if (is_along)
            held *= extent;
        if (is_along || held > COST_LARGE_BYTES)
            moved *= extent;
        held = held < all ? held : all;
        if (all <= COST_LARGE_BYTES)
            moved = moved < all ? moved : all;
    }
    return moved;
}

static void add_block(struct walk *w, uint32_t block)
{
    nest_for_each (s, w->n, block) {
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && s->buffer == w->buffer) {
            double *moved = &w->moved[s->kind == NEST_PUT], own = moved_by(w, s);
            *moved = own > *moved ? own : *moved;
        }
        uint32_t depth = w->depth;
        for (uint32_t i = 0; i < s->n_axes && w->depth < MOST_AXES; i++)
            w->around[w->depth++] = s->axes[i];
        add_block(w, s->body);
        add_block(w, s->other);
        w->depth = depth;
    }
}

double map_traffic(const struct nest *n)
{
    double all = 0, moved = 0;
    for (nest_id i = 0; i < n->buffers.count; i++) {
        const struct nest_buffer *b = &n->buffers.at[i];
        if (b->role == NEST_LOCAL)
            continue;
        struct walk w = {.n = n, .buffer = i};
        add_block(&w, 0);
        all += (double)b->count * (double)dtype_get(b->dtype)->bytes;
        moved += w.moved[0] + w.moved[1];
    }
    if (all <= COST_NEAR_BYTES)
        return 0;
    return moved * (all <= COST_LARGE_BYTES    ? COST_BYTE_OF_CORE
                    : all <= COST_CACHES_BYTES ? COST_BYTE_OF_ALL
                                               : COST_BYTE_OF_MEMORY);
}
