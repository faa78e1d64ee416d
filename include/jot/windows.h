// SPDX-License-Identifier: Apache-2.0
// Windows: reductions over them, pooling, convolution, padding by what is inside, interpolation.
//
//     jot_value y = jot_conv_general_dilated(x, w, .padding = JOT_PADDING_SAME,
//                                            .x = "NHWC", .w = "HWIO", .out = "NHWC");
//     jot_value z = jot_max_pool(y, .window = JOT_DIMS(1, 2, 2, 1));
//
// Names, values and derivatives are those of jax.lax and jax.numpy.  Lists of the options are
// JOT_DIMS(...), one number for each axis; a list that is left out is 1 (low, high: 0) for all.
// Options need C; in C++ the functions _with take a pointer to them.  All of it is made of other
// operations, so that it maps, differentiates and fuses as they do; convolutions that are worth it
// are products of matrices.
#ifndef JOT_WINDOWS_H
#define JOT_WINDOWS_H

#include "jot/ops.h"
#include "jot/products.h"
#include "jot/transform.h"

#include <stdbool.h>

JOT_BEGIN_C

// How much is put around what windows move over, beside `low` and `high`.
typedef enum jot_padding {
    JOT_PADDING_VALID, // nothing
    JOT_PADDING_SAME,  // so much that there are ceil(extent / stride) windows; the odd one high
    JOT_PADDING_SAME_LOWER, // the odd one low
} jot_padding;

// ---- Reductions over windows ----

// What is computed of the elements in a window.
typedef enum jot_window_kind {
    JOT_WINDOW_SUM,
    JOT_WINDOW_PROD,
    JOT_WINDOW_MAX,
    JOT_WINDOW_MIN,
} jot_window_kind;

// Windows on x, with a number for each axis of x.  The window at position o has the elements
// o strides + k window_dilation, k < window, of x with base_dilation - 1 neutral elements between its
// own and low and high of them before and after (negative: cut off).
typedef struct jot_window_options {
    const int64_t *window; // required
    const int64_t *strides;
    const int64_t *low, *high;
    const int64_t *base_dilation, *window_dilation;
    jot_padding padding;    // not with low and high
    bool leave_out_padding; // of jot_avg_pool: divide by the elements of x that a window has
    size_t size;            // of this struct, set by the macro; 0 is this version
} jot_window_options;

// lax.reduce_window: the sum, product, maximum or minimum of each window, of the dtype of x.  The
// derivative of an extremum goes to the first element that has it.  JOT_ERR_SHAPE where no window fits.
JOT_API jot_value jot_reduce_window_with(jot_value x, jot_window_kind kind,
                                         const jot_window_options *options);

// lax.reduce_window by a function: the n values x, of one shape, become the combinations of their
// windows.  combine takes a number of each, twice, and gives one of each, of the same types; it must be
// associative, and init, what padding consists of, must be neutral.  Neighbours are combined first, in
// log2 rounds for all elements of a window.
JOT_API void jot_reduce_window_tree(jot_function combine, size_t n, jot_value *x,
                                    const jot_value *init, const jot_window_options *options,
                                    const char *where);
JOT_API jot_value jot_reduce_window_by_with(jot_function combine, jot_value x, jot_value init,
                                            const jot_window_options *options,
                                            const char *where);

// The largest, smallest and mean element of windows; strides that are left out are the window.
JOT_API jot_value jot_max_pool_with(jot_value x, const jot_window_options *options);
JOT_API jot_value jot_min_pool_with(jot_value x, const jot_window_options *options);
JOT_API jot_value jot_avg_pool_with(jot_value x, const jot_window_options *options);

// lax's select_and_gather_add: from each window of y the element that is first to be the largest (MAX)
// or smallest (MIN) in the window of x.
JOT_API jot_value jot_select_and_gather_add_with(jot_value y, jot_value x, jot_window_kind kind,
                                                 const jot_window_options *options);

// Its transpose, lax's select_and_scatter_add: of the shape of x, each element of source, one a window,
// added at that element.  Floating.
JOT_API jot_value jot_select_and_scatter_add_with(jot_value source, jot_value x,
                                                  jot_window_kind kind,
                                                  const jot_window_options *options);

// ---- Convolution ----

