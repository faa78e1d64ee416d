// SPDX-License-Identifier: Apache-2.0
// Convolutions with features last, over one to three axes.
#include "library/formula.h"
#include "library/layer.h"

#include <stdio.h>

enum { MOST_SPATIAL = 3 };

jot_convolution jot_convolution_init_with(jot_value key, int64_t in, int64_t out,
                                          const int64_t *window,
                                          const jot_layer_options *options, const char *where)
{
    struct layer l = library_layer("jot_convolution_init", where, options,
                                   TAKES_W | TAKES_BIAS | TAKES_GROUPS, jot_lecun_normal_dims);
    int64_t dims[MOST_SPATIAL + 3], groups = l.o.groups ? l.o.groups : 1;
    int n = 0;
    if (!window)
        library_refuse(&l, JOT_ERR_ARGUMENT, "window is NULL");
    for (; window && window[n] != JOT_END && n < MOST_SPATIAL; n++) {
        library_size(&l, "window", window[n]);
        dims[n] = window[n];
    }
    library_size(&l, "in", in);
    library_size(&l, "out", out);
    library_size(&l, "groups", groups);
    if (!l.is_wrong && (n < 1 || window[n] != JOT_END))
        library_refuse(&l, JOT_ERR_SHAPE, "window has 1 to 3 extents");
    if (!l.is_wrong && (in % groups || out % groups))
        library_refuse(&l, JOT_ERR_SHAPE, "groups divide in and out");
    dims[n] = l.is_wrong ? 1 : in / groups;
    dims[n + 1] = out;
    dims[n + 2] = JOT_END;
    return (jot_convolution){.w = library_weights(&l, key, dims),
                             .b = library_bias(&l, dims + n + 1)};
}

typedef jot_value convolve(jot_value x, jot_value w, const jot_conv_options *options);

static jot_value apply(const char *name, convolve *f, jot_convolution p, jot_value x,
                       const jot_conv_options *options, bool has_groups)
{
    static const char *const letters[MOST_SPATIAL][2] = {
        {"NHC", "HIO"}, {"NHWC", "HWIO"}, {"NDHWC", "DHWIO"}};
    jot_conv_options o = {0};
    if (options)
        o = *options;
    if (jot_value_failed(p.w) || jot_value_failed(x))
        return jot_value_failed(p.w) ? p.w : x;
    int spatial = jot_value_rank(p.w) - 2;
    bool is_one = jot_value_rank(x) == spatial + 1;
    if (spatial < 1 || spatial > MOST_SPATIAL)
        return jot_error(JOT_ERR_SHAPE, name, "w has 3 to 5 axes");
    if (!is_one && jot_value_rank(x) != spatial + 2)
        return jot_error(JOT_ERR_SHAPE, name,
                         "x has as many axes as w, or one less without samples");
    if (o.x || o.w || o.out || o.feature_group_count)
        return jot_error(JOT_ERR_ARGUMENT, name, "letters and groups are those of the layer");
    o.x = o.out = letters[spatial - 1][0];
    o.w = letters[spatial - 1][1];
    int64_t in = jot_value_dim(x, -1), group = jot_value_dim(p.w, -2);
    if (has_groups && group > 0 && in % group == 0)
        o.feature_group_count = in / group;
    const int first[] = {0, JOT_END};
    jot_value y = f(is_one ? jot_expand_dims_axes(x, first) : x, p.w, &o);
    return library_add_bias(is_one ? jot_squeeze_axes(y, first) : y, p.b);
}

jot_value jot_convolution_apply_with(jot_convolution p, jot_value x,
                                     const jot_conv_options *options)
{
    return apply("jot_convolution_apply", jot_conv_general_dilated_with, p, x, options, true);
}

jot_value jot_convolution_transpose_apply_with(jot_convolution p, jot_value x,
                                               const jot_conv_options *options)
{
    return apply("jot_convolution_transpose_apply", jot_conv_transpose_with, p, x, options,
                 false);
}
