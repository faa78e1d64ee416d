// SPDX-License-Identifier: Apache-2.0
// Along which axes a node can be split, so that each device does its part alone.
//
//     x: f32[8 (i), 6]    y = reshape x [2,4,6]    z = sort y    w = reduce_max z {axes=[1,2]}
//
// Over a mesh [i:2] all three go in pieces, the last as a part of 4 by 6 elements each.  What an op does to
// axes is what the scheduler knows (lanes_ops.c): axes are sequences of atoms, and those that an op mixes
// are marked.  An axis of the mesh takes atoms from the front of an axis of an operand or result.  The
// node can be split where these are not mixed and are at the front of an axis everywhere.
#include "passes/mesh/partition_axes.h"

#include "ir/collective.h"
#include "passes/analysis/lanes.h"

struct parts {
    struct ir_module *m;
    const struct ir_shard *mesh;
    struct lanes lanes;
    struct lane_graph graph;
};

// A node that is looked at.
struct look {
    struct parts *p;
    const struct ir_node *n;
    const struct view *in, *out;
    enum ir_op collective;
    struct atoms by[IR_MAX_AXES]; // by axis of the grid: what it splits
    uint16_t folded;              // axes of the grid that split what the node folds
};

struct parts *partition_look(struct ir_module *m, const struct ir_shard *mesh,
                             const struct ir_graph *g)
{
    struct parts *p = arena_new(m->arena, struct parts);
    *p = (struct parts){.m = m, .mesh = mesh};
    p->lanes = (struct lanes){.space = {.scratch = m->arena, .g = g}, .module = m};
    p->graph = (struct lane_graph){
        .g = g,
        .view = arena_array(m->arena, struct view, g->values.count + 1),
        .bodies = arena_array(m->arena, struct lane_graph **, g->nodes.count + 1),
    };
    return p;
}

// The collective that folds over devices what the node folds on each, with the bits of one fold of all;
// IR_OP_COUNT: there is none, as for floats, whose sums have an order.
static enum ir_op find_collective(const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_op_info *info = ir_op_get((enum ir_op)n->op);
    jot_dtype d = ir_dtype_of(g, n->out);
    if (info->op_class != IR_CLASS_REDUCE)
        return IR_OP_COUNT;
    if (info->pair == IR_max || (info->pair == IR_or && dtype_is_bool(d)))
        return IR_pmax;
    if (info->pair == IR_min || (info->pair == IR_and && dtype_is_bool(d)))
        return IR_pmin;
    return info->pair == IR_add && dtype_is_integer(d) ? IR_psum : IR_OP_COUNT;
}

// ---- Splits

static bool begin_with(struct atoms a, uint32_t at, struct atoms b)
{
    return b.count && b.count <= a.count - at &&
           !memcmp(a.at + at, b.at, b.count * sizeof *b.at);
}

// The axes that split a dimension with these atoms, as a split has them; false where one would split
// another part of it than the first.
static bool read_dim(struct look *k, struct atoms dim, int64_t *out, uint16_t *seen)
{
    struct axes *s = &k->p->lanes.space;
    int n_axes = k->p->mesh->n_axes;
    uint32_t at = 0;
    out[0] = 0;
    dim = axes_leaves(s, dim);
    for (int i = 0; i < n_axes; i++) {
        struct atoms by = axes_leaves(s, k->by[i]);
        if (!begin_with(dim, at, by) || *seen >> i & 1)
            continue;
        *seen |= (uint16_t)(1u << i);
        out[++out[0]] = i;
        at += by.count;
        i = -1;
    }
    for (int i = 0; i < n_axes; i++) {
        struct atoms by = axes_leaves(s, k->by[i]);
        for (uint32_t j = at; j < dim.count; j++)
            if (axes_contain(s, by, dim.at[j]))
                return false;
    }
    return true;
}

static bool read_split(struct look *k, struct view v, struct ir_split *out, uint16_t *seen)
{
    int64_t *at = arena_array(k->p->m->arena, int64_t, v.rank + (size_t)k->p->mesh->n_axes + 1);
    *out = (struct ir_split){0, at};
    *seen = 0;
    for (uint32_t d = 0; d < v.rank; d++) {
        if (!read_dim(k, v.dims[d], at + out->n, seen))
            return false;
        out->n += 1 + (int)at[out->n];
    }
    return true;
}

