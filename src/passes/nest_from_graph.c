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
// memory.  That it is wanted twice is only known at the end, so such a kernel is written again.
#include "passes/emit.h"

struct known_value {
    ir_id v;
    nest_id guard;
    const form_id *at;
    nest_id result;
};

struct row { // the local copy of a value
    ir_id v;
    nest_id local;
    scope_id loop; // that fills it, NONE so far
};

struct writer {
    struct schedule *s;
    struct emitter e;
    uint32_t group;
    struct group *g;
    scope_id point; // the scope of the parallel loop
    VEC(struct known_value) values;
    struct hash_table value_table;
    VEC(struct row) rows;
    VEC(uint32_t) memories; // by buffer that is no local
    VEC(nest_id) buffers;   // the same, their numbers
    VEC(ir_id) counted;     // values with a count in s->computed
    VEC(ir_id) staged;      // values with a number in s->stage
};

static nest_id value_at(struct writer *w, ir_id v, const form_id *at, nest_id guard);

// ---- Memory

static nest_id buffer_of(struct writer *w, uint32_t memory, enum nest_role role)
{
    for (uint32_t i = 0; i < w->memories.count; i++)
        if (w->memories.at[i] == memory)
            return w->buffers.at[i];
    const struct nest_memory *m = &w->s->program->memories.at[memory];
    nest_id b = nest_buffer(&w->e.b, m->name, m->dtype, m->count, role);
    vec_push(w->s->scratch, &w->memories, memory);
    vec_push(w->s->scratch, &w->buffers, b);
    return b;
}

static form_id linear_of(struct writer *w, ir_id v, const form_id *at)
{
    return emit_form_linear(&w->e, ir_rank_of(w->s->g, v), ir_dims_of(w->s->g, v), at);
}

static nest_id load_value(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    nest_id b = buffer_of(w, schedule_memory(w->s, v), NEST_IN);
    return emit_load(&w->e, b, linear_of(w, v, at), guard);
}

static nest_id zero_of(struct writer *w, jot_dtype d)
{
    static const unsigned char zero[16];
    return emit_const(&w->e, d, zero);
}

// ---- Loops of the group

// The coordinate that a sequence of atoms stands for; false when one of them has no loop.
static bool form_of_atoms(struct writer *w, struct atoms a, form_id *out)
{
    struct schedule *s = w->s;
    a = axes_leaves(s, a);
    form_id f = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        uint32_t bound = a.at[i] < s->n_bound ? s->bound[a.at[i]] : NONE;
        if (bound == NONE)
            return false;
        f = i == 0 ? bound : emit_form_add(&w->e, f, s->atoms.at[a.at[i]].extent, bound);
    }
    *out = f;
    return true;
}

static bool form_of_view(struct writer *w, struct view v, form_id *at)
{
    for (uint32_t i = 0; i < v.rank; i++)
        if (!form_of_atoms(w, v.dims[i], &at[i]))
            return false;
    return true;
}

static bool is_member(const struct writer *w, ir_id v)
{
    return w->s->decision[v] == DECIDE_MEMBER &&
           group_root(w->s, w->s->group_of[v]) == w->group;
}

// Whether the coordinates are those at which the group computes its member v.
static bool is_natural(struct writer *w, ir_id v, const form_id *at)
{
    form_id own[IR_MAX_RANK];
    if (!is_member(w, v) || !form_of_view(w, w->s->view_of[v], own))
        return false;
    uint32_t rank = w->s->view_of[v].rank;
    return !rank || !memcmp(own, at, rank * sizeof *own);
}

struct binding {
    atom_id atom;
    form_id before;
};

static void bind(struct writer *w, struct atoms leaves, const form_id *forms,
                 struct binding *undo)
{
    for (uint32_t i = 0; i < leaves.count; i++) {
        undo[i] = (struct binding){leaves.at[i], w->s->bound[leaves.at[i]]};
        w->s->bound[leaves.at[i]] = forms[i];
    }
}

static void unbind(struct writer *w, uint32_t n, const struct binding *undo)
{
    for (uint32_t i = n; i-- > 0;)
        w->s->bound[undo[i].atom] = undo[i].before;
}

// Places of the loops that are written out, counted in row-major order.
static uint32_t unrolled_places(const struct writer *w)
{
    return (uint32_t)axes_product(w->s, w->g->unrolled);
}

static void bind_unrolled(struct writer *w, uint32_t place, struct binding *undo)
{
    struct atoms a = w->g->unrolled;
    form_id forms[COST_UNROLL];
    for (uint32_t i = a.count; i-- > 0;) {
        int64_t extent = w->s->atoms.at[a.at[i]].extent;
        forms[i] = emit_form_constant(&w->e, place % extent);
        place /= (uint32_t)extent;
    }
    bind(w, a, forms, undo);
}

static bool overlaps(const struct writer *w, struct atoms a, struct atoms b)
{
    for (uint32_t i = 0; i < a.count; i++)
        if (axes_contain(w->s, b, a.at[i]))
            return true;
    return false;
}

// ---- Changes of index

static nest_id at_operand(struct writer *w, const struct ir_node *n, uint32_t i,
                          const form_id *at, nest_id guard)
{
    return value_at(w, ir_operand(w->s->g, n, i), at, guard);
}

static nest_id emit_broadcast(struct writer *w, const struct ir_node *n, const form_id *at,
                              nest_id guard)
{
    ir_id x = ir_operand(w->s->g, n, 0);
    const int64_t *dims = ir_dims_of(w->s->g, x);
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < ir_rank_of(w->s->g, x); i++)
        from[i] = dims[i] == 1 ? 0 : at[axes[i]];
    return value_at(w, x, from, guard);
}

