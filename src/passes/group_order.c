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
#include "passes/group.h"

#define LEAST_ELEMENTS COST_MERGE // smaller arrays stay in near caches, whatever their order

struct voting {
    struct schedule *s;
    int64_t *votes; // by atom, which is a loop of one group
};

// The loops that the value runs along in memory, seen from the view.
static struct atoms loops_along(struct voting *q, struct view view, uint32_t axis)
{
    struct atoms leaves = axes_leaves(q->s, view.dims[axis]);
    if (leaves.count > 1)
        leaves = (struct atoms){1, leaves.at + leaves.count - 1};
    return axes_dependence(q->s, leaves);
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
    struct atoms loops = loops_along(q, view, axis);
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

// Whether kernels alone write and read it.
static bool may_reorder(const struct schedule *s, ir_id v)
{
    if (v < s->g->n_params || !s->is_stored[v] || s->decision[v] != DECIDE_MEMBER ||
        s->is_output[v] || s->is_forced[v] || s->part_of[v] != IR_NONE ||
        value_count(s, v) < LEAST_ELEMENTS || !is_kernel(s, s->group_of[v]))
        return false;
    for (uint32_t d = s->first_demand[v]; d != NONE; d = s->demands.at[d].next)
        if (!is_kernel(s, s->demands.at[d].group))
            return false;
    return true;
}

static void add_votes(struct voting *q, struct view view, int64_t own, uint32_t last,
                      int64_t *score)
{
    for (uint32_t axis = 0; axis < view.rank; axis++) {
        struct atoms loops = loops_along(q, view, axis);
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

void group_order_axes(struct schedule *s)
{
    struct voting q = {.s = s, .votes = arena_array(s->scratch, int64_t, s->atoms.count + 1)};
    if (s->options->separate)
        return;
    vote_all(&q);
    for (ir_id v = 0; v < s->g->values.count; v++)
        if (may_reorder(s, v))
            choose(&q, v);
}
