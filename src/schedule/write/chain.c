// SPDX-License-Identifier: Apache-2.0
// Folds, prefix folds and updates of a few elements, written out.
//
// A fold of up to 64 elements has an accumulator for each (docs/numerics.md): what is left is to
// combine them by halves.  A sum ends with + 0, since accumulators begin with 0 and -0 is not left.
#include "schedule/write/write.h"

#define MOST 64

static int64_t folded_count(const struct ir_graph *g, const struct ir_node *n)
{
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    const int64_t *dims = ir_dims_of(g, ir_operand(g, n, 0));
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(product, dims[axes[i]], &product))
            return INT64_MAX;
    return product;
}

bool write_can_chain(const struct ir_graph *g, const struct ir_node *n)
{
    ir_id x = n->n_in ? ir_operand(g, n, 0) : n->out;
    if (ir_op_get((enum ir_op)n->op)->combiner == IR_OP_COUNT ||
        write_pair_of(n, ir_dtype_of(g, x)) == IR_OP_COUNT)
        return false;
    switch (ir_op_class((enum ir_op)n->op)) {
    case IR_CLASS_ARG:
        return folded_count(g, n) <= MOST && folded_count(g, n) > 0;
    case IR_CLASS_REDUCE:
    case IR_CLASS_CONTRACT:
        return folded_count(g, n) <= MOST && folded_count(g, n) > 1 &&
               !dtype_is_complex(ir_dtype_of(g, x));
    case IR_CLASS_CUMULATIVE:
        return !dtype_is_half(ir_dtype_of(g, x)) && !dtype_is_complex(ir_dtype_of(g, x)) &&
               ir_dims_of(g, x)[ir_attr_int(n->attrs, IR_KEY_axis)] <= MOST;
    default:
        return false;
    }
}

// Element i of the sequence that the node folds.
static struct nest_combine term(struct writer *w, ir_id v, const form_id *at, nest_id guard,
                                int64_t i)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    form_id folded[IR_MAX_RANK];
    int count;
    const int64_t *axes = node_folded_axes(n, 0, &count);
    const int64_t *dims = ir_dims_of(w->s->g, ir_operand(w->s->g, n, 0));
    for (int k = count; k-- > 0;) {
        folded[k] = emit_form_constant(&w->e, i % dims[axes[k]]);
        i /= dims[axes[k]];
    }
    return write_combine_of(w, v, at, guard, folded);
}

static nest_id sum(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    int64_t n = folded_count(w->s->g, ir_node_of(w->s->g, v)), lanes = 1;
    nest_id x[MOST];
    struct nest_combine c = {0};
    for (int64_t i = 0; i < n; i++) {
        c = term(w, v, at, guard, i);
        x[i] = c.n == 2 ? emit_op2(&w->e, IR_mul, c.dtype, c.value[0], c.value[1]) : c.value[0];
    }
    enum ir_op op = ir_op_get((enum ir_op)c.op)->pair;
    for (int64_t i = 0; i < n && op != IR_add; i++)
        x[i] = write_begun(w, &c, x[i]);
    while (lanes < n)
        lanes *= 2;
    for (int64_t half = lanes / 2; half; half /= 2)
        for (int64_t i = 0; i < half && i + half < n; i++)
            x[i] = emit_op2(&w->e, op, c.dtype, x[i], x[i + half]);
    if (op == IR_add)
        x[0] = write_begun(w, &c, x[0]);
    return write_result_of(w, v, &c, x[0]);
}

static nest_id is_nan(struct writer *w, nest_id x, bool is)
{
    return emit_op2(&w->e, is ? IR_ne : IR_eq, JOT_BOOL, x, x);
}

// The first of the best; a NaN is better than any number.
static nest_id position_of_best(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    jot_dtype d = ir_dtype_of(w->s->g, v);
    enum ir_op wins = ir_op_get((enum ir_op)n->op)->pair;
    int64_t count = folded_count(w->s->g, n), zero = 0;
    nest_id best = term(w, v, at, guard, 0).value[0],
            position = emit_const(&w->e, JOT_I64, &zero);
    jot_dtype of = w->e.b.nest->values.at[best].dtype;
    for (int64_t i = 1; i < count; i++) {
        nest_id x = term(w, v, at, guard, i).value[0];
        nest_id better = emit_op2(&w->e, wins, JOT_BOOL, x, best);
        if (dtype_is_float(of)) {
            nest_id first =
                emit_op2(&w->e, IR_and, JOT_BOOL, is_nan(w, x, true), is_nan(w, best, false));
            better = emit_op2(&w->e, IR_or, JOT_BOOL, better, first);
        }
        nest_id in[3] = {better, emit_const(&w->e, JOT_I64, &i), position};
        position = emit_op(&w->e, IR_select, JOT_I64, 3, in, NULL);
        in[1] = x;
        in[2] = best;
        best = emit_op(&w->e, IR_select, of, 3, in, NULL);
    }
    return d == JOT_I64 ? position : emit_op(&w->e, IR_convert, d, 1, &position, NULL);
}

// The element of a prefix fold: the one before it, combined with its own.
static nest_id running(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    const struct ir_node *n = ir_node_of(w->s->g, v);
    jot_dtype d = ir_dtype_of(w->s->g, v);
    int64_t axis = ir_attr_int(n->attrs, IR_KEY_axis), index;
    bool reverse = ir_attr_int_or(n->attrs, IR_KEY_reverse, 0);
    int64_t first = reverse ? ir_dims_of(w->s->g, v)[axis] - 1 : 0;
    form_id before[IR_MAX_RANK];
    nest_id own = write_at_operand(w, n, 0, at, guard);
    if (!emit_form_is_constant(&w->e, at[axis], &index) || index == first)
        return own;
    memcpy(before, at, (size_t)ir_rank_of(w->s->g, v) * sizeof *at);
    before[axis] = emit_form_constant(&w->e, reverse ? index + 1 : index - 1);
    return emit_op2(&w->e, write_pair_of(n, d), d, write_value_at(w, v, before, guard), own);
}

nest_id write_chain(struct writer *w, ir_id v, const form_id *at, nest_id guard)
{
    switch (ir_op_class((enum ir_op)ir_node_of(w->s->g, v)->op)) {
    case IR_CLASS_ARG:
        return position_of_best(w, v, at, guard);
    case IR_CLASS_CUMULATIVE:
        return running(w, v, at, guard);
    default:
        return sum(w, v, at, guard);
    }
}
