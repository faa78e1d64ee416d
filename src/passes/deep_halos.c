// SPDX-License-Identifier: Apache-2.0
// Deep halos: a loop whose lanes exchange h border rows in each trip exchanges k h rows in every k-th, and does
// what the neighbours do to these rows itself.
//
//     scan { u = f(concatenate(above, u, below)) }         h rows of each neighbour
// becomes
//     scan { e = concatenate(above, u, below)              k h rows of each
//            e = f(mask e); ... k times; u = e }
//
// Ghost cell expansion (Ding and He, A ghost cell expansion method for reducing communications in solving
// PDE problems, 2001).  f may be anything that makes row r of rows near r and of what all lanes have: maps,
// changes of index along other axes, slices, several halos one after the other.  Rows of a lane that has no neighbour
// there are zeros wherever a halo is read, as they are without this.
//
// Needs all differentiation and mapping done.  Lanes are those of the mesh: axes have names still.
#include "passes/deep_halos.h"

// ---- Rows

// Elements from .. to - 1 of the axis.
static ir_id part_of(struct ir_builder *b, ir_id x, int axis, int64_t from, int64_t to)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, t), (size_t)t.rank * sizeof *limits);
    if (from == 0 && to == limits[axis])
        return x;
    starts[axis] = from;
    limits[axis] = to;
    return ir_slice(b, x, starts, limits, NULL);
}

// Rows of x with those of its neighbours: what they send, or where all lanes have the same x its other rows.
static ir_id exchanged_rows(struct ir_builder *b, const struct halos *h, ir_id x, int axis,
                            struct halo_rows r, bool is_uniform)
{
    int n_over, n_pairs, count = 0;
    const int64_t *over = ir_over(halo_exchange(h), &n_over);
    ir_id parts[3];
    struct halo_rows of[] = {{h->count + r.lo, h->count}, {0, h->count}, {0, r.hi - h->count}};
    for (int side = 0; side < 3; side++) {
        const struct ir_node *n = side == 0 ? h->down : h->up;
        if (of[side].lo == of[side].hi)
            continue;
        ir_id part = part_of(b, x, axis, of[side].lo, of[side].hi);
        if (side != 1 && !is_uniform) {
            const int64_t *pairs = ir_attr_ints(n->attrs, IR_KEY_pairs, &n_pairs);
            b->where = n->where;
            part = ir_ppermute(b, part, n_over, over, n_pairs / 2, pairs);
        }
        parts[count++] = part;
    }
    return count == 1 ? parts[0] : ir_concatenate(b, count, parts, axis);
}

// Whether no lane sends this one anything by the exchange: a number, or none where all lanes are sent something.
static ir_id is_alone(struct ir_builder *b, const struct ir_node *n)
{
    int n_over, n_pairs = 0;
    ir_id lane = IR_NONE, alone = IR_NONE;
    const int64_t *over = ir_over(n->attrs, &n_over);
    const int64_t *pairs = ir_attr_ints(n->attrs, IR_KEY_pairs, &n_pairs);
    int64_t lanes = ir_lanes_over(b->module, n->attrs);
    for (int64_t i = 0; i < lanes; i++) {
        bool is_sent = false;
        for (int k = 1; k < n_pairs && !is_sent; k += 2)
            is_sent = pairs[k] == i;
        if (is_sent)
            continue;
        lane = lane == IR_NONE ? ir_lane_number(b, n_over, over) : lane;
        ir_id is_it = ir_map2(b, IR_eq, lane, ir_scalar_int(b, JOT_I32, i));
        alone = alone == IR_NONE ? is_it : ir_map2(b, IR_or, alone, is_it);
    }
    return alone;
}

