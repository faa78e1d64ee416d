// SPDX-License-Identifier: Apache-2.0
// Collectives of a program of several replicas and partitions: over the axes "replica" and "partition" of
// the maps around it, or, in a manual computation, those of its mesh, whose devices are the partitions.
// Where there is no such axis there is one of them.
//
// Groups that are all lanes in order become collectives of the graph.  Of others a lane gathers
// what all have, and takes that of its own group.  Smaller groups than the largest are filled up with -1;
// StableHLO has them in all_reduce and collective_broadcast, whose results have one size on all lanes.
#include "interop/to_graph.h"

#include "ir/collective.h"
#include "ir/indexing.h"
#include "trace/named.h"

enum { REPLICA, PARTITION };
static const char *const names[] = {"replica", "partition"};

// The lanes of an operation, numbered as its groups have them, and the groups: rows of `size` lanes.
struct group {
    int n;
    int64_t over[2 * IR_MAX_AXES];
    int64_t lanes, count, size;
    const int64_t *of; // by group and position, -1: none
    bool is_ragged;
    int64_t partitions;
    const int64_t *ids; // of partitions, or NULL: in order
};

// The axis of that name around the trace, or -1.
static int64_t axis_of(int which)
{
    const struct trace *t = trace_top();
    for (int i = 0; t->axes >> i; i++)
        if (t->axes >> i & 1 && !strcmp(t->module->axes.at[i].name, names[which]))
            return i;
    return -1;
}

// The axes that stand for replicas or partitions; how many there are; and the numbers along them, or NULL where they
// are in order.
static int axes_of(const struct graph_op *g, int which, int64_t *out, const int64_t **out_ids)
{
    *out_ids = NULL;
    out[0] = axis_of(which);
    return out[0] >= 0 ? 1 : which == PARTITION ? graph_axes_around(g->frame, out, out_ids) : 0;
}

static int64_t size_of(const int64_t *axes, int n)
{
    int64_t size = 1;
    for (int i = 0; i < n; i++)
        size *= ir_axis_size(trace_top()->module, axes[i]);
    return size;
}

static void add_axes(const struct graph_op *g, struct group *p, int which)
{
    int n = axes_of(g, which, p->over + p->n, &p->ids);
    int64_t size = size_of(p->over + p->n, n);
    p->partitions = which == PARTITION ? size : 1;
    p->lanes *= size;
    p->n += n;
}

// Which lane a number of a replica and partition is, of numbers that are those of lanes.
static int64_t lane_of(const struct group *p, int64_t number)
{
    int64_t at = 0, own = number % p->partitions;
    if (!p->ids || number < 0)
        return number;
    while (p->ids[at] != own)
        at++;
    return number - own + at;
}

// Reads the rows of an attribute; without any, all lanes are one group.
static bool read_rows(struct graph_op *g, struct group *p)
{
    const struct mlir_attr *a = mlir_attr_find(g->op, "replica_groups");
    size_t n;
    const int64_t *ids = mlir_ints(g->op, "replica_groups", &n);
    bool has_rows = a && a->type && a->type->kind == MLIR_TENSOR && a->type->rank == 2;
    if (a && a->kind == MLIR_OPAQUE) {
        p->of = graph_mesh_groups(g->frame, a->text, p->lanes, &p->count, &p->size);
        if (!p->of)
            graph_refuse(g, "replica_groups by axes of a mesh of the %lld devices are read",
                         (long long)p->lanes);
        return p->of != NULL;
    }
    p->size = has_rows ? a->type->dims[1] : (int64_t)n;
    p->count = p->size ? (int64_t)n / p->size : 0;
    p->of = ids;
    for (size_t i = 0; i < n; i++) {
        p->is_ragged |= ids[i] < 0;
        if (ids[i] < -1 || (ids[i] < 0 && i % (size_t)p->size == 0))
            return graph_refuse(g, "lane %lld in a group", (long long)ids[i]), false;
    }
    if (p->is_ragged && g->op->row->code != MLIR_OP_stablehlo_all_reduce &&
        g->op->row->code != MLIR_OP_stablehlo_collective_broadcast)
        return graph_refuse(g, "groups of different sizes, of which only all_reduce and "
                               "collective_broadcast give results of one size"),
               false;
    return true;
}

static int64_t replica_of(const struct group *p, int64_t group, int64_t k)
{
    return p->of[group * p->size + k % p->size];
}

