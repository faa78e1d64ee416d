// SPDX-License-Identifier: Apache-2.0
// The slope of a result from those of the operands, op by op (shift.c).
#include "passes/derive/shift.h"

#include "ir/indexing.h"
#include "ir/number.h"

#include <math.h>

// -- Numbers ----------------------------------------------------------------------------------

bool shift_repeats(enum ir_op op)
{
    return op == IR_broadcast_in_dim || op == IR_reshape || op == IR_transpose ||
           op == IR_convert;
}

// The value that v repeats, which may be one of a caller.
static ir_id find_repeated(struct shift_frame *at, ir_id v)
{
    for (;;) {
        const struct ir_node *n = ir_node_of(at->g, v);
        if (n->op == IR_param && at->caller) {
            v = ir_operand(at->caller->g, at->call, v);
            *at = *at->caller;
        } else if (shift_repeats((enum ir_op)n->op)) {
            v = ir_operand(at->g, n, 0);
        } else {
            return v;
        }
    }
}

// The number that all elements of an operand are.
static bool is_number(const struct shift_step *c, uint32_t i, double *out)
{
    struct shift_frame at = *c->at;
    ir_id v = find_repeated(&at, ir_operand(at.g, c->n, i));
    const struct ir_node *n = ir_node_of(at.g, v);
    jot_dtype d = ir_dtype_of(at.g, v);
    return n->op == IR_const && ir_rank_of(at.g, v) == 0 &&
           (dtype_is_inexact(d) || d == JOT_I32 || d == JOT_I64) &&
           ir_number_at(d, ir_const_data(n), 0, out);
}

static bool is_double(const struct shift_step *c)
{
    return ir_dtype_of(c->at->g, c->n->out) == JOT_F64;
}

// Whether two numbers are equal but for the rounding of the constants that they come from.
static bool is_same(const struct shift_step *c, double x, double y)
{
    return fabs(x - y) <= (is_double(c) ? 1e-14 : 1e-6) * fmax(fabs(x), fabs(y));
}

static bool has_no_exponential(const struct shift_step *c, double x)
{
    return is_double(c) ? exp(x) == 0 : expf((float)x) == 0;
}

// -- Slopes of elements -----------------------------------------------------------------------
// Each from the slopes of the operands; false: the result has none of this form.

static bool take_operand(struct shift_step *c, double plus, double times)
{
    c->y.plus = plus;
    c->y.times = times;
    return true;
}

static bool same_as(struct shift_step *c, uint32_t i)
{
    c->y.is_far = c->in[i]->is_far;
    return take_operand(c, c->in[i]->plus, c->in[i]->times);
}

static bool same(struct shift_step *c) { return same_as(c, 0); }

static bool term_of(struct shift_step *c, uint32_t i)
{
    return c->in[i]->times == 0 && same_as(c, i);
}

static bool is_factor(const struct shift_slope *x) { return !x || x->plus == 0; }

// The slope's plus of operand i when its times is to be so.
static bool find_plus(const struct shift_step *c, uint32_t i, double times, double *out)
{
    const struct shift_slope *x = c->in[i];
    double value;
    *out = x ? x->plus : 0;
    if (x || times == 0)
        return is_same(c, x ? x->times : 0, times);
    if (!is_number(c, i, &value) || !isfinite(value))
        return false;
    *out = -times * value;
    return true;
}

static bool add_up(struct shift_step *c, double x, double y, double times)
{
    return take_operand(c, is_same(c, x, -y) ? 0 : x + y, times);
}

static bool sum(struct shift_step *c)
{
    double times = (c->in[0] ? c->in[0] : c->in[1])->times, x, y;
    return find_plus(c, 0, times, &x) && find_plus(c, 1, times, &y) &&
           add_up(c, x, c->n->op == IR_sub ? -y : y, times);
}

// Operand i is one scalar everywhere, which multiplies the unit.
static bool scale_unit(struct shift_step *c, uint32_t i, int power)
{
    struct shift_frame at = *c->at;
    ir_id v = find_repeated(&at, ir_operand(at.g, c->n, i));
    struct shift_unit *u = &c->y.unit;
    if (ir_rank_of(at.g, v) != 0 || (u->power != 0 && (u->g != at.g || u->v != v)))
        return false;
    power += u->power;
    *u = (struct shift_unit){power ? at.g : NULL, power ? v : 0, power};
    return true;
}

// Elements of x times, sign -1: over, those of operand i, which does not depend on m.
static bool scale(struct shift_step *c, const struct shift_slope *x, uint32_t i, int sign)
{
    double value;
    if (is_number(c, i, &value) && isfinite(value) && value != 0)
        return take_operand(c, sign > 0 ? x->plus * value : x->plus / value, x->times);
    return x->plus == 0
               ? take_operand(c, 0, x->times)
               : x->times == 0 && scale_unit(c, i, sign) && take_operand(c, x->plus, 0);
}

// A product of powers; sign -1: a quotient.
static bool multiply(struct shift_step *c, int sign)
{
    const struct shift_slope *x = c->in[0], *y = c->in[1];
    double a = x ? x->times : 0, b = y ? sign * y->times : 0;
    return is_factor(x) && is_factor(y) && take_operand(c, 0, is_same(c, a, -b) ? 0 : a + b);
}

static bool product(struct shift_step *c)
{
    return !c->in[1]   ? scale(c, c->in[0], 1, 1)
           : !c->in[0] ? scale(c, c->in[1], 0, 1)
                       : multiply(c, 1);
}

