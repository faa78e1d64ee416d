// SPDX-License-Identifier: Apache-2.0
// Constants, and operations that move elements without looking at them.
#include "interop/numbers.h"
#include "interop/to_graph.h"

#include "base/dtype.h"
#include "runtime/array.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- constants ----

// The elements as jot keeps them.
static const void *elements_of(struct graph_op *g, const struct mlir_attr *a)
{
    const struct mlir_element_row *e = &mlir_elements[a->type->element];
    size_t n = a->is_splat ? 1 : (size_t)mlir_elements_of(a->type);
    if (!graph_is_small_float(a->type))
        return a->bytes;
    void *kept = arena_array(g->frame->arena, char, (n + 1) * dtype_get(e->dtype)->bytes);
    number_keep_small(a->type->element, a->bytes, n, kept);
    return kept;
}

// Larger ones are arrays beside the graph: not hashed, not printed, not compiled in.
enum { MOST_INLINED = 4096 };

static jot_array *array_of(struct graph_op *g, const struct mlir_attr *a)
{
    if (a->array)
        return jot_array_retain((jot_array *)(uintptr_t)a->array);
    jot_array *array = rt_array_create(g->dtype, g->rank, g->dims);
    if (array && graph_is_small_float(a->type))
        number_keep_small(a->type->element, a->bytes, jot_array_size(array), array->data);
    else if (array)
        memcpy(array->data, a->bytes, a->n);
    return array;
}

static ir_id from_array(struct graph_op *g, const struct mlir_attr *a)
{
    jot_array *array = array_of(g, a);
    if (!array)
        return ir_fail(g->b, status_last(), "%s", jot_error_message());
    jot_value v = jot_from_array(array);
    jot_array_release(array);
    return trace_strong(v);
}

static void convert_constant(struct graph_op *g)
{
    const struct mlir_attr *a = mlir_attr_find(g->op, "value");
    struct ir_type type;
    if (!a || a->kind != MLIR_DENSE) {
        graph_refuse(g, "its value is no tensor of numbers");
        return;
    }
    if (!graph_type(g->b, a->type, &type))
        return;
    if (a->is_splat || !g->rank) {
        ir_id x =
            ir_const(g->b, ir_type_make(g->b->module, g->dtype, 0, NULL), elements_of(g, a));
        g->out[0] = g->rank ? ir_broadcast_in_dim(g->b, x, g->rank, g->dims, NULL) : x;
    } else if (a->n > MOST_INLINED) {
        g->out[0] = from_array(g, a);
    } else {
        g->out[0] = ir_const(g->b, type, elements_of(g, a));
    }
}

static void convert_iota(struct graph_op *g)
{
    struct ir_type type = ir_type_make(g->b->module, g->dtype, g->rank, g->dims);
    int64_t axis = mlir_int(g->op, "iota_dimension", 0);
    if (axis < 0 || axis >= g->rank)
        graph_refuse(g, "iota_dimension is %lld of %d axes", (long long)axis, g->rank);
    else
        g->out[0] = ir_iota(g->b, type, (int)axis);
}

// ---- shapes ----

static int rank_in(const struct graph_op *g, int i) { return ir_type_in(g->b, g->in[i]).rank; }

// A list of numbers, one for each of n axes; false with an error.
static const int64_t *list(struct graph_op *g, const char *name, int n)
{
    size_t count;
    const int64_t *numbers = mlir_ints(g->op, name, &count);
    static const int64_t none[1];
    if (count == (size_t)n)
        return numbers ? numbers : none;
    graph_refuse(g, "%s has %zu numbers where %d are needed", name, count, n);
    return NULL;
}

// The axes of the operand in the order in which the result has them.
static void convert_broadcast_in_dim(struct graph_op *g)
{
    int rank = rank_in(g, 0);
    const int64_t *dims = list(g, "broadcast_dimensions", rank);
    if (!dims)
        return;
    int64_t order[IR_MAX_RANK], sorted[IR_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > dims[i]; at--) {
            sorted[at] = sorted[at - 1];
            order[at] = order[at - 1];
        }
        sorted[at] = dims[i];
        order[at] = i;
    }
    ir_id x = ir_transpose(g->b, g->in[0], order);
    g->out[0] = ir_broadcast_in_dim(g->b, x, g->rank, g->dims, sorted);
}

static void convert_broadcast(struct graph_op *g)
{
    int rank = rank_in(g, 0);
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = g->rank - rank + i;
    g->out[0] = ir_broadcast_in_dim(g->b, g->in[0], g->rank, g->dims, axes);
}

static void convert_reshape(struct graph_op *g)
{
    g->out[0] = ir_reshape(g->b, g->in[0], g->rank, g->dims);
}

static void convert_transpose(struct graph_op *g)
{
    const int64_t *axes = list(g, "permutation", rank_in(g, 0));
    if (axes)
        g->out[0] = ir_transpose(g->b, g->in[0], axes);
}

