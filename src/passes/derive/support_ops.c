// SPDX-License-Identifier: Apache-2.0
// The support of a result from those of the operands, op by op (support.c).
#include "passes/derive/support_rules.h"

struct supported support_partial(struct support *s, const struct ir_node *n, ir_id where)
{
    struct supported x = {IR_NONE, IR_NONE, SUPPORT_SAME, where};
    if (where != IR_NONE && support_is_everywhere(s->b->graph, where))
        return uniform(ALL);
    if (where == IR_NONE || ir_type_in(s->b, where).rank == 0)
        return x;
    x.kind = SUPPORT_SOME;
    x.where = widen(s, where, result(s, n));
    return x;
}

// Zeros, and nothing else.
static void give_zeros(struct support *s, const struct ir_node *n)
{
    ir_id zeros = ir_zeros(s->b, result(s, n));
    give(s, n, uniform(NONE), zeros, true);
}

// All that x gives is a result of the wanted kind, which may have a larger shape.
static void forward(struct support *s, const struct ir_node *n, struct supported *x)
{
    struct supported y = *x;
    if (x->kind == SUPPORT_SOME)
        y = support_partial(s, n, x->where);
    give(s, n, y, widen(s, either(x), result(s, n)), is_clean(x));
}

// -- Supports as values -----------------------------------------------------------------------

static ir_id truth(struct support *s, bool is) { return ir_scalar_int(s->b, JOT_BOOL, is); }

ir_id support_spread(struct support *s, const struct supported *x, struct ir_type t)
{
    ir_id where = x->kind == ALL || x->kind == NONE ? truth(s, x->kind == ALL) : x->where;
    return widen(s, where, ir_type_with(t, JOT_BOOL));
}

static bool is_not(const struct support *s, ir_id p, ir_id q)
{
    const struct ir_node *n = ir_node_of(s->b->graph, p);
    return n->op == IR_not && ir_operand(s->b->graph, n, 0) == q;
}

static bool are_complements(const struct support *s, const struct supported *x,
                            const struct supported *y)
{
    return is_not(s, x->where, y->where) || is_not(s, y->where, x->where);
}

struct supported support_both(struct support *s, const struct ir_node *n,
                              const struct supported *x, const struct supported *y)
{
    if (x->kind == NONE || y->kind == NONE)
        return uniform(NONE);
    if (x->kind == ALL && y->kind == ALL)
        return uniform(ALL);
    if (x->kind == ALL || y->kind == ALL)
        return support_partial(s, n, x->kind == ALL ? y->where : x->where);
    return support_partial(s, n,
                           x->where == y->where ? x->where : ir_and(s->b, x->where, y->where));
}

static struct supported one_of(struct support *s, const struct ir_node *n,
                               const struct supported *x, const struct supported *y)
{
    if (x->kind == ALL || y->kind == ALL)
        return uniform(ALL);
    if (x->kind == NONE && y->kind == NONE)
        return uniform(NONE);
    if (x->kind == NONE || y->kind == NONE)
        return support_partial(s, n, x->kind == NONE ? y->where : x->where);
    if (are_complements(s, x, y))
        return uniform(ALL);
    return support_partial(s, n,
                           x->where == y->where ? x->where : ir_or(s->b, x->where, y->where));
}

// -- Elementwise ------------------------------------------------------------------------------

static void constant(struct support *s, const struct ir_node *n)
{
    ir_id v = ir_rebuild(s->b, s->g, n, NULL);
    give(s, n, uniform(ir_is_zero(s->g, n->out) ? NONE : ALL), v, true);
}

// f(0) = 0, and f(x) depends on x alone.
static void each(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0), support = *x;
    ir_id in = either(x);
    give(s, n, support, ir_rebuild(s->b, s->g, n, &in), is_clean(x));
}

// The unit vectors of Jacobians, whose zeros are paths that are not taken.  Other numbers of
// predicates are a user's.
static bool are_unit_vectors(const struct ir_graph *g, const struct ir_node *n)
{
    const struct ir_node *p = ir_node_of(g, ir_operand(g, n, 0));
    return p->op == IR_eq && ir_node_of(g, ir_operand(g, p, 0))->op == IR_iota &&
           ir_node_of(g, ir_operand(g, p, 1))->op == IR_iota;
}

