// SPDX-License-Identifier: Apache-2.0
// Positions in sorted values, and how much falls between them.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/ordering.h"

static jot_value flat(jot_value x) { return jot_reshape_dims(x, (int64_t[]){-1, JOT_END}); }

static jot_value constant(jot_dtype d, int64_t n, int x)
{
    return jot_full_dims(d, jot_from_int(x), (int64_t[]){n, JOT_END});
}

// ---- Search

// Whether x, of the sorted values, stands before v: NaN are last.
static jot_value is_real_before(jot_value x, jot_value v, enum jot_side side)
{
    bool left = side == JOT_SIDE_LEFT;
    jot_value before = left ? jot_less(x, v) : jot_less_equal(x, v);
    if (!dtype_is_float(jot_value_dtype(x)))
        return before;
    jot_value nan = jot_is_nan(v);
    return jot_logical_or(before,
                          left ? jot_logical_and(nan, jot_logical_not(jot_is_nan(x))) : nan);
}

// Complex numbers go by their real parts, and where these are equal by the others.
static jot_value is_before(jot_value x, jot_value v, enum jot_side side)
{
    if (!dtype_is_complex(jot_value_dtype(x)))
        return is_real_before(x, v, side);
    jot_value re[] = {jot_real(x), jot_real(v)};
    jot_value later = is_real_before(jot_imag(x), jot_imag(v), side);
    return jot_logical_or(is_real_before(re[0], re[1], JOT_SIDE_LEFT),
                          jot_logical_and(is_real_before(re[0], re[1], JOT_SIDE_RIGHT), later));
}

// Steps of falling powers of two, each made where what is jumped over stands before v.
static jot_value search(jot_value x, jot_value v, enum jot_side side)
{
    int64_t n = jot_value_dim(x, 0), step = 1;
    jot_dtype d = trace_index_dtype(n);
    jot_value position = jot_zeros_like(jot_convert(jot_equal(v, v), d));
    while (step <= n / 2)
        step *= 2;
    for (; step > 0 && n > 0; step /= 2) {
        jot_value next = jot_add(position, jot_from_int(step));
        jot_value last = jot_take_mode(x, jot_sub(next, jot_from_int(1)), 0, JOT_INDEX_CLIP);
        jot_value jumps =
            jot_logical_and(jot_less_equal(next, jot_from_int(n)), is_before(last, v, side));
        position = jot_where(jumps, next, position);
    }
    return position;
}

// A vector, and values of one type with it.
static bool read_vector(const char *name, const char *what, const char *types, jot_value *x,
                        jot_value *v, jot_value *out_error)
{
    jot_value both[] = {*x, *v};
    struct trace_promoted p;
    if (!trace_ready(name, 2, both, out_error))
        return false;
    if (trace_type(both[0]).rank != 1) {
        *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s: %s are a vector",
                                trace_type_text(both[0]), what);
        return false;
    }
    if (!trace_promote(name, types, 2, both, &p, out_error))
        return false;
    *x = jot_stop_gradient(trace_result(name, trace_operand(both[0], p.dtype), false));
    *v = jot_stop_gradient(trace_result(name, trace_operand(both[1], p.dtype), false));
    return true;
}

static jot_value searchsorted(jot_value x, jot_value v, enum jot_side side)
{
    const char *name = "jot_searchsorted";
    jot_value error;
    if ((unsigned)side > JOT_SIDE_RIGHT)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "the side is %d, which is none of JOT_SIDE_LEFT, _RIGHT", (int)side);
    if (!read_vector(name, "the sorted values", "any", &x, &v, &error))
        return error;
    return search(x, v, side);
}

jot_value jot_searchsorted(jot_value x, jot_value v, enum jot_side side)
{
    TRACE_RETURN(searchsorted(x, v, side));
}

jot_value jot_searchsorted_sorter(jot_value x, jot_value v, enum jot_side side,
                                  jot_value sorter)
{
    TRACE_RETURN(searchsorted(jot_take_values(x, sorter, 0), v, side));
}

static jot_value digitize(jot_value x, jot_value bins, bool right)
{
    const char *name = "jot_digitize";
    jot_value error;
    if (!read_vector(name, "bins", "real", &bins, &x, &error))
        return error;
    int64_t n = jot_value_dim(bins, 0);
    enum jot_side side = right ? JOT_SIDE_LEFT : JOT_SIDE_RIGHT;
    if (n == 0)
        return search(bins, x, side);
    const int all[] = {JOT_END};
    jot_value rises = jot_greater_equal(jot_take_axis(bins, -1, 0), jot_take_axis(bins, 0, 0));
    jot_value falling = search(jot_flip_axes(bins, all), x, side);
    return jot_where(rises, search(bins, x, side), jot_sub(jot_from_int(n), falling));
}

jot_value jot_digitize(jot_value x, jot_value bins, bool right)
{
    TRACE_RETURN(digitize(x, bins, right));
}

// ---- Counts

