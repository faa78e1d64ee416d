// SPDX-License-Identifier: Apache-2.0
// Changes of index: result types, and where they read.
#include "ir/index_map.h"
#include "ir/infer.h"

static const int64_t *list(const struct ir_index_call *c, enum ir_key key)
{
    int count;
    return ir_attr_ints(c->attrs, key, &count);
}

bool infer_broadcast_in_dim(struct ir_infer *call)
{
    int rank;
    struct ir_type t = infer_in(call, 0);
    const int64_t *from = infer_dims(call, 0);
    const int64_t *dims = ir_attr_ints(call->attrs, IR_KEY_dims, &rank);
    const int64_t *axes = infer_ints(call, IR_KEY_axes, t.rank);
    if (!axes || !infer_result_dims(call, ir_dtype(t), rank, dims))
        return false;
    if (!infer_axes(call, call->types[0], t.rank, axes))
        return false;
    for (int i = 0; i < t.rank; i++) {
        if (from[i] != 1 && from[i] != dims[axes[i]])
            return infer_fail(call, JOT_ERR_SHAPE,
                              "%s does not broadcast to %s: axis %d is %lld and would be %lld",
                              infer_text(call, t), infer_text(call, call->types[0]), i,
                              (long long)from[i], (long long)dims[axes[i]]);
    }
    return true;
}

void index_broadcast_in_dim(struct ir_index_call *c)
{
    for (int d = 0; d < c->map->rank; d++) {
        c->map->axes[d].n_terms = c->dims[d] != 1;
        c->map->axes[d].axis[0] = (int)list(c, IR_KEY_axes)[d];
    }
}

bool infer_reshape(struct ir_infer *call)
{
    int rank;
    struct ir_module *m = call->b->module;
    struct ir_type t = infer_in(call, 0);
    const int64_t *dims = ir_attr_ints(call->attrs, IR_KEY_dims, &rank);
    if (!infer_result_dims(call, ir_dtype(t), rank, dims))
        return false;
    int64_t have = ir_count(m, t), want = ir_count(m, call->types[0]);
    if (have != want)
        return infer_fail(call, JOT_ERR_SHAPE, "%s has %lld elements and %s has %lld",
                          infer_text(call, t), (long long)have,
                          infer_text(call, call->types[0]), (long long)want);
    return true;
}

bool infer_transpose(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    const int64_t *axes = infer_ints(call, IR_KEY_axes, t.rank), *from = infer_dims(call, 0);
    int64_t dims[IR_MAX_RANK];
    uint32_t seen = 0;
    if (!axes)
        return false;
    for (int i = 0; i < t.rank; i++) {
        if (!infer_axis(call, t, axes[i]))
            return false;
        if (seen >> axes[i] & 1)
            return infer_fail(
                call, JOT_ERR_SHAPE,
                "axis %lld of %s is listed twice: a transpose lists each axis once",
                (long long)axes[i], infer_text(call, t));
        seen |= UINT32_C(1) << axes[i];
        dims[i] = from[axes[i]];
    }
    return infer_result_dims(call, ir_dtype(t), t.rank, dims);
}

void index_transpose(struct ir_index_call *c)
{
    for (int d = 0; d < c->map->rank; d++)
        c->map->axes[list(c, IR_KEY_axes)[d]].axis[0] = d;
}

bool infer_rev(struct ir_infer *call)
{
    int n;
    const int64_t *axes = ir_attr_ints(call->attrs, IR_KEY_axes, &n);
    return infer_axes(call, infer_in(call, 0), n, axes) &&
           infer_result(call, infer_in(call, 0));
}

void index_rev(struct ir_index_call *c)
{
    int n;
    const int64_t *axes = ir_attr_ints(c->attrs, IR_KEY_axes, &n);
    for (int i = 0; i < n; i++) {
        c->map->axes[axes[i]].step[0] = -1;
        c->map->axes[axes[i]].offset = c->dims[axes[i]] - 1;
    }
}

bool infer_slice(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    const int64_t *starts = infer_ints(call, IR_KEY_starts, t.rank);
    const int64_t *limits = infer_ints(call, IR_KEY_limits, t.rank);
    const int64_t *strides = infer_ints(call, IR_KEY_strides, t.rank),
                  *from = infer_dims(call, 0);
    int64_t dims[IR_MAX_RANK];
    if (!starts || !limits || !strides)
        return false;
    for (int i = 0; i < t.rank; i++) {
        if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > from[i])
            return infer_fail(call, JOT_ERR_SHAPE,
                              "slice %lld to %lld of axis %d of %s: bounds are 0 to %lld",
                              (long long)starts[i], (long long)limits[i], i,
                              infer_text(call, t), (long long)from[i]);
        if (strides[i] < 1)
            return infer_fail(
                call, JOT_ERR_SHAPE,
                "stride %lld along axis %d of %s: strides are positive; rev reverses",
                (long long)strides[i], i, infer_text(call, t));
        int64_t span = limits[i] - starts[i];
        dims[i] = span / strides[i] + (span % strides[i] != 0);
    }
    return infer_result_dims(call, ir_dtype(t), t.rank, dims);
}

