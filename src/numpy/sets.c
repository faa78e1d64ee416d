// SPDX-License-Identifier: Apache-2.0
// What is not 0, and sets: of sizes that are given, as shapes do not depend on data.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/ordering.h"

#include <math.h>

static jot_value flat(jot_value x) { return jot_reshape_dims(x, (int64_t[]){-1, JOT_END}); }

static jot_value sum_of(jot_value mask, jot_dtype d)
{
    return jot_sum_axes(jot_convert(mask, d), (const int[]){JOT_END});
}

// 0, 1, ... where the mask is set, in order, from what is counted along it.
static jot_value ranks_of(jot_value mask, jot_dtype d)
{
    return jot_sub(jot_cumsum_axes(jot_convert(mask, d), (const int[]){0, JOT_END}),
                   jot_from_int(1));
}

// The indices of a flat mask where it is set; `otherwise` behind them.
static jot_value indices_of(jot_value mask, int64_t size, jot_value otherwise)
{
    int64_t n = jot_value_dim(mask, 0);
    jot_dtype d = trace_index_dtype(n);
    jot_value to = jot_where(mask, ranks_of(mask, d), jot_from_int(size));
    jot_value rest = jot_full_dims(d, otherwise, (int64_t[]){size, JOT_END});
    if (n == 0 || size == 0)
        return rest;
    return jot_at_mode(JOT_SCATTER_SET, rest, to, jot_arange(d, n), 0, JOT_INDEX_DROP);
}

// Which of `size` elements are among the first `count`.
static jot_value is_filled(int64_t size, jot_value count)
{
    return jot_less(jot_arange(jot_value_dtype(count), size), count);
}

// The operands, n of them, and a size; false with an error.
static bool read(const char *name, int n, jot_value *v, int64_t size, jot_value *out_error)
{
    if (size < 0) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "the size is %lld", (long long)size);
        return false;
    }
    return trace_ready(name, n, v, out_error);
}

// The fill, one number that x can hold.
static bool is_fill(const char *name, jot_value fill, jot_dtype d, jot_value *out_error)
{
    if (trace_type(fill).rank == 0)
        return trace_fits(name, fill, d, out_error);
    *out_error = trace_fail(name, JOT_ERR_SHAPE, "the fill is %s: it takes one number",
                            trace_type_text(fill));
    return false;
}

static jot_value flat_mask(jot_value x) { return flat(jot_not_equal(x, jot_zeros_like(x))); }

// ---- What is not 0

static jot_value flatnonzero(const char *name, jot_value x, int64_t size, jot_value fill)
{
    jot_value v[] = {x, fill}, error;
    if (!read(name, 2, v, size, &error) || !is_fill(name, v[1], JOT_I64, &error))
        return error;
    return indices_of(flat_mask(v[0]), size, jot_convert(v[1], JOT_I64));
}

jot_value jot_flatnonzero(jot_value x, int64_t size, jot_value fill)
{
    TRACE_RETURN(flatnonzero("jot_flatnonzero", x, size, fill));
}

// The index along one axis of each index of nonzero elements.
static jot_value index_along(jot_value x, int axis, jot_value indices, jot_value filled,
                             jot_value fill)
{
    int64_t step = 1, n = jot_value_dim(x, axis);
    for (int i = axis + 1; i < jot_value_rank(x); i++)
        step *= jot_value_dim(x, i);
    jot_value along = indices;
    if (n && step)
        along = jot_rem(jot_floor_divide(indices, jot_from_int(step)), jot_from_int(n));
    return jot_where(filled, along, jot_convert(fill, jot_value_dtype(indices)));
}

// One vector for each axis of x in out, or an error.
static jot_value nonzero(const char *name, jot_value x, int64_t size, jot_value fill, int64_t n,
                         jot_value *out)
{
    jot_value v[] = {x, fill}, error;
    if (!read(name, 2, v, size, &error) || !is_fill(name, v[1], JOT_I64, &error))
        return error;
    int rank = trace_type(v[0]).rank;
    if (rank == 0 || (n >= 0 && n != rank))
        return trace_fail(name, JOT_ERR_SHAPE,
                          "%s: it takes an axis or more, and as many vectors",
                          trace_type_text(v[0]));
    jot_value mask = flat_mask(v[0]);
    jot_value indices = indices_of(mask, size, jot_from_int(0));
    jot_value filled = is_filled(size, sum_of(mask, jot_value_dtype(indices)));
    for (int i = 0; i < rank; i++)
        out[i] = index_along(v[0], i, indices, filled, v[1]);
    return out[0];
}

static jot_value argwhere(jot_value x, int64_t size, jot_value fill)
{
    jot_value out[IR_MAX_RANK], first = nonzero("jot_argwhere", x, size, fill, -1, out);
    return trace_is_error(first) ? first : jot_stack_list(1, (size_t)jot_value_rank(x), out);
}

jot_value jot_argwhere(jot_value x, int64_t size, jot_value fill)
{
    TRACE_RETURN(argwhere(x, size, fill));
}

