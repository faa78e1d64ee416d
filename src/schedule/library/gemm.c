// SPDX-License-Identifier: Apache-2.0
// Contractions that a library does: where their matrices lie in memory.
//
// The axes of an operand are batch, free and contracted ones.  Memory that is seen through
// transposes and reshapes will do as long as the free axes count with one stride, the contracted
// ones with another, and one of the two strides is 1.  Of numbers that are widened on the way to a product the library
// takes what they are before, where it knows how.
#include "passes/transform.h"
#include "schedule/internal.h"
#include "schedule/kernels/points.h"
#include "schedule/library/library.h"

// A value as strided memory of another value.
struct strided {
    ir_id base;
    const int64_t *dims;
    int64_t strides[IR_MAX_RANK];
};

static bool has_own_memory(const struct schedule *s, ir_id v)
{
    return s->is_output && s->is_output[v];
}

// v before it is widened from the type.
static ir_id narrowed(const struct schedule *s, ir_id v, jot_dtype operands)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    bool is_widened = n->op == IR_convert && ir_dtype_of(s->g, v) != operands;
    return is_widened ? ir_operand(s->g, n, 0) : v;
}

// Of numbers of the type, where v is made of such.
static struct strided strided_of(const struct schedule *s, ir_id v, jot_dtype operands)
{
    struct strided x = {.dims = ir_dims_of(s->g, v)};
    v = narrowed(s, v, operands);
    int rank = ir_rank_of(s->g, v), axis_of[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        axis_of[i] = i; // axis of v that axis i of the value looked at is
    const struct ir_node *n = ir_node_of(s->g, v);
    while (n->op == IR_transpose && !has_own_memory(s, v)) {
        int count, before[IR_MAX_RANK];
        const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
        memcpy(before, axis_of, sizeof before);
        for (int i = 0; i < rank; i++)
            axis_of[axes[i]] = before[i];
        v = narrowed(s, ir_operand(s->g, n, 0), operands);
        n = ir_node_of(s->g, v);
    }
    int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        x.strides[axis_of[i]] = stride;
        stride *= ir_dims_of(s->g, v)[i];
    }
    while (n->op == IR_reshape && !has_own_memory(s, v)) {
        v = narrowed(s, ir_operand(s->g, n, 0), operands);
        n = ir_node_of(s->g, v);
    }
    x.base = v;
    return x;
}

// The axes as one: extent and stride.
static bool merge_axes(const struct strided *x, int n, const int64_t *axes, int64_t *out_extent,
                       int64_t *out_stride)
{
    int64_t extent = 1, stride = 1;
    for (int i = n; i-- > 0;) {
        int64_t dim = x->dims[axes[i]];
        if (dim == 1)
            continue;
        if (extent == 1)
            stride = x->strides[axes[i]];
        else if (x->strides[axes[i]] != stride * extent)
            return false;
        extent *= dim;
    }
    *out_extent = extent;
    *out_stride = stride;
    return true;
}

// Rows and columns of a matrix: the leading dimension, and whether it lies transposed.
static bool fits_matrix(int64_t rows, int64_t row_stride, int64_t columns,
                        int64_t column_stride, bool *transpose, int64_t *leading)
{
    *transpose = column_stride != 1;
    *leading = *transpose ? column_stride : row_stride;
    return (*transpose ? row_stride : column_stride) == 1 &&
           *leading >= (*transpose ? rows : columns);
}

static bool fits_batch(const struct strided x[2], const struct dot_shape *d,
                       struct nest_gemm *out)
{
    int n = 0;
    int64_t stride = out->m * out->n;
    for (int i = 0; i < 4; i++)
        out->batch[i] = 1;
    for (int i = d->n_batch; i-- > 0;) {
        int64_t extent = x[0].dims[d->batch[0][i]];
        int64_t sa = x[0].strides[d->batch[0][i]], sb = x[1].strides[d->batch[1][i]];
        if (extent == 1)
            continue;
        int last = 3 - (n - 1);
        if (n && sa == out->stride_a[last] * out->batch[last] &&
            sb == out->stride_b[last] * out->batch[last]) {
            out->batch[last] *= extent;
        } else {
            if (n == 4)
                return false;
            last = 3 - n++;
            out->batch[last] = extent;
            out->stride_a[last] = sa;
            out->stride_b[last] = sb;
            out->stride_c[last] = stride;
        }
        stride *= extent;
    }
    return true;
}

