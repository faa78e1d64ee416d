// SPDX-License-Identifier: Apache-2.0
// Values with groups of their own, which no other value joins by its loops: updates in place, products
// of a library, routines, loops and branches, effects.
#include "base/count.h"
#include "base/fold.h"
#include "passes/passes.h"
#include "schedule/control/control.h"
#include "schedule/group/group.h"
#include "schedule/library/library.h"

#include <math.h>

// A kernel that changes the operand where it is.
void group_store_update(struct schedule *s, ir_id v, const demand_list *l)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    ir_id x = ir_operand(s->g, n, 0);
    struct demand d = {.group = group_make(s, GROUP_UPDATE, l),
                       .outer = IR_NONE,
                       .view = axes_fresh_view(&s->axes, x)};
    struct group *g = group_at(s, d.group);
    uint32_t updates = n->op == IR_dynamic_update_slice ? 1 : 2;
    vec_push(s->scratch, &g->roots, v);
    g->reason = "update";
    g->ops = 1;
    s->decision[v] = DECIDE_MEMBER;
    s->group_of[v] = d.group;
    s->is_stored[v] = true;
    s->is_forced[x] = true;
    group_want(s, x, d);
    s->view_of[v] = d.view = axes_fresh_view(&s->axes, ir_operand(s->g, n, updates));
    d.context = axes_of_view(&s->axes, d.view);
    struct update_frame f = write_update_frame(s, n, d.view);
    g->points = f.points;
    d.is_repeated = f.is_by_element;
    for (uint32_t i = 1; i < n->n_in; i++) {
        ir_id y = ir_operand(s->g, n, i);
        struct demand to = d;
        if (i != updates)
            to.view = axes_operand_view(&s->axes, n, i, d.view);
        group_want(s, y, to);
    }
}

// Whether all that a product is for is an outer product, which threads of a GPU are busy storing: they
// make it in less time than a launch takes.
static bool is_for_threads(const struct schedule *s, ir_id v, const struct nest_gemm *g,
                           const demand_list *l)
{
    if (!s->options->many_lanes || l->count != 1 || l->at[0].outer == IR_NONE ||
        s->is_output[v] || s->is_forced[v])
        return false;
    const struct ir_node *outer = ir_node_of(s->g, l->at[0].outer);
    int folded;
    node_folded_axes(outer, 0, &folded);
    return outer->op == IR_dot_general && folded == 0 &&
           cost_is_for_threads(ir_count_of(s->g, v), g->k);
}

// Whether so many rows, of so many terms each, keep a GPU busy, whose threads share each of them.
static bool are_enough_rows(int64_t rows, int64_t terms)
{
    return count_times(rows, terms < FOLD_LANES ? terms : FOLD_LANES) >= COST_THREAD_SUMS;
}

// Whether a GPU makes the terms of the product in the product's own kernel.  One operand is made for the product alone,
// and each of its elements is used for few sums, all of which one thread has.
static bool makes_terms(const struct schedule *s, const struct nest_gemm *g,
                        const ir_id base[2])
{
    bool makes = false;
    for (int i = 0; i < 2; i++) {
        int64_t rows = i ? g->n : g->m, sums = i ? g->m : g->n;
        for (int k = 0; k < 4; k++)
            rows = count_times(rows, g->batch[k]);
        makes |= ir_op_class((enum ir_op)ir_node_of(s->g, base[i])->op) == IR_CLASS_MAP &&
                 s->uses[base[i]] == 1 && !s->is_output[base[i]] && !s->is_forced[base[i]] &&
                 sums <= COST_THREAD_UNROLL && are_enough_rows(rows, g->k);
    }
    return makes && s->options->many_lanes && s->options->no_accumulation;
}

// Whether a GPU makes the product in the kernel that wants it, although the library could.  Each sum then reads its
// terms from the nearest cache, so there are few.  A fold may have more: it wants each sum once.
bool group_has_few_terms(struct schedule *s, ir_id v, const demand_list *l)
{
    struct nest_gemm gemm;
    ir_id base[2];
    if (!s->options->many_lanes || !s->options->no_accumulation || l->count != 1 ||
        s->is_output[v] || s->is_forced[v])
        return false;
    int64_t most = l->at[0].outer == IR_NONE ? COST_FEW_TERMS : COST_FOLD_TERMS;
    return gemm_of_dot(s, ir_node_of(s->g, v), &gemm, base) && gemm.k <= most &&
           are_enough_rows(axes_product(&s->axes, group_at(s, l->at[0].group)->points),
                           FOLD_LANES);
}

// Whether a processor makes the product in a kernel, although the library could.  Layers of networks over points have
// kernels of their own (points.c).
static bool is_for_lanes(const struct schedule *s, const struct nest_gemm *g)
{
    int64_t most = g->transpose_b ? COST_LANE_TERMS_ACROSS : COST_LANE_TERMS;
    if (s->options->many_lanes || dtype_is_complex(g->dtype) || g->k > most)
        return false;
    for (uint32_t i = 0; i < s->points.count; i++)
        if (s->points.at[i].count == g->m)
            return false;
    return true;
}

bool group_is_apart(struct schedule *s, ir_id v, const demand_list *l)
{
    struct nest_gemm gemm;
    ir_id base[2];
    return gemm_of_dot(s, ir_node_of(s->g, v), &gemm, base) &&
           !is_for_threads(s, v, &gemm, l) && is_for_lanes(s, &gemm) &&
           (gemm.transpose_b || gemm.k > COST_LANE_TERMS_JOINED);
}

