// SPDX-License-Identifier: Apache-2.0
// Parts put in, taken out and turned, and bits as elements.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/shapes.h"

static const int64_t flat[] = {-1, JOT_END};

static jot_value rot90(jot_value x, int quarters, int axis1, int axis2)
{
    jot_value error;
    int64_t a, b;
    if (!trace_ready("jot_rot90", 1, &x, &error) ||
        !trace_axis("jot_rot90", x, axis1, &a, &error) ||
        !trace_axis("jot_rot90", x, axis2, &b, &error))
        return error;
    if (a == b)
        return trace_fail("jot_rot90", JOT_ERR_ARGUMENT, "%s turned from axis %lld to itself",
                          trace_type_text(x), (long long)a);
    const int first[] = {(int)a, JOT_END}, second[] = {(int)b, JOT_END};
    const int both[] = {(int)a, (int)b, JOT_END};
    switch (((quarters % 4) + 4) % 4) {
    case 0:
        return x;
    case 1:
        return jot_flip_axes(jot_swap_axes(x, (int)a, (int)b), first);
    case 2:
        return jot_flip_axes(x, both);
    default:
        return jot_flip_axes(jot_swap_axes(x, (int)a, (int)b), second);
    }
}

jot_value jot_rot90(jot_value x, int quarters, int axis1, int axis2)
{
    TRACE_RETURN(rot90(x, quarters, axis1, axis2));
}

jot_value jot_atleast_1d(jot_value x)
{
    return jot_value_rank(x) >= 1 ? x : jot_expand_dims_axes(x, (const int[]){0, JOT_END});
}

jot_value jot_atleast_2d(jot_value x)
{
    const int axes[] = {0, 1, JOT_END};
    int rank = jot_value_rank(x);
    return rank >= 2 ? x : jot_expand_dims_axes(x, rank ? (const int[]){0, JOT_END} : axes);
}

jot_value jot_atleast_3d(jot_value x)
{
    static const int axes[3][4] = {{0, 1, 2, JOT_END}, {0, 2, JOT_END}, {2, JOT_END}};
    int rank = jot_value_rank(x);
    return rank >= 3 ? x : jot_expand_dims_axes(x, axes[rank]);
}

static jot_value resize(jot_value x, const int64_t *sizes)
{
    const char *name = "jot_resize";
    jot_value error;
    int rank;
    int64_t dims[IR_MAX_RANK], count;
    if (!trace_ready(name, 1, &x, &error) ||
        !trace_sizes(name, sizes, 0, &rank, dims, &error) ||
        !trace_count(name, rank, dims, INT64_C(1) << 62, &count, &error))
        return error;
    int64_t n = jot_value_size(x);
    x = jot_reshape_dims(x, flat);
    if (n == 0 && count)
        x = jot_zeros_dims(jot_value_dtype(x), (const int64_t[]){count, JOT_END});
    else if (n < count)
        x = jot_tile_dims(x, (const int64_t[]){count / n + (count % n != 0), JOT_END});
    return jot_reshape_dims(jot_slice_axis(x, 0, 0, count, 1), sizes);
}

jot_value jot_resize_dims(jot_value x, const int64_t *dims) { TRACE_RETURN(resize(x, dims)); }

// ---------------------------------------------------------------------------------------
// Slices put in and taken out

static jot_value insert(jot_value x, int64_t index, jot_value y, int axis)
{
    const char *name = "jot_insert";
    jot_value v[] = {x, y}, error;
    int64_t at, dims[IR_MAX_RANK + 1];
    if (!trace_ready(name, 2, v, &error) || !trace_axis(name, v[0], axis, &at, &error))
        return error;
    struct ir_type t = trace_type(v[0]);
    memcpy(dims, ir_dims(trace_top()->module, t), t.rank * sizeof *dims);
    dims[t.rank] = JOT_END;
    int64_t n = dims[at], before = index < 0 ? index + n : index;
    if (before < 0 || before > n)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "before %lld of axis %lld of %s: indices are %lld to %lld",
                          (long long)index, (long long)at, trace_type_text(v[0]), (long long)-n,
                          (long long)n);
    dims[at] = trace_type(v[1]).rank == t.rank ? jot_value_dim(v[1], (int)at) : 1;
    jot_value parts[] = {jot_slice_axis(v[0], (int)at, 0, before, 1),
                         jot_convert(jot_broadcast_to_dims(v[1], dims), ir_dtype(t)),
                         jot_slice_axis(v[0], (int)at, before, n, 1)};
    return jot_concatenate_list((int)at, 3, parts);
}