// Every result is split by all axes that operands are split by and that are not folded, but for those of
// nodes that pass each operand on by itself.
static bool read_splits(struct look *k, struct ir_split *in, struct ir_split *out)
{
    uint16_t all = 0, seen;
    for (uint32_t i = 0; i < k->n->n_in; i++) {
        if (!read_split(k, k->in[i], &in[i], &seen))
            return false;
        all |= seen;
    }
    for (uint32_t i = 0; i < k->n->n_out; i++) {
        if (!read_split(k, k->out[i], &out[i], &seen))
            return false;
        if (ir_op_class((enum ir_op)k->n->op) != IR_CLASS_HINT && all & ~k->folded & ~seen)
            return false;
    }
    return true;
}

static bool is_mixed(const struct look *k, struct atoms a)
{
    for (uint32_t i = 0; i < a.count; i++)
        if (k->p->lanes.space.atoms.at[a.at[i]].is_derived)
            return true;
    return false;
}

// Has an axis split what comes first of `rest`, which loses it, if the node allows that.
static bool split_atoms(struct look *k, struct atoms *rest, int64_t axis, struct part *part)
{
    struct axes *s = &k->p->lanes.space;
    struct atoms *by = &k->by[axis], taken;
    int64_t lanes = ir_axis_size(k->p->m, k->p->mesh->grid[axis]);
    if (!axes_take(s, rest, lanes, &taken) || !taken.count)
        return false;
    if (by->count && axes_equal(s, *by, taken))
        return true;
    uint16_t was = k->folded;
    bool folds = is_mixed(k, taken);
    if (by->count || (folds && k->collective == IR_OP_COUNT))
        return false;
    *by = taken;
    k->folded |= (uint16_t)(folds << axis);
    if (read_splits(k, part->in, part->out))
        return true;
    *by = (struct atoms){0};
    k->folded = was;
    return false;
}

// Has the axes split a value so, as far as the node allows it.
static void split_value(struct look *k, struct view v, struct ir_split split, struct part *part)
{
    for (uint32_t d = 0; d < v.rank; d++) {
        struct atoms rest = v.dims[d];
        const int64_t *axes;
        int n;
        ir_split_of(k->p->m, k->p->mesh, split, (int)d, &n, &axes);
        for (int i = 0; i < n && split_atoms(k, &rest, axes[i], part);)
            i++;
    }
}

// Has axes that split a value and cannot do so here split another dimension of it: that is less to exchange
// than the whole.
static void split_otherwise(struct look *k, struct view v, struct ir_split split,
                            struct part *part)
{
    uint16_t seen;
    for (int i = 0; i < k->p->mesh->n_axes; i++)
        for (uint32_t d = 0;
             d < v.rank && !k->by[i].count && ir_split_has(split, (int)v.rank, i); d++) {
            int64_t taken[IR_MAX_AXES + 1];
            seen = 0;
            struct atoms rest = axes_leaves(&k->p->lanes.space, v.dims[d]);
            read_dim(k, rest, taken, &seen);
            for (int64_t j = 0; j < taken[0]; j++)
                axes_take(&k->p->lanes.space, &rest,
                          ir_axis_size(k->p->m, k->p->mesh->grid[taken[j + 1]]),
                          &(struct atoms){0});
            split_atoms(k, &rest, i, part);
        }
}

// ---- Nodes

static bool is_alone(const struct ir_node *n)
{
    switch (ir_op_class((enum ir_op)n->op)) {
    case IR_CLASS_PARAM:
    case IR_CLASS_CONST:
    case IR_CLASS_CALL:
    case IR_CLASS_CONTROL:
    case IR_CLASS_COLLECTIVE:
    case IR_CLASS_EFFECT:
        return true;
    default:
        return n->n_in == 0;
    }
}

