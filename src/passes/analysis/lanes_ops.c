// SPDX-License-Identifier: Apache-2.0
// What the ops of a loop do to axes: atoms are united and marked through its bodies, node by node.
#include "passes/analysis/lanes.h"

#include "ir/control.h"
#include "ir/conv.h"
#include "ir/index_map.h"
#include "ir/indexing.h"

// A node that is being looked at.
struct step {
    struct lanes *l;
    struct lane_graph *f;
    const struct ir_node *n;
    const struct view *in; // of its operands; NULL: those of their values
};

static struct axes *space_of(struct step *t) { return &t->l->space; }

static struct view view_in(const struct step *t, uint32_t i)
{
    return t->in ? t->in[i] : t->f->view[ir_operand(t->f->g, t->n, i)];
}

static const int64_t *dims_in(const struct step *t, uint32_t i)
{
    return ir_dims_of(t->f->g, ir_operand(t->f->g, t->n, i));
}

// ---- Marks and unions

static void mix(struct step *t, struct atoms a)
{
    struct axes *s = space_of(t);
    a = axes_leaves(s, a);
    for (uint32_t i = 0; i < a.count; i++) {
        struct atom *atom = &s->atoms.at[a.at[i]];
        if (atom->is_derived)
            continue;
        atom->is_derived = true;
        // What a mixed atom comes from is nobody's question here: the node stands for it.
        atom_id *by = arena_array(s->scratch, atom_id, 1);
        *by = t->l->mixers.count;
        atom->from = by;
        atom->n_from = 0;
        vec_push(s->scratch, &t->l->mixers, t->n);
    }
}

static void mix_view(struct step *t, struct view v)
{
    for (uint32_t i = 0; i < v.rank; i++)
        mix(t, v.dims[i]);
}

static void unite(struct step *t, struct atoms a, struct atoms b)
{
    struct axes *s = space_of(t);
    if (!axes_refine(s, a, b)) {
        mix(t, a);
        mix(t, b);
        return;
    }
    a = axes_leaves(s, a);
    b = axes_leaves(s, b);
    for (uint32_t i = 0; i < a.count; i++) {
        atom_id x = axes_root(s, a.at[i]), y = axes_root(s, b.at[i]);
        if (x == y)
            continue;
        if (s->atoms.at[y].is_derived && !s->atoms.at[x].is_derived) {
            atom_id swap = x;
            x = y;
            y = swap;
        }
        s->atoms.at[y].same = x;
    }
}

static void unite_views(struct step *t, struct view a, struct view b)
{
    for (uint32_t i = 0; i < a.rank; i++)
        unite(t, a.dims[i], b.dims[i]);
}

static struct view blank_view(struct step *t, uint32_t rank)
{
    return (struct view){.rank = rank,
                         .dims = arena_array(space_of(t)->scratch, struct atoms, rank)};
}

static struct atoms *dims_of_view(struct view v) { return (struct atoms *)(uintptr_t)v.dims; }

static struct atoms fresh(struct step *t, int64_t extent)
{
    struct axes *s = space_of(t);
    if (extent == 1)
        return (struct atoms){0};
    atom_id *at = arena_array(s->scratch, atom_id, 1);
    *at = axes_atom(s, extent);
    return (struct atoms){.count = 1, .at = at};
}

static struct atoms fresh_mixed(struct step *t, int64_t extent)
{
    struct atoms a = fresh(t, extent);
    mix(t, a);
    return a;
}

static void set_result(struct step *t, uint32_t k, struct view v)
{
    t->f->view[t->n->out + k] = v;
}

// ---- Ops

static void fresh_results(struct step *t)
{
    for (uint32_t k = 0; k < t->n->n_out; k++)
        set_result(t, k, axes_fresh_view(space_of(t), t->n->out + k));
}

// Everything that goes in and comes out is mixed.
static void mix_all(struct step *t)
{
    fresh_results(t);
    for (uint32_t i = 0; i < t->n->n_in; i++)
        mix_view(t, view_in(t, i));
    for (uint32_t k = 0; k < t->n->n_out; k++)
        mix_view(t, t->f->view[t->n->out + k]);
}

