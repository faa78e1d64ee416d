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
// What lanes exchange along other axes of the mesh, element by element, they exchange in each trip, of all these
// rows: lanes beside each other there have the same ones.  The body of k trips may then exchange for all of them along
// such an axis as well, corners and all.
//
// What this saves is exchanges and what it costs is work, so it depends on the price of an exchange: along an axis
// whose lanes are in several processes (struct ir_axis) that is many times what it is in one.
//
// Where rows of neighbours are not around the own ones, as where they are added to them, what neighbours do stands
// beside (deep_halos_sides.c).
//
// Needs all differentiation and mapping done.  Lanes are those of the mesh: axes have names still.
#include "passes/mesh/deep_halos.h"

// ---- Rows

ir_id deep_halos_part(struct ir_builder *b, ir_id x, int axis, int64_t from, int64_t to)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    memcpy(limits, ir_dims(b->module, t), (size_t)t.rank * sizeof *limits);
    if (axis < 0 || (from == 0 && to == limits[axis]))
        return x;
    starts[axis] = from;
    limits[axis] = to;
    return ir_slice(b, x, starts, limits, NULL);
}

// x of the lane at that side.
static ir_id sent(struct ir_builder *b, const struct halos *h, int side, ir_id x)
{
    const struct ir_node *n = side == HALO_BEFORE ? h->down : h->up;
    int n_over, n_pairs;
    const int64_t *over = ir_over(n->attrs, &n_over),
                  *pairs = ir_attr_ints(n->attrs, IR_KEY_pairs, &n_pairs);
    b->where = n->where;
    return ir_ppermute(b, x, n_over, over, n_pairs / 2, pairs);
}

// Rows of x with those of its neighbours: what they send, or where all lanes have the same x its other rows.
static ir_id rows_around(struct ir_builder *b, const struct halos *h, ir_id x, int axis,
                         struct halo_rows r, bool is_uniform)
{
    ir_id parts[HALO_SIDES];
    struct halo_rows of[] = {{h->count + r.lo, h->count}, {0, h->count}, {0, r.hi - h->count}};
    int count = 0;
    for (int side = 0; side < HALO_SIDES; side++) {
        if (of[side].lo == of[side].hi)
            continue;
        parts[count] = deep_halos_part(b, x, axis, of[side].lo, of[side].hi);
        if (side != HALO_AROUND && !is_uniform)
            parts[count] = sent(b, h, side, parts[count]);
        count++;
    }
    return count == 1 ? parts[0] : ir_concatenate(b, count, parts, axis);
}

// Rows of x, as they are exchanged for that side.
static ir_id exchanged(struct ir_builder *b, const struct halos *h, int side, ir_id x, int axis,
                       struct halo_rows r, bool is_uniform)
{
    return side == HALO_AROUND ? rows_around(b, h, x, axis, r, is_uniform)
                               : sent(b, h, side, deep_halos_part(b, x, axis, r.lo, r.hi));
}

ir_id deep_halos_alone(struct ir_builder *b, const struct ir_node *n)
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
        ir_id alone = (side ? r.hi > h->count : r.lo < 0) ? deep_halos_alone(b, n) : IR_NONE;
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
    const struct halo_part *p = &t->part[HALO_AROUND];
    return deep_halos_part(b, p->map[v], h->axis[v], r.lo - p->rows[v].lo,
                           r.hi - p->rows[v].lo);
}

// Those that are exchanged in front of the loop; all where no axis is known.
static struct halo_rows front_rows(const struct halos *h, int side, ir_id v)
{
    struct halo_rows r = h->front[side].rows[v];
    if (side != HALO_AROUND && h->axis[v] >= 0 && r.hi > halo_count(h, v))
        r.hi = halo_count(h, v);
    return r;
}

ir_id deep_halos_from_front(struct ir_builder *b, const struct halos *h, int side, ir_id v,
                            struct halo_rows r)
{
    return deep_halos_part(b, h->front[side].map[v], h->axis[v],
                           r.lo - h->front[side].rows[v].lo, r.hi - h->front[side].rows[v].lo);
}

