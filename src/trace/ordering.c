// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis.  The ops of the graph sort rows; another axis is made the last one.
#include "trace/emit.h"

#include "jot/ordering.h"

static ir_id swap_with_last(ir_id x, int64_t axis)
{
    struct ir_builder *b = trace_builder();
    int64_t order[IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    int last = ir_type_in(b, x).rank - 1;
    for (int i = 0; i <= last; i++)
        order[i] = i;
    order[axis] = last;
    order[last] = axis;
    return axis == last ? x : ir_transpose(b, x, order);
}

// Numbers of the elements along the last axis, in the shape of x.
static ir_id numbers_like(ir_id x)
{
    struct ir_builder *b = trace_builder();
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    int64_t n = ir_dims(b->module, t)[t.rank - 1];
    return ir_iota(b, ir_type_with(t, trace_index_dtype(n)), t.rank - 1);
}

static ir_id reversed_if(ir_id x, bool reverse, int64_t axis)
{
    return reverse ? ir_rev(trace_builder(), x, 1, &axis) : x;
}

static jot_value sort(const char *name, jot_value x, int axis, bool descending)
{
    jot_value error;
    int64_t at;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error))
        return error;
    ir_id in = swap_with_last(trace_kept(x), at);
    ir_id y = swap_with_last(ir_sort(trace_builder(), 1, &in, 1), at);
    return trace_like(name, x, reversed_if(y, descending, at));
}

jot_value jot_sort_axis(jot_value x, int axis)
{
    TRACE_RETURN(sort("jot_sort", x, axis, false));
}

jot_value jot_sort_descending_axis(jot_value x, int axis)
{
    TRACE_RETURN(sort("jot_sort_descending", x, axis, true));
}

// Descending, all is reversed twice, so that equal elements stay in their order.
static jot_value argsort(const char *name, jot_value x, int axis, bool descending)
{
    jot_value error;
    int64_t at;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, axis, &at, &error))
        return error;
    ir_id key = swap_with_last(trace_kept(x), at);
    int64_t last = trace_type(x).rank - 1;
    ir_id in[] = {reversed_if(key, descending, last),
                  reversed_if(numbers_like(key), descending, last)};
    ir_id y = ir_sort(trace_builder(), 2, in, 1);
    y = y == IR_NONE ? y : reversed_if(y + 1, descending, last);
    return trace_result(name, swap_with_last(y, at), false);
}

jot_value jot_argsort_axis(jot_value x, int axis)
{
    TRACE_RETURN(argsort("jot_argsort", x, axis, false));
}

jot_value jot_argsort_descending_axis(jot_value x, int axis)
{
    TRACE_RETURN(argsort("jot_argsort_descending", x, axis, true));
}

// n values of one shape, at most `most`; with the axis.
static bool read_operands(const char *name, int axis, size_t n, size_t most, jot_value *v,
                          int64_t *out_axis, jot_value *out_error)
{
    if (n < 1 || n > most) {
        *out_error =
            trace_fail(name, JOT_ERR_ARGUMENT, "%zu values: it takes 1 to %zu", n, most);
        return false;
    }
    if (!trace_ready(name, (int)n, v, out_error) ||
        !trace_axis(name, v[0], axis, out_axis, out_error))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (trace_type(v[i]).shape != trace_type(v[0]).shape) {
            *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s and %s have not the same shape",
                                    trace_type_text(v[0]), trace_type_text(v[i]));
            return false;
        }
    }
    return true;
}

static jot_value lexsort(int axis, size_t n, const jot_value *keys)
{
    const char *name = "jot_lexsort";
    jot_value v[IR_SORT_MOST], error;
    ir_id in[IR_SORT_MOST];
    int64_t at;
    memcpy(v, keys, (n < IR_SORT_MOST ? n : IR_SORT_MOST) * sizeof *v);
    if (!read_operands(name, axis, n, IR_SORT_MOST - 1, v, &at, &error))
        return error;
    for (size_t i = 0; i < n; i++)
        in[n - 1 - i] = swap_with_last(trace_kept(v[i]), at);
    in[n] = numbers_like(in[0]);
    ir_id y = ir_sort(trace_builder(), (int)n + 1, in, (int)n);
    return trace_result(name, swap_with_last(y == IR_NONE ? y : y + (ir_id)n, at), false);
}

