// SPDX-License-Identifier: Apache-2.0
// Which values of a function over a mesh of devices go in pieces (partition.c).
#ifndef PASSES_MESH_PARTITION_FLOW_H
#define PASSES_MESH_PARTITION_FLOW_H

#include "passes/mesh/partition_axes.h"
#include "passes/transform.h"

// A loop or branch.  Where nothing splits a value it is whole.
struct loop {
    bool has_pieces; // none: it is done whole
    bool exchanges;  // besides what its shard_maps do
    int n_bodies;
    uint32_t *body;                 // opened
    struct ir_split *param, *given; // by parameter and result of the bodies that have them
    struct ir_split *in, *out;      // by operand and result
};

struct known_loop {
    const struct ir_node *n;
    const struct ir_split *given; // by operand: how it is given outside
    struct loop loop;
};

struct partition {
    struct ir_module *m;
    struct ir_shard mesh; // the grid of all shard_maps
    VEC(struct known_loop *) loops;
};

// By value of a graph: what its readers want of it, and how it is given.
enum wish { NOTHING, PIECES, WHOLE };
struct flow {
    enum wish *wish;
    struct ir_split *split; // of PIECES
    struct ir_split *given;
    bool exchanges;             // besides what shard_maps do
    const struct loop **loop;   // by node that is a loop or branch with pieces
    const struct ir_split **in; // of these and of shard_maps: by operand
    struct parts *nodes;
    const struct part **part; // by node that is done on pieces of its operands, or NULL
};

// f with the bodies of calls that have shard_maps in their place: values in pieces go through.
jot_status partition_open_calls(struct ir_module *m, uint32_t *f);
// Parameters are given as `given` says, NULL: whole.
jot_status partition_find_flow(struct partition *p, const struct ir_graph *g,
                               const struct ir_split *given, struct flow *out);
// A loop or branch whose operands are given so.
jot_status partition_find_loop(struct partition *p, const struct ir_graph *g,
                               const struct ir_node *n, const struct ir_split *given,
                               const struct loop **out);

bool partition_is_split(const struct partition *p, struct ir_split split);

#endif
