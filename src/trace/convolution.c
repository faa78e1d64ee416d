// SPDX-License-Identifier: Apache-2.0
// Convolutions: which axes are which, and what padding and groups mean; the op is conv (ir/conv.h).
#include "base/dtype.h"
#include "ir/conv.h"
#include "trace/windows.h"

#include <string.h>

struct convolution {
    const char *name;
    jot_value v[2];
    int n_spatial;
    int64_t x_axes[IR_MAX_RANK], w_axes[IR_MAX_RANK], out_axes[IR_MAX_RANK]; // batch or out,
        // features or in, spatial ones in the order of w
    int64_t stride[IR_MAX_RANK], low[IR_MAX_RANK], high[IR_MAX_RANK];
    int64_t lhs_dilation[IR_MAX_RANK], rhs_dilation[IR_MAX_RANK];
    jot_padding padding;
    bool is_padded;
    int64_t feature_groups, batch_groups;
    int precision;
};

// ---------------------------------------------------------------------------------------
// Letters

static bool read_letters(const struct convolution *c, const char *which, const char *letters,
                         jot_value x, char first, char second, const char *spatial,
                         int64_t *out, jot_value *error)
{
    int rank = trace_type(x).rank, n = (int)strnlen(letters, IR_MAX_RANK + 1);
    if (n != rank) {
        *error = trace_fail(c->name, JOT_ERR_ARGUMENT, "%s: \"%s\" names %d axes, %s has %d",
                            which, letters, n, trace_type_text(x), rank);
        return false;
    }
    for (int i = 0; i < rank; i++)
        out[i] = -1;
    for (int i = 0; i < n; i++) {
        const char *found = strchr(spatial, letters[i]);
        int to = letters[i] == first    ? 0
                 : letters[i] == second ? 1
                 : found                ? 2 + (int)(found - spatial)
                                        : -1;
        if (to < 0 || out[to] >= 0) {
            *error = trace_fail(c->name, JOT_ERR_ARGUMENT,
                                "%s: \"%s\" should have each of %c, %c%s%s once", which,
                                letters, first, second, *spatial ? " and " : "", spatial);
            return false;
        }
        out[to] = i;
    }
    return true;
}

// The letters that are not the two.
static void spatial_letters(const char *letters, char first, char second, char *out)
{
    int n = 0;
    for (; *letters && n < IR_MAX_RANK; letters++)
        if (*letters != first && *letters != second)
            out[n++] = *letters;
    out[n] = 0;
}

static const char *const default_letters[][2][3] = {
    {{"NC", "OI", "NC"}, {"NC", "IO", "NC"}},
    {{"NCH", "OIH", "NCH"}, {"NHC", "HIO", "NHC"}},
    {{"NCHW", "OIHW", "NCHW"}, {"NHWC", "HWIO", "NHWC"}},
    {{"NCDHW", "OIDHW", "NCDHW"}, {"NDHWC", "DHWIO", "NDHWC"}},
};

static bool read_axes(struct convolution *c, const jot_conv_options *o, bool features_last,
                      jot_value *error)
{
    char spatial[IR_MAX_RANK + 1];
    int rank = trace_type(c->v[0]).rank;
    c->n_spatial = rank - 2;
    if (rank != trace_type(c->v[1]).rank || rank < 2) {
        *error = trace_fail(c->name, JOT_ERR_SHAPE,
                            "%s and %s: both have a batch, or features out, features, and "
                            "the same spatial axes",
                            trace_type_text(c->v[0]), trace_type_text(c->v[1]));
        return false;
    }
    if (c->n_spatial > 3 && !(o->x && o->w && o->out)) {
        *error = trace_fail(c->name, JOT_ERR_ARGUMENT,
                            "%d spatial axes: .x, .w and .out name them", c->n_spatial);
        return false;
    }
    const char *const *usual =
        default_letters[c->n_spatial > 3 ? 0 : c->n_spatial][features_last];
    const char *x = o->x ? o->x : usual[0], *w = o->w ? o->w : usual[1];
    spatial_letters(w, 'O', 'I', spatial);
    return read_letters(c, "w", w, c->v[1], 'O', 'I', spatial, c->w_axes, error) &&
           read_letters(c, "x", x, c->v[0], 'N', 'C', spatial, c->x_axes, error) &&
           read_letters(c, "out", o->out ? o->out : usual[2], c->v[0], 'N', 'C', spatial,
                        c->out_axes, error);
}

