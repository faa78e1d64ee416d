// SPDX-License-Identifier: Apache-2.0
// Reductions over the elements that are not NaN, and statistics.
#include "trace/emit.h"

#include "jot/einsum.h"
#include "jot/numeric.h"
#include "jot/shapes.h"

#include <math.h>

static bool has_nan(jot_value x) { return dtype_is_inexact(jot_value_dtype(x)); }

// x with the number in place of NaN.
static jot_value without_nan(jot_value x, double number)
{
    return has_nan(x) ? jot_where(jot_is_nan(x), jot_from_double(number), x) : x;
}

jot_value jot_nansum_axes(jot_value x, const int *axes)
{
    return jot_sum_axes(without_nan(x, 0), axes);
}

jot_value jot_nanprod_axes(jot_value x, const int *axes)
{
    return jot_prod_axes(without_nan(x, 1), axes);
}

jot_value jot_nancumsum_axes(jot_value x, const int *axes)
{
    return jot_cumsum_axes(without_nan(x, 0), axes);
}

jot_value jot_nancumprod_axes(jot_value x, const int *axes)
{
    return jot_cumprod_axes(without_nan(x, 1), axes);
}

static jot_value count_axes(jot_value x, const int *axes)
{
    return jot_sum_axes(jot_logical_not(jot_is_nan(x)), axes);
}

jot_value jot_nanmean_axes(jot_value x, const int *axes)
{
    return has_nan(x) ? jot_div(jot_nansum_axes(x, axes), count_axes(x, axes))
                      : jot_mean_axes(x, axes);
}

jot_value jot_nanvar_axes(jot_value x, const int *axes)
{
    int keep[IR_MAX_RANK + 2];
    if (!has_nan(x))
        return jot_var_axes(x, axes);
    trace_with_keepdims(axes, keep);
    jot_value d = jot_sub(x, jot_nanmean_axes(x, keep));
    jot_value squares = jot_real(jot_mul(d, jot_conj(d)));
    // An infinity is NaN from its mean, and stays.
    squares = jot_where(jot_is_nan(x), jot_from_double(0), squares);
    return jot_div(jot_sum_axes(squares, axes), count_axes(x, axes));
}

jot_value jot_nanstd_axes(jot_value x, const int *axes)
{
    return jot_sqrt(jot_nanvar_axes(x, axes));
}

typedef jot_value reduction(jot_value x, const int *axes);

// The extremum of what is left, or `nothing` where nothing is.
static jot_value extremum(reduction *f, jot_value x, double instead, jot_value nothing,
                          const int *axes)
{
    if (!has_nan(x))
        return f(x, axes);
    return jot_where(jot_all_axes(jot_is_nan(x), axes), nothing,
                     f(without_nan(x, instead), axes));
}

jot_value jot_nanmax_axes(jot_value x, const int *axes)
{
    return extremum(jot_max_axes, x, -INFINITY, jot_from_double(NAN), axes);
}

jot_value jot_nanmin_axes(jot_value x, const int *axes)
{
    return extremum(jot_min_axes, x, INFINITY, jot_from_double(NAN), axes);
}

jot_value jot_nanargmax_axes(jot_value x, const int *axes)
{
    return extremum(jot_argmax_axes, x, -INFINITY, jot_from_int(-1), axes);
}

jot_value jot_nanargmin_axes(jot_value x, const int *axes)
{
    return extremum(jot_argmin_axes, x, INFINITY, jot_from_int(-1), axes);
}

// ---------------------------------------------------------------------------------------
// Statistics

jot_value jot_ptp_axes(jot_value x, const int *axes)
{
    return jot_sub(jot_max_axes(x, axes), jot_min_axes(x, axes));
}

// w as it stands beside x: a vector along the axis.
static jot_value weights_of(jot_value x, jot_value w, int axis)
{
    if (jot_value_rank(w) != 1 || jot_value_rank(x) <= 1)
        return w;
    int64_t dims[IR_MAX_RANK + 1];
    int rank = jot_value_rank(x), at = axis < 0 ? axis + rank : axis;
    for (int i = 0; i < rank; i++)
        dims[i] = i == at ? -1 : 1;
    dims[rank] = JOT_END;
    return jot_reshape_dims(w, dims);
}

static jot_value average(jot_value x, jot_value w, int axis)
{
    jot_value v[] = {x, w}, error;
    int64_t at;
    if (!trace_ready("jot_average", 2, v, &error) ||
        !trace_axis("jot_average", v[0], axis, &at, &error))
        return error;
    w = weights_of(v[0], v[1], (int)at);
    const int axes[] = {(int)at, JOT_END};
    bool fits = jot_value_rank(w) == jot_value_rank(v[0]) &&
                jot_value_dim(w, (int)at) == jot_value_dim(v[0], (int)at);
    for (int i = 0; fits && trace_type(v[1]).rank > 1 && i < jot_value_rank(w); i++)
        fits = jot_value_dim(w, i) == jot_value_dim(v[0], i);
    if (!fits)
        return trace_fail(
            "jot_average", JOT_ERR_SHAPE,
            "weights %s of %s: they have its shape, or are a vector along axis %lld",
            trace_type_text(v[1]), trace_type_text(v[0]), (long long)at);
    return jot_div(jot_sum_axes(jot_mul(v[0], w), axes), jot_sum_axes(w, axes));
}

jot_value jot_average(jot_value x, jot_value w, int axis) { TRACE_RETURN(average(x, w, axis)); }

static jot_value cov(const char *name, jot_value x)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    int rank = trace_type(x).rank;
    if (rank < 1 || rank > 2)
        return trace_fail(name, JOT_ERR_SHAPE, "%s is neither a matrix nor a vector",
                          trace_type_text(x));
    const int rows[] = {-1, JOT_KEEPDIMS, JOT_END}, last[] = {-1, JOT_END};
    int64_t count = jot_value_dim(x, -1);
    jot_value d = jot_sub(x, jot_mean_axes(x, rows));
    jot_value freedom = jot_from_int(count > 1 ? count - 1 : 0); // of none or one it is 0 / 0
    return jot_div(jot_tensordot_axes(d, jot_conj(d), last, last), freedom);
}

jot_value jot_cov(jot_value x) { TRACE_RETURN(cov("jot_cov", x)); }

// NaN with a slope that is NaN, which a clip has not.
static jot_value within_one(jot_value c)
{
    return jot_where(jot_is_nan(c), c, jot_clip(c, jot_from_int(-1), jot_from_int(1)));
}

static jot_value corrcoef(jot_value x)
{
    jot_value c = cov("jot_corrcoef", x);
    if (jot_value_failed(c))
        return c;
    if (jot_value_rank(c) == 0)
        return jot_div(c, c);
    jot_value d = jot_sqrt(jot_real(jot_diagonal(c, 0, 0, 1)));
    const int column[] = {1, JOT_END};
    c = jot_div(jot_div(c, jot_expand_dims_axes(d, column)), d);
    if (!dtype_is_complex(jot_value_dtype(c)))
        return within_one(c);
    return jot_complex(within_one(jot_real(c)), within_one(jot_imag(c)));
}

jot_value jot_corrcoef(jot_value x) { TRACE_RETURN(corrcoef(x)); }
