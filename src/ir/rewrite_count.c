// SPDX-License-Identifier: Apache-2.0
// Integers that count: those made of iota and constants by sums and products, which are known not to
// be large.  Programs count in 64 bits what needs less.
//
//     shr_logical n 32           becomes    0            where n is below 2^32
//     convert (add n m) {u32}    becomes    add n' m'    where n' and m' are counted in u32
#include "ir/number.h"
#include "ir/rewrite.h"

enum { MOST_DEEP = 6 };

static int bits_of(jot_dtype d) { return 8 * (int)jot_dtype_size(d); }

static uint64_t largest(jot_dtype d)
{
    return UINT64_MAX >> (64 - bits_of(d) + dtype_is_signed(d));
}

// The one element of a constant of integers.
static int64_t element_of(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_integer_at(ir_dtype_of(g, n->out), ir_const_data(n), 0);
}

static bool is_moved(const struct ir_node *n)
{
    return ir_op_class((enum ir_op)n->op) == IR_CLASS_LAYOUT && n->n_in == 1;
}

// Whether no element of v is negative or, as a number without an end, above *out.
static bool is_bounded(const struct ir_builder *b, ir_id v, int depth, uint64_t *out)
{
    const struct ir_graph *g = b->graph;
    const struct ir_node *n = ir_node_of(g, v);
    jot_dtype d = ir_dtype_of(g, v);
    uint64_t x = 0, y = 0;
    if (!depth || !dtype_is_integer(d))
        return false;
    if (n->op == IR_const && ir_rank_of(g, v) == 0) {
        *out = (uint64_t)element_of(g, n);
    } else if (n->op == IR_iota) {
        int64_t extent =
            ir_dims(b->module, ir_type_in(b, v))[ir_attr_int(n->attrs, IR_KEY_axis)];
        *out = extent ? (uint64_t)extent - 1 : 0;
    } else if (is_moved(n) || n->op == IR_convert) {
        if (!is_bounded(b, ir_operand(g, n, 0), depth - 1, out))
            return false;
    } else if (n->op == IR_add || n->op == IR_mul) {
        if (!is_bounded(b, ir_operand(g, n, 0), depth - 1, &x) ||
            !is_bounded(b, ir_operand(g, n, 1), depth - 1, &y) ||
            (n->op == IR_add ? __builtin_add_overflow(x, y, out)
                             : __builtin_mul_overflow(x, y, out)))
            return false;
    } else {
        return false;
    }
    return *out <= largest(d);
}

ir_id ir_rewrite_shift(struct ir_rewrite *r)
{
    const struct ir_graph *g = r->b->graph;
    const struct ir_node *n = ir_node_of(g, r->in[1]);
    int bits = bits_of(ir_dtype(r->type));
    while (is_moved(n))
        n = ir_node_of(g, ir_operand(g, n, 0));
    if (n->op != IR_const || ir_rank_of(g, n->out) != 0)
        return IR_NONE;
    uint64_t most = 0, by = (uint64_t)element_of(g, n) & (UINT64_MAX >> (64 - bits));
    bool is_out = by >= (uint64_t)bits;
    bool is_zero = is_bounded(r->b, r->in[0], MOST_DEEP, &most) && (is_out || !(most >> by));
    if (r->op == IR_shr_logical)
        is_zero |= is_out;
    else // which has a sign, of any type
        is_zero &= !(most >> (bits - 1));
    return is_zero ? ir_zeros(r->b, r->type) : IR_NONE;
}

// Whether v is made of iota and constants by what gives the low bits of its result from those of its
// operands.
static bool is_count(const struct ir_builder *b, ir_id v, jot_dtype d, int depth)
{
    const struct ir_graph *g = b->graph;
    const struct ir_node *n = ir_node_of(g, v);
    uint64_t most;
    if (n->op == IR_iota)
        return is_bounded(b, v, 1, &most) && most <= largest(d);
    if (n->op == IR_const)
        return ir_rank_of(g, v) == 0;
    bool is_sum = n->op == IR_add || n->op == IR_sub || n->op == IR_mul;
    if (!depth || !(is_sum || is_moved(n)))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!is_count(b, ir_operand(g, n, i), d, depth - 1))
            return false;
    return true;
}

static ir_id count_in(struct ir_builder *b, ir_id v, jot_dtype d)
{
    const struct ir_graph *g = b->graph;
    const struct ir_node n = *ir_node_of(g, v); // the graph grows
    struct ir_type t = ir_type_in(b, v);
    ir_id in[2];
    if (n.op == IR_const)
        return ir_scalar_int(b, d, element_of(g, &n));
    if (n.op == IR_iota)
        return ir_iota(b, ir_type_make(b->module, d, t.rank, ir_dims(b->module, t)),
                       (int)ir_attr_int(n.attrs, IR_KEY_axis));
    for (uint32_t i = 0; i < n.n_in; i++)
        in[i] = count_in(b, ir_operand(g, &n, i), d);
    return ir_build(b, (enum ir_op)n.op, (int)n.n_in, in, n.attrs);
}

ir_id ir_rewrite_convert(struct ir_rewrite *r)
{
    struct ir_type from = ir_type_in(r->b, r->in[0]);
    jot_dtype d = ir_dtype(r->type);
    if (ir_type_equal(from, r->type))
        return r->in[0];
    bool is_narrower = dtype_is_integer(d) && dtype_is_integer(ir_dtype(from)) &&
                       bits_of(d) < bits_of(ir_dtype(from));
    return is_narrower && is_count(r->b, r->in[0], d, MOST_DEEP) ? count_in(r->b, r->in[0], d)
                                                                 : IR_NONE;
}
