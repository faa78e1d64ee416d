// SPDX-License-Identifier: Apache-2.0
// Folds: a loop where the result is wanted, shared by all that can be done in it.
#include "ir/scalar.h"
#include "schedule/write/write.h"

// How many folds, one after the other, a value of the group takes.
uint32_t write_fold_depth(struct writer *w, ir_id v)
{
    struct schedule *s = w->s;
    if (s->fold_depth[v] != NONE)
        return s->fold_depth[v];
    uint32_t depth = 0;
    const struct ir_node *n = ir_node_of(s->g, v);
    if (!s->is_stored[v] || write_is_member(w, v)) {
        for (uint32_t i = 0; i < n->n_in; i++) {
            uint32_t x = write_fold_depth(w, ir_operand(s->g, n, i));
            depth = x > depth ? x : depth;
        }
        depth += node_is_folding(n);
    }
    s->fold_depth[v] = depth;
    vec_push(s->scratch, &w->with_depth, v);
    return depth;
}

// One result of a fold loop.
struct fold_part {
    ir_id v;
    const form_id *at;
    nest_id guard;
    struct atoms leaves; // of its folded axes, none when v is not computed at its own view
    uint32_t iteration;  // of the loops that are written out, NONE: where they are bound
};

scope_id write_scope_of(const struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    scope_id scope = guard == NEST_NONE ? 0 : w->e.value_scope.at[guard];
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        scope = emit_deeper(&w->e, scope, w->e.forms.at[at[i]].scope);
    return scope;
}

bool write_same_extents(const struct schedule *s, struct atoms a, struct atoms b)
{
    for (uint32_t i = 0; i < a.count && i < b.count; i++)
        if (s->axes.atoms.at[a.at[i]].extent != s->axes.atoms.at[b.at[i]].extent)
            return false;
    return a.count == b.count;
}

bool write_is_terminal(const struct writer *w, ir_id v)
{
    return w->g->fold.count && axes_equal(&w->s->axes, w->s->folded_of[v], w->g->fold) &&
           axes_minus(&w->s->axes, axes_of_view(&w->s->axes, w->s->view_of[v]), w->g->points)
               .count;
}

static bool folds_one(const struct writer *w, ir_id v)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    const int64_t *dims = ir_dims_of(w->s->g, ir_operand(w->s->g, n, 0));
    for (int i = 0; i < count; i++)
        if (dims[axes[i]] != 1)
            return false;
    return true;
}

typedef VEC(struct fold_part) fold_parts;

// Loops that wait for the current one to be written have their atoms bound, but are not around it.
static bool are_seen(const struct writer *w, ir_id v, const form_id *at, scope_id from)
{
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        if (!emit_sees_from(&w->e, from, w->e.forms.at[at[i]].scope))
            return false;
    return true;
}

static bool is_part(const struct writer *w, const fold_parts *parts, ir_id v, const form_id *at)
{
    size_t bytes = (size_t)ir_rank_of(w->s->g, v) * sizeof *at;
    for (uint32_t i = 0; i < parts->count; i++)
        if (parts->at[i].v == v && (!bytes || !memcmp(parts->at[i].at, at, bytes)))
            return true;
    return false;
}

// Adds reduction v at its own coordinates to the fold loop that is to be opened in the scope.
static void add_sibling(struct writer *w, fold_parts *parts, scope_id scope, ir_id v,
                        uint32_t iteration)
{
    struct schedule *s = w->s;
    struct atoms leaves = axes_leaves(&s->axes, s->folded_of[v]);
    form_id *at = arena_array(s->scratch, form_id, IR_MAX_RANK);
    if (!write_same_extents(s, leaves, parts->at[0].leaves) ||
        !write_form_of_view(w, s->view_of[v], at))
        return;
    if (write_scope_of(w, v, at, NEST_NONE) != scope || !are_seen(w, v, at, scope) ||
        !write_is_home(w, v, at, scope) || is_part(w, parts, v, at) ||
        write_find_value(w, v, at, NEST_NONE) != NEST_NONE || write_filled_row(w, v, at))
        return;
    vec_push(s->scratch, parts, (struct fold_part){v, at, NEST_NONE, leaves, iteration});
}

// The other reductions of the group that can be done in the same loop, and the same one for all
// loops that are written out.
static void add_siblings(struct writer *w, fold_parts *parts, scope_id scope)
{
    for (uint32_t i = 0; i < w->g->reduced.count; i++) {
        ir_id v = w->g->reduced.at[i];
        if (write_is_terminal(w, v) || folds_one(w, v) ||
            write_fold_depth(w, v) != write_fold_depth(w, parts->at[0].v))
            continue;
        for (uint32_t iteration = 0; iteration < write_unrolled_iterations(w); iteration++) {
            struct binding undo[COST_THREAD_UNROLL];
            write_bind_unrolled(w, iteration, undo);
            add_sibling(w, parts, scope, v, iteration);
            write_unbind(w, w->g->unrolled.count, undo);
        }
    }
}

