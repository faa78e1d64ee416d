// SPDX-License-Identifier: Apache-2.0
// Nodes that are sums of products: products, convolutions and Fourier transforms.
#include "interop/from_graph.h"

#include "base/dtype.h"
#include "base/fft.h"
#include "ir/conv.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// How exact products are: true f32, or TF32 and what is less, which are for the device to choose.
static void add_precision(struct hlo_writer *w, struct hlo_attrs *a, jot_dtype d, int precision)
{
    static const char *const words[] = {"HIGHEST", "DEFAULT", "DEFAULT", "HIGH"};
    const struct mlir_attr *parts[2], *word;
    if (d != JOT_F32 && d != JOT_C64)
        return;
    word = hlo_attr(w, (struct mlir_attr){.kind = MLIR_ENUM, .text = words[precision]});
    parts[0] = parts[1] = word;
    hlo_add(
        a, "precision_config",
        hlo_attr(w, (struct mlir_attr){.kind = MLIR_ARRAY,
                                       .n = 2,
                                       .parts = arena_copy(w->arena, parts, sizeof parts)}));
}

static void write_dot(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    const struct ir_attrs *attrs = n->n->attrs;
    static const struct {
        const char *name;
        enum ir_key key;
    } lists[] = {{"lhs_batching_dimensions", IR_KEY_lhs_batch},
                 {"rhs_batching_dimensions", IR_KEY_rhs_batch},
                 {"lhs_contracting_dimensions", IR_KEY_lhs_contract},
                 {"rhs_contracting_dimensions", IR_KEY_rhs_contract}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int count;
        const int64_t *axes = ir_attr_ints(attrs, lists[i].key, &count);
        hlo_ints(w, &a, lists[i].name, count, axes);
    }
    add_precision(w, &a, hlo_dtype(n->in[0]), (int)ir_attr_int_or(attrs, IR_KEY_precision, 0));
    n->out[0] = hlo_op(w, HLO_(dot_general), n->type, 2, n->in, &a);
}

// ---- convolutions ----

// The axes of a part in a convolution of StableHLO.
struct part_axes {
    int64_t batch, feature, spatial[IR_MAX_RANK];
};

static struct part_axes axes_of(const struct ir_conv *c, enum conv_part part)
{
    struct part_axes p = {.batch = part == CONV_W ? ir_conv_in(c) : 0,
                          .feature = ir_conv_features(c, part)};
    for (int k = 0; k < c->n; k++)
        p.spatial[k] = ir_conv_spatial(c, part) + k;
    return p;
}

struct convolution {
    struct part_axes in, kernel,
        out; // of a kernel `feature` is what comes out, `batch` what goes in
    int64_t stride[IR_MAX_RANK], padding[2 * IR_MAX_RANK];
    int64_t base[IR_MAX_RANK], dilation[IR_MAX_RANK], reversal[IR_MAX_RANK];
    int64_t groups, batch_groups;
};

static hlo_value convolve(struct hlo_node *n, const struct ir_conv *c,
                          const struct convolution *v, hlo_value x, hlo_value kernel)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    hlo_int(w, &a, "input_batch_dimension", v->in.batch);
    hlo_int(w, &a, "input_feature_dimension", v->in.feature);
    hlo_ints(w, &a, "input_spatial_dimensions", c->n, v->in.spatial);
    hlo_int(w, &a, "kernel_input_feature_dimension", v->kernel.batch);
    hlo_int(w, &a, "kernel_output_feature_dimension", v->kernel.feature);
    hlo_ints(w, &a, "kernel_spatial_dimensions", c->n, v->kernel.spatial);
    hlo_int(w, &a, "output_batch_dimension", v->out.batch);
    hlo_int(w, &a, "output_feature_dimension", v->out.feature);
    hlo_ints(w, &a, "output_spatial_dimensions", c->n, v->out.spatial);
    hlo_ints(w, &a, "window_strides", c->n, v->stride);
    hlo_ints(w, &a, "padding", 2 * c->n, v->padding);
    hlo_ints(w, &a, "lhs_dilation", c->n, v->base);
    hlo_ints(w, &a, "rhs_dilation", c->n, v->dilation);
    bool is_reversed = false;
    for (int k = 0; k < c->n; k++)
        is_reversed = is_reversed || v->reversal[k];
    if (is_reversed)
        hlo_ints(w, &a, "window_reversal", c->n, v->reversal);
    hlo_int(w, &a, "feature_group_count", v->groups);
    hlo_int(w, &a, "batch_group_count", v->batch_groups);
    add_precision(w, &a, hlo_dtype(x), c->precision);
    return hlo_op(w, HLO_(convolution), n->type, 2, (hlo_value[]){x, kernel}, &a);
}

