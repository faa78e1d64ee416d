// SPDX-License-Identifier: Apache-2.0
// Meshes of devices, and arrays in pieces on them.
//
//     jot_mesh *m = jot_mesh_of(JOT_HOST, {"i", 4});           // the first four parts of the host
//     jot_mesh *g = jot_mesh_of(JOT_CUDA, {"x", 2}, {"y", 0}); // all GPUs, in two rows
//     jot_array *s = jot_array_shard(a, m, "i");               // a quarter of the rows on each
//     jot_array_print(s);                                      // the whole
//
//         mesh x 2, y 4                    f32[4, 8] split as "x, y"
//
//           y 0     y 1     y 2     y 3
//         +-------+-------+-------+-------+
//     x 0 | dev 0 | dev 1 | dev 2 | dev 3 |    device 1 has rows 0 to 1, columns 2 to 3
//         +-------+-------+-------+-------+
//     x 1 | dev 4 | dev 5 | dev 6 | dev 7 |    split as "x": devices 4 to 7 have rows 2 to 3 each
//         +-------+-------+-------+-------+
//
// Thread-safety: every function here may be called from any thread.
#ifndef JOT_PARALLEL_H
#define JOT_PARALLEL_H

#include "jot/array.h"
#include "jot/transform.h"

JOT_BEGIN_C

// ---- meshes ----

// A grid of devices of one kind, row-major, with a name for each axis.  Meshes of the same devices, names
// and sizes are one.  They stay for the life of the process: there is nothing to release.
typedef struct jot_mesh jot_mesh;

// An axis of a mesh.
typedef struct jot_mesh_axis {
    const char *name; // a word, as a C variable's
    int64_t size;     // 0: as many as there are devices for, of one axis
} jot_mesh_axis;

// Of these devices, each once, as many as the sizes say; 1 to 8 axes.  NULL with a message.
JOT_API JOT_MUST_USE jot_mesh *jot_mesh_over(size_t n_devices, jot_device *const *devices,
                                             size_t n_axes, const jot_mesh_axis *axes);
// Of the first devices of a kind.
JOT_API JOT_MUST_USE jot_mesh *jot_mesh_of_kind(jot_device_kind kind, size_t n_axes,
                                                const jot_mesh_axis *axes);

// Of NULL: 0, NULL.
JOT_API size_t jot_mesh_size(const jot_mesh *mesh); // devices
JOT_API jot_device *jot_mesh_device(const jot_mesh *mesh, size_t i);
JOT_API int jot_mesh_rank(const jot_mesh *mesh); // axes
JOT_API const char *jot_mesh_axis_name(const jot_mesh *mesh, int axis);
JOT_API int64_t jot_mesh_axis_size(const jot_mesh *mesh, const char *name); // 0: no such axis

// The mesh as text: its axes, and the devices.  Writes at most `size` bytes with the final zero, and
// returns the length that the whole text has, like snprintf.
JOT_API int jot_mesh_format(const jot_mesh *mesh, char *buffer, size_t size);

// ---- arrays in pieces ----

// How an array is split is a text: for each dimension, with commas between them, the axes of the mesh that
// split it, with blanks between them, the one that changes slowest first.  A dimension that none splits is
// empty or _, and dimensions at the end may be left out:
//
//     "i"      rows over axis i        ", i"   columns        "x y"  rows over both axes of a grid
//     ""       the whole on every device, as NULL
//
// Along an axis that splits nothing all devices have the same piece.  Such copies travel to the first of
// them, and from there to the others.
//
// An array in pieces may be used wherever an array may: what reads elements has them all put together.
// jot_array_to makes it a whole one on one device.  It is on the first device of its mesh as far as
// jot_array_device says, and has no jot_array_device_data.

// The array in pieces, from a whole one on any device or from one that is split otherwise: a new
// reference to the same where nothing changes.  NULL with a message: JOT_ERR_ARGUMENT for a text that is
// none, JOT_ERR_SHAPE where a dimension cannot be divided.
JOT_API JOT_MUST_USE jot_array *jot_array_shard(jot_array *a, jot_mesh *mesh, const char *spec);