// ---------------------------------------------------------------------------------------
// Options

static const int64_t *dims_of(const struct convolution *c, int i)
{
    return ir_dims(trace_top()->module, trace_type(c->v[i]));
}

static bool read_group(const char *name, const char *what, int64_t given, int64_t *out,
                       jot_value *error)
{
    *out = given ? given : 1;
    if (given >= 0)
        return true;
    *error =
        trace_fail(name, JOT_ERR_ARGUMENT, "%s is %lld: at least 1", what, (long long)given);
    return false;
}

static bool divides(const struct convolution *c, int64_t groups, const char *what, int64_t n,
                    jot_value *error)
{
    if (n % groups == 0)
        return true;
    *error = trace_fail(c->name, JOT_ERR_SHAPE, "%lld groups do not divide the %lld %s",
                        (long long)groups, (long long)n, what);
    return false;
}

static bool read_groups(struct convolution *c, const jot_conv_options *o, jot_value *error)
{
    if (!read_group(c->name, "feature_group_count", o->feature_group_count, &c->feature_groups,
                    error) ||
        !read_group(c->name, "batch_group_count", o->batch_group_count, &c->batch_groups,
                    error))
        return false;
    if (c->feature_groups > 1 && c->batch_groups > 1) {
        *error = trace_fail(c->name, JOT_ERR_ARGUMENT,
                            "groups of features and of the batch: "
                            "one of them");
        return false;
    }
    int64_t features = dims_of(c, 0)[c->x_axes[1]], in = dims_of(c, 1)[c->w_axes[1]];
    if (!divides(c, c->feature_groups, "features of x", features, error) ||
        !divides(c, c->batch_groups, "of the batch", dims_of(c, 0)[c->x_axes[0]], error) ||
        !divides(c, c->feature_groups * c->batch_groups, "features out",
                 dims_of(c, 1)[c->w_axes[0]], error))
        return false;
    if (features / c->feature_groups == in)
        return true;
    *error = trace_fail(
        c->name, JOT_ERR_SHAPE, "x has %lld features%s and w takes %lld: %s with %s",
        (long long)(features / c->feature_groups), c->feature_groups > 1 ? " in a group" : "",
        (long long)in, trace_type_text(c->v[0]), trace_type_text(c->v[1]));
    return false;
}

static bool read_lists(struct convolution *c, const jot_conv_options *o, jot_value *error)
{
    const char *name = c->name, *axes = "spatial axes";
    int n = c->n_spatial;
    c->padding = o->padding;
    c->is_padded = o->low || o->high;
    return trace_window_list(name, "strides", o->strides, n, axes, 1, 1, c->stride, error) &&
           trace_window_list(name, "low", o->low, n, axes, -INT32_MAX, 0, c->low, error) &&
           trace_window_list(name, "high", o->high, n, axes, -INT32_MAX, 0, c->high, error) &&
           trace_window_list(name, "lhs_dilation", o->lhs_dilation, n, axes, 1, 1,
                             c->lhs_dilation, error) &&
           trace_window_list(name, "rhs_dilation", o->rhs_dilation, n, axes, 1, 1,
                             c->rhs_dilation, error);
}

static bool open_convolution(const char *name, jot_value x, jot_value w,
                             const jot_conv_options *o, bool features_last,
                             struct convolution *c, struct trace_promoted *p, jot_value *error)
{
    *c = (struct convolution){.name = name, .v = {x, w}};
    if (!trace_ready(name, 2, c->v, error) || !trace_promote(name, "num", 2, c->v, p, error))
        return false;
    if ((unsigned)o->precision > JOT_PRECISION_3TF32) {
        *error =
            trace_fail(name, JOT_ERR_ARGUMENT, "there is no precision %d", (int)o->precision);
        return false;
    }
    c->precision = o->precision ? (int)o->precision : trace_top()->root->precision;
    return read_axes(c, o, features_last, error) && read_groups(c, o, error) &&
           read_lists(c, o, error);
}

// ---------------------------------------------------------------------------------------
// The op

