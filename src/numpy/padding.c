// SPDX-License-Identifier: Apache-2.0
// Padding with what is made of the axis itself.
#include "trace/emit.h"

#include "jot/windows.h"

#define MOST_PADDING (INT64_C(1) << 60) // so that sums do not overflow

static jot_value check(jot_value x, jot_pad_mode mode, int axis, int64_t low, int64_t high)
{
    const char *name = "jot_pad_with_mode";
    jot_value error;
    int64_t at;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error))
        return error;
    if ((unsigned)mode > JOT_PAD_EMPTY)
        return trace_fail(name, JOT_ERR_ARGUMENT, "there is no mode %d", (int)mode);
    if (low < 0 || high < 0)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "padding %lld and %lld: it takes 0 or more, jot_pad cuts off",
                          (long long)low, (long long)high);
    if (low > MOST_PADDING || high > MOST_PADDING)
        return trace_fail(name, JOT_ERR_SHAPE, "padding %lld and %lld: too large",
                          (long long)low, (long long)high);
    if (mode != JOT_PAD_EMPTY && low + high > 0 &&
        ir_dims(trace_top()->module, trace_type(x))[at] == 0)
        return trace_fail(name, JOT_ERR_SHAPE,
                          "axis %d of %s is empty: there is nothing to pad with", axis,
                          trace_type_text(x));
    return x;
}

static jot_value checked(jot_value x, jot_pad_mode mode, int axis, int64_t low, int64_t high)
{
    TRACE_RETURN(check(x, mode, axis, low, high));
}

static jot_value part(jot_value x, int axis, int64_t start, int64_t stop)
{
    return jot_slice_axis(x, axis, start, stop, 1);
}

// What repeats: x, and for the mirrored modes x from the other end, without its ends to reflect.
static jot_value period_of(jot_value x, jot_pad_mode mode, int axis)
{
    int64_t n = jot_value_dim(x, axis), skip = mode == JOT_PAD_REFLECT;
    if (mode == JOT_PAD_WRAP || (skip && n == 1))
        return x;
    jot_value back = jot_flip_axes(part(x, axis, skip, n - skip), (int[]){axis, JOT_END});
    return jot_concatenate_list(axis, 2, (jot_value[]){x, back});
}

// So many elements of the period, repeated, from `start` (in it) on.
static jot_value cycle(jot_value period, int axis, int64_t start, int64_t count)
{
    int64_t n = jot_value_dim(period, axis), times = (start + count + n - 1) / n;
    int64_t counts[IR_MAX_RANK + 1];
    int rank = jot_value_rank(period);
    for (int i = 0; i < rank; i++)
        counts[i] = i == axis ? times : 1;
    counts[rank] = JOT_END;
    return part(times > 1 ? jot_tile_dims(period, counts) : period, axis, start, start + count);
}

// edge / count * (0, 1, 2, ...) along the axis.
static jot_value ramp(jot_value edge, int axis, int64_t count)
{
    jot_dtype d = jot_value_dtype(edge);
    int64_t dims[IR_MAX_RANK + 1];
    int rank = jot_value_rank(edge);
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? count : 1;
    dims[rank] = JOT_END;
    jot_dtype wide = dtype_is_inexact(d) ? d : JOT_F32;
    jot_value step = jot_div(jot_arange(wide, count), jot_from_int(count));
    jot_value y = jot_mul(jot_convert(edge, wide), jot_reshape_dims(step, dims));
    return dtype_is_inexact(d) ? y : jot_convert(jot_floor(y), d);
}

static jot_value statistic(jot_value x, jot_pad_mode mode, int axis)
{
    const int axes[] = {axis, JOT_KEEPDIMS, JOT_END};
    if (mode == JOT_PAD_MAXIMUM)
        return jot_max_axes(x, axes);
    if (mode == JOT_PAD_MINIMUM)
        return jot_min_axes(x, axes);
    jot_dtype d = jot_value_dtype(x);
    jot_value mean = jot_mean_axes(x, axes);
    return dtype_is_inexact(d) ? mean : jot_convert(jot_round(mean), d);
}

// The elements before x (or after it, from the end outwards seen along the axis).
static jot_value beside(jot_value x, jot_pad_mode mode, int axis, int64_t count, bool before)
{
    int64_t n = jot_value_dim(x, axis);
    jot_value edge = part(x, axis, before ? 0 : n - 1, before ? 1 : n);
    switch (mode) {
    case JOT_PAD_EDGE:
        return jot_repeat(edge, count, axis);
    case JOT_PAD_LINEAR_RAMP:
        edge = ramp(edge, axis, count);
        return before ? edge : jot_flip_axes(edge, (int[]){axis, JOT_END});
    case JOT_PAD_MAXIMUM:
    case JOT_PAD_MINIMUM:
    case JOT_PAD_MEAN:
        return jot_repeat(statistic(x, mode, axis), count, axis);
    default:
        break;
    }
    jot_value period = period_of(x, mode, axis);
    int64_t length = jot_value_dim(period, axis);
    int64_t start = before ? (length - count % length) % length : n % length;
    return cycle(period, axis, start, count);
}

jot_value jot_pad_with_mode(jot_value x, jot_pad_mode mode, int axis, int64_t low, int64_t high)
{
    x = checked(x, mode, axis, low, high);
    if (jot_value_failed(x))
        return x;
    if (mode == JOT_PAD_EMPTY)
        return jot_pad_axis(x, jot_from_int(0), axis, low, high);
    axis = axis < 0 ? axis + jot_value_rank(x) : axis;
    jot_value parts[3];
    size_t n = 0;
    if (low)
        parts[n++] = beside(x, mode, axis, low, true);
    parts[n++] = x;
    if (high)
        parts[n++] = beside(x, mode, axis, high, false);
    return jot_concatenate_list(axis, n, parts);
}