static int64_t spread_extent(int64_t extent, int64_t by)
{
    return extent ? (extent - 1) * by + 1 : 0;
}

// y of x and w.
static hlo_value forward(struct hlo_node *n, const struct ir_conv *c)
{
    struct convolution v = {.in = axes_of(c, CONV_X),
                            .kernel = axes_of(c, CONV_W),
                            .out = axes_of(c, CONV_Y),
                            .groups = c->groups,
                            .batch_groups = 1};
    for (int k = 0; k < c->n; k++) {
        v.stride[k] = c->strides[k];
        v.padding[2 * k] = c->low[k];
        v.padding[2 * k + 1] = c->high[k];
        v.base[k] = c->lhs_dilation[k];
        v.dilation[k] = c->rhs_dilation[k];
    }
    return convolve(n, c, &v, n->in[0], n->in[1]);
}

// The kernel [g o, c, k] as [o, g c, k]: what goes in and what comes out are swapped in each group.
static hlo_value turned(struct hlo_node *n, const struct ir_conv *c, hlo_value kernel)
{
    struct part_axes p = axes_of(c, CONV_W);
    int64_t dims[IR_MAX_RANK + 1], axes[IR_MAX_RANK + 1], merged[IR_MAX_RANK];
    int rank = c->n + 2, at_group = (int)p.feature;
    if (c->groups == 1)
        return kernel;
    for (int i = 0, at = 0; i < rank; i++) {
        if (i == at_group)
            dims[at++] = c->groups;
        dims[at++] = i == at_group ? kernel->type->dims[i] / c->groups : kernel->type->dims[i];
    }
    hlo_value y = hlo_reshape(n->w, kernel, rank + 1, dims);
    // The axis of groups goes in front of what goes in.
    for (int i = 0, at = 0; i < rank; i++) {
        if (i == p.batch)
            axes[at++] = at_group;
        axes[at++] = i >= at_group ? i + 1 : i;
        merged[i] = i == p.batch    ? kernel->type->dims[i] * c->groups
                    : i == at_group ? kernel->type->dims[i] / c->groups
                                    : kernel->type->dims[i];
    }
    y = hlo_transpose(n->w, y, axes);
    return hlo_reshape(n->w, y, rank, merged);
}

// x of w and y: y spread by the strides, against the kernel the other way round.
static hlo_value of_x(struct hlo_node *n, const struct ir_conv *c)
{
    struct part_axes kernel = axes_of(c, CONV_W);
    struct convolution v = {.in = axes_of(c, CONV_Y),
                            .kernel = kernel,
                            .out = axes_of(c, CONV_X),
                            .groups = c->groups,
                            .batch_groups = 1};
    const struct mlir_type *y = n->in[1]->type, *t = n->in[0]->type;
    v.kernel.batch = kernel.feature;
    v.kernel.feature = kernel.batch;
    for (int k = 0; k < c->n; k++) {
        int64_t window = spread_extent(t->dims[kernel.spatial[k]], c->rhs_dilation[k]);
        int64_t got = spread_extent(y->dims[v.in.spatial[k]], c->strides[k]);
        int64_t want = spread_extent(n->type->dims[v.out.spatial[k]], c->lhs_dilation[k]);
        v.stride[k] = c->lhs_dilation[k];
        v.base[k] = c->strides[k];
        v.dilation[k] = c->rhs_dilation[k];
        v.reversal[k] = 1;
        v.padding[2 * k] = window - 1 - c->low[k];
        v.padding[2 * k + 1] = want - 1 + window - got - v.padding[2 * k];
    }
    return convolve(n, c, &v, n->in[1], turned(n, c, n->in[0]));
}

