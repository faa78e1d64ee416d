// SPDX-License-Identifier: Apache-2.0
// The order of axes of what one kernel leaves in memory for others.
//
// A kernel reads and writes along one of its loops what lies in memory by it.  Of a temporary whose
// other axis is that loop, in the kernel that makes it and in those that read it, that axis comes
// last in memory:
//
//     par c, i, j { fold k { load x[... + c], load w[... + c] } -> %t     put t[h*w*c + w*i + j] = %t }
//     par i, j, c { load t[h*w*c + w*i + j], load x[... + c] ... }        becomes    t[... + c]
//
// Each access of a kernel gives its elements as votes to the loop that it runs along.  The points of a
// network stay first.
//
// A loop over time that is one kernel (control/resident.c) has vectors along the last of its lanes.  Of what it reads
// and leaves, and of what kernels make with that, the lanes of a vector may lie together, and what a vector goes through
// behind one another: prices say whether.  All lanes together would be a stride of many a step.
//
//     par i < 256 { seq t { load a[4*T*i + 4*t + k] ... } }
//
//     par i < 32, l < 8 { seq t { load a[32*T*i + 32*t + 8*k + l] ... } }
#include "passes/analysis/lanes.h"
#include "schedule/control/control.h"
#include "schedule/group/group.h"
#include "schedule/internal.h"

#define LEAST_BLOCK 4 // lanes

// Smaller arrays stay in near caches, whatever their order.
static int64_t least_elements(const struct schedule *s)
{
    return s->options->large ? 2 : COST_MERGE;
}

struct voting {
    struct schedule *s;
    int64_t *votes; // by atom, which is a loop of one group
};

static struct atoms last_leaf(struct axes *s, struct atoms a)
{
    a = axes_leaves(s, a);
    return a.count > 1 ? (struct atoms){1, a.at + a.count - 1} : a;
}

// The loops that go from one element of the axis to the next, seen from the view.
static struct atoms loops_along(struct schedule *s, struct view view, uint32_t axis)
{
    return axes_dependence(&s->axes, last_leaf(&s->axes, view.dims[axis]));
}

// The last axis that has more than one element; the rank when there is none.
static uint32_t last_axis(const struct schedule *s, ir_id v)
{
    uint32_t rank = (uint32_t)ir_rank_of(s->g, v);
    for (uint32_t i = rank; i-- > 0;)
        if (ir_dims_of(s->g, v)[i] > 1)
            return i;
    return rank;
}

static void vote(struct voting *q, ir_id v, struct view view)
{
    uint32_t axis = last_axis(q->s, v);
    if (axis >= view.rank)
        return;
    struct atoms loops = loops_along(q->s, view, axis);
    for (uint32_t i = 0; i < loops.count; i++)
        q->votes[loops.at[i]] += value_count(q->s, v);
}

static bool is_in_memory(const struct schedule *s, ir_id v)
{
    return s->is_stored[v] || ir_node_of(s->g, v)->op == IR_const;
}

static bool is_kernel(const struct schedule *s, uint32_t group)
{
    return s->groups.at[group_root(s, group)].kind == GROUP_KERNEL;
}

static void vote_all(struct voting *q)
{
    struct schedule *s = q->s;
    for (ir_id v = 0; v < s->g->values.count; v++) {
        if (!is_in_memory(s, v))
            continue;
        for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
            if (is_kernel(s, s->demands.at[d].group))
                vote(q, v, s->demands.at[d].view);
        if (s->decision[v] == DECIDE_MEMBER && is_kernel(s, s->group_of[v]))
            vote(q, v, s->view_of[v]);
    }
}

static bool is_resident(const struct schedule *s, uint32_t group)
{
    return s->groups.at[group_root(s, group)].resident;
}

static bool is_wanted_by(const struct schedule *s, ir_id v,
                         bool (*is)(const struct schedule *s, uint32_t group))
{
    for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
        if (is(s, s->demands.at[d].group))
            return true;
    return false;
}

static bool is_other(const struct schedule *s, uint32_t group)
{
    return !is_kernel(s, group) && !is_resident(s, group);
}

// Whether kernels alone write and read it, and loops that are one kernel.
static bool may_reorder(const struct schedule *s, ir_id v)
{
    return v >= s->g->n_params && s->is_stored[v] && s->decision[v] == DECIDE_MEMBER &&
           !s->is_output[v] && s->part_of[v] == IR_NONE && s->stored_as[v] == IR_NONE &&
           value_count(s, v) >= least_elements(s) && !is_other(s, s->group_of[v]) &&
           !is_wanted_by(s, v, is_other);
}

// The same without such loops.
static bool may_vote(const struct schedule *s, ir_id v)
{
    return may_reorder(s, v) && !s->is_forced[v] && !is_resident(s, s->group_of[v]) &&
           !is_wanted_by(s, v, is_resident);
}

