// SPDX-License-Identifier: Apache-2.0
// Loops whose lanes do what their neighbours do with some rows, each lane's rows apart (deep_halos.c).
//
//     scan { e = pad u; u = slice e + pad (ppermute (slice e)) }        the way back of a halo: rows of
//                                                                       neighbours are added to u
// becomes
//     scan { a = ppermute (last k rows of u), b = ppermute (first k rows of u)
//            e = pad u, ea = the last rows of pad a, eb = the first rows of pad b
//            u = slice e + pad (slice ea); a = ...; b = ...             k times }
//
// What a trip takes from the lane before or behind it makes itself, of rows that it has of that lane: there each
// op is the body's, on the rows that are wanted.  So a trip may be anything; what has no rows, or needs all, is computed as
// a whole where it is small.
#include "passes/mesh/deep_halos.h"

enum { ALL = -1 }; // the axis of rows of a value that is wanted as a whole

static const struct halo_rows all_rows = {0, INT64_MAX};

struct halo_rows deep_halos_rows_at(const struct halos *h, const struct halo_trip *t, int side,
                                    ir_id v)
{
    struct halo_rows r = t->part[side].rows[v];
    if (r.hi == INT64_MAX && h->axis[v] >= 0)
        r.hi = halo_count(h, v);
    return r;
}

// The side of the lane that n takes its result from.
static enum halo_side source_of(const struct halos *h, const struct ir_node *n)
{
    return h->down && n->attrs == h->down->attrs ? HALO_BEFORE : HALO_BEHIND;
}

// Whether the lane at the side has from this one what n gives.
static bool is_from_here(const struct halos *h, const struct ir_node *n, enum halo_side side)
{
    return h->is_swap || source_of(h, n) != side;
}

// ---- What is wanted

// The axis along which v is a part of its operand, or has it as a part.
static int cut_axis(const struct halos *h, ir_id v)
{
    const struct ir_node *n = ir_node_of(h->g, v);
    if (n->op == IR_slice || n->op == IR_pad || n->op == IR_concatenate)
        for (int k = 0; k < ir_rank_of(h->g, v); k++)
            if (ir_dims_of(h->g, v)[k] != ir_dims_of(h->g, ir_operand(h->g, n, 0))[k])
                return k;
    return ALL;
}

// Those rows that v has.
static struct halo_rows inside(const struct halos *h, ir_id v, int axis, struct halo_rows r)
{
    int64_t count = ir_dims_of(h->g, v)[axis];
    return (struct halo_rows){r.lo < 0 ? 0 : r.lo, r.hi > count ? count : r.hi};
}

static void want_rows(struct halos *h, struct halo_trip *t, int side, ir_id v, int axis,
                      struct halo_rows r)
{
    struct halo_part *p = &t->part[side];
    if (h->is_uniform[v]) {
        t->own[v] = true;
        return;
    }
    if (axis == ALL) {
        axis = h->axis[v] >= 0 ? h->axis[v] : cut_axis(h, v);
        r = all_rows;
        h->fails |=
            ir_count(h->m, ir_type_of(h->g, v)) * dtype_get(ir_dtype_of(h->g, v))->bytes >
            halo_most_bytes(h);
    } else {
        r = inside(h, v, axis, r);
    }
    if (r.lo >= r.hi)
        return;
    h->fails |= h->axis[v] >= 0 && axis != h->axis[v];
    h->axis[v] = (int8_t)axis;
    p->rows[v] = p->wanted[v] ? deep_halos_hull(p->rows[v], r) : r;
    p->wanted[v] = true;
}

static void want_of_operands(struct halos *h, struct halo_trip *t, const struct ir_node *n,
                             int side)
{
    const struct ir_graph *g = h->g;
    ir_id v = n->out;
    struct halo_rows r = deep_halos_rows_at(h, t, side, v);
    if (h->is_invariant[v]) {
        deep_halos_exchange_in_front(h, side, v, r);
    } else if (halo_is_exchange(h, n)) {
        h->fails |= !is_from_here(h, n, (enum halo_side)side);
        t->own[ir_operand(g, n, 0)] = true;
    } else if (ir_axes_exchanged(g, n) && !(halo_is_far(h) && halo_is_across(h, n))) {
        h->fails = true; // would be in each trip once more for each side
    } else if (h->axis[v] != ALL && deep_halos_by_rows(h, n)) {
        for (uint32_t i = 0; i < n->n_in; i++) {
            struct ir_origin from = deep_halos_axis(h, n, i);
            want_rows(h, t, side, ir_operand(g, n, i), from.axis,
                      deep_halos_of_operand(from, r));
        }
    } else {
        h->fails |= n->n_out != 1 || ir_has_bodies((enum ir_op)n->op) ||
                    ir_op_class((enum ir_op)n->op) == IR_CLASS_LIBRARY;
        t->part[side].rows[v] = all_rows;
        for (uint32_t i = 0; i < n->n_in; i++)
            want_rows(h, t, side, ir_operand(g, n, i), ALL, all_rows);
    }
}