// A number for each spatial axis, in the order of the letters of w.  Axes are named by letters: of x
// and out N (batch), C (features), of w O and I (features out and in); any others are spatial, the same
// in all three.  Default: "NCHW", "OIHW", "NCHW" (one letter less for one spatial axis, D for three).
typedef struct jot_conv_options {
    const int64_t *strides;
    const int64_t *low, *high;                  // zeros before and after x; negative: cut off
    const int64_t *lhs_dilation, *rhs_dilation; // zeros between elements of x and of w, and 1
    const char *x, *w, *out;
    jot_padding padding;         // not with low and high, nor with lhs_dilation
    int64_t feature_group_count; // 0 is 1
    int64_t batch_group_count;   // 0 is 1
    jot_precision precision;
    bool transpose_kernel; // of jot_conv_transpose
    size_t size;           // of this struct, set by the macro; 0 is this version
} jot_conv_options;

// lax.conv_general_dilated: out[n, o, p] = sum_{i, k} x[n, i, p strides + k rhs_dilation] w[o, i, k].
// With feature groups the features of x and out are so many parts, each with its own part of w; with
// batch groups the batch of x is.
JOT_API jot_value jot_conv_general_dilated_with(jot_value x, jot_value w,
                                                const jot_conv_options *options);

// lax.conv: with strides and a padding, images before features.
JOT_API jot_value jot_conv_dims(jot_value x, jot_value w, const int64_t *strides,
                                jot_padding padding);

// lax.conv_transpose: the convolution with x spread by the strides, padded so that SAME and VALID give
// the shapes that the gradient of a convolution with these strides has.  Defaults "NHWC",
// "HWIO", "NHWC". transpose_kernel: w reversed, and I and O exchanged: the gradient itself.
JOT_API jot_value jot_conv_transpose_with(jot_value x, jot_value w,
                                          const jot_conv_options *options);

// lax.conv_general_dilated_patches: the windows of x in the axis of features, of which there are so
// many times as the filter of these extents has elements.  Letters and options as above, w left out.
JOT_API jot_value jot_conv_general_dilated_patches_with(jot_value x, const int64_t *filter,
                                                        const jot_conv_options *options);

// Which part of a convolution is computed.
typedef enum jot_convolve_mode { JOT_FULL, JOT_SAME, JOT_VALID } jot_convolve_mode;

// numpy.convolve and numpy.correlate of vectors: sum_k x[n - k] y[k], and sum_k x[n + k] conj(y[k]).
// FULL: all overlaps; SAME: as many as the longer has, from the middle; VALID: the whole ones.
JOT_API jot_value jot_convolve(jot_value x, jot_value y, jot_convolve_mode mode);
JOT_API jot_value jot_correlate(jot_value x, jot_value y, jot_convolve_mode mode);

// ---- Padding ----

// numpy.pad along one axis, its mode by its name there.
typedef enum jot_pad_mode {
    JOT_PAD_EDGE,        // the first and last element
    JOT_PAD_REFLECT,     // mirrored at the first and last element: d c b | a b c d | c b a
    JOT_PAD_SYMMETRIC,   // mirrored with them: c b a | a b c d | d c b
    JOT_PAD_WRAP,        // from the other end
    JOT_PAD_LINEAR_RAMP, // in equal steps from the edge to 0
    JOT_PAD_MAXIMUM,     // of the axis; also for
    JOT_PAD_MINIMUM,
    JOT_PAD_MEAN,  // integers: rounded to the nearest, ties to even
    JOT_PAD_EMPTY, // zeros: nothing is left undefined
} jot_pad_mode;

// x with low elements before and high after it along the axis.
JOT_API jot_value jot_pad_with_mode(jot_value x, jot_pad_mode mode, int axis, int64_t low,
                                    int64_t high);

// ---- Interpolation ----

// The piecewise linear function through (xp[i], fp[i]) at x, constant outside.  xp increases.
JOT_API jot_value jot_interp(jot_value x, jot_value xp, jot_value fp);

// What lies outside of a grid a b c d.
enum jot_border_mode {
    JOT_BORDER_CONSTANT, // one number
    JOT_BORDER_NEAREST,  // a a | a b c d | d d
    JOT_BORDER_WRAP,     // c d | a b c d | a b
    JOT_BORDER_MIRROR,   // c b | a b c d | c b
    JOT_BORDER_REFLECT   // b a | a b c d | d c
};

// scipy.ndimage.map_coordinates: x, of r axes, at coordinates[r, ...], an index along each axis that need be no whole
// number.  Of order 0 the nearest point, ties away from 0, of order 1 linear between the points beside it along each
// axis.  The type is that of x; integers round.  `outside` is for JOT_BORDER_CONSTANT.  Fails with JOT_ERR_ARGUMENT of
// another order or mode, with JOT_ERR_SHAPE of other coordinates, an empty x, or more than 8 axes of order 1.
JOT_API jot_value jot_map_coordinates(jot_value x, jot_value coordinates, int order,
                                      enum jot_border_mode mode, double outside);

