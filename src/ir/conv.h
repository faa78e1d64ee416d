// SPDX-License-Identifier: Apache-2.0
// Convolutions (base/conv.h), with padding of each side, and zeros that spread the elements of x by
// lhs_dilation; dilation is rhs_dilation.
#ifndef IR_CONV_H
#define IR_CONV_H

#include "base/conv.h"
#include "ir/windows.h"

struct ir_conv {
    enum conv_part part; // the result
    enum conv_layout layout;
    int n; // spatial axes
    int precision;
    int64_t groups;
    // Of each spatial axis; sizes are those of the result if it is x or w: no operand tells them.
    const int64_t *strides, *low, *high, *lhs_dilation, *rhs_dilation, *sizes;
};
struct ir_conv ir_conv_of(const struct ir_attrs *attrs);
const struct ir_attrs *ir_conv_attrs(struct ir_module *m, const struct ir_conv *c);
ir_id ir_conv(struct ir_builder *b, ir_id first, ir_id second, const struct ir_conv *c);

// The same as of base/conv.h.
static inline enum conv_part ir_conv_operand(const struct ir_conv *c, int i)
{
    return conv_operand(c->part, i);
}
static inline int ir_conv_features(const struct ir_conv *c, enum conv_part part)
{
    return conv_features(c->layout, c->n, part);
}
static inline int ir_conv_in(const struct ir_conv *c) { return conv_in(c->layout, c->n); }
static inline int ir_conv_spatial(const struct ir_conv *c, enum conv_part part)
{
    return conv_spatial(c->layout, part);
}
// The windows along spatial axis i, of extents x and size; count is -1 where they have no number.
struct ir_axis_window ir_conv_window(const struct ir_conv *c, int i, int64_t x, int64_t size);

#endif
