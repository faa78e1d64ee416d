// SPDX-License-Identifier: Apache-2.0
// A loop over time part of which is the same for all points.
#ifndef MAP_GPU_AHEAD_H
#define MAP_GPU_AHEAD_H

#include "map/gpu.h"

#define MAP_SLOTS 16 // of a trip
struct map_ahead {
    nest_id loop;
    const bool *varies; // by value: from thread to thread
    uint32_t n_slots;   // values of a trip that all threads take from shared memory
    nest_id slots[MAP_SLOTS];
    const bool *is_apart; // by statement: differs, but does not come from the trip before
    int64_t strip;        // trips that are done side by side as far as they are so
};
// That of the points of a loop; NULL: there is none.
struct map_ahead *map_ahead_find(const struct map_gpu *m, nest_id loop);
bool map_is_common(const struct map_ahead *c, const struct nest_statement *s);
unsigned
map_ahead_threads(int64_t points); // of a block that has points, of which there are so many
// Whether a loop over time carries numbers of two parts.
bool map_carries_complex(const struct nest *n, const struct nest_statement *seq);

#endif
