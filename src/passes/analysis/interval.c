// SPDX-License-Identifier: Apache-2.0
// Which integers a value may be, from the ops that make it.
#include "passes/analysis/interval.h"

#include "ir/number.h"

#define MOST_NODES 64 // that are looked at

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static struct interval all_of(jot_dtype d)
{
    int bits = 8 * dtype_get(d)->bytes;
    if (d == JOT_BOOL)
        return (struct interval){0, 1};
    if (!dtype_is_integer(d) || bits == 64)
        return (struct interval){INT64_MIN, INT64_MAX};
    if (dtype_is_signed(d))
        return (struct interval){-(INT64_C(1) << (bits - 1)), (INT64_C(1) << (bits - 1)) - 1};
    return (struct interval){0, (INT64_C(1) << bits) - 1};
}

// Sums and products of ends, where these are in range; nothing is known where they are not.
static struct interval combined(enum ir_op op, struct interval a, struct interval b,
                                bool *out_is)
{
    struct interval c = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        int64_t x = i & 1 ? a.high : a.low, y = i & 2 ? b.high : b.low, z;
        bool is_over =
            op == IR_add ? __builtin_add_overflow(x, y, &z) : __builtin_mul_overflow(x, y, &z);
        *out_is = *out_is && !is_over;
        c.low = is_over ? c.low : smaller(c.low, z);
        c.high = is_over ? c.high : larger(c.high, z);
    }
    return c;
}

static struct interval look(const struct ir_graph *g, ir_id v, int *left);

// Of an op of integers; *out_is: whether it says anything.
static struct interval of_op(const struct ir_graph *g, const struct ir_node *n, int *left,
                             bool *out_is)
{
    struct interval x[3];
    bool is_select = n->op == IR_select;
    for (uint32_t i = 0; i < 3; i++)
        if (i < n->n_in && (!is_select || i))
            x[i] = look(g, ir_operand(g, n, i), left);
    switch (n->op) {
    case IR_add:
    case IR_mul:
        return combined((enum ir_op)n->op, x[0], x[1], out_is);
    case IR_select:
        return (struct interval){smaller(x[1].low, x[2].low), larger(x[1].high, x[2].high)};
    case IR_min:
        return (struct interval){smaller(x[0].low, x[1].low), smaller(x[0].high, x[1].high)};
    case IR_max:
        return (struct interval){larger(x[0].low, x[1].low), larger(x[0].high, x[1].high)};
    case IR_clamp: // the largest of the first two, and no more than the last
        return (struct interval){smaller(larger(x[0].low, x[1].low), x[2].low),
                                 smaller(larger(x[0].high, x[1].high), x[2].high)};
    case IR_div:
    case IR_rem:
        *out_is = x[0].low >= 0 && x[1].low > 0;
        if (!*out_is)
            return x[0];
        return n->op == IR_rem ? (struct interval){0, smaller(x[0].high, x[1].high - 1)}
                               : (struct interval){x[0].low / x[1].high, x[0].high / x[1].low};
    case IR_convert:
        *out_is = dtype_is_integer(ir_dtype_of(g, ir_operand(g, n, 0))) ||
                  ir_dtype_of(g, ir_operand(g, n, 0)) == JOT_BOOL;
        return x[0];
    case IR_broadcast_in_dim:
    case IR_reshape:
    case IR_slice:
    case IR_transpose:
    case IR_rev:
        return x[0];
    default:
        *out_is = false;
        return (struct interval){0, 0};
    }
}

static struct interval look(const struct ir_graph *g, ir_id v, int *left)
{
    const struct ir_node *n = ir_node_of(g, v), *constant = ir_filling(g, v);
    jot_dtype d = ir_dtype_of(g, v);
    struct interval all = all_of(d), x = all;
    bool is = v >= g->n_params && dtype_is_integer(d) && d != JOT_U64 && --*left > 0;
    if (!is)
        return all;
    if (constant) {
        x.low = x.high = ir_integer_at(d, ir_const_data(constant), 0);
        return x;
    }
    if (n->op == IR_iota)
        x = (struct interval){0, ir_dims_of(g, v)[ir_attr_int(n->attrs, IR_KEY_axis)] - 1};
    else
        x = of_op(g, n, left, &is);
    // What wraps may be anything.
    return is && x.low >= all.low && x.high <= all.high ? x : all;
}

struct interval pass_interval_of(const struct ir_graph *g, ir_id v)
{
    int left = MOST_NODES;
    return look(g, v, &left);
}
