// SPDX-License-Identifier: Apache-2.0
// What the text of operations tells: constants, and what small bodies do.
#include "interop/to_graph.h"

#include "base/dtype.h"

const struct mlir_attr *graph_constant(const struct graph_frame *f, const struct mlir_value *v)
{
    for (;;) {
        const struct mlir_op *op = graph_maker(f, v);
        if (!op || !op->row)
            return NULL;
        switch (op->row->code) {
        case MLIR_OP_stablehlo_constant: {
            const struct mlir_attr *a = mlir_attr_find(op, "value");
            bool is_one = a && a->kind == MLIR_DENSE && a->type->kind == MLIR_TENSOR &&
                          (a->is_splat || mlir_elements_of(a->type) == 1);
            return is_one ? a : NULL;
        }
        case MLIR_OP_stablehlo_broadcast_in_dim:
        case MLIR_OP_stablehlo_broadcast:
        case MLIR_OP_stablehlo_reshape:
        case MLIR_OP_stablehlo_optimization_barrier:
            if (op->n_operands != 1)
                return NULL;
            v = op->operands[0];
            break;
        default:
            return NULL;
        }
    }
}

// The element as an integer of its type, sign or zero-extended.
static int64_t read_integer(const struct mlir_attr *a)
{
    const struct mlir_element_row *e = &mlir_elements[a->type->element];
    size_t bytes = (size_t)(e->bits + 7) / 8;
    uint64_t bits = 0;
    memcpy(&bits, a->bytes, bytes);
    int unused = 64 - (int)bytes * 8;
    return e->kind == 'i' ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

bool graph_integer(const struct graph_frame *f, const struct mlir_value *v, int64_t *out)
{
    const struct mlir_attr *a = graph_constant(f, v);
    char kind = a ? mlir_elements[a->type->element].kind : '-';
    if (kind != 'i' && kind != 'u' && kind != 'b')
        return false;
    *out = read_integer(a);
    return true;
}

// The bits of the neutral element of a fold.
static bool neutral_bits(enum ir_identity identity, const struct mlir_element_row *e,
                         unsigned char *out)
{
    static const struct {
        jot_dtype dtype;
        uint64_t one, infinity, minus_infinity;
    } floats[] = {
        {JOT_F16, 0x3c00, 0x7c00, 0xfc00},
        {JOT_BF16, 0x3f80, 0x7f80, 0xff80},
        {JOT_F32, 0x3f800000, 0x7f800000, 0xff800000},
        {JOT_F64, 0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000},
    };
    uint64_t bits = 0, all = e->bits >= 64 ? UINT64_MAX : (UINT64_C(1) << e->bits) - 1;
    uint64_t top = all - (all >> 1);
    jot_dtype part = dtype_real(e->dtype);
    size_t k = 0;
    while (k < 4 && floats[k].dtype != part)
        k++;
    bool is_float = k < 4, is_signed = e->kind == 'i';
    if (e->kind == 'b') // one byte
        all = top = 1;
    switch (identity) {
    case IR_IDENTITY_zero:
        break;
    case IR_IDENTITY_one:
        bits = is_float ? floats[k].one : 1;
        break;
    case IR_IDENTITY_lowest:
        bits = is_float ? floats[k].minus_infinity : is_signed ? top : 0;
        break;
    case IR_IDENTITY_highest:
        bits = is_float ? floats[k].infinity : is_signed ? top - 1 : all;
        break;
    case IR_IDENTITY_ones:
        bits = all;
        break;
    case IR_IDENTITY_none:
        return false;
    }
    memset(out, 0, 16);
    memcpy(out, &bits, sizeof bits);
    return true;
}

bool graph_is_neutral(const struct graph_frame *f, const struct mlir_value *v, enum ir_op op)
{
    const struct mlir_attr *a = graph_constant(f, v);
    unsigned char want[16];
    if (!a || op == IR_OP_COUNT)
        return false;
    const struct mlir_element_row *e = &mlir_elements[a->type->element];
    size_t bytes = (size_t)(e->bits + 7) / 8;
    if (!neutral_bits(ir_op_get(op)->identity, e, want))
        return false;
    // -0 is as neutral in a sum.
    unsigned char minus_zero[16] = {0};
    if (e->kind == 'f' && ir_op_get(op)->identity == IR_IDENTITY_zero)
        minus_zero[bytes - 1] = 0x80;
    return !memcmp(a->bytes, want, bytes) || !memcmp(a->bytes, minus_zero, bytes);
}

// ---- bodies ----

enum mlir_code graph_body(const struct mlir_block *block, int *out_arg)
{
    const struct mlir_op *end = block->ops[block->n_ops - 1];
    if (block->n_args != 2 || end->n_operands != 1)
        return MLIR_N_CODES;
    const struct mlir_value *x = block->args[0], *y = block->args[1];
    for (int i = 0; i < 2 && block->n_ops == 1; i++)
        if (end->operands[0] == block->args[i]) {
            *out_arg = i;
            return MLIR_OP_stablehlo_return;
        }
    const struct mlir_op *op = block->ops[0];
    if (block->n_ops != 2 || !op->row || op->n_operands != 2 || op->n_results != 1 ||
        end->operands[0] != op->results[0])
        return MLIR_N_CODES;
    bool is_turned = op->operands[0] == y && op->operands[1] == x;
    bool is_straight = op->operands[0] == x && op->operands[1] == y;
    return is_straight || is_turned ? op->row->code : MLIR_N_CODES;
}

enum ir_op graph_reduction(enum mlir_code code, jot_dtype dtype)
{
    bool is_bool = dtype == JOT_BOOL, is_complex = dtype_is_complex(dtype);
    switch ((int)code) {
    case MLIR_OP_stablehlo_add:
        return is_bool ? IR_reduce_or : IR_reduce_sum;
    case MLIR_OP_stablehlo_multiply:
        return is_bool ? IR_reduce_and : IR_reduce_prod;
    case MLIR_OP_stablehlo_maximum:
        return is_bool ? IR_reduce_or : is_complex ? IR_OP_COUNT : IR_reduce_max;
    case MLIR_OP_stablehlo_minimum:
        return is_bool ? IR_reduce_and : is_complex ? IR_OP_COUNT : IR_reduce_min;
    case MLIR_OP_stablehlo_and:
        return IR_reduce_and;
    case MLIR_OP_stablehlo_or:
        return IR_reduce_or;
    case MLIR_OP_stablehlo_xor:
        return IR_reduce_xor;
    default:
        return IR_OP_COUNT;
    }
}
