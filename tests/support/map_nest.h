// SPDX-License-Identifier: Apache-2.0
// The mapping of a nest by itself.
#ifndef SUPPORT_MAP_NEST_H
#define SUPPORT_MAP_NEST_H

#include "map/gpu_verify.h"

#include <string.h>

// Nothing writes what it reads; is_phase: it is a function of a kernel that is a loop; trips: of the loop that it is
// all of, 1 for none.
static inline struct map_gpu map_nest_asked(struct arena *a, const struct nest *n,
                                            bool is_phase, int64_t trips)
{
    bool *is_read_only = arena_array(a, bool, n->buffers.count + 1);
    bool *is_aligned = arena_array(a, bool, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        is_read_only[i] = n->buffers.at[i].role == NEST_IN;
        is_aligned[i] = true;
    }
    return (struct map_gpu){.nest = n,
                            .arena = a,
                            .uses = arena_new(a, struct map_uses),
                            .is_phase = is_phase,
                            .is_read_only = is_read_only,
                            .is_aligned = is_aligned,
                            .trips = trips,
                            .code = COST_CODE};
}

static inline void map_nest_of_loop(struct arena *a, struct nest *n, bool is_phase,
                                    int64_t trips)
{
    struct map_gpu m = map_nest_asked(a, n, is_phase, trips);
    map_to_gpu(&m, n);
}

// What is wrong with a mapped nest goes to the report, which may be NULL.
static inline int map_nest_verify(struct arena *a, const struct nest *n, bool is_phase,
                                  int64_t trips, struct strbuf *report)
{
    struct map_gpu m = map_nest_asked(a, n, is_phase, trips);
    return map_gpu_verify(&m, report);
}

static inline void map_nest_to_gpu(struct arena *a, struct nest *n, bool is_phase)
{
    map_nest_of_loop(a, n, is_phase, 1);
}

// The same as if loops were so many times as long, for threads are many: levels hold for fewer elements as well, but for
// parts that do not come out even.
static inline void map_nest_as_if_longer(struct arena *a, struct nest *n, uint64_t random)
{
    static const int64_t longer[] = {1, 1, 64, 4096};
    const int64_t times[] = {longer[random % 4],
                             longer[random / 4 % 4]}; // of points, of the rest
    bool *is_longer = arena_array(a, bool, n->axes.count + 1);
    uint32_t count = n->axes.count;
    struct nest_axis *old = arena_copy(a, n->axes.at, count * sizeof *old), *longer_axes;
    nest_for_all (s, n) {
        int64_t by = times[s->kind != NEST_PAR];
        for (uint32_t k = 0; k < s->n_axes && s->kind != NEST_CONTRACT; k++) {
            if (!is_longer[s->axes[k]] && (k == 0 || by < 4096))
                n->axes.at[s->axes[k]].extent *= by;
            is_longer[s->axes[k]] = true;
        }
    }
    longer_axes = arena_copy(a, n->axes.at, count * sizeof *longer_axes);
    map_nest_to_gpu(a, n, random / 16 % 4 == 0);
    for (uint32_t i = 0; i < count; i++) {
        struct nest_axis *x = &n->axes.at[i];
        // Axes may have been swapped (map/gpu_order.c).
        uint32_t was = 0;
        while (strcmp(longer_axes[was].name, x->name) || longer_axes[was].extent != x->extent)
            was++;
        x->extent = old[was].extent;
        x->rows = x->rows && x->extent % x->rows ? 0 : x->rows;
        x->segment = x->segment && x->extent % x->segment ? 1 : x->segment;
    }
}

#endif