ir_id deep_halos_rebuild(struct ir_builder *b, const struct halos *h, const struct ir_node *n,
                         const ir_id *in, int64_t rows)
{
    struct ir_field fields[IR_KEY_COUNT];
    int axis = h->axis[n->out], count = n->attrs ? (int)n->attrs->count : 0;
    for (int i = 0; i < count; i++) {
        struct ir_field *f = &fields[i];
        *f = n->attrs->fields[i];
        int at = f->key == IR_KEY_sizes ? deep_halos_axis(h, n, 0).axis : axis;
        if (at < 0 || (f->key != IR_KEY_dims && f->key != IR_KEY_sizes &&
                       f->key != IR_KEY_starts && f->key != IR_KEY_limits))
            continue;
        int64_t *ints = arena_copy(h->m->arena, f->ints, f->count * sizeof *ints);
        ints[at] = f->key == IR_KEY_starts ? 0
                   : f->key == IR_KEY_limits
                       ? (rows - 1) * halo_ints(n, IR_KEY_strides)[axis] + 1
                       : rows;
        f->ints = ints;
    }
    return ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, ir_attrs_make(h->m, count, fields));
}

static ir_id extend(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                    const struct ir_node *n)
{
    ir_id v = n->out, *in = pass_no_values(h->m, n->n_in);
    struct halo_rows r = t->part[HALO_AROUND].rows[v];
    if (h->front[HALO_AROUND].is[v])
        return deep_halos_from_front(b, h, HALO_AROUND, v, r);
    if (h->inner[v] != IR_NONE && ir_attr_int(n->attrs, IR_KEY_axis) == h->axis[v])
        return rows_in(b, h, t, h->inner[v], halo_move(r, -h->before[v]));
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(h->g, n, i);
        struct ir_origin from = deep_halos_axis(h, n, i);
        in[i] = from.axis < 0 ? t->map[x] : rows_in(b, h, t, x, deep_halos_of_operand(from, r));
    }
    return deep_halos_rebuild(b, h, n, in, r.hi - r.lo);
}

// ---- The loop

// The values of a trip, where those of parameters are known.
static void run_around(struct ir_builder *b, const struct halos *h, struct halo_trip *t)
{
    const struct ir_graph *g = h->g;
    struct halo_part *p = &t->part[HALO_AROUND];
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id v = n->out;
        bool is_own = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            is_own |= t->own[v + k];
        b->where = n->where;
        if (n->n_out && p->wanted[v]) {
            if (n->op != IR_param)
                p->map[v] = extend(b, h, t, n);
            if (n->op != IR_param && h->is_sent[v])
                p->map[v] = masked_rows(b, h, p->map[v], h->axis[v], p->rows[v]);
            if (is_own)
                t->map[v] = rows_in(b, h, t, v, (struct halo_rows){0, halo_count(h, v)});
        } else if (is_own && n->op != IR_param)
            pass_copy_node(b, g, n, t->map);
    }
}

// Whether v is what each trip has a row of.
static bool is_row(const struct halos *h, ir_id v)
{
    return v >= h->n_consts + h->n_carry && v < h->g->n_params;
}

static ir_id row_of(struct ir_builder *b, ir_id x, int64_t at)
{
    x = deep_halos_part(b, x, 0, at, at + 1);
    struct ir_type t = ir_type_in(b, x);
    return ir_reshape(b, x, t.rank - 1, ir_dims(b->module, t) + 1);
}

// The type of what is exchanged in front of v, for as many trips at once as it has a row of each.
static struct ir_type front_type(const struct halos *h, int side, ir_id v)
{
    struct ir_type t = ir_type_of(h->g, v);
    struct halo_rows r = front_rows(h, side, v);
    int64_t dims[IR_MAX_RANK];
    uint16_t varies = t.varies;
    memcpy(dims, ir_dims_of(h->g, v), (size_t)t.rank * sizeof *dims);
    if (h->axis[v] >= 0)
        dims[h->axis[v]] = r.hi - r.lo;
    t = ir_type_make(h->m, ir_dtype(t), t.rank, dims);
    t.varies = varies;
    return is_row(h, v) ? ir_type_stack(h->m, t, h->depth) : t;
}