static bool is_same_along(const struct schedule *s, ir_id v, int64_t axis)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    if (ir_rank_of(s->g, v) == 0 || ir_dims_of(s->g, v)[axis] == 1)
        return true;
    if (n->op != IR_broadcast_in_dim)
        return false;
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    for (int i = 0; i < count; i++)
        if (axes[i] == axis)
            return is_same_along(s, ir_operand(s->g, n, 0), i);
    return true;
}

// What v is times numbers that are the same along an axis of it, or zeros where such say so, and which
// axis that is there.
static ir_id without_factors(const struct schedule *s, ir_id v, int64_t *axis)
{
    for (;;) {
        const struct ir_node *n = ir_node_of(s->g, v);
        bool is_product = n->op == IR_mul;
        int count, through = -1;
        if (ir_dims_of(s->g, v)[*axis] == 1)
            return v;
        if (n->op == IR_transpose) {
            *axis = ir_attr_ints(n->attrs, IR_KEY_axes, &count)[*axis];
            through = 0;
        } else if (n->op == IR_neg) {
            through = 0;
        } else if (is_product || n->op == IR_div) {
            for (uint32_t i = is_product ? 0 : 1; i < 2; i++) {
                if (is_same_along(s, ir_operand(s->g, n, i), *axis))
                    through = 1 - (int)i;
            }
        } else if (n->op == IR_select && is_same_along(s, ir_operand(s->g, n, 0), *axis)) {
            for (uint32_t i = 1; i < 3; i++)
                if (ir_is_zero(s->g, ir_operand(s->g, n, i)))
                    through = 3 - (int)i;
        }
        if (through < 0)
            return v;
        v = ir_operand(s->g, n, (uint32_t)through);
    }
}

// x^T d x for a diagonal d, on whichever side of the product it stands.
static bool is_symmetric(const struct schedule *s, const struct ir_node *n,
                         const struct dot_shape *d)
{
    ir_id base[2];
    int64_t axis[2];
    if (d->n_batch || d->n_contract != 1 || d->n_free[0] != 1 || d->n_free[1] != 1)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        axis[i] = d->free[i][0];
        base[i] = without_factors(s, ir_operand(s->g, n, i), &axis[i]);
    }
    return base[0] == base[1] && axis[0] == axis[1];
}

// Operand i as a matrix of free and summed axes, which is transposed when it is the second.
static bool find_matrix(const struct schedule *s, const struct ir_node *n,
                        const struct dot_shape *d, uint32_t i, struct strided *x,
                        struct nest_gemm *g)
{
    int64_t free_extent, free_stride, k, k_stride;
    *x = strided_of(s, ir_operand(s->g, n, i), g->operands);
    if (ir_dtype_of(s->g, x->base) != g->operands ||
        !merge_axes(x, d->n_free[i], d->free[i], &free_extent, &free_stride) ||
        !merge_axes(x, d->n_contract, d->contract[i], &k, &k_stride))
        return false;
    *(i ? &g->n : &g->m) = free_extent;
    g->k = k;
    return i ? fits_matrix(k, k_stride, free_extent, free_stride, &g->transpose_b, &g->ldb)
             : fits_matrix(free_extent, free_stride, k, k_stride, &g->transpose_a, &g->lda);
}

static jot_dtype before_widening(const struct schedule *s, ir_id v)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    while (n->op == IR_transpose || n->op == IR_reshape) {
        v = ir_operand(s->g, n, 0);
        n = ir_node_of(s->g, v);
    }
    return ir_dtype_of(s->g, n->op == IR_convert ? ir_operand(s->g, n, 0) : v);
}

// What the library's product is of: the type of the result, or the one that both operands are widened from.
static jot_dtype operands_of(const struct schedule *s, const struct ir_node *n)
{
    jot_dtype product = ir_dtype_of(s->g, n->out),
              narrow = before_widening(s, ir_operand(s->g, n, 0));
    bool is_taken = s->options->rich_gemm && dtype_multiplies(narrow, product) &&
                    before_widening(s, ir_operand(s->g, n, 1)) == narrow;
    return is_taken ? narrow : product;
}