static jot_value guarded_nonzero(jot_value x, int64_t size, jot_value fill, size_t n,
                                 jot_value *out)
{
    TRACE_RETURN(nonzero("jot_nonzero", x, size, fill, (int64_t)n, out));
}

void jot_nonzero_into(jot_value x, int64_t size, jot_value fill, size_t n, jot_value *out)
{
    if (trace_lacks("jot_nonzero", "out", n, out, n, out, NULL))
        return;
    jot_value first = guarded_nonzero(x, size, fill, n, out);
    for (size_t i = 0; i < n && jot_value_failed(first); i++)
        out[i] = first;
}

// The elements of a vector where the mask is set.
static jot_value select_some(jot_value x, jot_value mask, int64_t size, jot_value fill)
{
    jot_value rest = jot_full_dims(jot_value_dtype(x), fill, (int64_t[]){size, JOT_END});
    if (jot_value_dim(x, 0) == 0)
        return rest;
    jot_value indices = indices_of(mask, size, jot_from_int(0));
    jot_value filled = is_filled(size, sum_of(mask, jot_value_dtype(indices)));
    return jot_where(filled, jot_take_mode(x, indices, 0, JOT_INDEX_CLIP), rest);
}

static jot_value extract(jot_value condition, jot_value x, int64_t size, jot_value fill)
{
    const char *name = "jot_extract";
    jot_value v[] = {condition, x, fill}, error;
    if (!read(name, 3, v, size, &error) ||
        !is_fill(name, v[2], (jot_dtype)trace_type(v[1]).dtype, &error))
        return error;
    if (trace_type(v[0]).shape != trace_type(v[1]).shape)
        return trace_fail(name, JOT_ERR_SHAPE, "the condition %s has not the shape of %s",
                          trace_type_text(v[0]), trace_type_text(v[1]));
    return select_some(flat(v[1]), flat_mask(v[0]), size, v[2]);
}

jot_value jot_extract(jot_value condition, jot_value x, int64_t size, jot_value fill)
{
    TRACE_RETURN(extract(condition, x, size, fill));
}

// ---- Different elements

struct sorted {
    jot_value x, from;  // a vector in order, and where its elements were
    jot_value is_first; // of equal ones
};

static jot_value is_new(jot_value x)
{
    jot_value next = jot_slice_axis(x, 0, 1, JOT_END, 1);
    jot_value before = jot_slice_axis(x, 0, 0, -1, 1);
    jot_value are_nan =
        jot_logical_and(jot_not_equal(next, next), jot_not_equal(before, before));
    return jot_logical_and(jot_not_equal(next, before), jot_logical_not(are_nan));
}

static struct sorted sort_flat(jot_value x)
{
    x = flat(x);
    jot_value v[] = {x, jot_arange(trace_index_dtype(jot_value_size(x)), jot_value_size(x)), x};
    int last = 0;
    if (dtype_is_complex(jot_value_dtype(x))) { // by keys that are one NaN, behind all numbers
        jot_value nan = jot_from_double((double)NAN);
        v[0] = jot_where(jot_is_nan(x), jot_complex(nan, nan), x);
        last = 2;
    }
    jot_sort_by_key_into(0, 1, last ? 3 : 2, v);
    jot_value parts[] = {jot_ones_dims(JOT_BOOL, (int64_t[]){1, JOT_END}), is_new(v[0])};
    return (struct sorted){v[last], v[1],
                           jot_value_size(x)
                               ? jot_concatenate_list(0, 2, parts)
                               : jot_zeros_dims(JOT_BOOL, (int64_t[]){0, JOT_END})};
}

static jot_value unique(jot_value x, int64_t size, jot_value fill, jot_value *out_index,
                        jot_value *out_inverse, jot_value *out_counts)
{
    const char *name = "jot_unique";
    jot_value v[] = {x, fill}, error;
    if (!read(name, 2, v, size, &error) ||
        !is_fill(name, v[1], (jot_dtype)trace_type(v[0]).dtype, &error))
        return error;
    struct sorted s = sort_flat(v[0]);
    jot_value group = ranks_of(s.is_first, jot_value_dtype(s.from));
    jot_value none = jot_zeros_like(s.from);
    jot_value least = jot_value_size(s.x) ? jot_reshape_dims(jot_slice_axis(s.from, 0, 0, 1, 1),
                                                             (int64_t[]){JOT_END})
                                          : jot_from_int(0);
    *out_index = select_some(s.from, s.is_first, size, least);
    *out_inverse =
        jot_reshape_dims(jot_value_size(s.x) ? jot_at_mode(JOT_SCATTER_SET, none, s.from, group,
                                                           0, JOT_INDEX_PROMISE)
                                             : none,
                         (int64_t[]){-1, JOT_END});
    *out_counts = jot_bincount(group, size);
    return select_some(s.x, s.is_first, size, v[1]);
}