static void step_map(struct step *t)
{
    const int64_t *dims = ir_dims_of(t->f->g, t->n->out);
    struct view out = blank_view(t, (uint32_t)ir_rank_of(t->f->g, t->n->out));
    for (uint32_t d = 0; d < out.rank; d++) {
        bool is_set = dims[d] == 1;
        for (uint32_t i = 0; i < t->n->n_in; i++) {
            struct view x = view_in(t, i);
            if (dims[d] == 1 || x.rank == 0 || dims_in(t, i)[d] != dims[d])
                continue;
            if (is_set)
                unite(t, out.dims[d], x.dims[d]);
            dims_of_view(out)[d] = is_set ? out.dims[d] : x.dims[d];
            is_set = true;
        }
    }
    for (uint32_t k = 0; k < t->n->n_out; k++)
        set_result(t, k, out);
}

static void step_same(struct step *t)
{
    for (uint32_t k = 0; k < t->n->n_out; k++)
        set_result(t, k, view_in(t, k));
}

// In blocks of equal products the atoms of the operand are dealt out to the axes of the result.
static void step_reshape(struct step *t)
{
    struct axes *s = space_of(t);
    struct view x = view_in(t, 0);
    const int64_t *dims = dims_in(t, 0), *result = ir_dims_of(t->f->g, t->n->out);
    struct view out = axes_fresh_view(s, t->n->out);
    uint32_t i = 0, k = 0;
    if (ir_count_of(s->g, t->n->out) == 0) {
        mix_all(t);
        return;
    }
    while (i < x.rank || k < out.rank) {
        uint32_t first = k;
        int64_t have = 1, want = k < out.rank ? result[k++] : 1;
        struct atoms block = {0};
        while (have != want || (k == out.rank && i < x.rank)) {
            if (have <= want && i < x.rank) {
                have *= dims[i];
                block = axes_concat(s, block, x.dims[i++]);
            } else {
                want *= result[k++];
            }
        }
        struct atoms rest = axes_leaves(s, block);
        bool fits = true;
        for (uint32_t d = first; d < k && fits; d++)
            if (result[d] != 1)
                fits = axes_take(s, &rest, result[d], &dims_of_view(out)[d]);
        if (fits)
            continue;
        mix(t, block);
        for (uint32_t d = first; d < k; d++)
            dims_of_view(out)[d] = fresh_mixed(t, result[d]);
    }
    set_result(t, 0, out);
}

// Whether coordinates along the axis stay what they are.
static bool keeps(const struct step *t, uint32_t axis)
{
    const struct ir_node *n = t->n;
    if (n->op == IR_dynamic_slice)
        return dims_in(t, 0)[axis] == ir_dims_of(t->f->g, n->out)[axis];
    if (n->op == IR_dynamic_update_slice)
        return dims_in(t, 0)[axis] == dims_in(t, 1)[axis];
    return ir_attr_int(n->attrs, IR_KEY_axis) != axis; // of a prefix fold
}

// Axes are kept or mixed, and those of an update are kept in step.
static void step_axes(struct step *t)
{
    const struct ir_node *n = t->n;
    struct view out = axes_fresh_view(space_of(t), n->out);
    uint32_t n_in = n->op == IR_dynamic_update_slice ? 2 : 1;
    for (uint32_t d = 0; d < out.rank; d++) {
        bool is_kept = keeps(t, d);
        for (uint32_t i = 0; i < n_in; i++)
            if (!is_kept)
                mix(t, view_in(t, i).dims[d]);
            else if (dims_in(t, i)[d] != 1)
                unite(t, out.dims[d], view_in(t, i).dims[d]);
        if (!is_kept)
            mix(t, out.dims[d]);
    }
    set_result(t, 0, out);
}

// An axis that operands keep is in step with theirs; what coordinates are made of otherwise is mixed.
static void step_layout(struct step *t)
{
    const struct ir_node *n = t->n;
    struct view out = axes_fresh_view(space_of(t), n->out);
    uint32_t kept = 0, mixed = 0; // axes of the result, as bits
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct view x = view_in(t, i);
        struct ir_index_map map;
        ir_index_map_of(t->f->g, n, i, &map);
        for (int d = 0; d < map.rank; d++) {
            const struct ir_index_axis *a = &map.axes[d];
            if (a->is_kept) {
                kept |= UINT32_C(1) << a->axis[0];
                unite(t, out.dims[a->axis[0]], x.dims[d]);
                continue;
            }
            mix(t, x.dims[d]);
            for (int k = 0; k < a->n_terms; k++)
                mixed |= UINT32_C(1) << a->axis[k];
        }
    }
    for (uint32_t d = 0; d < out.rank; d++)
        if ((mixed & ~kept) >> d & 1)
            mix(t, out.dims[d]);
    set_result(t, 0, out);
}