static void convert_reverse(struct graph_op *g)
{
    size_t n;
    const int64_t *axes = mlir_ints(g->op, "dimensions", &n);
    int64_t sorted[IR_MAX_RANK];
    int count = 0;
    for (int axis = 0; axis < rank_in(g, 0); axis++)
        for (size_t i = 0; i < n; i++)
            if (axes[i] == axis && (!count || sorted[count - 1] != axis))
                sorted[count++] = axis;
    g->out[0] = count ? ir_rev(g->b, g->in[0], count, sorted) : g->in[0];
}

static void convert_slice(struct graph_op *g)
{
    int rank = rank_in(g, 0);
    const int64_t *starts = list(g, "start_indices", rank);
    const int64_t *limits = list(g, "limit_indices", rank);
    const int64_t *strides = list(g, "strides", rank);
    if (starts && limits && strides)
        g->out[0] = ir_slice(g->b, g->in[0], starts, limits, strides);
}

static void convert_pad(struct graph_op *g)
{
    int rank = rank_in(g, 0);
    const int64_t *low = list(g, "edge_padding_low", rank);
    const int64_t *high = list(g, "edge_padding_high", rank);
    const int64_t *interior = list(g, "interior_padding", rank);
    if (low && high && interior)
        g->out[0] = ir_pad(g->b, g->in[0], g->in[1], low, high, interior);
}

static void convert_concatenate(struct graph_op *g)
{
    int64_t axis = mlir_int(g->op, "dimension", 0);
    g->out[0] = ir_concatenate(g->b, (int)g->op->n_operands, g->in, (int)axis);
}

static void convert_get_dimension_size(struct graph_op *g)
{
    int64_t axis = mlir_int(g->op, "dimension", 0);
    struct ir_type x = ir_type_in(g->b, g->in[0]);
    if (axis < 0 || axis >= x.rank)
        graph_refuse(g, "dimension is %lld of %d axes", (long long)axis, x.rank);
    else
        g->out[0] = ir_scalar_int(g->b, JOT_I32, ir_dims(g->b->module, x)[axis]);
}

// ---- what only passes values on ----

static void convert_identity(struct graph_op *g)
{
    for (uint32_t i = 0; i < g->op->n_results; i++)
        g->out[i] = g->in[i];
}

static void convert_barrier(struct graph_op *g)
{
    ir_id first = g->op->n_operands
                      ? ir_build(g->b, IR_barrier, (int)g->op->n_operands, g->in, NULL)
                      : IR_NONE;
    for (uint32_t i = 0; i < g->op->n_results; i++)
        g->out[i] = first + i;
}

// ---- bits ----

static jot_dtype word_of(int bits)
{
    return bits <= 8 ? JOT_U8 : bits == 16 ? JOT_U16 : bits == 32 ? JOT_U32 : JOT_U64;
}

// Elements of a number of bits, as words of at least so many; bools are one bit, and what is in a byte that
// has fewer bits are the lowest ones.
static ir_id words_of(struct graph_op *g, ir_id x, int bits)
{
    jot_dtype d = ir_dtype(ir_type_in(g->b, x)), word = word_of(bits);
    const struct mlir_type *type = g->op->operands[0]->type;
    if (d == JOT_BOOL)
        return ir_convert(g->b, x, JOT_U8);
    if (graph_is_small_float(type))
        return graph_bits_of_small(g->b, x, type->element);
    ir_id y = d == word ? x : ir_bitcast(g->b, x, word);
    return bits < 8 ? ir_and(g->b, y, ir_scalar_int(g->b, word, (1 << bits) - 1)) : y;
}

static ir_id elements_from(struct graph_op *g, ir_id words, const struct mlir_element_row *e,
                           jot_dtype d)
{
    struct ir_builder *b = g->b;
    const struct mlir_type *type = g->op->results[0]->type;
    if (d == JOT_BOOL)
        return ir_ne(b, words, ir_scalar_int(b, JOT_U8, 0));
    if (graph_is_small_float(type))
        return graph_small_of_bits(b, words, type->element);
    ir_id x = ir_dtype(ir_type_in(b, words)) == d ? words : ir_bitcast(b, words, d);
    if (e->bits >= 8 || e->kind != 'i')
        return x;
    ir_id unused = ir_scalar_int(b, d, 8 - e->bits);
    return ir_shr_arith(b, ir_shl(b, x, unused), unused);
}

// x along a new last axis of n, each with its number there times `bits`, of the type of x.
static ir_id spread(struct graph_op *g, ir_id x, int n, int bits, ir_id *out_shifts)
{
    struct ir_type type = ir_type_in(g->b, x);
    int64_t dims[IR_MAX_RANK + 1], axes[IR_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        dims[i] = ir_dims(g->b->module, type)[i];
        axes[i] = i;
    }
    dims[type.rank] = n;
    struct ir_type wide = ir_type_make(g->b->module, ir_dtype(type), type.rank + 1, dims);
    ir_id number = ir_iota(g->b, wide, type.rank);
    *out_shifts = ir_mul(g->b, number, ir_scalar_int(g->b, ir_dtype(type), bits));
    return ir_broadcast_in_dim(g->b, x, type.rank + 1, dims, axes);
}

