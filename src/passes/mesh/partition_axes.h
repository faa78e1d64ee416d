// SPDX-License-Identifier: Apache-2.0
// Which nodes a device can do on its pieces alone (partition.c).
#ifndef PASSES_MESH_PARTITION_AXES_H
#define PASSES_MESH_PARTITION_AXES_H

#include "passes/mesh/partition.h"

// A node as each device does it: how operands and results are split.  What its fold has of axes that
// split the operand is then combined over them, by a collective that gives the same bits in any order.
struct part {
    struct ir_split *in, *out;
    enum ir_op collective;
    int n_over;
    int64_t over[IR_MAX_AXES];
};

// The nodes of a graph over a mesh.
struct parts;
struct parts *partition_look(struct ir_module *m, const struct ir_shard *mesh,
                             const struct ir_graph *g);
// The part of a node whose operands, or results, are split so as far as it allows; NULL where it allows none
// of it.  in and out may be NULL; the larger operands go first.
const struct part *partition_part(struct parts *p, const struct ir_node *n,
                                  const struct ir_split *in, const struct ir_split *out);
// The node over pieces of its operands.
ir_id partition_build(struct ir_builder *b, const struct ir_shard *mesh,
                      const struct ir_graph *g, const struct ir_node *n,
                      const struct part *part, const ir_id *in);
// The pieces x of a value as other pieces of it (partition_move.c).
ir_id partition_move(struct ir_builder *b, const struct ir_shard *mesh, ir_id x,
                     struct ir_split from, struct ir_split to);

#endif