// Whether the library takes operand i as it lies.
static bool is_taken(const struct nest_gemm *g, uint32_t i)
{
    return !dtype_is_byte(g->operands) || (i ? g->transpose_b : !g->transpose_a);
}

static bool gemm_of_operands(const struct schedule *s, const struct ir_node *n,
                             jot_dtype operands, struct nest_gemm *out, ir_id base[2])
{
    struct dot_shape d = dot_shape_of(s->g, n);
    struct strided x[2];
    struct nest_gemm g = {.dtype = ir_dtype_of(s->g, n->out),
                          .operands = operands,
                          .precision = (int)ir_attr_int_or(n->attrs, IR_KEY_precision, 0),
                          .alpha = 1};
    for (uint32_t i = 0; i < 2; i++) {
        if (!find_matrix(s, n, &d, i, &x[i], &g) || !is_taken(&g, i))
            return false;
        base[i] = x[i].base;
    }
    g.ldc = g.n;
    if (!dtype_multiplies(operands, g.dtype) ||
        !cost_is_gemm(operands, s->options->rich_gemm, g.m, g.n, g.k) || !fits_batch(x, &d, &g))
        return false;
    for (int i = 0; i < 4; i++)
        if (g.batch[i] == 0)
            return false;
    g.is_symmetric = s->options->rich_gemm && operands == g.dtype && is_symmetric(s, n, &d);
    *out = g;
    return true;
}

bool gemm_of_dot(const struct schedule *s, const struct ir_node *n, struct nest_gemm *out,
                 ir_id base[2])
{
    if (n->op != IR_dot_general || s->options->no_gemm)
        return false;
    jot_dtype product = ir_dtype_of(s->g, n->out), narrow = operands_of(s, n);
    // Layers of networks over points have kernels of their own (points.c), of one type.
    if (gemm_of_operands(s, n, product, out, base) &&
        (narrow == product || points_is_layer(out)))
        return true;
    return narrow != product && gemm_of_operands(s, n, narrow, out, base);
}

// ---- Operands that lie wrong

// How often the product uses an element of operand i: the rows of the other one.
static int64_t uses_of(const struct schedule *s, const struct ir_node *n,
                       const struct dot_shape *d, uint32_t i)
{
    const int64_t *dims = ir_dims_of(s->g, ir_operand(s->g, n, 1 - i));
    int64_t uses = 1;
    for (int a = 0; a < d->n_free[1 - i]; a++)
        uses *= dims[d->free[1 - i][a]];
    return uses;
}

bool dot_rereads_matrix(const struct schedule *s, ir_id v, const struct demand *d)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    int64_t least = s->options->many_lanes ? COST_LARGE_BYTES : COST_NEAR_BYTES;
    if (n->op != IR_dot_general || d->outer == IR_NONE)
        return false;
    struct dot_shape shape = dot_shape_of(s->g, n);
    struct atoms folded = s->folded_of[d->outer];
    for (uint32_t i = 0; i < 2; i++) {
        ir_id x = ir_operand(s->g, n, i);
        int64_t bytes = dtype_get(ir_dtype_of(s->g, x))->bytes, terms = 1;
        int first = shape.n_batch + (i ? shape.n_free[0] : 0);
        bool all = shape.n_free[i] > 0 && uses_of(s, n, &shape, i) > 1;
        for (int k = 0; k < shape.n_free[i]; k++) {
            bytes *= ir_dims_of(s->g, x)[shape.free[i][k]];
            all &= axes_include(&s->axes, folded, d->view.dims[first + k]);
        }
        for (int k = 0; k < shape.n_contract; k++)
            terms *= ir_dims_of(s->g, x)[shape.contract[i][k]];
        // Of few terms, to read what was stored takes as long.
        if (all && terms > COST_FEW_TERMS && bytes * terms > least)
            return true;
    }
    return false;
}

// Whether the terms of a kernel's sums lie together in one operand and across in operand i, which has few rows: along
// its rows the lanes of a vector are neighbours in both.
static bool lies_across(const struct schedule *s, const struct nest_gemm *g, uint32_t i)
{
    bool across[] = {g->transpose_a, !g->transpose_b};
    int64_t rows = i ? g->n : g->m;
    return !s->options->rich_gemm && across[i] && !across[1 - i] && rows > 1 &&
           rows < COST_PACKED_ROWS && g->k >= COST_JAM_TERMS;
}