// Low, high and number of the windows that the padding says; false with an error.
static bool choose_windows(struct convolution *c, jot_value *error)
{
    for (int i = 0; i < c->n_spatial; i++) {
        int axis = (int)c->x_axes[2 + i];
        struct ir_axis_window w = {.size = dims_of(c, 1)[c->w_axes[2 + i]],
                                   .stride = c->stride[i],
                                   .low = c->low[i],
                                   .high = c->high[i],
                                   .base = c->lhs_dilation[i],
                                   .dilation = c->rhs_dilation[i]};
        if (c->padding && w.base > 1) {
            *error =
                trace_fail(c->name, JOT_ERR_ARGUMENT,
                           "a kind of padding with lhs_dilation: give low and high, or use "
                           "jot_conv_transpose");
            return false;
        }
        if (!trace_window_choose(c->name, c->v[0], axis, dims_of(c, 0)[axis], c->padding,
                                 c->is_padded, &w, error))
            return false;
        c->low[i] = w.low;
        c->high[i] = w.high;
    }
    return true;
}

// x [.., groups from, .., to, ..] as [.., from, .., groups to, ..]: the groups, the outer part of one axis,
// as that of another.
static ir_id groups_moved(ir_id x, int from, int to, int64_t groups)
{
    struct ir_builder *b = trace_builder();
    int64_t dims[IR_MAX_RANK + 1], axes[IR_MAX_RANK + 1], size[IR_MAX_RANK];
    if (x == IR_NONE || groups == 1)
        return x;
    struct ir_type t = ir_type_in(b, x);
    const int64_t *of = ir_dims(b->module, t);
    for (int i = 0, n = 0; i < t.rank;
         i++) { // the groups are axis `from`, the rest of it follows
        dims[i + (i > from)] = i == from ? groups : of[i];
        if (i == to)
            axes[n++] = from;
        axes[n++] = i + (i >= from);
        size[i] = i == from ? of[i] / groups : i == to ? of[i] * groups : of[i];
    }
    dims[from + 1] = of[from] / groups;
    x = ir_transpose(b, ir_reshape(b, x, t.rank + 1, dims), axes);
    return ir_reshape(b, x, t.rank, size);
}

// Axis `to` of what the op has, by axis of what the caller has: the first, the features of either kind,
// and the spatial ones.
static void put_axes(const struct convolution *c, const int64_t *of, int first, int features,
                     int spatial, int64_t *axes)
{
    axes[first] = of[0];
    axes[features] = of[1];
    for (int i = 0; i < c->n_spatial; i++)
        axes[spatial + i] = of[2 + i];
}

// x or y of the op from what the caller has, whose axes are swapped where its batch is their features.
static ir_id ordered(const struct convolution *c, const struct ir_conv *conv, ir_id x,
                     const int64_t *of, bool is_swapped)
{
    int64_t axes[IR_MAX_RANK];
    int features = ir_conv_features(conv, CONV_X);
    put_axes(c, of, is_swapped ? features : 0, is_swapped ? 0 : features,
             ir_conv_spatial(conv, CONV_X), axes);
    return ir_transpose(trace_builder(), x, axes);
}

// The same of w, whose features are swapped where those of y are those of x.
static ir_id ordered_w(const struct convolution *c, const struct ir_conv *conv, ir_id w,
                       bool is_swapped)
{
    int64_t axes[IR_MAX_RANK];
    int out = ir_conv_features(conv, CONV_W), in = ir_conv_in(conv);
    put_axes(c, c->w_axes, is_swapped ? in : out, is_swapped ? out : in,
             ir_conv_spatial(conv, CONV_W), axes);
    return ir_transpose(trace_builder(), w, axes);
}

// The result as the caller wants it.
static ir_id ordered_back(const struct convolution *c, ir_id y, int first, int features,
                          int spatial)
{
    int64_t axes[IR_MAX_RANK], to[IR_MAX_RANK];
    put_axes(c, c->out_axes, first, features, spatial, to);
    for (int i = 0; i < c->n_spatial + 2; i++)
        axes[to[i]] = i;
    return ir_transpose(trace_builder(), y, axes);
}

// ---- Derivatives of convolutions, written as convolutions

// Extents of x, of w and of the result along a spatial axis.
struct spatial_extents {
    int64_t x, w, y;
};

static struct spatial_extents extents_along(const struct convolution *c,
                                            const struct ir_conv *conv, int i)
{
    int64_t x = dims_of(c, 0)[c->x_axes[2 + i]], w = dims_of(c, 1)[c->w_axes[2 + i]];
    return (struct spatial_extents){x, w, ir_conv_window(conv, i, x, w).count};
}

static bool has_elements(const struct convolution *c, const struct ir_conv *conv)
{
    for (int i = 0; i < c->n_spatial; i++)
        if (extents_along(c, conv, i).y <= 0)
            return false;
    for (int i = 0; i < c->n_spatial + 2; i++)
        if (!dims_of(c, 0)[i] || !dims_of(c, 1)[i])
            return false;
    return c->n_spatial > 0;
}

