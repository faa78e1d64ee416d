// SPDX-License-Identifier: Apache-2.0
// Parts of values at indices known while tracing, and values put together.
#include "trace/emit.h"

#include "base/count.h"

// A slice along one axis, the others whole.
static ir_id slice_along(ir_id x, int64_t axis, int64_t start, int64_t limit, int64_t stride)
{
    struct ir_builder *b = trace_builder();
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], strides[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        limits[i] = ir_dims(b->module, t)[i];
        strides[i] = 1;
    }
    starts[axis] = start;
    limits[axis] = limit;
    strides[axis] = stride;
    return ir_slice(b, x, starts, limits, strides);
}

// Python's slice.indices.
static void resolve(int64_t n, int64_t step, int64_t *start, int64_t *stop)
{
    bool back = step < 0;
    if (*start == JOT_END)
        *start = back ? n - 1 : 0;
    else
        *start = count_clip(*start < 0 ? *start + n : *start, back ? -1 : 0, back ? n - 1 : n);
    if (*stop == JOT_END)
        *stop = back ? -1 : n;
    else
        *stop = count_clip(*stop < 0 ? *stop + n : *stop, back ? -1 : 0, back ? n - 1 : n);
}

static jot_value slice(jot_value x, int axis, int64_t start, int64_t stop, int64_t step)
{
    const char *name = "jot_slice";
    jot_value error;
    int64_t at;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error))
        return error;
    if (step == 0)
        return trace_fail(name, JOT_ERR_ARGUMENT, "the step is 0");
    struct ir_builder *b = trace_builder();
    resolve(ir_dims(b->module, trace_type(x))[at], step, &start, &stop);
    int64_t span = step > 0 ? stop - start : start - stop,
            size = step > 0 ? step : -(step + (step == INT64_MIN));
    int64_t count = span > 0 ? (span - 1) / size + 1 : 0;
    ir_id y = trace_kept(x);
    if (count == 0) {
        y = slice_along(y, at, 0, 0, 1);
    } else if (step > 0) {
        y = slice_along(y, at, start, start + (count - 1) * step + 1, step);
    } else { // the same elements forwards, then reversed
        int64_t first = start + (count - 1) * step;
        y = ir_rev(b, slice_along(y, at, first, start + 1, size), 1, &at);
    }
    return trace_like(name, x, y);
}

jot_value jot_slice_axis(jot_value x, int axis, int64_t start, int64_t stop, int64_t step)
{
    TRACE_RETURN(slice(x, axis, start, stop, step));
}

static ir_id drop_axis(ir_id x, int64_t axis)
{
    struct ir_builder *b = trace_builder();
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i < t.rank - 1; i++)
        dims[i] = ir_dims(b->module, t)[i + (i >= axis)];
    return ir_reshape(b, x, t.rank - 1, dims);
}

static jot_value take_index(jot_value x, int64_t index, int axis)
{
    const char *name = "jot_take";
    jot_value error;
    int64_t at, i;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error) ||
        !trace_index(name, x, at, index, &i, &error))
        return error;
    return trace_like(name, x, drop_axis(slice_along(trace_kept(x), at, i, i + 1, 1), at));
}

jot_value jot_take_axis(jot_value x, int64_t index, int axis)
{
    TRACE_RETURN(take_index(x, index, axis));
}

static jot_value pad(jot_value x, jot_value value, int axis, int64_t low, int64_t high)
{
    const char *name = "jot_pad";
    jot_value v[] = {x, value}, error;
    int64_t at, lows[IR_MAX_RANK] = {0}, highs[IR_MAX_RANK] = {0};
    if (!trace_ready(name, 2, v, &error) || !trace_axis(name, v[0], axis, &at, &error))
        return error;
    if (trace_type(v[1]).rank)
        return trace_fail(name, JOT_ERR_SHAPE, "the value is %s, not one number",
                          trace_type_text(v[1]));
    lows[at] = low;
    highs[at] = high;
    ir_id id = trace_kept(v[0]);
    jot_dtype d = ir_dtype(ir_type_in(trace_builder(), id));
    if (!trace_fits(name, v[1], d, &error))
        return error;
    return trace_like(name, v[0],
                      ir_pad(trace_builder(), id, trace_operand(v[1], d), lows, highs, NULL));
}

jot_value jot_pad_axis(jot_value x, jot_value value, int axis, int64_t low, int64_t high)
{
    TRACE_RETURN(pad(x, value, axis, low, high));
}

// Operands of one dtype, as values of the graph.
static bool bring_together(const char *name, size_t n, const jot_value *x, jot_value *v,
                           ir_id *ids, struct trace_promoted *p, jot_value *out_error)
{
    if (n == 0) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "nothing to put together");
        return false;
    }
    memcpy(v, x, sizeof *v * n);
    if (!trace_ready(name, (int)n, v, out_error) ||
        !trace_promote(name, "any", (int)n, v, p, out_error))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!trace_fits(name, v[i], p->dtype, out_error))
            return false;
        ids[i] = trace_operand(v[i], p->dtype);
    }
    return true;
}

