// SPDX-License-Identifier: Apache-2.0
// Collectives over the axes of a mesh become exchanges between its devices, and axes have no names any
// more.
//
//     f(x: f32[4]<i:8>) { y = psum x {over=[i:8]}; k = axis_index {over=[i:8]}; return y, k }
// becomes
//     f(x: f32[4], coordinates: i32[1]) { y = exchange x {mesh=[8], ...}; k = coordinates[0]; return y, k }
//
// Needs all differentiation and mapping done.  What follows sees the program of one device, to which an
// exchange is a routine.  Bodies that ask for coordinates take them as their first parameter, which is a constant
// of their loop.
#include "base/status.h"
#include "ir/collective.h"
#include "ir/control.h"
#include "passes/body.h"

struct mesh {
    struct ir_module *m;
    int rank;
    const int64_t *axes; // of the module
    int64_t sizes[COLLECTIVE_MESH_RANK];
    uint32_t *result[2]; // by function, without and with coordinates; IR_NONE before it is done
    uint8_t
        *takes; // by function: 1 it asks for its coordinates, 2 it does not, 0 nobody knows yet
};

// The number in the mesh of an axis of the module, or -1.
static int64_t find_axis(const struct mesh *mesh, int64_t axis)
{
    for (int i = 0; i < mesh->rank; i++)
        if (mesh->axes[i] == axis)
            return i;
    return -1;
}

static bool takes_coordinates(struct mesh *mesh, uint32_t f)
{
    if (mesh->takes[f])
        return mesh->takes[f] == 1;
    const struct ir_graph *g = ir_function(mesh->m, f);
    bool takes = false;
    for (uint32_t at = 0; g->names && at < g->nodes.count && !takes; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        const int64_t *bodies;
        int count = ir_has_bodies((enum ir_op)n->op) ? ir_bodies_of(n, &bodies) : 0;
        takes = n->op == IR_axis_index;
        for (int i = 0; i < count && !takes; i++)
            takes = takes_coordinates(mesh, (uint32_t)bodies[i]);
    }
    mesh->takes[f] = takes ? 1 : 2;
    return takes;
}

// ---- Collectives

static enum collective_kind kind_of(enum ir_op op)
{
    switch (op) {
    case IR_all_gather:
        return COLLECTIVE_ALL_GATHER;
    case IR_psum_scatter:
        return COLLECTIVE_REDUCE_SCATTER;
    case IR_all_to_all:
        return COLLECTIVE_ALL_TO_ALL;
    case IR_ppermute:
        return COLLECTIVE_PERMUTE;
    default:
        return COLLECTIVE_ALL_REDUCE;
    }
}

static ir_id add_exchange(struct ir_builder *b, const struct mesh *mesh,
                          const struct ir_node *n, ir_id x)
{
    struct arena *arena = b->module->arena;
    enum collective_combiner combiner = n->op == IR_pmax   ? COLLECTIVE_MAX
                                        : n->op == IR_pmin ? COLLECTIVE_MIN
                                                           : COLLECTIVE_SUM;
    int n_over, n_pairs;
    const int64_t *over = ir_over(n->attrs, &n_over);
    const int64_t *pairs = ir_attr_ints(n->attrs, IR_KEY_pairs, &n_pairs);
    VEC(int64_t) params = {0};
    vec_push(arena, &params, kind_of((enum ir_op)n->op));
    vec_push(arena, &params, combiner);
    vec_push(arena, &params, ir_dtype(ir_type_in(b, x)));
    vec_push(arena, &params, n_over);
    for (int i = 0; i < n_over; i++)
        vec_push(arena, &params, find_axis(mesh, over[i]));
    uint32_t sources = params.count;
    int64_t lanes = n->op == IR_ppermute ? ir_lanes_over(b->module, n->attrs) : 0;
    for (int64_t i = 0; i < lanes; i++)
        vec_push(arena, &params, -1);
    for (int i = 0; i < n_pairs; i += 2)
        params.at[sources + pairs[i + 1]] = pairs[i];
    return ir_exchange(b, x, mesh->rank, mesh->sizes, (int)params.count, params.at);
}

static ir_id add_index(struct ir_builder *b, const struct mesh *mesh, const struct ir_node *n,
                       ir_id coordinates)
{
    int count;
    int64_t start = find_axis(mesh, ir_over(n->attrs, &count)[0]), limit = start + 1, step = 1;
    if (start < 0)
        return ir_fail(b, JOT_ERR_INTERNAL, "axis_index of no axis of the mesh");
    return ir_reshape(b, ir_slice(b, coordinates, &start, &limit, &step), 0, NULL);
}

// ---- Functions

static uint32_t exchange_function(struct mesh *mesh, uint32_t f, bool takes);

