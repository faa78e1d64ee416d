// SPDX-License-Identifier: Apache-2.0
// Operations that have extents as operands, as those that have them as attributes.
#include "interop/refine_internal.h"

#include "base/strbuf.h"

#include <inttypes.h>

struct mlir_value *refine_value(struct refiner *r, const struct mlir_type *type)
{
    struct mlir_value *v = arena_new(r->arena, struct mlir_value);
    v->type = type;
    v->number = r->n_values++;
    return v;
}

static const char *name_of(struct refiner *r, const struct mlir_row *row)
{
    struct strbuf text = strbuf_make(r->arena);
    strbuf_printf(&text, "%s.%s", row->dialect, row->name);
    return text.text;
}

struct mlir_op *refine_emit(struct refine_op *o, enum mlir_code code, uint32_t n_operands,
                            uint32_t n_results)
{
    struct refiner *r = o->r;
    struct mlir_op *op = arena_copy(r->arena, o->op, sizeof *op);
    if (!o->op->row || o->op->row->code != code) {
        op->row = &mlir_rows[code];
        op->name = name_of(r, op->row);
    }
    struct mlir_value **operands = arena_array(r->arena, struct mlir_value *, n_operands);
    for (uint32_t i = 0; i < n_operands && i < o->op->n_operands; i++)
        operands[i] = o->operands[i].value;
    op->operands = operands;
    op->n_operands = n_operands;
    op->results = arena_array(r->arena, struct mlir_value *, n_results);
    op->n_results = n_results;
    op->regions = NULL;
    op->n_regions = 0;
    if (!r->allowance)
        refine_fail(r, o->op, "the program becomes too large with these extents");
    r->allowance -= r->allowance > 0;
    vec_push(r->scratch, o->out, op);
    return op;
}

// The only result of an operation, which stands for result `old` of the one that is refined.
static void set_result(struct refine_op *o, struct mlir_op *op, const struct mlir_type *type)
{
    struct mlir_value *v = refine_value(o->r, type);
    ((struct mlir_value **)op->results)[0] = v;
    o->values[o->op->results[0]->number].value = v;
}

// Attributes of the operation but for those that `without` names, and some more.
static void set_attrs(struct refine_op *o, struct mlir_op *op, const char *const *without,
                      const struct mlir_named *more, uint32_t n_more)
{
    struct mlir_named *attrs =
        arena_array(o->r->arena, struct mlir_named, o->op->n_attrs + n_more);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_more; i++)
        attrs[n++] = more[i];
    for (uint32_t i = 0; i < o->op->n_attrs; i++) {
        bool is_kept = true;
        for (const char *const *w = without; w && *w; w++)
            is_kept = is_kept && strcmp(*w, o->op->attrs[i].name) != 0;
        if (is_kept)
            attrs[n++] = o->op->attrs[i];
    }
    op->attrs = attrs;
    op->n_attrs = n;
}

static const struct mlir_attr *ints(struct refiner *r, const int64_t *numbers, int64_t n)
{
    struct mlir_attr *a = arena_new(r->arena, struct mlir_attr);
    a->kind = MLIR_INTS;
    a->n = (size_t)n;
    a->numbers = arena_copy(r->arena, numbers, (size_t)n * sizeof *numbers);
    return a;
}

void refine_emit_constant(struct refine_op *o, uint32_t result, const struct mlir_type *type,
                          const int64_t *numbers)
{
    struct refiner *r = o->r;
    int64_t n = mlir_elements_of(type);
    size_t bytes = (size_t)(mlir_elements[type->element].bits + 7) / 8;
    unsigned char *data = arena_allocate(r->arena, (size_t)n * bytes);
    for (int64_t i = 0; i < n; i++)
        memcpy(data + (size_t)i * bytes, &numbers[i], bytes);
    struct mlir_attr *a = arena_new(r->arena, struct mlir_attr);
    *a = (struct mlir_attr){
        .kind = MLIR_DENSE, .type = type, .n = (size_t)n * bytes, .bytes = data};
    struct mlir_op *op = refine_emit(o, MLIR_OP_stablehlo_constant, 0, 1);
    op->attrs = arena_copy(r->arena, &(struct mlir_named){"value", a}, sizeof *op->attrs);
    op->n_attrs = 1;
    struct mlir_value *v = refine_value(r, type);
    ((struct mlir_value **)op->results)[0] = v;
    o->values[o->op->results[result]->number] = (struct refined){.value = v, .known = numbers};
}