// The rows that trip k wants of carry i: those that neighbours send, or what the trip before has made, which is
// stored as a carry is.
static ir_id carried_rows(struct ir_builder *b, const struct halos *h, int k, int side,
                          uint32_t i, ir_id param)
{
    struct halo_rows r = deep_halos_rows_at(h, &h->trips[k], side, i);
    ir_id v = h->g->outputs.at[i - h->n_consts], x;
    if (k == 0) {
        x = exchanged(b, h, side, param, h->axis[i], r, h->is_uniform[i]);
        return h->done ? ir_build(b, IR_barrier, 1, &x, NULL) : x;
    }
    if (side != HALO_AROUND)
        x = deep_halos_take(b, h, &h->trips[k - 1], side, v, h->axis[i], r);
    else
        x = rows_in(b, h, &h->trips[k - 1], v, r);
    if (side == HALO_AROUND && h->is_sent[i])
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
        else if (is_row(h, i) && t->own[i])
            t->map[i] = row_of(b, param[i], at);
        if (is_carry && k && h->by_sides && t->own[i])
            t->map[i] = ir_build(b, IR_barrier, 1, &t->map[i], NULL);
        for (int s = 0; s < HALO_SIDES; s++) {
            struct halo_part *p = &t->part[s];
            if (!p->wanted[i])
                continue;
            if (is_carry) {
                p->map[i] = carried_rows(b, h, k, s, i, param[i]);
                continue;
            }
            ir_id all = h->front[s].map[i];
            if (is_row(h, i))
                h->front[s].map[i] = row_of(b, all, at);
            p->map[i] = deep_halos_from_front(b, h, s, i, deep_halos_rows_at(h, t, s, i));
            h->front[s].map[i] = all;
        }
    }
}

// Parameters for what is exchanged in front: of rows, or of the rest.
static void add_fronts(struct ir_builder *b, struct halos *h, bool of_rows)
{
    for (int s = 0; s < HALO_SIDES; s++)
        for (ir_id v = 0; v < h->g->values.count; v++)
            if (h->front[s].is[v] && is_row(h, v) == of_rows)
                h->front[s].map[v] = ir_param(b, front_type(h, s, v));
}

