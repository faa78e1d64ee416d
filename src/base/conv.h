// SPDX-License-Identifier: Apache-2.0
// Convolutions: the three operations that come of one product,
//
//     T(x, w, y) = sum over n, g, c, o, p, k of
//                  x[n, g c, p stride + k dilation - low] w[g o, c, k] y[n, g o, p]
//
// T is linear in each of the three; an operation is its derivative in one, given the other two in the
// order x, w, y.  y is what is called the convolution of x by w, and the derivatives of each are the
// other ones.  Groups are blocks of the features of x and y, and of the axis of w that is the features
// of y.
#ifndef BASE_CONV_H
#define BASE_CONV_H

#include "jot/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum conv_part { CONV_X, CONV_W, CONV_Y, CONV_PARTS };

// x and y, and w, with the spatial axes as p and k:
enum conv_layout {
    CONV_FEATURES_FIRST, // [n, c, p..], [o, c, k..]
    CONV_FEATURES_LAST,  // [n, p.., c], [k.., c, o]
    CONV_FILTERS_FIRST,  // [n, p.., c], [o, k.., c]
    CONV_LAYOUTS
};

// Axes of a part with n spatial ones: features, of w those of y; those of w that are features of x;
// the first of the spatial ones.
static inline int conv_features(enum conv_layout layout, int n, enum conv_part part)
{
    if (part == CONV_W)
        return layout == CONV_FEATURES_LAST ? n + 1 : 0;
    return layout == CONV_FEATURES_FIRST ? 1 : n + 1;
}
static inline int conv_in(enum conv_layout layout, int n)
{
    return layout == CONV_FEATURES_FIRST ? 1 : layout == CONV_FEATURES_LAST ? n : n + 1;
}
static inline int conv_spatial(enum conv_layout layout, enum conv_part part)
{
    if (layout == CONV_FEATURES_FIRST)
        return 2;
    return part == CONV_W && layout == CONV_FEATURES_LAST ? 0 : 1;
}

// Of the two operands of what gives the part.
static inline enum conv_part conv_operand(enum conv_part part, int i)
{
    if (i == 0)
        return part == CONV_X ? CONV_W : CONV_X;
    return part == CONV_Y ? CONV_W : CONV_Y;
}

// What the routine conv is told: floats, with the same padding on both sides, and no empty part.
#define CONV_AXES_MOST 3
enum conv_list { CONV_STRIDES, CONV_PADDING, CONV_DILATION, CONV_LISTS };
struct conv_call {
    jot_dtype dtype;
    enum conv_part part; // the result
    enum conv_layout layout;
    int precision, n; // an rt_precision; spatial axes
    int64_t groups;
    int64_t lists[CONV_LISTS][CONV_AXES_MOST]; // by spatial axis
    int64_t dims[CONV_PARTS][CONV_AXES_MOST + 2];
};
#define CONV_PARAMS_MOST (7 + CONV_LISTS * CONV_AXES_MOST + CONV_PARTS * (CONV_AXES_MOST + 2))
// As params of a routine, which begin with the dtype and 1; how many.
uint32_t conv_call_write(const struct conv_call *c, int64_t *params);
// False for what is not written so, and for extents that do not belong together.
bool conv_call_read(const int64_t *params, uint32_t count, struct conv_call *out);

#endif