// The numbers of an operand, of which there have to be n; NULL after a fault.
static const int64_t *need(struct refine_op *o, uint32_t operand, int64_t n)
{
    int64_t count;
    const int64_t *numbers = refine_known(o, operand, &count);
    if (!numbers || count != n)
        refine_fail(o->r, o->op, "operand %u has to be %" PRId64 " extents that are known",
                    operand, n);
    return o->r->status ? NULL : numbers;
}

static const struct mlir_type *operand_type(const struct refine_op *o, uint32_t operand)
{
    return operand < o->op->n_operands ? o->operands[operand].value->type : NULL;
}

// An operation of one result and fewer operands, whose extents are the numbers of an operand.
static void with_shape(struct refine_op *o, enum mlir_code code, uint32_t shape)
{
    const struct mlir_type *declared = o->op->results[0]->type;
    static const char *const without[] = {"known_expanding_dimensions",
                                          "known_nonexpanding_dimensions", NULL};
    const int64_t *dims = need(o, shape, declared->rank);
    for (int i = 0; dims && i < declared->rank; i++)
        if (dims[i] < 0)
            refine_fail(o->r, o->op, "an extent of %" PRId64, dims[i]);
    if (o->r->status)
        return;
    struct mlir_op *op = refine_emit(o, code, shape, 1);
    set_attrs(o, op, without, NULL, 0);
    set_result(o, op, refine_tensor(o->r, declared->element, declared->rank, dims));
}

// An operation whose result is found by the rules, with some numbers of operands as attributes.
static void with_numbers(struct refine_op *o, enum mlir_code code, uint32_t n_operands,
                         const char *const *names, uint32_t n_names, int64_t n)
{
    struct mlir_named more[8];
    for (uint32_t i = 0; i < n_names; i++) {
        const int64_t *numbers = need(o, n_operands + i, n);
        if (!numbers)
            return;
        more[i] = (struct mlir_named){names[i], ints(o->r, numbers, n)};
    }
    struct mlir_op *op = refine_emit(o, code, n_operands, 1);
    set_attrs(o, op, names, more, n_names);
    // As the rules see it.
    struct mlir_op seen = *op;
    seen.results = o->op->results;
    struct refine_op o_seen = *o;
    o_seen.op = &seen;
    const struct mlir_type *type = refine_result(&o_seen, 0);
    if (type)
        set_result(o, op, type);
}

static void dynamic_pad(struct refine_op *o)
{
    static const char *const names[] = {"edge_padding_low", "edge_padding_high",
                                        "interior_padding", NULL};
    with_numbers(o, MLIR_OP_stablehlo_pad, 2, names, 3, operand_type(o, 0)->rank);
}

static void dynamic_gather(struct refine_op *o)
{
    static const char *const names[] = {"slice_sizes", NULL};
    with_numbers(o, MLIR_OP_stablehlo_gather, 2, names, 1, operand_type(o, 0)->rank);
}

static void dynamic_conv(struct refine_op *o)
{
    static const char *const names[] = {"padding", NULL};
    with_numbers(o, MLIR_OP_stablehlo_convolution, 2, names, 1,
                 2 * ((int64_t)operand_type(o, 0)->rank - 2));
}