// Rows r of x, zeros where a neighbour would send them and there is none.
static ir_id masked_rows(struct ir_builder *b, const struct halos *h, ir_id x, int axis,
                         struct halo_rows r)
{
    int64_t size = r.hi - r.lo;
    struct ir_type t = ir_type_make(b->module, JOT_I32, 1, &size);
    ir_id row = IR_NONE, is_zero = IR_NONE;
    for (int side = 0; side < 2; side++) {
        const struct ir_node *n = side ? h->up : h->down;
        ir_id alone = (side ? r.hi > h->count : r.lo < 0) ? is_alone(b, n) : IR_NONE;
        if (alone == IR_NONE)
            continue;
        row = row == IR_NONE ? ir_iota(b, t, 0) : row;
        ir_id bound = ir_scalar_int(b, JOT_I32, side ? h->count - r.lo : -r.lo);
        ir_id is_it = ir_map2(b, IR_and, ir_map2(b, side ? IR_ge : IR_lt, row, bound), alone);
        is_zero = is_zero == IR_NONE ? is_it : ir_map2(b, IR_or, is_zero, is_it);
    }
    if (is_zero == IR_NONE)
        return x;
    struct ir_type whole = ir_type_in(b, x);
    int64_t over = axis;
    is_zero = ir_broadcast_in_dim(b, is_zero, whole.rank, ir_dims(b->module, whole), &over);
    return ir_select(b, is_zero, ir_scalar_like(b, x, 0), x);
}

static ir_id rows_in(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                     ir_id v, struct halo_rows r)
{
    return part_of(b, t->all[v], h->axis[v], r.lo - t->rows[v].lo, r.hi - t->rows[v].lo);
}

static ir_id extend(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                    const struct ir_node *n)
{
    const struct ir_graph *g = h->g;
    ir_id v = n->out, *in = pass_no_values(h->m, n->n_in);
    int axis = h->axis[v], rank = ir_rank_of(g, v), n_axes;
    struct halo_rows r = t->rows[v];
    int64_t dims[IR_MAX_RANK];
    if (h->is_hoisted[v])
        return part_of(b, h->hoisted[v], axis, r.lo - h->hoisted_rows[v].lo,
                       r.hi - h->hoisted_rows[v].lo);
    if (h->inner[v] != IR_NONE && ir_attr_int(n->attrs, IR_KEY_axis) == axis) {
        return rows_in(b, h, t, h->inner[v], halo_move(r, -h->before[v]));
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        int64_t by = n->op == IR_slice ? halo_ints(n, IR_KEY_starts)[axis] : 0;
        in[i] =
            deep_halos_axis(h, n, i) < 0 ? t->map[x] : rows_in(b, h, t, x, halo_move(r, by));
    }
    memcpy(dims, ir_dims_of(g, v), (size_t)rank * sizeof *dims);
    dims[axis] = r.hi - r.lo;
    if (n->op == IR_broadcast_in_dim)
        return ir_broadcast_in_dim(b, in[0], rank, dims,
                                   ir_attr_ints(n->attrs, IR_KEY_axes, &n_axes));
    if (n->op == IR_reshape)
        return ir_reshape(b, in[0], rank, dims);
    if (n->op != IR_slice)
        return ir_rebuild(b, g, n, in);
    int64_t starts[IR_MAX_RANK], limits[IR_MAX_RANK];
    memcpy(starts, halo_ints(n, IR_KEY_starts), (size_t)rank * sizeof *starts);
    memcpy(limits, halo_ints(n, IR_KEY_limits), (size_t)rank * sizeof *limits);
    starts[axis] = 0;
    limits[axis] = dims[axis];
    return ir_slice(b, in[0], starts, limits, halo_ints(n, IR_KEY_strides));
}

// ---- The loop

// The values of a trip: t->map and t->all of parameters are known.
static void run(struct ir_builder *b, const struct halos *h, struct halo_trip *t)
{
    const struct ir_graph *g = h->g;
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id v = n->out;
        bool is_own = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            is_own |= t->own[v + k];
        b->where = n->where;
        if (t->extended[v]) {
            if (n->op != IR_param)
                t->all[v] = extend(b, h, t, n);
            if (n->op != IR_param && h->is_sent[v])
                t->all[v] = masked_rows(b, h, t->all[v], h->axis[v], t->rows[v]);
            if (is_own)
                t->map[v] = rows_in(b, h, t, v, (struct halo_rows){0, halo_count(h, v)});
        } else if (is_own && n->op != IR_param)
            pass_copy_node(b, g, n, t->map);
    }
}

static ir_id without_first_axis(struct ir_builder *b, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    return ir_reshape(b, x, t.rank - 1, ir_dims(b->module, t) + 1);
}