jot_value jot_insert(jot_value x, int64_t index, jot_value y, int axis)
{
    TRACE_RETURN(insert(x, index, y, axis));
}

static jot_value without(jot_value x, int64_t index, int axis)
{
    const char *name = "jot_delete";
    jot_value error;
    int64_t at, i;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error) ||
        !trace_index(name, x, at, index, &i, &error))
        return error;
    jot_value parts[] = {jot_slice_axis(x, (int)at, 0, i, 1),
                         jot_slice_axis(x, (int)at, i + 1, JOT_END, 1)};
    return jot_concatenate_list((int)at, 2, parts);
}

jot_value jot_delete(jot_value x, int64_t index, int axis)
{
    TRACE_RETURN(without(x, index, axis));
}

void jot_array_split_into(jot_value x, int axis, size_t n, jot_value *out)
{
    if (trace_lacks("jot_array_split", "out", n, out, n, out, NULL))
        return;
    int64_t size = jot_value_dim(x, axis), each = n ? size / (int64_t)n : 0, start = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t stop = start + each + ((int64_t)i < size % (int64_t)n);
        out[i] = jot_slice_axis(x, axis, start, stop, 1);
        start = stop;
    }
}

static jot_value check_extent(jot_value x, int axis, size_t n)
{
    jot_value error;
    int64_t at;
    if (!trace_ready("jot_unstack", 1, &x, &error) ||
        !trace_axis("jot_unstack", x, axis, &at, &error))
        return error;
    if (jot_value_dim(x, (int)at) != (int64_t)n)
        return trace_fail("jot_unstack", JOT_ERR_SHAPE, "axis %lld of %s into %zu values",
                          (long long)at, trace_type_text(x), n);
    return x;
}

static jot_value guarded_extent(jot_value x, int axis, size_t n)
{
    TRACE_RETURN(check_extent(x, axis, n));
}

void jot_unstack_into(jot_value x, int axis, size_t n, jot_value *out)
{
    if (trace_lacks("jot_unstack", "out", n, out, n, out, NULL))
        return;
    x = guarded_extent(x, axis, n);
    for (size_t i = 0; i < n; i++)
        out[i] = jot_value_failed(x) ? x : jot_take_axis(x, (int64_t)i, axis);
}

// Of the flattened x, for an update has one index.
static jot_value put_along_axis(jot_value x, jot_value index, jot_value y, int axis)
{
    const char *name = "jot_put_along_axis";
    jot_value v[] = {x, index, y}, error;
    int64_t at, dims[IR_MAX_RANK + 1], wide[IR_MAX_RANK + 1];
    if (!trace_ready(name, 3, v, &error) || !trace_axis(name, v[0], axis, &at, &error))
        return error;
    struct ir_type t = trace_type(v[0]), ti = trace_type(v[1]);
    if (!dtype_is_integer(ir_dtype(ti)))
        return trace_fail(name, JOT_ERR_DTYPE, "an index of %s: it takes integers",
                          trace_type_text(v[1]));
    memcpy(dims, ir_dims(trace_top()->module, t), t.rank * sizeof *dims);
    bool fits = ti.rank == t.rank;
    for (int i = 0; fits && i < t.rank; i++) {
        int64_t size = jot_value_dim(v[1], i);
        wide[i] = i == at ? size : dims[i];
        fits = i == at || size == 1 || size == dims[i];
    }
    if (!fits)
        return trace_fail(name, JOT_ERR_SHAPE,
                          "%s and the index %s differ in more than axis %lld",
                          trace_type_text(v[0]), trace_type_text(v[1]), (long long)at);
    wide[t.rank] = dims[t.rank] = JOT_END;
    jot_value n = jot_from_int(dims[at]), zero = jot_from_int(0);
    jot_value i = jot_convert(jot_broadcast_to_dims(v[1], wide), JOT_I64);
    i = jot_where(jot_less(i, zero), jot_add(i, n), i);
    jot_value is_inside = jot_logical_and(jot_greater_equal(i, zero), jot_less(i, n));
    int64_t stride = 1;
    jot_value flat_index = zero;
    for (int k = t.rank - 1; k >= 0; stride *= dims[k--]) {
        int64_t along[IR_MAX_RANK + 1];
        for (int j = 0; j < t.rank; j++)
            along[j] = j == k ? -1 : 1;
        along[t.rank] = JOT_END;
        jot_value p = k == at ? i : jot_reshape_dims(jot_arange(JOT_I64, dims[k]), along);
        flat_index = jot_add(flat_index, jot_mul(p, jot_from_int(stride)));
    }
    flat_index = jot_where(is_inside, flat_index, jot_from_int(stride)); // behind all: left out
    jot_value put =
        jot_at_set_axis(jot_reshape_dims(v[0], flat), jot_reshape_dims(flat_index, flat),
                        jot_reshape_dims(jot_broadcast_to_dims(v[2], wide), flat), 0);
    return jot_reshape_dims(put, dims);
}

