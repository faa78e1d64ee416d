// SPDX-License-Identifier: Apache-2.0
// shard_map: a function that each device of a mesh runs on its pieces of the operands.
//
//     y = shard_map {functions=[body], grid=[i:2, j:4], splits=[...]} x
//
// The grid lists the axes of the mesh, which are named axes inside of the body and nowhere else.  Of
// each operand and result the attribute `splits` says how it is split: the count of the numbers that
// follow, then for each of its dimensions how many axes of the grid split it and which, by their
// positions in the grid, the one that changes slowest first.
//
// A parameter of the body is the piece: smaller by the axes that split it, over which it varies.  What a
// result varies over must split it: it is put together of pieces, and is one piece along other axes.
#ifndef IR_SHARD_H
#define IR_SHARD_H

#include "ir/build.h"

// How one value is split.
struct ir_split {
    int n;
    const int64_t *at;
};

struct ir_shard {
    uint32_t body;
    int n_axes;
    const int64_t *grid; // axes of the module
    int n_splits;        // operands, then results
    struct ir_split *split;
};

// False where the attributes are none of a shard_map.
bool ir_shard_read(struct ir_module *m, const struct ir_attrs *a, struct ir_shard *out);
struct ir_shard ir_shard_of(struct ir_module *m, const struct ir_node *n);
// The node over n_in operands; s->n_splits is theirs and those of the results.
ir_id ir_shard_map(struct ir_builder *b, const struct ir_shard *s, int n_in, const ir_id *in);

// The axes of the grid as a set; those that split a value.
uint16_t ir_grid_set(const struct ir_shard *s);
uint16_t ir_split_set(const struct ir_shard *s, struct ir_split split);
bool ir_splits_equal(struct ir_split a, struct ir_split b);
// Whether axis number `axis` of the grid splits it.
bool ir_split_has(struct ir_split split, int rank, int axis);
// By how many lanes dimension d is split; sets *out_n and *out to the axes.
int64_t ir_split_of(const struct ir_module *m, const struct ir_shard *s, struct ir_split split,
                    int d, int *out_n, const int64_t **out);
// The type of a piece, false where a dimension cannot be divided, which is *out_d; and of the whole.
bool ir_piece_type(struct ir_module *m, const struct ir_shard *s, struct ir_split split,
                   struct ir_type whole, struct ir_type *out, int *out_d);
struct ir_type ir_whole_type(struct ir_module *m, const struct ir_shard *s,
                             struct ir_split split, struct ir_type piece);
// The split with one more dimension in front, split by the axes of the grid in the set; of a value of
// the rank that no axis splits.
struct ir_split ir_split_stacked(struct ir_module *m, const struct ir_shard *s,
                                 struct ir_split split, uint16_t axes);
struct ir_split ir_split_none(struct ir_module *m, int rank);

#endif