// w of x and y: features of x as the batch, y spread by the strides as the kernel.
static hlo_value of_w(struct hlo_node *n, const struct ir_conv *c)
{
    struct part_axes x = axes_of(c, CONV_X), y = axes_of(c, CONV_Y), out = axes_of(c, CONV_W);
    struct convolution v = {
        .in = x, .kernel = y, .out = out, .groups = 1, .batch_groups = c->groups};
    v.in.batch = x.feature;
    v.in.feature = x.batch;
    for (int k = 0; k < c->n; k++) {
        int64_t got = spread_extent(n->in[0]->type->dims[x.spatial[k]], c->lhs_dilation[k]);
        int64_t window = spread_extent(n->in[1]->type->dims[y.spatial[k]], c->strides[k]);
        int64_t want = spread_extent(n->type->dims[out.spatial[k]], c->rhs_dilation[k]);
        v.stride[k] = c->rhs_dilation[k];
        v.base[k] = c->lhs_dilation[k];
        v.dilation[k] = c->strides[k];
        v.padding[2 * k] = c->low[k];
        v.padding[2 * k + 1] = want - 1 + window - got - c->low[k];
    }
    return convolve(n, c, &v, n->in[0], n->in[1]);
}

static void write_conv(struct hlo_node *n)
{
    struct ir_conv c = ir_conv_of(n->n->attrs);
    bool is_empty = mlir_elements_of(n->type) == 0;
    for (int i = 0; i < 2; i++)
        is_empty = is_empty || mlir_elements_of(n->in[i]->type) == 0;
    n->out[0] = is_empty           ? hlo_number(n->w, n->type, 0)
                : c.part == CONV_Y ? forward(n, &c)
                : c.part == CONV_X ? of_x(n, &c)
                                   : of_w(n, &c);
}

// ---- Fourier transforms ----

enum { MOST_TRANSFORMED = 3 }; // axes of one operation

static hlo_value transform(struct hlo_writer *w, enum fft_kind kind, hlo_value x,
                           const struct mlir_type *type, int n, const int64_t *sizes)
{
    static const char *const words[] = {
        [FFT_FFT] = "FFT", [FFT_IFFT] = "IFFT", [FFT_RFFT] = "RFFT", [FFT_IRFFT] = "IRFFT"};
    struct hlo_attrs a = {0};
    hlo_text(w, &a, "fft_type", MLIR_ENUM, words[kind]);
    hlo_ints(w, &a, "fft_length", n, sizes);
    return hlo_op(w, HLO_(fft), type, 1, &x, &a);
}

// A complex transform of one axis.
static hlo_value transform_axis(struct hlo_writer *w, bool is_inverse, hlo_value x, int axis)
{
    int64_t axes[IR_MAX_RANK];
    int rank = x->type->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    axes[axis] = rank - 1;
    axes[rank - 1] = axis;
    x = hlo_transpose(w, x, axes);
    x = transform(w, is_inverse ? FFT_IFFT : FFT_FFT, x, x->type, 1, &x->type->dims[rank - 1]);
    return hlo_transpose(w, x, axes);
}

static void write_fft(struct hlo_node *n)
{
    struct hlo_writer *w = n->w;
    enum fft_kind kind = (enum fft_kind)ir_attr_int(n->n->attrs, IR_KEY_mode);
    int count, rank = n->type->rank;
    const int64_t *sizes = ir_attr_ints(n->n->attrs, IR_KEY_sizes, &count);
    int more = count > MOST_TRANSFORMED ? count - MOST_TRANSFORMED : 0;
    hlo_value x = n->in[0];
    if (mlir_elements_of(n->type) == 0 || mlir_elements_of(x->type) == 0) {
        n->out[0] = hlo_number(w, n->type, 0);
        return;
    }
    // What is halved is complex before it, or behind it; axes in front are transformed then.
    bool is_inverse = fft_is_inverse(kind);
    for (int i = 0; i < more && is_inverse; i++)
        x = transform_axis(w, true, x, rank - count + i);
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i < rank - count + more ? x->type->dims[i] : n->type->dims[i];
    x = transform(w, kind, x, hlo_type(w, mlir_elements[n->type->element].dtype, rank, dims),
                  count - more, sizes + more);
    for (int i = 0; i < more && !is_inverse; i++)
        x = transform_axis(w, false, x, rank - count + i);
    n->out[0] = x;
}

void hlo_product(struct hlo_node *n)
{
    if (n->n->op == IR_dot_general)
        write_dot(n);
    else if (n->n->op == IR_conv)
        write_conv(n);
    else
        write_fft(n);
}
