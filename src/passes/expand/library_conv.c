// SPDX-License-Identifier: Apache-2.0
// Convolutions for a library, which wants the same padding on both sides, no zeros between elements, and
// a layout of its own:
//
//     y = conv x w {low=[0], high=[1], lhs_dilation=[2], ...}
// becomes
//     y = conv (pad x {low=[0], high=[1], interior=[1]}) w {low=[0], high=[0], lhs_dilation=[1], ...}
//
// and x of w and y is what the same padding, taken back, leaves of the other convolution's.
#include "passes/expand/conv.h"

#include "base/dtype.h"
#include "base/launch.h"

struct form {
    struct ir_builder *b;
    struct ir_conv c;    // of the library
    enum conv_layout of; // what was asked for
    bool pads;           // x
    int64_t one[CONV_AXES_MOST];
};

// ---- Padding of x

// By axis of x: what there is of spatial ones, else nothing.
static void spread_axes(const struct form *f, const int64_t *of_spatial, int64_t other,
                        int64_t *out)
{
    for (int i = 0; i < f->c.n + 2; i++)
        out[i] = other;
    for (int i = 0; of_spatial && i < f->c.n; i++)
        out[ir_conv_spatial(&f->c, CONV_X) + i] = of_spatial[i];
}

static ir_id zero_of(struct ir_builder *b, struct ir_type t)
{
    return ir_zeros(b, ir_type_make(b->module, ir_dtype(t), 0, NULL));
}

static ir_id padded(const struct form *f, const struct ir_conv *of, ir_id x)
{
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], interior[IR_MAX_RANK];
    spread_axes(f, of->low, 0, low);
    spread_axes(f, of->high, 0, high);
    spread_axes(f, of->lhs_dilation, 1, interior);
    for (int i = 0; i < f->c.n + 2; i++)
        interior[i]--;
    return ir_pad(f->b, x, zero_of(f->b, ir_type_in(f->b, x)), low, high, interior);
}

// The cotangent of x from that of padded x.
static ir_id unpadded(const struct form *f, const struct ir_conv *of, ir_id x)
{
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], none[IR_MAX_RANK], step[IR_MAX_RANK];
    struct ir_builder *b = f->b;
    spread_axes(f, of->low, 0, low);
    spread_axes(f, of->high, 0, high);
    spread_axes(f, NULL, 0, none);
    spread_axes(f, of->lhs_dilation, 1, step);
    for (int i = 0; i < f->c.n + 2; i++) {
        low[i] = -low[i];
        high[i] = -high[i];
    }
    x = ir_pad(b, x, zero_of(b, ir_type_in(b, x)), low, high, none);
    return ir_slice(b, x, none, ir_dims(b->module, ir_type_in(b, x)), step);
}

// ---- Order of axes

// Axis i of a part in layout `to` is axes[i] of it in layout `from`.
static void find_axes(int n, enum conv_part part, enum conv_layout from, enum conv_layout to,
                      int64_t *axes)
{
    // The batch, or of w the features of x; and the other features.
    int first[] = {part == CONV_W ? conv_in(from, n) : 0, part == CONV_W ? conv_in(to, n) : 0};
    axes[first[1]] = first[0];
    axes[conv_features(to, n, part)] = conv_features(from, n, part);
    for (int i = 0; i < n; i++)
        axes[conv_spatial(to, part) + i] = conv_spatial(from, part) + i;
}

static ir_id ordered(const struct form *f, ir_id x, enum conv_part part)
{
    int64_t axes[IR_MAX_RANK];
    find_axes(f->c.n, part, f->of, f->c.layout, axes);
    return ir_transpose(f->b, x, axes);
}

static ir_id ordered_back(const struct form *f, ir_id x, enum conv_part part)
{
    int64_t axes[IR_MAX_RANK];
    find_axes(f->c.n, part, f->c.layout, f->of, axes);
    return ir_transpose(f->b, x, axes);
}

// ---- The call

static struct form form_of(struct ir_builder *b, const struct ir_conv *c, bool is_features_last)
{
    struct form f = {.b = b, .c = *c, .of = c->layout};
    if (is_features_last)
        f.c.layout = CONV_FEATURES_LAST;
    else if (c->layout == CONV_FEATURES_LAST)
        f.c.layout = CONV_FILTERS_FIRST;
    for (int i = 0; i < c->n; i++) {
        f.one[i] = 1;
        f.pads |= c->low[i] != c->high[i] || c->low[i] < 0 || c->lhs_dilation[i] != 1;
    }
    return f;
}

// The call for operands and a result of the types before they are ordered and padded.
static struct conv_call call_of(const struct form *f, const struct ir_conv *c,
                                const struct ir_type *types)
{
    struct conv_call call = {.dtype = ir_dtype(types[0]),
                             .part = c->part,
                             .layout = f->c.layout,
                             .precision = c->precision,
                             .n = c->n,
                             .groups = c->groups};
    for (int part = 0; part < CONV_PARTS; part++) {
        int64_t axes[IR_MAX_RANK];
        find_axes(c->n, (enum conv_part)part, f->of, f->c.layout, axes);
        for (int i = 0; i < c->n + 2; i++)
            call.dims[part][i] = ir_dims(f->b->module, types[part])[axes[i]];
    }
    for (int i = 0; i < c->n; i++) {
        int64_t *x = &call.dims[CONV_X][ir_conv_spatial(&f->c, CONV_X) + i];
        call.lists[CONV_STRIDES][i] = c->strides[i];
        call.lists[CONV_PADDING][i] = f->pads ? 0 : c->low[i];
        call.lists[CONV_DILATION][i] = c->rhs_dilation[i];
        if (f->pads)
            *x = (*x - 1) * c->lhs_dilation[i] + 1 + c->low[i] + c->high[i];
    }
    return call;
}

// What the library is asked for, in no more than what it is told.
static bool is_asked(const struct pass_conv_library *library, const struct conv_call *c)
{
    int64_t params[CONV_PARAMS_MOST];
    struct conv_call read;
    uint32_t count = conv_call_write(c, params);
    return conv_call_read(params, count, &read) && library->takes(library->ctx, params, count);
}

ir_id conv_by_library(struct ir_builder *b, const struct pass_conv_library *library,
                      const struct ir_conv *c, struct ir_type t, const ir_id in[2])
{
    struct ir_type types[CONV_PARTS];
    bool is_wide = c->precision == RT_PRECISION_FULL || c->precision == RT_PRECISION_TF32;
    if (!dtype_is_float(ir_dtype(t)) || !is_wide || c->n < 1 || c->n > CONV_AXES_MOST)
        return IR_NONE;
    types[c->part] = t;
    for (int i = 0; i < 2; i++)
        types[ir_conv_operand(c, i)] = ir_type_in(b, in[i]);
    struct form f = form_of(b, c, library->is_features_last);
    const struct conv_call call = call_of(&f, c, types);
    if (!is_asked(library, &call))
        return IR_NONE;
    ir_id of[2];
    for (int i = 0; i < 2; i++) {
        enum conv_part part = ir_conv_operand(c, i);
        of[i] = ordered(&f, in[i], part);
        if (part == CONV_X && f.pads)
            of[i] = padded(&f, c, of[i]);
    }
    f.c.low = f.c.high = call.lists[CONV_PADDING];
    f.c.lhs_dilation = f.one;
    f.c.sizes = call.dims[c->part] + conv_spatial(call.layout, c->part);
    ir_id y = ir_conv(b, of[0], of[1], &f.c);
    if (c->part == CONV_X && f.pads)
        y = unpadded(&f, c, y);
    return ordered_back(&f, y, c->part);
}