static void add_votes(struct voting *q, struct view view, int64_t own, uint32_t last,
                      int64_t *score)
{
    for (uint32_t axis = 0; axis < view.rank; axis++) {
        struct atoms loops = loops_along(q->s, view, axis);
        int64_t most = 0;
        for (uint32_t i = 0; i < loops.count; i++) {
            int64_t votes = q->votes[loops.at[i]] - (axis == last ? own : 0);
            most = votes > most ? votes : most;
        }
        score[axis] += most;
    }
}

// Whether what the value has of each point of a network would be apart if the axis came last: one kernel
// computes what is of a point together.
static bool parts_points(const struct schedule *s, ir_id v, uint32_t axis)
{
    const int64_t *dims = ir_dims_of(s->g, v);
    bool parts = false;
    for (uint32_t i = 0; i < s->points.count; i++)
        parts = parts || dims[axis] % s->points.at[i].count == 0;
    for (uint32_t i = 0; i < axis; i++)
        parts = parts && dims[i] == 1;
    return parts;
}

static void choose(struct voting *q, ir_id v)
{
    struct schedule *s = q->s;
    uint32_t last = last_axis(s, v), best = last;
    int64_t score[IR_MAX_RANK] = {0}, own = value_count(s, v);
    if (last >= (uint32_t)ir_rank_of(s->g, v))
        return;
    add_votes(q, s->view_of[v], own, last, score);
    for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
        add_votes(q, s->demands.at[d].view, own, last, score);
    for (uint32_t i = 0; i < last; i++)
        best = score[i] > score[best] && !parts_points(s, v, i) ? i : best;
    if (best != last)
        s->axis_last[v] = (uint8_t)(best + 1);
}

// ---- Lanes of loops that are one kernel

struct lane_order {
    struct schedule *s;
    bool *runs;    // by atom: vectors go along it
    uint8_t *left; // by value that a loop leaves: 1 + the axis of its lanes, or 0
    uint8_t *axis; // by value: 1 + the axis that has blocks of lanes, 0 for none so far
    int64_t block; // lanes that stay together
};

// 1 + the axis of the value whose neighbours are neighbouring atoms that are marked, or 0.
static uint8_t axis_along(struct axes *s, struct view view, const bool *marked)
{
    for (uint32_t axis = view.rank; axis-- > 0;) {
        struct atoms last = last_leaf(s, view.dims[axis]);
        if (last.count && marked[last.at[0]])
            return (uint8_t)(axis + 1);
    }
    return 0;
}

// Marks what the loop wants of its operands, and the axes of what it leaves.
static void look_at_loop(struct lane_order *o, const struct group *g)
{
    struct schedule *s = o->s;
    struct lanes *l = g->resident->lanes;
    const struct ir_node *n = &s->g->nodes.at[g->node];
    uint32_t number = lanes_find_blocks(l, o->block);
    if (number == l->lanes.count)
        return;
    bool *is_lane = arena_array(s->scratch, bool, l->space.atoms.count + 1);
    atom_id lane = l->lanes.at[number];
    int64_t extent = l->space.atoms.at[lane].extent;
    is_lane[lane] = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
        uint8_t axis = axis_along(&l->space, l->operands[i], is_lane);
        struct atoms own =
            axis ? last_leaf(&s->axes, g->operands[i].dims[axis - 1]) : (struct atoms){0};
        if (own.count && s->axes.atoms.at[own.at[0]].extent == extent)
            o->runs[own.at[0]] = true;
    }
    for (ir_id v = n->out; v < n->out + n->n_out; v++)
        if (may_reorder(s, v))
            o->left[v] = axis_along(&l->space, l->top->view[v], is_lane);
}

// The axis along a marked loop, seen from who reads and who makes it.
static uint8_t axis_wanted(struct lane_order *o, ir_id v)
{
    struct schedule *s = o->s;
    uint8_t axis = is_kernel(s, s->group_of[v]) ? axis_along(&s->axes, s->view_of[v], o->runs)
                                                : o->left[v];
    for (uint32_t d = s->first_demand[v]; d != NONE && !axis; d = s->demands.at[d].next)
        axis = axis_along(&s->axes, s->demands.at[d].view, o->runs);
    return axis;
}

// Whether the atoms of the axis end with whole blocks.
static bool has_blocks(const struct lane_order *o, struct view view, uint8_t axis)
{
    struct atoms last = last_leaf(&o->s->axes, view.dims[axis - 1]);
    const struct atom *a = last.count ? &o->s->axes.atoms.at[last.at[0]] : NULL;
    return a && !a->is_derived && a->extent > o->block && a->extent % o->block == 0;
}

