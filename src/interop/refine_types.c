// SPDX-License-Identifier: Apache-2.0
// Extents of results, of those of operands and of numbers that are known.
#include "interop/refine_internal.h"

#include "base/strbuf.h"

#include <inttypes.h>

const struct mlir_type *refine_tensor(struct refiner *r, enum mlir_element element, int rank,
                                      const int64_t *dims)
{
    struct mlir_type *t = arena_new(r->arena, struct mlir_type);
    t->kind = MLIR_TENSOR;
    t->element = element;
    t->rank = rank;
    t->dims = arena_copy(r->arena, dims, (size_t)rank * sizeof *dims);
    return t;
}

int64_t refine_extent(const struct refine_op *o, uint32_t operand, int64_t axis)
{
    if (operand >= o->op->n_operands)
        return -1;
    const struct mlir_type *t = o->operands[operand].value->type;
    return t->kind == MLIR_TENSOR && axis >= 0 && axis < t->rank ? t->dims[axis] : -1;
}

const int64_t *refine_known(const struct refine_op *o, uint32_t operand, int64_t *out_n)
{
    const struct refined *x = operand < o->op->n_operands ? &o->operands[operand] : NULL;
    *out_n = x && x->known ? mlir_elements_of(x->value->type) : -1;
    return x ? x->known : NULL;
}

// Sums and products of extents; -1 when one of them is none.
static int64_t sum(int64_t a, int64_t b)
{
    int64_t y;
    return a < 0 || __builtin_add_overflow(a, b, &y) || y < 0 ? -1 : y;
}

static int64_t spread(int64_t n, int64_t step) // n elements, step apart
{
    int64_t y;
    if (n <= 0 || step < 1)
        return n;
    return __builtin_mul_overflow(n - 1, step, &y) ? -1 : sum(y, 1);
}

static int64_t steps(int64_t n, int64_t window, int64_t stride) // positions of a window
{
    if (n < 0 || window < 0 || stride < 1)
        return -1;
    return window > n ? 0 : (n - window) / stride + 1;
}

// The i-th number of a list attribute; `otherwise` when there are none.
static int64_t listed(const struct refine_op *o, const char *name, int64_t i, int64_t otherwise)
{
    size_t n;
    const int64_t *numbers = mlir_ints(o->op, name, &n);
    return !n ? otherwise : (uint64_t)i < n ? numbers[i] : -1;
}

