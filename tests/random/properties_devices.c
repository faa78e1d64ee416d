// SPDX-License-Identifier: Apache-2.0
// Programs for a mesh as its devices run them, each on its pieces, against the evaluator.
#include "random/checker.h"

#include "base/status.h"
#include "harness/isolate.h"
#include "harness/native.h"
#include "jot/device.h"
#include "passes/mesh/partition.h"
#include "schedule/schedule.h"
#include "support/opcases.h"
#include "support/run_native.h"

enum { SECONDS = 100, DEVICES = 6 };

struct team {
    struct checker *c;
    const struct ir_graph *g; // the whole
    struct pass_partition parts;
    int64_t mesh[COLLECTIVE_MESH_RANK];
    const struct ir_tensor *in;
    const void **inputs;
    void **outputs;
};

// Where device d is in the mesh.
static void find_coordinates(const struct team *t, uint32_t d, int32_t *coordinates)
{
    for (int i = t->parts.shard.n_axes; i-- > 0; d /= (uint32_t)t->mesh[i])
        coordinates[i] = (int32_t)(d % (uint32_t)t->mesh[i]);
}

// Copies the piece of device d out of the whole, or into it.
static void copy_piece(const struct team *t, struct ir_split split, struct ir_type whole,
                       void *all, void *piece, uint32_t d, bool is_out)
{
    struct ir_module *m = t->c->m;
    int32_t coordinates[COLLECTIVE_MESH_RANK];
    int64_t start[IR_MAX_RANK], at[IR_MAX_RANK] = {0};
    size_t size = jot_dtype_size(ir_dtype(whole));
    struct ir_type part;
    find_coordinates(t, d, coordinates);
    ir_piece_type(m, &t->parts.shard, split, whole, &part, &(int){0});
    const int64_t *dims = ir_dims(m, part), *all_dims = ir_dims(m, whole);
    for (int k = 0; k < whole.rank; k++) {
        int n;
        const int64_t *by;
        start[k] = 0;
        ir_split_of(m, &t->parts.shard, split, k, &n, &by);
        for (int i = 0; i < n; i++)
            start[k] = start[k] * t->mesh[by[i]] + coordinates[by[i]];
        start[k] *= dims[k];
    }
    for (int64_t i = 0; i < ir_count(m, part); i++) {
        int64_t offset = 0;
        for (int k = 0; k < whole.rank; k++)
            offset = offset * all_dims[k] + start[k] + at[k];
        char *in_all = (char *)all + (size_t)offset * size,
             *in_piece = (char *)piece + (size_t)i * size;
        memcpy(is_out ? in_all : in_piece, is_out ? in_piece : in_all, size);
        for (int k = whole.rank; k-- > 0 && ++at[k] == dims[k];)
            at[k] = 0;
    }
}

static size_t bytes_of_piece(const struct team *t, struct ir_split split, struct ir_type whole)
{
    struct ir_type part;
    ir_piece_type(t->c->m, &t->parts.shard, split, whole, &part, &(int){0});
    return check_bytes(t->c->m, part);
}

static void make_arguments(struct team *t)
{
    struct arena *arena = t->c->m->arena;
    uint32_t n_in = t->g->n_params + 1, n_out = t->g->outputs.count;
    t->inputs = arena_array(arena, const void *, DEVICES *n_in);
    t->outputs = arena_array(arena, void *, DEVICES *n_out + 1);
    for (uint32_t d = 0; d < DEVICES; d++) {
        int32_t *coordinates = arena_array(arena, int32_t, COLLECTIVE_MESH_RANK);
        find_coordinates(t, d, coordinates);
        for (uint32_t i = 0; i < t->g->n_params; i++) {
            struct ir_type whole = ir_type_of(t->g, i);
            void *piece = arena_allocate(arena, bytes_of_piece(t, t->parts.in[i], whole) + 64);
            copy_piece(t, t->parts.in[i], whole, t->in[i].data, piece, d, false);
            t->inputs[d * n_in + i] = piece;
        }
        t->inputs[d * n_in + n_in - 1] = coordinates;
        for (uint32_t i = 0; i < n_out; i++) {
            struct ir_type whole = ir_type_of(t->g, t->g->outputs.at[i]);
            size_t bytes = bytes_of_piece(t, t->parts.out[i], whole);
            t->outputs[d * n_out + i] = arena_allocate(arena, bytes + 64);
            memset(t->outputs[d * n_out + i], 0xa5, bytes);
        }
    }
}

