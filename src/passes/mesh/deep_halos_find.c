// SPDX-License-Identifier: Apache-2.0
// Loops whose lanes may exchange borders once for several trips (deep_halos.c): which values are arrays with rows
// of neighbours around, and which rows each trip wants of each value.
#include "passes/mesh/deep_halos.h"

// ---- Halos

// Whether n exchanges the first or the last rows of x along the axis; how many.
static int64_t border_of(const struct ir_graph *g, ir_id border, ir_id x, int axis, bool first,
                         uint16_t others)
{
    const struct ir_node *n = ir_node_of(g, border), *s;
    int64_t count = ir_dims_of(g, x)[axis];
    if (n->op != IR_ppermute || ir_over_set(n->attrs) & others)
        return 0;
    s = ir_node_of(g, ir_operand(g, n, 0));
    if (s->op != IR_slice || ir_operand(g, s, 0) != x)
        return s->out == x ? count : 0;
    const int64_t *starts = halo_ints(s, IR_KEY_starts), *limits = halo_ints(s, IR_KEY_limits);
    int64_t size = limits[axis] - starts[axis];
    if (halo_ints(s, IR_KEY_strides)[axis] != 1 ||
        ir_count_of(g, s->out) * count != ir_count_of(g, x) * size)
        return 0;
    return first ? (starts[axis] == 0 ? size : 0) : limits[axis] == count ? size : 0;
}

// Whether the one sends what the other receives, over the same axes.
static bool is_reverse(const struct ir_node *a, const struct ir_node *b)
{
    int n, n_back, n_over, n_over_back;
    const int64_t *pairs = ir_attr_ints(a->attrs, IR_KEY_pairs, &n);
    const int64_t *back = ir_attr_ints(b->attrs, IR_KEY_pairs, &n_back);
    const int64_t *over = ir_over(a->attrs, &n_over),
                  *over_back = ir_over(b->attrs, &n_over_back);
    bool is = n == n_back && n_over == n_over_back &&
              !memcmp(over, over_back, (size_t)n_over * sizeof *over);
    for (int i = 0; i < n && is; i += 2) {
        bool found = false;
        for (int k = 0; k < n && !found; k += 2)
            found = pairs[i] == back[k + 1] && pairs[i + 1] == back[k];
        is = found;
    }
    return is;
}

// Takes n as what comes of one side; whether it comes of the same lanes as all that is known.
static bool take_side(const struct ir_node **side, const struct ir_node *other,
                      const struct ir_node *n)
{
    if ((*side && (*side)->attrs != n->attrs) || (other && !is_reverse(n, other)))
        return false;
    *side = n;
    return true;
}

// Whether n is operand `at` with rows of neighbours on one side or on both.
static bool is_halo(struct halos *h, const struct ir_node *n, uint32_t at)
{
    const struct ir_graph *g = h->g;
    ir_id x = ir_operand(g, n, at);
    int axis = (int)ir_attr_int(n->attrs, IR_KEY_axis);
    int64_t count = ir_dims_of(g, x)[axis], above = 0, below = 0;
    if (at > 1 || n->n_in - at > 2)
        return false;
    if (at == 1)
        above = border_of(g, ir_operand(g, n, 0), x, axis, false, h->others);
    if (n->n_in - at == 2)
        below = border_of(g, ir_operand(g, n, at + 1), x, axis, true, h->others);
    if ((at == 1 && !above) || (n->n_in - at == 2 && !below) ||
        (h->count && h->count != count) ||
        (above && !take_side(&h->down, h->up, ir_node_of(g, ir_operand(g, n, 0)))) ||
        (below && !take_side(&h->up, h->down, ir_node_of(g, ir_operand(g, n, at + 1)))))
        return false;
    h->count = count;
    h->inner[n->out] = x;
    h->is_sent[x] = true;
    h->before[n->out] = above;
    return true;
}

static void find_halos(struct halos *h)
{
    ir_for_each_node (h->g, n) {
        bool found = n->op != IR_concatenate || n->n_in < 2;
        for (uint32_t at = 0; at < n->n_in && !found; at++)
            found = is_halo(h, n, at);
    }
}

// The exchanges with the lanes before and behind; whether there are some, and no others along their axes.
static bool find_sides(struct halos *h)
{
    h->down = h->up = NULL;
    ir_for_each_node (h->g, n)
        if (!h->down && n->op == IR_ppermute && !(ir_over_set(n->attrs) & h->others))
            h->down = n;
    if (!h->down)
        return false;
    uint16_t over = ir_over_set(h->down->attrs);
    ir_for_each_node (h->g, n)
        if (ir_axes_exchanged(h->g, n) & over &&
            (n->op != IR_ppermute ||
             (!take_side(&h->down, h->up, n) && !take_side(&h->up, h->down, n))))
            return false;
    h->is_swap = is_reverse(halo_node(h), halo_node(h));
    return true;
}