// A node with bodies, with the coordinates as one more operand where they ask for them.
static ir_id add_bodied(struct ir_builder *b, struct mesh *mesh, const struct ir_node *n,
                        ir_id *in, ir_id coordinates)
{
    const int64_t *bodies;
    int count = ir_bodies_of(n, &bodies);
    bool is_control = ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL, takes = false;
    uint32_t *made = arena_array(b->module->arena, uint32_t, count + 1);
    count = is_control ? count : 1; // rules of derivatives have been applied
    for (int i = 0; i < count; i++)
        takes |= takes_coordinates(mesh, (uint32_t)bodies[i]);
    for (int i = 0; i < count; i++) {
        made[i] = exchange_function(mesh, (uint32_t)bodies[i], takes);
        if (made[i] == IR_NONE)
            return ir_fail(b, status_last(), "%s", jot_error_message());
    }
    uint32_t n_in = n->n_in, first = n->op == IR_cond; // the index of a branch stays in front
    if (takes) {
        memmove(in + first + 1, in + first, (n_in - first) * sizeof *in);
        in[first] = coordinates;
        n_in++;
    }
    if (!is_control)
        return ir_call(b, IR_call, 1, made, (int)n_in, in);
    if (n->op == IR_cond)
        return ir_cond(b, count, made, (int)n_in, in);
    if (n->op == IR_while) {
        struct ir_while w = ir_while_of(n);
        w.test = made[0];
        w.body = made[1];
        w.n_consts += takes;
        return ir_while(b, &w, (int)n_in, in);
    }
    struct ir_scan s = ir_scan_of(n);
    s.body = made[0];
    s.n_consts += takes;
    return ir_scan(b, &s, (int)n_in, in);
}

static void copy_node(struct ir_builder *b, struct mesh *mesh, const struct ir_graph *g,
                      const struct ir_node *n, ir_id coordinates, ir_id *map)
{
    b->where = n->where;
    if (ir_exchanges((enum ir_op)n->op))
        map[n->out] = add_exchange(b, mesh, n, map[ir_operand(g, n, 0)]);
    else if (n->op == IR_pvary)
        map[n->out] = map[ir_operand(g, n, 0)];
    else if (n->op == IR_axis_index)
        map[n->out] = add_index(b, mesh, n, coordinates);
    else if (ir_has_bodies((enum ir_op)n->op))
        body_set_results(
            n, add_bodied(b, mesh, n, body_operands(mesh->m, g, n, map), coordinates), map);
    else
        pass_copy_node(b, g, n, map);
}

static ir_id add_coordinates(struct ir_builder *b, const struct mesh *mesh)
{
    int64_t rank = mesh->rank;
    return ir_param(b, ir_type_make(mesh->m, JOT_I32, 1, &rank));
}

enum { WITHOUT_COORDINATES, COORDINATES_FIRST, COORDINATES_LAST };

static uint32_t copy_function(struct mesh *mesh, uint32_t f, int where)
{
    const struct ir_graph *g = ir_function(mesh->m, f);
    struct ir_builder b = ir_builder_make(mesh->m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(mesh->m, g->values.count);
    ir_id coordinates = where == COORDINATES_FIRST ? add_coordinates(&b, mesh) : IR_NONE;
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type t = ir_type_of(g, i);
        t.varies = 0;
        map[i] = ir_param(&b, t);
    }
    if (where == COORDINATES_LAST)
        coordinates = add_coordinates(&b, mesh);
    for (uint32_t at = g->n_params; at < g->nodes.count && b.status == JOT_OK; at++)
        copy_node(&b, mesh, g, &g->nodes.at[at], coordinates, map);
    pass_copy_outputs(&b, g, map);
    uint32_t made;
    return pass_finish(&b, &made) == JOT_OK ? made : IR_NONE;
}

static uint32_t exchange_function(struct mesh *mesh, uint32_t f, bool takes)
{
    if (!takes && !ir_function(mesh->m, f)->names)
        return f;
    uint32_t *result = &mesh->result[takes][f];
    if (*result == IR_NONE)
        *result = copy_function(mesh, f, takes ? COORDINATES_FIRST : WITHOUT_COORDINATES);
    return *result;
}

jot_status pass_exchange(struct ir_module *m, uint32_t f, int rank, const int64_t *axes,
                         uint32_t *out_f)
{
    struct mesh mesh = {.m = m, .rank = rank, .axes = axes};
    uint32_t count = m->functions.count;
    for (int i = 0; i < rank; i++)
        mesh.sizes[i] = ir_axis_size(m, axes[i]);
    for (int i = 0; i < 2; i++)
        mesh.result[i] = pass_no_values(m, count);
    mesh.takes = arena_array(m->arena, uint8_t, count + 1);
    uint32_t made = copy_function(&mesh, f, COORDINATES_LAST);
    if (made == IR_NONE)
        return status_last();
    *out_f = made;
    return JOT_OK;
}
