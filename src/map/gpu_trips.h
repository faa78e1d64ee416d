// SPDX-License-Identifier: Apache-2.0
// Trips of a stencil, several of which are one launch.
#ifndef MAP_GPU_TRIPS_H
#define MAP_GPU_TRIPS_H

#include "map/gpu.h"

#define MAP_TRIPS_LANES 4 // columns of a thread
#define MAP_TRIPS_HALO 8  // columns of a warp on either side that it does not store
#define MAP_TRIPS_REACH 2 // of a neighbour, at most
struct map_neighbour {
    bool is;
    int row, column;
};
struct map_trips {
    const struct nest_statement *loop, *put;
    nest_id row, column; // axes
    int64_t height, width, reach;
    struct map_neighbour *at; // by value
    bool *is_needed;          // by statement
};
bool map_trips_find(const struct map_gpu *m, nest_id loop, struct map_trips *out);
bool map_trips_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
// By nest: trips of the loop that it is all of, whose two arrays are swapped; 1: there is no such loop.
const int64_t *map_trips_of(struct arena *arena, const struct nest_program *p);

#endif
