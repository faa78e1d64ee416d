// SPDX-License-Identifier: Apache-2.0
// The support of what moves elements, or adds them up (support.c).
#include "ir/index_map.h"
#include "ir/indexing.h"
#include "ir/number.h"
#include "passes/derive/support_rules.h"

// -- Indices -----------------------------------------------------------------------------------

// The elements of one operand in another order or shape.
void support_reorder(struct support *s, const struct ir_node *n)
{
    struct supported *x = operand(s, n, 0), support = *x;
    if (x->kind == SUPPORT_SOME)
        support = support_partial(s, n, ir_rebuild(s->b, s->g, n, &x->where));
    // A select is cheaper before elements are repeated.
    bool is_same = ir_count(s->b->module, result(s, n)) ==
                   ir_count(s->b->module, ir_type_in(s->b, x->raw));
    ir_id in = is_same ? either(x) : clean(s, n, 0);
    bool stays = is_clean(x);
    give(s, n, support, ir_rebuild(s->b, s->g, n, &in), stays);
}

static bool makes_zeros(const struct ir_graph *g, const struct ir_node *n)
{
    return ir_index_has_zeros(g, n) ||
           (n->op == IR_gather && ir_gather_of(n->attrs).mode == IR_MODE_DROP);
}

// The elements of several operands at indices: the supports go to the same.
void support_move(struct support *s, const struct ir_node *n)
{
    ir_id *in = pass_no_values(s->b->module, n->n_in),
          *where = pass_no_values(s->b->module, n->n_in);
    int all = 0, none = 0, count = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = clean(s, n, i);
        if (!support_passes(n, i))
            continue;
        enum support_kind kind = operand(s, n, i)->kind;
        count++;
        all += kind == ALL;
        none += kind == NONE;
    }
    struct supported support = uniform(none == count ? NONE : ALL);
    if (none != count && (all != count || makes_zeros(s->g, n))) {
        for (uint32_t i = 0; i < n->n_in; i++)
            where[i] = support_passes(n, i)
                           ? support_spread(s, operand(s, n, i),
                                            ir_type_of(s->g, ir_operand(s->g, n, i)))
                           : in[i];
        support = support_partial(
            s, n, ir_build(s->b, (enum ir_op)n->op, (int)n->n_in, where, n->attrs));
    }
    give(s, n, support, ir_rebuild(s->b, s->g, n, in), true);
}

// Elements of one operand in another order, or of several operands, or zeros, at indices.
void support_index(struct support *s, const struct ir_node *n)
{
    if (n->n_in > 1 || ir_index_has_zeros(s->g, n))
        support_move(s, n);
    else
        support_reorder(s, n);
}

static ir_id as_bytes(struct support *s, ir_id p) { return ir_convert(s->b, p, JOT_U8); }

// Whether all elements are one number that is known and not 0: sums of it are not either.
static bool is_filled(const struct ir_graph *g, ir_id v)
{
    const struct ir_node *n = ir_filling(g, v);
    return n && rule_is_nonzero_number(g, n->out) && support_is_finite(g, n->out);
}

// Where x is, and where updates that are stand.
static ir_id add_indices(struct support *s, const struct ir_node *n, const struct supported *x,
                         const struct supported *u, ir_id indices)
{
    struct ir_builder *b = s->b;
    struct ir_type updates = ir_type_of(s->g, ir_operand(s->g, n, 2));
    ir_id at[3] = {support_spread(s, x, result(s, n)), indices, support_spread(s, u, updates)};
    if (u->kind == ALL)
        return ir_build(b, IR_scatter, 3, at, n->attrs);
    if (rule_is_unique(b, n->attrs, indices)) {
        ir_id have = rule_gather_updated(b, at[0], indices, updates, n->attrs);
        at[2] = ir_or(b, have, at[2]);
        return ir_build(b, IR_scatter, 3, at, n->attrs);
    }
    at[0] = as_bytes(s, at[0]); // bool has no maximum
    at[2] = as_bytes(s, at[2]);
    return ir_convert(b, ir_build(b, IR_scatter_max, 3, at, n->attrs), JOT_BOOL);
}

void support_add_at_indices(struct support *s, const struct ir_node *n)
{
    struct ir_builder *b = s->b;
    const struct supported *x = operand(s, n, 0), *u = operand(s, n, 2);
    ir_id in[] = {clean(s, n, 0), clean(s, n, 1), clean(s, n, 2)};
    struct supported support = *x;
    ir_id y = ir_rebuild(b, s->g, n, in);
    if (x->kind == NONE && is_filled(b->graph, in[2]))
        support = support_partial(s, n, ir_ne(b, y, ir_scalar_like(b, y, 0)));
    else if (x->kind != ALL && u->kind != NONE)
        support = support_partial(s, n, add_indices(s, n, x, u, in[1]));
    give(s, n, support, y, true);
}

// -- Sums and products ------------------------------------------------------------------------

// Whether p is eq (iota 0) (iota 1) of a square: each row and each column has one that holds.
static bool is_basis(const struct ir_builder *b, ir_id p)
{
    const struct ir_graph *g = b->graph;
    const struct ir_node *n = ir_node_of(g, p);
    if (n->op != IR_eq || ir_rank_of(g, p) != 2 || ir_dims_of(g, p)[0] != ir_dims_of(g, p)[1])
        return false;
    const struct ir_node *row = ir_node_of(g, ir_operand(g, n, 0)),
                         *column = ir_node_of(g, ir_operand(g, n, 1));
    return row->op == IR_iota && column->op == IR_iota &&
           ir_attr_int(row->attrs, IR_KEY_axis) != ir_attr_int(column->attrs, IR_KEY_axis);
}