// The type of what is hoisted of v.
static struct ir_type hoisted_type(const struct halos *h, ir_id v)
{
    struct ir_type t = ir_type_of(h->g, v), hoisted;
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims_of(h->g, v), (size_t)t.rank * sizeof *dims);
    dims[h->axis[v]] = h->hoisted_rows[v].hi - h->hoisted_rows[v].lo;
    hoisted = ir_type_make(h->m, ir_dtype(t), t.rank, dims);
    hoisted.varies = t.varies;
    return hoisted;
}

// The rows that trip k wants of carry i: those that neighbours send, or what the trip before has made, which is
// stored as a carry is.
static ir_id carried_rows(struct ir_builder *b, const struct halos *h, int k, uint32_t i,
                          ir_id param)
{
    struct halo_rows r = h->trips[k].rows[i];
    if (k == 0)
        return exchanged_rows(b, h, param, h->axis[i], r, h->is_uniform[i]);
    ir_id x = rows_in(b, h, &h->trips[k - 1], h->g->outputs.at[i - h->n_consts], r);
    if (h->is_sent[i])
        x = masked_rows(b, h, x, h->axis[i], r);
    return ir_build(b, IR_barrier, 1, &x, NULL);
}

// The parameters in trip k, which is number `at` of those that rows of the loop are of.
static void start_trip(struct ir_builder *b, const struct halos *h, int k, int64_t at,
                       const ir_id *param)
{
    const struct ir_graph *g = h->g;
    struct halo_trip *t = &h->trips[k];
    for (uint32_t i = 0; i < g->n_params; i++) {
        bool is_carry = i >= h->n_consts && i < h->n_consts + h->n_carry;
        t->map[i] = param[i];
        if (is_carry && k)
            t->map[i] = h->trips[k - 1].map[g->outputs.at[i - h->n_consts]];
        else if (i >= h->n_consts + h->n_carry && t->own[i])
            t->map[i] = without_first_axis(b, part_of(b, param[i], 0, at, at + 1));
        if (t->extended[i] && is_carry)
            t->all[i] = carried_rows(b, h, k, i, param[i]);
        else if (t->extended[i])
            t->all[i] =
                part_of(b, h->hoisted[i], h->axis[i], t->rows[i].lo - h->hoisted_rows[i].lo,
                        t->rows[i].hi - h->hoisted_rows[i].lo);
    }
}

// A body of h->depth trips; what is hoisted stands behind the constants.
static uint32_t body_of_trips(struct halos *h, bool reverse)
{
    const struct ir_graph *g = h->g;
    struct ir_builder b = ir_builder_make(h->m, g->name, IR_BUILD_PLAIN);
    ir_id *param = pass_no_values(h->m, g->n_params);
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type t = ir_type_of(g, i);
        for (ir_id v = 0; i == h->n_consts && v < g->values.count; v++)
            if (h->is_hoisted[v])
                h->hoisted[v] = ir_param(&b, hoisted_type(h, v));
        if (i >= h->n_consts + h->n_carry)
            t = ir_type_stack(h->m, t, h->depth);
        param[i] = ir_param(&b, t);
    }
    for (int k = 0; k < h->depth; k++) {
        start_trip(&b, h, k, reverse ? h->depth - 1 - k : k, param);
        run(&b, h, &h->trips[k]);
    }
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i], *parts = pass_no_values(h->m, (uint32_t)h->depth);
        for (int k = 0; k < h->depth && i >= h->n_carry; k++) {
            struct ir_type t = ir_type_stack(h->m, ir_type_of(g, v), 1);
            parts[reverse ? h->depth - 1 - k : k] =
                ir_reshape(&b, h->trips[k].map[v], t.rank, ir_dims(h->m, t));
        }
        ir_output(&b, i < h->n_carry ? h->trips[h->depth - 1].map[v]
                                     : ir_concatenate(&b, h->depth, parts, 0));
    }
    return ir_finish_function(&b);
}

