// SPDX-License-Identifier: Apache-2.0
#include "ir/number.h"

#include <string.h>

const void *ir_const_data(const struct ir_node *n)
{
    return ir_field_find(n->attrs, IR_KEY_data)->bytes;
}

const struct ir_node *ir_filling(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    while (n->op == IR_broadcast_in_dim || n->op == IR_reshape)
        n = ir_node_of(g, ir_operand(g, n, 0));
    return n->op == IR_const && ir_rank_of(g, n->out) == 0 ? n : NULL;
}

int64_t ir_integer_at(jot_dtype d, const void *data, int64_t i)
{
    size_t bytes = jot_dtype_size(d);
    int unused = 64 - 8 * (int)bytes;
    uint64_t x = 0;
    memcpy(&x, (const char *)data + (size_t)i * bytes, bytes);
    return dtype_is_signed(d) ? (int64_t)(x << unused) >> unused : (int64_t)x;
}

bool ir_number_at(jot_dtype d, const void *data, int64_t i, double *out)
{
    switch ((int)d) {
    case JOT_F64:
        *out = ((const double *)data)[i];
        break;
    case JOT_F32:
        *out = ((const float *)data)[i];
        break;
    case JOT_F16:
        *out = dtype_f16_to_f32(((const uint16_t *)data)[i]);
        break;
    case JOT_BF16:
        *out = dtype_bf16_to_f32(((const uint16_t *)data)[i]);
        break;
    case JOT_U64:
        *out = (double)((const uint64_t *)data)[i];
        break;
    default:
        if (dtype_is_complex(d))
            return false;
        *out = (double)ir_integer_at(d, data, i);
    }
    return true;
}
