// SPDX-License-Identifier: Apache-2.0
// Writes the kernel of a group.
//
// A value wanted at coordinates is computed from its operands at mapped coordinates, down to what
// has memory.  Changes of index leave no trace but in the index forms; what they cannot say
// (padding, concatenation) becomes a guard and a selection.  A fold opens a loop where it is
// wanted, in the outermost scope that knows its coordinates; folds over equal loops that do not
// need each other share one.
//
//     %m = reduce_max x                       par r {
//     %e = exp (x - m)                          fold c { load x ... yield reduce_max } -> %m
//     %s = reduce_sum e             gives       fold c { ... put row[c] = %e yield reduce_sum }
//     %y = e / s                                map c { load row[c] ... put y }
//                                             }
//
// A value that is dear and wanted in two loops of one point (e above) is kept in a row of local
// memory.  That it is wanted twice is only known at the end, so such a kernel is written again; and
// again without rows that nothing reads, where what is made of them is a row too.
#include "schedule/write/write.h"

static void put_root(struct writer *w, ir_id v)
{
    form_id at[IR_MAX_RANK];
    write_form_of_view(w, w->s->view_of[v], at);
    nest_id value = write_value_at(w, v, at, NEST_NONE);
    if (!write_is_put(w, v))
        write_put_result(w, v, at, value);
}

// A reduction over the loop that is open: every element accumulates.
static void put_terminal(struct writer *w, ir_id v, nest_id fold)
{
    struct schedule *s = w->s;
    form_id at[IR_MAX_RANK], folded[IR_MAX_RANK];
    const struct ir_node *n = ir_node_of(s->g, v);
    write_form_of_view(w, s->view_of[v], at);
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    struct view operand = axes_folded_view(&s->axes, n, 0, s->view_of[v], s->folded_of[v]);
    for (int i = 0; i < count; i++)
        write_form_of_atoms(w, operand.dims[axes[i]], &folded[i]);
    struct nest_combine c = write_combine_of(w, v, at, NEST_NONE, folded);
    emit_put_combine(&w->e, write_output_of(w, v), write_linear_of(w, v, at), fold, &c);
}

// Loops that are not written for each result.
static struct atoms outer_loops(struct writer *w)
{
    struct atoms around = axes_concat(&w->s->axes, w->g->points, w->g->fold);
    return axes_concat(&w->s->axes, around, w->g->unrolled);
}

// The results of a group that have the same inner loops, in those loops.
static void put_roots(struct writer *w, uint32_t n, const ir_id *roots, nest_id fold)
{
    struct schedule *s = w->s;
    struct atoms outer = outer_loops(w);
    struct atoms inner =
        axes_minus(&s->axes, axes_of_view(&s->axes, s->view_of[roots[0]]), outer);
    scope_id back = w->e.at;
    nest_id *axes = arena_array(s->scratch, nest_id, inner.count);
    form_id *loop = arena_array(s->scratch, form_id, inner.count);
    struct binding *undo = arena_array(s->scratch, struct binding, inner.count * n);
    write_open_map(w, &s->axes, inner, axes);
    for (uint32_t i = 0; i < inner.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    uint32_t n_bound = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct atoms own =
            axes_minus(&s->axes, axes_of_view(&s->axes, s->view_of[roots[i]]), outer);
        // Roots of the same atoms are bound once.
        if (own.count && s->bound[own.at[0]] == loop[0])
            continue;
        write_bind(w, own, loop, undo + n_bound);
        n_bound += own.count;
    }
    for (uint32_t iteration = 0; iteration < write_unrolled_iterations(w); iteration++) {
        struct binding undo_iteration[COST_THREAD_UNROLL];
        write_bind_unrolled(w, iteration, undo_iteration);
        for (uint32_t i = 0; i < n; i++) {
            const struct ir_node *node = ir_node_of(s->g, roots[i]);
            struct atoms view = axes_of_view(&s->axes, s->view_of[roots[i]]);
            struct atoms own = axes_concat(&s->axes, view, axes_dependence(&s->axes, view));
            if (!write_is_first_iteration(w, own, iteration))
                continue;
            if (fold != NEST_NONE && node_is_folding(node) && write_is_terminal(w, roots[i]))
                put_terminal(w, roots[i], fold);
            else
                put_root(w, roots[i]);
        }
        write_unbind(w, w->g->unrolled.count, undo_iteration);
    }
    write_unbind(w, n_bound, undo);
    if (inner.count)
        emit_close(&w->e, back, 0, NULL);
}