void index_slice(struct ir_index_call *c)
{
    for (int d = 0; d < c->map->rank; d++) {
        c->map->axes[d].step[0] = list(c, IR_KEY_strides)[d];
        c->map->axes[d].offset = list(c, IR_KEY_starts)[d];
    }
}

// extent + low + high + interior between the elements, or false when that overflows.
// Neither the extent nor the index of an element in the operand (index_pad) overflows.
static bool padded(int64_t extent, int64_t low, int64_t high, int64_t interior, int64_t *out)
{
    int64_t between, last;
    return !__builtin_mul_overflow(extent > 0 ? extent - 1 : 0, interior, &between) &&
           !__builtin_add_overflow(extent, between, out) &&
           !__builtin_add_overflow(*out, low, out) &&
           !__builtin_add_overflow(*out, high, out) &&
           !__builtin_sub_overflow(*out, low, &last) && interior < INT64_MAX;
}

bool infer_pad(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0), value = infer_in(call, 1);
    const int64_t *low = infer_ints(call, IR_KEY_low, t.rank);
    const int64_t *high = infer_ints(call, IR_KEY_high, t.rank);
    const int64_t *interior = infer_ints(call, IR_KEY_interior, t.rank);
    const int64_t *from = infer_dims(call, 0);
    int64_t dims[IR_MAX_RANK];
    if (!low || !high || !interior || !infer_one_dtype(call, 0))
        return false;
    if (value.rank != 0)
        return infer_fail(call, JOT_ERR_SHAPE, "pad with %s: the padding value is one scalar",
                          infer_text(call, value));
    for (int i = 0; i < t.rank; i++) {
        if (interior[i] < 0)
            return infer_fail(
                call, JOT_ERR_SHAPE,
                "interior padding %lld of axis %d of %s is negative: slice with a "
                "stride instead",
                (long long)interior[i], i, infer_text(call, t));
        if (!padded(from[i], low[i], high[i], interior[i], &dims[i]))
            return infer_fail(call, JOT_ERR_SHAPE,
                              "padding %lld and %lld of axis %d of %s overflows",
                              (long long)low[i], (long long)high[i], i, infer_text(call, t));
        if (dims[i] < 0)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "padding %lld and %lld leaves %lld of axis %d of %s: at most the "
                              "axis can be cut off",
                              (long long)low[i], (long long)high[i], (long long)dims[i], i,
                              infer_text(call, t));
    }
    return infer_result_dims(call, ir_dtype(t), t.rank, dims);
}

// Operand 1, the padding value, has no axes: the map of a scalar is empty.
void index_pad(struct ir_index_call *c)
{
    for (int d = 0; d < c->map->rank; d++) {
        c->map->axes[d].offset = -list(c, IR_KEY_low)[d];
        c->map->axes[d].spread = list(c, IR_KEY_interior)[d] + 1;
        c->map->axes[d].is_guarded = true;
    }
}

// The attributes of shear and diagonal.
struct slope {
    int64_t axis, along, offset, step, length;
};

static bool read_slope(struct ir_infer *call, struct ir_type t, struct slope *s)
{
    return infer_int(call, IR_KEY_axis, &s->axis) && infer_int(call, IR_KEY_along, &s->along) &&
           infer_int(call, IR_KEY_offset, &s->offset) &&
           infer_int(call, IR_KEY_step, &s->step) &&
           infer_int(call, IR_KEY_length, &s->length) && infer_axis(call, t, s->axis) &&
           infer_axis(call, t, s->along);
}

bool infer_shear(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    struct slope s;
    int64_t dims[IR_MAX_RANK], far;
    if (!read_slope(call, t, &s))
        return false;
    if (s.axis == s.along)
        return infer_fail(call, JOT_ERR_SHAPE, "axis %lld of %s sheared along itself",
                          (long long)s.axis, infer_text(call, t));
    memcpy(dims, infer_dims(call, 0), (size_t)t.rank * sizeof *dims);
    if (__builtin_mul_overflow(s.step, dims[s.along], &far) ||
        __builtin_add_overflow(far, s.offset, &far) ||
        __builtin_add_overflow(far, s.length, &far))
        return infer_fail(call, JOT_ERR_SHAPE, "shear of axis %lld of %s overflows",
                          (long long)s.axis, infer_text(call, t));
    dims[s.axis] = s.length;
    return infer_result_dims(call, ir_dtype(t), t.rank, dims);
}

