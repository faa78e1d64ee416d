// SPDX-License-Identifier: Apache-2.0
// Points that threads share.
// How a group walks a row of elements: as its fold does.  A team of threads has a block of the
// fold, a window of 64 elements at a time.
#ifndef MAP_GPU_GROUPS_H
#define MAP_GPU_GROUPS_H

#include "map/gpu.h"

struct map_row {
    int64_t length, block, blocks;
    unsigned lanes;  // neighbouring elements of a thread
    unsigned team;   // threads
    unsigned teams;  // in the group
    unsigned window; // elements: 64, or the next power of two of a short row
    unsigned parts;  // of a window that one thread has, `lanes` elements each
    bool is_exact;   // windows and blocks are full
};
struct map_row map_row_make(const struct map_gpu *m, const struct nest_statement *s,
                            unsigned group);
// Of so many lanes, or fewer.
struct map_row map_row_of(const struct nest *n, const struct nest_statement *s, unsigned group,
                          unsigned lanes);

bool map_is_loop(enum nest_kind kind);
// The longest loop in the block that threads can share, which decides how many they are; NEST_NONE for none.
nest_id map_longest_loop(const struct nest *n, uint32_t block);
// Whether it reads what it writes, which is for one thread at a time.
bool map_has_updates(const struct nest *n);
bool map_has_kind(const struct nest *n, enum nest_kind kind);
bool map_has_locals(const struct nest *n);
// Threads for the longest loop, at most so many; the row that it is, if it is a fold that they share.
struct map_group {
    unsigned block, group;
    struct map_row row;
};
struct map_group map_group_of(const struct map_gpu *m, nest_id widest, unsigned most);
// Whether a group is to do each point of the loop s; the threads for them.
bool map_groups_wanted(const struct map_gpu *m, const struct nest_statement *s);
void map_groups_choose(const struct map_gpu *m, struct nest *n, nest_id loop);
// The same for points, each of which has a long fold, that are so few that several threads share one: neighbouring
// ones of a block, 0 for none.
int64_t map_columns_of(const struct map_gpu *m, const struct nest_statement *s);
bool map_columns_choose(const struct map_gpu *m, struct nest *n, nest_id loop);

#endif
