// SPDX-License-Identifier: Apache-2.0
// Indices that are data: elements read there, and kernels that update an operand there.
//
//     y = scatter_add(x, i, u)        kernel (i: i32[N], u: f32[W N], y: inout f32[W M]) {
//                                       par w < W {
//     the memory of y holds x             seq n < N {
//     when the kernel begins                %p = load i[n], %g = 0 <= %p < M
//                                           put y[W %p + w] = load y[W %p + w] + u[W n + w] if %g
//                                         }}}
//
// Points of the parallel loop are what no two updates can meet in: axes of batches, and axes of the
// window along which it always starts at 0.  The others run in order, so the result is the same on
// any number of threads.
#include "schedule/write/write.h"

static nest_id constant(struct writer *w, int64_t x) { return emit_const(&w->e, JOT_I64, &x); }

// An integer of any type as an i64; what no i64 holds is the largest.
static nest_id widened_index(struct writer *w, nest_id x)
{
    jot_dtype d = w->e.b.nest->values.at[x].dtype;
    int64_t most = INT64_MAX;
    if (d == JOT_U64)
        x = emit_op2(&w->e, IR_min, d, x, emit_const(&w->e, d, &most));
    return d == JOT_I64 ? x : emit_op(&w->e, IR_convert, JOT_I64, 1, &x, NULL);
}

// The integer, 0 to last, as a coordinate.
static form_id index_form(struct writer *w, nest_id x, int64_t last)
{
    x = emit_op2(&w->e, IR_min, JOT_I64, emit_op2(&w->e, IR_max, JOT_I64, x, constant(w, 0)),
                 constant(w, last));
    w->e.value_extent.at[x] = last + 1;
    return emit_form(&w->e, 0, 1, &(struct nest_term){.factor = 1, .id = x, .is_value = true});
}

// Where the windows of slices start: operand `first` + i of the node along axis i.
static form_id slice_start(struct writer *w, const struct ir_node *n, uint32_t first, int axis,
                           int64_t last, nest_id guard)
{
    if (last == 0)
        return 0;
    return index_form(
        w, widened_index(w, write_at_operand(w, n, first + (uint32_t)axis, NULL, guard)), last);
}

nest_id write_dynamic_slice(struct writer *w, const struct ir_node *n, const form_id *at,
                            nest_id guard)
{
    const struct ir_graph *g = w->s->g;
    const int64_t *dims = ir_dims_of(g, ir_operand(g, n, 0)), *part = ir_dims_of(g, n->out);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < ir_rank_of(g, n->out); i++)
        from[i] =
            emit_form_add(&w->e, slice_start(w, n, 1, i, dims[i] - part[i], guard), 1, at[i]);
    return write_at_operand(w, n, 0, from, guard);
}

// The update where its window is, the operand elsewhere.
nest_id write_dynamic_update_slice(struct writer *w, const struct ir_node *n, const form_id *at,
                                   nest_id guard)
{
    const struct ir_graph *g = w->s->g;
    struct emitter *e = &w->e;
    ir_id update = ir_operand(g, n, 1);
    const int64_t *dims = ir_dims_of(g, n->out), *part = ir_dims_of(g, update);
    form_id from[IR_MAX_RANK];
    nest_id inside = NEST_NONE;
    if (value_count(w->s, update) == 0)
        return write_at_operand(w, n, 0, at, guard);
    for (int i = 0; i < ir_rank_of(g, n->out); i++) {
        from[i] = at[i];
        if (part[i] == dims[i])
            continue;
        form_id start = slice_start(w, n, 2, i, dims[i] - part[i], guard);
        from[i] = emit_form_add(e, start, -1, at[i]);
        inside = emit_both(e, inside, emit_not_less(e, from[i], 0));
        inside = emit_both(e, inside, emit_less(e, from[i], part[i]));
        if (part[i] == 1)
            from[i] = 0;
    }
    nest_id in[3] = {inside};
    in[1] = write_value_at(w, update, from, emit_both(e, guard, inside));
    if (inside == NEST_NONE)
        return in[1];
    in[2] = write_at_operand(w, n, 0, at, guard);
    return emit_op(e, IR_select, ir_dtype_of(g, n->out), 3, in, NULL);
}