// Whether the value is computed after the fold of the group, not in it.
static bool is_after(struct writer *w, ir_id v)
{
    struct atoms depends =
        axes_dependence(&w->s->axes, axes_of_view(&w->s->axes, w->s->view_of[v]));
    return !axes_include(&w->s->axes, axes_leaves(&w->s->axes, depends), w->g->fold) &&
           !write_is_terminal(w, v);
}

// Whether loops can be those of the atoms, given the atoms that they already are, `bound`, sets of
// the same size one after the other.
static bool may_share(struct schedule *s, struct atoms own, struct atoms *bound)
{
    for (uint32_t i = 0; i + own.count <= bound->count; i += own.count ? own.count : 1)
        if (!own.count || !memcmp(bound->at + i, own.at, own.count * sizeof *own.at))
            return true;
    for (uint32_t i = 0; i < own.count; i++)
        if (axes_contain(&s->axes, *bound, own.at[i]))
            return false;
    *bound = axes_concat(&s->axes, *bound, own);
    return true;
}

// All roots of the list, those with equal inner loops together.
static void put_all(struct writer *w, uint32_t count, const ir_id *roots, nest_id fold)
{
    struct schedule *s = w->s;
    struct atoms outer = outer_loops(w);
    bool *done = arena_array(s->scratch, bool, count);
    ir_id *some = arena_array(s->scratch, ir_id, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = 0;
        if (done[i])
            continue;
        if (write_is_put(w, roots[i]))
            continue;
        struct atoms a = axes_minus(&s->axes, axes_of_view(&s->axes, s->view_of[roots[i]]),
                                    outer),
                     bound = a;
        for (uint32_t k = i; k < count; k++) {
            struct atoms b =
                axes_minus(&s->axes, axes_of_view(&s->axes, s->view_of[roots[k]]), outer);
            if (done[k] || write_is_put(w, roots[k]) || !write_same_extents(s, a, b) ||
                !may_share(s, b, &bound))
                continue;
            done[k] = true;
            some[n++] = roots[k];
        }
        put_roots(w, n, some, fold);
    }
}

// Folds of whole points come first, depth by depth, so that rows are filled before they are read.
static void emit_point_folds(struct writer *w)
{
    struct schedule *s = w->s;
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->g->reduced.count; i++) {
        uint32_t depth = write_fold_depth(w, w->g->reduced.at[i]);
        most = depth > most ? depth : most;
    }
    for (uint32_t depth = 1; depth <= most; depth++)
        for (uint32_t i = 0; i < w->g->reduced.count; i++) {
            ir_id v = w->g->reduced.at[i];
            form_id at[IR_MAX_RANK];
            if (write_fold_depth(w, v) == depth && !write_is_terminal(w, v) &&
                write_form_of_view(w, s->view_of[v], at))
                write_value_at(w, v, at, NEST_NONE);
        }
}

// Whether the fold of the group combines the value.
static bool is_combined(const struct writer *w, ir_id v)
{
    return !write_is_terminal(w, v) && axes_equal(&w->s->axes, w->s->folded_of[v], w->g->fold);
}

// Whether the fold of the group combines anything.  What is read at an index that is data alone is folded where it is
// read.
static bool combines_any(const struct writer *w)
{
    for (uint32_t i = 0; i < w->g->reduced.count; i++)
        if (is_combined(w, w->g->reduced.at[i]))
            return true;
    return false;
}