// How an image is interpolated.
typedef enum jot_resize_method {
    JOT_RESIZE_NEAREST,
    JOT_RESIZE_LINEAR,
    JOT_RESIZE_CUBIC, // Keys, a = -0.5
    JOT_RESIZE_LANCZOS3,
    JOT_RESIZE_LANCZOS5,
} jot_resize_method;

// jax.image.resize: x with other extents, by the separable kernel, centres of pixels at i + 1/2, with
// antialiasing where it shrinks.
JOT_API jot_value jot_image_resize_dims(jot_value x, jot_resize_method method,
                                        const int64_t *dims);

// jax.image.scale_and_translate: the listed axes of x get the extents in dims (one number for each axis
// of x), out(i) = x((i - translation) / scale), zero outside.  scale and translation have a number for
// each listed axis.  Weights are of their precision, and of f64 where x is.
JOT_API jot_value jot_image_scale_and_translate(jot_value x, const int64_t *dims,
                                                const int *axes, jot_value scale,
                                                jot_value translation, jot_resize_method method,
                                                bool antialias);

// 1 of the dtype where the last axis, of n elements, is at x, and 0 elsewhere.
JOT_API jot_value jot_one_hot(jot_value x, int64_t n, jot_dtype dtype);

JOT_END_C

#if !defined(JOT_PLAIN)

// A list of sizes for an option.
#define JOT_DIMS(...) JOT_DIMS_(__VA_ARGS__, JOT_END)

// clang-format off
#if !defined(__cplusplus)
#define JOT_WINDOW_(name, ...)                                                                 \
    JOT_OPTIONS_(jot_window_options, name " takes options behind, .window = JOT_DIMS(...), .strides = ...", __VA_ARGS__, \
                 .size = sizeof(jot_window_options))
#define JOT_CONV_(name, ...)                                                                   \
    JOT_OPTIONS_(jot_conv_options, name " takes (x, w, .strides = JOT_DIMS(...), .padding = ...)", \
                 JOT_REST_(__VA_ARGS__, .size = sizeof(jot_conv_options)))

#define jot_reduce_window(x, kind, ...)                                                        \
    JOT_OP_("jot_reduce_window(" #x ", " #kind ", " #__VA_ARGS__ ")",                          \
            jot_reduce_window_with(JOT_VALUE_("jot_reduce_window", x), kind, JOT_WINDOW_("jot_reduce_window", __VA_ARGS__)))
