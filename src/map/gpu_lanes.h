// SPDX-License-Identifier: Apache-2.0
// What a thread has of a loop; neighbouring elements as its levels say.
#ifndef MAP_GPU_LANES_H
#define MAP_GPU_LANES_H

#include "map/gpu.h"

struct map_row;

static inline unsigned map_vector(const struct nest *n, const struct nest_statement *loop)
{
    unsigned vector = n->axes.at[loop->axes[loop->n_axes - 1]].vector;
    return vector ? vector : 1;
}
struct map_points {
    const struct nest_statement *s;
    nest_id axis; // of the lanes: neighbouring points; NEST_NONE: none
    unsigned lanes;
    nest_id row_axis; // along which a thread has so many vectors, as far apart as there can be
    int64_t rows;
    int64_t count; // of threads' vectors, or rows of them
};
struct map_points map_points_of(const struct nest *n, nest_id loop); // as its levels say
struct map_points map_points_make(const struct map_gpu *m, nest_id loop);
// Several rows for a thread where they share what they read.
void map_points_widen(const struct map_gpu *m, struct map_points *p);
void map_points_write(struct nest *n, const struct map_points *p);
// Of a loop that a group's threads share: its turns that are written out, all of them, or some that are read at once.
void map_turns_choose(struct nest *n, nest_id loop);
// Whether what the loop does of neighbouring elements along an axis goes side by side; how many are worth doing so.
bool map_may_have_lanes(const struct map_gpu *m, const struct nest_statement *loop,
                        nest_id axis);
unsigned map_lanes(const struct map_gpu *m, const struct nest_statement *loop, nest_id axis);
// Operations of a turn of the block, inner loops once.
double map_turn_work(const struct nest *n, uint32_t block);
// Whether so many turns of a body are worth writing out.
bool map_is_short(const struct nest *n, uint32_t block, int64_t turns);
// Whether the lanes of a thread are so much work that one turn of them is enough.
bool map_is_long(const struct nest *n, const struct map_points *p);

// Whether the group does each vector that a thread has of the row, of so much work, in code of its own.
#define MAP_WINDOWS_WORK 300 // operations
#define MAP_ROUNDS 32        // results of blocks, all together, that a team writes out
bool map_fold_is_straight(const struct nest *n, nest_id fold, const struct map_row *r,
                          double work);
// Of a fold whose blocks teams of threads have: rounds of blocks that are written out, and windows of a block that are
// read at once; of several parts none are where they go part by part.
void map_fold_turns_choose(struct nest *n, nest_id fold);
// Whether a thread that does the fold alone has no loop over its elements, where it may have so much code.
bool map_fold_is_written_out(const struct nest *n, nest_id fold, int64_t most);

#endif