static bool has_shape_of(const char *name, const char *what, jot_value y, jot_value x,
                         jot_value *out_error)
{
    if (trace_type(y).shape == trace_type(x).shape)
        return true;
    *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s are %s: not of the shape of %s", what,
                            trace_type_text(y), trace_type_text(x));
    return false;
}

static jot_value bincount(const char *name, jot_value x, const jot_value *weights,
                          int64_t length)
{
    jot_value v[] = {x, weights ? *weights : x}, error;
    if (!trace_ready(name, 2, v, &error) || !has_shape_of(name, "weights", v[1], v[0], &error))
        return error;
    if (!dtype_is_integer((jot_dtype)trace_type(v[0]).dtype))
        return trace_fail(name, JOT_ERR_DTYPE, "%s: it counts integers", trace_type_text(v[0]));
    if (length < 0)
        return trace_fail(name, JOT_ERR_ARGUMENT, "the length is %lld", (long long)length);
    jot_dtype d =
        weights ? (jot_dtype)trace_type(v[1]).dtype : trace_index_dtype(jot_value_size(v[0]));
    if (length == 0)
        return constant(d, 0, 0);
    jot_value position = jot_maximum(flat(v[0]), jot_from_int(0));
    return jot_at_mode(JOT_SCATTER_ADD, constant(d, length, 0), position,
                       weights ? flat(v[1]) : jot_from_int(1), 0, JOT_INDEX_DROP);
}

jot_value jot_bincount(jot_value x, int64_t length)
{
    TRACE_RETURN(bincount("jot_bincount", x, NULL, length));
}

jot_value jot_bincount_weights(jot_value x, jot_value weights, int64_t length)
{
    TRACE_RETURN(bincount("jot_bincount_weights", x, &weights, length));
}

// ---- Histograms

static jot_value bin_edges(const char *name, int64_t bins, jot_value low, jot_value high)
{
    jot_value v[] = {low, high}, error;
    struct trace_promoted p;
    if (bins < 1)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%lld bins: at least 1", (long long)bins);
    if (!trace_ready(name, 2, v, &error) || !trace_promote(name, "real", 2, v, &p, &error))
        return error;
    if (trace_type(v[0]).rank || trace_type(v[1]).rank)
        return trace_fail(name, JOT_ERR_SHAPE, "from %s to %s: it takes numbers",
                          trace_type_text(v[0]), trace_type_text(v[1]));
    jot_dtype d = dtype_to_inexact(p.seen);
    jot_value half = jot_from_double(0.5);
    low = jot_convert(v[0], d);
    high = jot_convert(v[1], d);
    jot_value is_point = jot_equal(low, high);
    jot_value from = jot_where(is_point, jot_sub(low, half), low);
    jot_value to = jot_where(is_point, jot_add(high, half), high);
    // numpy.linspace, whose last number is exact
    jot_value part = jot_div(jot_arange(d, bins), jot_from_int(bins));
    jot_value most = jot_add(jot_mul(from, jot_sub(jot_from_int(1), part)), jot_mul(to, part));
    jot_value parts[] = {most, jot_reshape_dims(to, (int64_t[]){1, JOT_END})};
    return jot_concatenate_list(0, 2, parts);
}

jot_value jot_histogram_bin_edges_between(jot_value x, int64_t bins, jot_value low,
                                          jot_value high)
{
    (void)x;
    TRACE_RETURN(bin_edges("jot_histogram_bin_edges_between", bins, low, high));
}

static jot_value bin_edges_of(const char *name, jot_value x, int64_t bins)
{
    const int all[] = {JOT_END};
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    if (jot_value_size(x) == 0)
        return bin_edges(name, bins, jot_from_double(0), jot_from_double(1));
    return bin_edges(name, bins, jot_min_axes(x, all), jot_max_axes(x, all));
}

jot_value jot_histogram_bin_edges(jot_value x, int64_t bins)
{
    TRACE_RETURN(bin_edges_of("jot_histogram_bin_edges", x, bins));
}

// The bin of each x, of n; n where it is in none.
static bool find_bins(const char *name, jot_value x, jot_value edges, jot_value *out_bins,
                      int64_t *out_n, jot_value *out_error)
{
    if (!read_vector(name, "edges", "real", &edges, &x, out_error))
        return false;
    int64_t n = jot_value_dim(edges, 0) - 1;
    if (n < 1) {
        *out_error = trace_fail(name, JOT_ERR_SHAPE, "the edges are %s: at least 2",
                                trace_type_text(edges));
        return false;
    }
    jot_value bin = jot_sub(search(edges, x, JOT_SIDE_RIGHT), jot_from_int(1));
    jot_value is_last = jot_equal(x, jot_take_axis(edges, -1, 0));
    bin = jot_where(is_last, jot_from_int(n - 1), bin);
    jot_value is_outside = jot_logical_or(jot_less(bin, jot_from_int(0)), jot_not_equal(x, x));
    *out_bins = jot_where(is_outside, jot_from_int(n), bin);
    *out_n = n;
    return true;
}

