// SPDX-License-Identifier: Apache-2.0
// Programs that all devices of a mesh run together: what they take and give in pieces.
#ifndef TRACE_NATIVE_MESH_H
#define TRACE_NATIVE_MESH_H

#include "passes/mesh/partition.h"
#include "runtime/mesh.h"
#include "runtime/team.h"

struct native_output {
    jot_dtype dtype;
    int rank;
    const int64_t *dims;
    int donated; // the input whose memory it may take, or -1
};

struct native_mesh {
    jot_mesh *mesh;
    struct rt_team *team;
    uint32_t n_in, n_out; // of the function; where the device is in the mesh is one more input
    struct rt_spec *in, *out;
    struct native_output *whole; // results
    size_t *starts; // by input and device: where its piece begins in the whole, or NOT_A_PART
    const struct native_output *pieces; // of results
};

// In the module's arena.
void native_mesh_describe(struct native_mesh *p, struct ir_module *m, uint32_t function,
                          const struct pass_partition *parts);
// The array as input i of the program, a new reference to it or in pieces.
jot_status native_mesh_bring(const struct native_mesh *p, uint32_t i, jot_array *a,
                             jot_array **out);
jot_status native_mesh_run(const struct native_mesh *p, bool calls_back, jot_array *const *in,
                           jot_array **out);

#endif