// Whether it sums over the batch and the positions of another convolution's y, as is to be seen from the
// order of axes and a kernel of more elements than the result has positions.
static bool is_in_w(const struct convolution *c, const struct ir_conv *conv)
{
    double kernel = 1, positions = 1;
    for (int i = 0; i < c->n_spatial; i++) {
        kernel *= (double)extents_along(c, conv, i).w;
        positions *= (double)extents_along(c, conv, i).y;
        if (c->lhs_dilation[i] != 1)
            return false;
    }
    return c->feature_groups == 1 && c->x_axes[1] == 0 && kernel > positions &&
           (c->x_axes[0] == c->n_spatial + 1 || c->x_axes[0] == 1);
}

// Whether zeros between the elements of x are the strides of another convolution, whose y they are.
static bool is_in_x(const struct convolution *c)
{
    bool is = false;
    for (int i = 0; i < c->n_spatial; i++) {
        is |= c->lhs_dilation[i] > 1;
        if (c->stride[i] != 1)
            return false;
    }
    return is && c->batch_groups == 1;
}

// sum over c, k of x[c, p stride + k dilation - low, n] y[c, k, o], as w[p, n, o].
static ir_id derivative_in_w(const struct convolution *c, const struct ir_conv *given, ir_id x,
                             ir_id y)
{
    struct ir_conv conv = *given;
    int64_t sizes[IR_MAX_RANK], high[IR_MAX_RANK];
    conv.part = CONV_W;
    conv.layout = c->x_axes[0] == 1 ? CONV_FEATURES_FIRST : CONV_FEATURES_LAST;
    conv.strides = c->rhs_dilation;
    conv.rhs_dilation = c->stride;
    conv.high = high;
    conv.sizes = sizes;
    for (int i = 0; i < c->n_spatial; i++) {
        struct spatial_extents e = extents_along(c, given, i);
        sizes[i] = e.y;
        high[i] =
            (e.w - 1) * c->rhs_dilation[i] + (e.y - 1) * c->stride[i] + 1 - e.x - c->low[i];
    }
    x = ordered(c, &conv, x, c->x_axes, true);
    y = ordered(c, &conv, y, c->w_axes, true);
    return ordered_back(c, ir_conv(trace_builder(), x, y, &conv), ir_conv_in(&conv),
                        ir_conv_features(&conv, CONV_W), ir_conv_spatial(&conv, CONV_W));
}

// sum over o, k of y[n, q, o] w[k, c, o] at p = q stride + k dilation - low, as x[n, p, c]; the kernel is turned.
static ir_id derivative_in_x(const struct convolution *c, const struct ir_conv *given, ir_id y,
                             ir_id w)
{
    struct ir_conv conv = *given;
    struct ir_builder *b = trace_builder();
    int64_t sizes[IR_MAX_RANK], low[IR_MAX_RANK], high[IR_MAX_RANK], spatial[IR_MAX_RANK];
    conv.part = CONV_X;
    conv.strides = c->lhs_dilation;
    conv.lhs_dilation = c->stride;
    conv.low = low;
    conv.high = high;
    conv.sizes = sizes;
    for (int i = 0; i < c->n_spatial; i++) {
        struct spatial_extents e = extents_along(c, given, i);
        sizes[i] = e.y;
        low[i] = (e.w - 1) * c->rhs_dilation[i] - c->low[i];
        high[i] = (e.w - 1) * c->rhs_dilation[i] - c->high[i];
        spatial[i] = c->w_axes[2 + i];
    }
    w = ordered_w(c, &conv, ir_rev(b, w, c->n_spatial, spatial), true);
    w = groups_moved(w, ir_conv_in(&conv), ir_conv_features(&conv, CONV_W), conv.groups);
    y = ordered(c, &conv, y, c->x_axes, false);
    return ordered_back(c, ir_conv(b, w, y, &conv), 0, ir_conv_features(&conv, CONV_X),
                        ir_conv_spatial(&conv, CONV_X));
}