static void numbers(struct support *s, const struct ir_node *n)
{
    if (!are_unit_vectors(s->g, n)) {
        each(s, n);
        return;
    }
    ir_id p = clean(s, n, 0);
    struct supported support = support_partial(s, n, p);
    support.clean = ir_rebuild(s->b, s->g, n, &p);
    support.raw = ir_full(s->b, result(s, n), 1); // so that a product with it is none
    s->of[n->out] = support;
}

static void product(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0);
    ir_id y = clean(s, n, 1);
    if (x->kind == NONE) {
        give_zeros(s, n);
        return;
    }
    bool stays = x->kind == ALL || (is_clean(x) && support_is_finite(s->b->graph, y));
    struct supported support = *x;
    if (x->kind == SUPPORT_SOME)
        support = support_partial(s, n, x->where);
    give(s, n, support, ir_mul(s->b, stays ? x->clean : x->raw, y), stays);
}

static void guard(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0), *y = operand(s, n, 1);
    struct supported support = support_both(s, n, x, y);
    if (support.kind == NONE)
        give_zeros(s, n);
    else
        give(s, n, support, widen(s, either(y), result(s, n)), x->kind == ALL && is_clean(y));
}

// A product with a number that is known, plain: zeros stay.  No other product promises that.
static void scaled(struct support *s, const struct ir_node *n)
{
    struct supported support = uniform(ALL);
    for (uint32_t i = 0; i < 2; i++) {
        struct supported *x = operand(s, n, i);
        if (x->kind != ALL && support_is_finite(s->g, ir_operand(s->g, n, 1 - i)))
            support = x->kind == NONE ? *x : support_partial(s, n, x->where);
    }
    ir_id in[] = {clean(s, n, 0), clean(s, n, 1)};
    give(s, n, support, ir_rebuild(s->b, s->g, n, in), true);
}

static void quotient(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0);
    struct supported support = x->kind == SUPPORT_SOME ? support_partial(s, n, x->where) : *x;
    ir_id in[] = {clean(s, n, 0), clean(s, n, 1)};
    give(s, n, support, ir_rebuild(s->b, s->g, n, in), true);
}

static void pair(struct support *s, const struct ir_node *n)
{
    struct supported support = one_of(s, n, operand(s, n, 0), operand(s, n, 1));
    ir_id in[] = {clean(s, n, 0), clean(s, n, 1)};
    give(s, n, support, ir_rebuild(s->b, s->g, n, in), true);
}

// x + y or x - y, where one of the two is zeros.
static void lone_term(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0), *y = operand(s, n, 1);
    if (y->kind == NONE) {
        forward(s, n, x);
        return;
    }
    struct supported minus = *y;
    if (n->op == IR_sub) {
        minus.raw = ir_neg(s->b, either(y));
        minus.clean = is_clean(y) ? minus.raw : IR_NONE;
    }
    forward(s, n, &minus);
}

static void sum(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0), *y = operand(s, n, 1);
    if (x->kind == NONE || y->kind == NONE) {
        lone_term(s, n);
        return;
    }
    bool partly = x->kind != ALL && y->kind != ALL;
    if (partly && x->where == y->where && x->kind == y->kind) {
        bool stays = is_clean(x) && is_clean(y);
        struct supported support = support_partial(s, n, x->where);
        ir_id in[] = {stays ? x->clean : x->raw, stays ? y->clean : y->raw};
        give(s, n, support, ir_rebuild(s->b, s->g, n, in), stays);
    } else if (partly && are_complements(s, x, y)) {
        ir_id other = n->op == IR_sub ? ir_neg(s->b, y->raw) : y->raw;
        ir_id v = is_not(s, y->where, x->where) ? ir_select(s->b, x->where, x->raw, other)
                                                : ir_select(s->b, y->where, other, x->raw);
        give(s, n, uniform(ALL), v, true);
    } else {
        pair(s, n);
    }
}

