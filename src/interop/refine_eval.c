// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers that are known: what programs do with extents.
#include "interop/refine_internal.h"

// A number as an element of its type has it.
static int64_t wrapped(enum mlir_element e, uint64_t x)
{
    int bits = mlir_elements[e].bits;
    if (bits >= 64)
        return (int64_t)x;
    x &= (UINT64_C(1) << bits) - 1;
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return mlir_elements[e].kind == 'i' ? (int64_t)((x ^ sign) - sign) : (int64_t)x;
}

static bool is_unsigned(enum mlir_element e) { return mlir_elements[e].kind != 'i'; }

static bool is_less(enum mlir_element e, int64_t a, int64_t b)
{
    return is_unsigned(e) ? (uint64_t)a < (uint64_t)b : a < b;
}

// By zero as StableHLO says it; the least number by -1 is itself.
static int64_t divided(enum mlir_element e, int64_t a, int64_t b)
{
    if (!b)
        return -1;
    if (is_unsigned(e))
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(enum mlir_element e, int64_t a, int64_t b)
{
    if (!b)
        return a;
    if (is_unsigned(e))
        return (int64_t)((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : a % b;
}

static bool compare(enum mlir_element e, const char *direction, int64_t a, int64_t b)
{
    bool less = is_less(e, a, b), more = is_less(e, b, a);
    if (!strcmp(direction, "EQ"))
        return a == b;
    if (!strcmp(direction, "NE"))
        return a != b;
    if (!strcmp(direction, "LT"))
        return less;
    if (!strcmp(direction, "LE"))
        return !more;
    return !strcmp(direction, "GT") ? more : !less;
}

// One element; false when the operation is none of one number for each.
static bool eval_element(const struct mlir_op *op, enum mlir_element e, const int64_t *x,
                         int64_t *y)
{
    uint64_t a = (uint64_t)x[0], b = (uint64_t)x[1];
    const char *direction;
    switch (op->row->code) {
    case MLIR_OP_stablehlo_abs:
        *y = x[0] < 0 && !is_unsigned(e) ? (int64_t)(0 - a) : x[0];
        return true;
    case MLIR_OP_stablehlo_add:
        *y = (int64_t)(mlir_elements[e].kind == 'b' ? a | b : a + b);
        return true;
    case MLIR_OP_stablehlo_and:
        *y = (int64_t)(a & b);
        return true;
    case MLIR_OP_stablehlo_clamp:
        *y = is_less(e, x[1], x[0]) ? x[0] : is_less(e, x[2], x[1]) ? x[2] : x[1];
        return true;
    case MLIR_OP_stablehlo_compare:
        direction = mlir_text(op, "comparison_direction");
        *y = direction && compare(e, direction, x[0], x[1]);
        return direction != NULL;
    case MLIR_OP_stablehlo_convert:
        *y = x[0];
        return true;
    case MLIR_OP_stablehlo_divide:
        *y = divided(e, x[0], x[1]);
        return true;
    case MLIR_OP_stablehlo_maximum:
        *y = is_less(e, x[0], x[1]) ? x[1] : x[0];
        return true;
    case MLIR_OP_stablehlo_minimum:
        *y = is_less(e, x[1], x[0]) ? x[1] : x[0];
        return true;
    case MLIR_OP_stablehlo_multiply:
        *y = (int64_t)(a * b);
        return true;
    case MLIR_OP_stablehlo_negate:
        *y = (int64_t)(0 - a);
        return true;
    case MLIR_OP_stablehlo_not:
        *y = (int64_t)~a;
        return true;
    case MLIR_OP_stablehlo_or:
        *y = (int64_t)(a | b);
        return true;
    case MLIR_OP_stablehlo_remainder:
        *y = remainder_of(e, x[0], x[1]);
        return true;
    case MLIR_OP_stablehlo_select:
        *y = x[0] ? x[1] : x[2];
        return true;
    case MLIR_OP_stablehlo_sign:
        *y = is_unsigned(e) ? x[0] != 0 : (x[0] > 0) - (x[0] < 0);
        return true;
    case MLIR_OP_stablehlo_subtract:
        *y = (int64_t)(a - b);
        return true;
    case MLIR_OP_stablehlo_xor:
        *y = (int64_t)(a ^ b);
        return true;
    default:
        return false;
    }
}

static const int64_t *eval_elements(const struct refine_op *o, const struct mlir_type *type,
                                    int64_t n)
{
    const struct mlir_op *op = o->op;
    if (!op->n_operands || op->n_operands > 3)
        return NULL;
    int64_t *y = arena_array(o->r->scratch, int64_t, n);
    enum mlir_element e = o->operands[0].value->type->element;
    for (int64_t i = 0; i < n; i++) {
        int64_t x[3] = {0};
        for (uint32_t k = 0; k < op->n_operands; k++) {
            int64_t count, at;
            const int64_t *numbers = refine_known(o, k, &count);
            at = count == 1 ? 0 : i;
            if (count != 1 && count != n)
                return NULL;
            x[k] = numbers[at];
        }
        if (!eval_element(op, e, x, &y[i]))
            return NULL;
        // What is not zero is true.
        y[i] = mlir_elements[type->element].kind == 'b' &&
                       op->row->code == MLIR_OP_stablehlo_convert
                   ? y[i] != 0
                   : wrapped(type->element, (uint64_t)y[i]);
    }
    return y;
}

// For each index of the axes before the axis, the parts of all operands.
static const int64_t *eval_concatenate(const struct refine_op *o, int64_t n)
{
    const struct mlir_type *first = o->operands[0].value->type;
    int64_t axis = mlir_int(o->op, "dimension", -1), outer = 1, at = 0;
    for (int64_t i = 0; i < axis && i < first->rank; i++)
        outer *= first->dims[i];
    int64_t *y = arena_array(o->r->scratch, int64_t, n);
    for (int64_t i = 0; i < outer; i++)
        for (uint32_t k = 0; k < o->op->n_operands; k++) {
            int64_t count;
            const int64_t *numbers = refine_known(o, k, &count);
            int64_t part = count / outer;
            if (part > n - at)
                return NULL;
            memcpy(y + at, numbers + i * part, (size_t)part * sizeof *y);
            at += part;
        }
    return at == n ? y : NULL;
}

static const int64_t *eval_slice(const struct refine_op *o, int64_t n)
{
    size_t n_starts, n_strides;
    int64_t count;
    const int64_t *numbers = refine_known(o, 0, &count);
    const int64_t *starts = mlir_ints(o->op, "start_indices", &n_starts);
    const int64_t *strides = mlir_ints(o->op, "strides", &n_strides);
    if (n_starts != 1 || n_strides != 1 || starts[0] < 0 || strides[0] < 1 || !n ||
        starts[0] > count || strides[0] > count || starts[0] + (n - 1) * strides[0] >= count)
        return NULL;
    int64_t *y = arena_array(o->r->scratch, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = numbers[starts[0] + i * strides[0]];
    return y;
}

// The same elements in another shape, or one of them everywhere.
static const int64_t *eval_same(const struct refine_op *o, int64_t n)
{
    int64_t count;
    const int64_t *numbers = refine_known(o, 0, &count);
    if (count == n)
        return numbers;
    if (count != 1)
        return NULL;
    int64_t *y = arena_array(o->r->scratch, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = numbers[0];
    return y;
}

static bool is_small_integers(const struct mlir_type *type, int64_t *out_n)
{
    *out_n = type->kind == MLIR_TENSOR ? mlir_elements_of(type) : -1;
    return *out_n >= 0 && *out_n <= REFINE_MAX_KNOWN &&
           strchr("biu", mlir_elements[type->element].kind) != NULL;
}

const int64_t *refine_eval(const struct refine_op *o, const struct mlir_type *type)
{
    const struct mlir_op *op = o->op;
    int64_t n, count;
    if (!op->row || !op->n_operands || !is_small_integers(type, &n))
        return NULL;
    for (uint32_t k = 0; k < op->n_operands; k++)
        if (!refine_known(o, k, &count))
            return NULL;
    switch (op->row->code) {
    case MLIR_OP_stablehlo_concatenate:
        return eval_concatenate(o, n);
    case MLIR_OP_stablehlo_slice:
        return eval_slice(o, n);
    case MLIR_OP_stablehlo_reshape:
    case MLIR_OP_stablehlo_broadcast_in_dim:
        return eval_same(o, n);
    default:
        return eval_elements(o, type, n);
    }
}

const int64_t *refine_eval_constant(struct refiner *r, const struct mlir_attr *value)
{
    int64_t n;
    if (!value || value->kind != MLIR_DENSE || !is_small_integers(value->type, &n))
        return NULL;
    enum mlir_element e = value->type->element;
    size_t bytes = (size_t)(mlir_elements[e].bits + 7) / 8;
    int64_t *numbers = arena_array(r->scratch, int64_t, n);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, value->bytes + (value->is_splat ? 0 : (size_t)i * bytes), bytes);
        numbers[i] = wrapped(e, bits);
    }
    return numbers;
}
