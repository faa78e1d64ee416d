// SPDX-License-Identifier: Apache-2.0
// Constants, and ops that move elements.
#include "base/status.h"
#include "ir/eval_ops.h"
#include "ir/index_map.h"

struct eval_view eval_view_dense(const struct ir_module *m, struct ir_type t)
{
    struct eval_view v = {.rank = t.rank};
    const int64_t *dims = ir_dims(m, t);
    int64_t step = 1;
    for (int a = t.rank - 1; a >= 0; a--) {
        v.dims[a] = dims[a];
        v.steps[a] = step;
        step *= dims[a];
    }
    return v;
}

static size_t element_bytes(struct ir_type t) { return dtype_get(ir_dtype(t))->bytes; }

static int64_t view_count(const struct eval_view *v)
{
    int64_t count = 1;
    for (int a = 0; a < v->rank; a++)
        count *= v->dims[a];
    return count;
}

jot_status eval_copy(const struct eval_call *c)
{
    for (int i = 0; i < c->n_out; i++) {
        struct ir_type t = c->out[i].type;
        size_t bytes = (size_t)eval_count(c, t) * element_bytes(t);
        if (bytes)
            memcpy(c->out[i].data, c->in[i].data, bytes);
    }
    return JOT_OK;
}

jot_status eval_const(const struct eval_call *c)
{
    struct ir_type t = c->out[0].type;
    size_t bytes = (size_t)eval_count(c, t) * element_bytes(t);
    const struct ir_field *data = ir_field_find(c->attrs, IR_KEY_data);
    if (bytes && (!data || data->count != bytes))
        return status_fail(JOT_ERR_INTERNAL, "const: %u bytes of data for a type of %zu",
                           data ? (unsigned)data->count : 0, bytes);
    if (bytes)
        memcpy(c->out[0].data, data->bytes, bytes);
    return JOT_OK;
}

jot_status eval_iota(const struct eval_call *c)
{
    struct eval_view v = eval_view_dense(c->module, c->out[0].type);
    int64_t axis = ir_attr_int(c->attrs, IR_KEY_axis);
    jot_dtype d = ir_dtype(c->out[0].type);
    int64_t count = view_count(&v);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = i / v.steps[axis] % v.dims[axis];
        struct eval_number x = {{(uint64_t)index, JOT_I64}, {0, JOT_I64}};
        eval_store(d, c->out[0].data, i, eval_convert(JOT_I64, d, x));
    }
    return JOT_OK;
}

// The number of the operand's element, -1 where it has none.
static int64_t number_in(const struct ir_index_map *map, const struct eval_view *in,
                         const int64_t *first, const int64_t *index)
{
    int64_t number = 0;
    for (int d = 0; d < map->rank; d++) {
        const struct ir_index_axis *a = &map->axes[d];
        int64_t at = a->offset;
        for (int t = 0; t < a->n_terms; t++)
            at += a->step[t] * (first[a->axis[t]] + index[a->axis[t]]);
        if (at < 0 || at % a->spread || at / a->spread >= in->dims[d])
            return -1;
        number += at / a->spread * in->steps[d];
    }
    return number;
}

// The elements of the result outside of which the operand has none, from first[] on: along a coordinate that an
// axis of the operand follows one by one, as of a concatenation, there are no more than that axis has.
static struct eval_view box_of(const struct ir_index_map *map, const struct eval_view *in,
                               const struct eval_view *out, int64_t *first)
{
    struct eval_view box = *out;
    for (int d = 0; d < map->rank; d++) {
        const struct ir_index_axis *a = &map->axes[d];
        if (a->n_terms != 1 || a->step[0] != 1 || a->spread != 1)
            continue;
        int r = a->axis[0];
        int64_t end = first[r] + box.dims[r], last = in->dims[d] - a->offset;
        first[r] = first[r] > -a->offset ? first[r] : -a->offset;
        end = end < last ? end : last;
        box.dims[r] = end > first[r] ? end - first[r] : 0;
    }
    return box;
}

// Operand by operand, the last first, so that the first has the last word.
jot_status eval_layout(const struct eval_call *c)
{
    struct eval_view out = eval_view_dense(c->module, c->out[0].type);
    size_t bytes = element_bytes(c->out[0].type);
    unsigned char *result = c->out[0].data;
    struct ir_type *types = arena_array(c->arena, struct ir_type, c->n_in);
    for (int k = 0; k < c->n_in; k++)
        types[k] = c->in[k].type;
    for (int k = c->n_in; k-- > 0;) {
        struct ir_index_map map;
        ir_index_map_of_types(c->module, c->op, c->attrs, (uint32_t)k, types, c->out[0].type,
                              &map);
        struct eval_view in = eval_view_dense(c->module, types[k]);
        const unsigned char *data = c->in[k].data;
        int64_t index[IR_MAX_RANK] = {0}, first[IR_MAX_RANK] = {0}, to = 0;
        struct eval_view box = box_of(&map, &in, &out, first);
        int64_t count = view_count(&box);
        for (int d = 0; d < out.rank && count; d++)
            to += first[d] * out.steps[d];
        for (; count-- > 0; to = eval_view_next(&box, index, to)) {
            int64_t from = number_in(&map, &in, first, index);
            if (from >= 0)
                memcpy(result + (size_t)to * bytes, data + (size_t)from * bytes, bytes);
        }
    }
    return JOT_OK;
}