static jot_value convolve(struct convolution *c, const struct trace_promoted *p)
{
    jot_value error;
    struct ir_builder *b = trace_builder();
    struct ir_conv conv = {.part = CONV_Y,
                           .layout = c->n_spatial && c->x_axes[1] == c->n_spatial + 1
                                         ? CONV_FEATURES_LAST
                                         : CONV_FEATURES_FIRST,
                           .n = c->n_spatial,
                           .precision = c->precision,
                           .groups = c->feature_groups * c->batch_groups,
                           .strides = c->stride,
                           .low = c->low,
                           .high = c->high,
                           .lhs_dilation = c->lhs_dilation,
                           .rhs_dilation = c->rhs_dilation};
    for (int i = 0; i < 2; i++)
        if (!trace_fits(c->name, c->v[i], p->dtype, &error))
            return error;
    if (!choose_windows(c, &error))
        return error;
    ir_id x = trace_operand(c->v[0], p->dtype), w = trace_operand(c->v[1], p->dtype), y;
    bool has_derivative = dtype_is_inexact(p->dtype) && has_elements(c, &conv);
    if (has_derivative && is_in_w(c, &conv)) {
        y = derivative_in_w(c, &conv, x, w);
    } else if (has_derivative && is_in_x(c)) {
        y = derivative_in_x(c, &conv, x, w);
    } else {
        int features = ir_conv_features(&conv, CONV_X);
        x = ordered(c, &conv, x, c->x_axes, false);
        x = groups_moved(x, 0, features, c->batch_groups);
        w = ordered_w(c, &conv, w, false);
        y = ordered_back(c, ir_conv(b, x, w, &conv), 0, features,
                         ir_conv_spatial(&conv, CONV_Y));
    }
    return trace_result(c->name, y, p->weak);
}

static const jot_conv_options no_options;

static jot_value conv_general_dilated(jot_value x, jot_value w, const jot_conv_options *o)
{
    struct convolution c;
    struct trace_promoted p;
    jot_value error;
    if (!open_convolution("jot_conv_general_dilated", x, w, o ? o : &no_options, false, &c, &p,
                          &error))
        return error;
    return convolve(&c, &p);
}

jot_value jot_conv_general_dilated_with(jot_value x, jot_value w,
                                        const jot_conv_options *options)
{
    TRACE_RETURN(conv_general_dilated(x, w, options));
}

jot_value jot_conv_dims(jot_value x, jot_value w, const int64_t *strides, jot_padding padding)
{
    jot_conv_options options = {.strides = strides, .padding = padding};
    return trace_own("jot_conv", jot_conv_general_dilated_with(x, w, &options));
}

// ---------------------------------------------------------------------------------------
// Transposed

// Zeros around x for a kernel of k, dilated, spread by s: so that a convolution by s would go from
// the result to x.
static void transposed_padding(jot_padding padding, int64_t k, int64_t s, int64_t *low,
                               int64_t *high)
{
    int64_t total = k + s - 2, more = k > s ? k - s : 0;
    if (padding == JOT_PADDING_VALID) {
        *low = k - 1;
        *high = total + more - *low;
    } else {
        *low = s > k - 1 ? k - 1 : (total + 1) / 2;
        *high = total - *low;
    }
}

// w reversed along its spatial axes.
static jot_value reversed(const struct convolution *c)
{
    struct ir_builder *b = trace_builder();
    int64_t axes[IR_MAX_RANK];
    int n = 0;
    for (int i = 0; i < c->n_spatial + 2; i++)
        if (i != c->w_axes[0] && i != c->w_axes[1])
            axes[n++] = i;
    return trace_like(c->name, c->v[1], ir_rev(b, trace_kept(c->v[1]), n, axes));
}

static void exchange_letters(const char *w, char *out)
{
    size_t i = 0;
    for (; w[i] && i < IR_MAX_RANK; i++)
        out[i] = w[i];
    out[i] = 0;
    for (i = 0; out[i]; i++)
        out[i] = out[i] == 'O' ? 'I' : out[i] == 'I' ? 'O' : out[i];
}