// Of the replicas in a group those of all partitions.
static void add_partitions(struct group *p)
{
    int64_t partitions = p->partitions, size = p->size * partitions;
    int64_t *of = arena_array(trace_top()->module->arena, int64_t, p->count *size + 1);
    for (int64_t i = 0; i < p->count; i++)
        for (int64_t k = 0; k < size; k++)
            of[i * size + k] =
                replica_of(p, i, k) < 0 ? -1 : replica_of(p, i, k) * partitions + k / p->size;
    p->of = of;
    p->size = size;
}

static bool check_lanes(struct graph_op *g, const struct group *p)
{
    bool *seen = arena_array(g->b->module->arena, bool, p->lanes + 1);
    int64_t most = -1;
    for (int64_t i = 0; i < p->count * p->size; i++)
        most = p->of[i] > most ? p->of[i] : most;
    if (most >= p->lanes) {
        graph_refuse(
            g,
            "lane %lld, and the maps around it have %lld: a program of several runs in "
            "jot_pmap or jot_vmap_named over \"partition\" or \"replica\"",
            (long long)most, (long long)p->lanes);
        return false;
    }
    for (int64_t i = 0; i < p->count * p->size; i++) {
        if (p->of[i] >= 0 && seen[p->of[i]])
            return graph_refuse(g, "lane %lld is in two groups", (long long)p->of[i]), false;
        if (p->of[i] >= 0)
            seen[p->of[i]] = true;
    }
    return true;
}

// Where lane number k is of those along the axes in the set, the others being the first ones.
static int64_t lane_along(const struct group *p, uint32_t axes, int64_t k)
{
    int64_t lane = 0, step = 1;
    for (int i = p->n; i-- > 0;) {
        int64_t size = ir_axis_size(trace_top()->module, p->over[i]);
        if (axes >> i & 1) {
            lane += k % size * step;
            k /= size;
        }
        step *= size;
    }
    return lane;
}

// Groups that are the lanes along some of the axes, in order, become one of all lanes of those.
static bool narrow(struct group *p, uint32_t axes)
{
    int64_t size = 1;
    int n = 0;
    for (int i = 0; i < p->n; i++)
        size *= axes >> i & 1 ? ir_axis_size(trace_top()->module, p->over[i]) : 1;
    if (size != p->size || p->count * size != p->lanes)
        return false;
    for (int64_t i = 0; i < p->lanes; i++)
        if (p->of[i] != p->of[i / size * size] + lane_along(p, axes, i % size) || p->of[i] < 0)
            return false;
    // From 0 on they begin at different lanes, so each begins where it is first along the axes.
    for (int i = 0; i < p->n; i++)
        if (axes >> i & 1)
            p->over[n++] = p->over[i];
    int64_t *of = arena_array(trace_top()->module->arena, int64_t, size + 1);
    for (int64_t i = 0; i < size; i++)
        of[i] = i;
    p->n = n;
    p->count = 1;
    p->lanes = size;
    p->of = of;
    return true;
}

// has_global: the attribute use_global_device_ids says something.
static bool read_group(struct graph_op *g, bool has_global, struct group *p)
{
    bool has_channel = mlir_int(g->op, "channel_id", 0) > 0;
    bool is_flat = has_global && has_channel && mlir_int(g->op, "use_global_device_ids", 0);
    bool is_both = has_global && has_channel;
    *p = (struct group){.lanes = 1, .partitions = 1};
    if (is_both || !has_channel)
        add_axes(g, p, REPLICA);
    if (is_both || has_channel)
        add_axes(g, p, PARTITION);
    if (!read_rows(g, p))
        return false;
    int64_t *all = arena_array(g->b->module->arena, int64_t, p->lanes + 1);
    for (int64_t i = 0; i < p->lanes; i++)
        all[i] = i;
    if (p->count == 0) {
        p->of = all;
        p->size = p->lanes;
        p->count = 1;
    } else if (is_both && !is_flat) {
        add_partitions(p);
    }
    if (!check_lanes(g, p))
        return false;
    if (p->ids) {
        int64_t *of = arena_array(g->b->module->arena, int64_t, p->count * p->size + 1);
        for (int64_t i = 0; i < p->count * p->size; i++)
            of[i] = p->of[i] < 0 ? -1 : lane_of(p, p->of[i]);
        p->of = of;
    }
    for (uint32_t axes = 1; axes < UINT32_C(1) << p->n && !narrow(p, axes);)
        axes++;
    return true;
}

