// SPDX-License-Identifier: Apache-2.0
// The mapping to a GPU: who has the elements of each loop, as levels in the nest's text (nest/nest.h).
//
// A point of the outermost parallel loop is done by one thread, or by a group of threads.  In a
// group all threads walk the statements together: scalar work is done by each of them, a map is
// shared out, a fold is a common one, and one thread puts what is put outside of maps.  Inside
// of what is shared out each thread works alone.
#ifndef MAP_GPU_H
#define MAP_GPU_H

#include "ir/cost.h"
#include "map/map.h"

#define GPU_WARP COST_WARP
#define MAP_WARPGROUP (4 * GPU_WARP) // threads that multiply from shared memory together
#define GPU_BLOCK COST_BLOCK_THREADS // unless there is a reason for another number
#define MAP_ALIGNMENT 16 // bytes: of arrays, constants and temporaries; no access is wider
#define GPU_MULTIPROCESSORS COST_MULTIPROCESSORS // that a kernel had better keep busy

// A nest on a GPU, and of what is asked about it, how threads go about it.
struct map_gpu {
    const struct nest *nest;
    struct arena *arena;
    struct map_uses *uses;
    bool is_phase;            // of a loop, whose kernel calls the function
    const bool *is_read_only; // by buffer: nothing writes it while the kernel runs
    const bool *is_aligned;   // by buffer: to 16 bytes
    int64_t code;             // the most that a loop may become
    int64_t trips;            // of the loop that the nest is all of, else 1
    bool has_warpgroups;      // the GPU has them
    bool is_group;            // threads of a group do it
    bool is_together;         // in step with one another
    bool has_columns;         // threads beside one another have points beside one another
    bool is_ahead;            // a warp more does part of it
    bool is_network;          // locals of its points are near a thread
};

// The same asked of the threads of a group, and of columns.
static inline struct map_gpu map_gpu_of_group(const struct map_gpu *m)
{
    struct map_gpu x = *m;
    x.is_group = x.is_together = true;
    x.has_columns = false;
    return x;
}
static inline struct map_gpu map_gpu_of_columns(const struct map_gpu *m)
{
    struct map_gpu x = *m;
    x.is_group = x.is_together = false;
    x.has_columns = true;
    return x;
}

// Writes who does what, in place of what has been written.
void map_to_gpu(const struct map_gpu *m, struct nest *n);
// Nanoseconds of a nest that is mapped (gpu_price.c).
int64_t map_gpu_price(const struct nest *n);

static inline bool map_is_read_only(const struct map_gpu *m, nest_id buffer)
{
    return m->is_read_only[buffer];
}
// Whether the body of the kernel reads before its loop.
bool map_reads_before(const struct nest *n);

#endif