static bool is_listed(const struct refine_op *o, const char *name, int64_t number)
{
    size_t n;
    const int64_t *numbers = mlir_ints(o->op, name, &n);
    for (size_t i = 0; i < n; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static size_t length(const struct refine_op *o, const char *name)
{
    size_t n;
    mlir_ints(o->op, name, &n);
    return n;
}

static int rank_of(const struct refine_op *o, uint32_t operand)
{
    return operand < o->op->n_operands ? o->operands[operand].value->type->rank : 0;
}

// ---- rules: they fill the extents of a result of `rank` axes ----

static void copy_extents(const struct refine_op *o, uint32_t operand, int rank, int64_t *dims)
{
    for (int i = 0; i < rank; i++)
        dims[i] = refine_extent(o, operand, i);
}

// Of the first operand that has so many axes: scalars stand beside tensors in some.
static void like_operands(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    for (uint32_t k = 0; k < o->op->n_operands; k++)
        if (rank_of(o, k) == rank) {
            copy_extents(o, k, rank, dims);
            return;
        }
}

static void like_its_operand(const struct refine_op *o, uint32_t result, int rank,
                             int64_t *dims)
{
    copy_extents(o, result, rank, dims);
}

static void like_second(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    copy_extents(o, 1, rank, dims);
}

// Another width adds or takes the last axis, whose extent is that of the declaration.
static void like_bits(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    copy_extents(o, 0, rank_of(o, 0) < rank ? rank - 1 : rank, dims);
}

static void transposed(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    for (int i = 0; i < rank; i++)
        dims[i] = refine_extent(o, 0, listed(o, "permutation", i, -1));
}

static void concatenated(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    int64_t axis = mlir_int(o->op, "dimension", -1);
    copy_extents(o, 0, rank, dims);
    for (uint32_t k = 1; k < o->op->n_operands && axis >= 0 && axis < rank; k++)
        dims[axis] = sum(dims[axis], refine_extent(o, k, axis));
}

static void padded(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    for (int i = 0; i < rank; i++) {
        int64_t inner = spread(refine_extent(o, 0, i), listed(o, "interior_padding", i, 0) + 1);
        int64_t low = listed(o, "edge_padding_low", i, 0);
        int64_t all;
        dims[i] =
            inner < 0 || __builtin_add_overflow(inner, low, &all) ||
                    __builtin_add_overflow(all, listed(o, "edge_padding_high", i, 0), &all)
                ? -1
                : all;
    }
}

static void reduced(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    int axis = 0;
    for (int i = 0; i < rank_of(o, result) && axis < rank; i++)
        if (!is_listed(o, "dimensions", i))
            dims[axis++] = refine_extent(o, result, i);
}

// Positions of the i-th of the windows over an axis of n elements.
static int64_t windows(const struct refine_op *o, int i, int64_t n, const char *base,
                       int64_t size, const char *dilation)
{
    int64_t spaced = spread(n, listed(o, base, i, 1)), low = listed(o, "padding", 2 * i, 0);
    int64_t all;
    if (__builtin_add_overflow(spaced, low, &all) ||
        __builtin_add_overflow(all, listed(o, "padding", 2 * i + 1, 0), &all))
        return -1;
    return steps(all, spread(size, listed(o, dilation, i, 1)),
                 listed(o, "window_strides", i, 1));
}

static void windowed(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    for (int i = 0; i < rank; i++)
        dims[i] = windows(o, i, refine_extent(o, result, i), "base_dilations",
                          listed(o, "window_dimensions", i, -1), "window_dilations");
}

static void convolved(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    int64_t batch = mlir_int(o->op, "output_batch_dimension", -1);
    int64_t feature = mlir_int(o->op, "output_feature_dimension", -1);
    if (batch >= 0 && batch < rank) {
        int64_t groups = mlir_int(o->op, "batch_group_count", 1);
        int64_t n = refine_extent(o, 0, mlir_int(o->op, "input_batch_dimension", -1));
        dims[batch] = n < 0 || groups < 1 ? -1 : n / groups;
    }
    if (feature >= 0 && feature < rank)
        dims[feature] =
            refine_extent(o, 1, mlir_int(o->op, "kernel_output_feature_dimension", -1));
    for (int i = 0; i + 2 < rank; i++) {
        int64_t to = listed(o, "output_spatial_dimensions", i, -1);
        int64_t n = refine_extent(o, 0, listed(o, "input_spatial_dimensions", i, -1));
        int64_t size = refine_extent(o, 1, listed(o, "kernel_spatial_dimensions", i, -1));
        if (to >= 0 && to < rank)
            dims[to] = windows(o, i, n, "lhs_dilation", size, "rhs_dilation");
    }
}

static void dotted(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    int at = 0;
    for (size_t i = 0; i < length(o, "lhs_batching_dimensions") && at < rank; i++)
        dims[at++] = refine_extent(o, 0, listed(o, "lhs_batching_dimensions", (int64_t)i, -1));
    for (uint32_t k = 0; k < 2; k++)
        for (int i = 0; i < rank_of(o, k) && at < rank; i++)
            if (!is_listed(o, k ? "rhs_batching_dimensions" : "lhs_batching_dimensions", i) &&
                !is_listed(o, k ? "rhs_contracting_dimensions" : "lhs_contracting_dimensions",
                           i))
                dims[at++] = refine_extent(o, k, i);
}

static void gathered(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    int64_t vector = mlir_int(o->op, "index_vector_dim", 0), batch = 0, window = 0;
    for (int i = 0; i < rank; i++) {
        if (is_listed(o, "offset_dims", i)) {
            while (is_listed(o, "collapsed_slice_dims", window) ||
                   is_listed(o, "operand_batching_dims", window))
                window++;
            dims[i] = listed(o, "slice_sizes", window++, -1);
        } else {
            batch += batch == vector;
            dims[i] = refine_extent(o, 1, batch++);
        }
    }
}

static void transformed(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    const char *type = mlir_text(o->op, "fft_type");
    size_t n = length(o, "fft_length");
    like_operands(o, result, rank, dims);
    int64_t last = listed(o, "fft_length", (int64_t)n - 1, -1);
    if (type && rank && !strcmp(type, "RFFT"))
        dims[rank - 1] = last < 1 ? last : last / 2 + 1;
    if (type && rank && !strcmp(type, "IRFFT"))
        dims[rank - 1] = last;
}

static void topped(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    copy_extents(o, 0, rank, dims);
    if (rank)
        dims[rank - 1] = mlir_int(o->op, "k", -1);
}

static void normed(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    copy_extents(o, result ? 1 : 0, rank, dims);
}

// JAX says which operands of a call are the extents of its results.
static void told(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    const struct mlir_attr *which = mlir_attr_find(o->op, "indices_of_shape_operands");
    int64_t n;
    const int64_t *operands =
        which && which->kind == MLIR_INTS ? which->numbers : refine_eval_constant(o->r, which);
    if (!operands)
        return;
    size_t count = which->kind == MLIR_INTS ? which->n : (size_t)mlir_elements_of(which->type);
    if (result >= count || operands[result] < 0 || operands[result] >= o->op->n_operands)
        return;
    const int64_t *numbers = refine_known(o, (uint32_t)operands[result], &n);
    if (n == rank)
        memcpy(dims, numbers, (size_t)rank * sizeof *dims);
}

// Of the extents that stand in the last operand.
static void drawn(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)result;
    int64_t n;
    const int64_t *numbers = refine_known(o, 2, &n);
    if (n == rank)
        memcpy(dims, numbers, (size_t)rank * sizeof *dims);
}

// Nothing but the declaration tells.
static void untold(const struct refine_op *o, uint32_t result, int rank, int64_t *dims)
{
    (void)o, (void)result, (void)rank, (void)dims;
}

typedef void rule(const struct refine_op *o, uint32_t result, int rank, int64_t *dims);

static rule *const rules[MLIR_N_CODES] = {
    [MLIR_OP_stablehlo_batch_norm_grad] = normed,
    [MLIR_OP_stablehlo_batch_norm_inference] = like_operands,
    [MLIR_OP_stablehlo_batch_norm_training] = normed,
    [MLIR_OP_stablehlo_bitcast_convert] = like_bits,
    [MLIR_OP_stablehlo_cholesky] = like_operands,
    [MLIR_OP_stablehlo_compare] = like_operands,
    [MLIR_OP_stablehlo_concatenate] = concatenated,
    [MLIR_OP_stablehlo_convolution] = convolved,
    [MLIR_OP_stablehlo_custom_call] = told,
    [MLIR_OP_stablehlo_dot_general] = dotted,
    [MLIR_OP_stablehlo_fft] = transformed,
    [MLIR_OP_stablehlo_gather] = gathered,
    [MLIR_OP_stablehlo_map] = like_operands,
    [MLIR_OP_stablehlo_optimization_barrier] = like_its_operand,
    [MLIR_OP_stablehlo_pad] = padded,
    [MLIR_OP_stablehlo_reduce] = reduced,
    [MLIR_OP_stablehlo_reduce_precision] = like_operands,
    [MLIR_OP_stablehlo_reduce_window] = windowed,
    [MLIR_OP_stablehlo_reshape] = untold,
    [MLIR_OP_stablehlo_reverse] = like_operands,
    [MLIR_OP_stablehlo_rng] = drawn,
    [MLIR_OP_stablehlo_scatter] = like_its_operand,
    [MLIR_OP_stablehlo_select_and_scatter] = like_its_operand,
    [MLIR_OP_stablehlo_sort] = like_its_operand,
    [MLIR_OP_stablehlo_transpose] = transposed,
    [MLIR_OP_stablehlo_triangular_solve] = like_second,
    [MLIR_OP_stablehlo_while] = like_its_operand,
    [MLIR_OP_chlo_top_k] = topped,
};

static bool has_dynamic(const struct mlir_type *t)
{
    for (int i = 0; t->kind == MLIR_TENSOR && i < t->rank; i++)
        if (t->dims[i] < 0)
            return true;
    return false;
}

const struct mlir_type *refine_result(const struct refine_op *o, uint32_t result)
{
    const struct mlir_type *declared = o->op->results[result]->type;
    if (!has_dynamic(declared))
        return declared;
    int64_t *dims = arena_array(o->r->scratch, int64_t, declared->rank);
    memcpy(dims, declared->dims, (size_t)declared->rank * sizeof *dims);
    const struct mlir_row *row = o->op->row;
    rule *find = row ? rules[row->code] : NULL;
    if (!find && row && row->form == MLIR_FORM_SAME)
        find = like_operands;
    if (find)
        find(o, result, declared->rank, dims);
    for (int i = 0; i < declared->rank; i++)
        if (dims[i] < 0 || (declared->dims[i] >= 0 && dims[i] != declared->dims[i])) {
            struct strbuf text = strbuf_make(o->r->scratch);
            mlir_print_type(&text, declared);
            refine_fail(o->r, o->op, "an extent of axis %d of %s cannot be found", i,
                        text.text);
            return NULL;
        }
    return refine_tensor(o->r, declared->element, declared->rank, dims);
}
