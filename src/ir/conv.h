// SPDX-License-Identifier: Apache-2.0
// Convolutions: the three operations that come of one product,
//
//     T(x, w, y) = sum over n, g, c, o, p, k of
//                  x[n, g c, p stride + k rhs_dilation - low] w[g o, c, k] y[n, g o, p]
//
// where zeros spread the elements of x by lhs_dilation.  T is linear in each of the three, and a
// node is its derivative in one, given the other two in the order x, w, y: y is what is called the
// convolution of x by w, and the derivatives of each are the other ones.  Groups are blocks of the
// features of x and y, and of the axis of w that is the features of y.
#ifndef IR_CONV_H
#define IR_CONV_H

#include "ir/windows.h"

enum ir_conv_part { IR_CONV_X, IR_CONV_W, IR_CONV_Y, IR_CONV_PARTS };

struct ir_conv {
    enum ir_conv_part part; // the result
    // x and y [n, places.., features], w [k.., c, o]; else [n, features, places..], [o, c, k..].
    bool features_last;
    int n; // spatial axes
    int precision;
    int64_t groups;
    // Of each spatial axis; sizes are those of the result if it is x or w: no operand tells them.
    const int64_t *strides, *low, *high, *lhs_dilation, *rhs_dilation, *sizes;
};
struct ir_conv ir_conv_of(const struct ir_attrs *attrs);
const struct ir_attrs *ir_conv_attrs(struct ir_module *m, const struct ir_conv *c);
ir_id ir_conv(struct ir_builder *b, ir_id first, ir_id second, const struct ir_conv *c);

// Of the two operands.
static inline enum ir_conv_part ir_conv_operand(const struct ir_conv *c, int i)
{
    return i == 0 ? (c->part == IR_CONV_X ? IR_CONV_W : IR_CONV_X)
                  : (c->part == IR_CONV_Y ? IR_CONV_W : IR_CONV_Y);
}
// Axes of a part: features, of w those of y; those of w that are features of x; the first of
// the spatial ones.
static inline int ir_conv_features(const struct ir_conv *c, enum ir_conv_part part)
{
    return c->features_last ? c->n + 1 : part == IR_CONV_W ? 0 : 1;
}
static inline int ir_conv_in(const struct ir_conv *c) { return c->features_last ? c->n : 1; }
static inline int ir_conv_spatial(const struct ir_conv *c, enum ir_conv_part part)
{
    return !c->features_last ? 2 : part == IR_CONV_W ? 0 : 1;
}
// The windows along spatial axis i, of extents x and size; places is -1 where they have no number.
struct ir_axis_window ir_conv_window(const struct ir_conv *c, int i, int64_t x, int64_t size);

#endif
