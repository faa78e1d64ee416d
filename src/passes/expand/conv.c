// SPDX-License-Identifier: Apache-2.0
// Convolutions as products of matrices.
//
//     y = conv x w {mode=2, ...}
// becomes
//     y[n, p, o] = sum_{k, i} windows(pad(x))[n, p, k, i] w[k, i, o]
//
// and the other two the derivatives of that.  The windows are put into memory where the product is
// one for the library, and are never there in a kernel of its own.  Where the features of x are its
// last axis, they stay last in the rows of the left factor; else the last axis of the image is the
// last of the right one: what is copied into a matrix, and back in the derivative, is copied by runs.
// What is differentiated and mapped is the op: its derivatives keep x, not windows of it.  That in x is
// itself a convolution where its product would be no library's and x has no positions between those of y:
//
//     x = conv w y {mode=0, ...}
// becomes
//     x = conv y (rev w, its features exchanged) {mode=2, low=[(k - 1) dilation - low], ...}
#include "passes/expand/conv.h"

#include "ir/control.h"
#include "ir/cost.h"
#include "passes/body.h"

struct layout {
    struct ir_conv c;
    int64_t batch, in, out;               // the last two of one group
    struct ir_axis_window w[IR_MAX_RANK]; // by axis of x with groups in front
    int64_t kernel, positions;            // elements
};

static bool is_last(const struct ir_conv *c) { return c->layout != CONV_FEATURES_FIRST; }

// Groups of an axis of x in front, and what is left of the axis in its place.
static ir_id grouped(struct ir_builder *b, ir_id x, int axis, int64_t groups)
{
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, x);
    int at = groups == 1 ? 0 : axis; // of the axis of groups
    for (int i = 0; i < t.rank; i++)
        dims[i < at ? i : i + 1] = ir_dims(b->module, t)[i];
    dims[at] = groups;
    dims[axis + 1] /= groups;
    for (int i = 0; i <= t.rank; i++)
        axes[i] = i == 0 ? at : i <= at ? i - 1 : i;
    return ir_transpose(b, ir_reshape(b, x, t.rank + 1, dims), axes);
}

// Windows by axis of [groups, batch, spatial, features] or [groups, features, batch, spatial].
static struct layout layout_of(const struct ir_conv *c, const int64_t *x, const int64_t *w)
{
    struct layout l = {.c = *c, .kernel = 1, .positions = 1};
    int first = is_last(c) ? 2 : 3;
    l.batch = x[0];
    l.in = w[ir_conv_in(c)];
    l.out = w[ir_conv_features(c, CONV_W)] / c->groups;
    for (int i = 0; i < c->n + 3; i++)
        l.w[i] = (struct ir_axis_window){.size = 1, .stride = 1, .base = 1, .dilation = 1};
    l.w[0].count = c->groups;
    l.w[first - 1].count = l.batch;
    l.w[is_last(c) ? c->n + 2 : 1].count = l.in;
    for (int i = 0; i < c->n; i++) {
        l.w[first + i] = ir_conv_window(c, i, x[ir_conv_spatial(c, CONV_X) + i],
                                        w[ir_conv_spatial(c, CONV_W) + i]);
        l.kernel *= l.w[first + i].size;
        l.positions *= l.w[first + i].count;
    }
    return l;
}

// The windows of x as matrices: [groups, batch * positions, kernel * in], or features first [groups,
// in * kernel, batch * positions].
static ir_id window_matrix(struct ir_builder *b, const struct layout *l, ir_id x)
{
    const struct ir_conv *c = &l->c;
    int64_t rows = l->batch * l->positions, columns = l->kernel * l->in;
    if (!is_last(c)) {
        int64_t axes[IR_MAX_RANK] = {1, 0};
        for (int i = 2; i < c->n + 2; i++)
            axes[i] = i;
        x = ir_transpose(b, x, axes);
    }
    x = grouped(b, x, is_last(c) ? c->n + 1 : 0, c->groups);
    x = ir_windows(b, x, IR_NONE, l->w, is_last(c) ? c->n + 2 : 2);
    return ir_reshape(b, x, 3,
                      is_last(c) ? (int64_t[]){c->groups, rows, columns}
                                 : (int64_t[]){c->groups, columns, rows});
}

// w as [groups, kernel * in, out], or features first [groups, out, in * kernel].
static ir_id kernel_matrix(struct ir_builder *b, const struct layout *l, ir_id w)
{
    const struct ir_conv *c = &l->c;
    int64_t columns = l->kernel * l->in;
    if (c->layout == CONV_FILTERS_FIRST) {
        int64_t axes[IR_MAX_RANK] = {0};
        for (int i = 0; i <= c->n; i++)
            axes[i] = i + 1;
        axes[c->n + 1] = 0;
        w = ir_transpose(b, w, axes);
    }
    w = grouped(b, w, is_last(c) ? c->n + 1 : 0, c->groups);
    return ir_reshape(b, w, 3,
                      is_last(c) ? (int64_t[]){c->groups, columns, l->out}
                                 : (int64_t[]){c->groups, l->out, columns});
}

