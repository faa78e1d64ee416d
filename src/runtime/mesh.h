// SPDX-License-Identifier: Apache-2.0
// Meshes of devices, and how arrays are split over them.
#ifndef RUNTIME_MESH_H
#define RUNTIME_MESH_H

#include "base/collective.h"
#include "jot/parallel.h"
#include "runtime/array.h"

#define RT_MESH_RANK COLLECTIVE_MESH_RANK
#define RT_MESH_NAME 32 // bytes of the name of an axis

struct jot_mesh {
    jot_mesh *next; // of all
    uint32_t rank, count;
    int64_t dims[RT_MESH_RANK];
    char names[RT_MESH_RANK][RT_MESH_NAME];
    _Atomic(jot_array *) coordinates; // rt_mesh_coordinates
    jot_device *devices[];
};

// The first device that is of this process; where none is, the first.
jot_device *rt_mesh_device(const jot_mesh *mesh);
// Whether it has devices of other processes.
bool rt_mesh_is_across(const jot_mesh *mesh);
// Whether devices along the axis are of several processes.
bool rt_mesh_is_far_along(const jot_mesh *mesh, int axis);

// How an array is split: for each axis of the mesh the dimension that it splits, or -1, and its position among
// the axes that split the same one, the slowest first.
struct rt_spec {
    int8_t dim[RT_MESH_RANK], order[RT_MESH_RANK];
};

// The text of jot_array_shard for an array of this rank.
jot_status rt_spec_parse(const char *who, const jot_mesh *mesh, const char *text, int rank,
                         struct rt_spec *out);
// Its shortest text; cut off where there is no room, and like snprintf.
int rt_spec_text(const jot_mesh *mesh, const struct rt_spec *spec, char *buffer, size_t size);
bool rt_spec_equal(const jot_mesh *mesh, const struct rt_spec *a, const struct rt_spec *b);

// JOT_ERR_SHAPE with what would fit when a dimension cannot be divided.
jot_status rt_spec_check(const char *who, const jot_mesh *mesh, const struct rt_spec *spec,
                         jot_dtype dtype, int rank, const int64_t *dims);
// The piece of device i: its sizes, and where it is in the whole.
void rt_spec_piece(const jot_mesh *mesh, const struct rt_spec *spec, int rank,
                   const int64_t *dims, size_t i, int64_t *out_start, int64_t *out_dims);

// An array in pieces that says on each device where it is in the mesh: i32[rank] each, kept with the mesh;
// borrowed.  NULL with a message.
jot_array *rt_mesh_coordinates(jot_mesh *mesh);

// ---- arrays in pieces ----

// RT_ARRAY_SPLIT.  The header has no memory of its own.
struct rt_split_array {
    jot_array a;
    jot_mesh *mesh;
    struct rt_spec spec;
    _Atomic(void *) mirror; // the whole on the host; of the data pool
    jot_array *pieces[];    // by device; the text of the spec is behind them
};

static inline struct rt_split_array *rt_array_split(const jot_array *a)
{
    return a->flags & RT_ARRAY_SPLIT ? (struct rt_split_array *)(uintptr_t)a : NULL;
}

// Of pieces that fit; takes them, also when it fails.
jot_array *rt_array_from_pieces(jot_mesh *mesh, const struct rt_spec *spec, jot_dtype dtype,
                                int rank, const int64_t *dims, jot_array **pieces);
// Split that way: a new reference to the same, or a new array.  The sizes are known to be divided.
jot_array *rt_array_split_as(jot_array *a, jot_mesh *mesh, const struct rt_spec *spec);
// The whole in memory of the host, which has room for it.
jot_status rt_array_gather(const jot_array *a, void *to);
// The same of pieces on several processes, which all call it.
jot_status rt_array_collect(const jot_array *a, const char *what, void *to);
// The whole, on one device.
jot_array *rt_array_whole_on(jot_array *a, jot_device *device);
void rt_split_release(struct rt_split_array *s);
// The whole on the host, made once; NULL with a message.
const void *rt_split_mirror(struct rt_split_array *s);

#endif