static jot_value histogram(const char *name, jot_value x, jot_value edges,
                           const jot_value *weights)
{
    jot_value v[] = {x, edges, weights ? *weights : x}, bin, error;
    int64_t n;
    if (!trace_ready(name, 3, v, &error) ||
        !has_shape_of(name, "weights", v[2], v[0], &error) ||
        !find_bins(name, v[0], v[1], &bin, &n, &error))
        return error;
    jot_value mass = weights ? v[2]
                             : jot_convert(jot_ones_like(v[0]),
                                           dtype_to_inexact((jot_dtype)trace_type(v[0]).dtype));
    return bincount(name, bin, &mass, n);
}

jot_value jot_histogram(jot_value x, jot_value edges)
{
    TRACE_RETURN(histogram("jot_histogram", x, edges, NULL));
}

jot_value jot_histogram_weights(jot_value x, jot_value edges, jot_value weights)
{
    TRACE_RETURN(histogram("jot_histogram_weights", x, edges, &weights));
}

static jot_value density(jot_value x, jot_value edges)
{
    const int all[] = {JOT_END};
    jot_value counts = histogram("jot_histogram_density", x, edges, NULL);
    jot_value width =
        jot_sub(jot_slice_axis(edges, 0, 1, JOT_END, 1), jot_slice_axis(edges, 0, 0, -1, 1));
    return jot_div(jot_div(counts, width), jot_sum_axes(counts, all));
}

jot_value jot_histogram_density(jot_value x, jot_value edges)
{
    TRACE_RETURN(density(x, edges));
}

static jot_value histogram_bins(jot_value x, int64_t bins)
{
    return histogram("jot_histogram_bins", x, bin_edges_of("jot_histogram_bins", x, bins),
                     NULL);
}

jot_value jot_histogram_bins(jot_value x, int64_t bins)
{
    TRACE_RETURN(histogram_bins(x, bins));
}

// How many points, or how much of their weight, is in each bin of n coordinates.
static jot_value joint(const char *name, int n, const jot_value *x, const jot_value *edges,
                       const jot_value *weights)
{
    int64_t dims[IR_MAX_RANK + 1], count = 1;
    jot_value position = jot_from_int(0), is_inside = jot_from_bool(true), bin, error;
    if (n < 1 || n > IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d coordinates: from 1 to %d", n,
                          IR_MAX_RANK);
    for (int i = 0; i < n; i++) {
        if (!find_bins(name, x[i], edges[i], &bin, &dims[i], &error))
            return error;
        is_inside = jot_logical_and(is_inside, jot_less(bin, jot_from_int(dims[i])));
        position = jot_add(jot_mul(position, jot_from_int(dims[i])), bin);
        count *= dims[i];
    }
    dims[n] = JOT_END;
    position = jot_where(is_inside, position, jot_from_int(count));
    return jot_reshape_dims(bincount(name, position, weights, count), dims);
}

static jot_value histogram2d(jot_value x, jot_value y, jot_value x_edges, jot_value y_edges)
{
    const char *name = "jot_histogram2d";
    jot_value v[] = {x, y}, edges[] = {x_edges, y_edges}, error;
    if (!trace_ready(name, 2, v, &error) || !has_shape_of(name, "y", v[1], v[0], &error))
        return error;
    return joint(name, 2, v, edges, NULL);
}

jot_value jot_histogram2d(jot_value x, jot_value y, jot_value x_edges, jot_value y_edges)
{
    TRACE_RETURN(histogram2d(x, y, x_edges, y_edges));
}

static jot_value histogramdd(const char *name, jot_value points, const jot_value *weights,
                             size_t n, const jot_value *edges)
{
    jot_value x[IR_MAX_RANK], error;
    if (!trace_ready(name, 1, &points, &error))
        return error;
    if (trace_type(points).rank != 2 || (size_t)jot_value_dim(points, 1) != n)
        return trace_fail(
            name, JOT_ERR_SHAPE,
            "%s: it takes points as rows, with edges for each column, not for %zu",
            trace_type_text(points), n);
    for (size_t i = 0; i < n && i < IR_MAX_RANK; i++)
        x[i] = jot_take_axis(points, (int64_t)i, 1);
    return joint(name, (int)n, x, edges, weights);
}

jot_value jot_histogramdd_list(jot_value points, size_t n, const jot_value *edges)
{
    TRACE_NEEDS("jot_histogramdd", "edges", n, edges);
    TRACE_RETURN(histogramdd("jot_histogramdd", points, NULL, n, edges));
}

jot_value jot_histogramdd_weights_list(jot_value points, jot_value weights, size_t n,
                                       const jot_value *edges)
{
    TRACE_NEEDS("jot_histogramdd_weights", "edges", n, edges);
    TRACE_RETURN(histogramdd("jot_histogramdd_weights", points, &weights, n, edges));
}