// A body of h->depth trips; what is exchanged in front stands behind the constants and behind the rows.
static uint32_t body_of_trips(struct halos *h, bool reverse)
{
    const struct ir_graph *g = h->g;
    struct ir_builder b = ir_builder_make(h->m, g->name, IR_BUILD_CSE);
    ir_id *param = pass_no_values(h->m, g->n_params);
    for (uint32_t i = 0; i <= g->n_params; i++) {
        if (i == h->n_consts)
            add_fronts(&b, h, false);
        if (i == g->n_params)
            break;
        struct ir_type t = ir_type_of(g, i);
        param[i] = ir_param(&b, is_row(h, i) ? ir_type_stack(h->m, t, h->depth) : t);
    }
    add_fronts(&b, h, true);
    for (int k = 0; k < h->depth; k++) {
        start_trip(&b, h, k, reverse ? h->depth - 1 - k : k, param);
        if (h->by_sides)
            deep_halos_run_sides(&b, h, &h->trips[k]);
        else
            run_around(&b, h, &h->trips[k]);
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

// What no trip changes and is exchanged in front, computed over `in`.
static ir_id *hoist(struct ir_builder *b, const struct halos *h, const ir_id *in)
{
    const struct ir_graph *g = h->g;
    ir_id *map = pass_no_values(h->m, g->values.count);
    bool *wanted = body_mask(h->m, g->values.count);
    for (int s = 0; s < HALO_SIDES; s++)
        for (ir_id v = 0; v < g->values.count; v++)
            wanted[v] |= h->front[s].is[v];
    memcpy(map, in, g->n_params * sizeof *map);
    body_copy_wanted(b, g, wanted, map);
    return map;
}

// Exchanges in front of the loop, of rows or of the rest; how many values it adds to out.
static uint32_t exchange_fronts(struct ir_builder *b, const struct halos *h, const ir_id *map,
                                bool of_rows, ir_id *out)
{
    uint32_t count = 0;
    for (int s = 0; s < HALO_SIDES; s++)
        for (ir_id v = 0; v < h->g->values.count; v++)
            if (h->front[s].is[v] && is_row(h, v) == of_rows)
                out[count++] =
                    exchanged(b, h, s, map[v], h->axis[v] < 0 ? -1 : h->axis[v] + of_rows,
                              front_rows(h, s, v), h->is_uniform[v]);
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

static bool deepened(struct ir_builder *b, struct ir_scan s, uint32_t n_in, const ir_id *in,
                     uint16_t done, ir_id *out);

// The loop, and behind it one of the trips that are left; its results in out.
static void run_loop(struct ir_builder *b, struct halos *h, struct ir_scan s, uint32_t n_in,
                     const ir_id *in, ir_id *out)
{
    uint32_t behind = h->n_consts + h->n_carry, n_out = h->g->outputs.count,
             count = h->n_consts;
    int64_t trips = s.length / h->depth * h->depth, left = s.length - trips;
    int64_t first = s.reverse ? left : 0;
    struct ir_scan deep = s;
    deep.body = body_of_trips(h, s.reverse);
    deep.length = s.length / h->depth;
    ir_id *all = pass_no_values(h->m, n_in + HALO_SIDES * h->g->values.count);
    ir_id *map = hoist(b, h, in);
    memcpy(all, in, h->n_consts * sizeof *all);
    count += exchange_fronts(b, h, map, false, all + count);
    deep.n_consts = (int)count;
    memcpy(all + count, in + h->n_consts, h->n_carry * sizeof *all);
    uint32_t rows = count += h->n_carry;
    memcpy(all + count, in + behind, (n_in - behind) * sizeof *all);
    count += n_in - behind;
    count += exchange_fronts(b, h, map, true, all + count);
    for (uint32_t i = rows; i < count; i++)
        all[i] = grouped(b, deep_halos_part(b, all[i], 0, first, first + trips), h->depth);
    ir_id *y = pass_no_values(h->m, n_out), z = IR_NONE;
    if (!deepened(b, deep, count, all, h->done | ir_over_set(halo_exchange(h)), y)) {
        y[0] = ir_scan(b, &deep, (int)count, all);
        for (uint32_t i = 1; i < n_out; i++)
            y[i] = y[0] + i;
    }
    if (left) {
        memcpy(all, in, h->n_consts * sizeof *all);
        for (uint32_t i = h->n_consts; i < n_in; i++)
            all[i] = i < behind ? y[i - h->n_consts]
                                : deep_halos_part(b, in[i], 0, s.reverse ? 0 : trips,
                                                  s.reverse ? left : s.length);
        s.length = left;
        z = ir_scan(b, &s, (int)n_in, all);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        bool is_carry = i < h->n_carry;
        ir_id a = is_carry ? y[i] : ungrouped(b, y[i]);
        ir_id parts[] = {s.reverse ? z + i : a, s.reverse ? a : z + i};
        out[i] = !left ? a : is_carry ? z + i : ir_concatenate(b, 2, parts, 0);
    }
}

static uint16_t near_axes(const struct ir_module *m)
{
    uint16_t axes = 0;
    for (uint32_t i = 0; i < m->axes.count; i++)
        axes |= m->axes.at[i].is_far ? 0 : (uint16_t)(1u << i);
    return axes;
}

// The loop for several trips at once, along an axis that it exchanges over and has not `done`; whether it has become
// one.
static bool deepened(struct ir_builder *b, struct ir_scan s, uint32_t n_in, const ir_id *in,
                     uint16_t done, ir_id *out)
{
    uint16_t others = done | near_axes(b->module); // far ones first
    for (int is_near = 0; is_near < 2;) {
        struct halos h = {.m = b->module,
                          .g = ir_function(b->module, s.body),
                          .n_consts = (uint32_t)s.n_consts,
                          .n_carry = (uint32_t)s.n_carry,
                          .done = done,
                          .others = others};
        if (deep_halos_find(&h, &s)) {
            run_loop(b, &h, s, n_in, in, out);
            return true;
        }
        if (halo_node(&h))
            others |= ir_over_set(halo_exchange(&h));
        else if (!is_near++)
            others = done;
    }
    return false;
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
        if (deepened(b, s, n->n_in, in, 0, map + n->out))
            return;
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
