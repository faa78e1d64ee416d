// SPDX-License-Identifier: Apache-2.0
// Interpolation: of a function given at points, and of images.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/windows.h"

#include <float.h>
#include <math.h>

static jot_value num(double x) { return jot_from_double(x); }

// ---------------------------------------------------------------------------------------
// Between points

static jot_value check_points(jot_value x, jot_value xp, jot_value fp)
{
    const char *name = "jot_interp";
    jot_value v[] = {x, xp, fp}, error;
    if (!trace_ready(name, 3, v, &error))
        return error;
    struct ir_type t = trace_type(v[1]);
    if (t.rank != 1 || trace_type(v[2]).shape != t.shape ||
        ir_count(trace_top()->module, t) == 0)
        return trace_fail(name, JOT_ERR_SHAPE,
                          "xp is %s and fp %s: both are vectors of the same size, not empty",
                          trace_type_text(v[1]), trace_type_text(v[2]));
    return v[0];
}

static jot_value checked_points(jot_value x, jot_value xp, jot_value fp)
{
    TRACE_RETURN(check_points(x, xp, fp));
}

// How many of the n increasing points are not above x, by halving.
static jot_value count_not_above(jot_value x, jot_value xp, int64_t n)
{
    jot_value count = jot_convert(jot_zeros_like(x), JOT_I32);
    int64_t step = 1;
    while (step <= n / 2)
        step *= 2;
    for (; step; step /= 2) {
        jot_value more = jot_add(count, jot_from_int(step));
        jot_value last = jot_minimum(jot_sub(more, jot_from_int(1)), jot_from_int(n - 1));
        jot_value is_there =
            jot_logical_and(jot_less_equal(more, jot_from_int(n)),
                            jot_less_equal(jot_take_mode(xp, last, 0, JOT_INDEX_PROMISE), x));
        count = jot_where(is_there, more, count);
    }
    return count;
}

jot_value jot_interp(jot_value x, jot_value xp, jot_value fp)
{
    x = checked_points(x, xp, fp);
    if (jot_value_failed(x))
        return x;
    if (!dtype_is_inexact(jot_value_dtype(x)))
        x = jot_convert(x, JOT_F32);
    if (!dtype_is_inexact(jot_value_dtype(xp)))
        xp = jot_convert(xp, JOT_F32);
    if (!dtype_is_inexact(jot_value_dtype(fp)))
        fp = jot_convert(fp, JOT_F32);
    int64_t n = jot_value_dim(xp, 0), most = n > 1 ? n - 2 : 0;
    jot_value zero = jot_from_int(0), one = jot_from_int(1);
    jot_value i = jot_clip(jot_sub(count_not_above(x, xp, n), one), zero, jot_from_int(most));
    jot_value next = jot_minimum(jot_add(i, one), jot_from_int(n - 1));
    jot_value x0 = jot_take_mode(xp, i, 0, JOT_INDEX_PROMISE);
    jot_value f0 = jot_take_mode(fp, i, 0, JOT_INDEX_PROMISE);
    jot_value dx = jot_sub(jot_take_mode(xp, next, 0, JOT_INDEX_PROMISE), x0);
    jot_value df = jot_sub(jot_take_mode(fp, next, 0, JOT_INDEX_PROMISE), f0);
    jot_value is_step = jot_equal(dx, zero);
    jot_value share = jot_div(jot_sub(x, x0), jot_where(is_step, jot_ones_like(dx), dx));
    jot_value f = jot_where(is_step, f0, jot_add(f0, jot_mul(share, df)));
    f = jot_where(jot_less(x, jot_take_axis(xp, 0, 0)), jot_take_axis(fp, 0, 0), f);
    return jot_where(jot_greater(x, jot_take_axis(xp, -1, 0)), jot_take_axis(fp, -1, 0), f);
}

// ---------------------------------------------------------------------------------------
// Kernels, of distances that are not negative

static jot_value linear(jot_value x) { return jot_maximum(jot_sub(num(1), x), num(0)); }

static jot_value cubic(jot_value x)
{
    jot_value near =
        jot_add(jot_mul(jot_mul(jot_sub(jot_mul(num(1.5), x), num(2.5)), x), x), num(1));
    jot_value far = jot_sub(jot_mul(jot_add(jot_mul(num(-0.5), x), num(2.5)), x), num(4));
    far = jot_add(jot_mul(far, x), num(2));
    jot_value y = jot_where(jot_greater_equal(x, num(1)), far, near);
    return jot_where(jot_greater_equal(x, num(2)), jot_zeros_like(y), y);
}