// Coordinates of operand i of a folding node: `at` of the result, `folded` by folded axis.
static void operand_coordinates(struct writer *w, const struct ir_node *n, uint32_t i,
                                const form_id *at, const form_id *folded, form_id *out)
{
    struct schedule *s = w->s;
    int count, rank = ir_rank_of(s->g, ir_operand(s->g, n, i));
    const int64_t *axes = node_folded_axes(n, i, &count);
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTRACT) {
        struct dot_shape d = dot_shape_of(s->g, n);
        int next = d.n_batch + (i ? d.n_free[0] : 0);
        for (int k = 0; k < d.n_batch; k++)
            out[d.batch[i][k]] = at[k];
        for (int k = 0; k < d.n_free[i]; k++)
            out[d.free[i][k]] = at[next + k];
    } else {
        uint32_t set = 0;
        for (int k = 0; k < count; k++)
            set |= UINT32_C(1) << axes[k];
        for (int d = 0, next = 0; d < rank; d++)
            if (!(set >> d & 1))
                out[d] = at[next++];
    }
    for (int k = 0; k < count; k++)
        out[axes[k]] = folded[k];
}

// No MAP row takes the larger of truth values: that is their or, and the smaller their and.
static uint16_t combiner_of(enum ir_op op, jot_dtype d)
{
    const struct ir_op_info *info = ir_op_get(op);
    if (d == JOT_BOOL && info->pair == IR_max)
        return IR_reduce_or;
    if (d == JOT_BOOL && info->pair == IR_min)
        return IR_reduce_and;
    return (uint16_t)info->combiner;
}

enum ir_op write_pair_of(const struct ir_node *n, jot_dtype d)
{
    return ir_op_get((enum ir_op)combiner_of((enum ir_op)n->op, d))->pair;
}

static nest_id identity_of(struct writer *w, const struct nest_combine *c)
{
    unsigned char element[16] = {0};
    uint64_t bits = scalar_identity((enum ir_op)c->op, c->dtype);
    memcpy(element, &bits, sizeof bits);
    return emit_const(&w->e, c->dtype, element);
}

nest_id write_begun(struct writer *w, const struct nest_combine *c, nest_id x)
{
    if (scalar_identity_is_neutral((enum ir_op)c->op, c->dtype))
        return x;
    nest_id in[2] = {identity_of(w, c), x};
    return emit_op(&w->e, ir_op_get((enum ir_op)c->op)->pair, c->dtype, 2, in, NULL);
}

static nest_id widened(struct writer *w, nest_id x, jot_dtype d)
{
    return dtype_is_half(d) ? emit_op(&w->e, IR_convert, JOT_F32, 1, &x, NULL) : x;
}

nest_id write_running(struct writer *w, const struct ir_node *n, const form_id *at)
{
    jot_dtype d = ir_dtype_of(w->s->g, n->out);
    struct nest_combine c = {.op = combiner_of((enum ir_op)n->op, d),
                             .n = 1,
                             .dtype = dtype_is_half(d) ? JOT_F32 : d};
    c.order = nest_is_free(c.op, d) ? NEST_FREE : NEST_SERIAL;
    c.value[0] = widened(w, write_at_operand(w, n, 0, at, NEST_NONE), d);
    nest_id running = emit_yield(&w->e, &c);
    return c.dtype != d ? emit_op(&w->e, IR_convert, d, 1, &running, NULL) : running;
}

// What the folding node v combines, at an element of its sequence.
struct nest_combine write_combine_of(struct writer *w, ir_id v, const form_id *at,
                                     nest_id guard, const form_id *folded)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    jot_dtype d = ir_dtype_of(w->s->g, ir_operand(w->s->g, n, 0));
    bool is_arg = ir_is_arg((enum ir_op)n->op);
    struct nest_combine c = {.op = combiner_of((enum ir_op)n->op, d),
                             .n = (uint16_t)n->n_in,
                             .dtype = dtype_is_half(d) && !is_arg ? JOT_F32 : d};
    c.order = nest_fold_order(c.op, d);
    for (uint32_t i = 0; i < n->n_in; i++) {
        form_id from[IR_MAX_RANK];
        operand_coordinates(w, n, i, at, folded, from);
        c.value[i] = write_at_operand(w, n, i, from, guard);
        if (!is_arg)
            c.value[i] = widened(w, c.value[i], d);
    }
    return c;
}

// Deals the loops out to the folded axes of a node.
void write_deal_axes(struct writer *w, const struct ir_node *n, uint32_t n_axes,
                     const nest_id *axes, form_id *out)
{
    int count;
    const int64_t *folded = node_folded_axes(n, 0, &count);
    const int64_t *dims = ir_dims_of(w->s->g, ir_operand(w->s->g, n, 0));
    uint32_t next = 0;
    for (int i = 0; i < count; i++) {
        int64_t have = 1;
        out[i] = 0;
        while (have < dims[folded[i]] && next < n_axes) {
            int64_t extent = w->e.b.nest->axes.at[axes[next]].extent;
            form_id axis = emit_form_axis(&w->e, axes[next++]);
            out[i] = emit_form_add(&w->e, out[i], extent, axis);
            have *= extent;
        }
    }
}

