// SPDX-License-Identifier: Apache-2.0
// Loops whose lanes may exchange borders once for several trips (deep_halos.c): which values are arrays with rows
// of neighbours around, and which rows each trip wants of each value.
#include "passes/cost.h"
#include "passes/deep_halos.h"

// ---- Halos

// Whether n exchanges the first or the last rows of x along the axis; how many.
static int64_t border_of(const struct ir_graph *g, ir_id border, ir_id x, int axis, bool first)
{
    const struct ir_node *n = ir_node_of(g, border), *s;
    int64_t count = ir_dims_of(g, x)[axis];
    if (n->op != IR_ppermute)
        return 0;
    s = ir_node_of(g, ir_operand(g, n, 0));
    if (s->op != IR_slice || ir_operand(g, s, 0) != x)
        return s->out == x ? count : 0;
    const int64_t *starts = halo_ints(s, IR_KEY_starts), *limits = halo_ints(s, IR_KEY_limits);
    int64_t size = limits[axis] - starts[axis];
    if (halo_ints(s, IR_KEY_strides)[axis] != 1 ||
        ir_count(g->module, ir_type_of(g, s->out)) * count !=
            ir_count(g->module, ir_type_of(g, x)) * size)
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
        above = border_of(g, ir_operand(g, n, 0), x, axis, false);
    if (n->n_in - at == 2)
        below = border_of(g, ir_operand(g, n, at + 1), x, axis, true);
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

// What is the same in all trips, and in all lanes.
static void find_equal(struct halos *h)
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
        h->fails |= ir_has_effect(g, n);
    }
}

// ---- What trips want

static struct halo_rows hull(struct halo_rows a, struct halo_rows b)
{
    return (struct halo_rows){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static void want_rows(struct halos *h, struct halo_trip *t, ir_id v, int axis,
                      struct halo_rows r)
{
    int64_t count = ir_dims_of(h->g, v)[axis];
    h->fails |= h->axis[v] >= 0 && h->axis[v] != axis;
    h->axis[v] = (int8_t)axis;
    t->rows[v] = hull(t->extended[v] ? t->rows[v] : (struct halo_rows){0, count}, r);
    t->extended[v] = true;
    h->fails |= t->rows[v].lo < -h->count || t->rows[v].hi > count + h->count;
}

int deep_halos_axis(const struct halos *h, const struct ir_node *n, uint32_t i)
{
    const struct ir_graph *g = h->g;
    ir_id x = ir_operand(g, n, i);
    int axis = h->axis[n->out], rank = ir_rank_of(g, x), found = -1;
    const int64_t *dims = ir_dims_of(g, x), *all = ir_dims_of(g, n->out);
    int64_t before = 1, wanted = 1;
    switch (n->op) {
    case IR_slice:
    case IR_concatenate:
    case IR_rev:
        return axis;
    case IR_pad:
        return i == 0 ? axis : -1;
    case IR_transpose:
        return (int)halo_ints(n, IR_KEY_axes)[axis];
    case IR_broadcast_in_dim:
        for (int k = 0; k < rank; k++)
            found = halo_ints(n, IR_KEY_axes)[k] == axis ? k : found;
        break;
    case IR_reshape:
        for (int k = 0; k < axis; k++)
            wanted *= all[k];
        for (int k = 0; k < rank && found < 0; before *= dims[k++])
            found = before == wanted && dims[k] == all[axis] ? k : -1;
        break;
    default:
        found = axis - (ir_rank_of(g, n->out) - rank);
    }
    return found >= 0 && dims[found] == all[axis] ? found : -1;
}

// Whether row r of the result is made of rows near r of operands, and of what all lanes have.
static bool goes_by_rows(const struct halos *h, const struct ir_node *n)
{
    int axis = h->axis[n->out], n_axes;
    bool is = true;
    const int64_t *axes;
    switch (n->op) {
    case IR_slice:
        is = halo_ints(n, IR_KEY_strides)[axis] == 1;
        break;
    case IR_pad:
        is = halo_ints(n, IR_KEY_low)[axis] == 0 && halo_ints(n, IR_KEY_high)[axis] == 0 &&
             halo_ints(n, IR_KEY_interior)[axis] == 0;
        break;
    case IR_concatenate:
        is = ir_attr_int(n->attrs, IR_KEY_axis) != axis;
        break;
    case IR_rev:
        axes = ir_attr_ints(n->attrs, IR_KEY_axes, &n_axes);
        for (int i = 0; i < n_axes; i++)
            is &= axes[i] != axis;
        break;
    case IR_reshape:
    case IR_transpose:
    case IR_broadcast_in_dim:
    case IR_pvary:
        break;
    default:
        is = ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP && n->n_out == 1;
    }
    for (uint32_t i = 0; i < n->n_in && is; i++)
        is = deep_halos_axis(h, n, i) >= 0 || h->is_uniform[ir_operand(h->g, n, i)];
    return is;
}

static void want_of_operands(struct halos *h, struct halo_trip *t, const struct ir_node *n)
{
    const struct ir_graph *g = h->g;
    ir_id v = n->out;
    struct halo_rows r = t->rows[v];
    if (h->inner[v] != IR_NONE && ir_attr_int(n->attrs, IR_KEY_axis) == h->axis[v])
        want_rows(h, t, h->inner[v], h->axis[v], halo_move(r, -h->before[v]));
    else if (goes_by_rows(h, n))
        for (uint32_t i = 0; i < n->n_in; i++) {
            int axis = deep_halos_axis(h, n, i);
            if (axis < 0)
                t->own[ir_operand(g, n, i)] = true;
            else
                want_rows(h, t, ir_operand(g, n, i), axis,
                          n->op == IR_slice ? halo_move(r, halo_ints(n, IR_KEY_starts)[axis])
                                            : r);
        }
    else { // what no trip changes is exchanged once
        h->fails |= !h->is_invariant[v] || halo_count(h, v) != h->count;
        h->hoisted_rows[v] = h->is_hoisted[v] ? hull(h->hoisted_rows[v], r) : r;
        h->is_hoisted[v] = true;
    }
}

// What a trip wants of its values, when others want results or the next trip wants carries.
static void want(struct halos *h, struct halo_trip *t, const struct halo_trip *next)
{
    const struct ir_graph *g = h->g;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i], carry = h->n_consts + i;
        if (next && i < h->n_carry && next->extended[carry])
            want_rows(h, t, v, h->axis[carry], next->rows[carry]);
        t->own[v] |= !next || i >= h->n_carry || next->own[carry];
    }
    for (uint32_t at = g->nodes.count; at-- > g->n_params && !h->fails;) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id v = n->out;
        bool is_own = false;
        for (uint32_t k = 0; k < n->n_out; k++)
            is_own |= t->own[v + k] && !t->extended[v + k];
        if (is_own && h->inner[v] != IR_NONE) {
            int axis = (int)ir_attr_int(n->attrs, IR_KEY_axis);
            want_rows(h, t, v, axis, (struct halo_rows){0, ir_dims_of(g, v)[axis]});
            is_own = false;
        }
        if (n->n_out && t->extended[v])
            want_of_operands(h, t, n);
        h->fails |= is_own && ir_exchanges((enum ir_op)n->op);
        for (uint32_t i = 0; i < n->n_in && is_own; i++)
            t->own[ir_operand(g, n, i)] = true;
    }
    for (uint32_t i = 0; i < g->n_params; i++)
        if (t->extended[i] && (i < h->n_consts || i >= h->n_consts + h->n_carry)) {
            h->fails |= i >= h->n_consts || halo_count(h, i) != h->count;
            h->hoisted_rows[i] =
                h->is_hoisted[i] ? hull(h->hoisted_rows[i], t->rows[i]) : t->rows[i];
            h->is_hoisted[i] = true;
        } else if (t->extended[i])
            h->fails |= halo_count(h, i) != h->count;
}