// sinc(x) sinc(x / radius)
static jot_value lanczos(jot_value x, double radius)
{
    jot_value y = jot_mul(num(radius), jot_sin(jot_mul(num(M_PI), x)));
    y = jot_mul(y, jot_sin(jot_div(jot_mul(num(M_PI), x), num(radius))));
    jot_value is_zero = jot_equal(x, num(0));
    jot_value under =
        jot_where(is_zero, jot_ones_like(x), jot_mul(num(M_PI * M_PI), jot_square(x)));
    y = jot_where(jot_greater(x, num(1e-3)), jot_div(y, under), jot_ones_like(x));
    return jot_where(jot_greater(x, num(radius)), jot_zeros_like(y), y);
}

static jot_value kernel_at(jot_resize_method method, jot_value x)
{
    switch (method) {
    case JOT_RESIZE_LINEAR:
        return linear(x);
    case JOT_RESIZE_CUBIC:
        return cubic(x);
    default:
        return lanczos(x, method == JOT_RESIZE_LANCZOS3 ? 3 : 5);
    }
}

// ---------------------------------------------------------------------------------------
// Images

// What each of m pixels gives to each of n: [m, n], columns with sum 1, or 0 where out(i) is outside.
static jot_value weights(int64_t m, int64_t n, jot_value scale, jot_value translation,
                         jot_resize_method method, bool antialias)
{
    jot_dtype d = jot_value_dtype(scale);
    jot_value inverse = jot_div(num(1), scale);
    jot_value at = jot_mul(jot_add(jot_arange(d, n), num(0.5)), inverse);
    at = jot_sub(jot_sub(at, jot_mul(translation, inverse)), num(0.5));
    jot_value x = jot_expand_dims_axes(jot_arange(d, m), (int[]){1, JOT_END});
    x = jot_abs(jot_sub(jot_expand_dims_axes(at, (int[]){0, JOT_END}), x));
    if (antialias)
        x = jot_div(x, jot_maximum(inverse, num(1)));
    jot_value w = kernel_at(method, x);
    jot_value sum = jot_sum_axes(w, (int[]){0, JOT_KEEPDIMS, JOT_END});
    jot_value is_zero = jot_equal(sum, num(0));
    jot_value share = jot_div(w, jot_where(is_zero, jot_ones_like(sum), sum));
    jot_value counts = jot_greater(jot_abs(sum), num(1000 * FLT_EPSILON));
    jot_value is_inside = jot_logical_and(jot_greater_equal(at, num(-0.5)),
                                          jot_less_equal(at, num((double)m - 0.5)));
    return jot_where(jot_logical_and(counts, is_inside), share, jot_zeros_like(w));
}

// The axis of x times w.
static jot_value along_axis(jot_value x, int axis, jot_value w)
{
    jot_value y = jot_tensordot_axes(x, jot_convert(w, jot_value_dtype(x)),
                                     (int[]){axis, JOT_END}, (int[]){0, JOT_END});
    return jot_move_axis(y, -1, axis);
}

static jot_value check_image(const char *name, jot_value x, const int64_t *dims,
                             jot_resize_method method, bool nearest)
{
    jot_value error;
    int rank;
    int64_t sizes[IR_MAX_RANK];
    if (!trace_ready(name, 1, &x, &error) || !trace_sizes(name, dims, 0, &rank, sizes, &error))
        return error;
    if ((unsigned)method > JOT_RESIZE_LANCZOS5)
        return trace_fail(name, JOT_ERR_ARGUMENT, "there is no method %d", (int)method);
    if (method == JOT_RESIZE_NEAREST && !nearest)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "nearest pixels have no weights: use jot_image_resize");
    if (rank != trace_type(x).rank)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d sizes for the axes of %s", rank,
                          trace_type_text(x));
    for (int i = 0; i < rank; i++)
        if (sizes[i] && ir_dims(trace_top()->module, trace_type(x))[i] == 0)
            return trace_fail(name, JOT_ERR_SHAPE, "axis %d of %s is empty and would be %lld",
                              i, trace_type_text(x), (long long)sizes[i]);
    return x;
}

