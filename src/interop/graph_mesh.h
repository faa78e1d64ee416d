// SPDX-License-Identifier: Apache-2.0
// Meshes of a program, and what is said of them in text: how values are split, and who belongs together.
#ifndef INTEROP_GRAPH_MESH_H
#define INTEROP_GRAPH_MESH_H

#include "interop/to_graph.h"

#include "jot/parallel.h"

// An axis of a mesh as it is written, along which devices are so far apart.
struct graph_mesh_name {
    jot_mesh_axis axis;
    int64_t step;
};

// Meshes of the same devices are one whose axes, or parts of them, all of theirs are made of: [2,4] and [4,2] are
// [2,2,2], and [2,3] and [3,2] are [6].
struct graph_mesh {
    size_t n, n_names;
    jot_mesh_axis axes[IR_MAX_AXES];
    struct graph_mesh_name names[IR_MAX_AXES];
    const int64_t *devices; // numbers of its devices along the axes, or NULL: in order
};

// An axis of a mesh, or a part of it: of a device that is number k along the axis, k / step % size.
struct graph_mesh_part {
    int axis;
    int64_t step, size;
};

// How a value is split by some axes of a mesh.
struct graph_sharding {
    int rank;
    int n[IR_MAX_RANK]; // by dimension: the parts that split it, the slowest first
    const struct graph_mesh_part *parts[IR_MAX_RANK];
    uint16_t unreduced; // of these axes by their numbers: the value is a sum over them
};

// What is kept of an attribute that speaks of a mesh; "" of others.
const char *graph_mesh_text(const struct mlir_attr *a);
// The mesh at "@name" or "mesh<...>", and the text behind it; false where it has no axes.
bool graph_mesh_read(const struct graph_frame *frame, const char **at, struct graph_mesh *out);
// Whether all its axes are around the trace, as in a manual computation; out: their numbers there.
bool graph_mesh_around(const struct graph_mesh *m, int64_t *out);
// {"x", "y"} as a set of axes; false where one is no axis of the mesh, or they are parts of one.
bool graph_mesh_set(const struct graph_frame *frame, const struct graph_mesh *m,
                    const char *text, uint16_t *out);
// <@mesh, [{"x", "y":(1)2}, {?}], replicated={"z"}>, and the text behind it, of which axes that are not in the
// set are left out; false for anything else.
bool graph_sharding_read(const struct graph_frame *frame, const struct graph_mesh *m,
                         uint16_t axes, const char **at, struct graph_sharding *out);
// By how many devices dimension d is split.
int64_t graph_sharding_of(const struct graph_sharding *s, int d);

#endif