static ir_id narrower(struct graph_op *g, ir_id words, int from, int to)
{
    ir_id shifts, parts = spread(g, words, from / to, to, &shifts);
    ir_id y = ir_convert(g->b, ir_shr_logical(g->b, parts, shifts), word_of(to));
    return to < 8 ? ir_and(g->b, y, ir_scalar_int(g->b, JOT_U8, (1 << to) - 1)) : y;
}

static ir_id wider(struct graph_op *g, ir_id words, int from, int to)
{
    struct ir_builder *b = g->b;
    ir_id word = ir_dtype(ir_type_in(b, words)) == word_of(to)
                     ? words
                     : ir_convert(b, words, word_of(to));
    struct ir_type type = ir_type_in(b, word);
    ir_id number = ir_iota(b, type, type.rank - 1);
    ir_id shifts = ir_mul(b, number, ir_scalar_int(b, word_of(to), from));
    int64_t last = type.rank - 1;
    return ir_reduce(b, IR_reduce_or, ir_shl(b, word, shifts), 1, &last);
}

// A complex number as two words along a new last axis, and back.
static ir_id parts_of(struct graph_op *g, ir_id z)
{
    struct ir_type type = ir_type_in(g->b, z);
    int64_t dims[IR_MAX_RANK + 1];
    memcpy(dims, ir_dims(g->b->module, type), sizeof *dims * type.rank);
    dims[type.rank] = 1;
    ir_id parts[] = {ir_reshape(g->b, ir_real(g->b, z), type.rank + 1, dims),
                     ir_reshape(g->b, ir_imag(g->b, z), type.rank + 1, dims)};
    return ir_concatenate(g->b, 2, parts, type.rank);
}

static ir_id complex_of(struct graph_op *g, ir_id parts)
{
    struct ir_type type = ir_type_in(g->b, parts);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], strides[IR_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        limits[i] = ir_dims(g->b->module, type)[i];
        strides[i] = 1;
    }
    ir_id at[2];
    for (int k = 0; k < 2; k++) {
        starts[type.rank - 1] = k;
        limits[type.rank - 1] = k + 1;
        ir_id part = ir_slice(g->b, parts, starts, limits, strides);
        at[k] = ir_reshape(g->b, part, type.rank - 1, ir_dims(g->b->module, type));
    }
    return ir_complex(g->b, at[0], at[1]);
}

static void convert_bitcast(struct graph_op *g)
{
    const struct mlir_element_row *from = &mlir_elements[g->op->operands[0]->type->element];
    const struct mlir_element_row *to = &mlir_elements[g->op->results[0]->type->element];
    ir_id x = g->in[0];
    if (from == to) {
        g->out[0] = x;
        return;
    }
    bool is_complex = dtype_is_complex(to->dtype);
    int a = from->bits, c = is_complex ? to->bits / 2 : to->bits;
    jot_dtype part = is_complex ? dtype_real(to->dtype) : to->dtype;
    if (dtype_is_complex(from->dtype)) {
        x = parts_of(g, x);
        a /= 2;
    }
    ir_id words = words_of(g, x, a);
    words = a > c ? narrower(g, words, a, c) : a < c ? wider(g, words, a, c) : words;
    x = elements_from(g, words, to, part);
    g->out[0] = is_complex ? complex_of(g, x) : x;
}

static const struct {
    enum mlir_code code;
    graph_convert *convert;
} shapes[] = {
    {HLO_(constant), convert_constant},
    {MLIR_OP_chlo_constant, convert_constant},
    {HLO_(iota), convert_iota},
    {HLO_(dynamic_iota), convert_iota},
    {HLO_(broadcast), convert_broadcast},
    {HLO_(broadcast_in_dim), convert_broadcast_in_dim},
    {HLO_(dynamic_broadcast_in_dim), convert_broadcast_in_dim},
    {HLO_(reshape), convert_reshape},
    {HLO_(dynamic_reshape), convert_reshape},
    {HLO_(transpose), convert_transpose},
    {HLO_(reverse), convert_reverse},
    {HLO_(slice), convert_slice},
    {HLO_(pad), convert_pad},
    {HLO_(concatenate), convert_concatenate},
    {HLO_(get_dimension_size), convert_get_dimension_size},
    {HLO_(optimization_barrier), convert_barrier},
    {HLO_(bitcast_convert), convert_bitcast},
    {MLIR_OP_sdy_sharding_constraint, convert_identity},
    {MLIR_OP_builtin_unrealized_conversion_cast, convert_identity},
};

graph_convert *graph_shape_find(enum mlir_code code)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].code == code)
            return shapes[i].convert;
    return NULL;
}