// The result of a fold as the value of the graph.
nest_id write_result_of(struct writer *w, ir_id v, const struct nest_combine *c, nest_id result)
{
    jot_dtype d = ir_dtype_of(w->s->g, v);
    if (nest_combine_results(c->op) == 2) {
        result++;
        return d == JOT_I64 ? result : emit_op(&w->e, IR_convert, d, 1, &result, NULL);
    }
    return c->dtype == d ? result : emit_op(&w->e, IR_convert, d, 1, &result, NULL);
}

// Axes for the folded atoms of v, or for its folded axes: at least one.
static uint32_t fold_axes(struct writer *w, ir_id v, struct atoms leaves, bool has_leaves,
                          nest_id *axes)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    uint32_t count = 0;
    if (has_leaves) {
        for (uint32_t i = 0; i < leaves.count; i++)
            axes[count++] = emit_axis(&w->e, w->s->axes.atoms.at[leaves.at[i]].extent);
    } else {
        int n_folded;
        const int64_t *folded = node_folded_axes(n, 0, &n_folded);
        const int64_t *dims = ir_dims_of(w->s->g, ir_operand(w->s->g, n, 0));
        for (int i = 0; i < n_folded; i++)
            if (dims[folded[i]] != 1)
                axes[count++] = emit_axis(&w->e, dims[folded[i]]);
    }
    // One element is combined with the neutral one all the same: -0 becomes 0.
    if (count == 0)
        axes[count++] = emit_axis(&w->e, 1);
    return count;
}

// A fold of one element as an op: the element, after the neutral one where that can show (-0).
// Types whose folds round elsewhere keep their loop.
static nest_id fold_one(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    jot_dtype d = ir_dtype_of(w->s->g, v);
    form_id folded[IR_MAX_RANK] = {0};
    if (dtype_is_half(d) || dtype_is_complex(d) || ir_is_arg((enum ir_op)n->op))
        return NEST_NONE;
    if (write_pair_of(n, d) == IR_OP_COUNT)
        return NEST_NONE;
    struct nest_combine c = write_combine_of(w, v, at, guard, folded);
    nest_id in[3] = {c.value[0], c.value[1], identity_of(w, &c)};
    if (c.op == IR_fma && dtype_is_float(d))
        return emit_op(&w->e, IR_fma, d, 3, in, NULL);
    if (c.op == IR_fma)
        return emit_op(&w->e, IR_mul, d, 2, in, NULL);
    return write_begun(w, &c, in[0]);
}

nest_id write_fold(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    struct schedule *s = w->s;
    fold_parts parts = {0};
    nest_id one = folds_one(w, v) ? fold_one(w, v, at, guard) : NEST_NONE;
    if (one != NEST_NONE)
        return one;
    bool natural = guard == NEST_NONE && write_is_natural(w, v, at);
    struct atoms leaves = natural ? axes_leaves(&s->axes, s->folded_of[v]) : (struct atoms){0};
    scope_id scope = write_scope_of(w, v, at, guard), back = w->e.at;
    if (w->frame)
        scope = emit_deeper(&w->e, scope, w->frame->scope);
    nest_id axes[MAX_LEAVES];
    vec_push(s->scratch, &parts, (struct fold_part){v, at, guard, leaves, NONE});
    if (natural)
        add_siblings(w, &parts, scope);

    uint32_t n_axes = fold_axes(w, v, leaves, natural, axes);
    emit_open(&w->e, scope, NEST_FOLD, (int)n_axes, axes);
    form_id *loop = arena_array(s->scratch, form_id, n_axes);
    for (uint32_t i = 0; i < n_axes; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    struct binding *undo =
        arena_array(s->scratch, struct binding, leaves.count * parts.count + 1);
    for (uint32_t i = 0; i < parts.count; i++)
        write_bind(w, parts.at[i].leaves, loop, undo + i * leaves.count);

    struct nest_combine *combines = arena_array(s->scratch, struct nest_combine, parts.count);
    for (uint32_t i = 0; i < parts.count; i++) {
        struct fold_part *p = &parts.at[i];
        form_id folded[IR_MAX_RANK];
        struct binding undo_iteration[COST_THREAD_UNROLL];
        write_deal_axes(w, ir_node_of(s->g, p->v), n_axes, axes, folded);
        if (p->iteration != NONE)
            write_bind_unrolled(w, p->iteration, undo_iteration);
        combines[i] = write_combine_of(w, p->v, p->at, p->guard, folded);
        if (p->iteration != NONE)
            write_unbind(w, w->g->unrolled.count, undo_iteration);
    }
    write_unbind(w, leaves.count * parts.count, undo);
    nest_id result = emit_close(&w->e, back, (int)parts.count, combines), mine = NEST_NONE;
    for (uint32_t i = 0; i < parts.count; i++) {
        struct fold_part *p = &parts.at[i];
        nest_id r = write_result_of(w, p->v, &combines[i], result);
        write_note(w, p->v, p->at, p->guard, r);
        mine = i == 0 ? r : mine;
        result += nest_combine_results(combines[i].op);
    }
    return mine;
}