// What is hoisted, computed over `in`; appends it to *out and gives how many values it is.
static uint32_t hoist(struct ir_builder *b, const struct halos *h, const ir_id *in, ir_id *out)
{
    const struct ir_graph *g = h->g;
    ir_id *map = pass_no_values(h->m, g->values.count);
    uint32_t count = 0;
    memcpy(map, in, h->n_consts * sizeof *map);
    body_copy_wanted(b, g, h->is_hoisted, map);
    for (ir_id v = 0; v < g->values.count; v++)
        if (h->is_hoisted[v])
            out[count++] =
                exchanged_rows(b, h, map[v], h->axis[v], h->hoisted_rows[v], h->is_uniform[v]);
    return count;
}

// Rows of a loop by groups of h->depth trips, or as they were.
static ir_id grouped(struct ir_builder *b, ir_id x, int64_t depth)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK + 1] = {ir_dims(b->module, t)[0] / depth, depth};
    memcpy(dims + 2, ir_dims(b->module, t) + 1, (size_t)(t.rank - 1) * sizeof *dims);
    return ir_reshape(b, x, t.rank + 1, dims);
}
static ir_id ungrouped(struct ir_builder *b, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(b->module, t) + 1, (size_t)(t.rank - 1) * sizeof *dims);
    dims[0] *= ir_dims(b->module, t)[0];
    return ir_reshape(b, x, t.rank - 1, dims);
}

// The loop, and behind it one of the trips that are left; its results in out.
static void run_loop(struct ir_builder *b, struct halos *h, struct ir_scan s, uint32_t n_in,
                     const ir_id *in, ir_id *out)
{
    uint32_t behind = h->n_consts + h->n_carry, n_out = h->g->outputs.count;
    int64_t trips = s.length / h->depth * h->depth, left = s.length - trips;
    int64_t first = s.reverse ? left : 0;
    struct ir_scan deep = s;
    deep.body = body_of_trips(h, s.reverse);
    deep.length = s.length / h->depth;
    ir_id *all = pass_no_values(h->m, n_in + h->g->values.count);
    memcpy(all, in, h->n_consts * sizeof *all);
    uint32_t hoisted = hoist(b, h, in, all + h->n_consts);
    deep.n_consts += (int)hoisted;
    memcpy(all + h->n_consts + hoisted, in + h->n_consts, h->n_carry * sizeof *all);
    for (uint32_t i = behind; i < n_in; i++)
        all[hoisted + i] = grouped(b, part_of(b, in[i], 0, first, first + trips), h->depth);
    ir_id y = ir_scan(b, &deep, (int)(n_in + hoisted), all), z = IR_NONE;
    if (left) {
        memcpy(all, in, h->n_consts * sizeof *all);
        for (uint32_t i = h->n_consts; i < n_in; i++)
            all[i] = i < behind ? y + (i - h->n_consts)
                                : part_of(b, in[i], 0, s.reverse ? 0 : trips,
                                          s.reverse ? left : s.length);
        s.length = left;
        z = ir_scan(b, &s, (int)n_in, all);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        bool is_carry = i < h->n_carry;
        ir_id a = is_carry ? y + i : ungrouped(b, y + i);
        ir_id parts[] = {s.reverse ? z + i : a, s.reverse ? a : z + i};
        out[i] = !left ? a : is_carry ? z + i : ir_concatenate(b, 2, parts, 0);
    }
}

static void copy_deep(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *map)
{
    struct ir_module *m = b->module;
    b->where = n->where;
    if (ir_op_class((enum ir_op)n->op) != IR_CLASS_CONTROL) {
        pass_copy_node(b, g, n, map);
        return;
    }
    uint32_t *bodies = body_rewrite_all(m, n, pass_deep_halos);
    ir_id *in = body_operands(m, g, n, map);
    if (n->op == IR_scan) {
        struct ir_scan s = ir_scan_of(n);
        s.body = bodies[0];
        struct halos h = {.m = m,
                          .g = ir_function(m, s.body),
                          .n_consts = (uint32_t)s.n_consts,
                          .n_carry = (uint32_t)s.n_carry};
        if (deep_halos_find(&h, &s)) {
            run_loop(b, &h, s, n->n_in, in, map + n->out);
            return;
        }
    }
    body_set_results(n,
                     ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                              ir_with_functions(m, n->attrs, bodies)),
                     map);
}

uint32_t pass_deep_halos(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_DEEP_HALOS, copy_deep);
}
