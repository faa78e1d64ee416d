// SPDX-License-Identifier: Apache-2.0
// Elements at points, which are indices along several axes together, and slices with parts changed.
#include "trace/emit.h"

#include "jot/indexing.h"

// ---------------------------------------------------------------------------------------
// Points

// Points of the first axes of x as starts of windows of one element along each of them.
struct points {
    int64_t count; // axes that a point has an index along
    int rank;      // of the values at points
    jot_value at;  // counted from the start
    int64_t dims[2 * IR_MAX_RANK + 1], sizes[IR_MAX_RANK + 1];
    int offset[IR_MAX_RANK + 1], axes[IR_MAX_RANK + 1];
};

static jot_value read_points(const char *name, jot_value x, jot_value points, struct points *p)
{
    jot_value v[] = {x, points}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    struct ir_module *m = trace_top()->module;
    struct ir_type tx = trace_type(v[0]), tp = trace_type(v[1]);
    if (!dtype_is_integer(ir_dtype(tp)))
        return trace_fail(name, JOT_ERR_DTYPE, "points of %s: it takes integers",
                          trace_type_text(v[1]));
    p->count = tp.rank ? ir_dims(m, tp)[tp.rank - 1] : 0;
    if (p->count < 1 || p->count > tx.rank)
        return trace_fail(
            name, JOT_ERR_SHAPE,
            "points of %s in %s: the last axis has an index along each of the first 1 to "
            "%d axes",
            trace_type_text(v[1]), trace_type_text(v[0]), tx.rank);
    int rest = tx.rank - (int)p->count;
    p->rank = tp.rank - 1 + rest;
    if (p->rank > IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "a result of %d axes: at most %d", p->rank,
                          IR_MAX_RANK);
    jot_value extents[IR_MAX_RANK];
    for (int i = 0; i < tx.rank; i++) {
        extents[i] = jot_from_int(ir_dims(m, tx)[i]);
        p->sizes[i] = i < p->count ? 1 : ir_dims(m, tx)[i];
        p->axes[i] = i;
    }
    for (int i = 0; i < p->rank; i++)
        p->dims[i] = i < tp.rank - 1 ? ir_dims(m, tp)[i] : p->sizes[i - tp.rank + 1 + p->count];
    for (int i = 0; i < rest; i++)
        p->offset[i] = tp.rank - 1 + i;
    p->dims[p->rank] = p->sizes[tx.rank] = JOT_END;
    p->axes[p->count] = p->offset[rest] = JOT_END;
    jot_value wide = jot_convert(v[1], JOT_I64);
    p->at = jot_where(jot_less(wide, jot_from_int(0)),
                      jot_add(wide, jot_stack_list(0, (size_t)p->count, extents)), wide);
    return v[0];
}

static struct jot_index_dims dims_of_points(const struct points *p, enum jot_index_mode mode)
{
    return (struct jot_index_dims){
        .offset = p->offset, .collapsed = p->axes, .map = p->axes, .mode = mode};
}

static jot_value take_points(jot_value x, jot_value points)
{
    struct points p;
    x = read_points("jot_take_points", x, points, &p);
    if (jot_value_failed(x))
        return x;
    struct jot_index_dims dims = dims_of_points(&p, JOT_INDEX_FILL);
    return jot_gather(x, p.at, &dims, p.sizes);
}

jot_value jot_take_points(jot_value x, jot_value points)
{
    TRACE_RETURN(take_points(x, points));
}

static jot_value at_points(enum jot_scatter_kind kind, jot_value x, jot_value points,
                           jot_value y)
{
    struct points p;
    x = read_points("jot_at_points", x, points, &p);
    if (jot_value_failed(x))
        return x;
    struct jot_index_dims dims = dims_of_points(&p, JOT_INDEX_DROP);
    return jot_scatter(kind, x, p.at, jot_broadcast_to_dims(y, p.dims), &dims);
}

jot_value jot_at_points(enum jot_scatter_kind kind, jot_value x, jot_value points, jot_value y)
{
    TRACE_RETURN(at_points(kind, x, points, y));
}

// ---------------------------------------------------------------------------------------
// Slices

// An end of a slice as Python has it, from 0 to the extent.
static int64_t end_of(int64_t index, int64_t extent, int64_t last)
{
    if (index == JOT_END)
        return last;
    index = index < 0 && index >= -extent ? index + extent : index;
    return index < 0 ? 0 : index > extent ? extent : index;
}

static jot_value combine(enum jot_scatter_kind kind, jot_value x, jot_value y)
{
    switch (kind) {
    case JOT_SCATTER_ADD:
        return jot_add(x, y);
    case JOT_SCATTER_MUL:
        return jot_mul(x, y);
    case JOT_SCATTER_MIN:
        return jot_minimum(x, y);
    case JOT_SCATTER_MAX:
        return jot_maximum(x, y);
    default:
        return y;
    }
}

static jot_value at_slice(enum jot_scatter_kind kind, jot_value x, int axis, int64_t start,
                          int64_t stop, jot_value y)
{
    const char *name = "jot_at_slice";
    jot_value v[] = {x, y}, error, starts[IR_MAX_RANK];
    int64_t at, dims[IR_MAX_RANK + 1];
    if (!trace_ready(name, 2, v, &error) || !trace_axis(name, v[0], axis, &at, &error))
        return error;
    if ((unsigned)kind > JOT_SCATTER_MAX)
        return trace_fail(
            name, JOT_ERR_ARGUMENT,
            "the kind is %d, which is none of JOT_SCATTER_SET, _ADD, _MUL, _MIN, _MAX",
            (int)kind);
    int rank = trace_type(v[0]).rank;
    for (int i = 0; i < rank; i++) {
        dims[i] = jot_value_dim(v[0], i);
        starts[i] = jot_from_int(0);
    }
    int64_t first = end_of(start, dims[at], 0), behind = end_of(stop, dims[at], dims[at]);
    starts[at] = jot_from_int(first);
    dims[at] = behind > first ? behind - first : 0;
    dims[rank] = JOT_END;
    jot_value old = jot_slice_axis(v[0], axis, start, stop, 1);
    jot_value whole = jot_broadcast_to_dims(combine(kind, old, v[1]), dims);
    return jot_dynamic_update_slice(v[0], whole, jot_stack_list(0, (size_t)rank, starts));
}

jot_value jot_at_slice(enum jot_scatter_kind kind, jot_value x, int axis, int64_t start,
                       int64_t stop, jot_value y)
{
    TRACE_RETURN(at_slice(kind, x, axis, start, stop, y));
}