// What is the same in all trips, and in all lanes.
static bool find_equal(struct halos *h)
{
    const struct ir_graph *g = h->g;
    uint16_t over = ir_over_set(halo_exchange(h));
    ir_for_each_node (g, n) {
        bool is_invariant =
            n->op == IR_param ? n->out < h->n_consts : !ir_has_bodies((enum ir_op)n->op);
        bool is_uniform = n->n_in > 0;
        for (uint32_t i = 0; i < n->n_in; i++) {
            is_invariant &= h->is_invariant[ir_operand(g, n, i)];
            is_uniform &= h->is_uniform[ir_operand(g, n, i)];
        }
        for (uint32_t k = 0; k < n->n_out; k++) {
            h->is_invariant[n->out + k] = is_invariant;
            h->is_uniform[n->out + k] =
                is_uniform || !(ir_type_of(g, n->out + k).varies & over);
        }
        if (ir_has_effect(g, n))
            return false;
    }
    return true;
}

// ---- What trips want

struct halo_rows deep_halos_hull(struct halo_rows a, struct halo_rows b)
{
    return (struct halo_rows){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static void want_rows(struct halos *h, struct halo_trip *t, ir_id v, int axis,
                      struct halo_rows r)
{
    struct halo_part *p = &t->part[HALO_AROUND];
    int64_t count = ir_dims_of(h->g, v)[axis];
    h->fails |= h->axis[v] >= 0 && h->axis[v] != axis;
    h->axis[v] = (int8_t)axis;
    p->rows[v] = deep_halos_hull(p->wanted[v] ? p->rows[v] : (struct halo_rows){0, count}, r);
    p->wanted[v] = true;
    h->fails |= p->rows[v].lo < -h->count || p->rows[v].hi > count + h->count;
}

bool deep_halos_by_rows(const struct halos *h, const struct ir_node *n)
{
    // The bits of a product depend on how many rows it has.
    bool is = n->n_out == 1 && ir_op_class((enum ir_op)n->op) != IR_CLASS_CONTRACT;
    struct ir_origin from;
    for (uint32_t i = 0; i < n->n_in && is; i++)
        is = halo_is_across(h, n) || ir_origin_of(h->g, n, i, h->axis[n->out], &from);
    return is;
}

struct ir_origin deep_halos_axis(const struct halos *h, const struct ir_node *n, uint32_t i)
{
    struct ir_origin from = {halo_is_across(h, n) ? h->axis[n->out] : -1, 1, 0};
    (void)!ir_origin_of(h->g, n, i, h->axis[n->out], &from);
    return from;
}

struct halo_rows deep_halos_of_operand(struct ir_origin from, struct halo_rows r)
{
    int64_t a = from.offset + from.step * r.lo, b = from.offset + from.step * (r.hi - 1);
    return (struct halo_rows){a < b ? a : b, (a > b ? a : b) + 1};
}

// Whether row r of the result, of this lane or a neighbour, is made of one row of operands near it, and of what all lanes
// have.
static bool goes_around(const struct halos *h, const struct ir_node *n)
{
    const struct ir_graph *g = h->g;
    bool is = deep_halos_by_rows(h, n);
    for (uint32_t i = 0; i < n->n_in && is; i++) {
        ir_id x = ir_operand(g, n, i);
        struct ir_origin from = deep_halos_axis(h, n, i);
        is = from.axis < 0
                 ? h->is_uniform[x]
                 : from.step == 1 &&
                       (n->op == IR_slice || (from.offset == 0 && ir_dims_of(g, x)[from.axis] ==
                                                                      halo_count(h, n->out)));
    }
    return is;
}

void deep_halos_exchange_in_front(struct halos *h, int side, ir_id v, struct halo_rows r)
{
    struct halo_front *f = &h->front[side];
    f->rows[v] = f->is[v] ? deep_halos_hull(f->rows[v], r) : r;
    f->is[v] = true;
}

static void want_of_operands(struct halos *h, struct halo_trip *t, const struct ir_node *n)
{
    const struct ir_graph *g = h->g;
    ir_id v = n->out;
    struct halo_rows r = t->part[HALO_AROUND].rows[v];
    if (h->inner[v] != IR_NONE && ir_attr_int(n->attrs, IR_KEY_axis) == h->axis[v])
        want_rows(h, t, h->inner[v], h->axis[v], halo_move(r, -h->before[v]));
    else if (goes_around(h, n))
        for (uint32_t i = 0; i < n->n_in; i++) {
            struct ir_origin from = deep_halos_axis(h, n, i);
            if (from.axis < 0)
                t->own[ir_operand(g, n, i)] = true;
            else
                want_rows(h, t, ir_operand(g, n, i), from.axis, deep_halos_of_operand(from, r));
        }
    else { // what no trip changes is exchanged once
        h->fails |= !h->is_invariant[v] || halo_count(h, v) != h->count;
        deep_halos_exchange_in_front(h, HALO_AROUND, v, r);
    }
}

// What a trip wants of its values, when others want results or the next trip wants carries.
static void want_around(struct halos *h, struct halo_trip *t, const struct halo_trip *next)
{
    const struct ir_graph *g = h->g;
    struct halo_part *p = &t->part[HALO_AROUND];
    for (uint32_t i = 0; i < h->n_carry && next; i++)
        if (next->part[HALO_AROUND].wanted[h->n_consts + i])
            want_rows(h, t, g->outputs.at[i], h->axis[h->n_consts + i],
                      next->part[HALO_AROUND].rows[h->n_consts + i]);
    for (uint32_t at = g->nodes.count; at-- > g->n_params && !h->fails;) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id v = n->out;
        bool is_own = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            is_own |= t->own[v + k] && !p->wanted[v + k];
        if (is_own && h->inner[v] != IR_NONE) {
            int axis = (int)ir_attr_int(n->attrs, IR_KEY_axis);
            want_rows(h, t, v, axis, (struct halo_rows){0, ir_dims_of(g, v)[axis]});
            is_own = false;
        }
        if (n->n_out && p->wanted[v])
            want_of_operands(h, t, n);
        h->fails |= is_own && ir_exchanges((enum ir_op)n->op) && !halo_is_across(h, n);
        for (uint32_t i = 0; i < n->n_in && is_own; i++)
            t->own[ir_operand(g, n, i)] = true;
    }
    for (uint32_t i = 0; i < g->n_params; i++)
        h->fails |= p->wanted[i] && halo_count(h, i) != h->count;
}

// What a trip wants, and of parameters that are no carries what is exchanged in front of the loop.
static void want(struct halos *h, struct halo_trip *t, const struct halo_trip *next)
{
    const struct ir_graph *g = h->g;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        t->own[g->outputs.at[i]] |= !next || i >= h->n_carry || next->own[h->n_consts + i];
    if (h->by_sides)
        deep_halos_want_sides(h, t, next);
    else
        want_around(h, t, next);
    for (int s = 0; s < HALO_SIDES && !h->fails; s++)
        for (uint32_t i = 0; i < g->n_params; i++)
            if (t->part[s].wanted[i] && (i < h->n_consts || i >= h->n_consts + h->n_carry))
                deep_halos_exchange_in_front(h, s, i, t->part[s].rows[i]);
}

static bool want_all(struct halos *h)
{
    uint32_t n = h->g->values.count;
    memset(h->axis, -1, n);
    h->trips = arena_array(h->m->arena, struct halo_trip, h->depth);
    for (int s = 0; s < HALO_SIDES; s++)
        memset(h->front[s].is, 0, n * sizeof *h->front[s].is);
    for (int k = h->depth; k-- > 0;) {
        struct halo_trip *t = &h->trips[k];
        *t = (struct halo_trip){.own = body_mask(h->m, n), .map = pass_no_values(h->m, n)};
        for (int s = 0; s < HALO_SIDES; s++)
            t->part[s] =
                (struct halo_part){.wanted = body_mask(h->m, n),
                                   .rows = arena_array(h->m->arena, struct halo_rows, n + 1),
                                   .map = pass_no_values(h->m, n)};
        want(h, t, k + 1 < h->depth ? &h->trips[k + 1] : NULL);
    }
    return !h->fails;
}

// ---- Which loops

// How many rows of neighbours a trip wants of a value, at most those of one side.
static int64_t reach_of(const struct halos *h, const struct halo_trip *t, ir_id v)
{
    int64_t reach = 0, count = h->axis[v] < 0 ? 1 : halo_count(h, v);
    for (int s = 0; s < HALO_SIDES; s++) {
        struct halo_rows r = deep_halos_rows_at(h, t, s, v);
        int64_t above = s == HALO_BEFORE ? count - r.lo : -r.lo;
        int64_t below = s == HALO_BEHIND ? r.hi : r.hi - count;
        if (!t->part[s].wanted[v])
            continue;
        reach = s != HALO_BEHIND && above > reach ? above : reach;
        reach = s != HALO_BEFORE && below > reach ? below : reach;
    }
    return reach;
}

// The terms of each element that n computes.
static int64_t terms_of(const struct ir_graph *g, const struct ir_node *n)
{
    int count;
    int64_t terms = 1;
    if (n->op != IR_dot_general)
        return terms;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &count);
    for (int i = 0; i < count; i++)
        terms *= ir_dims_of(g, ir_operand(g, n, 0))[axes[i]];
    return terms;
}