// The fold of the group, open: what is stored in every iteration, then what is combined.
static void emit_group_fold(struct writer *w, uint32_t n_inside, const ir_id *inside)
{
    struct schedule *s = w->s;
    struct atoms leaves = axes_leaves(&s->axes, w->g->fold);
    nest_id axes[MAX_LEAVES];
    form_id *loop = arena_array(s->scratch, form_id, leaves.count);
    struct binding *undo = arena_array(s->scratch, struct binding, leaves.count);
    scope_id scope = w->e.at;
    for (uint32_t i = 0; i < leaves.count; i++)
        axes[i] = emit_axis(&w->e, s->axes.atoms.at[leaves.at[i]].extent);
    scope_id body = emit_open(&w->e, scope, NEST_FOLD, (int)leaves.count, axes);
    for (uint32_t i = 0; i < leaves.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    write_bind(w, leaves, loop, undo);
    put_all(w, n_inside, inside, w->e.scopes.at[body].loop);

    VEC(struct nest_combine) combines = {0};
    VEC(ir_id) values = {0};
    for (uint32_t i = 0; i < w->g->reduced.count; i++) {
        ir_id v = w->g->reduced.at[i];
        form_id at[IR_MAX_RANK], folded[IR_MAX_RANK];
        const struct ir_node *n = ir_node_of(s->g, v);
        if (!is_combined(w, v))
            continue;
        write_form_of_view(w, s->view_of[v], at);
        write_deal_axes(w, n, leaves.count, axes, folded);
        vec_push(s->scratch, &combines, write_combine_of(w, v, at, NEST_NONE, folded));
        vec_push(s->scratch, &values, v);
    }
    write_unbind(w, leaves.count, undo);
    nest_id result = emit_close(&w->e, scope, (int)combines.count, combines.at);
    for (uint32_t i = 0; i < values.count; i++) {
        form_id at[IR_MAX_RANK];
        write_form_of_view(w, s->view_of[values.at[i]], at);
        write_remember(w, values.at[i], at, NEST_NONE,
                       write_result_of(w, values.at[i], &combines.at[i], result));
        result += nest_combine_results(combines.at[i].op);
    }
}

// A prefix fold: the loop over its axis stores the running values.
static void emit_scan(struct writer *w, ir_id v)
{
    struct schedule *s = w->s;
    const struct ir_node *n = ir_node_of(s->g, v);
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis);
    int rank = ir_rank_of(s->g, v);
    struct atoms all = axes_of_view(&s->axes, s->view_of[v]);
    struct atoms along = axes_leaves(&s->axes, s->view_of[v].dims[axis]);
    struct atoms inner = axes_minus(&s->axes, axes_minus(&s->axes, all, w->g->points), along);
    nest_id axes[MAX_LEAVES];
    form_id loop[MAX_LEAVES], at[IR_MAX_RANK];
    struct binding undo[MAX_LEAVES];
    scope_id back = w->e.at;
    write_open_map(w, &s->axes, inner, axes);
    for (uint32_t i = 0; i < inner.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    write_bind(w, inner, loop, undo);

    nest_id scan = emit_axis(&w->e, ir_dims_of(s->g, v)[axis]);
    scope_id outside = w->e.at;
    write_open_scan(w, n, scan);
    form_id along_forms[MAX_LEAVES], index = emit_form_axis(&w->e, scan);
    struct binding undo_scan[MAX_LEAVES];
    // The loop is one axis, whatever atoms it is seen as.
    for (uint32_t i = along.count; i-- > 0;) {
        along_forms[i] = index;
        if (i)
            emit_form_divide(&w->e, index, s->axes.atoms.at[along.at[i]].extent, &index,
                             &along_forms[i]);
    }
    write_bind(w, along, along_forms, undo_scan);
    for (int i = 0; i < rank; i++)
        write_form_of_atoms(w, s->view_of[v].dims[i], &at[i]);
    emit_put(&w->e, write_output_of(w, v), write_linear_of(w, v, at), write_running(w, n, at));
    write_unbind(w, along.count, undo_scan);
    emit_close(&w->e, outside, 0, NULL);
    write_unbind(w, inner.count, undo);
    if (inner.count)
        emit_close(&w->e, back, 0, NULL);
}

static void emit_roots(struct writer *w)
{
    struct schedule *s = w->s;
    VEC(ir_id) inside = {0}, after = {0};
    for (uint32_t i = 0; i < w->g->roots.count; i++) {
        ir_id v = w->g->roots.at[i];
        if (w->g->kind == GROUP_UPDATE)
            write_update(w, v);
        else if (node_is_scan(ir_node_of(s->g, v)))
            emit_scan(w, v);
        else if (w->g->fold.count && !is_after(w, v))
            vec_push(s->scratch, &inside, v);
        else
            vec_push(s->scratch, &after, v);
    }
    if (!w->g->fold.count)
        emit_point_folds(w);
    else if (inside.count || combines_any(w))
        emit_group_fold(w, inside.count, inside.at);
    if (after.count)
        put_all(w, after.count, after.at, NEST_NONE);
}

static void emit_kernel(struct writer *w)
{
    struct schedule *s = w->s;
    struct atoms points = axes_leaves(&s->axes, w->g->points);
    nest_id axes[MAX_LEAVES];
    form_id loop[MAX_LEAVES];
    struct binding undo[MAX_LEAVES];
    for (uint32_t i = 0; i < points.count; i++)
        axes[i] = emit_axis(&w->e, s->axes.atoms.at[points.at[i]].extent);
    if (points.count)
        emit_open(&w->e, 0, NEST_PAR, (int)points.count, axes);
    for (uint32_t i = 0; i < points.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    write_bind(w, points, loop, undo);
    w->point = w->e.at;
    emit_roots(w);
    write_unbind(w, points.count, undo);
    if (points.count)
        emit_close(&w->e, 0, 0, NULL);
    for (uint32_t i = 0; i < w->with_depth.count; i++)
        s->fold_depth[w->with_depth.at[i]] = NONE;
}

static struct writer writer_make(struct schedule *s, uint32_t group, const char *name)
{
    return (struct writer){.s = s,
                           .e = emit_make(s->program->arena, s->scratch, name),
                           .group = group,
                           .g = &s->groups.at[group]};
}

// The points with those last that the first result runs along in memory.
static struct atoms points_in_memory(struct schedule *s, const struct group *g)
{
    struct atoms points = axes_leaves(&s->axes, g->points);
    ir_id v = g->roots.at[0];
    if (!s->axis_last[v] || g->kind != GROUP_KERNEL)
        return points;
    struct atoms last = axes_leaves(&s->axes, s->view_of[v].dims[s->axis_last[v] - 1]);
    if (s->last_block[v])
        last = (struct atoms){1, last.at + last.count - 1};
    return axes_concat(&s->axes, axes_minus(&s->axes, points, last),
                       axes_intersect(&s->axes, points, last));
}

struct kernel nest_from_group(struct schedule *s, uint32_t group, const char *name)
{
    struct group *g = &s->groups.at[group];
    g->points = points_in_memory(s, g);
    g->fold = axes_leaves(&s->axes, g->fold);
    g->unrolled = axes_leaves(&s->axes, g->unrolled);
    struct writer last = writer_make(s, group, name), next = writer_make(s, group, name);
    emit_kernel(&last);
    write_choose_rows(&last, &next);
    while (next.rows.count) {
        struct writer read = writer_make(s, group, name);
        emit_kernel(&next);
        write_read_rows(&next, &read);
        if (read.rows.count == next.rows.count) {
            last = next;
            break;
        }
        next = read;
    }
    struct kernel k = {.nest = last.e.b.nest, .n_memories = last.memories.count};
    k.memories =
        arena_copy(s->program->arena, last.memories.at, k.n_memories * sizeof *k.memories);
    return k;
}