// ---- Gather and scatter

struct ir_window write_window_of(const struct writer *w, const struct ir_node *n)
{
    const struct ir_graph *g = w->s->g;
    ir_id y = n->op == IR_gather ? n->out : ir_operand(g, n, 2);
    return ir_window_of(g->module, n->attrs, ir_type_of(g, ir_operand(g, n, 0)),
                        ir_type_of(g, ir_operand(g, n, 1)), ir_type_of(g, y));
}

void write_find_start(struct writer *w, const struct ir_node *n, const struct ir_window *v,
                      const form_id *at, nest_id guard, form_id *start, nest_id *inside)
{
    struct emitter *e = &w->e;
    bool moves = ir_mode_moves(ir_gather_of(n->attrs).mode);
    const int64_t *dims = ir_dims_of(w->s->g, ir_operand(w->s->g, n, 0));
    form_id indices[IR_MAX_RANK];
    *inside = NEST_NONE;
    for (int a = 0; a < v->index_rank; a++)
        indices[a] = at[v->index_axis[a]];
    for (int d = 0; d < v->rank; d++) {
        int64_t last = dims[d] - v->size[d];
        start[d] = 0;
        if (v->component[d] < 0 || (!last && moves))
            continue;
        indices[v->index_rank] = emit_form_constant(e, v->component[d]);
        nest_id x = widened_index(w, write_at_operand(w, n, 1, indices, guard));
        if (!moves) {
            nest_id low = emit_op2(&w->e, IR_ge, JOT_BOOL, x, constant(w, 0));
            nest_id high = emit_op2(&w->e, IR_le, JOT_BOOL, x, constant(w, last));
            *inside = emit_both(e, *inside, emit_both(e, low, high));
        }
        start[d] = last ? index_form(w, x, last) : 0;
    }
}

// The element of the operand that element `at` is about.
static void find_element(struct writer *w, const struct ir_node *n, const struct ir_window *v,
                         const form_id *at, nest_id guard, form_id *from, nest_id *inside)
{
    write_find_start(w, n, v, at, guard, from, inside);
    for (int d = 0; d < v->rank; d++)
        if (v->along[d] >= 0)
            from[d] = emit_form_add(&w->e, from[d], 1, at[v->along[d]]);
}

nest_id write_gather(struct writer *w, const struct ir_node *n, const form_id *at,
                     nest_id guard)
{
    struct ir_window v = write_window_of(w, n);
    enum ir_index_mode mode = ir_gather_of(n->attrs).mode;
    jot_dtype d = ir_dtype_of(w->s->g, n->out);
    form_id from[IR_MAX_RANK];
    unsigned char outside[16] = {0};
    nest_id in[3];
    find_element(w, n, &v, at, guard, from, &in[0]);
    in[1] = write_at_operand(w, n, 0, from, guard);
    if (in[0] == NEST_NONE)
        return in[1];
    if (mode == IR_MODE_FILL)
        ir_fill_element(d, outside);
    in[2] = emit_const(&w->e, d, outside);
    return emit_op(&w->e, IR_select, d, 3, in, NULL);
}

// ---- Kernels that update

ir_id write_updates_of(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_operand(g, n, n->op == IR_dynamic_update_slice ? 1 : 2);
}

uint32_t write_counting_axes(const struct ir_window *v)
{
    uint32_t counts = 0;
    for (int a = 0; a < v->index_rank; a++)
        counts |= UINT32_C(1) << v->index_axis[a];
    return counts;
}

// Whether updates along the axis of the updates never meet.
static bool is_free(const struct ir_node *n, const struct ir_window *v, int axis)
{
    struct ir_gather g = ir_gather_of(n->attrs);
    if (g.unique && g.mode != IR_MODE_CLIP)
        return true;
    for (int d = 0; d < v->rank; d++)
        if (v->along[d] == axis)
            return v->is_batch[d] || v->component[d] < 0;
    return false;
}

