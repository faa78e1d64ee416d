// SPDX-License-Identifier: Apache-2.0
// What the devices of a mesh do together, as steps of programs say it.
//
// A mesh is a grid of devices, row-major, up to COLLECTIVE_MESH_RANK axes.  A collective over some of
// its axes is done in groups: the devices that have the same positions along all other axes.  The position
// of a device in its group counts along those axes, the first one slowest.  Each device of a group of
// n has a block of memory to read and one to write:
//
//     ALL_REDUCE      k elements -> k      the blocks combined, in the order of their positions
//     REDUCE_SCATTER  n * k -> k           part `position` of that
//     ALL_GATHER      k -> n * k           all blocks, one after the other
//     ALL_TO_ALL      n * k -> n * k       part j is part `position` of the block of j
//     PERMUTE         k -> k               the block of sources[position]; zeros where that is -1
//
// Only ALL_REDUCE may write where it reads.
#ifndef BASE_COLLECTIVE_H
#define BASE_COLLECTIVE_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define COLLECTIVE_MESH_RANK 8
#define COLLECTIVE_MOST 65536 // devices of a mesh

enum collective_kind {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    COLLECTIVE_KIND_COUNT,
};

// MAX and MIN of floats are NaN where one of them is, of bool OR and AND; those are of bits.
enum collective_combiner {
    COLLECTIVE_SUM,
    COLLECTIVE_PRODUCT,
    COLLECTIVE_MAX,
    COLLECTIVE_MIN,
    COLLECTIVE_AND,
    COLLECTIVE_OR,
    COLLECTIVE_COMBINER_COUNT,
};

struct collective {
    enum collective_kind kind;
    enum collective_combiner combiner; // of those that reduce
    jot_dtype dtype;
    uint32_t n_axes;
    const int64_t *axes;
    const int64_t *sources; // PERMUTE: by position
    int64_t size;           // of a group
};

// The params of a step: kind, combiner, dtype, how many axes, the axes, and of PERMUTE the sources.
// Gives NULL, or what is wrong with them.
const char *collective_read(const int64_t *params, uint32_t n, uint32_t mesh_rank,
                            const int64_t *mesh, struct collective *out);
// Whether blocks of so many bytes are what it writes and reads.
bool collective_fits(const struct collective *c, uint64_t to_bytes, uint64_t from_bytes);

// The bytes that go from one device to another.  Up to COLLECTIVE_SMALL GPUs do it by kernels of jot's own
// where they get at the memory of each other: NCCL is faster above.
#define COLLECTIVE_SMALL (256 << 10)
uint64_t collective_part(const struct collective *c, uint64_t to_bytes, uint64_t from_bytes);

static inline bool collective_reduces(const struct collective *c)
{
    return c->kind == COLLECTIVE_ALL_REDUCE || c->kind == COLLECTIVE_REDUCE_SCATTER;
}

// "all_reduce", "sum"
const char *collective_name(enum collective_kind kind);
const char *collective_combiner_name(enum collective_combiner combiner);

// How many devices a mesh of these sizes has; 0 when it is none.
int64_t collective_mesh_size(uint32_t mesh_rank, const int64_t *mesh);
// The device at `position` of the group of `device`; its own position is collective_position.
int64_t collective_member(const struct collective *c, uint32_t mesh_rank, const int64_t *mesh,
                          int64_t device, int64_t position);
int64_t collective_position(const struct collective *c, uint32_t mesh_rank, const int64_t *mesh,
                            int64_t device);

#endif