// An operation in front of the one that is refined.
static struct mlir_value *emit_before(struct refine_op *o, enum mlir_code code,
                                      struct mlir_value *operand,
                                      const struct mlir_named *attrs, uint32_t n_attrs,
                                      const struct mlir_type *type)
{
    struct mlir_op *op = refine_emit(o, code, 1, 1);
    struct mlir_value *v = refine_value(o->r, type);
    ((struct mlir_value **)op->operands)[0] = operand;
    ((struct mlir_value **)op->results)[0] = v;
    op->attrs = arena_copy(o->r->arena, attrs, n_attrs * sizeof *attrs);
    op->n_attrs = n_attrs;
    return v;
}

// The extents of a slice whose limit is its start and what is known: start + extents.
static const int64_t *sizes_of(const struct refine_op *o, int rank)
{
    const struct mlir_op *limit = o->values[o->op->operands[2]->number].by;
    int64_t n;
    const int64_t *strides = refine_known(o, 3, &n);
    for (int i = 0; n == rank && i < rank; i++)
        n = strides[i] == 1 ? n : -1;
    if (n != rank || !limit || !limit->row || limit->row->code != MLIR_OP_stablehlo_add ||
        limit->n_operands != 2)
        return NULL;
    bool is_first = limit->operands[0] == o->op->operands[1];
    if (!is_first && limit->operands[1] != o->op->operands[1])
        return NULL;
    const struct refined *sizes = &o->values[limit->operands[is_first]->number];
    return sizes->known && mlir_elements_of(sizes->value->type) == rank ? sizes->known : NULL;
}

static void slice_at(struct refine_op *o, const int64_t *sizes)
{
    struct refiner *r = o->r;
    const struct mlir_type *type = operand_type(o, 0), *start = operand_type(o, 1);
    struct mlir_value **scalars = arena_array(r->scratch, struct mlir_value *, type->rank);
    const struct mlir_type *one = refine_tensor(r, start->element, 1, (int64_t[]){1});
    const struct mlir_type *scalar = refine_tensor(r, start->element, 0, (int64_t[]){0});
    for (int64_t i = 0; i < type->rank; i++) {
        int64_t end = i + 1, stride = 1;
        struct mlir_named attrs[] = {{"limit_indices", ints(r, &end, 1)},
                                     {"start_indices", ints(r, &i, 1)},
                                     {"strides", ints(r, &stride, 1)}};
        if (sizes[i] < 0 || sizes[i] > type->dims[i])
            refine_fail(r, o->op, "a slice of %" PRId64 " elements", sizes[i]);
        struct mlir_value *part =
            emit_before(o, MLIR_OP_stablehlo_slice, o->operands[1].value, attrs, 3, one);
        scalars[i] = emit_before(o, MLIR_OP_stablehlo_reshape, part, NULL, 0, scalar);
    }
    struct mlir_op *op =
        refine_emit(o, MLIR_OP_stablehlo_dynamic_slice, (uint32_t)type->rank + 1, 1);
    for (int i = 0; i < type->rank; i++)
        ((struct mlir_value **)op->operands)[1 + i] = scalars[i];
    struct mlir_named attr = {"slice_sizes", ints(r, sizes, type->rank)};
    set_attrs(o, op, NULL, &attr, 1);
    set_result(o, op, refine_tensor(r, type->element, type->rank, sizes));
}

static void real_dynamic_slice(struct refine_op *o)
{
    const int64_t *sizes = o->op->n_operands == 4 && !o->operands[1].known
                               ? sizes_of(o, operand_type(o, 0)->rank)
                               : NULL;
    if (sizes) {
        slice_at(o, sizes);
        return;
    }
    static const char *const names[] = {"start_indices", "limit_indices", "strides"};
    const struct mlir_type *type = operand_type(o, 0);
    const int64_t *numbers[3];
    struct mlir_named more[3];
    for (uint32_t i = 0; i < 3; i++) {
        numbers[i] = need(o, 1 + i, type->rank);
        if (!numbers[i])
            return;
        more[i] = (struct mlir_named){names[i], ints(o->r, numbers[i], type->rank)};
    }
    int64_t *dims = arena_array(o->r->scratch, int64_t, type->rank);
    for (int i = 0; i < type->rank; i++) {
        int64_t start = numbers[0][i], limit = numbers[1][i], stride = numbers[2][i];
        if (start < 0 || limit < start || limit > type->dims[i] || stride < 1) {
            refine_fail(o->r, o->op, "a slice from %" PRId64 " to %" PRId64 " by %" PRId64,
                        start, limit, stride);
            return;
        }
        dims[i] = limit == start ? 0 : (limit - start - 1) / stride + 1;
    }
    struct mlir_op *op = refine_emit(o, MLIR_OP_stablehlo_slice, 1, 1);
    set_attrs(o, op, NULL, more, 3);
    set_result(o, op, refine_tensor(o->r, type->element, type->rank, dims));
}

