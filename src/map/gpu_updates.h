// SPDX-License-Identifier: Apache-2.0
// A loop of updates.
#ifndef MAP_GPU_UPDATES_H
#define MAP_GPU_UPDATES_H

#include "map/gpu.h"

#define MAP_ORDER_BLOCK 1024 // threads that sort a chunk of turns
#define MAP_ORDER_TURNS 8    // that each of them has, at most
#define MAP_SLOT_BYTES 2
#define MAP_COPIES 4     // at most
#define MAP_TURN_LOOPS 8 // that are one sequence of turns, at most
struct map_updates {
    const struct nest_statement *par; // NULL for none
    // The loops over turns, the outer ones with nothing but plain statements beside the next one.
    const struct nest_statement *loops[MAP_TURN_LOOPS];
    uint32_t n_loops;
    const struct nest_statement *put, *load; // load: of what is updated, or NULL
    const struct nest_block *body;           // all statements of a turn
    struct nest_index row; // of the index, what turns change, as small as it goes
    bool *depends;         // by value: on what is loaded
    bool *is_window;       // by axis of par: turns and guards do not depend on it
    int64_t points, turns;
    int64_t chunk, chunks;   // turns of a chunk, chunks of a point
    int64_t window;          // elements of an update of a point, 1: the one
    int64_t bins;            // of elements, a power of two
    int64_t length, offsets; // of a chunk's list; words before the lists
    // The order has what updates take of their turns, one value at most, and else the numbers of the turns.  Points
    // that are no window and have the same turns are copies: the order has the values of all of them.
    bool is_carried, has_table; // has_table: a warp has the elements of its bin at hand
    int64_t copies;
    nest_id value;       // NEST_NONE: nothing
    jot_dtype dtype;     // of the value
    int64_t rows, slots; // of a point; of a bin, at most
    struct nest_index
        at; // where a row is, which has the number of the first value of the put's index
};
bool map_updates_find(const struct map_gpu *m, nest_id loop, struct map_updates *out);
bool map_is_of_turns(const struct map_updates *u, nest_id axis);

#endif
