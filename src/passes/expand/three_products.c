// SPDX-License-Identifier: Apache-2.0
// Products of f32 that may be made of three products of TF32 numbers.
//
//     dot x y {precision=3}      becomes      dot [xl xh xh'] [yh yl yh'] {precision=1} + dot xh" yh" + ...
//
// along the summed axis, where xh is x in 11 bits and xl is the rest, in 11 bits: what is left out is
// below 2^-21 of each product.  Small ones come first, in which an infinity is 0.  The sum of the large
// ones is one of pieces xh' xh" ..., since tensor cores cut every sum short that they add eight
// terms to: n times by half a unit in the last place, where rounding in f32 errs by the root of
// n. In as many pieces as that root asks for the error is that of a product in f32. After all
// differentiation, of products large enough for the library.
#include "ir/cost.h"
#include "passes/transform.h"

#include <math.h>

enum { TF32_EXPONENT = 8, TF32_MANTISSA = 10, TF32 = 1, THREE_TF32 = 3 };

// A piece of so many terms errs as a product of f32 does, which was measured on an H100: of
// 4096 terms one piece errs 2.85 times as much, two 1.48, four 0.73 times. Longer sums have
// pieces in proportion to the root.
enum { ALIKE = 504, WHOLE = 32 };

static ir_id to_tf32(struct ir_builder *b, ir_id x)
{
    return ir_build(b, IR_reduce_precision, 1, &x,
                    ir_attrs(b->module, IR_INT(exponent_bits, TF32_EXPONENT),
                             IR_INT(mantissa_bits, TF32_MANTISSA)));
}

struct parts {
    ir_id finite_high, low;
};

static struct parts split(struct ir_builder *b, ir_id x)
{
    ir_id high = to_tf32(b, x), zero = ir_zeros(b, ir_type_in(b, x));
    ir_id is_finite = ir_is_finite(b, high);
    ir_id low = ir_select(b, is_finite, to_tf32(b, ir_sub(b, x, high)), zero);
    return (struct parts){ir_select(b, is_finite, high, zero), low};
}

static bool wants_three(const struct ir_graph *g, const struct ir_node *n)
{
    return n->op == IR_dot_general && ir_dtype_of(g, n->out) == JOT_F32 &&
           ir_attr_int_or(n->attrs, IR_KEY_precision, 0) == THREE_TF32 &&
           cost_is_product(g, n, JOT_F32, true);
}

// The longest summed axis of x, and how much of its k places a piece has.
static int longest_axis(const int64_t *dims, const struct ir_dot *d)
{
    int longest = 0;
    for (int i = 1; i < d->n_contract; i++)
        if (dims[d->lhs_contract[i]] > dims[d->lhs_contract[longest]])
            longest = i;
    return longest;
}

static int64_t piece_of(const int64_t *dims, const struct ir_dot *d, int64_t k)
{
    int64_t n = 1;
    for (int i = 0; i < d->n_contract; i++)
        n *= dims[d->lhs_contract[i]];
    int64_t size = (int64_t)ceil((double)k / ceil(sqrt((double)n / ALIKE)));
    return n == k ? (size + WHOLE - 1) / WHOLE * WHOLE : size;
}

// Those from begin to end - 1 along the axis.
static ir_id terms(struct ir_builder *b, ir_id x, int axis, int64_t begin, int64_t end)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], steps[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        limits[i] = ir_dims(b->module, t)[i];
        steps[i] = 1;
    }
    starts[axis] = begin;
    limits[axis] = end;
    return ir_slice(b, x, starts, limits, steps);
}

static ir_id multiply(struct ir_builder *b, const struct ir_node *n, ir_id x, ir_id y)
{
    struct ir_dot d = {.precision = TF32};
    d.lhs_contract = ir_attr_ints(n->attrs, IR_KEY_lhs_contract, &d.n_contract);
    d.rhs_contract = ir_attr_ints(n->attrs, IR_KEY_rhs_contract, &d.n_contract);
    d.lhs_batch = ir_attr_ints(n->attrs, IR_KEY_lhs_batch, &d.n_batch);
    d.rhs_batch = ir_attr_ints(n->attrs, IR_KEY_rhs_batch, &d.n_batch);
    const int64_t *dims = ir_dims(b->module, ir_type_in(b, x));
    int axis = longest_axis(dims, &d);
    int left = (int)d.lhs_contract[axis], right = (int)d.rhs_contract[axis];
    int64_t k = dims[left], size = piece_of(dims, &d, k);
    ir_id sum = IR_NONE;
    for (int64_t at = 0; at < k; at += size) {
        int64_t end = at + size < k ? at + size : k;
        ir_id xh = to_tf32(b, terms(b, x, left, at, end));
        ir_id yh = to_tf32(b, terms(b, y, right, at, end));
        if (at == 0) {
            struct parts p = split(b, x), q = split(b, y);
            xh = ir_concatenate(b, 3, (ir_id[]){p.low, p.finite_high, xh}, left);
            yh = ir_concatenate(b, 3, (ir_id[]){q.finite_high, q.low, yh}, right);
        }
        ir_id product = ir_dot_general(b, xh, yh, &d);
        sum = at == 0 ? product : ir_add(b, product, sum);
    }
    return sum;
}

uint32_t pass_three_products(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    bool any = false;
    ir_for_each_node (g, n)
        any |= wants_three(g, n);
    if (!any)
        return f;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t i = g->n_params; i < g->nodes.count; i++) {
        const struct ir_node *n = &g->nodes.at[i];
        b.where = n->where;
        if (wants_three(g, n))
            map[n->out] = multiply(&b, n, map[ir_operand(g, n, 0)], map[ir_operand(g, n, 1)]);
        else
            pass_copy_node(&b, g, n, map);
    }
    pass_copy_outputs(&b, g, map);
    uint32_t changed = ir_finish_function(&b);
    return changed == IR_NONE ? f : pass_simplify(m, changed);
}