void index_shear(struct ir_index_call *c)
{
    int axis = (int)ir_attr_int(c->attrs, IR_KEY_axis);
    c->map->axes[axis] = (struct ir_index_axis){
        .n_terms = 2,
        .axis = {axis, (int)ir_attr_int(c->attrs, IR_KEY_along)},
        .step = {1, ir_attr_int(c->attrs, IR_KEY_step)},
        .offset = ir_attr_int(c->attrs, IR_KEY_offset),
        .spread = 1,
        .is_guarded = true,
    };
}

bool infer_diagonal(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    const int64_t *from = infer_dims(call, 0);
    struct slope s;
    int64_t dims[IR_MAX_RANK];
    if (!read_slope(call, t, &s))
        return false;
    if (s.axis == s.along)
        return infer_fail(call, JOT_ERR_SHAPE, "a diagonal of %s along axis %lld and itself",
                          infer_text(call, t), (long long)s.axis);
    int64_t rows = from[s.axis] + (s.offset < 0 ? s.offset : 0);
    int64_t columns = from[s.along] - (s.offset > 0 ? s.offset : 0);
    int64_t room = rows < columns ? rows : columns;
    if (room < 0 || s.step < 1 || s.length < 0 ||
        (s.length > 0 && (room == 0 || s.length - 1 > (room - 1) / s.step)))
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%lld elements %lld apart of diagonal %lld of %s: it has %lld",
                          (long long)s.length, (long long)s.step, (long long)s.offset,
                          infer_text(call, t), (long long)(room > 0 ? room : 0));
    int rank = 0;
    for (int d = 0; d < t.rank; d++)
        if (d != s.axis && d != s.along)
            dims[rank++] = from[d];
    dims[rank++] = s.length;
    return infer_result_dims(call, ir_dtype(t), rank, dims);
}

void index_diagonal(struct ir_index_call *c)
{
    int axis = (int)ir_attr_int(c->attrs, IR_KEY_axis);
    int along = (int)ir_attr_int(c->attrs, IR_KEY_along);
    int64_t offset = ir_attr_int(c->attrs, IR_KEY_offset);
    for (int d = 0, kept = 0; d < c->map->rank; d++) {
        struct ir_index_axis *a = &c->map->axes[d];
        bool is_along = d == axis || d == along;
        a->axis[0] = is_along ? c->map->rank - 2 : kept++;
        if (!is_along)
            continue;
        a->step[0] = ir_attr_int(c->attrs, IR_KEY_step);
        a->offset = d == axis ? (offset < 0 ? -offset : 0) : (offset > 0 ? offset : 0);
    }
}

bool infer_concatenate(struct ir_infer *call)
{
    int64_t axis, dims[IR_MAX_RANK];
    if (call->n_in < 1)
        return infer_fail(call, JOT_ERR_ARGUMENT, "concatenate takes at least 1 operand");
    struct ir_type t = infer_in(call, 0);
    if (!infer_int(call, IR_KEY_axis, &axis) || !infer_axis(call, t, axis) ||
        !infer_one_dtype(call, 0))
        return false;
    memcpy(dims, infer_dims(call, 0), (size_t)t.rank * sizeof *dims);
    for (int i = 1; i < call->n_in; i++) {
        struct ir_type u = infer_in(call, i);
        const int64_t *more = infer_dims(call, i);
        if (u.rank != t.rank)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "concatenating %s and %s: they have %d and %d "
                              "axes",
                              infer_text(call, t), infer_text(call, u), t.rank, u.rank);
        for (int k = 0; k < t.rank; k++) {
            if (k != axis && more[k] != dims[k])
                return infer_fail(
                    call, JOT_ERR_SHAPE,
                    "concatenating %s and %s along axis %lld: axis %d is %lld in one "
                    "and %lld in the other",
                    infer_text(call, t), infer_text(call, u), (long long)axis, k,
                    (long long)dims[k], (long long)more[k]);
        }
        if (__builtin_add_overflow(dims[axis], more[axis], &dims[axis]))
            return infer_fail(call, JOT_ERR_SHAPE, "concatenating along axis %lld overflows",
                              (long long)axis);
    }
    return infer_result_dims(call, ir_dtype(t), t.rank, dims);
}

void index_concatenate(struct ir_index_call *c)
{
    c->after = (int)ir_attr_int(c->attrs, IR_KEY_axis);
    c->map->axes[c->after].is_guarded = true;
}