#define jot_reduce_window_by(combine, x, init, ...)                                            \
    jot_reduce_window_by_with(JOT_A_FUNCTION_("jot_reduce_window_by", combine), JOT_VALUE_("jot_reduce_window_by", x), JOT_VALUE_("jot_reduce_window_by", init), JOT_WINDOW_("jot_reduce_window_by", __VA_ARGS__),      \
                              JOT_HERE ": jot_reduce_window_by(" #combine ", " #x ")")
#define jot_max_pool(x, ...)                                                                   \
    JOT_OP_("jot_max_pool(" #x ", " #__VA_ARGS__ ")",                                          \
            jot_max_pool_with(JOT_VALUE_("jot_max_pool", x), JOT_WINDOW_("jot_max_pool", __VA_ARGS__)))
#define jot_min_pool(x, ...)                                                                   \
    JOT_OP_("jot_min_pool(" #x ", " #__VA_ARGS__ ")",                                          \
            jot_min_pool_with(JOT_VALUE_("jot_min_pool", x), JOT_WINDOW_("jot_min_pool", __VA_ARGS__)))
#define jot_avg_pool(x, ...)                                                                   \
    JOT_OP_("jot_avg_pool(" #x ", " #__VA_ARGS__ ")",                                          \
            jot_avg_pool_with(JOT_VALUE_("jot_avg_pool", x), JOT_WINDOW_("jot_avg_pool", __VA_ARGS__)))
#define jot_select_and_gather_add(y, x, kind, ...)                                             \
    JOT_OP_("jot_select_and_gather_add(" #y ", " #x ", " #kind ", " #__VA_ARGS__ ")",          \
            jot_select_and_gather_add_with(JOT_VALUE_("jot_select_and_gather_add", y), JOT_VALUE_("jot_select_and_gather_add", x), kind,                         \
                                           JOT_WINDOW_("jot_select_and_gather_add", __VA_ARGS__)))
#define jot_select_and_scatter_add(source, x, kind, ...)                                       \
    JOT_OP_("jot_select_and_scatter_add(" #source ", " #x ", " #kind ", " #__VA_ARGS__ ")",    \
            jot_select_and_scatter_add_with(JOT_VALUE_("jot_select_and_scatter_add", source), JOT_VALUE_("jot_select_and_scatter_add", x), kind,                   \
                                            JOT_WINDOW_("jot_select_and_scatter_add", __VA_ARGS__)))
// jot_conv_general_dilated(x, w) or with options.
#define jot_conv_general_dilated(x, ...)                                                       \
    JOT_OP_("jot_conv_general_dilated(" #x ", " #__VA_ARGS__ ")",                              \
            jot_conv_general_dilated_with(JOT_VALUE_("jot_conv_general_dilated", x), JOT_VALUE_("jot_conv_general_dilated", JOT_FIRST_(__VA_ARGS__, 0)),         \
                                          JOT_CONV_("jot_conv_general_dilated", __VA_ARGS__)))
#define jot_conv_transpose(x, ...)                                                             \
    JOT_OP_("jot_conv_transpose(" #x ", " #__VA_ARGS__ ")",                                    \
            jot_conv_transpose_with(JOT_VALUE_("jot_conv_transpose", x), JOT_VALUE_("jot_conv_transpose", JOT_FIRST_(__VA_ARGS__, 0)),               \
                                    JOT_CONV_("jot_conv_transpose", __VA_ARGS__)))
// jot_conv_general_dilated_patches(x, JOT_DIMS(3, 3)) or with options.
#define jot_conv_general_dilated_patches(x, ...)                                               \
    JOT_OP_("jot_conv_general_dilated_patches(" #x ", " #__VA_ARGS__ ")",                      \
            jot_conv_general_dilated_patches_with(JOT_VALUE_("jot_conv_general_dilated_patches", x), JOT_FIRST_(__VA_ARGS__, 0),        \
                                                  JOT_CONV_("jot_conv_general_dilated_patches", __VA_ARGS__)))
#endif

// jot_conv(x, w, JOT_DIMS(1, 1), JOT_PADDING_SAME)
#define jot_conv(x, w, strides, padding)                                                       \
    JOT_OP_("jot_conv(" #x ", " #w ", " #strides ", " #padding ")",                            \
            jot_conv_dims(JOT_VALUE_("jot_conv", x), JOT_VALUE_("jot_conv", w), strides, padding))
#define jot_convolve(x, y, mode)                                                               \
    JOT_OP_("jot_convolve(" #x ", " #y ", " #mode ")",                                         \
            jot_convolve(JOT_VALUE_("jot_convolve", x), JOT_VALUE_("jot_convolve", y), mode))
#define jot_correlate(x, y, mode)                                                              \
    JOT_OP_("jot_correlate(" #x ", " #y ", " #mode ")",                                        \
            jot_correlate(JOT_VALUE_("jot_correlate", x), JOT_VALUE_("jot_correlate", y), mode))
#define jot_pad_with_mode(x, mode, axis, low, high)                                            \
    JOT_OP_("jot_pad_with_mode(" #x ", " #mode ", " #axis ", " #low ", " #high ")",            \
            jot_pad_with_mode(JOT_VALUE_("jot_pad_with_mode", x), mode, axis, low, high))
#define jot_map_coordinates(x, coordinates, order, mode, outside)                              \
    JOT_OP_("jot_map_coordinates(" #x ", " #coordinates ", " #order ", " #mode ", " #outside ")", \
            jot_map_coordinates(JOT_VALUE_("jot_map_coordinates", x), JOT_VALUE_("jot_map_coordinates", coordinates), order, mode, outside))
#define jot_interp(x, xp, fp) JOT_OP3_(jot_interp, #x ", " #xp ", " #fp, x, xp, fp)
// jot_image_resize(x, method, sizes...)
#define jot_image_resize(x, method, ...)                                                       \
    JOT_OP_("jot_image_resize(" #x ", " #method ", " #__VA_ARGS__ ")",                         \
            jot_image_resize_dims(JOT_VALUE_("jot_image_resize", x), method, JOT_DIMS(__VA_ARGS__)))
#define jot_image_scale_and_translate(x, dims, axes, scale, translation, method, antialias)    \
    JOT_OP_("jot_image_scale_and_translate(" #x ", ...)",                                      \
            jot_image_scale_and_translate(JOT_VALUE_("jot_image_scale_and_translate", x), dims, axes, JOT_VALUE_("jot_image_scale_and_translate", scale),              \
                                          JOT_VALUE_("jot_image_scale_and_translate", translation), method, JOT_TRUTH_("jot_image_scale_and_translate", antialias)))
#define jot_one_hot(x, n, dtype)                                                               \
    JOT_OP_("jot_one_hot(" #x ", " #n ", " #dtype ")", jot_one_hot(JOT_VALUE_("jot_one_hot", x), n, dtype))
// clang-format on

#endif // JOT_PLAIN

#endif