static bool quotient(struct shift_step *c)
{
    return c->in[1] ? multiply(c, -1) : scale(c, c->in[0], 1, -1);
}

static bool contraction(struct shift_step *c) { return multiply(c, 1); }

static bool fused(struct shift_step *c)
{
    double z;
    if (!c->in[0] && !c->in[1])
        return term_of(c, 2);
    return product(c) && (!c->in[2] || shift_has_unit(c->in[2], &c->y.unit)) &&
           find_plus(c, 2, c->y.times, &z) && add_up(c, c->y.plus, z, c->y.times);
}

static bool negative(struct shift_step *c)
{
    return take_operand(c, -c->in[0]->plus, c->in[0]->times);
}

static bool factor(struct shift_step *c) { return is_factor(c->in[0]) && same(c); }
static bool term(struct shift_step *c) { return term_of(c, 0); }

static double base_of(const struct shift_step *c)
{
    return c->n->op == IR_exp2 || c->n->op == IR_log2 ? M_LN2 : 1;
}

static bool exponential(struct shift_step *c)
{
    return c->in[0]->times == 0 && take_operand(c, 0, c->in[0]->plus * base_of(c));
}

static bool exponential_less_1(struct shift_step *c)
{
    return c->in[0]->times == 0 && take_operand(c, c->in[0]->plus, c->in[0]->plus);
}

static bool logarithm(struct shift_step *c)
{
    return is_factor(c->in[0]) && take_operand(c, c->in[0]->times / base_of(c), 0);
}

static bool logarithm_of_1_more(struct shift_step *c)
{
    return is_same(c, c->in[0]->plus, c->in[0]->times) && take_operand(c, c->in[0]->plus, 0);
}

// Of a number that is there instead of a value of slope y: NaN has any.
static bool fits(struct shift_step *c, double value)
{
    if (isnan(value))
        return true;
    if (c->y.times == 0)
        return has_no_exponential(c, value) && (c->y.is_far = true);
    return isfinite(value) && is_same(c, c->y.plus, -c->y.times * value);
}

// Each element is one of an operand; the first of a select says which.
static bool choice(struct shift_step *c)
{
    uint32_t from = c->n->op == IR_select, first = from;
    while (!c->in[first])
        first++;
    take_operand(c, c->in[first]->plus, c->in[first]->times);
    for (uint32_t i = from; i < c->n->n_in; i++) {
        const struct shift_slope *x = c->in[i];
        double value;
        if (x ? !is_same(c, x->plus, c->y.plus) || !is_same(c, x->times, c->y.times)
              : !is_number(c, i, &value) || !fits(c, value))
            return false;
        c->y.is_far = c->y.is_far || (x && x->is_far);
    }
    return true;
}

static bool gathered(struct shift_step *c)
{
    bool has_zeros = ir_gather_of(c->n->attrs).mode == IR_MODE_DROP;
    return same(c) && (!has_zeros || fits(c, 0));
}

static bool added_up(struct shift_step *c)
{
    const struct ir_graph *g = c->at->g;
    int64_t n = ir_count_of(g, ir_operand(g, c->n, 0)), left = ir_count_of(g, c->n->out);
    return take_operand(c, left ? c->in[0]->plus * (double)(n / left) : 0, c->in[0]->times);
}

// -- The table --------------------------------------------------------------------------------------

// takes_far: operands may be far.
static const struct {
    bool (*slope)(struct shift_step *c);
    bool takes_far;
} rules[IR_OP_COUNT] = {
    [IR_neg] = {negative, false},
    [IR_convert] = {same, true},
    [IR_reduce_precision] = {same, true},
    [IR_variable] = {same, true},
    [IR_abs] = {factor, false},
    [IR_exp] = {exponential, true},
    [IR_exp2] = {exponential, true},
    [IR_expm1] = {exponential_less_1, true},
    [IR_log] = {logarithm, false},
    [IR_log2] = {logarithm, false},
    [IR_log1p] = {logarithm_of_1_more, false},
    [IR_add] = {sum, false},
    [IR_sub] = {sum, false},
    [IR_mul] = {product, false},
    [IR_mul_z] = {product, false},
    [IR_div] = {quotient, false},
    [IR_fma] = {fused, false},
    [IR_max] = {choice, true},
    [IR_min] = {choice, false},
    [IR_select] = {choice, true},
    [IR_broadcast_in_dim] = {same, true},
    [IR_reshape] = {same, true},
    [IR_transpose] = {same, true},
    [IR_rev] = {same, true},
    [IR_slice] = {same, true},
    [IR_pad] = {choice, true},
    [IR_concatenate] = {choice, true},
    [IR_dynamic_slice] = {same, true},
    [IR_gather] = {gathered, true},
    [IR_reduce_sum] = {added_up, false},
    [IR_reduce_max] = {same, true},
    [IR_reduce_min] = {same, false},
    [IR_cumsum] = {factor, false},
    [IR_cummax] = {same, true},
    [IR_cummin] = {same, false},
    [IR_cumlogsumexp] = {term, true},
    [IR_dot_general] = {contraction, false},
};

bool shift_find_slope(struct shift_step *c)
{
    for (uint32_t i = 0; i < c->n->n_in; i++)
        if (c->in[i] && c->in[i]->is_far && !rules[c->n->op].takes_far)
            return false;
    return rules[c->n->op].slope && rules[c->n->op].slope(c) && isfinite(c->y.plus) &&
           isfinite(c->y.times);
}
