// SPDX-License-Identifier: Apache-2.0
// Comparisons of an axis with a number, and where they are decided.
#include "nest/nest.h"

bool nest_compares(const struct nest *n, const struct nest_statement *s,
                   struct nest_comparison *out)
{
    bool compares = s->op == IR_lt || s->op == IR_le || s->op == IR_gt || s->op == IR_ge ||
                    s->op == IR_eq || s->op == IR_ne;
    if (s->kind != NEST_OP || !compares)
        return false;
    const struct nest_statement *x = nest_maker_of(n, s->in[0]),
                                *y = nest_maker_of(n, s->in[1]);
    if (x->kind != NEST_INDEX || y->kind != NEST_CONST || x->dtype != JOT_I64 ||
        x->index.count != 1 || x->index.terms[0].is_value)
        return false;
    int64_t factor = x->index.terms[0].factor;
    *out =
        (struct nest_comparison){x->index.terms[0].id, factor, x->index.constant, y->bits[0]};
    return factor == 1 || factor == -1;
}

int nest_decides(const struct nest *n, const struct nest_statement *s,
                 const struct nest_interval *known)
{
    struct nest_comparison c;
    if (!known || !nest_compares(n, s, &c) || known[c.axis].end == 0)
        return -1;
    int64_t a = c.factor * known[c.axis].first + c.constant;
    int64_t b = c.factor * (known[c.axis].end - 1) + c.constant;
    int64_t least = a < b ? a : b, most = a < b ? b : a, to = c.number;
    bool above = least > to, below = most < to, apart = above || below;
    bool always = false, never = false;
    switch (s->op) {
    case IR_lt:
        always = below;
        never = least >= to;
        break;
    case IR_le:
        always = most <= to;
        never = above;
        break;
    case IR_gt:
        always = above;
        never = most <= to;
        break;
    case IR_ge:
        always = least >= to;
        never = below;
        break;
    case IR_eq:
        never = apart;
        break;
    default:
        always = apart;
    }
    return always ? 1 : never ? 0 : -1;
}