void deep_halos_want_sides(struct halos *h, struct halo_trip *t, const struct halo_trip *next)
{
    const struct ir_graph *g = h->g;
    for (uint32_t i = 0; i < h->n_carry && next; i++)
        for (int s = 0; s < HALO_SIDES; s++)
            if (next->part[s].wanted[h->n_consts + i])
                want_rows(h, t, s, g->outputs.at[i], h->axis[h->n_consts + i],
                          next->part[s].rows[h->n_consts + i]);
    for (uint32_t at = g->nodes.count; at-- > g->n_params && !h->fails;) {
        const struct ir_node *n = &g->nodes.at[at];
        for (int s = 0; s < HALO_SIDES; s++)
            for (uint32_t k = 0; k < n->n_out; k++)
                if (t->part[s].wanted[n->out + k])
                    want_of_operands(h, t, n, s);
        bool is_own = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            is_own |= t->own[n->out + k];
        for (uint32_t i = 0; i < n->n_in && is_own; i++)
            if (halo_is_exchange(h, n))
                want_rows(h, t, source_of(h, n), ir_operand(g, n, i), ALL, all_rows);
            else
                t->own[ir_operand(g, n, i)] = true;
    }
}

// ---- Values

ir_id deep_halos_take(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                      int side, ir_id v, int axis, struct halo_rows r)
{
    if (h->is_uniform[v])
        return deep_halos_part(b, t->map[v], axis, r.lo, r.hi);
    int64_t first = h->axis[v] == ALL ? 0 : deep_halos_rows_at(h, t, side, v).lo;
    return deep_halos_part(b, t->part[side].map[v], axis, r.lo - first, r.hi - first);
}

static ir_id padded(struct ir_builder *b, const struct halos *h, const struct ir_node *n,
                    ir_id x, ir_id value, struct halo_rows r, struct halo_rows has, int64_t low)
{
    int axis = h->axis[n->out], rank = ir_rank_of(h->g, n->out);
    int64_t lows[IR_MAX_RANK], highs[IR_MAX_RANK], dims[IR_MAX_RANK];
    memcpy(dims, ir_dims_of(h->g, n->out), (size_t)rank * sizeof *dims);
    dims[axis] = r.hi - r.lo;
    if (has.lo >= has.hi)
        return ir_broadcast_in_dim(b, value, rank, dims, NULL);
    memcpy(lows, halo_ints(n, IR_KEY_low), (size_t)rank * sizeof *lows);
    memcpy(highs, halo_ints(n, IR_KEY_high), (size_t)rank * sizeof *highs);
    lows[axis] = has.lo - (r.lo - low);
    highs[axis] = (r.hi - low) - has.hi;
    return ir_pad(b, x, value, lows, highs, halo_ints(n, IR_KEY_interior));
}

// Rows r of n's result at a side, of rows of its operands.
static ir_id by_rows(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                     const struct ir_node *n, int side, struct halo_rows r)
{
    const struct ir_graph *g = h->g;
    ir_id *in = pass_no_values(h->m, n->n_in);
    struct halo_rows has = {0, 0};
    int count = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        struct ir_origin from = deep_halos_axis(h, n, i);
        struct halo_rows rows = deep_halos_of_operand(from, r);
        if (from.axis >= 0)
            rows = inside(h, x, from.axis, rows);
        has = i == 0 ? rows : has;
        if (from.axis < 0 || rows.lo < rows.hi)
            in[count++] = deep_halos_take(b, h, t, side, x, from.axis, rows);
        else if (n->op != IR_concatenate)
            in[count++] = IR_NONE;
    }
    if (n->op == IR_pad)
        return padded(b, h, n, in[0], in[1], r, has, halo_ints(n, IR_KEY_low)[h->axis[n->out]]);
    if (n->op == IR_concatenate)
        return count == 1
                   ? in[0]
                   : ir_concatenate(b, count, in, (int)ir_attr_int(n->attrs, IR_KEY_axis));
    return deep_halos_rebuild(b, h, n, in, r.hi - r.lo);
}

static ir_id at_side(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                     const struct ir_node *n, int side)
{
    const struct ir_graph *g = h->g;
    ir_id v = n->out;
    struct halo_rows r = deep_halos_rows_at(h, t, side, v);
    if (h->front[side].is[v])
        return deep_halos_from_front(b, h, side, v, r);
    if (halo_is_exchange(h, n))
        return deep_halos_part(b, t->map[ir_operand(g, n, 0)], h->axis[v], r.lo, r.hi);
    if (h->axis[v] != ALL && deep_halos_by_rows(h, n))
        return by_rows(b, h, t, n, side, r);
    ir_id *in = pass_no_values(h->m, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = deep_halos_take(b, h, t, side, ir_operand(g, n, i), ALL, all_rows);
    return ir_rebuild(b, g, n, in);
}

// What the neighbour sends; zeros where there is none.
static ir_id received(struct ir_builder *b, const struct halos *h, const struct halo_trip *t,
                      const struct ir_node *n)
{
    ir_id x = deep_halos_take(b, h, t, source_of(h, n), ir_operand(h->g, n, 0), ALL, all_rows);
    ir_id alone = deep_halos_alone(b, n);
    return alone == IR_NONE ? x : ir_select(b, alone, ir_scalar_like(b, x, 0), x);
}

void deep_halos_run_sides(struct ir_builder *b, const struct halos *h, struct halo_trip *t)
{
    const struct ir_graph *g = h->g;
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        bool is_own = false;
        b->where = n->where;
        for (uint32_t k = 0; k < n->n_out; k++)
            is_own |= t->own[n->out + k];
        if (is_own && halo_is_exchange(h, n))
            t->map[n->out] = received(b, h, t, n);
        else if (is_own)
            pass_copy_node(b, g, n, t->map);
        for (int s = 0; s < HALO_SIDES; s++)
            for (uint32_t k = 0; k < n->n_out; k++)
                if (t->part[s].wanted[n->out + k])
                    t->part[s].map[n->out + k] = at_side(b, h, t, n, s);
    }
}