// Whether the one group is all lanes in order.
static bool is_whole(const struct group *p)
{
    for (int64_t i = 0; i < p->lanes; i++)
        if (p->size != p->lanes || p->of[i] != i)
            return false;
    return true;
}

static ir_id over(struct graph_op *g, const struct group *p, enum ir_op op, ir_id x)
{
    return ir_collective(g->b, op, x, p->n, p->over);
}

static ir_id number_of(struct graph_op *g, const struct group *p)
{
    return p->n ? ir_lane_number(g->b, p->n, p->over) : ir_scalar_int(g->b, JOT_I32, 0);
}

// The x of all lanes, as rows.
static ir_id gather_all(struct graph_op *g, const struct group *p, ir_id x)
{
    if (p->n)
        return over(g, p, IR_all_gather, x);
    int64_t dims[IR_MAX_RANK + 1] = {1};
    struct ir_type t = ir_type_in(g->b, x);
    memcpy(dims + 1, ir_dims(g->b->module, t), sizeof *dims * t.rank);
    return ir_reshape(g->b, x, t.rank + 1, dims);
}

// The lanes of the own group, i32[size], p->lanes where it is filled up, or the own position among them, i32[].
static ir_id of_lane(struct graph_op *g, const struct group *p, bool is_position)
{
    struct ir_module *m = g->b->module;
    int64_t dims[] = {p->lanes, p->size};
    int32_t *table = arena_array(m->arena, int32_t, p->lanes * p->size + 1);
    for (int64_t i = 0; i < p->count * p->size; i++) {
        int64_t lane = p->of[i], group = i / p->size;
        for (int64_t k = 0; k < p->size && !is_position && lane >= 0; k++) {
            int64_t other = p->of[group * p->size + k];
            table[lane * p->size + k] = (int32_t)(other < 0 ? p->lanes : other);
        }
        if (is_position)
            table[lane] = (int32_t)(i % p->size);
    }
    ir_id all = ir_const(g->b, ir_type_make(m, JOT_I32, is_position ? 1 : 2, dims), table);
    return graph_taken(all, number_of(g, p));
}

// The x of the own group, as rows.
static ir_id gather(struct graph_op *g, const struct group *p, ir_id x)
{
    ir_id all = gather_all(g, p, x);
    return is_whole(p) || all == IR_NONE ? all : graph_taken(all, of_lane(g, p, false));
}

// The same of groups of different sizes, filled up with what the reduction is of nothing.
static ir_id gather_filled(struct graph_op *g, const struct group *p, enum ir_op op, ir_id x)
{
    struct ir_module *m = g->b->module;
    struct ir_type t = ir_type_in(g->b, x), row = ir_type_stack(m, t, 1);
    ir_id none =
        ir_reduce(g->b, op, ir_zeros(g->b, ir_type_stack(m, t, 0)), 1, (const int64_t[]){0});
    ir_id all[] = {gather_all(g, p, x), ir_reshape(g->b, none, row.rank, ir_dims(m, row))};
    return g->b->status == JOT_OK
               ? graph_taken(ir_concatenate(g->b, 2, all, 0), of_lane(g, p, false))
               : IR_NONE;
}

static ir_id move_axis(struct graph_op *g, ir_id x, int from, int to)
{
    int64_t axes[IR_MAX_RANK];
    if (x == IR_NONE || from == to)
        return x;
    int rank = ir_type_in(g->b, x).rank;
    for (int i = 0, next = 0; i < rank; i++) {
        next += next == from;
        axes[i] = i == to ? from : next++;
    }
    return ir_transpose(g->b, x, axes);
}

// Rows of x one after the other along axis `to`; and parts along it as rows.
static ir_id join_rows(struct graph_op *g, ir_id x, int to)
{
    int64_t dims[IR_MAX_RANK];
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(g->b, x);
    const int64_t *from = ir_dims(g->b->module, t);
    for (int i = 0; i < t.rank - 1; i++)
        dims[i] = from[i + 1] * (i == to ? from[0] : 1);
    return ir_reshape(g->b, move_axis(g, x, 0, to), t.rank - 1, dims);
}