static nest_id emit_transpose(struct writer *w, const struct ir_node *n, const form_id *at,
                              nest_id guard)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < count; i++)
        from[axes[i]] = at[i];
    return at_operand(w, n, 0, from, guard);
}

static nest_id emit_rev(struct writer *w, const struct ir_node *n, const form_id *at,
                        nest_id guard)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    const int64_t *dims = ir_dims_of(w->s->g, n->out);
    form_id from[IR_MAX_RANK];
    memcpy(from, at, (size_t)ir_rank_of(w->s->g, n->out) * sizeof *at);
    for (int i = 0; i < count; i++)
        from[axes[i]] = emit_form_affine(&w->e, at[axes[i]], -1, dims[axes[i]] - 1);
    return at_operand(w, n, 0, from, guard);
}

static nest_id emit_slice(struct writer *w, const struct ir_node *n, const form_id *at,
                          nest_id guard)
{
    int count;
    const int64_t *starts = ir_attr_ints(n->attrs, IR_KEY_starts, &count);
    const int64_t *strides = ir_attr_ints(n->attrs, IR_KEY_strides, &count);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < ir_rank_of(w->s->g, n->out); i++)
        from[i] = emit_form_affine(&w->e, at[i], strides[i], starts[i]);
    return at_operand(w, n, 0, from, guard);
}

// Blocks of axes with equal products are counted through one by one.
static nest_id emit_reshape(struct writer *w, const struct ir_node *n, const form_id *at,
                            nest_id guard)
{
    ir_id v = ir_operand(w->s->g, n, 0);
    int rank = ir_rank_of(w->s->g, v), result_rank = ir_rank_of(w->s->g, n->out), i = 0, k = 0;
    const int64_t *dims = ir_dims_of(w->s->g, v), *result_dims = ir_dims_of(w->s->g, n->out);
    form_id from[IR_MAX_RANK];
    while (i < rank || k < result_rank) {
        int first = i;
        int64_t x = i < rank ? dims[i++] : 1, y = 1;
        form_id f = 0;
        if (k < result_rank) {
            y = result_dims[k];
            f = at[k++];
        }
        while (x != y) {
            if ((x < y && i < rank) || k == result_rank) {
                x *= dims[i++];
            } else {
                y *= result_dims[k];
                f = emit_form_add(&w->e, f, result_dims[k], at[k]);
                k++;
            }
        }
        for (int d = i; d-- > first;) {
            from[d] = 0;
            if (dims[d] == 1)
                continue;
            if (dims[d] == x)
                from[d] = f;
            else
                emit_form_divide(&w->e, f, dims[d], &f, &from[d]);
            x /= dims[d];
        }
    }
    return value_at(w, v, from, guard);
}

static nest_id emit_pad(struct writer *w, const struct ir_node *n, const form_id *at,
                        nest_id guard)
{
    struct emitter *e = &w->e;
    ir_id x = ir_operand(w->s->g, n, 0);
    const int64_t *dims = ir_dims_of(w->s->g, x);
    int count;
    const int64_t *low = ir_attr_ints(n->attrs, IR_KEY_low, &count);
    const int64_t *interior = ir_attr_ints(n->attrs, IR_KEY_interior, &count);
    form_id from[IR_MAX_RANK];
    nest_id inside = NEST_NONE, in[3];
    in[2] = at_operand(w, n, 1, NULL, guard);
    if (value_count(w->s, x) == 0)
        return in[2];
    for (int i = 0; i < ir_rank_of(w->s->g, x); i++) {
        form_id f = emit_form_affine(e, at[i], 1, -low[i]), rest;
        inside = emit_both(e, inside, emit_not_less(e, f, 0));
        if (interior[i]) {
            emit_form_divide(e, f, interior[i] + 1, &f, &rest);
            inside = emit_both(e, inside, emit_less(e, rest, 1));
        }
        inside = emit_both(e, inside, emit_less(e, f, dims[i]));
        from[i] = dims[i] == 1 ? 0 : f;
    }
    if (inside == NEST_NONE)
        return value_at(w, x, from, guard);
    in[0] = inside;
    in[1] = value_at(w, x, from, emit_both(e, guard, inside));
    return emit_op(e, IR_select, ir_dtype_of(w->s->g, x), 3, in, NULL);
}

static nest_id emit_concatenate(struct writer *w, const struct ir_node *n, const form_id *at,
                                nest_id guard)
{
    struct emitter *e = &w->e;
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis);
    int64_t end = ir_dims_of(w->s->g, n->out)[axis];
    int64_t low = e->forms.at[at[axis]].low, high = e->forms.at[at[axis]].high;
    form_id from[IR_MAX_RANK];
    memcpy(from, at, (size_t)ir_rank_of(w->s->g, n->out) * sizeof *at);
    nest_id result = NEST_NONE;
    for (uint32_t i = n->n_in; i-- > 0;) {
        ir_id x = ir_operand(w->s->g, n, i);
        int64_t extent = ir_dims_of(w->s->g, x)[axis], start = end - extent;
        bool is_there = extent && high >= start && (low < end || i == 0);
        // Outside of the whole, where a guard stands, any part will do.
        is_there |= extent && i == 0 && result == NEST_NONE;
        if (is_there) {
            nest_id before = result == NEST_NONE ? NEST_NONE : emit_less(e, at[axis], end);
            nest_id after = start == 0 ? NEST_NONE : emit_not_less(e, at[axis], start);
            from[axis] = extent == 1 ? 0 : emit_form_affine(e, at[axis], 1, -start);
            nest_id part = value_at(w, x, from, emit_both(e, guard, emit_both(e, before, after)));
            nest_id in[3] = {before, part, result};
            result = before == NEST_NONE
                         ? part
                         : emit_op(e, IR_select, ir_dtype_of(w->s->g, x), 3, in, NULL);
        }
        end = start;
    }
    return result == NEST_NONE ? zero_of(w, ir_dtype_of(w->s->g, n->out)) : result;
}