static jot_value conv_transpose(jot_value x, jot_value w, const jot_conv_options *given)
{
    const char *name = "jot_conv_transpose";
    struct convolution c;
    struct trace_promoted p;
    jot_value error;
    char letters[IR_MAX_RANK + 1];
    jot_conv_options o = given ? *given : no_options;
    if (o.lhs_dilation)
        return trace_fail(name, JOT_ERR_ARGUMENT, "lhs_dilation is what strides are here");
    if (o.padding && (o.low || o.high))
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "both a kind of padding and low and high: one of them");
    if (!trace_ready(name, 1, &w, &error))
        return error;
    int rank = trace_type(w).rank;
    if (o.transpose_kernel && (o.w || (rank >= 2 && rank <= 5))) {
        exchange_letters(o.w ? o.w : default_letters[rank - 2][1][1], letters);
        o.w = letters;
    }
    jot_padding padding = o.padding;
    o.padding = JOT_PADDING_VALID;
    if (!open_convolution(name, x, w, &o, true, &c, &p, &error))
        return error;
    if (o.transpose_kernel)
        c.v[1] = reversed(&c);
    for (int i = 0; i < c.n_spatial; i++) {
        int64_t size = dims_of(&c, 1)[c.w_axes[2 + i]];
        int64_t span = size ? (size - 1) * c.rhs_dilation[i] + 1 : 0;
        c.lhs_dilation[i] = c.stride[i];
        if (!c.is_padded)
            transposed_padding(padding, span, c.stride[i], &c.low[i], &c.high[i]);
        c.stride[i] = 1;
    }
    return trace_is_error(c.v[1]) ? c.v[1] : convolve(&c, &p);
}

jot_value jot_conv_transpose_with(jot_value x, jot_value w, const jot_conv_options *options)
{
    TRACE_RETURN(conv_transpose(x, w, options));
}

// ---------------------------------------------------------------------------------------
// Patches

// Roles and options of a convolution of x with a filter of these extents.
static bool read_patches(struct convolution *c, const jot_conv_options *o, jot_value *error)
{
    char spatial[IR_MAX_RANK + 1];
    int rank = trace_type(c->v[0]).rank;
    c->n_spatial = rank - 2;
    if (rank < 2 || (rank > 5 && !o->x)) {
        *error = trace_fail(c->name, JOT_ERR_SHAPE,
                            "%s: it has a batch, features, and up to 3 spatial axes",
                            trace_type_text(c->v[0]));
        return false;
    }
    const char *x = o->x ? o->x : default_letters[rank - 2][0][0];
    spatial_letters(x, 'N', 'C', spatial);
    return read_letters(c, "x", x, c->v[0], 'N', 'C', spatial, c->x_axes, error) &&
           read_letters(c, "out", o->out ? o->out : x, c->v[0], 'N', 'C', spatial, c->out_axes,
                        error) &&
           read_lists(c, o, error);
}

static jot_value patches(jot_value x, const int64_t *filter, const jot_conv_options *given)
{
    struct convolution c = {.name = "jot_conv_general_dilated_patches", .v = {x}};
    const jot_conv_options *o = given ? given : &no_options;
    struct ir_axis_window w[IR_MAX_RANK];
    int64_t sizes[IR_MAX_RANK], dims[IR_MAX_RANK], axes[IR_MAX_RANK], back[IR_MAX_RANK];
    jot_value error;
    if (!trace_ready(c.name, 1, c.v, &error) || !read_patches(&c, o, &error) ||
        !trace_window_list(c.name, "the filter", filter, c.n_spatial, "spatial axes", 1, 1,
                           sizes, &error))
        return error;
    struct ir_builder *b = trace_builder();
    dims[0] = dims_of(&c, 0)[c.x_axes[0]];
    dims[1] = dims_of(&c, 0)[c.x_axes[1]];
    for (int i = 0; i < c.n_spatial + 2; i++) {
        int k = i - 2, axis = (int)c.x_axes[i];
        axes[i] = axis;
        back[c.out_axes[i]] = i;
        w[i] = (struct ir_axis_window){1, 1, 0, 0, 1, 1, dims_of(&c, 0)[axis]};
        if (i < 2)
            continue;
        w[i] = (struct ir_axis_window){.size = sizes[k],
                                       .stride = c.stride[k],
                                       .low = c.low[k],
                                       .high = c.high[k],
                                       .base = c.lhs_dilation[k],
                                       .dilation = c.rhs_dilation[k]};
        if (!trace_window_choose(c.name, c.v[0], axis, dims_of(&c, 0)[axis], c.padding,
                                 c.is_padded, &w[i], &error))
            return error;
        dims[1] *= sizes[k];
        dims[i] = w[i].count;
    }
    ir_id y = ir_windows(b, ir_transpose(b, trace_kept(c.v[0]), axes), IR_NONE, w, 2);
    return trace_like(c.name, c.v[0],
                      ir_transpose(b, ir_reshape(b, y, c.n_spatial + 2, dims), back));
}

jot_value jot_conv_general_dilated_patches_with(jot_value x, const int64_t *filter,
                                                const jot_conv_options *options)
{
    TRACE_RETURN(patches(x, filter, options));
}
