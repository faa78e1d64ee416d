// SPDX-License-Identifier: Apache-2.0
// Updates that blocks of threads sort by counting.
#ifndef MAP_GPU_COUNTING_SORT_H
#define MAP_GPU_COUNTING_SORT_H

#include "map/gpu.h"

struct map_updates;

#define MAP_CHUNK 16384     // turns that a block of threads sorts
#define MAP_SORT_BLOCK 1024 // threads
#define MAP_MOST_COUNTED 16384
struct map_counting_sort {
    nest_id element, value; // of a turn; value: what the updates take of it, NEST_NONE: nothing
    jot_dtype dtype;        // of the value
    int64_t count, room;    // elements of a point; rounded up to what the threads count
    int64_t row;            // of a chunk: where elements begin, numbers of 16 bits
    int64_t chunks;         // of a point
};
// Whether a block of threads can count the updates of every element.
bool map_counting_sort_find(const struct map_gpu *m, const struct map_updates *u,
                            struct map_counting_sort *out);
// The only value that updates take of their turns, NEST_NONE for none (a JOT_BOOL); whether it is as simple as that.
bool map_value_find(const struct map_gpu *m, const struct map_updates *u, nest_id *out,
                    jot_dtype *out_dtype);
int64_t map_value_bytes(jot_dtype d);
// Whether the value is made in a turn.
bool map_is_in_turn(const struct nest *n, const struct map_updates *u, nest_id value);

#endif
