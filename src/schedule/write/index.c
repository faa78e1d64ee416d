// SPDX-License-Identifier: Apache-2.0
// Changes of index: an operand at mapped coordinates, guards where these may not exist.
#include "schedule/write/write.h"

nest_id write_at_operand(struct writer *w, const struct ir_node *n, uint32_t i,
                         const form_id *at, nest_id guard)
{
    return write_value_at(w, ir_operand(w->s->g, n, i), at, guard);
}

nest_id write_broadcast(struct writer *w, const struct ir_node *n, const form_id *at,
                        nest_id guard)
{
    ir_id x = ir_operand(w->s->g, n, 0);
    const int64_t *dims = ir_dims_of(w->s->g, x);
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < ir_rank_of(w->s->g, x); i++)
        from[i] = dims[i] == 1 ? 0 : at[axes[i]];
    return write_value_at(w, x, from, guard);
}

nest_id write_transpose(struct writer *w, const struct ir_node *n, const form_id *at,
                        nest_id guard)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < count; i++)
        from[axes[i]] = at[i];
    return write_at_operand(w, n, 0, from, guard);
}

nest_id write_rev(struct writer *w, const struct ir_node *n, const form_id *at, nest_id guard)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    const int64_t *dims = ir_dims_of(w->s->g, n->out);
    form_id from[IR_MAX_RANK];
    memcpy(from, at, (size_t)ir_rank_of(w->s->g, n->out) * sizeof *at);
    for (int i = 0; i < count; i++)
        from[axes[i]] = emit_form_affine(&w->e, at[axes[i]], -1, dims[axes[i]] - 1);
    return write_at_operand(w, n, 0, from, guard);
}

nest_id write_slice(struct writer *w, const struct ir_node *n, const form_id *at, nest_id guard)
{
    int count;
    const int64_t *starts = ir_attr_ints(n->attrs, IR_KEY_starts, &count);
    const int64_t *strides = ir_attr_ints(n->attrs, IR_KEY_strides, &count);
    form_id from[IR_MAX_RANK];
    for (int i = 0; i < ir_rank_of(w->s->g, n->out); i++)
        from[i] = emit_form_affine(&w->e, at[i], strides[i], starts[i]);
    return write_at_operand(w, n, 0, from, guard);
}

// Blocks of axes with equal products are counted through one by one.
nest_id write_reshape(struct writer *w, const struct ir_node *n, const form_id *at,
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
    return write_value_at(w, v, from, guard);
}

// Whether no element of the axis, spread out by `step`, is ever at the coordinate.
static bool is_outside(const struct emitter *e, form_id f, int64_t extent, int64_t step)
{
    int64_t place;
    return e->forms.at[f].high < 0 || e->forms.at[f].low > (extent - 1) * step ||
           (emit_form_is_constant(e, f, &place) && place % step != 0);
}

nest_id write_pad(struct writer *w, const struct ir_node *n, const form_id *at, nest_id guard)
{
    struct emitter *e = &w->e;
    ir_id x = ir_operand(w->s->g, n, 0);
    const int64_t *dims = ir_dims_of(w->s->g, x);
    int count;
    const int64_t *low = ir_attr_ints(n->attrs, IR_KEY_low, &count);
    const int64_t *interior = ir_attr_ints(n->attrs, IR_KEY_interior, &count);
    form_id from[IR_MAX_RANK];
    nest_id inside = NEST_NONE, in[3];
    in[2] = write_at_operand(w, n, 1, NULL, guard);
    if (value_count(w->s, x) == 0)
        return in[2];
    for (int i = 0; i < ir_rank_of(w->s->g, x); i++) {
        form_id f = emit_form_affine(e, at[i], 1, -low[i]), rest;
        if (is_outside(e, f, dims[i], interior[i] + 1))
            return in[2];
        inside = emit_both(e, inside, emit_not_less(e, f, 0));
        if (interior[i]) {
            emit_form_divide(e, f, interior[i] + 1, &f, &rest);
            inside = emit_both(e, inside, emit_less(e, rest, 1));
        }
        inside = emit_both(e, inside, emit_less(e, f, dims[i]));
        from[i] = dims[i] == 1 ? 0 : f;
    }
    if (inside == NEST_NONE)
        return write_value_at(w, x, from, guard);
    in[0] = inside;
    in[1] = write_value_at(w, x, from, emit_both(e, guard, inside));
    return emit_op(e, IR_select, ir_dtype_of(w->s->g, x), 3, in, NULL);
}

nest_id write_shear(struct writer *w, const struct ir_node *n, const form_id *at, nest_id guard)
{
    struct emitter *e = &w->e;
    ir_id x = ir_operand(w->s->g, n, 0);
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis), extent = ir_dims_of(w->s->g, x)[axis];
    form_id from[IR_MAX_RANK];
    memcpy(from, at, (size_t)ir_rank_of(w->s->g, x) * sizeof *at);
    form_id f = emit_form_add(e, at[ir_attr_int(n->attrs, IR_KEY_along)],
                              ir_attr_int(n->attrs, IR_KEY_step), at[axis]);
    f = emit_form_affine(e, f, 1, ir_attr_int(n->attrs, IR_KEY_offset));
    nest_id in[3] = {NEST_NONE, NEST_NONE, write_zero_of(w, ir_dtype_of(w->s->g, x))};
    if (is_outside(e, f, extent, 1))
        return in[2];
    in[0] = emit_both(e, emit_not_less(e, f, 0), emit_less(e, f, extent));
    from[axis] = extent == 1 ? 0 : f;
    in[1] = write_value_at(w, x, from, emit_both(e, guard, in[0]));
    return in[0] == NEST_NONE ? in[1]
                              : emit_op(e, IR_select, ir_dtype_of(w->s->g, x), 3, in, NULL);
}

nest_id write_concatenate(struct writer *w, const struct ir_node *n, const form_id *at,
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
        bool is_there = extent && high >= start && low < end;
        // Outside of the whole, where a guard stands, any part will do.
        is_there |= extent && i == 0 && result == NEST_NONE;
        if (is_there) {
            nest_id before = result == NEST_NONE ? NEST_NONE : emit_less(e, at[axis], end);
            nest_id after = start == 0 ? NEST_NONE : emit_not_less(e, at[axis], start);
            from[axis] = extent == 1 ? 0 : emit_form_affine(e, at[axis], 1, -start);
            nest_id part =
                write_value_at(w, x, from, emit_both(e, guard, emit_both(e, before, after)));
            nest_id in[3] = {before, part, result};
            result = before == NEST_NONE
                         ? part
                         : emit_op(e, IR_select, ir_dtype_of(w->s->g, x), 3, in, NULL);
        }
        end = start;
    }
    return result == NEST_NONE ? write_zero_of(w, ir_dtype_of(w->s->g, n->out)) : result;
}

nest_id write_iota(struct writer *w, const struct ir_node *n, const form_id *at)
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

nest_id write_constant(struct writer *w, const struct ir_node *n, const form_id *at,
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
    if (emit_form_is_constant(&w->e, write_linear_of(w, n->out, at), &place) && place >= 0 &&
        place < value_count(s, n->out))
        return emit_const(&w->e, d, bytes + (size_t)place * size);
    return write_load_value(w, n->out, at, guard);
}