static void get_dimension_size(struct refine_op *o)
{
    int64_t *n = arena_array(o->r->scratch, int64_t, 1);
    *n = refine_extent(o, 0, mlir_int(o->op, "dimension", -1));
    const struct mlir_type *type = o->op->results[0]->type;
    if (*n < 0 || type->kind != MLIR_TENSOR || type->rank || *n > INT32_MAX)
        refine_fail(o->r, o->op, "the extent of an axis that is not there, or of no 32 bits");
    else
        refine_emit_constant(o, 0, type, n);
}

static void constant(struct refine_op *o)
{
    const struct mlir_attr *value = mlir_attr_find(o->op, "value");
    struct mlir_op *op = refine_emit(o, MLIR_OP_stablehlo_constant, 0, 1);
    set_result(o, op, o->op->results[0]->type);
    if (value && value->kind == MLIR_DENSE &&
        mlir_types_equal(value->type, o->op->results[0]->type))
        o->values[o->op->results[0]->number].known = refine_eval_constant(o->r, value);
}

// "... found {0}" with the number of operand 1 for {0}.
static void assertion(struct refine_op *o)
{
    int64_t n;
    const int64_t *holds = refine_known(o, 0, &n);
    const char *message = mlir_text(o->op, "error_message");
    if (n == 1 && holds[0])
        return;
    if (n != 1) {
        refine_fail(o->r, o->op, "an assertion about shapes that are not known");
        return;
    }
    struct strbuf text = strbuf_make(o->r->scratch);
    for (const char *c = message ? message : "an assertion about shapes does not hold"; *c;
         c++) {
        int64_t count;
        const int64_t *number = c[0] == '{' && c[1] >= '0' && c[1] <= '9' && c[2] == '}'
                                    ? refine_known(o, (uint32_t)(c[1] - '0') + 1, &count)
                                    : NULL;
        if (number && count == 1) {
            strbuf_printf(&text, "%" PRId64, *number);
            c += 2;
        } else {
            strbuf_add_bytes(&text, c, 1);
        }
    }
    refine_fail(o->r, o->op, "%s", text.text);
}

// custom_call @stablehlo.dynamic_reduce_window(operand, init, window, strides, base dilations,
// window dilations, padding), whose body is a function.
static void dynamic_reduce_window(struct refine_op *o)
{
    static const char *const names[] = {"window_dimensions", "window_strides", "base_dilations",
                                        "window_dilations",  "padding",        NULL};
    const struct mlir_attr *called = mlir_attr_find(o->op, "called_computations");
    if (o->op->n_operands != 7 || !called || called->kind != MLIR_ARRAY || called->n != 1 ||
        called->parts[0]->kind != MLIR_SYMBOL || o->op->n_results != 1) {
        refine_fail(o->r, o->op, "windows of more than one operand");
        return;
    }
    int64_t rank = operand_type(o, 0)->rank;
    struct mlir_named more[5];
    for (uint32_t i = 0; i < 5; i++) {
        int64_t n = i == 4 ? 2 * rank : rank;
        const int64_t *numbers = need(o, 2 + i, n);
        if (!numbers)
            return;
        more[i] = (struct mlir_named){names[i], ints(o->r, numbers, n)};
    }
    struct mlir_block *body = arena_new(o->r->arena, struct mlir_block);
    if (!refine_inline(o, called->parts[0]->text, body))
        return;
    struct mlir_op *op = refine_emit(o, MLIR_OP_stablehlo_reduce_window, 2, 1);
    op->attrs = arena_copy(o->r->arena, more, sizeof more);
    op->n_attrs = 5;
    op->regions = body;
    op->n_regions = 1;
    struct mlir_op seen = *op;
    seen.results = o->op->results;
    struct refine_op o_seen = *o;
    o_seen.op = &seen;
    const struct mlir_type *type = refine_result(&o_seen, 0);
    if (type)
        set_result(o, op, type);
}