struct update_frame write_update_frame(struct schedule *s, const struct ir_node *n,
                                       struct view view)
{
    struct update_frame f = {.updates = write_updates_of(s->g, n)};
    if (n->op == IR_dynamic_update_slice) {
        f.points = axes_of_view(&s->axes, view);
        return f;
    }
    struct ir_type x = ir_type_of(s->g, ir_operand(s->g, n, 0));
    struct ir_type indices = ir_type_of(s->g, ir_operand(s->g, n, 1));
    struct ir_window v =
        ir_window_of(s->g->module, n->attrs, x, indices, ir_type_of(s->g, f.updates));
    uint32_t counts = write_counting_axes(&v);
    for (uint32_t d = 0; d < view.rank; d++) {
        struct atoms a = axes_leaves(&s->axes, view.dims[d]);
        if (is_free(n, &v, (int)d))
            f.points = axes_concat(&s->axes, f.points, a);
        else if (counts >> d & 1)
            f.order = axes_concat(&s->axes, f.order, a);
        else
            f.window = axes_concat(&s->axes, f.window, a);
    }
    f.is_by_element = write_is_by_element(s, n, &f);
    if (f.is_by_element)
        f.points = (struct atoms){0};
    return f;
}

nest_id write_combined(struct writer *w, const struct ir_node *n, nest_id old, nest_id update)
{
    enum ir_op op = ir_op_get((enum ir_op)n->op)->pair;
    return emit_op2(&w->e, op != IR_OP_COUNT ? op : (enum ir_op)n->op,
                    ir_dtype_of(w->s->g, n->out), old, update);
}

struct updated write_updated(struct writer *w, const struct ir_node *n, const form_id *at)
{
    const struct ir_graph *g = w->s->g;
    struct emitter *e = &w->e;
    struct updated u = {.inside = NEST_NONE};
    form_id to[IR_MAX_RANK];
    if (n->op == IR_dynamic_update_slice) {
        const int64_t *dims = ir_dims_of(g, n->out);
        const int64_t *part = ir_dims_of(g, ir_operand(g, n, 1));
        for (int i = 0; i < ir_rank_of(g, n->out); i++)
            to[i] = emit_form_add(e, slice_start(w, n, 2, i, dims[i] - part[i], NEST_NONE), 1,
                                  at[i]);
    } else {
        struct ir_window v = write_window_of(w, n);
        find_element(w, n, &v, at, NEST_NONE, to, &u.inside);
    }
    u.value = write_value_at(w, write_updates_of(w->s->g, n), at, NEST_NONE);
    u.index = w->frame ? write_inner_index(w, write_view(w, n->out), to)
                       : write_linear_of(w, n->out, to);
    return u;
}

void write_put_updated(struct writer *w, const struct ir_node *n, nest_id buffer,
                       const struct updated *u)
{
    nest_id value = u->value;
    if (ir_is_fold((enum ir_op)n->op))
        value = write_combined(w, n, emit_load_here(&w->e, buffer, u->index), value);
    emit_put_guarded(&w->e, buffer, u->index, value, u->inside);
}

void write_update(struct writer *w, ir_id v)
{
    struct schedule *s = w->s;
    const struct ir_node *n = ir_node_of(s->g, v);
    struct update_frame f = write_update_frame(s, n, s->view_of[v]);
    if (f.is_by_element) {
        write_by_element(w, v);
        return;
    }
    // On a GPU the elements of windows are turns of one loop, which threads share by elements (gpu/updates.c).
    bool is_sequence = s->options->one_loop && f.order.count;
    struct atoms inner = axes_concat(&s->axes, f.order, f.window);
    scope_id back = w->e.at, scopes[MAX_LEAVES];
    nest_id axes[MAX_LEAVES];
    form_id loop[MAX_LEAVES], at[IR_MAX_RANK];
    struct binding undo[MAX_LEAVES];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < inner.count; i++)
        axes[i] = emit_axis(&w->e, s->axes.atoms.at[inner.at[i]].extent);
    uint32_t turns = is_sequence ? inner.count : f.order.count;
    for (uint32_t i = 0; i < turns; i++) {
        scopes[depth++] = w->e.at;
        emit_open(&w->e, w->e.at, NEST_SEQ, 1, &axes[i]);
    }
    if (f.window.count && !is_sequence) {
        scopes[depth++] = w->e.at;
        emit_open(&w->e, w->e.at, NEST_MAP, (int)f.window.count, axes + f.order.count);
    }
    for (uint32_t i = 0; i < inner.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    write_bind(w, inner, loop, undo);
    write_form_of_view(w, s->view_of[v], at);
    struct updated u = write_updated(w, n, at);
    write_put_updated(w, n, write_buffer_of(w, schedule_memory(s, v), NEST_INOUT), &u);
    write_unbind(w, inner.count, undo);
    while (depth--)
        emit_close(&w->e, scopes[depth], 0, NULL);
    w->e.at = back;
}

