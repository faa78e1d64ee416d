// SPDX-License-Identifier: Apache-2.0
// Devices of all processes, and a program of them.
#ifndef RUNTIME_JOB_TEAM_H
#define RUNTIME_JOB_TEAM_H

#include "job.h"
#include "runtime/mesh.h"
#include "runtime/team.h"

#define PARTS 2 // of the host, in each process
#define ROW 5   // elements of a piece

jot_mesh *mesh_of(size_t n_axes, const jot_mesh_axis *axes);
// Rows of numbers by device, as one array.
jot_array *make_rows(size_t n);
// The program y = the collective of x over one axis of a mesh of two, so many times.
jot_status load_team(const jot_mesh *m, int axis, int64_t trips, struct rt_team **out);

#endif