// Whether all who read and make the value go through the axis by loops of their own.
static bool may_have_blocks(const struct lane_order *o, ir_id v, uint8_t axis)
{
    const struct schedule *s = o->s;
    if (is_kernel(s, s->group_of[v]) && !has_blocks(o, s->view_of[v], axis))
        return false;
    for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
        if (!has_blocks(o, s->demands.at[d].view, axis))
            return false;
    return ir_dims_of(s->g, v)[axis - 1] % o->block == 0;
}

// Kernels that make or read the value run along the axis.
static void mark_loops(struct lane_order *o, ir_id v)
{
    struct schedule *s = o->s;
    uint32_t axis = o->axis[v] - 1u;
    if (is_kernel(s, s->group_of[v]))
        o->runs[last_leaf(&s->axes, s->view_of[v].dims[axis]).at[0]] = true;
    for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
        o->runs[last_leaf(&s->axes, s->demands.at[d].view.dims[axis]).at[0]] = true;
}

// How many neighbours are a vector of what the loops that are one kernel read and leave.
static int64_t block_of(const struct schedule *s)
{
    int64_t bytes = COST_VECTOR_BYTES / (int64_t)COST_VECTOR;
    if (s->options->large)
        return 2;
    for (ir_id v = 0; v < s->g->values.count; v++) {
        int64_t own = dtype_get(ir_dtype_of(s->g, v))->bytes;
        if (own > bytes && may_reorder(s, v) &&
            (is_resident(s, s->group_of[v]) || is_wanted_by(s, v, is_resident)))
            bytes = own;
    }
    return COST_VECTOR_BYTES / bytes;
}

// Finds the axes along loops that are one kernel, and along what kernels do with the values that have some.
static void find_axes(struct lane_order *o)
{
    struct schedule *s = o->s;
    for (uint32_t i = 0; i < s->groups.count; i++)
        if (group_root(s, i) == i && s->groups.at[i].resident)
            look_at_loop(o, &s->groups.at[i]);
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (ir_id v = 0; v < s->g->values.count; v++) {
            uint8_t axis = o->axis[v] || !may_reorder(s, v) ? 0 : axis_wanted(o, v);
            if (!axis || !may_have_blocks(o, v, axis))
                continue;
            o->axis[v] = axis;
            mark_loops(o, v);
            is_new = true;
        }
    }
}

static bool find_blocks(struct schedule *s, struct lane_order *o, int64_t block)
{
    *o = (struct lane_order){s, arena_array(s->scratch, bool, s->axes.atoms.count + 1),
                             arena_array(s->scratch, uint8_t, s->g->values.count + 1),
                             arena_array(s->scratch, uint8_t, s->g->values.count + 1), block};
    find_axes(o);
    for (ir_id v = 0; v < s->g->values.count; v++)
        if (o->axis[v])
            return true;
    return false;
}

static void split_loop(struct schedule *s, struct view view, uint32_t axis)
{
    atom_id a = last_leaf(&s->axes, view.dims[axis]).at[0];
    if (s->axes.atoms.at[a].extent > s->lane_block)
        axes_split(&s->axes, a, s->lane_block);
}

// Puts blocks of lanes together in memory, and splits the loops that go through them.
static void put_blocks(struct schedule *s, int64_t block)
{
    struct lane_order o;
    if (!find_blocks(s, &o, block))
        return;
    s->lane_block = o.block;
    for (ir_id v = 0; v < s->g->values.count; v++) {
        if (!o.axis[v])
            continue;
        s->axis_last[v] = o.axis[v];
        s->last_block[v] = (uint8_t)o.block;
        if (is_kernel(s, s->group_of[v]))
            split_loop(s, s->view_of[v], o.axis[v] - 1u);
        for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
            split_loop(s, s->demands.at[d].view, o.axis[v] - 1u);
    }
}

void group_order_axes(struct schedule *s)
{
    struct voting q = {.s = s,
                       .votes = arena_array(s->scratch, int64_t, s->axes.atoms.count + 1)};
    if (s->options->separate)
        return;
    vote_all(&q);
    for (ir_id v = 0; v < s->g->values.count; v++)
        if (may_vote(s, v))
            choose(&q, v);
    if (s->wanted_block)
        put_blocks(s, s->wanted_block);
}

void group_find_blocks(struct schedule *s)
{
    struct lane_order o;
    int64_t block = block_of(s);
    // Lanes that are no such blocks may be blocks of part of a vector.
    while (!find_blocks(s, &o, block)) {
        block /= 2;
        if (block < LEAST_BLOCK)
            return;
    }
    bool is_better = s->options->large;
    if (!is_better) {
        double before = group_price_of_order(s, 0), after = group_price_of_order(s, block);
        is_better = after >= 0 && after * COST_APART_ONE <= before;
    }
    if (is_better)
        put_blocks(s, block);
}
