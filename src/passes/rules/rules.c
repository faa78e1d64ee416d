// SPDX-License-Identifier: Apache-2.0
// The tables of rules, and what several families of rules share.
#include "passes/rules/rules.h"

#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

jvp_rule *const jvp_rules[IR_OP_COUNT] = {
#define OP(name, in, out, op_class, domain, types, shape, jvp, ...) [IR_##name] = jvp_##jvp,
#include "ir/ops.def"
#undef OP
};

transpose_rule *const transpose_rules[IR_OP_COUNT] = {
#define OP(name, in, out, op_class, domain, types, shape, jvp, transpose, ...)                 \
    [IR_##name] = transpose_##transpose,
#include "ir/ops.def"
#undef OP
};

batch_rule *const batch_rules[IR_OP_COUNT] = {
#define OP(name, in, out, op_class, domain, types, shape, jvp, transpose, batch, ...)          \
    [IR_##name] = batch_##batch,
#include "ir/ops.def"
#undef OP
};

void rule_refuse(struct ir_builder *b, const char *format, ...)
{
    const char *place = ir_where_text(b->module, b->where);
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (place)
        ir_fail(b, JOT_ERR_ARGUMENT, "%s (%s)", text, place);
    else
        ir_fail(b, JOT_ERR_ARGUMENT, "%s", text);
}

void jvp_none(struct jvp *c)
{
    rule_refuse(c->b, "%s has no derivative", ir_op_get(c->n.op)->name);
}

void jvp_zero(struct jvp *c) { (void)c; }

void transpose_none(struct transpose *c)
{
    rule_refuse(c->b, "%s of a tangent: a derivative rule must be linear in the tangents",
                ir_op_get(c->n->op)->name);
}

void batch_none(struct batch *c)
{
    rule_refuse(c->b, "%s cannot be mapped", ir_op_get(c->n->op)->name);
}

ir_id rule_broadcast_to(struct ir_builder *b, ir_id t, struct ir_type type)
{
    static const int64_t axes[IR_MAX_RANK] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                              11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                              22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    if (t == IR_NONE || ir_type_in(b, t).shape == type.shape)
        return t;
    return ir_broadcast_in_dim(b, t, type.rank, ir_dims(b->module, type), axes);
}

ir_id rule_swap(struct ir_builder *b, ir_id v, int i, int k)
{
    int64_t axes[IR_MAX_RANK];
    if (v == IR_NONE)
        return IR_NONE;
    for (int a = 0; a < ir_type_in(b, v).rank; a++)
        axes[a] = a == i ? k : a == k ? i : a;
    return ir_transpose(b, v, axes);
}

ir_id rule_zeros_like(struct ir_builder *b, ir_id v)
{
    return v == IR_NONE ? IR_NONE : ir_zeros(b, ir_type_in(b, v));
}

ir_id rule_sum(struct ir_builder *b, ir_id x, ir_id y)
{
    return x == IR_NONE ? y : y == IR_NONE ? x : ir_add(b, x, y);
}

ir_id rule_wins(struct ir_builder *b, bool is_max, ir_id x, ir_id best)
{
    return ir_not(b, is_max ? ir_lt(b, x, best) : ir_gt(b, x, best));
}

ir_id rule_or_nan(struct ir_builder *b, ir_id y, ir_id count)
{
    return ir_select(b, ir_eq(b, y, y), count, ir_scalar_like(b, count, NAN));
}

ir_id rule_quotient(struct ir_builder *b, ir_id t, ir_id x)
{
    return ir_guard(b, t, ir_div(b, t, x));
}

ir_id rule_replace_zero(struct ir_builder *b, ir_id x)
{
    return ir_select(b, ir_eq(b, x, ir_scalar_like(b, x, 0)), ir_scalar_like(b, x, 1), x);
}

void rule_fail_nested(struct ir_builder *b, jot_status status)
{
    ir_fail(b, status, "%s", jot_error_message());
}

bool rule_is_nonzero_number(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_node_of(g, v);
    if (n->op != IR_const || ir_rank_of(g, v) != 0)
        return false;
    const struct ir_field *data = ir_field_find(n->attrs, IR_KEY_data);
    for (uint32_t i = 0; i < data->count; i++)
        if (((const uint8_t *)data->bytes)[i] & 0x7f) // a sign alone is -0
            return true;
    return false;
}

bool transpose_is_linear(const struct transpose *c, uint32_t i)
{
    return c->linear[ir_operand(c->g, c->n, i)];
}

struct ir_type transpose_type(const struct transpose *c, uint32_t i)
{
    return ir_type_of(c->g, ir_operand(c->g, c->n, i));
}

ir_id transpose_instantiate(struct transpose *c, uint32_t i)
{
    return c->ct[i] != IR_NONE ? c->ct[i] : ir_zeros(c->b, ir_type_of(c->g, c->n->out + i));
}

// Sums over the axes along which a value of the type was broadcast to ct by the MAP rule.
static ir_id unbroadcast(struct ir_builder *b, ir_id ct, struct ir_type type)
{
    struct ir_type have = ir_type_in(b, ct);
    if (have.shape == type.shape)
        return ct;
    const int64_t *from = ir_dims(b->module, have), *to = ir_dims(b->module, type);
    int64_t axes[IR_MAX_RANK];
    int n = 0;
    for (int i = 0; i < have.rank; i++)
        if (type.rank == 0 || from[i] != to[i])
            axes[n++] = i;
    return ir_reshape(b, ir_reduce(b, IR_reduce_sum, ct, n, axes), type.rank, to);
}

bool transpose_has_sum(const struct transpose *c, uint32_t i)
{
    ir_id sum = c->cotangent[ir_operand(c->g, c->n, i)];
    return transpose_is_linear(c, i) && sum != IR_NONE && rule_is_whole(c->b, sum);
}

ir_id transpose_take_sum(struct transpose *c, uint32_t i)
{
    ir_id v = ir_operand(c->g, c->n, i), sum = c->cotangent[v];
    c->cotangent[v] = IR_NONE;
    return sum != IR_NONE ? sum : ir_zeros(c->b, transpose_type(c, i));
}

void transpose_give(struct transpose *c, uint32_t i, ir_id ct)
{
    if (ct == IR_NONE || !transpose_is_linear(c, i))
        return;
    ir_id v = ir_operand(c->g, c->n, i);
    ct = unbroadcast(c->b, ct, ir_type_of(c->g, v));
    c->cotangent[v] = rule_accumulate(c->b, c->cotangent[v], ct);
}