// ---- Updates of what a lane has

// Whether the elements at the two indices are the same: NEST_NONE and *never for a sure answer.
static nest_id is_same_element(struct writer *w, int rank, const form_id *a, const form_id *b,
                               bool *never)
{
    nest_id same = NEST_NONE;
    int64_t distance, zero = 0;
    for (int d = 0; d < rank; d++) {
        form_id apart = emit_form_add(&w->e, a[d], -1, b[d]);
        if (emit_form_is_constant(&w->e, apart, &distance)) {
            *never |= distance != 0;
            continue;
        }
        nest_id at = emit_index(&w->e, apart, JOT_I64);
        same =
            emit_both(&w->e, same,
                      emit_op2(&w->e, IR_eq, JOT_BOOL, at, emit_const(&w->e, JOT_I64, &zero)));
    }
    return same;
}

struct update_order write_update_order(struct writer *w, const struct ir_node *n)
{
    struct view view = write_view(w, write_updates_of(w->s->g, n));
    struct atoms *dims = arena_array(w->lanes->space.scratch, struct atoms, view.rank + 1);
    struct update_order o = {.view = {view.rank, dims}};
    uint32_t counts = 0, next = 0;
    if (n->op != IR_dynamic_update_slice) {
        struct ir_window window = write_window_of(w, n);
        counts = write_counting_axes(&window);
    }
    for (int is_window = 0; is_window < 2; is_window++)
        for (uint32_t d = 0; d < view.rank; d++)
            if ((counts >> d & 1) == !is_window) {
                o.are_several |= !is_window && lanes_inner(w->lanes, view.dims[d]).count;
                dims[next] = view.dims[d];
                o.axis[next++] = d;
            }
    return o;
}

void write_unorder(const struct update_order *o, const form_id *ordered, form_id *at)
{
    for (uint32_t i = 0; i < o->view.rank; i++)
        at[o->axis[i]] = ordered[i];
}

nest_id write_scatter(struct writer *w, const struct ir_node *n, const form_id *at,
                      nest_id guard)
{
    ir_id updates = write_updates_of(w->s->g, n);
    struct update_order order = write_update_order(w, n);
    jot_dtype d = ir_dtype_of(w->s->g, n->out);
    struct ir_window window = write_window_of(w, n);
    int64_t count = lanes_inner_count(w->lanes, order.view);
    nest_id value = write_at_operand(w, n, 0, at, guard);
    for (int64_t i = 0; i < count; i++) {
        form_id ordered[IR_MAX_RANK], of[IR_MAX_RANK], to[IR_MAX_RANK];
        nest_id inside;
        bool never = false;
        write_forms_of_element(w, order.view, i, ordered);
        write_unorder(&order, ordered, of);
        find_element(w, n, &window, of, NEST_NONE, to, &inside);
        nest_id hits =
            emit_both(&w->e, inside, is_same_element(w, window.rank, to, at, &never));
        if (never)
            continue;
        nest_id next = write_value_at(w, updates, of, NEST_NONE);
        if (ir_is_fold((enum ir_op)n->op))
            next = write_combined(w, n, value, next);
        nest_id in[3] = {hits, next, value};
        value = hits == NEST_NONE ? next : emit_op(&w->e, IR_select, d, 3, in, NULL);
    }
    return value;
}