// A matrix without its groups if there is one.
static ir_id ungrouped(struct ir_builder *b, ir_id x, int64_t groups)
{
    if (x == IR_NONE || groups > 1)
        return x;
    return ir_reshape(b, x, 2, ir_dims(b->module, ir_type_in(b, x)) + 1);
}

static ir_id multiply(struct ir_builder *b, const struct layout *l, ir_id windows, ir_id kernel)
{
    const struct ir_conv *c = &l->c;
    windows = ungrouped(b, windows, c->groups);
    kernel = ungrouped(b, kernel, c->groups);
    int64_t batch = 0, first = c->groups > 1, second = first + 1;
    struct ir_dot d = {.n_batch = c->groups > 1,
                       .lhs_batch = &batch,
                       .rhs_batch = &batch,
                       .n_contract = 1,
                       .lhs_contract = &second,
                       .rhs_contract = &first,
                       .precision = c->precision};
    return is_last(c) ? ir_dot_general(b, windows, kernel, &d)
                      : ir_dot_general(b, kernel, windows, &d);
}

// The product, [groups, batch, positions, out] or [groups, out, batch, positions], as y.
static ir_id in_order(struct ir_builder *b, const struct layout *l, ir_id y)
{
    const struct ir_conv *c = &l->c;
    int first = is_last(c) ? 2 : 3, rank = c->n + 3, next = 0;
    int batch = first - 1, out = is_last(c) ? c->n + 2 : 1;
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK], size[IR_MAX_RANK];
    dims[0] = c->groups;
    dims[batch] = l->batch;
    dims[out] = l->out;
    for (int i = 0; i < c->n; i++)
        dims[first + i] = l->w[first + i].count;
    y = ir_reshape(b, y, rank, dims);
    for (int i = 0; i < c->n + 2; i++) { // axis i of the result
        bool is_features = i == ir_conv_features(c, CONV_Y);
        if (is_features)
            axes[next++] = 0;
        axes[next++] = i == 0 ? batch : is_features ? out : first + i - (is_last(c) ? 1 : 2);
        size[i] = is_features ? c->groups * l->out : dims[axes[next - 1]];
    }
    return ir_reshape(b, ir_transpose(b, y, axes), c->n + 2, size);
}

static ir_id convolved(struct ir_builder *b, const struct ir_conv *c, ir_id x, ir_id w)
{
    const struct layout l = layout_of(c, ir_dims(b->module, ir_type_in(b, x)),
                                      ir_dims(b->module, ir_type_in(b, w)));
    ir_id windows = window_matrix(b, &l, x), kernel = kernel_matrix(b, &l, w);
    return in_order(b, &l, multiply(b, &l, windows, kernel));
}

// The derivative of y in x or w, of type t, with the other one and the cotangent of y.
static ir_id derivative(struct ir_builder *b, const struct ir_conv *c, struct ir_type t,
                        ir_id other, ir_id ct)
{
    struct ir_module *m = b->module;
    struct ir_builder f = ir_builder_make(m, "conv", IR_BUILD_ZEROS);
    ir_id known = ir_param(&f, ir_type_in(b, other)), linear = ir_param(&f, t), out = IR_NONE;
    uint32_t transposed;
    f.where = b->where;
    ir_output(&f, c->part == CONV_X ? convolved(&f, c, linear, known)
                                    : convolved(&f, c, known, linear));
    if (pass_transpose(m, ir_finish_function(&f), 1, &transposed) != JOT_OK)
        return ir_fail(b, JOT_ERR_INTERNAL, "%s", jot_error_message());
    ir_inline(b, ir_function(m, transposed), (const ir_id[]){other, ct}, &out);
    return out;
}

// Whether the product of the derivative in x would be a kernel, and x is wanted at every position.
static bool is_convolution(struct ir_builder *b, const struct ir_conv *c, struct ir_type x,
                           ir_id w)
{
    const struct layout l =
        layout_of(c, ir_dims(b->module, x), ir_dims(b->module, ir_type_in(b, w)));
    for (int i = 0; i < c->n; i++)
        if (c->strides[i] != 1)
            return false;
    return !cost_is_gemm(ir_dtype(x), true, l.batch * l.positions, l.kernel * l.in, l.out);
}