// Where any element along the axes is of the support x of a value.
static struct supported any_along(struct support *s, struct supported x, int n,
                                  const int64_t *axes)
{
    if (x.kind == SUPPORT_SOME && n == 1 && is_basis(s->b, x.where))
        return uniform(ALL);
    if (x.kind == SUPPORT_SOME)
        x.where = ir_reduce(s->b, IR_reduce_or, x.where, n, axes);
    return x;
}

// A sum without terms is zero by itself.
static bool is_empty(const struct support *s, const struct ir_node *n, uint32_t i)
{
    return ir_count(s->b->module, ir_type_of(s->g, ir_operand(s->g, n, i))) == 0;
}

void support_fold(struct support *s, const struct ir_node *n)
{
    int count;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    struct supported support = any_along(s, *operand(s, n, 0), count, axes);
    ir_id in = clean(s, n, 0);
    if (is_empty(s, n, 0))
        support = uniform(NONE);
    if (support.kind == SUPPORT_SOME)
        support = support_partial(s, n, support.where);
    give(s, n, support, ir_rebuild(s->b, s->g, n, &in), true);
}

void support_running(struct support *s, const struct ir_node *n)
{
    struct supported support = *operand(s, n, 0);
    ir_id in = clean(s, n, 0);
    if (support.kind == SUPPORT_SOME) {
        ir_id bytes = as_bytes(s, support.where);
        bytes = ir_build(s->b, IR_cummax, 1, &bytes, n->attrs);
        support = support_partial(s, n, ir_convert(s->b, bytes, JOT_BOOL));
    }
    give(s, n, support, ir_rebuild(s->b, s->g, n, &in), true);
}

// Whether any element of x can be other than zero.
static struct supported anywhere(struct support *s, const struct supported *x)
{
    if (x->kind != SUPPORT_SOME)
        return *x;
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(s->b, x->where).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    struct supported any = any_along(s, *x, rank, axes);
    any.kind = SUPPORT_SAME;
    return any;
}

// Linear in operand i, each element of the result in any of the operand's.
static void mix(struct support *s, const struct ir_node *n, uint32_t i)
{
    ir_id in[4];
    for (uint32_t k = 0; k < n->n_in; k++)
        in[k] = clean(s, n, k);
    struct supported support = anywhere(s, operand(s, n, i));
    give(s, n, support, ir_rebuild(s->b, s->g, n, in), true);
}

void support_mix_first(struct support *s, const struct ir_node *n) { mix(s, n, 0); }
void support_mix_last(struct support *s, const struct ir_node *n) { mix(s, n, n->n_in - 1); }

void support_mix_both(struct support *s, const struct ir_node *n)
{
    ir_id in[] = {clean(s, n, 0), clean(s, n, 1)};
    struct supported x = anywhere(s, operand(s, n, 0)), y = anywhere(s, operand(s, n, 1));
    give(s, n, support_both(s, n, &x, &y), ir_rebuild(s->b, s->g, n, in), true);
}

static bool has(const int64_t *list, int n, int axis)
{
    for (int i = 0; i < n; i++)
        if (list[i] == axis)
            return true;
    return false;
}

// What axis i is when the listed ones are gone.
static int64_t kept_axis(int64_t axis, const int64_t *gone, int n)
{
    int64_t before = 0;
    for (int i = 0; i < n; i++)
        before += gone[i] < axis;
    return axis - before;
}

// Where one side of a contraction has a term, as an operand of the result: batch axes, its free
// axes, which come after `before` others.
static struct supported side(struct support *s, const struct ir_node *n, uint32_t which)
{
    struct ir_builder *b = s->b;
    struct supported x = *operand(s, n, which);
    if (x.kind != SUPPORT_SOME)
        return x;
    int n_batch, n_contract, kept = 0;
    const int64_t *batch =
        ir_attr_ints(n->attrs, which ? IR_KEY_rhs_batch : IR_KEY_lhs_batch, &n_batch);
    const int64_t *contract =
        ir_attr_ints(n->attrs, which ? IR_KEY_rhs_contract : IR_KEY_lhs_contract, &n_contract);
    struct ir_type t = ir_type_in(b, x.where), y = result(s, n);
    int64_t order[IR_MAX_RANK], axes[IR_MAX_RANK];
    for (; kept < n_batch; kept++)
        order[kept] = kept_axis(batch[kept], contract, n_contract);
    for (int i = 0; i < t.rank; i++)
        if (!has(batch, n_batch, i) && !has(contract, n_contract, i))
            order[kept++] = kept_axis(i, contract, n_contract);
    x = any_along(s, x, n_contract, contract);
    if (x.kind == ALL)
        return x;
    for (int i = 0; i < kept; i++)
        axes[i] = i < n_batch || which == 0 ? i : y.rank - kept + i;
    x.where = ir_broadcast_in_dim(b, ir_transpose(b, x.where, order), y.rank,
                                  ir_dims(b->module, y), axes);
    x.kind = y.rank ? SUPPORT_SOME : SUPPORT_SAME;
    return x;
}

void support_contraction(struct support *s, const struct ir_node *n)
{
    ir_id in[] = {clean(s, n, 0), clean(s, n, 1)};
    struct supported x = side(s, n, 0), y = side(s, n, 1);
    if (is_empty(s, n, 0) || is_empty(s, n, 1))
        x = uniform(NONE);
    give(s, n, support_both(s, n, &x, &y), ir_rebuild(s->b, s->g, n, in), true);
}
