// SPDX-License-Identifier: Apache-2.0
#include "ir/conv.h"

struct ir_conv ir_conv_of(const struct ir_attrs *attrs)
{
    struct ir_conv c = {.part = (enum conv_part)ir_attr_int(attrs, IR_KEY_mode),
                        .layout = (enum conv_layout)ir_attr_int_or(attrs, IR_KEY_layout, 0),
                        .precision = (int)ir_attr_int_or(attrs, IR_KEY_precision, 0),
                        .groups = ir_attr_int_or(attrs, IR_KEY_groups, 1)};
    int n;
    c.strides = ir_attr_ints(attrs, IR_KEY_strides, &c.n);
    c.low = ir_attr_ints(attrs, IR_KEY_low, &n);
    c.high = ir_attr_ints(attrs, IR_KEY_high, &n);
    c.lhs_dilation = ir_attr_ints(attrs, IR_KEY_lhs_dilation, &n);
    c.rhs_dilation = ir_attr_ints(attrs, IR_KEY_rhs_dilation, &n);
    c.sizes = ir_attr_ints(attrs, IR_KEY_sizes, &n);
    return c;
}

const struct ir_attrs *ir_conv_attrs(struct ir_module *m, const struct ir_conv *c)
{
    int n = c->n;
    return ir_attrs(m, IR_INT(mode, c->part), IR_INT(layout, c->layout),
                    IR_INT(precision, c->precision), IR_INT(groups, c->groups),
                    IR_INTS(strides, n, c->strides), IR_INTS(low, n, c->low),
                    IR_INTS(high, n, c->high), IR_INTS(lhs_dilation, n, c->lhs_dilation),
                    IR_INTS(rhs_dilation, n, c->rhs_dilation),
                    IR_INTS(sizes, c->part == CONV_Y ? 0 : n, c->sizes));
}

ir_id ir_conv(struct ir_builder *b, ir_id first, ir_id second, const struct ir_conv *c)
{
    ir_id in[] = {first, second};
    return ir_build(b, IR_conv, 2, in, ir_conv_attrs(b->module, c));
}

struct ir_axis_window ir_conv_window(const struct ir_conv *c, int i, int64_t x, int64_t size)
{
    struct ir_axis_window w = {.size = size,
                               .stride = c->strides[i],
                               .low = c->low[i],
                               .high = c->high[i],
                               .base = c->lhs_dilation[i],
                               .dilation = c->rhs_dilation[i]};
    int64_t span, padded;
    if (__builtin_mul_overflow(size ? size - 1 : 0, w.dilation, &span) ||
        __builtin_mul_overflow(x ? x - 1 : 0, w.base, &padded) ||
        __builtin_add_overflow(padded, (x != 0) + w.low + w.high, &padded)) {
        w.count = -1;
        return w;
    }
    span += size != 0;
    w.count = padded < span ? 0 : (padded - span) / w.stride + 1;
    return w;
}