// Which operands are worth copying so that they lie right: for the library, and for a kernel.
static void find_packed(const struct schedule *s, const struct ir_node *n, bool packed[2])
{
    packed[0] = packed[1] = false;
    if (n->op != IR_dot_general || s->options->no_gemm)
        return;
    struct nest_gemm g = {.operands = operands_of(s, n)};
    bool is_product = dtype_multiplies(g.operands, ir_dtype_of(s->g, n->out)) &&
                      cost_is_product(s->g, n, g.operands, s->options->rich_gemm);
    struct dot_shape d = dot_shape_of(s->g, n);
    struct strided x;
    bool lies[2];
    for (uint32_t i = 0; i < 2; i++)
        lies[i] = find_matrix(s, n, &d, i, &x, &g) && is_taken(&g, i);
    for (uint32_t i = 0; i < 2; i++)
        packed[i] = uses_of(s, n, &d, i) >= COST_PACKED_USES &&
                    (is_product ? !lies[i] : lies[0] && lies[1] && lies_across(s, &g, i));
}

// The operand as batches of matrices, in memory of its own, of the type that the library takes.
static ir_id pack(struct ir_builder *b, ir_id x, jot_dtype operands, const struct dot_shape *d,
                  uint32_t i)
{
    jot_dtype product = ir_dtype(ir_type_in(b, x));
    int64_t axes[IR_MAX_RANK];
    int n = 0;
    for (int a = 0; a < d->n_batch; a++)
        axes[n++] = d->batch[i][a];
    for (int a = 0; a < d->n_free[i]; a++)
        axes[n++] = d->free[i][a];
    for (int a = 0; a < d->n_contract; a++)
        axes[n++] = d->contract[i][a];
    if (operands != product)
        x = ir_node_in(b, x)->op == IR_convert ? ir_operand(b->graph, ir_node_in(b, x), 0)
                                               : ir_convert(b, x, operands);
    x = ir_transpose(b, x, axes);
    x = ir_build(b, IR_barrier, 1, &x, NULL);
    return operands != product ? ir_convert(b, x, product) : x;
}

static ir_id multiply_packed(struct schedule *s, struct ir_builder *b, const struct ir_node *n,
                             const ir_id *map, const bool packed[2])
{
    struct dot_shape shape = dot_shape_of(s->g, n);
    int64_t batch[2][IR_MAX_RANK], contract[2][IR_MAX_RANK];
    ir_id in[2];
    for (uint32_t i = 0; i < 2; i++) {
        in[i] = map[ir_operand(s->g, n, i)];
        for (int a = 0; a < shape.n_batch; a++)
            batch[i][a] = packed[i] ? a : shape.batch[i][a];
        for (int a = 0; a < shape.n_contract; a++)
            contract[i][a] =
                packed[i] ? shape.n_batch + shape.n_free[i] + a : shape.contract[i][a];
        if (packed[i])
            in[i] = pack(b, in[i], operands_of(s, n), &shape, i);
    }
    struct ir_dot d = {.n_batch = shape.n_batch,
                       .n_contract = shape.n_contract,
                       .lhs_batch = batch[0],
                       .rhs_batch = batch[1],
                       .lhs_contract = contract[0],
                       .rhs_contract = contract[1],
                       .precision = (int)ir_attr_int_or(n->attrs, IR_KEY_precision, 0)};
    return ir_dot_general(b, in[0], in[1], &d);
}

const struct ir_graph *schedule_pack_operands(struct schedule *s)
{
    const struct ir_graph *g = s->g;
    bool any = false, packed[2];
    for (uint32_t at = 0; at < g->nodes.count && !any; at++) {
        find_packed(s, &g->nodes.at[at], packed);
        any = packed[0] || packed[1];
    }
    if (!any || s->options->separate)
        return g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(g->module, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        find_packed(s, n, packed);
        b.where = n->where;
        if (packed[0] || packed[1])
            map[n->out] = multiply_packed(s, &b, n, map, packed);
        else
            pass_copy_node(&b, g, n, map);
    }
    pass_copy_outputs(&b, g, map);
    const struct ir_graph *out = ir_finish(&b);
    return out ? out : g;
}
