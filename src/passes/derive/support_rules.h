// SPDX-License-Identifier: Apache-2.0
// What the rules of supports are written with: operands and results of node n; included by the files of
// such rules alone (support.c says what a support is).
#ifndef PASSES_DERIVE_SUPPORT_RULES_H
#define PASSES_DERIVE_SUPPORT_RULES_H

#include "passes/derive/support.h"
#include "passes/rules/rules.h"

#define ALL SUPPORT_ALL
#define NONE SUPPORT_NONE

typedef void support_rule(struct support *s, const struct ir_node *n);

static inline struct supported *operand(struct support *s, const struct ir_node *n, uint32_t i)
{
    return &s->of[ir_operand(s->g, n, i)];
}

static inline ir_id clean(struct support *s, const struct ir_node *n, uint32_t i)
{
    return support_clean(s, operand(s, n, i));
}

static inline struct ir_type result(const struct support *s, const struct ir_node *n)
{
    return ir_type_of(s->g, n->out);
}

static inline ir_id widen(struct support *s, ir_id v, struct ir_type t)
{
    return rule_broadcast_to(s->b, v, t);
}

static inline struct supported uniform(enum support_kind kind)
{
    return (struct supported){IR_NONE, IR_NONE, kind, IR_NONE};
}

// Where all elements may be nonzero none has to be made zero.
static inline void give(struct support *s, const struct ir_node *n, struct supported support,
                        ir_id raw, bool is_clean)
{
    support.raw = raw;
    support.clean = is_clean || support.kind == ALL ? raw : IR_NONE;
    s->of[n->out] = support;
}

static inline bool is_clean(const struct supported *x) { return x->clean != IR_NONE; }

static inline ir_id either(struct supported *x) { return is_clean(x) ? x->clean : x->raw; }

// A support of the result by its value; one for all elements stays so.
struct supported support_partial(struct support *s, const struct ir_node *n, ir_id where);
// Whether a bool is known to be true in all elements (support_everywhere.c).
bool support_is_everywhere(const struct ir_graph *g, ir_id where);
// The support of x as a bool of the shape.
ir_id support_spread(struct support *s, const struct supported *x, struct ir_type t);
// Where both are, of a product.
struct supported support_both(struct support *s, const struct ir_node *n,
                              const struct supported *x, const struct supported *y);

// Rules of what moves elements or adds them up (support_indices.c).
support_rule support_index, support_reorder, support_move, support_add_at_indices, support_fold,
    support_running;
support_rule support_mix_first, support_mix_last, support_mix_both, support_contraction;

#endif