// Elements that a lane computes of its own, and what it does of those of its neighbours.
static void count_work(const struct halos *h, int64_t *own, int64_t *beside)
{
    *own = *beside = 0;
    for (int k = 0; k < h->depth; k++)
        ir_for_each_node (h->g, n) {
            const struct halo_trip *t = &h->trips[k];
            ir_id v = n->out;
            if (n->op == IR_param || !n->n_out)
                continue;
            int64_t count = ir_count(h->m, ir_type_of(h->g, v)) * terms_of(h->g, n);
            int64_t rows = h->axis[v] >= 0 ? halo_count(h, v) : 0;
            if (t->own[v] || t->part[HALO_AROUND].wanted[v])
                *own += count;
            for (int s = 0; s < HALO_SIDES; s++) {
                struct halo_rows r = deep_halos_rows_at(h, t, s, v);
                int64_t more = r.hi - r.lo - (s == HALO_AROUND ? rows : 0);
                if (t->part[s].wanted[v])
                    *beside += rows ? count / rows * more : count;
            }
        }
}

// What is done of neighbours is a small part of the work, or little in each trip.
static bool is_little_beside(const struct halos *h)
{
    int64_t own, beside, trips = h->done ? COST_HALO_TRIPS : h->depth;
    count_work(h, &own, &beside);
    return beside * COST_HALO_WORK_SHARE <= own ||
           beside <= trips * (halo_is_far(h) ? COST_HALO_FAR_WORK : COST_HALO_WORK);
}

