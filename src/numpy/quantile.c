// SPDX-License-Identifier: Apache-2.0
// Quantiles: elements of sorted rows, and what lies between two of them.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/ordering.h"

#include <math.h>

static bool read_rows(const char *name, jot_value x, const int *axes, struct trace_rows *r,
                      jot_value *out_error)
{
    jot_dtype d = (jot_dtype)trace_type(x).dtype;
    if (!trace_read_rows(name, x, dtype_compute(dtype_to_inexact(d)), axes, r, out_error))
        return false;
    if (r->n == 0)
        *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s: no elements to choose from",
                                trace_type_text(x));
    else if (dtype_is_complex(d))
        *out_error = trace_fail(name, JOT_ERR_DTYPE, "%s: is not defined for complex numbers",
                                trace_type_text(x));
    else
        return true;
    return false;
}

// Whether q, a number or a vector, is one of [0, most] as far as it is known.
static bool is_fraction(const char *name, jot_value q, int most, jot_value *out_error)
{
    const struct trace_number *n = trace_number_of(q);
    double x = !n ? 0 : n->kind == 'f' ? n->f : n->kind == 'u' ? (double)n->u : (double)n->i;
    if (trace_type(q).rank > 1)
        *out_error = trace_fail(name, JOT_ERR_SHAPE, "q is %s: it takes a number or a vector",
                                trace_type_text(q));
    else if (dtype_is_complex((jot_dtype)trace_type(q).dtype))
        *out_error = trace_fail(name, JOT_ERR_DTYPE, "q is %s: it takes real numbers",
                                trace_type_text(q));
    else if (!(x >= 0 && x <= most))
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "q is %g: it takes 0 to %d", x, most);
    else
        return true;
    return false;
}

static jot_value between(jot_value low, jot_value high, jot_value weight,
                         enum jot_quantile_method method)
{
    jot_value one = jot_from_int(1), half = jot_from_double(0.5);
    switch (method) {
    case JOT_QUANTILE_LOWER:
        return low;
    case JOT_QUANTILE_HIGHER:
        return high;
    case JOT_QUANTILE_NEAREST:
        return jot_where(jot_less_equal(weight, half), low, high);
    case JOT_QUANTILE_MIDPOINT:
        return jot_mul(jot_add(low, high), half);
    default: // an infinity beside which there is nothing stays one
        return jot_where(jot_equal(weight, jot_from_int(0)), low,
                         jot_add(jot_mul(low, jot_sub(one, weight)), jot_mul(high, weight)));
    }
}

// The elements of sorted rows at the positions, floats, along the last axis.
static jot_value at_positions(jot_value sorted, jot_value positions, jot_value last)
{
    jot_value inside = jot_maximum(jot_minimum(positions, last), jot_from_int(0));
    jot_dtype d = trace_index_dtype(jot_value_dim(sorted, -1));
    return jot_take_along_axis_mode(sorted, jot_convert(inside, d), -1, JOT_INDEX_CLIP);
}

// Quantiles q, [1, ..., 1, m], of rows [..., n]: [..., m].
static jot_value quantiles_of_rows(jot_value rows, jot_value q, enum jot_quantile_method method,
                                   bool skip)
{
    jot_dtype d = jot_value_dtype(rows);
    const int last_axis[] = {-1, JOT_KEEPDIMS, JOT_END};
    jot_value sorted = jot_sort_axis(rows, -1), nan = jot_from_double((double)NAN);
    jot_value count = jot_from_int(jot_value_dim(rows, -1));
    if (skip)
        count = jot_convert(jot_sum_axes(jot_logical_not(jot_is_nan(rows)), last_axis), d);
    jot_value last = jot_sub(jot_convert(count, d), jot_from_int(1)),
              position = jot_mul(q, last);
    jot_value low = jot_floor(position), high = jot_ceil(position),
              weight = jot_sub(position, low);
    jot_value y = between(at_positions(sorted, low, last), at_positions(sorted, high, last),
                          weight, method);
    // Where a row has NaN, or skips all, the result is none of its elements.
    jot_value none = skip ? jot_less(last, jot_from_int(0))
                          : jot_is_nan(jot_slice_axis(sorted, -1, -1, JOT_END, 1));
    y = jot_where(none, nan, y);
    jot_value is_outside = jot_logical_not(jot_logical_and(
        jot_greater_equal(q, jot_from_int(0)), jot_less_equal(q, jot_from_int(1))));
    return jot_where(is_outside, nan, y);
}

// Unlike JAX with one NaN more: q outside of [0, 1] that is not known while tracing.
static jot_value quantile(const char *name, jot_value x, jot_value q,
                          enum jot_quantile_method method, const int *axes, int most, bool skip)
{
    jot_value v[] = {x, q}, error;
    struct trace_rows r;
    if ((unsigned)method > JOT_QUANTILE_MIDPOINT)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "the method is %d, which is none of JOT_QUANTILE_LINEAR, _LOWER, "
                          "_HIGHER, _NEAREST, _MIDPOINT",
                          (int)method);
    if (!trace_ready(name, 2, v, &error) || !is_fraction(name, v[1], most, &error) ||
        !read_rows(name, v[0], axes, &r, &error))
        return error;
    jot_dtype result = dtype_to_inexact((jot_dtype)trace_type(v[0]).dtype);
    int rank = jot_value_rank(r.x), q_rank = trace_type(v[1]).rank;
    int64_t dims[IR_MAX_RANK + 2], m = q_rank ? jot_value_dim(v[1], 0) : 1;
    for (int i = 0; i < rank - 1; i++)
        dims[i] = 1;
    dims[rank - 1] = m;
    dims[rank] = JOT_END;
    jot_value at = jot_convert(jot_reshape_dims(v[1], dims), jot_value_dtype(r.x));
    if (most != 1)
        at = jot_div(at, jot_from_int(most));
    jot_value y = jot_convert(quantiles_of_rows(r.x, at, method, skip), result);
    if (q_rank)
        y = jot_move_axis(y, -1, 0);
    dims[0] = m;
    memcpy(dims + q_rank, r.dims, (size_t)r.rank * sizeof *dims);
    dims[q_rank + r.rank] = JOT_END;
    return jot_reshape_dims(y, dims);
}

jot_value jot_quantile_axes(jot_value x, jot_value q, enum jot_quantile_method method,
                            const int *axes)
{
    TRACE_RETURN(quantile("jot_quantile", x, q, method, axes, 1, false));
}

jot_value jot_percentile_axes(jot_value x, jot_value q, enum jot_quantile_method method,
                              const int *axes)
{
    TRACE_RETURN(quantile("jot_percentile", x, q, method, axes, 100, false));
}

jot_value jot_nanquantile_axes(jot_value x, jot_value q, enum jot_quantile_method method,
                               const int *axes)
{
    TRACE_RETURN(quantile("jot_nanquantile", x, q, method, axes, 1, true));
}

jot_value jot_nanpercentile_axes(jot_value x, jot_value q, enum jot_quantile_method method,
                                 const int *axes)
{
    TRACE_RETURN(quantile("jot_nanpercentile", x, q, method, axes, 100, true));
}

static jot_value median(const char *name, jot_value x, const int *axes, bool skip)
{
    return quantile(name, x, jot_from_double(0.5), JOT_QUANTILE_MIDPOINT, axes, 1, skip);
}

jot_value jot_median_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(median("jot_median", x, axes, false));
}

jot_value jot_nanmedian_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(median("jot_nanmedian", x, axes, true));
}
