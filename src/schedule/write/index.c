// SPDX-License-Identifier: Apache-2.0
// Changes of index: an operand at mapped coordinates, guards where these may not exist.
#include "ir/index_map.h"
#include "schedule/write/write.h"

nest_id write_at_operand(struct writer *w, const struct ir_node *n, uint32_t i,
                         const form_id *at, nest_id guard)
{
    return write_value_at(w, ir_operand(w->s->g, n, i), at, guard);
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
    int64_t index;
    return e->forms.at[f].high < 0 || e->forms.at[f].low > (extent - 1) * step ||
           (emit_form_is_constant(e, f, &index) && index % step != 0);
}

static form_id form_of(struct emitter *e, const struct ir_index_axis *a, const form_id *at)
{
    form_id f = a->n_terms ? emit_form_affine(e, at[a->axis[0]], a->step[0], a->offset)
                           : emit_form_constant(e, a->offset);
    for (int t = 1; t < a->n_terms; t++)
        f = emit_form_add(e, at[a->axis[t]], a->step[t], f);
    return f;
}

// The coordinates in x, and whether x has them as far as that is not known: NEST_NONE when it always
// does.  False: it never does.
static bool index_operand(struct emitter *e, const struct ir_index_map *map,
                          const int64_t *dims, const form_id *at, form_id *from,
                          nest_id *out_inside)
{
    nest_id inside = NEST_NONE;
    for (int d = 0; d < map->rank; d++) {
        const struct ir_index_axis *a = &map->axes[d];
        form_id f = form_of(e, a, at), rest;
        if (a->is_guarded) {
            if (is_outside(e, f, dims[d], a->spread))
                return false;
            inside = emit_both(e, inside, emit_not_less(e, f, 0));
            if (a->spread > 1) {
                emit_form_divide(e, f, a->spread, &f, &rest);
                inside = emit_both(e, inside, emit_less(e, rest, 1));
            }
            inside = emit_both(e, inside, emit_less(e, f, dims[d]));
        }
        from[d] = dims[d] == 1 ? 0 : f;
    }
    *out_inside = inside;
    return true;
}

// What the operands behind it have, or 0, where an operand has no element.
nest_id write_indexed(struct writer *w, const struct ir_node *n, const form_id *at,
                      nest_id guard)
{
    struct emitter *e = &w->e;
    jot_dtype type = ir_dtype_of(w->s->g, n->out);
    nest_id result = NEST_NONE, inside;
    for (uint32_t i = n->n_in; i-- > 0;) {
        ir_id x = ir_operand(w->s->g, n, i);
        struct ir_index_map map;
        form_id from[IR_MAX_RANK];
        ir_index_map_of(w->s->g, n, i, &map);
        if (result == NEST_NONE && ir_index_is_guarded(&map))
            result = write_zero_of(w, type);
        if (value_count(w->s, x) == 0 ||
            !index_operand(e, &map, ir_dims_of(w->s->g, x), at, from, &inside))
            continue;
        nest_id has = write_value_at(w, x, from, emit_both(e, guard, inside));
        result = inside == NEST_NONE
                     ? has
                     : emit_op(e, IR_select, type, 3, (nest_id[]){inside, has, result}, NULL);
    }
    return result == NEST_NONE ? write_zero_of(w, type) : result;
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
    int64_t index;
    if (is_repeated(bytes, data->count, size))
        return emit_const(&w->e, d, bytes);
    if (emit_form_is_constant(&w->e, write_linear_of(w, n->out, at), &index) && index >= 0 &&
        index < value_count(s, n->out))
        return emit_const(&w->e, d, bytes + (size_t)index * size);
    return write_load_value(w, n->out, at, guard);
}
