// SPDX-License-Identifier: Apache-2.0
// Contractions with the basis of a Jacobian are changes of index.
//
// A basis is an identity matrix [n,n] whose second axis may be split: [n,d0,d1].  Contracting all
// of d0, d1 with another operand gives that operand, its contracted axes in place of n.
// Contracting d1 alone leaves copies of it on the diagonal of n's first part and the axis d0.
//
//     p = reshape (convert (eq (iota 0) (iota 1))) [6,2,3];  y = dot p a over d0, d1
// becomes
//     y = reshape (transpose a) [6,...]
#include "passes/transform.h"

static bool is_iota(const struct ir_builder *b, ir_id v, int axis)
{
    const struct ir_node *n = ir_node_in(b, v);
    return n->op == IR_iota && ir_attr_int(n->attrs, IR_KEY_axis) == axis;
}

static bool is_basis(const struct ir_builder *b, ir_id v)
{
    const struct ir_node *n = ir_node_in(b, v);
    if (n->op == IR_reshape) {
        struct ir_type whole = ir_type_in(b, v),
                       square = ir_type_in(b, ir_operand(b->graph, n, 0));
        if (whole.rank < 1 || square.rank != 2 ||
            ir_dims(b->module, whole)[0] != ir_dims(b->module, square)[0])
            return false;
        n = ir_node_in(b, ir_operand(b->graph, n, 0));
    }
    if (n->op != IR_convert)
        return false;
    struct ir_type t = ir_type_in(b, n->out);
    n = ir_node_in(b, ir_operand(b->graph, n, 0));
    if (n->op != IR_eq || t.rank != 2 || ir_dims(b->module, t)[0] != ir_dims(b->module, t)[1])
        return false;
    ir_id x = ir_operand(b->graph, n, 0), y = ir_operand(b->graph, n, 1);
    if (ir_type_in(b, x).rank != 2 || !ir_type_equal(ir_type_in(b, x), ir_type_in(b, y)))
        return false;
    return (is_iota(b, x, 0) && is_iota(b, y, 1)) || (is_iota(b, x, 1) && is_iota(b, y, 0));
}

// One contraction of a basis with another operand.
struct contraction {
    struct ir_builder *b;
    int side; // of the basis: 0 left, 1 right
    ir_id basis, other;
    int n_parts;           // axes of the basis beside the first
    int with[IR_MAX_RANK]; // by part: the axis of other it is contracted with, or -1
    int n_kept;            // parts that are not contracted
    int n_free;            // axes of other that are not contracted
    int64_t free[IR_MAX_RANK];
};

static bool find_contraction(struct contraction *c, const struct ir_node *n, const ir_id *in,
                             int side)
{
    enum ir_key keys[] = {IR_KEY_lhs_contract, IR_KEY_rhs_contract};
    int count;
    const int64_t *mine = ir_attr_ints(n->attrs, keys[side], &count);
    const int64_t *theirs = ir_attr_ints(n->attrs, keys[1 - side], &count);
    bool contracted[IR_MAX_RANK] = {false};
    c->side = side;
    c->basis = in[side];
    c->other = in[1 - side];
    c->n_parts = ir_type_in(c->b, c->basis).rank - 1;
    c->n_kept = c->n_parts - count;
    c->n_free = 0;
    for (int i = 0; i < c->n_parts; i++)
        c->with[i] = -1;
    for (int i = 0; i < count; i++) {
        if (mine[i] == 0)
            return false;
        c->with[mine[i] - 1] = (int)theirs[i];
        contracted[theirs[i]] = true;
    }
    for (int i = 0; i < ir_type_in(c->b, c->other).rank; i++)
        if (!contracted[i])
            c->free[c->n_free++] = i;
    return count > 0 && c->n_parts + c->n_kept + c->n_free <= IR_MAX_RANK &&
           is_basis(c->b, c->basis);
}

// The other operand over the axes [parts, kept, free], or [free, parts, kept] when the basis is on
// the right.
static ir_id spread_other(const struct contraction *c, int rank, int64_t *dims)
{
    struct ir_builder *b = c->b;
    const int64_t *parts = ir_dims(b->module, ir_type_in(b, c->basis)) + 1;
    const int64_t *from = ir_dims(b->module, ir_type_in(b, c->other));
    int first = c->side ? c->n_free : 0, at = 0, kept = 0;
    int first_free = c->side ? 0 : c->n_parts + c->n_kept;
    int64_t order[IR_MAX_RANK], axes[IR_MAX_RANK];
    for (int i = 0; i < c->n_free && c->side; i++) {
        axes[at] = i;
        order[at++] = c->free[i];
    }
    for (int i = 0; i < c->n_parts; i++) {
        dims[first + i] = parts[i];
        if (c->with[i] < 0) {
            dims[first + c->n_parts + kept++] = parts[i];
            continue;
        }
        axes[at] = first + i;
        order[at++] = c->with[i];
    }
    for (int i = 0; i < c->n_free; i++) {
        dims[first_free + i] = from[c->free[i]];
        if (c->side == 0) {
            axes[at] = first_free + i;
            order[at++] = c->free[i];
        }
    }
    return ir_broadcast_in_dim(b, ir_transpose(b, c->other, order), rank, dims, axes);
}

// Where a kept part of n is equal to the kept axis itself; axes of extent 1 elsewhere.
static ir_id on_diagonal(struct ir_builder *b, int rank, const int64_t *dims, int part,
                         int axis)
{
    int64_t square[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        square[i] = i == part || i == axis ? dims[i] : 1;
    struct ir_type t = ir_type_make(b->module, JOT_I64, rank, square);
    return ir_eq(b, ir_iota(b, t, part), ir_iota(b, t, axis));
}

ir_id pass_contract_basis(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                          struct ir_type type)
{
    int n_batch;
    ir_attr_ints(n->attrs, IR_KEY_lhs_batch, &n_batch);
    struct contraction c = {.b = b};
    if (n_batch || !(find_contraction(&c, n, in, 0) || find_contraction(&c, n, in, 1)))
        return IR_NONE;
    int64_t dims[IR_MAX_RANK];
    int rank = c.n_parts + c.n_kept + c.n_free, first = c.side ? c.n_free : 0;
    ir_id y = spread_other(&c, rank, dims);
    for (int i = 0, kept = 0; i < c.n_parts; i++)
        if (c.with[i] < 0)
            y = ir_select(b, on_diagonal(b, rank, dims, first + i, first + c.n_parts + kept++),
                          y, ir_scalar(b, ir_dtype(type), 0));
    return ir_reshape(b, y, type.rank, ir_dims(b->module, type));
}