jot_value jot_put_along_axis(jot_value x, jot_value index, jot_value y, int axis)
{
    TRACE_RETURN(put_along_axis(x, index, y, axis));
}

// ---------------------------------------------------------------------------------------
// Bits, as the last axis

static bool open_bits(const char *name, bool of_any, jot_value *x, int axis,
                      jot_value *out_error)
{
    int64_t at;
    if (!trace_ready(name, 1, x, out_error) || !trace_axis(name, *x, axis, &at, out_error))
        return false;
    jot_dtype d = (jot_dtype)trace_slot_of(*x)->dtype;
    if (of_any ? dtype_is_inexact(d) : d != JOT_U8) {
        *out_error = trace_fail(name, JOT_ERR_DTYPE, "%s: it takes %s", trace_type_text(*x),
                                of_any ? "bool or integers" : "u8");
        return false;
    }
    *x = jot_move_axis(*x, (int)at, -1);
    return true;
}

// The last axis as so many parts, or both last axes as one.
static jot_value fold(jot_value x, int64_t parts)
{
    int64_t dims[IR_MAX_RANK + 2];
    int rank = jot_value_rank(x), n = parts ? rank - 1 : rank - 2;
    for (int i = 0; i < n; i++)
        dims[i] = jot_value_dim(x, i);
    int64_t size = jot_value_dim(x, -1);
    dims[n++] = parts ? size / parts : size * jot_value_dim(x, -2);
    if (parts)
        dims[n++] = parts;
    dims[n] = JOT_END;
    return jot_reshape_dims(x, dims);
}

// 7, 6, ..., 0: the position of bit 0 is the highest.
static jot_value bit_positions(void)
{
    return jot_sub(jot_full_dims(JOT_U8, jot_from_int(7), NULL), jot_arange(JOT_U8, 8));
}

static jot_value packbits(jot_value x, int axis)
{
    jot_value error;
    if (!open_bits("jot_packbits", true, &x, axis, &error))
        return error;
    x = jot_convert(jot_convert(x, JOT_BOOL), JOT_U8);
    int64_t n = jot_value_dim(x, -1);
    x = fold(jot_pad_axis(x, jot_from_int(0), -1, 0, (8 - n % 8) % 8), 8);
    x = jot_sum_axes(jot_left_shift(x, bit_positions()), (const int[]){-1, JOT_END});
    return jot_move_axis(jot_convert(x, JOT_U8), -1, axis);
}

jot_value jot_packbits(jot_value x, int axis) { TRACE_RETURN(packbits(x, axis)); }

static jot_value unpackbits(jot_value x, int axis)
{
    jot_value error;
    if (!open_bits("jot_unpackbits", false, &x, axis, &error))
        return error;
    x = jot_right_shift_logical(jot_expand_dims_axes(x, (const int[]){-1, JOT_END}),
                                bit_positions());
    return jot_move_axis(fold(jot_bitwise_and(x, jot_from_int(1)), 0), -1, axis);
}

jot_value jot_unpackbits(jot_value x, int axis) { TRACE_RETURN(unpackbits(x, axis)); }