// Rows of a neighbour that a lane does itself are few, or little beside an exchange.
static bool is_cheap(const struct halos *h)
{
    int64_t bytes = 0;
    bool are_few = true;
    for (uint32_t i = h->n_consts; i < h->n_consts + h->n_carry; i++) {
        int64_t reach = reach_of(h, &h->trips[0], i);
        int64_t count = h->axis[i] < 0 ? 1 : halo_count(h, i);
        if (reach > count)
            return false;
        are_few &= reach * COST_HALO_SHARE <= count;
        bytes += reach * (ir_count(h->m, ir_type_of(h->g, i)) / (count ? count : 1)) *
                 dtype_get(ir_dtype_of(h->g, i))->bytes;
    }
    return (are_few || bytes <= halo_most_bytes(h)) &&
           ((!h->by_sides && !h->done) || is_little_beside(h));
}

static bool find_depth(struct halos *h, const struct ir_scan *s)
{
    int least = h->done ? 1 : 2; // one trip of a deep loop is several
    h->depth = h->done ? 1 : COST_HALO_TRIPS < s->length ? COST_HALO_TRIPS : (int)s->length;
    for (; h->depth >= least && (!h->done || halo_is_far(h)); h->depth--) {
        h->fails = false;
        if (want_all(h) && is_cheap(h))
            return true;
    }
    return false;
}

bool deep_halos_find(struct halos *h, const struct ir_scan *s)
{
    uint32_t n = h->g->values.count;
    h->inner = pass_no_values(h->m, n);
    h->before = arena_array(h->m->arena, int64_t, n + 1);
    h->axis = arena_array(h->m->arena, int8_t, n + 1);
    h->is_invariant = body_mask(h->m, n);
    h->is_uniform = body_mask(h->m, n);
    h->is_sent = body_mask(h->m, n);
    for (int k = 0; k < HALO_SIDES; k++)
        h->front[k] =
            (struct halo_front){.is = body_mask(h->m, n),
                                .rows = arena_array(h->m->arena, struct halo_rows, n + 1),
                                .map = pass_no_values(h->m, n)};
    find_halos(h);
    if (h->count && find_equal(h) && find_depth(h, s))
        return true;
    h->by_sides = true;
    return (!h->done || h->g->nodes.count <= COST_HALO_CODE) && find_sides(h) &&
           find_equal(h) && find_depth(h, s);
}