static bool want_all(struct halos *h)
{
    uint32_t n = h->g->values.count;
    memset(h->axis, -1, n);
    memset(h->is_hoisted, 0, n * sizeof *h->is_hoisted);
    h->trips = arena_array(h->m->arena, struct halo_trip, h->depth);
    for (int k = h->depth; k-- > 0;) {
        h->trips[k] =
            (struct halo_trip){.own = body_mask(h->m, n),
                               .extended = body_mask(h->m, n),
                               .rows = arena_array(h->m->arena, struct halo_rows, n + 1),
                               .map = pass_no_values(h->m, n),
                               .all = pass_no_values(h->m, n)};
        want(h, &h->trips[k], k + 1 < h->depth ? &h->trips[k + 1] : NULL);
    }
    return !h->fails;
}

// ---- Which loops

// Rows of a neighbour that a lane does itself are few, or little beside an exchange.
static bool is_cheap(const struct halos *h)
{
    const struct halo_trip *t = &h->trips[0];
    int64_t reach = 0, bytes = 0;
    for (uint32_t i = h->n_consts; i < h->n_consts + h->n_carry; i++)
        if (t->extended[i]) {
            int64_t above = -t->rows[i].lo, below = t->rows[i].hi - h->count;
            reach = above > reach ? above : reach;
            reach = below > reach ? below : reach;
            bytes += ir_count(h->m, ir_type_of(h->g, i)) / h->count *
                     dtype_get(ir_dtype_of(h->g, i))->bytes;
        }
    return reach <= h->count &&
           (reach * COST_HALO_SHARE <= h->count || reach * bytes <= COST_HALO_BYTES);
}

bool deep_halos_find(struct halos *h, const struct ir_scan *s)
{
    const struct ir_graph *g = h->g;
    uint32_t n = g->values.count;
    h->inner = pass_no_values(h->m, n);
    h->before = arena_array(h->m->arena, int64_t, n + 1);
    h->axis = arena_array(h->m->arena, int8_t, n + 1);
    h->is_invariant = body_mask(h->m, n);
    h->is_uniform = body_mask(h->m, n);
    h->is_sent = body_mask(h->m, n);
    h->is_hoisted = body_mask(h->m, n);
    h->hoisted_rows = arena_array(h->m->arena, struct halo_rows, n + 1);
    h->hoisted = pass_no_values(h->m, n);
    find_halos(h);
    if (!h->count)
        return false;
    find_equal(h);
    if (h->fails)
        return false;
    h->depth = COST_HALO_TRIPS;
    if (h->depth > s->length)
        h->depth = (int)s->length;
    for (; h->depth > 1; h->depth--) {
        h->fails = false;
        if (want_all(h) && is_cheap(h))
            return true;
    }
    return false;
}