static jot_value concatenate(int axis, size_t n, const jot_value *x)
{
    const char *name = "jot_concatenate";
    jot_value error, *v;
    int64_t at;
    struct trace_promoted p;
    if (!trace_ready(name, 0, NULL, &error))
        return error;
    struct arena *arena = trace_top()->module->arena;
    v = arena_array(arena, jot_value, n + 1);
    ir_id *ids = arena_array(arena, ir_id, n + 1);
    if (!bring_together(name, n, x, v, ids, &p, &error) ||
        !trace_axis(name, v[0], axis, &at, &error))
        return error;
    for (size_t i = 1; i < n; i++) {
        struct ir_type a = trace_type(v[0]), b = trace_type(v[i]);
        bool same = a.rank == b.rank;
        for (int k = 0; same && k < a.rank; k++)
            same = k == at ||
                   ir_dims(trace_top()->module, a)[k] == ir_dims(trace_top()->module, b)[k];
        if (!same)
            return trace_fail(name, JOT_ERR_SHAPE, "%s and %s differ in more than axis %lld",
                              trace_type_text(v[0]), trace_type_text(v[i]), (long long)at);
    }
    return trace_result(name, ir_concatenate(trace_builder(), (int)n, ids, (int)at), p.weak);
}

jot_value jot_concatenate_list(int axis, size_t n, const jot_value *x)
{
    TRACE_NEEDS("jot_concatenate", "x", n, x);
    TRACE_RETURN(concatenate(axis, n, x));
}

static jot_value stack(int axis, size_t n, const jot_value *x)
{
    const char *name = "jot_stack";
    jot_value error, *v;
    struct trace_promoted p;
    if (!trace_ready(name, 0, NULL, &error))
        return error;
    struct ir_builder *b = trace_builder();
    v = arena_array(b->module->arena, jot_value, n + 1);
    ir_id *ids = arena_array(b->module->arena, ir_id, n + 1);
    if (!bring_together(name, n, x, v, ids, &p, &error))
        return error;
    struct ir_type t = trace_type(v[0]);
    int at = axis < 0 ? axis + t.rank + 1 : axis;
    if (at < 0 || at > t.rank)
        return trace_fail(name, JOT_ERR_ARGUMENT, "axis %d of a stack of %s: axes are %d to %d",
                          axis, trace_type_text(v[0]), -t.rank - 1, t.rank);
    if (t.rank == IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "%d axes: at most %d", t.rank + 1, IR_MAX_RANK);
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i <= t.rank; i++)
        dims[i] = i == at ? 1 : ir_dims(b->module, t)[i - (i > at)];
    for (size_t i = 0; i < n; i++) {
        if (trace_type(v[i]).shape != t.shape)
            return trace_fail(name, JOT_ERR_SHAPE, "%s and %s have not the same shape",
                              trace_type_text(v[0]), trace_type_text(v[i]));
        ids[i] = ir_reshape(b, ids[i], t.rank + 1, dims);
    }
    return trace_result(name, ir_concatenate(b, (int)n, ids, at), p.weak);
}

jot_value jot_stack_list(int axis, size_t n, const jot_value *x)
{
    TRACE_NEEDS("jot_stack", "x", n, x);
    TRACE_RETURN(stack(axis, n, x));
}

static jot_value part(jot_value x, int axis, size_t n, size_t i)
{
    const char *name = "jot_split";
    jot_value error;
    int64_t at;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error))
        return error;
    int64_t size = ir_dims(trace_top()->module, trace_type(x))[at];
    if (size % (int64_t)n)
        return trace_fail(name, JOT_ERR_SHAPE, "axis %lld of %s is not a multiple of %zu",
                          (long long)at, trace_type_text(x), n);
    int64_t each = size / (int64_t)n, start = each * (int64_t)i;
    return trace_like(name, x, slice_along(trace_kept(x), at, start, start + each, 1));
}

static jot_value guarded_part(jot_value x, int axis, size_t n, size_t i)
{
    TRACE_RETURN(part(x, axis, n, i));
}

void jot_split_into(jot_value x, int axis, size_t n, jot_value *out)
{
    if (trace_lacks("jot_split", "out", n, out, n, out, NULL))
        return;
    for (size_t i = 0; i < n; i++)
        out[i] = guarded_part(x, axis, n, i);
}

jot_value jot_roll(jot_value x, int64_t shift, int axis)
{
    int64_t n = jot_value_dim(x, axis);
    int64_t by = n ? (shift % n + n) % n : 0;
    if (by == 0)
        return jot_slice_axis(x, axis, 0, JOT_END, 1);
    jot_value parts[] = {jot_slice_axis(x, axis, n - by, n, 1),
                         jot_slice_axis(x, axis, 0, n - by, 1)};
    return jot_concatenate_list(axis, 2, parts);
}