// custom_call @stablehlo.dynamic_top_k(operand, k).
static void dynamic_top_k(struct refine_op *o)
{
    const int64_t *k = o->op->n_operands == 2 && o->op->n_results == 2 ? need(o, 1, 1) : NULL;
    const struct mlir_type *type = k ? operand_type(o, 0) : NULL;
    if (!k || !type->rank || *k < 0 || *k > type->dims[type->rank - 1]) {
        refine_fail(o->r, o->op, "a number of largest elements that is not known");
        return;
    }
    struct mlir_attr *number = arena_new(o->r->arena, struct mlir_attr);
    *number = (struct mlir_attr){.kind = MLIR_INT, .integer = *k};
    struct mlir_op *op = refine_emit(o, MLIR_OP_chlo_top_k, 1, 2);
    op->attrs = arena_copy(o->r->arena, &(struct mlir_named){"k", number}, sizeof *op->attrs);
    op->n_attrs = 1;
    int64_t *dims = arena_array(o->r->scratch, int64_t, type->rank);
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[type->rank - 1] = *k;
    for (uint32_t i = 0; i < 2; i++) {
        enum mlir_element e = o->op->results[i]->type->element;
        struct mlir_value *v = refine_value(o->r, refine_tensor(o->r, e, type->rank, dims));
        ((struct mlir_value **)op->results)[i] = v;
        o->values[o->op->results[i]->number] = (struct refined){.value = v};
    }
}

// custom_call @stablehlo.dynamic_rng_bit_generator(state, extents).
static void dynamic_rng_bit_generator(struct refine_op *o)
{
    const struct mlir_type *declared = o->op->n_results == 2 ? o->op->results[1]->type : NULL;
    const int64_t *dims =
        declared && o->op->n_operands == 2 ? need(o, 1, declared->rank) : NULL;
    if (!dims) {
        refine_fail(o->r, o->op, "random bits of extents that are not known");
        return;
    }
    struct mlir_op *op = refine_emit(o, MLIR_OP_stablehlo_rng_bit_generator, 1, 2);
    static const char *const without[] = {"call_target_name", "api_version", NULL};
    set_attrs(o, op, without, NULL, 0);
    const struct mlir_type *types[] = {
        o->op->results[0]->type, refine_tensor(o->r, declared->element, declared->rank, dims)};
    for (uint32_t i = 0; i < 2; i++) {
        struct mlir_value *v = refine_value(o->r, types[i]);
        ((struct mlir_value **)op->results)[i] = v;
        o->values[o->op->results[i]->number] = (struct refined){.value = v};
    }
}

// Whether an operand of a call is there to say the extents of a result.
static bool is_shape(const struct mlir_attr *which, const int64_t *numbers, uint32_t operand)
{
    int64_t n = which->kind == MLIR_INTS ? (int64_t)which->n : mlir_elements_of(which->type);
    for (int64_t i = 0; i < n; i++)
        if (numbers[i] == operand)
            return true;
    return false;
}