// An array of pieces that are there, one for each device of the mesh and on it, in the order of the
// mesh; the new array holds references.  Copies of a piece have the same elements: nobody compares them.
JOT_API JOT_MUST_USE jot_array *jot_array_from_shards(jot_mesh *mesh, const char *spec,
                                                      size_t n, jot_array *const *pieces);

// The mesh, and how it is split; NULL of a whole array.  Borrowed until the array is released.
JOT_API jot_mesh *jot_array_mesh(const jot_array *a);
JOT_API const char *jot_array_spec(const jot_array *a);
// The piece on device i of the mesh, a new reference; of a whole array piece 0 is all of it.  NULL with a
// message when there is none.
JOT_API JOT_MUST_USE jot_array *jot_array_shard_on(const jot_array *a, size_t i);
// Where that piece is in the whole: the index of its first element, in as many numbers as the array has
// dimensions.
JOT_API JOT_MUST_USE jot_status jot_array_shard_start(const jot_array *a, size_t i,
                                                      int64_t *start);

// ---- functions on meshes ----

// f as each device of the mesh runs it on its pieces.  in says how each argument is split (a tree: all its
// values), out how each value of the result is put together, both as above.  Inside of f the axes of the
// mesh have their names, and the collectives of jot/collective.h go over them; f sees pieces, which are as
// many times smaller as there are devices along the axes that split them.  Arguments that an axis does not
// split are the same along it.  A result that an axis does not split must be so too, as sums over it are:
// that is checked, and where it is not, an error names the result and the axis.  Where an axis splits
// a result that is the same along it, the pieces are that result once for each device.
//
//     static jot_value rows(jot_value a, jot_value b) { return jot_matmul(a, b); }
//     jot_shard_map(jot_fn(rows), mesh, JOT_SPLITS("i", ""), JOT_SPLITS("i"))    a split by rows, b whole
//
// It is a function like any other: it can be differentiated and mapped, and be a part of others.  All
// meshes of a program are one.  Each value that f uses from outside of it every device has whole.
JOT_API jot_function jot_shard_map_of(jot_function f, const jot_mesh *mesh, const char *where,
                                      size_t n_in, const char *const *in, size_t n_out,
                                      const char *const *out);
// f mapped over axes of its arguments as by jot_vmap_named, a device for each element: the mesh has one
// axis of as many devices, the first ones of the program's kind where it is NULL.
JOT_API jot_function jot_pmap_of(jot_function f, const jot_mesh *mesh, const char *name,
                                 const char *where, const int *in_axes, const int *out_axes);

JOT_END_C

#if !defined(JOT_PLAIN)
// jot_pmap(f, "i")  jot_pmap(f, "i", 0, JOT_NONE)  jot_pmap_on(mesh, f, "i")
#define jot_pmap(f, ...)                                                                       \
    jot_pmap_of(JOT_A_FUNCTION_("jot_pmap", f), NULL, JOT_FIRST_(__VA_ARGS__, 0), JOT_HERE,    \
                JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END)), NULL)
#define jot_pmap_on(mesh, f, ...)                                                              \
    jot_pmap_of(JOT_A_FUNCTION_("jot_pmap_on", f), mesh, JOT_FIRST_(__VA_ARGS__, 0), JOT_HERE, \
                JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END)), NULL)
#if !defined(__cplusplus)
#define JOT_SPLITS(...)                                                                        \
    sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), (const char *const[])        \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }
#define jot_shard_map(f, mesh, ...)                                                            \
    jot_shard_map_of(JOT_A_FUNCTION_("jot_shard_map", f), mesh, JOT_HERE, __VA_ARGS__)
#endif
#endif

// jot_mesh_of(JOT_CUDA, {"x", 2}, {"y", 4})
#if !defined(__cplusplus)
#define jot_mesh_of(kind, ...)                                                                 \
    jot_mesh_of_kind(kind, sizeof((jot_mesh_axis[]){__VA_ARGS__}) / sizeof(jot_mesh_axis),     \
                     (const jot_mesh_axis[]){__VA_ARGS__})
#endif

#endif