// What is folded is mixed, what is kept goes on.
static void step_fold(struct step *t)
{
    struct axes *s = space_of(t);
    const struct ir_node *n = t->n;
    struct view out = blank_view(t, (uint32_t)ir_rank_of(t->f->g, n->out));
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct view x = view_in(t, i);
        int count;
        const int64_t *axes = node_folded_axes(n, i, &count);
        uint32_t set = 0;
        for (int k = 0; k < count; k++) {
            set |= UINT32_C(1) << axes[k];
            mix(t, x.dims[axes[k]]);
        }
        if (ir_op_class((enum ir_op)n->op) != IR_CLASS_CONTRACT) {
            for (uint32_t d = 0, next = 0; d < x.rank; d++)
                if (!(set >> d & 1))
                    dims_of_view(out)[next++] = x.dims[d];
            continue;
        }
        struct dot_shape shape = dot_shape_of(s->g, n);
        int next = shape.n_batch + (i ? shape.n_free[0] : 0);
        for (int k = 0; k < shape.n_batch; k++) {
            if (i)
                unite(t, out.dims[k], x.dims[shape.batch[i][k]]);
            dims_of_view(out)[k] = x.dims[shape.batch[i][k]];
        }
        for (int k = 0; k < shape.n_free[i]; k++)
            dims_of_view(out)[next + k] = x.dims[shape.free[i][k]];
    }
    set_result(t, 0, out);
}

// Gather and scatter.  Axes of windows that have the whole extent are kept, batch axes are
// in step with those of the indices, and so are the axes that count windows.
static void step_indices(struct step *t)
{
    const struct ir_graph *g = t->f->g;
    const struct ir_node *n = t->n;
    bool gathers = n->op == IR_gather;
    ir_id y = gathers ? n->out : ir_operand(g, n, 2);
    struct ir_window w = ir_window_of(g->module, n->attrs, ir_type_of(g, ir_operand(g, n, 0)),
                                      ir_type_of(g, ir_operand(g, n, 1)), ir_type_of(g, y));
    struct view x = view_in(t, 0), indices = view_in(t, 1);
    struct view of_y = gathers ? axes_fresh_view(space_of(t), n->out) : view_in(t, 2);
    const int64_t *dims = dims_in(t, 0), *dims_y = ir_dims_of(g, y);
    for (int a = 0; a < w.index_rank; a++)
        if (dims_y[w.index_axis[a]] != 1)
            unite(t, of_y.dims[w.index_axis[a]], indices.dims[a]);
    mix(t, indices.dims[indices.rank - 1]);
    for (int d = 0; d < w.rank; d++) {
        bool is_whole = w.size[d] == dims[d] && w.along[d] >= 0; // it starts at 0
        if ((w.is_batch[d] || is_whole) && w.along[d] >= 0) {
            unite(t, x.dims[d], of_y.dims[w.along[d]]);
            continue;
        }
        mix(t, x.dims[d]);
        if (w.along[d] >= 0)
            mix(t, of_y.dims[w.along[d]]);
    }
    // Updates that meet are made in order.
    for (int a = 0; a < w.index_rank && !gathers; a++) {
        bool is_batch = false;
        for (int d = 0; d < w.rank; d++)
            is_batch |= w.is_batch[d] && w.along[d] == w.index_axis[a];
        if (!is_batch)
            mix(t, of_y.dims[w.index_axis[a]]);
    }
    set_result(t, 0, gathers ? of_y : x);
}