static jot_value guarded_unique(jot_value x, int64_t size, jot_value fill, jot_value *out_index,
                                jot_value *out_inverse, jot_value *out_counts)
{
    TRACE_RETURN(unique(x, size, fill, out_index, out_inverse, out_counts));
}

jot_value jot_unique_all(jot_value x, int64_t size, jot_value fill, jot_value *out_index,
                         jot_value *out_inverse, jot_value *out_counts)
{
    jot_value made[3], *const out[] = {out_index, out_inverse, out_counts};
    jot_value values = guarded_unique(x, size, fill, &made[0], &made[1], &made[2]);
    for (int i = 0; i < 3; i++)
        if (out[i])
            *out[i] = jot_value_failed(values) ? values : made[i];
    return values;
}

jot_value jot_unique(jot_value x, int64_t size, jot_value fill)
{
    return jot_unique_all(x, size, fill, NULL, NULL, NULL);
}

// ---- Sets

static jot_value isin(jot_value x, jot_value set)
{
    const char *name = "jot_isin";
    jot_value v[] = {x, set}, error;
    struct trace_promoted p;
    if (!trace_ready(name, 2, v, &error) || !trace_promote(name, "any", 2, v, &p, &error))
        return error;
    for (int i = 0; i < 2; i++)
        v[i] = trace_result(name, trace_operand(v[i], p.dtype), false);
    if (jot_value_size(v[1]) == 0)
        return jot_convert(jot_zeros_like(v[0]), JOT_BOOL);
    jot_value sorted = jot_sort_axis(flat(jot_stop_gradient(v[1])), 0);
    jot_value index = jot_searchsorted(sorted, v[0], JOT_SIDE_LEFT);
    return jot_equal(jot_take_mode(sorted, index, 0, JOT_INDEX_CLIP), v[0]);
}

jot_value jot_isin(jot_value x, jot_value set) { TRACE_RETURN(isin(x, set)); }

enum membership { IN_EITHER, IN_BOTH, IN_FIRST_ONLY, IN_ONE };

// The second NaN of the two sets together, where each has one.
static jot_value is_second_nan(struct sorted s, const jot_value *sets)
{
    if (jot_value_size(s.x) == 0)
        return s.is_first;
    jot_value is_nan = jot_is_nan(s.x);
    jot_value none = jot_zeros_dims(JOT_BOOL, (int64_t[]){1, JOT_END});
    jot_value before = jot_slice_axis(jot_logical_and(s.is_first, is_nan), 0, 0, -1, 1);
    jot_value is_second = jot_concatenate_list(0, 2, (jot_value[]){none, before});
    jot_value in_both = jot_logical_and(jot_any_axes(jot_is_nan(sets[0]), NULL),
                                        jot_any_axes(jot_is_nan(sets[1]), NULL));
    return jot_logical_and(is_second, in_both);
}

static jot_value set_op(const char *name, enum membership m, jot_value x, jot_value y,
                        int64_t size, jot_value fill)
{
    jot_value v[] = {x, y, fill}, error;
    struct trace_promoted p;
    if (!read(name, 3, v, size, &error) || !trace_promote(name, "any", 2, v, &p, &error) ||
        !is_fill(name, v[2], p.dtype, &error))
        return error;
    for (int i = 0; i < 2; i++)
        v[i] = flat(trace_result(name, trace_operand(v[i], p.dtype), false));
    struct sorted s = sort_flat(m == IN_FIRST_ONLY ? v[0] : jot_concatenate_list(0, 2, v));
    jot_value in_y = isin(s.x, v[1]), chosen = s.is_first;
    if (m == IN_BOTH)
        chosen = jot_logical_and(chosen, jot_logical_and(isin(s.x, v[0]), in_y));
    else if (m == IN_FIRST_ONLY)
        chosen = jot_logical_and(chosen, jot_logical_not(in_y));
    else if (m == IN_ONE)
        chosen = jot_logical_or(
            jot_logical_and(chosen, jot_logical_not(jot_logical_and(isin(s.x, v[0]), in_y))),
            is_second_nan(s, v));
    return select_some(s.x, chosen, size, v[2]);
}

jot_value jot_union1d(jot_value x, jot_value y, int64_t size, jot_value fill)
{
    TRACE_RETURN(set_op("jot_union1d", IN_EITHER, x, y, size, fill));
}

jot_value jot_intersect1d(jot_value x, jot_value y, int64_t size, jot_value fill)
{
    TRACE_RETURN(set_op("jot_intersect1d", IN_BOTH, x, y, size, fill));
}

jot_value jot_setdiff1d(jot_value x, jot_value y, int64_t size, jot_value fill)
{
    TRACE_RETURN(set_op("jot_setdiff1d", IN_FIRST_ONLY, x, y, size, fill));
}

jot_value jot_setxor1d(jot_value x, jot_value y, int64_t size, jot_value fill)
{
    TRACE_RETURN(set_op("jot_setxor1d", IN_ONE, x, y, size, fill));
}