static jot_value checked_image(const char *name, jot_value x, const int64_t *dims,
                               jot_resize_method method, bool nearest)
{
    TRACE_RETURN(check_image(name, x, dims, method, nearest));
}

// An image of floating numbers, and the type that weights of it are made in.
static jot_value of_floats(jot_value x, jot_dtype *out_dtype)
{
    jot_dtype d = dtype_to_inexact(jot_value_dtype(x));
    *out_dtype = dtype_compute(dtype_real(d));
    return dtype_is_inexact(jot_value_dtype(x)) ? x : jot_convert(x, d);
}

// The pixel whose square the centre of each is in.
static jot_value nearest(jot_value x, int axis, int64_t m, int64_t n)
{
    jot_value at = jot_mul(jot_add(jot_arange(JOT_F32, n), num(0.5)), num((double)m));
    at = jot_convert(jot_floor(jot_div(at, num((double)n))), JOT_I32);
    return jot_take_mode(x, at, axis, JOT_INDEX_CLIP);
}

jot_value jot_image_resize_dims(jot_value x, jot_resize_method method, const int64_t *dims)
{
    jot_dtype d;
    x = checked_image("jot_image_resize", x, dims, method, true);
    if (jot_value_failed(x))
        return x;
    x = of_floats(x, &d);
    for (int i = 0; i < jot_value_rank(x); i++) {
        int64_t m = jot_value_dim(x, i);
        if (m == dims[i])
            continue;
        jot_value scale = jot_full_dims(d, num((double)dims[i] / (double)m), NULL);
        x = method == JOT_RESIZE_NEAREST
                ? nearest(x, i, m, dims[i])
                : along_axis(x, i, weights(m, dims[i], scale, num(0), method, true));
    }
    return x;
}

static jot_value check_scales(jot_value x, int n, const int *axes, jot_value scale,
                              jot_value translation)
{
    const char *name = "jot_image_scale_and_translate";
    jot_value v[] = {scale, translation, x}, error;
    int count;
    int64_t listed[IR_MAX_RANK];
    if (!trace_ready(name, 3, v, &error) || !trace_axes(name, v[2], trace_type(v[2]).rank, axes,
                                                        false, &count, listed, NULL, &error))
        return error;
    for (int i = 0; i < 2; i++) {
        struct ir_type t = trace_type(v[i]);
        if (t.rank != 1 || ir_dims(trace_top()->module, t)[0] != n ||
            !dtype_is_float(ir_dtype(t)))
            return trace_fail(name, JOT_ERR_SHAPE,
                              "%s is %s: it has a floating number for each of the %d axes",
                              i ? "the translation" : "the scale", trace_type_text(v[i]), n);
    }
    return v[2];
}

static jot_value checked_scales(jot_value x, int n, const int *axes, jot_value scale,
                                jot_value translation)
{
    TRACE_RETURN(check_scales(x, n, axes, scale, translation));
}

jot_value jot_image_scale_and_translate(jot_value x, const int64_t *dims, const int *axes,
                                        jot_value scale, jot_value translation,
                                        jot_resize_method method, bool antialias)
{
    int n = 0;
    while (axes && axes[n] != JOT_END && n < IR_MAX_RANK)
        n++;
    x = checked_image("jot_image_scale_and_translate", x, dims, method, false);
    x = checked_scales(x, n, axes, scale, translation);
    if (jot_value_failed(x))
        return x;
    jot_dtype d;
    x = of_floats(x, &d);
    if (d == JOT_F64) {
        scale = jot_convert(scale, d);
        translation = jot_convert(translation, d);
    }
    for (int i = 0; i < n; i++) {
        int axis = axes[i] < 0 ? axes[i] + jot_value_rank(x) : axes[i];
        jot_value w = weights(jot_value_dim(x, axis), dims[axis], jot_take_axis(scale, i, 0),
                              jot_take_axis(translation, i, 0), method, antialias);
        x = along_axis(x, axis, w);
    }
    return x;
}

// ---------------------------------------------------------------------------------------

jot_value jot_one_hot(jot_value x, int64_t n, jot_dtype dtype)
{
    jot_value numbers = jot_arange(trace_index_dtype(n), n);
    return jot_convert(jot_equal(jot_expand_dims_axes(x, (int[]){-1, JOT_END}), numbers),
                       dtype);
}