// The leading axes count what a routine does; it mixes the others.
static void step_routine(struct step *t)
{
    const struct ir_node *n = t->n;
    int inner = node_routine_axes(n);
    if (inner < 0) {
        mix_all(t);
        return;
    }
    struct view first = view_in(t, 0);
    fresh_results(t);
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        struct view v = i < n->n_in ? view_in(t, i) : t->f->view[n->out + i - n->n_in];
        for (uint32_t d = 0; d < v.rank; d++)
            if (d + (uint32_t)inner < first.rank)
                unite(t, first.dims[d], v.dims[d]);
            else
                mix(t, v.dims[d]);
    }
}

// An axis that the result has with one operand is kept: images of x and y, what kernels sum over of x and
// w, and the features that they make of w and y.
static void step_conv(struct step *t)
{
    struct ir_conv c = ir_conv_of(t->n->attrs);
    struct view part[CONV_PARTS];
    uint32_t kept[CONV_PARTS] = {0};
    fresh_results(t);
    part[c.part] = t->f->view[t->n->out];
    for (int i = 0; i < 2; i++)
        part[ir_conv_operand(&c, i)] = view_in(t, (uint32_t)i);
    const struct {
        enum conv_part a, b;
        int axis_a, axis_b;
    } both[] = {
        {CONV_X, CONV_Y, 0, 0},
        {CONV_X, CONV_W, ir_conv_features(&c, CONV_X), ir_conv_in(&c)},
        {CONV_W, CONV_Y, ir_conv_features(&c, CONV_W), ir_conv_features(&c, CONV_Y)},
    };
    for (int i = 0; i < 3; i++) {
        if ((both[i].a != c.part && both[i].b != c.part) || (i > 0 && c.groups != 1))
            continue;
        unite(t, part[both[i].a].dims[both[i].axis_a], part[both[i].b].dims[both[i].axis_b]);
        kept[both[i].a] |= 1u << both[i].axis_a;
        kept[both[i].b] |= 1u << both[i].axis_b;
    }
    for (int i = 0; i < CONV_PARTS; i++)
        for (uint32_t d = 0; d < part[i].rank; d++)
            if (!(kept[i] >> d & 1))
                mix(t, part[i].dims[d]);
}

// ---- Bodies

static struct lane_graph *run_graph(struct lanes *l, const struct ir_graph *g,
                                    const struct view *params);

static struct view result_view(const struct lane_graph *f, uint32_t i)
{
    return f->view[f->g->outputs.at[i]];
}

static struct lane_graph **bodies_of(struct step *t, const struct view *params)
{
    const int64_t *functions;
    int count = ir_bodies_of(t->n, &functions);
    bool is_call = ir_op_class((enum ir_op)t->n->op) == IR_CLASS_CALL;
    struct lane_graph **out = arena_array(space_of(t)->scratch, struct lane_graph *, count + 1);
    for (int i = 0; i < (is_call ? 1 : count); i++)
        out[i] = run_graph(t->l, ir_body(t->f->g, t->n, i), params);
    t->f->bodies[t->n - t->f->g->nodes.at] = out;
    t->l->space.g = t->f->g;
    return out;
}

static struct view *operand_views(struct step *t)
{
    struct view *params = arena_array(space_of(t)->scratch, struct view, t->n->n_in + 1);
    for (uint32_t i = 0; i < t->n->n_in; i++)
        params[i] = view_in(t, i);
    return params;
}

static void step_call(struct step *t)
{
    struct lane_graph **bodies = bodies_of(t, operand_views(t));
    for (uint32_t k = 0; k < t->n->n_out; k++)
        set_result(t, k, result_view(bodies[0], k));
}

static void step_cond(struct step *t)
{
    const int64_t *functions;
    int count = ir_bodies_of(t->n, &functions);
    struct lane_graph **bodies = bodies_of(t, operand_views(t) + 1);
    for (uint32_t k = 0; k < t->n->n_out; k++) {
        set_result(t, k, result_view(bodies[0], k));
        for (int i = 1; i < count; i++)
            unite_views(t, result_view(bodies[0], k), result_view(bodies[i], k));
    }
}