static nest_id emit_iota(struct writer *w, const struct ir_node *n, const form_id *at)
{
    jot_dtype d = ir_dtype_of(w->s->g, n->out);
    form_id f = at[ir_attr_int(n->attrs, IR_KEY_axis)];
    if (d == JOT_I64 || d == JOT_I32)
        return emit_index(&w->e, f, d);
    nest_id index = emit_index(&w->e, f, JOT_I64);
    return emit_op(&w->e, IR_convert, d, 1, &index, NULL);
}

static bool is_repeated(const unsigned char *data, size_t bytes, size_t size)
{
    return bytes <= size || !memcmp(data, data + size, bytes - size);
}

static nest_id emit_constant(struct writer *w, const struct ir_node *n, const form_id *at,
                             nest_id guard)
{
    struct schedule *s = w->s;
    jot_dtype d = ir_dtype_of(s->g, n->out);
    size_t size = dtype_get(d)->bytes;
    const struct ir_field *data = ir_field_find(n->attrs, IR_KEY_data);
    const unsigned char *bytes = data->bytes;
    int64_t place;
    if (is_repeated(bytes, data->count, size))
        return emit_const(&w->e, d, bytes);
    if (emit_form_is_constant(&w->e, linear_of(w, n->out, at), &place) && place >= 0 &&
        place < value_count(s, n->out))
        return emit_const(&w->e, d, bytes + (size_t)place * size);
    return load_value(w, n->out, at, guard);
}

// ---- Elementwise ops

static nest_id emit_map(struct writer *w, const struct ir_node *n, uint32_t result,
                        const form_id *at, nest_id guard)
{
    const struct ir_graph *g = w->s->g;
    const int64_t *dims = ir_dims_of(g, n->out);
    nest_id in[4];
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        const int64_t *from_dims = ir_dims_of(g, x);
        form_id from[IR_MAX_RANK];
        for (int k = 0; k < ir_rank_of(g, x); k++)
            from[k] = from_dims[k] == 1 && dims[k] != 1 ? 0 : at[k];
        in[i] = value_at(w, x, from, guard);
    }
    if (n->op == IR_convert && ir_dtype_of(g, n->out) == ir_dtype_of(g, ir_operand(g, n, 0)))
        return in[0];
    int64_t bits[2] = {0};
    if (n->op == IR_integer_pow)
        bits[0] = ir_attr_int(n->attrs, IR_KEY_exponent);
    if (n->op == IR_reduce_precision) {
        bits[0] = ir_attr_int(n->attrs, IR_KEY_exponent_bits);
        bits[1] = ir_attr_int(n->attrs, IR_KEY_mantissa_bits);
    }
    return emit_op(&w->e, (enum ir_op)n->op, ir_dtype_of(g, n->out), (int)n->n_in, in, bits) +
           result;
}

// ---- Folds

// How many folds, one after the other, a value of the group takes.
static uint32_t stage_of(struct writer *w, ir_id v)
{
    struct schedule *s = w->s;
    if (s->stage[v] != NONE)
        return s->stage[v];
    uint32_t stage = 0;
    const struct ir_node *n = ir_node_of(s->g, v);
    if (!s->is_stored[v] || is_member(w, v)) {
        for (uint32_t i = 0; i < n->n_in; i++) {
            uint32_t x = stage_of(w, ir_operand(s->g, n, i));
            stage = x > stage ? x : stage;
        }
        stage += node_is_folding(n);
    }
    s->stage[v] = stage;
    vec_push(s->scratch, &w->staged, v);
    return stage;
}

// One result of a fold loop.
struct fold_part {
    ir_id v;
    const form_id *at;
    nest_id guard;
    struct atoms leaves; // of its folded axes, none when v is not computed at its own view
    uint32_t place;      // of the loops that are written out, NONE: where they are bound
};

static scope_id scope_of(const struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    scope_id scope = guard == NEST_NONE ? 0 : w->e.value_scope.at[guard];
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        scope = emit_deeper(&w->e, scope, w->e.forms.at[at[i]].scope);
    return scope;
}

static nest_id find_value(const struct writer *w, ir_id v, const form_id *at, nest_id guard);

static bool same_extents(const struct schedule *s, struct atoms a, struct atoms b)
{
    for (uint32_t i = 0; i < a.count && i < b.count; i++)
        if (s->atoms.at[a.at[i]].extent != s->atoms.at[b.at[i]].extent)
            return false;
    return a.count == b.count;
}

