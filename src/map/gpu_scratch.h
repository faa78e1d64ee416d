// SPDX-License-Identifier: Apache-2.0
// Bytes of the memory that threads of a mapped kernel have in common besides its buffers, of which each
// of these says how much some of it is, and where.
#ifndef MAP_GPU_SCRATCH_H
#define MAP_GPU_SCRATCH_H

#include "map/gpu.h"

struct map_row;

uint64_t map_scratch_of(const struct map_gpu *m, const struct nest *n);
// So many results of a combiner: their numbers, imaginary parts and positions.
uint64_t map_result_bytes(uint16_t op, jot_dtype dtype, uint64_t count, uint64_t out[3]);
// Chunks of a fold that blocks of threads share, each of so many blocks of it.
int64_t map_fold_chunks(const struct nest_statement *fold, const struct map_row *r,
                        int64_t *out_size);
// How threads share the fold of points with columns: units of a block, units of a thread, parts.
struct map_parts {
    int64_t units, span, parts;
};
struct map_parts map_parts_of(const struct nest *n, const struct nest_statement *fold,
                              int64_t groups, unsigned group);
// A running fold: whether it is in one pass, and the words of that; whether warps have whole points; elements of a
// chunk of those of so many points.
#define MAP_SCAN_WINDOWS 8 // of a warp, which its threads keep
#define MAP_SCAN_LEVELS 3  // of words: of tiles, of groups of 32 of them, and of 32 groups
bool map_scan_is_once(const struct nest *n, bool is_phase);
uint64_t map_scan_words(const struct nest *n, const struct nest_statement *scan,
                        int64_t out[MAP_SCAN_LEVELS]);
bool map_scans_are_whole(const struct nest *n);
int64_t map_scan_chunk(int64_t length, int64_t points, unsigned columns);
// Of attention's gradient: statistics of so many queries, then rows of dq.
#define MAP_GRADIENT_QUERIES 128 // of a block

#endif