static ir_id split_rows(struct graph_op *g, ir_id x, int axis, int64_t n)
{
    int64_t dims[IR_MAX_RANK + 1];
    if (x == IR_NONE)
        return x;
    struct ir_type t = ir_type_in(g->b, x);
    const int64_t *from = ir_dims(g->b->module, t);
    if (axis < 0 || axis >= t.rank || n == 0 || from[axis] % n)
        return graph_refuse(g, "axis %d of %s in %lld parts", axis,
                            ir_type_text(g->b->module, t), (long long)n),
               IR_NONE;
    for (int i = 0; i < t.rank; i++)
        dims[i + (i > axis)] = from[i];
    dims[axis] = n;
    dims[axis + 1] = from[axis] / n;
    return move_axis(g, ir_reshape(g->b, x, t.rank + 1, dims), axis, 0);
}

// What the region makes of two elements, as a reduction.
static enum ir_op region_of(struct graph_op *g, uint32_t i)
{
    int arg;
    const struct mlir_type *t = g->op->operands[i]->type;
    enum ir_op op =
        graph_reduction(graph_body(&g->op->regions[0], &arg), mlir_elements[t->element].dtype);
    if (op == IR_OP_COUNT)
        graph_refuse(g, "a combination of two elements that jot does not know");
    return op;
}

static ir_id fold(struct graph_op *g, const struct group *p, enum ir_op op, ir_id x)
{
    enum ir_op whole = op == IR_reduce_sum   ? IR_psum
                       : op == IR_reduce_max ? IR_pmax
                       : op == IR_reduce_min ? IR_pmin
                                             : IR_OP_COUNT;
    if (!p->n || p->size == 1)
        return x;
    if (is_whole(p) && whole != IR_OP_COUNT)
        return over(g, p, whole, x);
    ir_id rows = p->is_ragged ? gather_filled(g, p, op, x) : gather(g, p, x);
    return ir_reduce(g->b, op, rows, 1, (const int64_t[]){0});
}

static void convert_all_reduce(struct graph_op *g)
{
    struct group p;
    if (!read_group(g, true, &p))
        return;
    for (uint32_t i = 0; i < g->op->n_operands && g->b->status == JOT_OK; i++) {
        enum ir_op op = region_of(g, i);
        g->out[i] = op == IR_OP_COUNT ? IR_NONE : fold(g, &p, op, g->in[i]);
    }
}

static void convert_all_gather(struct graph_op *g)
{
    struct group p;
    if (!read_group(g, true, &p))
        return;
    int axis = (int)mlir_int(g->op, "all_gather_dim", 0);
    for (uint32_t i = 0; i < g->op->n_operands && g->b->status == JOT_OK; i++) {
        if (axis < 0 || axis >= ir_type_in(g->b, g->in[i]).rank) {
            graph_refuse(g, "all_gather_dim %d", axis);
            return;
        }
        g->out[i] = join_rows(g, gather(g, &p, g->in[i]), axis);
    }
}

static void convert_reduce_scatter(struct graph_op *g)
{
    struct group p;
    enum ir_op op = region_of(g, 0);
    if (op == IR_OP_COUNT || !read_group(g, true, &p))
        return;
    int axis = (int)mlir_int(g->op, "scatter_dimension", 0);
    bool is_sum = op == IR_reduce_sum && p.n && is_whole(&p);
    ir_id x = is_sum ? g->in[0] : fold(g, &p, op, g->in[0]);
    ir_id rows = split_rows(g, x, axis, p.size);
    if (rows == IR_NONE)
        return;
    // Own part, with the axis where it was: the rest of it comes first.
    g->out[0] =
        is_sum ? over(g, &p, IR_psum_scatter, rows) : graph_taken(rows, of_lane(g, &p, true));
}

static void convert_all_to_all(struct graph_op *g)
{
    struct group p;
    int axis = (int)mlir_int(g->op, "split_dimension", 0),
        to = (int)mlir_int(g->op, "concat_dimension", 0);
    if (!read_group(g, false, &p))
        return;
    for (uint32_t i = 0; i < g->op->n_operands && g->b->status == JOT_OK; i++) {
        if (to < 0 || to >= ir_type_in(g->b, g->in[i]).rank) {
            graph_refuse(g, "concat_dimension %d", to);
            return;
        }
        ir_id rows = split_rows(g, g->in[i], axis, p.size);
        if (rows == IR_NONE)
            return;
        if (p.n && is_whole(&p))
            rows = over(g, &p, IR_all_to_all, rows);
        else // of each of the group its part for this lane
            rows = graph_taken(move_axis(g, gather(g, &p, rows), 1, 0), of_lane(g, &p, true));
        g->out[i] = join_rows(g, rows, to);
    }
}