// The operand with the most elements of those that are not done, IR_NONE: all are.
static uint32_t largest(const struct parts *p, const struct ir_node *n, const bool *done)
{
    const struct ir_graph *g = p->graph.g;
    uint32_t best = IR_NONE;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!done[i] && (best == IR_NONE || ir_count_of(g, ir_operand(g, n, i)) >
                                                ir_count_of(g, ir_operand(g, n, best))))
            best = i;
    return best;
}

const struct part *partition_part(struct parts *p, const struct ir_node *n,
                                  const struct ir_split *in, const struct ir_split *out)
{
    struct arena *arena = p->m->arena;
    const struct ir_graph *g = p->graph.g;
    if (is_alone(n))
        return NULL;
    struct view *views = arena_array(arena, struct view, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        views[i] = axes_fresh_view(&p->lanes.space, ir_operand(g, n, i));
    lanes_look(&p->lanes, &p->graph, n, views);
    // What it does differs from device to device along this axis.
    if (ir_field_find(n->attrs, IR_KEY_along))
        lanes_mix(&p->lanes, n, views[0].dims[ir_attr_int(n->attrs, IR_KEY_along)]);
    struct look k = {.p = p,
                     .n = n,
                     .in = views,
                     .out = p->graph.view + n->out,
                     .collective = find_collective(g, n)};
    struct part *part = arena_new(arena, struct part);
    part->in = arena_array(arena, struct ir_split, n->n_in + 1);
    part->out = arena_array(arena, struct ir_split, n->n_out + 1);
    part->collective = k.collective;
    bool *done = arena_array(arena, bool, n->n_in + 1);
    for (uint32_t i; in && (i = largest(p, n, done)) != IR_NONE; done[i] = true)
        split_value(&k, k.in[i], in[i], part);
    memset(done, 0, n->n_in * sizeof *done);
    for (uint32_t i; in && (i = largest(p, n, done)) != IR_NONE; done[i] = true)
        split_otherwise(&k, k.in[i], in[i], part);
    for (uint32_t i = 0; out && i < n->n_out; i++)
        split_value(&k, k.out[i], out[i], part);
    uint16_t any = 0;
    for (int i = 0; i < p->mesh->n_axes; i++) {
        any |= k.by[i].count > 0;
        if (k.folded >> i & 1)
            part->over[part->n_over++] = p->mesh->grid[i];
    }
    return any && read_splits(&k, part->in, part->out) ? part : NULL;
}

// The extents that attributes list: dims are those of the result, limits and sizes those of operand 0, where
// they are all of it.
static void shrink(struct ir_module *m, const struct ir_shard *mesh, struct ir_split split,
                   struct ir_type whole, struct ir_field *f)
{
    if ((int)f->count != whole.rank)
        return;
    int64_t *to = arena_array(m->arena, int64_t, f->count + 1);
    for (int d = 0; d < whole.rank; d++) {
        const int64_t *axes;
        int n;
        int64_t lanes = ir_split_of(m, mesh, split, d, &n, &axes);
        to[d] = f->ints[d] == ir_dims(m, whole)[d] ? f->ints[d] / lanes : f->ints[d];
    }
    f->ints = to;
}

ir_id partition_build(struct ir_builder *b, const struct ir_shard *mesh,
                      const struct ir_graph *g, const struct ir_node *n,
                      const struct part *part, const ir_id *in)
{
    struct ir_module *m = b->module;
    struct ir_field fields[IR_KEY_COUNT];
    uint32_t count = n->attrs ? n->attrs->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct ir_field *f = &fields[i];
        *f = n->attrs->fields[i];
        if (f->key == IR_KEY_dims)
            shrink(m, mesh, part->out[0], ir_type_of(g, n->out), f);
        else if (f->key == IR_KEY_limits || f->key == IR_KEY_sizes)
            shrink(m, mesh, part->in[0], ir_type_of(g, ir_operand(g, n, 0)), f);
    }
    b->where = n->where;
    ir_id y =
        ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, ir_attrs_make(m, (int)count, fields));
    return y != IR_NONE && part->n_over
               ? ir_collective(b, part->collective, y, part->n_over, part->over)
               : y;
}
