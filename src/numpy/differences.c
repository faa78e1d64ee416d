// SPDX-License-Identifier: Apache-2.0
// Differences, integrals and windows.
#include "trace/emit.h"

#include "jot/numeric.h"
#include "jot/special.h"

#include <math.h>

static jot_value rest(jot_value x, int axis, int64_t start, int64_t stop)
{
    return jot_slice_axis(x, axis, start, stop, 1);
}

static jot_value diff(jot_value x, int64_t n, int axis)
{
    jot_value error;
    int64_t at;
    if (!trace_ready("jot_diff", 1, &x, &error) ||
        !trace_axis("jot_diff", x, axis, &at, &error))
        return error;
    if (n < 0)
        return trace_fail("jot_diff", JOT_ERR_ARGUMENT, "%lld times: it takes 0 or more",
                          (long long)n);
    if (n > TRACE_MOST_TIMES && jot_value_dim(x, (int)at) > TRACE_MOST_TIMES)
        return trace_fail("jot_diff", JOT_ERR_ARGUMENT, "%lld times: it takes at most %d",
                          (long long)n, TRACE_MOST_TIMES);
    bool is_bool = trace_slot_of(x)->dtype == JOT_BOOL;
    for (; n > 0 && jot_value_dim(x, (int)at) > 0; n--) {
        jot_value a = rest(x, (int)at, 1, JOT_END), b = rest(x, (int)at, 0, -1);
        x = is_bool ? jot_not_equal(a, b) : jot_sub(a, b);
    }
    return x;
}

jot_value jot_diff(jot_value x, int64_t n, int axis) { TRACE_RETURN(diff(x, n, axis)); }

static jot_value finite_difference(jot_value x, jot_value spacing, int axis)
{
    const char *name = "jot_finite_difference";
    jot_value v[] = {x, spacing}, error;
    int64_t at;
    if (!trace_ready(name, 2, v, &error) || !trace_axis(name, v[0], axis, &at, &error))
        return error;
    int64_t n = jot_value_dim(v[0], (int)at);
    if (n < 2)
        return trace_fail(name, JOT_ERR_SHAPE, "axis %lld of %s: it takes 2 elements or more",
                          (long long)at, trace_type_text(v[0]));
    if (trace_type(v[1]).rank)
        return trace_fail(name, JOT_ERR_SHAPE, "the spacing is %s, not one number",
                          trace_type_text(v[1]));
    jot_value each = diff(jot_mul(v[0], jot_from_double(1)), 1, (int)at),
              half = jot_from_double(0.5);
    jot_value parts[] = {
        rest(each, (int)at, 0, 1),
        jot_mul(jot_add(rest(each, (int)at, 1, JOT_END), rest(each, (int)at, 0, -1)), half),
        rest(each, (int)at, n - 2, JOT_END)};
    return jot_div(jot_concatenate_list((int)at, 3, parts), v[1]);
}

jot_value jot_finite_difference(jot_value x, jot_value spacing, int axis)
{
    TRACE_RETURN(finite_difference(x, spacing, axis));
}

static jot_value trapezoid(jot_value y, jot_value points, int axis)
{
    const char *name = "jot_trapezoid";
    jot_value v[] = {y, points}, error;
    int64_t at;
    if (!trace_ready(name, 2, v, &error) || !trace_axis(name, v[0], axis, &at, &error))
        return error;
    jot_value width = v[1];
    int rank = jot_value_rank(width);
    if (rank) {
        int along = rank == 1 ? 0 : (int)at;
        if ((rank != 1 && rank != jot_value_rank(v[0])) ||
            jot_value_dim(width, along) != jot_value_dim(v[0], (int)at))
            return trace_fail(name, JOT_ERR_SHAPE,
                              "points %s of %s: they are a number, have its shape, or are a "
                              "vector along axis %lld",
                              trace_type_text(v[1]), trace_type_text(v[0]), (long long)at);
        width = diff(width, 1, along);
    }
    // The axis goes last, where a vector broadcasts.
    y = jot_move_axis(v[0], (int)at, -1);
    if (rank > 1)
        width = jot_move_axis(width, (int)at, -1);
    jot_value pairs = jot_add(rest(y, -1, 1, JOT_END), rest(y, -1, 0, -1));
    return jot_mul(jot_sum_axes(jot_mul(pairs, width), (const int[]){-1, JOT_END}),
                   jot_from_double(0.5));
}