// w with the elements of the kernel from the last one on, and the features of x and y of each group
// exchanged.
static ir_id exchanged(struct ir_builder *b, const struct ir_conv *c, ir_id w)
{
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK], spatial[IR_MAX_RANK];
    const int64_t *size = ir_dims(b->module, ir_type_in(b, w));
    int rank = c->n + 2, out = ir_conv_features(c, CONV_W), in = ir_conv_in(c);
    for (int i = 0; i < c->n; i++)
        spatial[i] = ir_conv_spatial(c, CONV_W) + i;
    for (int i = 0; i <= rank; i++) { // with an axis of groups before that of the features of y
        dims[i] = size[i <= out ? i : i - 1];
        axes[i] = i;
    }
    dims[out] = c->groups;
    dims[out + 1] /= c->groups;
    in += in > out;
    axes[in] = out + 1;
    axes[out + 1] = in;
    w = ir_rev(b, w, c->n, spatial);
    w = ir_transpose(b, ir_reshape(b, w, rank + 1, dims), axes);
    size = ir_dims(b->module, ir_type_in(b, w));
    for (int i = 0; i < rank; i++)
        dims[i] = i == out ? size[i] * size[i + 1] : size[i < out ? i : i + 1];
    return ir_reshape(b, w, rank, dims);
}

// The derivative in x, of type t, as a convolution.
static ir_id convolved_back(struct ir_builder *b, const struct ir_conv *c, struct ir_type t,
                            ir_id w, ir_id y)
{
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK];
    const int64_t *x = ir_dims(b->module, t) + ir_conv_spatial(c, CONV_X),
                  *k = ir_dims(b->module, ir_type_in(b, w)) + ir_conv_spatial(c, CONV_W),
                  *p = ir_dims(b->module, ir_type_in(b, y)) + ir_conv_spatial(c, CONV_Y);
    struct ir_conv back = *c;
    back.part = CONV_Y;
    back.strides = c->lhs_dilation;
    back.lhs_dilation = c->strides;
    back.low = low;
    back.high = high;
    for (int i = 0; i < c->n; i++) {
        int64_t around = (k[i] - 1) * c->rhs_dilation[i];
        low[i] = around - c->low[i];
        high[i] = (x[i] - 1) * c->lhs_dilation[i] - (p[i] - 1) * c->strides[i] + c->low[i];
    }
    return convolved(b, &back, y, exchanged(b, c, w));
}

// ---- All of a function

static uint32_t rewrite(struct ir_module *m, uint32_t f,
                        const struct pass_conv_library *library);

// A node with bodies, with convolutions of these rewritten.
static void copy_bodies(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                        const struct pass_conv_library *library, ir_id *map)
{
    const int64_t *functions;
    int count = ir_bodies_of(n, &functions);
    uint32_t *made = arena_array(b->module->arena, uint32_t, count + 1);
    for (int i = 0; i < count; i++)
        made[i] = rewrite(b->module, (uint32_t)functions[i], library);
    const struct ir_attrs *attrs = ir_with_functions(b->module, n->attrs, made);
    ir_id *in = body_operands(b->module, g, n, map);
    b->where = n->where;
    body_set_results(n, ir_build(b, (enum ir_op)n->op, (int)n->n_in, in, attrs), map);
}

static ir_id expanded(struct ir_builder *b, const struct ir_conv *c, struct ir_type t,
                      const ir_id in[2], const struct pass_conv_library *library)
{
    ir_id y = library ? conv_by_library(b, library, c, t, in) : IR_NONE;
    if (y != IR_NONE)
        return y;
    if (c->part == CONV_Y)
        return convolved(b, c, in[0], in[1]);
    return c->part == CONV_X && is_convolution(b, c, t, in[0])
               ? convolved_back(b, c, t, in[0], in[1])
               : derivative(b, c, t, in[0], in[1]);
}

static uint32_t rewrite(struct ir_module *m, uint32_t f,
                        const struct pass_conv_library *library)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {.kind = MEMO_EXPAND_CONV,
                           .f = f,
                           .number = library ? (int64_t)(uintptr_t)library->ctx : 0};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        if (ir_has_bodies((enum ir_op)n->op)) {
            copy_bodies(&b, g, n, library, map);
        } else if (n->op == IR_conv) {
            const struct ir_conv c = ir_conv_of(n->attrs);
            const ir_id in[] = {map[ir_operand(g, n, 0)], map[ir_operand(g, n, 1)]};
            b.where = n->where;
            map[n->out] = expanded(&b, &c, ir_type_of(g, n->out), in, library);
        } else {
            pass_copy_node(&b, g, n, map);
        }
    }
    pass_copy_outputs(&b, g, map);
    return pass_memo_add_function(m, &key, ir_finish_function(&b));
}

bool pass_has_convolutions(const struct ir_graph *g)
{
    ir_for_each_node (g, n) {
        int bodies = 0;
        if (n->op == IR_conv)
            return true;
        if (ir_has_bodies((enum ir_op)n->op))
            ir_attr_ints(n->attrs, IR_KEY_functions, &bodies);
        for (int i = 0; i < bodies; i++)
            if (pass_has_convolutions(ir_body(g, n, i)))
                return true;
    }
    return false;
}

uint32_t pass_expand_convolutions(struct ir_module *m, uint32_t f,
                                  const struct pass_conv_library *library)
{
    return pass_has_convolutions(ir_function(m, f)) ? rewrite(m, f, library) : f;
}