static void choice(struct support *s, const struct ir_node *n)
{
    struct ir_builder *b = s->b;
    struct supported *x = operand(s, n, 1), *y = operand(s, n, 2);
    struct supported p = {IR_NONE, IR_NONE, SUPPORT_SOME, clean(s, n, 0)}, q = p;
    struct ir_type t = result(s, n);
    if (x->kind == NONE && y->kind == NONE) {
        give_zeros(s, n);
    } else if (y->kind == NONE) {
        give(s, n, support_both(s, n, &p, x), widen(s, either(x), t), false);
    } else if (x->kind == NONE) {
        q.where = ir_not(b, p.where);
        give(s, n, support_both(s, n, &q, y), widen(s, either(y), t), false);
    } else {
        struct supported support = uniform(ALL);
        if (x->kind != ALL || y->kind != ALL)
            support = support_partial(
                s, n, ir_select(b, p.where, support_spread(s, x, t), support_spread(s, y, t)));
        ir_id in[] = {p.where, clean(s, n, 1), clean(s, n, 2)};
        give(s, n, support, ir_rebuild(b, s->g, n, in), true);
    }
}

static void barrier(struct support *s, const struct ir_node *n)
{
    ir_id *in = pass_no_values(s->b->module, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = clean(s, n, i);
    ir_id y = ir_rebuild(s->b, s->g, n, in);
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct supported support = *operand(s, n, i);
        support.raw = support.clean = y == IR_NONE ? y : y + i;
        s->of[n->out + i] = support;
    }
}

// -- The table --------------------------------------------------------------------------------

#define EVERY UINT32_MAX

// The rule of an op, and the operands, as bits, whose zeros it passes on.  Changes of index with a
// map have support_index.
static const struct {
    support_rule *rule;
    uint32_t passes;
} rules[IR_OP_COUNT] = {
    [IR_const] = {constant, 0},
    [IR_neg] = {each, 1},
    [IR_real] = {each, 1},
    [IR_imag] = {each, 1},
    [IR_conj] = {each, 1},
    [IR_convert] = {numbers, 1},
    [IR_reduce_precision] = {each, 1},
    [IR_variable] = {each, 1},
    [IR_stop_gradient] = {each, 1},
    [IR_mul_z] = {product, 1},
    [IR_guard] = {guard, 3},
    [IR_mul] = {scaled, 3},
    [IR_div] = {quotient, 1},
    [IR_complex] = {pair, 3},
    [IR_add] = {sum, 3},
    [IR_sub] = {sum, 3},
    [IR_select] = {choice, 6},
    [IR_barrier] = {barrier, EVERY},
    [IR_reshape] = {support_reorder, 1},
    [IR_dynamic_slice] = {support_move, 1},
    [IR_gather] = {support_move, 1},
    [IR_dynamic_update_slice] = {support_move, 3},
    [IR_scatter] = {support_move, 5},
    [IR_scatter_add] = {support_add_at_indices, 5},
    [IR_reduce_sum] = {support_fold, 1},
    [IR_cumsum] = {support_running, 1},
    [IR_dot_general] = {support_contraction, 3},
    [IR_conv] = {support_mix_both, 3},
    [IR_fft] = {support_mix_first, 1},
    [IR_triangular_solve] = {support_mix_last, 2},
    [IR_tridiagonal_solve] = {support_mix_last, 8},
};

static support_rule *rule_of(const struct ir_node *n)
{
    return ir_op_get((enum ir_op)n->op)->index ? support_index : rules[n->op].rule;
}

bool support_passes(const struct ir_node *n, uint32_t i)
{
    uint32_t passes = rule_of(n) == support_index ? EVERY : rules[n->op].passes;
    return passes == EVERY || (i < 32 && (passes >> i & 1));
}

// Supports that nobody asks for are not made, but for those of what settles a product.
bool support_node(struct support *s, const struct ir_node *n)
{
    bool is_guard = n->op == IR_mul_z || n->op == IR_guard;
    support_rule *rule = rule_of(n);
    if (!rule || !(is_guard || s->wanted[n->out] || n->op == IR_barrier))
        return false;
    rule(s, n);
    return true;
}