jot_value jot_lexsort_list(int axis, size_t n, const jot_value *keys)
{
    TRACE_NEEDS("jot_lexsort", "keys", n, keys);
    TRACE_RETURN(lexsort(axis, n, keys));
}

// The first of the sorted values, which are all in x; an error is all of them.
static jot_value sort_by_key(int axis, int num_keys, size_t n, jot_value *x)
{
    const char *name = "jot_sort_by_key";
    jot_value v[IR_SORT_MOST], error;
    ir_id in[IR_SORT_MOST];
    int64_t at;
    memcpy(v, x, (n < IR_SORT_MOST ? n : IR_SORT_MOST) * sizeof *v);
    if (!read_operands(name, axis, n, IR_SORT_MOST, v, &at, &error))
        return error;
    if (num_keys < 1 || (size_t)num_keys > n)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d keys of %zu values: 1 to %zu", num_keys,
                          n, n);
    for (size_t i = 0; i < n; i++)
        in[i] = swap_with_last(trace_kept(v[i]), at);
    ir_id y = ir_sort(trace_builder(), (int)n, in, num_keys);
    for (size_t i = 0; i < n; i++)
        x[i] = trace_like(name, v[i], swap_with_last(y == IR_NONE ? y : y + (ir_id)i, at));
    return x[0];
}

static jot_value guarded_sort_by_key(int axis, int num_keys, size_t n, jot_value *x)
{
    TRACE_RETURN(sort_by_key(axis, num_keys, n, x));
}

void jot_sort_by_key_into(int axis, int num_keys, size_t n, jot_value *x)
{
    if (trace_lacks("jot_sort_by_key", "x", n, x, n, x, NULL))
        return;
    jot_value first = guarded_sort_by_key(axis, num_keys, n, x);
    for (size_t i = 0; i < n && jot_value_failed(first); i++)
        x[i] = first;
}

static jot_value top_k(jot_value x, int64_t k, jot_value *out_indices)
{
    const char *name = "jot_top_k";
    jot_value error;
    int64_t at;
    if (!trace_ready(name, 1, &x, &error) || !trace_axis(name, x, -1, &at, &error))
        return error;
    struct ir_builder *b = trace_builder();
    int64_t n = ir_dims(b->module, trace_type(x))[at];
    if (dtype_is_complex((jot_dtype)trace_type(x).dtype))
        return trace_fail(name, JOT_ERR_DTYPE, "%s: is not defined for complex numbers",
                          trace_type_text(x));
    if (k < 0 || k > n)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "k is %lld: the last axis of %s has %lld elements", (long long)k,
                          trace_type_text(x), (long long)n);
    ir_id y = ir_top_k(b, trace_kept(x), k, trace_index_dtype(n));
    *out_indices = trace_result(name, y == IR_NONE ? y : y + 1, false);
    return trace_like(name, x, y);
}

static jot_value guarded_top_k(jot_value x, int64_t k, jot_value *out_indices)
{
    TRACE_RETURN(top_k(x, k, out_indices));
}

jot_value jot_top_k(jot_value x, int64_t k, jot_value *out_indices)
{
    jot_value indices, values = guarded_top_k(x, k, &indices);
    if (out_indices)
        *out_indices = jot_value_failed(values) ? values : indices;
    return values;
}

static bool is_kth(const char *name, jot_value x, int64_t kth, int axis, jot_value *out_error)
{
    int64_t at, i;
    return trace_ready(name, 1, &x, out_error) && trace_axis(name, x, axis, &at, out_error) &&
           trace_index(name, x, at, kth, &i, out_error);
}

static jot_value partition(const char *name, jot_value x, int64_t kth, int axis, bool indices)
{
    jot_value error;
    if (!is_kth(name, x, kth, axis, &error))
        return error;
    return indices ? argsort(name, x, axis, false) : sort(name, x, axis, false);
}

jot_value jot_partition_axis(jot_value x, int64_t kth, int axis)
{
    TRACE_RETURN(partition("jot_partition", x, kth, axis, false));
}

jot_value jot_argpartition_axis(jot_value x, int64_t kth, int axis)
{
    TRACE_RETURN(partition("jot_argpartition", x, kth, axis, true));
}