// Whether a GPU's library, which makes whole tiles, takes far longer than threads that read both terms again for each
// element of the product.
static bool is_below_tiles(const struct schedule *s, const struct nest_gemm *g)
{
    double tiles = 1, elements = (double)g->m * (double)g->n;
    for (int i = 0; i < 2; i++)
        tiles *= ceil((double)(i ? g->n : g->m) / COST_LIBRARY_TILE) * COST_LIBRARY_TILE;
    double library = tiles / COST_PRODUCT_PER_US;
    double threads = elements * 2 * dtype_get(g->operands)->bytes / COST_NEAR_PER_US;
    return s->options->many_lanes && s->options->no_accumulation &&
           dtype_get(g->operands)->bytes >= 4 && library > COST_BELOW_TILES * threads;
}

bool group_store_library(struct schedule *s, ir_id v, const demand_list *l)
{
    struct nest_gemm gemm;
    ir_id base[2];
    const struct ir_node *n = ir_node_of(s->g, v);
    if (!gemm_of_dot(s, n, &gemm, base) || is_for_threads(s, v, &gemm, l) ||
        is_for_lanes(s, &gemm) || is_below_tiles(s, &gemm) || makes_terms(s, &gemm, base))
        return false;
    uint32_t g = group_make(s, GROUP_GEMM, l);
    vec_push(s->scratch, &group_at(s, g)->roots, v);
    group_at(s, g)->reason = "library call";
    s->decision[v] = DECIDE_MEMBER;
    s->group_of[v] = g;
    s->is_stored[v] = true;
    for (int i = 0; i < 2; i++) {
        s->is_forced[base[i]] = true;
        group_want(s, base[i],
                   (struct demand){.group = g,
                                   .outer = IR_NONE,
                                   .view = axes_fresh_view(&s->axes, base[i])});
    }
    return true;
}

// GROUP_KERNEL for what is no step of its own.
static enum group_kind kind_of_steps(const struct ir_node *n)
{
    enum ir_class c = ir_op_class((enum ir_op)n->op);
    return node_is_control(n)      ? GROUP_CONTROL
           : c == IR_CLASS_LIBRARY ? GROUP_LIBRARY
           : c == IR_CLASS_EFFECT  ? GROUP_EFFECT
                                   : GROUP_KERNEL;
}

// Whether the node is a step or several.
bool node_is_steps(const struct ir_node *n) { return kind_of_steps(n) != GROUP_KERNEL; }

// Effects come in the order of their nodes, which are visited from the last to the first.
static void order_effect(struct schedule *s, struct group *g)
{
    g->rank = g->rank > s->effect_rank ? g->rank : s->effect_rank;
    s->effect_rank = g->rank + 1;
}

// Whether a loop or branch is to be one kernel.
static bool is_resident(struct schedule *s, const struct ir_node *n)
{
    return !s->options->separate && !s->options->steps && !schedule_residence(s, n)->reason;
}

// One group for all results of the node.  A loop that is one kernel computes operands that are
// cheap where it wants them, but for those that it takes more of than they have; steps need their memory.
void group_store_steps(struct schedule *s, const struct ir_node *n)
{
    demand_list all = {0};
    bool has_effect = ir_has_effect(s->g, n), is_wanted = has_effect;
    bool is_control = node_is_control(n);
    for (ir_id v = n->out; v < n->out + n->n_out; v++) {
        demand_list l = group_demands_on(s, v);
        for (uint32_t i = 0; i < l.count; i++)
            vec_push(s->scratch, &all, l.at[i]);
        is_wanted |= l.count || s->is_output[v] || s->stored_as[v] != IR_NONE;
    }
    if (!is_wanted)
        return;
    uint32_t g = group_make(s, kind_of_steps(n), &all);
    group_at(s, g)->node = (uint32_t)(n - s->g->nodes.at);
    if (has_effect)
        order_effect(s, group_at(s, g));
    if (is_control && is_resident(s, n))
        group_at(s, g)->resident = schedule_residence(s, n);
    for (ir_id v = n->out; v < n->out + n->n_out; v++) {
        vec_push(s->scratch, &group_at(s, g)->roots, v);
        s->decision[v] = DECIDE_MEMBER;
        s->group_of[v] = g;
        s->is_stored[v] = true;
        if (s->stored_as[v] != IR_NONE)
            s->group_of[s->stored_as[v]] = g;
    }
    const bool *is_taken = pass_taken_more(s->g, n);
    struct view *operands = arena_array(s->scratch, struct view, n->n_in + 1);
    group_at(s, g)->operands = operands;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(s->g, n, i);
        operands[i] = axes_fresh_view(&s->axes, x);
        bool is_map = ir_op_class((enum ir_op)ir_node_of(s->g, x)->op) == IR_CLASS_MAP;
        s->is_forced[x] |= !group_at(s, g)->resident || (is_taken[i] && is_map);
        group_want(s, x, (struct demand){.group = g, .outer = IR_NONE, .view = operands[i]});
    }
}

// A transpose of what a loop that is one kernel stacks is stored in its place, by the loop.
bool group_store_in_loop(struct schedule *s, ir_id v, const demand_list *l)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    ir_id x = n->op == IR_transpose ? ir_operand(s->g, n, 0) : IR_NONE;
    if (x == IR_NONE || s->uses[x] != 1 || s->is_output[x] ||
        !node_is_control(ir_node_of(s->g, x)) || !is_resident(s, ir_node_of(s->g, x)))
        return false;
    s->stored_as[x] = v;
    s->decision[v] = DECIDE_MEMBER;
    s->is_stored[v] = true;
    for (uint32_t i = 0; i < l->count; i++)
        group_want(s, x, l->at[i]); // the same groups wait for the loop
    return true;
}
