// SPDX-License-Identifier: Apache-2.0
// Which supports a function asks for, from its products back (support.c).
#include "ir/control.h"
#include "ir/number.h"
#include "passes/derive/support.h"

#include <math.h>

enum { DEEP = 8 }; // constants are made of few ops

static bool is_finite_data(const struct ir_graph *g, const struct ir_node *n)
{
    jot_dtype d = ir_dtype_of(g, n->out);
    int64_t count = ir_count_of(g, n->out) * (dtype_is_complex(d) ? 2 : 1);
    bool is_finite = true;
    double x;
    for (int64_t i = 0; dtype_is_inexact(d) && i < count && is_finite; i++)
        is_finite = ir_number_at(dtype_real(d), ir_const_data(n), i, &x) && isfinite(x);
    return is_finite;
}

static bool is_finite(const struct ir_graph *g, ir_id v, int depth)
{
    const struct ir_node *n = ir_node_of(g, v);
    if (!dtype_is_inexact(ir_dtype_of(g, v)))
        return true;
    if (n->op == IR_const)
        return is_finite_data(g, n);
    if (depth == 0)
        return false;
    if (n->op == IR_select)
        return is_finite(g, ir_operand(g, n, 1), depth - 1) &&
               is_finite(g, ir_operand(g, n, 2), depth - 1);
    jot_dtype from = n->n_in ? ir_dtype_of(g, ir_operand(g, n, 0)) : JOT_BOOL;
    if (n->op == IR_convert && !dtype_is_inexact(from)) // f16 has no room for all integers
        return from == JOT_BOOL || ir_dtype_of(g, v) != JOT_F16;
    bool passes = n->op == IR_neg || n->op == IR_broadcast_in_dim || n->op == IR_reshape ||
                  n->op == IR_conj || n->op == IR_transpose;
    return passes && is_finite(g, ir_operand(g, n, 0), depth - 1);
}

bool support_is_finite(const struct ir_graph *g, ir_id v) { return is_finite(g, v, DEEP); }

void support_want_scan(const struct ir_graph *g, const struct ir_node *n, bool *out, bool *in)
{
    struct ir_scan s = ir_scan_of(n);
    const bool *body;
    do {
        body = support_wanted(g->module, s.body, out);
    } while (body_grow(out, body + s.n_consts, (uint32_t)s.n_carry));
    memcpy(in, body, n->n_in * sizeof *in);
    memcpy(in + s.n_consts, out, (size_t)s.n_carry * sizeof *in);
}

void support_want_while(const struct ir_graph *g, const struct ir_node *n, bool *out, bool *in)
{
    struct ir_while l = ir_while_of(n);
    const bool *test = support_wanted(g->module, l.test, body_mask(g->module, 1)), *body;
    body_add_mask(out, test + l.n_consts, n->n_out);
    do {
        body = support_wanted(g->module, l.body, out);
    } while (body_grow(out, body + l.n_consts, n->n_out));
    memcpy(in, body, n->n_in * sizeof *in);
    body_add_mask(in, test, n->n_in);
    memcpy(in + l.n_consts, out, n->n_out * sizeof *in);
}

static void want_bodies(const struct ir_graph *g, const struct ir_node *n, const bool *out,
                        bool *in)
{
    struct ir_module *m = g->module;
    bool *grown = arena_copy(m->arena, out, n->n_out * sizeof *out);
    const int64_t *functions;
    int count = ir_bodies_of(n, &functions);
    if (n->op == IR_scan)
        support_want_scan(g, n, grown, in);
    else if (n->op == IR_while)
        support_want_while(g, n, grown, in);
    else if (n->op == IR_cond)
        for (int k = 0; k < count; k++)
            body_add_mask(in + 1, support_wanted(m, (uint32_t)functions[k], out), n->n_in - 1);
    else
        body_add_mask(in, support_wanted(m, (uint32_t)functions[0], out), n->n_in);
}

static void want_operands(const struct ir_graph *g, const struct ir_node *n, bool *wanted)
{
    bool is_guard =
        n->op == IR_guard || (n->op == IR_mul_z && !support_is_finite(g, ir_operand(g, n, 1)));
    if (is_guard)
        wanted[ir_operand(g, n, 0)] = true;
    // Of a barrier, result by result.
    for (uint32_t i = 0; i < n->n_in; i++)
        if (support_passes(n, i) && wanted[n->out + (n->op == IR_barrier ? i : 0)])
            wanted[ir_operand(g, n, i)] = true;
}

void support_want(const struct ir_graph *g, bool *wanted)
{
    if (g->module->is_unguarded) {
        memset(wanted, 0, g->values.count * sizeof *wanted);
        return;
    }
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        if (!ir_has_bodies((enum ir_op)n->op)) {
            if (n->n_out)
                want_operands(g, n, wanted);
            continue;
        }
        bool *in = body_mask(g->module, n->n_in);
        want_bodies(g, n, wanted + n->out, in);
        for (uint32_t i = 0; i < n->n_in; i++)
            wanted[ir_operand(g, n, i)] |=
                in[i] && pass_is_inexact(ir_type_of(g, ir_operand(g, n, i)));
    }
}

const bool *support_wanted(struct ir_module *m, uint32_t f, const bool *wanted)
{
    const struct ir_graph *g = ir_function(m, f);
    struct memo_key key = {
        .kind = MEMO_SUPPORT_WANTED, .f = f, .n = g->outputs.count, .mask = wanted};
    const bool *known = pass_memo_find(m, &key);
    if (known)
        return known;
    bool *values = body_mask(m, g->values.count);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        values[g->outputs.at[i]] |= wanted[i];
    support_want(g, values);
    pass_memo_add(m, &key, values); // parameters come first
    return values;
}