static void step_scan(struct step *t)
{
    struct ir_scan s = ir_scan_of(t->n);
    uint32_t first = (uint32_t)(s.n_consts + s.n_carry);
    struct view *params = operand_views(t);
    // Without carries no trip asks for another one.
    struct atoms time = s.n_carry ? fresh_mixed(t, s.length) : fresh(t, s.length);
    for (uint32_t i = first; i < t->n->n_in; i++) {
        if (s.n_carry)
            mix(t, params[i].dims[0]);
        else
            unite(t, time, params[i].dims[0]);
        params[i] = lanes_row(params[i]);
    }
    struct lane_graph *body = bodies_of(t, params)[0];
    for (uint32_t k = 0; k < t->n->n_out; k++) {
        struct view out = result_view(body, k);
        if (k < (uint32_t)s.n_carry) {
            unite_views(t, params[(uint32_t)s.n_consts + k], out);
            set_result(t, k, out);
            continue;
        }
        struct view rows = blank_view(t, out.rank + 1);
        dims_of_view(rows)[0] = time;
        for (uint32_t d = 0; d < out.rank; d++)
            dims_of_view(rows)[d + 1] = out.dims[d];
        set_result(t, k, rows);
    }
}

static void step_while(struct step *t)
{
    struct ir_while w = ir_while_of(t->n);
    struct view *params = operand_views(t);
    struct lane_graph **bodies = bodies_of(t, params);
    struct view test = result_view(bodies[0], 0);
    for (uint32_t k = 0; k < t->n->n_out; k++) {
        struct view carry = params[(uint32_t)w.n_consts + k];
        unite_views(t, carry, result_view(bodies[1], k));
        unite_views(t, test, carry); // its leading axes
        set_result(t, k, carry);
    }
}

// ---- Graphs

static void step_node(struct step *t)
{
    switch (ir_op_class((enum ir_op)t->n->op)) {
    case IR_CLASS_MAP:
        step_map(t);
        return;
    case IR_CLASS_REDUCE:
    case IR_CLASS_ARG:
    case IR_CLASS_CONTRACT:
        step_fold(t);
        return;
    case IR_CLASS_CUMULATIVE:
        step_axes(t);
        return;
    case IR_CLASS_HINT:
        step_same(t);
        return;
    case IR_CLASS_CALL:
        step_call(t);
        return;
    case IR_CLASS_LIBRARY:
        (t->n->op == IR_conv ? step_conv : step_routine)(t);
        return;
    case IR_CLASS_UPDATE:
    case IR_CLASS_INDEX:
        if (t->n->op == IR_dynamic_slice || t->n->op == IR_dynamic_update_slice)
            step_axes(t);
        else
            step_indices(t);
        return;
    default:
        break;
    }
    if (ir_op_get((enum ir_op)t->n->op)->index) {
        step_layout(t);
        return;
    }
    static void (*const steps[IR_OP_COUNT])(struct step *) = {
        [IR_const] = fresh_results, [IR_iota] = fresh_results, [IR_reshape] = step_reshape,
        [IR_scan] = step_scan,      [IR_while] = step_while,   [IR_cond] = step_cond,
    };
    (steps[t->n->op] ? steps[t->n->op] : mix_all)(t);
}

static struct lane_graph *graph_of(struct lanes *l, const struct ir_graph *g)
{
    struct lane_graph *f = arena_new(l->space.scratch, struct lane_graph);
    *f = (struct lane_graph){
        .g = g,
        .end = g->nodes.count,
        .view = arena_array(l->space.scratch, struct view, g->values.count),
        .bodies = arena_array(l->space.scratch, struct lane_graph **, g->nodes.count + 1),
    };
    return f;
}

static struct lane_graph *run_graph(struct lanes *l, const struct ir_graph *g,
                                    const struct view *params)
{
    struct lane_graph *f = graph_of(l, g);
    for (uint32_t i = 0; i < g->n_params; i++)
        f->view[i] = params[i];
    ir_for_each_node (g, n) {
        struct step t = {l, f, n, NULL};
        l->space.g = g;
        if (n->op != IR_param)
            step_node(&t);
    }
    return f;
}

void lanes_mix(struct lanes *l, const struct ir_node *n, struct atoms a)
{
    struct step t = {.l = l, .n = n};
    mix(&t, a);
}

void lanes_look(struct lanes *l, struct lane_graph *f, const struct ir_node *n,
                const struct view *in)
{
    struct step t = {l, f, n, in};
    step_node(&t);
}