jot_value jot_trapezoid(jot_value y, jot_value points, int axis)
{
    TRACE_RETURN(trapezoid(y, points, axis));
}

static jot_value unwrap(jot_value x, int axis)
{
    jot_value error;
    struct trace_promoted p;
    int64_t at;
    if (!trace_ready("jot_unwrap", 1, &x, &error) ||
        !trace_promote("jot_unwrap", "float", 1, &x, &p, &error) ||
        !trace_axis("jot_unwrap", x, axis, &at, &error))
        return error;
    x = jot_convert(x, p.seen);
    if (jot_value_dim(x, (int)at) == 0)
        return x;
    const int along[] = {(int)at, JOT_END};
    jot_value pi = jot_from_double(M_PI), zero = jot_from_int(0), d = diff(x, 1, (int)at);
    jot_value near = jot_sub(jot_mod(jot_add(d, pi), jot_from_double(2 * M_PI)), pi);
    // Of the two that are as near, the one with the sign of the difference.
    jot_value is_edge = jot_logical_and(jot_equal(near, jot_neg(pi)), jot_greater(d, zero));
    near = jot_where(is_edge, pi, near);
    jot_value turn = jot_where(jot_less(jot_abs(d), pi), zero, jot_sub(near, d));
    jot_value turns = jot_cumsum_axes(turn, along);
    return jot_add(x, jot_pad_axis(turns, zero, (int)at, 1, 0));
}

jot_value jot_unwrap(jot_value x, int axis) { TRACE_RETURN(unwrap(x, axis)); }

// ---------------------------------------------------------------------------------------
// Windows: in f64, rounded once

// a + b cos u + c cos 2u.
static jot_value cosines(jot_dtype dtype, int64_t n, double a, double b, double c)
{
    if (n == 1)
        return jot_ones_dims(dtype, (const int64_t[]){1, JOT_END});
    jot_value u = jot_mul(jot_arange(JOT_F64, n), jot_from_double(2 * M_PI / ((double)n - 1)));
    jot_value w = jot_add(jot_from_double(a), jot_mul(jot_from_double(b), jot_cos(u)));
    if (c != 0)
        w = jot_add(w, jot_mul(jot_from_double(c), jot_cos(jot_mul(u, jot_from_int(2)))));
    return jot_convert(w, dtype);
}

jot_value jot_hanning(jot_dtype dtype, int64_t n) { return cosines(dtype, n, 0.5, -0.5, 0); }
jot_value jot_hamming(jot_dtype dtype, int64_t n) { return cosines(dtype, n, 0.54, -0.46, 0); }
jot_value jot_blackman(jot_dtype dtype, int64_t n)
{
    return cosines(dtype, n, 0.42, -0.5, 0.08);
}

jot_value jot_bartlett(jot_dtype dtype, int64_t n)
{
    if (n == 1)
        return jot_ones_dims(dtype, (const int64_t[]){1, JOT_END});
    jot_value slope = jot_sub(
        jot_mul(jot_arange(JOT_F64, n), jot_from_double(2 / ((double)n - 1))), jot_from_int(1));
    return jot_convert(jot_sub(jot_from_int(1), jot_abs(slope)), dtype);
}

jot_value jot_kaiser(jot_dtype dtype, int64_t n, jot_value beta)
{
    if (n <= 1)
        return jot_ones_dims(dtype, (const int64_t[]){n, JOT_END});
    beta = jot_convert(beta, JOT_F64);
    jot_value x = jot_mul(jot_arange(JOT_F64, n), jot_from_double(2 / (double)(n - 1)));
    x = jot_sub(x, jot_from_int(1));
    jot_value root = jot_sqrt(jot_sub(jot_from_int(1), jot_square(x)));
    return jot_convert(jot_div(jot_i0(jot_mul(beta, root)), jot_i0(beta)), dtype);
}
