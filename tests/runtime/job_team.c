// SPDX-License-Identifier: Apache-2.0
#include "job_team.h"

#include "base/arena.h"
#include "job_collectives.h"
#include "runtime/array.h"
#include "team_plan.h"

#include <check.h>
#include <string.h>

jot_mesh *mesh_of(size_t n_axes, const jot_mesh_axis *axes)
{
    jot_mesh *mesh = jot_mesh_of_kind(JOT_HOST, n_axes, axes);
    ck_assert_msg(mesh != NULL, "%s", jot_error_message());
    return mesh;
}

// Rows of numbers by device, as one array.
jot_array *make_rows(size_t n)
{
    float x[64 * ROW];
    fill(JOT_F32, 3, n * ROW, x);
    return jot_array_copy(JOT_F32, x, (const int64_t[]){(int64_t)n * ROW, JOT_END});
}

jot_status load_team(const jot_mesh *m, int axis, int64_t trips, struct rt_team **out)
{
    struct team_plan p;
    struct arena *arena = arena_create();
    jot_device *devices[2 * MOST];
    const void *bytes;
    size_t size, n = jot_mesh_size(m);
    for (size_t i = 0; i < n; i++)
        devices[i] = jot_mesh_device(m, i);
    // y = x, so many times replaced by its sum over the axis.
    plan_open(&p, 2, (int64_t[]){jot_mesh_axis_size(m, "x"), jot_mesh_axis_size(m, "y")}, ROW);
    plan_copy(&p, 1, 0);
    plan_loop(&p, trips);
    plan_sum(&p, 1, 1, COLLECTIVE_SUM, axis);
    plan_next(&p);
    rt_plan_write(&p.plan, arena, &bytes, &size);
    jot_status status =
        rt_team_load(devices, (uint32_t)n, NULL, NULL, 0, bytes, size, NULL, 0, out);
    arena_release(arena);
    return status;
}