static bool same_results(struct team *t, const struct ir_tensor *want)
{
    struct checker *c = t->c;
    uint32_t n_out = t->g->outputs.count;
    for (uint32_t i = 0; i < n_out; i++) {
        struct ir_tensor got = {
            want[i].type, arena_allocate(c->m->arena, check_bytes(c->m, want[i].type) + 64)};
        for (uint32_t d = 0; d < DEVICES; d++)
            copy_piece(t, t->parts.out[i], want[i].type, got.data, t->outputs[d * n_out + i], d,
                       true);
        double tolerance = c->kind & PROGRAM_DERIVABLE ? 1e-9 : 0;
        if (!native_close(t->g, t->in, i, got, want[i], tolerance, c->why)) {
            strbuf_printf(c->why, "  output %u of devices\n", i);
            return false;
        }
    }
    return true;
}

static bool run_together(struct team *t, const struct nest_program *p)
{
    struct checker *c = t->c;
    if (run_native_devices() < DEVICES)
        return true;
    make_arguments(t);
    if (run_native_together(c->m->arena, p, c->m, DEVICES, t->inputs, t->outputs) != JOT_OK)
        return check_refuse(c, "running on devices");
    struct ir_tensor *want = check_run(c, t->g, t->in);
    return want && same_results(t, want);
}

static bool agrees(struct checker *c)
{
    double how = opcase_random(&c->state);
    uint32_t f = c->f;
    if (c->kind & PROGRAM_DERIVABLE && how < 0.5 &&
        pass_vjp(c->m, f, check_floats(c, c->g), &f) != JOT_OK)
        return check_refuse(c, "vjp");
    struct team t = {.c = c, .g = ir_function(c->m, f)};
    if (!pass_find_shard_map(t.g))
        return true;
    if (pass_partition(c->m, f, &t.parts) != JOT_OK)
        return check_refuse(c, "partition");
    for (int i = 0; i < t.parts.shard.n_axes; i++)
        t.mesh[i] = c->m->axes.at[t.parts.shard.grid[i]].size;
    struct schedule_options options = {.steps = how < 0.2,
                                       .separate = how > 0.9,
                                       .no_gemm = true,
                                       .early_exchanges = how > 0.4,
                                       .mesh_rank = (uint32_t)t.parts.shard.n_axes,
                                       .mesh = t.mesh};
    struct nest_program *p;
    uint32_t piece = pass_simplify(c->m, pass_pack_exchanges(c->m, check_final(c, t.parts.f)));
    if (pass_schedule(c->m->arena, ir_function(c->m, piece), &options, &p) != JOT_OK)
        return check_refuse(c, "schedule of devices");
    if (nest_program_verify(p, c->why) + plan_verify(p, c->why))
        return false;
    if (!check_is_quick(p, 1e8))
        return true;
    t.in = program_inputs(c->m, t.g, c->state, c->kind);
    if (run_together(&t, p))
        return true;
    strbuf_add(c->why, ir_graph_text(t.g));
    schedule_print(c->why, p);
    return false;
}

// The last letter of the report says whether it holds.
static void try_devices(void *ctx, struct strbuf *report)
{
    struct checker *c = ctx;
    c->why = report;
    strbuf_add(report, agrees(c) ? "y" : "n");
}

bool check_devices(struct checker *c)
{
    struct checker own = *c;
    struct strbuf report = strbuf_make(c->m->arena);
    bool ended = isolate_run(try_devices, &own, SECONDS, &report);
    bool holds = ended && report.length && report.text[report.length - 1] == 'y';
    if (!holds)
        strbuf_add(c->why, report.text);
    return holds;
}