static bool is_terminal(const struct writer *w, ir_id v)
{
    return w->g->fold.count && axes_equal(w->s, w->s->folded_of[v], w->g->fold) &&
           axes_minus(w->s, axes_of_view(w->s, w->s->view_of[v]), w->g->points).count;
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

// Adds reduction v at its own place to the fold loop that is to be opened in the scope.
static void add_sibling(struct writer *w, fold_parts *parts, scope_id scope, ir_id v,
                        uint32_t place)
{
    struct schedule *s = w->s;
    struct atoms leaves = axes_leaves(s, s->folded_of[v]);
    form_id *at = arena_array(s->scratch, form_id, IR_MAX_RANK);
    if (!same_extents(s, leaves, parts->at[0].leaves) || !form_of_view(w, s->view_of[v], at))
        return;
    if (scope_of(w, v, at, NEST_NONE) != scope || !are_seen(w, v, at, scope) ||
        is_part(w, parts, v, at) || find_value(w, v, at, NEST_NONE) != NEST_NONE)
        return;
    vec_push(s->scratch, parts, (struct fold_part){v, at, NEST_NONE, leaves, place});
}

// The other reductions of the group that can be done in the same loop, and the same one for all
// loops that are written out.
static void add_siblings(struct writer *w, fold_parts *parts, scope_id scope)
{
    for (uint32_t i = 0; i < w->g->reduced.count; i++) {
        ir_id v = w->g->reduced.at[i];
        if (is_terminal(w, v) || folds_one(w, v) ||
            stage_of(w, v) != stage_of(w, parts->at[0].v))
            continue;
        for (uint32_t place = 0; place < unrolled_places(w); place++) {
            struct binding undo[COST_UNROLL];
            bind_unrolled(w, place, undo);
            add_sibling(w, parts, scope, v, place);
            unbind(w, w->g->unrolled.count, undo);
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
    if (n->op == IR_dot_general) {
        struct dot_shape d = dot_shape_of(s, n);
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

static uint16_t combiner_of(enum ir_op op, jot_dtype d)
{
    switch (op) {
    case IR_dot_general:
        return IR_fma;
    case IR_reduce_max:
        return d == JOT_BOOL ? IR_reduce_or : IR_reduce_max;
    case IR_reduce_min:
        return d == JOT_BOOL ? IR_reduce_and : IR_reduce_min;
    case IR_cumsum:
        return IR_reduce_sum;
    case IR_cumprod:
        return IR_reduce_prod;
    case IR_cummax:
        return IR_reduce_max;
    case IR_cummin:
        return IR_reduce_min;
    default:
        return (uint16_t)op;
    }
}

static nest_id widened(struct writer *w, nest_id x, jot_dtype d)
{
    return dtype_is_half(d) ? emit_op(&w->e, IR_convert, JOT_F32, 1, &x, NULL) : x;
}

// What the folding node v combines, at an element of its sequence.
static struct nest_combine combine_of(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                                      const form_id *folded)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    jot_dtype d = ir_dtype_of(w->s->g, ir_operand(w->s->g, n, 0));
    bool is_arg = n->op == IR_argmax || n->op == IR_argmin;
    struct nest_combine c = {.op = combiner_of((enum ir_op)n->op, d),
                             .n = (uint16_t)n->n_in,
                             .dtype = dtype_is_half(d) && !is_arg ? JOT_F32 : d};
    for (uint32_t i = 0; i < n->n_in; i++) {
        form_id from[IR_MAX_RANK];
        operand_coordinates(w, n, i, at, folded, from);
        c.value[i] = at_operand(w, n, i, from, guard);
        if (!is_arg)
            c.value[i] = widened(w, c.value[i], d);
    }
    return c;
}

// Deals the loops out to the folded axes of a node.
static void deal_axes(struct writer *w, const struct ir_node *n, uint32_t n_axes,
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

static void remember(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id result);

// The result of a fold as the value of the graph.
static nest_id result_of(struct writer *w, ir_id v, const struct nest_combine *c, nest_id result)
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
            axes[count++] = emit_axis(&w->e, w->s->atoms.at[leaves.at[i]].extent);
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
    if (dtype_is_half(d) || dtype_is_complex(d) ||
        ir_op_class((enum ir_op)n->op) == IR_CLASS_ARG)
        return NEST_NONE;
    struct nest_combine c = combine_of(w, v, at, guard, folded);
    nest_id in[3] = {c.value[0], c.value[1], zero_of(w, d)};
    if (c.op == IR_fma && dtype_is_float(d))
        return emit_op(&w->e, IR_fma, d, 3, in, NULL);
    if (c.op == IR_fma)
        return emit_op(&w->e, IR_mul, d, 2, in, NULL);
    in[1] = in[2];
    return c.op == IR_reduce_sum ? emit_op(&w->e, IR_add, d, 2, in, NULL) : in[0];
}

#define MAX_LEAVES 256

static nest_id emit_fold(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    struct schedule *s = w->s;
    fold_parts parts = {0};
    nest_id one = folds_one(w, v) ? fold_one(w, v, at, guard) : NEST_NONE;
    if (one != NEST_NONE)
        return one;
    bool natural = guard == NEST_NONE && is_natural(w, v, at);
    struct atoms leaves = natural ? axes_leaves(s, s->folded_of[v]) : (struct atoms){0};
    scope_id scope = scope_of(w, v, at, guard), back = w->e.at;
    nest_id axes[MAX_LEAVES];
    vec_push(s->scratch, &parts, (struct fold_part){v, at, guard, leaves, NONE});
    if (natural)
        add_siblings(w, &parts, scope);

    uint32_t n_axes = fold_axes(w, v, leaves, natural, axes);
    emit_open(&w->e, scope, NEST_FOLD, (int)n_axes, axes);
    form_id *loop = arena_array(s->scratch, form_id, n_axes);
    for (uint32_t i = 0; i < n_axes; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    struct binding *undo = arena_array(s->scratch, struct binding, leaves.count * parts.count + 1);
    for (uint32_t i = 0; i < parts.count; i++)
        bind(w, parts.at[i].leaves, loop, undo + i * leaves.count);

    struct nest_combine *combines = arena_array(s->scratch, struct nest_combine, parts.count);
    for (uint32_t i = 0; i < parts.count; i++) {
        struct fold_part *p = &parts.at[i];
        form_id folded[IR_MAX_RANK];
        struct binding undo_place[COST_UNROLL];
        deal_axes(w, ir_node_of(s->g, p->v), n_axes, axes, folded);
        if (p->place != NONE)
            bind_unrolled(w, p->place, undo_place);
        combines[i] = combine_of(w, p->v, p->at, p->guard, folded);
        if (p->place != NONE)
            unbind(w, w->g->unrolled.count, undo_place);
    }
    unbind(w, leaves.count * parts.count, undo);
    nest_id result = emit_close(&w->e, back, (int)parts.count, combines), mine = NEST_NONE;
    for (uint32_t i = 0; i < parts.count; i++) {
        struct fold_part *p = &parts.at[i];
        nest_id r = result_of(w, p->v, &combines[i], result);
        remember(w, p->v, p->at, p->guard, r);
        mine = i == 0 ? r : mine;
        result += nest_combine_results(combines[i].op);
    }
    return mine;
}

// ---- Rows of local memory

static struct row *row_of(struct writer *w, ir_id v)
{
    for (uint32_t i = 0; i < w->rows.count; i++)
        if (w->rows.at[i].v == v)
            return &w->rows.at[i];
    return NULL;
}

static struct atoms inner_atoms(struct writer *w, ir_id v)
{
    return axes_minus(w->s, axes_of_view(w->s, w->s->view_of[v]), w->g->points);
}

static bool uses_axis(const struct writer *w, ir_id v, const form_id *at, nest_id axis)
{
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        if (nest_index_factor(&w->e.forms.at[at[i]].index, axis))
            return true;
    return false;
}

// Whether the value was computed once for each of its coordinates, in an inner loop.
static bool is_inner(const struct writer *w, ir_id v, const form_id *at, nest_id result)
{
    scope_id scope = w->e.value_scope.at[result];
    if (scope != scope_of(w, v, at, NEST_NONE) || scope == w->point)
        return false;
    for (; scope != w->point; scope = w->e.scopes.at[scope].parent) {
        if (scope == 0)
            return false;
        const struct nest_statement *loop =
            &w->e.b.nest->statements.at[w->e.scopes.at[scope].loop];
        for (uint32_t i = 0; i < loop->n_axes; i++)
            if (!uses_axis(w, v, at, loop->axes[i]))
                return false;
    }
    return true;
}

// Counts a computation of a dear member in an inner loop.
static void count_computation(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                              nest_id result)
{
    struct schedule *s = w->s;
    const struct ir_node *n = ir_node_of(s->g, v);
    bool is_dear = node_is_folding(n) || cost_is_expensive((enum ir_op)n->op, ir_dtype_of(s->g, v));
    if (guard != NEST_NONE || w->g->fold.count || n->n_out != 1 || !is_dear ||
        !is_natural(w, v, at) || !is_inner(w, v, at, result))
        return;
    if (!s->computed[v])
        vec_push(s->scratch, &w->counted, v);
    if (s->computed[v] < 255)
        s->computed[v]++;
}

// Dear members that more than one loop computes, as far as there is room.
static void choose_rows(struct writer *w, struct writer *again)
{
    struct schedule *s = w->s;
    int64_t room = COST_LOCAL_BYTES;
    for (uint32_t i = 0; i < w->counted.count; i++) {
        ir_id v = w->counted.at[i];
        bool wanted = s->computed[v] > 1;
        s->computed[v] = 0;
        if (!wanted)
            continue;
        jot_dtype d = ir_dtype_of(s->g, v);
        int64_t count = axes_product(s, inner_atoms(w, v));
        if (count > room / dtype_get(d)->bytes)
            continue;
        room -= count * dtype_get(d)->bytes;
        vec_push(s->scratch, &again->rows, (struct row){.v = v, .local = NEST_NONE, .loop = NONE});
    }
}

// Whether the loop that fills the row runs before the current place.
static bool is_filled(const struct writer *w, const struct row *r)
{
    scope_id scope = r->loop;
    if (scope == NONE || emit_sees(&w->e, scope))
        return false;
    for (; !emit_sees(&w->e, scope); scope = w->e.scopes.at[scope].parent)
        if (w->e.scopes.at[scope].is_open)
            return false;
    return true;
}

static form_id place_in_row(struct writer *w, ir_id v)
{
    form_id f = 0;
    form_of_atoms(w, inner_atoms(w, v), &f);
    return f;
}

static void fill_row(struct writer *w, struct row *r, nest_id value)
{
    struct schedule *s = w->s;
    scope_id here = w->e.at;
    if (r->local == NEST_NONE)
        r->local = nest_local(&w->e.b, "row", ir_dtype_of(s->g, r->v),
                              axes_product(s, inner_atoms(w, r->v)), NEST_POINT);
    r->loop = w->e.value_scope.at[value];
    w->e.at = r->loop;
    emit_put(&w->e, r->local, place_in_row(w, r->v), value);
    w->e.at = here;
}

// ---- Values

static uint64_t value_hash(const struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    uint64_t h = hash_combine(hash_mix(v), guard);
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        h = hash_combine(h, at[i]);
    return h;
}

static nest_id find_value(const struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    uint64_t h = value_hash(w, v, at, guard);
    size_t bytes = (size_t)ir_rank_of(w->s->g, v) * sizeof *at;
    for (struct hash_probe p = hash_probe(&w->value_table, h); hash_next(&w->value_table, &p);) {
        const struct known_value *k = &w->values.at[p.id];
        if (k->v == v && k->guard == guard && (!bytes || !memcmp(k->at, at, bytes)) &&
            emit_sees(&w->e, w->e.value_scope.at[k->result]))
            return k->result;
    }
    return NEST_NONE;
}

static void remember(struct writer *w, ir_id v, const form_id *at, nest_id guard, nest_id result)
{
    size_t bytes = (size_t)ir_rank_of(w->s->g, v) * sizeof *at;
    const form_id *copy = bytes ? arena_copy(w->s->scratch, at, bytes) : NULL;
    vec_push(w->s->scratch, &w->values, (struct known_value){v, guard, copy, result});
    hash_insert(w->s->scratch, &w->value_table, value_hash(w, v, at, guard), w->values.count - 1);
}

static nest_id compute(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    switch ((enum ir_op)n->op) {
    case IR_const:
        return emit_constant(w, n, at, guard);
    case IR_iota:
        return emit_iota(w, n, at);
    case IR_broadcast_in_dim:
        return emit_broadcast(w, n, at, guard);
    case IR_reshape:
        return emit_reshape(w, n, at, guard);
    case IR_transpose:
        return emit_transpose(w, n, at, guard);
    case IR_rev:
        return emit_rev(w, n, at, guard);
    case IR_slice:
        return emit_slice(w, n, at, guard);
    case IR_pad:
        return emit_pad(w, n, at, guard);
    case IR_concatenate:
        return emit_concatenate(w, n, at, guard);
    case IR_stop_gradient:
    case IR_variable:
    case IR_barrier:
        return at_operand(w, n, v - n->out, at, guard);
    default:
        return node_is_folding(n) ? emit_fold(w, v, at, guard)
                                  : emit_map(w, n, v - n->out, at, guard);
    }
}

// Whether the coordinates exist whatever a guard says.
static bool is_in_range(const struct writer *w, ir_id v, const form_id *at)
{
    const int64_t *dims = ir_dims_of(w->s->g, v);
    for (int i = 0; i < ir_rank_of(w->s->g, v); i++)
        if (w->e.forms.at[at[i]].low < 0 || w->e.forms.at[at[i]].high >= dims[i])
            return false;
    return true;
}

static nest_id value_at(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    struct schedule *s = w->s;
    if (value_count(s, v) == 0)
        return zero_of(w, ir_dtype_of(s->g, v)); // in loops that do not run
    if (guard != NEST_NONE && is_in_range(w, v, at))
        guard = NEST_NONE;
    nest_id known = find_value(w, v, at, guard);
    if (known != NEST_NONE)
        return known;
    if (s->is_stored[v] && !is_member(w, v))
        return load_value(w, v, at, guard);
    struct row *row = w->rows.count && is_natural(w, v, at) ? row_of(w, v) : NULL;
    if (row && is_filled(w, row))
        return emit_load(&w->e, row->local, place_in_row(w, v), NEST_NONE);
    nest_id result = compute(w, v, at, guard);
    remember(w, v, at, guard, result);
    count_computation(w, v, at, guard, result);
    if (row && guard == NEST_NONE && is_inner(w, v, at, result))
        fill_row(w, row, result);
    return result;
}

// ---- The kernel

static nest_id output_of(struct writer *w, ir_id v)
{
    return buffer_of(w, schedule_memory(w->s, v), NEST_OUT);
}

static void put_root(struct writer *w, ir_id v)
{
    form_id at[IR_MAX_RANK];
    form_of_view(w, w->s->view_of[v], at);
    nest_id value = value_at(w, v, at, NEST_NONE);
    emit_put(&w->e, output_of(w, v), linear_of(w, v, at), value);
}

// A reduction over the loop that is open: every element accumulates.
static void put_terminal(struct writer *w, ir_id v, nest_id fold)
{
    struct schedule *s = w->s;
    form_id at[IR_MAX_RANK], folded[IR_MAX_RANK];
    const struct ir_node *n = ir_node_of(s->g, v);
    form_of_view(w, s->view_of[v], at);
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    struct view operand = axes_folded_view(s, n, 0, s->view_of[v], s->folded_of[v]);
    for (int i = 0; i < count; i++)
        form_of_atoms(w, operand.dims[axes[i]], &folded[i]);
    struct nest_combine c = combine_of(w, v, at, NEST_NONE, folded);
    emit_put_combine(&w->e, output_of(w, v), linear_of(w, v, at), fold, &c);
}

// Loops that are not written for each result.
static struct atoms outer_loops(struct writer *w)
{
    struct atoms around = axes_concat(w->s, w->g->points, w->g->fold);
    return axes_concat(w->s, around, w->g->unrolled);
}

// The results of a group that have the same inner loops, in those loops.
static void put_roots(struct writer *w, uint32_t n, const ir_id *roots, nest_id fold)
{
    struct schedule *s = w->s;
    struct atoms outer = outer_loops(w);
    struct atoms inner = axes_minus(s, axes_of_view(s, s->view_of[roots[0]]), outer);
    scope_id back = w->e.at;
    nest_id *axes = arena_array(s->scratch, nest_id, inner.count);
    form_id *loop = arena_array(s->scratch, form_id, inner.count);
    struct binding *undo = arena_array(s->scratch, struct binding, inner.count * n);
    for (uint32_t i = 0; i < inner.count; i++)
        axes[i] = emit_axis(&w->e, s->atoms.at[inner.at[i]].extent);
    if (inner.count)
        emit_open(&w->e, back, NEST_MAP, (int)inner.count, axes);
    for (uint32_t i = 0; i < inner.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    uint32_t n_bound = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct atoms own = axes_minus(s, axes_of_view(s, s->view_of[roots[i]]), outer);
        // Roots of the same atoms are bound once.
        if (own.count && s->bound[own.at[0]] == loop[0])
            continue;
        bind(w, own, loop, undo + n_bound);
        n_bound += own.count;
    }
    for (uint32_t place = 0; place < unrolled_places(w); place++) {
        struct binding undo_place[COST_UNROLL];
        bind_unrolled(w, place, undo_place);
        for (uint32_t i = 0; i < n; i++) {
            const struct ir_node *node = ir_node_of(s->g, roots[i]);
            if (place && !overlaps(w, axes_of_view(s, s->view_of[roots[i]]), w->g->unrolled))
                continue;
            if (fold != NEST_NONE && node_is_folding(node) && is_terminal(w, roots[i]))
                put_terminal(w, roots[i], fold);
            else
                put_root(w, roots[i]);
        }
        unbind(w, w->g->unrolled.count, undo_place);
    }
    unbind(w, n_bound, undo);
    if (inner.count)
        emit_close(&w->e, back, 0, NULL);
}

// Whether the value is computed after the fold of the group, not in it.
static bool is_after(struct writer *w, ir_id v)
{
    struct atoms depends = axes_dependence(w->s, axes_of_view(w->s, w->s->view_of[v]));
    return !axes_include(w->s, axes_leaves(w->s, depends), w->g->fold) && !is_terminal(w, v);
}

// Whether loops can be those of the atoms, given the atoms that they already are, `bound`, sets of
// the same size one after the other.
static bool may_share(struct schedule *s, struct atoms own, struct atoms *bound)
{
    for (uint32_t i = 0; i + own.count <= bound->count; i += own.count ? own.count : 1)
        if (!own.count || !memcmp(bound->at + i, own.at, own.count * sizeof *own.at))
            return true;
    for (uint32_t i = 0; i < own.count; i++)
        if (axes_contain(s, *bound, own.at[i]))
            return false;
    *bound = axes_concat(s, *bound, own);
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
        struct atoms a = axes_minus(s, axes_of_view(s, s->view_of[roots[i]]), outer), bound = a;
        for (uint32_t k = i; k < count; k++) {
            struct atoms b = axes_minus(s, axes_of_view(s, s->view_of[roots[k]]), outer);
            if (done[k] || !same_extents(s, a, b) || !may_share(s, b, &bound))
                continue;
            done[k] = true;
            some[n++] = roots[k];
        }
        put_roots(w, n, some, fold);
    }
}

// Folds of whole points come first, stage by stage, so that rows are filled before they are read.
static void emit_point_folds(struct writer *w)
{
    struct schedule *s = w->s;
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->g->reduced.count; i++) {
        uint32_t stage = stage_of(w, w->g->reduced.at[i]);
        most = stage > most ? stage : most;
    }
    for (uint32_t stage = 1; stage <= most; stage++)
        for (uint32_t i = 0; i < w->g->reduced.count; i++) {
            ir_id v = w->g->reduced.at[i];
            form_id at[IR_MAX_RANK];
            if (stage_of(w, v) == stage && !is_terminal(w, v) &&
                form_of_view(w, s->view_of[v], at))
                value_at(w, v, at, NEST_NONE);
        }
}

// The fold of the group, open: what is stored in every iteration, then what is combined.
static void emit_group_fold(struct writer *w, uint32_t n_inside, const ir_id *inside)
{
    struct schedule *s = w->s;
    struct atoms leaves = axes_leaves(s, w->g->fold);
    nest_id axes[MAX_LEAVES];
    form_id *loop = arena_array(s->scratch, form_id, leaves.count);
    struct binding *undo = arena_array(s->scratch, struct binding, leaves.count);
    scope_id scope = w->e.at;
    for (uint32_t i = 0; i < leaves.count; i++)
        axes[i] = emit_axis(&w->e, s->atoms.at[leaves.at[i]].extent);
    scope_id body = emit_open(&w->e, scope, NEST_FOLD, (int)leaves.count, axes);
    for (uint32_t i = 0; i < leaves.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    bind(w, leaves, loop, undo);
    put_all(w, n_inside, inside, w->e.scopes.at[body].loop);

    VEC(struct nest_combine) combines = {0};
    VEC(ir_id) values = {0};
    for (uint32_t i = 0; i < w->g->reduced.count; i++) {
        ir_id v = w->g->reduced.at[i];
        form_id at[IR_MAX_RANK], folded[IR_MAX_RANK];
        const struct ir_node *n = ir_node_of(s->g, v);
        if (is_terminal(w, v) || !axes_equal(s, s->folded_of[v], w->g->fold))
            continue;
        form_of_view(w, s->view_of[v], at);
        deal_axes(w, n, leaves.count, axes, folded);
        vec_push(s->scratch, &combines, combine_of(w, v, at, NEST_NONE, folded));
        vec_push(s->scratch, &values, v);
    }
    unbind(w, leaves.count, undo);
    nest_id result = emit_close(&w->e, scope, (int)combines.count, combines.at);
    for (uint32_t i = 0; i < values.count; i++) {
        form_id at[IR_MAX_RANK];
        form_of_view(w, s->view_of[values.at[i]], at);
        remember(w, values.at[i], at, NEST_NONE,
                 result_of(w, values.at[i], &combines.at[i], result));
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
    struct atoms all = axes_of_view(s, s->view_of[v]);
    struct atoms along = axes_leaves(s, s->view_of[v].dims[axis]);
    struct atoms inner = axes_minus(s, axes_minus(s, all, w->g->points), along);
    nest_id axes[MAX_LEAVES];
    form_id loop[MAX_LEAVES], at[IR_MAX_RANK];
    struct binding undo[MAX_LEAVES];
    scope_id back = w->e.at;
    for (uint32_t i = 0; i < inner.count; i++)
        axes[i] = emit_axis(&w->e, s->atoms.at[inner.at[i]].extent);
    if (inner.count)
        emit_open(&w->e, back, NEST_MAP, (int)inner.count, axes);
    for (uint32_t i = 0; i < inner.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    bind(w, inner, loop, undo);

    nest_id scan = emit_axis(&w->e, ir_dims_of(s->g, v)[axis]);
    scope_id outside = w->e.at;
    emit_open(&w->e, outside, NEST_SCAN, 1, &scan);
    w->e.b.nest->statements.at[w->e.scopes.at[w->e.at].loop].reverse =
        ir_attr_int_or(n->attrs, IR_KEY_reverse, 0);
    form_id along_forms[MAX_LEAVES], place = emit_form_axis(&w->e, scan);
    struct binding undo_scan[MAX_LEAVES];
    // The loop is one axis, whatever atoms it is seen as.
    for (uint32_t i = along.count; i-- > 0;) {
        along_forms[i] = place;
        if (i)
            emit_form_divide(&w->e, place, s->atoms.at[along.at[i]].extent, &place,
                             &along_forms[i]);
    }
    bind(w, along, along_forms, undo_scan);
    for (int i = 0; i < rank; i++)
        form_of_atoms(w, s->view_of[v].dims[i], &at[i]);
    jot_dtype d = ir_dtype_of(s->g, v);
    struct nest_combine c = {.op = combiner_of((enum ir_op)n->op, d),
                             .n = 1,
                             .dtype = dtype_is_half(d) ? JOT_F32 : d};
    c.value[0] = widened(w, at_operand(w, n, 0, at, NEST_NONE), d);
    nest_id running = emit_yield(&w->e, &c);
    if (c.dtype != d)
        running = emit_op(&w->e, IR_convert, d, 1, &running, NULL);
    emit_put(&w->e, output_of(w, v), linear_of(w, v, at), running);
    unbind(w, along.count, undo_scan);
    emit_close(&w->e, outside, 0, NULL);
    unbind(w, inner.count, undo);
    if (inner.count)
        emit_close(&w->e, back, 0, NULL);
}

static bool node_is_scan(const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_CUMULATIVE;
}

static void emit_roots(struct writer *w)
{
    struct schedule *s = w->s;
    VEC(ir_id) inside = {0}, after = {0};
    for (uint32_t i = 0; i < w->g->roots.count; i++) {
        ir_id v = w->g->roots.at[i];
        if (node_is_scan(ir_node_of(s->g, v)))
            emit_scan(w, v);
        else if (w->g->fold.count && !is_after(w, v))
            vec_push(s->scratch, &inside, v);
        else
            vec_push(s->scratch, &after, v);
    }
    if (w->g->fold.count)
        emit_group_fold(w, inside.count, inside.at);
    else
        emit_point_folds(w);
    if (after.count)
        put_all(w, after.count, after.at, NEST_NONE);
}

static void emit_kernel(struct writer *w)
{
    struct schedule *s = w->s;
    struct atoms points = axes_leaves(s, w->g->points);
    nest_id axes[MAX_LEAVES];
    form_id loop[MAX_LEAVES];
    struct binding undo[MAX_LEAVES];
    for (uint32_t i = 0; i < points.count; i++)
        axes[i] = emit_axis(&w->e, s->atoms.at[points.at[i]].extent);
    if (points.count)
        emit_open(&w->e, 0, NEST_PAR, (int)points.count, axes);
    for (uint32_t i = 0; i < points.count; i++)
        loop[i] = emit_form_axis(&w->e, axes[i]);
    bind(w, points, loop, undo);
    w->point = w->e.at;
    emit_roots(w);
    unbind(w, points.count, undo);
    if (points.count)
        emit_close(&w->e, 0, 0, NULL);
    for (uint32_t i = 0; i < w->staged.count; i++)
        s->stage[w->staged.at[i]] = NONE;
}

static struct writer writer_make(struct schedule *s, uint32_t group, const char *name)
{
    return (struct writer){.s = s,
                           .e = emit_make(s->program->arena, s->scratch, name),
                           .group = group,
                           .g = &s->groups.at[group]};
}

struct kernel nest_from_group(struct schedule *s, uint32_t group, const char *name)
{
    struct group *g = &s->groups.at[group];
    g->points = axes_leaves(s, g->points);
    g->fold = axes_leaves(s, g->fold);
    g->unrolled = axes_leaves(s, g->unrolled);
    struct writer w = writer_make(s, group, name), again = writer_make(s, group, name);
    emit_kernel(&w);
    choose_rows(&w, &again);
    struct writer *last = &w;
    if (again.rows.count) {
        emit_kernel(&again);
        last = &again;
        for (uint32_t i = 0; i < again.counted.count; i++)
            s->computed[again.counted.at[i]] = 0;
    }
    struct kernel k = {.nest = last->e.b.nest, .n_memories = last->memories.count};
    k.memories = arena_copy(s->program->arena, last->memories.at,
                            k.n_memories * sizeof *k.memories);
    return k;
}
