// SPDX-License-Identifier: Apache-2.0
// Functions that are laid over a mesh of devices.
#ifndef PASSES_MESH_PARTITION_H
#define PASSES_MESH_PARTITION_H

#include "ir/shard.h"

// The program of one device: parameters and results as of the function, in pieces where the split says
// so and else whole, and one more parameter, i32[n_axes]: where the device is in the mesh.
struct pass_partition {
    uint32_t f;
    struct ir_shard shard;     // the mesh is its grid
    struct ir_split *in, *out; // by parameter and result of the function, in the module's arena
};

// The first shard_map of the graph, or of a body in it, or NULL.
const struct ir_node *pass_find_shard_map(const struct ir_graph *g);

// Of a function that has one.  After all differentiation and mapping.
jot_status pass_partition(struct ir_module *m, uint32_t f, struct pass_partition *out);

#endif
