// SPDX-License-Identifier: Apache-2.0
// Norms: what an array is when its mean and its variance are taken out.
#include "jot/collective.h"
#include "library/formula.h"
#include "library/layer.h"

#include <math.h>
#include <stdio.h>

jot_normalization jot_normalization_init_with(int64_t n, const jot_layer_options *options,
                                              const char *where)
{
    struct layer l = library_layer("jot_normalization_init", where, options, TAKES_BIAS, NULL);
    const int64_t dims[] = {n, JOT_END};
    library_size(&l, "n", n);
    return (jot_normalization){.scale = library_filled(&l, 1, dims),
                               .bias = library_bias(&l, dims)};
}

jot_batch_stats jot_batch_stats_init_with(int64_t n, const jot_layer_options *options,
                                          const char *where)
{
    struct layer l = library_layer("jot_batch_stats_init", where, options, 0, NULL);
    const int64_t dims[] = {n, JOT_END};
    library_size(&l, "n", n);
    if (library_is_half(l.o.dtype))
        library_refuse(&l, JOT_ERR_DTYPE, "dtype is a half type: f32 or f64");
    return (jot_batch_stats){.mean = library_filled(&l, 0, dims),
                             .var = library_filled(&l, 1, dims)};
}

// Options with defaults in place; false with what is wrong in *error.
static bool read_options(const char *name, const jot_normalization_options *options,
                         bool is_of_batches, jot_normalization_options *o, jot_value *error)
{
    char text[80] = "";
    if (options)
        *o = *options;
    if (!(o->eps >= 0) || !isfinite(o->eps))
        snprintf(text, sizeof text, "eps is %g: 0 or more", o->eps);
    else if (!(o->momentum >= 0 && o->momentum <= 1))
        snprintf(text, sizeof text, "momentum is %g: 0 to 1", o->momentum);
    else if (!is_of_batches && (o->momentum != 0 || o->axis))
        snprintf(text, sizeof text, "momentum and axis are of jot_batch_norm");
    if (*text)
        *error = jot_error(JOT_ERR_ARGUMENT, name, text);
    o->eps = o->eps != 0 ? o->eps : 1e-5;
    o->momentum = o->momentum != 0 ? o->momentum : 0.99;
    return !*text;
}

// y scale + bias of y in wide types, as x and p have it.
static jot_value scaled(jot_value y, jot_normalization p, jot_value x)
{
    y = mul(y, library_wide(p.scale));
    return library_narrow(library_add_bias(y, library_wide(p.bias)), x, p.scale);
}

static jot_value centred(jot_value x, jot_value mean, jot_value var, double eps)
{
    return mul(sub(x, mean), jot_rsqrt(add(var, num(eps))));
}

static jot_value standard(jot_value x, const int *axes, double eps)
{
    return centred(x, jot_mean_axes(x, axes), jot_var_axes(x, axes), eps);
}

jot_value jot_layer_norm_with(jot_normalization p, jot_value x,
                              const jot_normalization_options *options)
{
    jot_normalization_options o = {0};
    jot_value error;
    if (!read_options("jot_layer_norm", options, false, &o, &error))
        return error;
    const int last[] = {-1, JOT_KEEPDIMS, JOT_END};
    return scaled(standard(library_wide(x), last, o.eps), p, x);
}

jot_value jot_rms_norm_with(jot_normalization p, jot_value x,
                            const jot_normalization_options *options)
{
    jot_normalization_options o = {0};
    jot_value error, wide = library_wide(x);
    if (!read_options("jot_rms_norm", options, false, &o, &error))
        return error;
    const int last[] = {-1, JOT_KEEPDIMS, JOT_END};
    jot_value square = jot_mean_axes(jot_square(wide), last);
    return scaled(mul(wide, jot_rsqrt(add(square, num(o.eps)))), p, x);
}

jot_value jot_group_norm_with(jot_normalization p, jot_value x, int64_t groups,
                              const jot_normalization_options *options)
{
    const char *name = "jot_group_norm";
    jot_normalization_options o = {0};
    jot_value error;
    if (!read_options(name, options, false, &o, &error))
        return error;
    if (jot_value_failed(x))
        return x;
    int64_t n = jot_value_dim(x, -1), samples = jot_value_dim(x, 0),
            dims[LIBRARY_MOST_AXES + 1];
    char text[80];
    snprintf(text, sizeof text, "%lld groups of %lld features", (long long)groups,
             (long long)n);
    if (groups < 1 || n % groups)
        return jot_error(JOT_ERR_ARGUMENT, name, text);
    if (jot_value_rank(x) < 2)
        return jot_error(JOT_ERR_SHAPE, name, "x has no axis of samples");
    int64_t row = samples ? jot_value_size(x) / samples : 0;
    const int64_t parts[] = {samples, row / (n ? n : 1), groups, n / groups, JOT_END};
    const int of_group[] = {1, 3, JOT_KEEPDIMS, JOT_END};
    library_dims(x, dims);
    jot_value y = standard(jot_reshape_dims(library_wide(x), parts), of_group, o.eps);
    return scaled(jot_reshape_dims(y, dims), p, x);
}

// What it is on average: along all axes but the last, and a named one.
static jot_value of_batch(jot_value x, const char *axis)
{
    int axes[LIBRARY_MOST_AXES + 1], n = 0;
    for (; n + 1 < jot_value_rank(x); n++)
        axes[n] = n;
    axes[n] = JOT_END;
    jot_value mean = n ? jot_mean_axes(x, axes) : x;
    return axis ? jot_pmean(mean, axis) : mean;
}

static jot_value moved(jot_value old, jot_value new, double momentum)
{
    new = jot_convert(new, jot_value_dtype(old));
    return add(mul(num(momentum), old), mul(num(1 - momentum), new));
}

jot_value jot_batch_norm_with(jot_normalization p, jot_value x, jot_batch_stats *stats,
                              const jot_normalization_options *options, const char *where)
{
    const char *name = "jot_batch_norm";
    jot_normalization_options o = {0};
    jot_value y = {0}, wide = library_wide(x);
    if (!stats)
        y = jot_error(JOT_ERR_ARGUMENT, name, "stats is NULL");
    else if (read_options(name, options, true, &o, &y)) {
        jot_value mean = of_batch(wide, o.axis);
        jot_value var = of_batch(jot_square(sub(wide, mean)), o.axis);
        stats->mean = moved(stats->mean, mean, o.momentum);
        stats->var = moved(stats->var, var, o.momentum);
        jot_place(stats->mean, where), jot_place(stats->var, where);
        y = scaled(centred(wide, mean, var, o.eps), p, x);
    }
    jot_place(y, where);
    return y;
}

jot_value jot_batch_norm_apply_with(jot_normalization p, jot_value x, jot_batch_stats stats,
                                    const jot_normalization_options *options)
{
    jot_normalization_options o = {0};
    jot_value error;
    if (!read_options("jot_batch_norm_apply", options, false, &o, &error))
        return error;
    jot_value y = centred(library_wide(x), stats.mean, stats.var, o.eps);
    return scaled(y, p, x);
}
