// SPDX-License-Identifier: Apache-2.0
// Loops that blocks of threads share.
#ifndef MAP_GPU_SHARED_H
#define MAP_GPU_SHARED_H

#include "map/gpu.h"

#define MAP_TILE_TURNS 4 // in which the threads do the rows of a tile
struct map_tiles {
    const struct nest_statement *s;
    nest_id along,
        across;     // axes: what is put is contiguous along one, what is read is so across
    unsigned width; // points of a side of a tile
    bool are_two;   // a block of threads has a tile and its mirror image
};
bool map_tiles_find(const struct map_gpu *m, nest_id loop, struct map_tiles *out);
// Of tiles that are so wide: whether they make a square with an even number of them in a row, and both fit.
bool map_tiles_mirror(const struct nest *n, const struct map_tiles *t);
bool map_is_turned(const struct nest *n, const struct nest_statement *s, nest_id along,
                   nest_id across);
#define MAP_SHORTEST_CHUNK COST_LONG_SCAN // elements of a running fold that a warp has
// Which statement of a scan's body yields; whether threads can share it; such a scan that each point of a par has, or
// NEST_NONE; how many points threads have side by side where what the scans read and put lies along these, else 0.
uint32_t map_scan_yield(const struct nest *n, const struct nest_statement *scan);
bool map_is_long_scan(const struct nest *n, nest_id scan);
nest_id map_scan_of_points(const struct nest *n, nest_id loop);
unsigned map_scan_columns(const struct nest *n, nest_id loop, nest_id scan);
// The fold of a loop over few points, whose blocks are to be those of blocks of threads; NEST_NONE: there is none.
#define MAP_MOST_OF_ONE_BLOCK 32768 // elements of a fold
nest_id map_shared_fold(const struct map_gpu *m, nest_id loop);
// Whether the elements of the fold, one of each of so many points, are so dear that they are computed apart; bytes of
// so many of them: of one combine, of each value that it takes, and of all.
bool map_has_terms(const struct nest *n, nest_id fold, int64_t points);
uint64_t map_term_bytes(const struct nest_combine *c, int64_t count);
uint64_t map_terms_bytes(const struct nest_statement *fold, int64_t count);
// The one loop of the points that is no map for itself, or NEST_NONE; by value, what depends on it.
nest_id map_only_fold(const struct nest *n, const struct nest_statement *points, bool *depends);
// Whether blocks of threads had better have parts of the points' only fold; the threads for them.
bool map_parts_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
// Whether the loop is over the points of a network; whether all that is summed is of one floating-point type.
bool map_is_network(const struct nest *n, nest_id loop);
bool map_is_summed(const struct nest *n, nest_id loop, jot_dtype *out);

#endif
