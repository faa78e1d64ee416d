// SPDX-License-Identifier: Apache-2.0
#include "job_team.h"

#include "base/arena.h"
#include "job_collectives.h"
#include "runtime/array.h"

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

// y = the collective of x over one axis of a mesh of two, so many times.
struct plan {
    struct rt_plan plan;
    struct rt_argument in, out;
    struct rt_buffer buffers[2];
    uint32_t operands[4];
    struct rt_step steps[4];
    int64_t params[7];
};

static const char plan_text[] = "sums\0the sum at here.c:3";

static const struct rt_plan *make_plan(struct plan *p, int64_t rows, int64_t columns, int axis,
                                       int64_t trips)
{
    uint64_t bytes = ROW * sizeof(float);
    *p = (struct plan){
        .in = {.bytes = bytes, .donated = -1},
        .out = {.bytes = bytes, .donated = -1},
        .buffers = {{.place = RT_PLACE_INPUT, .bytes = bytes},
                    {.place = RT_PLACE_OUTPUT, .bytes = bytes}},
        .operands = {1, 0, 1, 1},
        .steps = {{.kind = RT_STEP_COPY, .operand_count = 2, .grain = 1},
                  {.kind = RT_STEP_LOOP, .total = trips, .target = 4},
                  {.kind = RT_STEP_COLLECTIVE,
                   .name = 5,
                   .operand_first = 2,
                   .operand_count = 2,
                   .param_first = 2,
                   .param_count = 5},
                  {.kind = RT_STEP_NEXT, .total = trips, .target = 2}},
        .params = {rows, columns, COLLECTIVE_ALL_REDUCE, COLLECTIVE_SUM, JOT_F32, 1, axis}};
    p->plan = (struct rt_plan){.input_count = 1,
                               .output_count = 1,
                               .buffer_count = 2,
                               .operand_count = 4,
                               .step_count = 4,
                               .param_count = 7,
                               .text_bytes = sizeof plan_text,
                               .loop_count = 1,
                               .mesh_rank = 2,
                               .inputs = &p->in,
                               .outputs = &p->out,
                               .buffers = p->buffers,
                               .operands = p->operands,
                               .params = p->params,
                               .steps = p->steps,
                               .text = plan_text};
    return &p->plan;
}

jot_status load_team(const jot_mesh *m, int axis, int64_t trips, struct rt_team **out)
{
    struct plan p;
    struct arena *arena = arena_create();
    jot_device *devices[2 * MOST];
    const void *bytes;
    size_t size, n = jot_mesh_size(m);
    for (size_t i = 0; i < n; i++)
        devices[i] = jot_mesh_device(m, i);
    rt_plan_write(
        make_plan(&p, jot_mesh_axis_size(m, "x"), jot_mesh_axis_size(m, "y"), axis, trips),
        arena, &bytes, &size);
    jot_status status = rt_team_load(devices, (uint32_t)n, NULL, 0, bytes, size, NULL, 0, out);
    arena_release(arena);
    return status;
}