// A call some of whose operands are the extents of its results, without them.
static bool call_of_shapes(struct refine_op *o)
{
    const struct mlir_op *old = o->op;
    const struct mlir_attr *which = mlir_attr_find(old, "indices_of_shape_operands");
    const struct mlir_attr *layouts = mlir_attr_find(old, "operand_layouts");
    if (!which)
        return false;
    const int64_t *numbers =
        which->kind == MLIR_INTS ? which->numbers : refine_eval_constant(o->r, which);
    if (!numbers)
        return false;
    static const char *const without[] = {"indices_of_shape_operands", "operand_layouts", NULL};
    struct mlir_op *op =
        refine_emit(o, MLIR_OP_stablehlo_custom_call, old->n_operands, old->n_results);
    bool has_layouts = layouts && layouts->kind == MLIR_ARRAY && layouts->n == old->n_operands;
    const struct mlir_attr **kept =
        arena_array(o->r->arena, const struct mlir_attr *, old->n_operands);
    uint32_t n = 0;
    for (uint32_t i = 0; i < old->n_operands; i++) {
        if (is_shape(which, numbers, i))
            continue;
        kept[n] = has_layouts ? layouts->parts[i] : NULL;
        ((struct mlir_value **)op->operands)[n++] = o->operands[i].value;
    }
    op->n_operands = n;
    struct mlir_attr *array = arena_new(o->r->arena, struct mlir_attr);
    *array = (struct mlir_attr){.kind = MLIR_ARRAY, .n = n, .parts = kept};
    set_attrs(o, op, without, &(struct mlir_named){"operand_layouts", array}, has_layouts);
    for (uint32_t i = 0; i < old->n_results; i++) {
        const struct mlir_type *type = refine_result(o, i);
        if (!type)
            break;
        struct mlir_value *v = refine_value(o->r, type);
        ((struct mlir_value **)op->results)[i] = v;
        o->values[old->results[i]->number] = (struct refined){.value = v};
    }
    return true;
}

static bool custom_call(struct refine_op *o)
{
    static const struct {
        const char *target;
        void (*refine)(struct refine_op *o);
    } targets[] = {{"shape_assertion", assertion},
                   {"stablehlo.dynamic_reduce_window", dynamic_reduce_window},
                   {"stablehlo.dynamic_rng_bit_generator", dynamic_rng_bit_generator},
                   {"stablehlo.dynamic_top_k", dynamic_top_k}};
    const char *target = mlir_text(o->op, "call_target_name");
    for (size_t i = 0; target && i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(target, targets[i].target)) {
            targets[i].refine(o);
            return true;
        }
    return call_of_shapes(o);
}

bool refine_special(struct refine_op *o)
{
    const struct mlir_op *op = o->op;
    if (!op->row)
        return false;
    if (op->row->code == MLIR_OP_stablehlo_custom_call)
        return custom_call(o);
    if (op->n_results != 1)
        return false;
    bool is_tensor = op->results[0]->type->kind == MLIR_TENSOR;
    bool is_of_tensor = op->n_operands && operand_type(o, 0)->kind == MLIR_TENSOR && is_tensor;
    switch (is_of_tensor || op->row->code == MLIR_OP_stablehlo_constant ? op->row->code
                                                                        : MLIR_N_CODES) {
    case MLIR_OP_stablehlo_constant:
        constant(o);
        return true;
    case MLIR_OP_stablehlo_get_dimension_size:
        get_dimension_size(o);
        return true;
    case MLIR_OP_stablehlo_dynamic_reshape:
        with_shape(o, MLIR_OP_stablehlo_reshape, 1);
        return true;
    case MLIR_OP_stablehlo_dynamic_iota:
        with_shape(o, MLIR_OP_stablehlo_iota, 0);
        return true;
    case MLIR_OP_stablehlo_dynamic_broadcast_in_dim:
        with_shape(o, MLIR_OP_stablehlo_broadcast_in_dim, 1);
        return true;
    case MLIR_OP_stablehlo_dynamic_pad:
        dynamic_pad(o);
        return true;
    case MLIR_OP_stablehlo_dynamic_gather:
        dynamic_gather(o);
        return true;
    case MLIR_OP_stablehlo_dynamic_conv:
        dynamic_conv(o);
        return true;
    case MLIR_OP_stablehlo_real_dynamic_slice:
        real_dynamic_slice(o);
        return true;
    default:
        return false;
    }
}