static void convert_collective_permute(struct graph_op *g)
{
    struct group p;
    size_t n;
    const int64_t *pairs = mlir_ints(g->op, "source_target_pairs", &n);
    if (!read_group(g, false, &p))
        return;
    if (p.n) {
        int64_t *lanes = arena_array(g->b->module->arena, int64_t, n + 1);
        for (size_t i = 0; i < n; i++)
            lanes[i] = lane_of(&p, pairs[i]);
        g->out[0] = ir_ppermute(g->b, g->in[0], p.n, p.over, (int)n / 2, lanes);
        return;
    }
    bool is_own = n == 2 && pairs[0] == 0 && pairs[1] == 0;
    if (n && !is_own)
        graph_refuse(g, "lanes that no map around it has");
    g->out[0] = is_own ? g->in[0] : ir_zeros(g->b, ir_type_in(g->b, g->in[0]));
}

// The first of each group; lanes in none have zeros.
static void convert_collective_broadcast(struct graph_op *g)
{
    struct group p;
    if (!read_group(g, false, &p))
        return;
    if (!p.n) {
        g->out[0] = g->in[0];
        return;
    }
    struct ir_module *m = g->b->module;
    int32_t *from = arena_array(m->arena, int32_t, p.lanes + 1);
    for (int64_t i = 0; i < p.lanes; i++)
        from[i] = (int32_t)p.lanes;
    for (int64_t i = 0; i < p.count * p.size; i++)
        if (p.of[i] >= 0)
            from[p.of[i]] = (int32_t)p.of[i / p.size * p.size];
    ir_id all = gather_all(g, &p, g->in[0]);
    ir_id own = graph_taken(ir_const(g->b, ir_type_make(m, JOT_I32, 1, &p.lanes), from),
                            number_of(g, &p));
    ir_id is_in = ir_lt(g->b, own, ir_scalar_int(g->b, JOT_I32, p.lanes));
    ir_id y = graph_taken(all, ir_min(g->b, own, ir_scalar_int(g->b, JOT_I32, p.lanes - 1)));
    g->out[0] =
        y == IR_NONE ? y : ir_select(g->b, is_in, y, ir_zeros(g->b, ir_type_in(g->b, y)));
}

static void convert_id(struct graph_op *g, int which)
{
    int64_t axes[IR_MAX_AXES], all;
    const int64_t *ids;
    int n = axes_of(g, which, axes, &ids);
    ir_id number = n ? ir_lane_number(g->b, n, axes) : ir_scalar_int(g->b, JOT_I32, 0);
    if (ids) {
        all = size_of(axes, n);
        int32_t *table = arena_array(g->b->module->arena, int32_t, all);
        for (int64_t i = 0; i < all; i++)
            table[i] = (int32_t)ids[i];
        number = graph_taken(
            ir_const(g->b, ir_type_make(g->b->module, JOT_I32, 1, &all), table), number);
    }
    g->out[0] = ir_convert(g->b, number, JOT_U32);
}

static void convert_partition_id(struct graph_op *g) { convert_id(g, PARTITION); }
static void convert_replica_id(struct graph_op *g) { convert_id(g, REPLICA); }

graph_convert *graph_collective_find(enum mlir_code code)
{
    switch ((int)code) {
    case MLIR_OP_stablehlo_all_reduce:
        return convert_all_reduce;
    case MLIR_OP_stablehlo_all_gather:
        return convert_all_gather;
    case MLIR_OP_stablehlo_reduce_scatter:
        return convert_reduce_scatter;
    case MLIR_OP_stablehlo_all_to_all:
        return convert_all_to_all;
    case MLIR_OP_stablehlo_collective_permute:
        return convert_collective_permute;
    case MLIR_OP_stablehlo_collective_broadcast:
        return convert_collective_broadcast;
    case MLIR_OP_stablehlo_partition_id:
        return convert_partition_id;
    case MLIR_OP_stablehlo_replica_id:
        return convert_replica_id;
    default:
        return NULL;
    }
}
