// SPDX-License-Identifier: Apache-2.0
// Rules of folds, prefix folds and the indices of winners.
#include "passes/rules/rules.h"

#define B c->b

// A value with its tangent.
struct dual {
    ir_id v, t;
};

// op(l, r) and its tangent, by the rule of op.
static struct dual dual_op(struct ir_builder *b, enum ir_op op, struct dual l, struct dual r)
{
    ir_id x[] = {l.v, r.v}, dx[] = {l.t, r.t};
    ir_id y = ir_map2(b, op, l.v, r.v), dy = IR_NONE;
    if (y == IR_NONE)
        return (struct dual){IR_NONE, IR_NONE};
    struct jvp rule = {.b = b,
                       .g = b->graph,
                       .n = {.op = (uint16_t)op, .n_in = 2, .n_out = 1},
                       .x = x,
                       .dx = dx,
                       .y = &y,
                       .dy = &dy};
    jvp_rules[op](&rule);
    return (struct dual){y, dy};
}

typedef struct dual combine(struct ir_builder *b, struct dual l, struct dual r);

static struct dual combine_mul(struct ir_builder *b, struct dual l, struct dual r)
{
    return dual_op(b, IR_mul, l, r);
}
static struct dual combine_max(struct ir_builder *b, struct dual l, struct dual r)
{
    return dual_op(b, IR_max, l, r);
}
static struct dual combine_min(struct ir_builder *b, struct dual l, struct dual r)
{
    return dual_op(b, IR_min, l, r);
}

// f = log(exp(l) + exp(r)), d f = dl logistic(l - r) + dr logistic(r - l); of equal infinities
// each has half.  The larger one is chosen and not computed, for f has no kink where they are equal.
static struct dual combine_logaddexp(struct ir_builder *b, struct dual l, struct dual r)
{
    ir_id gap = ir_sub(b, l.v, r.v), is_nan = ir_ne(b, gap, gap);
    ir_id is_left = ir_gt(b, gap, ir_scalar_like(b, gap, 0));
    ir_id most = ir_select(b, is_left, l.v, r.v);
    ir_id under = ir_select(b, is_left, ir_neg(b, gap), gap);
    ir_id sum = ir_add(b, most, ir_log1p(b, ir_exp(b, under)));
    ir_id f = ir_select(b, is_nan, ir_add(b, l.v, r.v), sum);
    if (f == IR_NONE)
        return (struct dual){IR_NONE, IR_NONE};
    ir_id are_equal = ir_and(b, is_nan, ir_eq(b, l.v, r.v));
    gap = ir_select(b, are_equal, ir_scalar_like(b, f, 0), gap);
    ir_id wl = ir_logistic(b, gap), wr = ir_logistic(b, ir_neg(b, gap));
    return (struct dual){f, ir_add(b, ir_mul_z(b, l.t, wl), ir_mul_z(b, r.t, wr))};
}

static ir_id cut(struct ir_builder *b, ir_id v, int axis, int64_t start, int64_t limit,
                 int64_t stride)
{
    if (v == IR_NONE)
        return IR_NONE;
    int rank = ir_type_in(b, v).rank;
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], strides[IR_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        limits[i] = ir_dims(b->module, ir_type_in(b, v))[i];
        strides[i] = 1;
    }
    starts[axis] = start;
    limits[axis] = limit;
    strides[axis] = stride;
    return ir_slice(b, v, starts, limits, strides);
}

static struct dual cut_dual(struct ir_builder *b, struct dual d, int axis, int64_t start,
                            int64_t limit, int64_t stride)
{
    return (struct dual){cut(b, d.v, axis, start, limit, stride),
                         cut(b, d.t, axis, start, limit, stride)};
}

static ir_id join(struct ir_builder *b, ir_id x, ir_id y, int axis)
{
    return ir_concatenate(b, 2, (ir_id[]){x, y}, axis);
}

static struct dual join_dual(struct ir_builder *b, struct dual x, struct dual y, int axis)
{
    return (struct dual){join(b, x.v, y.v, axis), join(b, x.t, y.t, axis)};
}

// x0 y0 x1 y1 ... along the axis; x has as many elements as y or one more.
static ir_id interleave(struct ir_builder *b, ir_id x, ir_id y, int axis)
{
    if (x == IR_NONE || y == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, y);
    int64_t n = rule_extent(b, y, axis), more = rule_extent(b, x, axis) - n;
    int64_t apart[IR_MAX_RANK + 1], together[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        together[i] = ir_dims(b->module, t)[i] * (i == axis ? 2 : 1);
        apart[i < axis + 1 ? i : i + 1] = ir_dims(b->module, t)[i];
    }
    apart[axis + 1] = 1;
    ir_id head = more ? cut(b, x, axis, 0, n, 1) : x;
    ir_id both = join(b, ir_reshape(b, head, t.rank + 1, apart),
                      ir_reshape(b, y, t.rank + 1, apart), axis + 1);
    ir_id mixed = ir_reshape(b, both, t.rank, together);
    return more ? join(b, mixed, cut(b, x, axis, n, n + 1, 1), axis) : mixed;
}

// All prefix folds along an axis: pairs are folded, the folds of pairs scanned, and those
// between filled in.  Work O(n), nodes and depth of recursion O(log n).
static struct dual scan(struct ir_builder *b, combine *f, struct dual x, int axis)
{
    if (b->status != JOT_OK)
        return x;
    int64_t n = rule_extent(b, x.v, axis);
    if (n < 2)
        return x;
    struct dual pairs = f(b, cut_dual(b, x, axis, 0, n - 1, 2), cut_dual(b, x, axis, 1, n, 2));
    struct dual odd = scan(b, f, pairs, axis), even = cut_dual(b, x, axis, 0, 1, 1);
    if (b->status != JOT_OK)
        return x;
    if (n > 2) {
        struct dual before = n % 2 ? odd : cut_dual(b, odd, axis, 0, n / 2 - 1, 1);
        even = join_dual(b, even, f(b, before, cut_dual(b, x, axis, 2, n, 2)), axis);
    }
    return (struct dual){interleave(b, even.v, odd.v, axis),
                         interleave(b, even.t, odd.t, axis)};
}

// Rules, and maps of them, add axes.  Of more than so many there are those before `axis` as one
// and those behind it.
enum { ROOMY = IR_MAX_RANK / 2 };
static ir_id make_room(struct ir_builder *b, ir_id x, int64_t axis, int64_t *out_axis)
{
    struct ir_type t = ir_type_in(b, x);
    *out_axis = axis;
    if (b->status != JOT_OK || t.rank <= ROOMY)
        return x;
    const int64_t *from = ir_dims(b->module, t);
    int64_t dims[] = {1, from[axis], 1};
    for (int i = 0; i < t.rank; i++)
        if (i != axis)
            dims[i < axis ? 0 : 2] *= from[i];
    *out_axis = 1;
    return ir_reshape(b, x, 3, dims);
}

// A tangent with the axes of the result.
static ir_id with_axes_of(struct ir_builder *b, ir_id t, ir_id y)
{
    struct ir_type type = ir_type_in(b, y);
    return ir_reshape(b, t, type.rank, ir_dims(b->module, type));
}

// The tangent of a prefix fold is that of its scan.
static void jvp_prefix(struct jvp *c, combine *f)
{
    int64_t axis = ir_attr_int(c->n.attrs, IR_KEY_axis), at;
    bool reverse = ir_attr_int_or(c->n.attrs, IR_KEY_reverse, 0) != 0;
    struct dual x = {make_room(B, c->x[0], axis, &at), make_room(B, c->dx[0], axis, &at)};
    if (reverse)
        x = (struct dual){ir_rev(B, x.v, 1, &at), ir_rev(B, x.t, 1, &at)};
    ir_id t = scan(B, f, x, (int)at).t;
    c->dy[0] = with_axes_of(B, reverse ? ir_rev(B, t, 1, &at) : t, c->y[0]);
}

void jvp_cummax(struct jvp *c) { jvp_prefix(c, combine_max); }
void jvp_cummin(struct jvp *c) { jvp_prefix(c, combine_min); }
void jvp_cumlogsumexp(struct jvp *c) { jvp_prefix(c, combine_logaddexp); }

// The listed axes of x as one leading axis.
static ir_id gather_axes(struct ir_builder *b, ir_id x, int n, const int64_t *axes)
{
    struct ir_type t = ir_type_in(b, x);
    const int64_t *from = ir_dims(b->module, t);
    int64_t order[IR_MAX_RANK], dims[IR_MAX_RANK + 1] = {1};
    int kept = 0;
    for (int i = 0, next = 0; i < t.rank; i++) {
        if (next < n && axes[next] == i) {
            order[next++] = i;
            dims[0] *= from[i];
        } else {
            order[n + kept++] = i;
            dims[kept] = from[i];
        }
    }
    return ir_reshape(b, ir_transpose(b, x, order), kept + 1, dims);
}

// The axis as the leading one; where it was, with room for more.
static ir_id bring_first(struct ir_builder *b, ir_id x, int64_t axis, int64_t *out_axis)
{
    return gather_axes(b, make_room(b, x, axis, out_axis), 1, out_axis);
}

// Along short axes without overflow on the way.
void jvp_cumprod(struct jvp *c)
{
    int64_t axis = ir_attr_int(c->n.attrs, IR_KEY_axis);
    if (!rule_is_short(B, c->x[0], (int)axis)) {
        jvp_prefix(c, combine_mul);
        return;
    }
    bool reverse = ir_attr_int_or(c->n.attrs, IR_KEY_reverse, 0) != 0;
    int64_t at;
    ir_id x = bring_first(B, c->x[0], axis, &at), dx = bring_first(B, c->dx[0], axis, &at);
    ir_id t = rule_cumprod_tangent(B, x, dx, reverse);
    if (t == IR_NONE)
        return;
    int64_t order[IR_MAX_RANK];
    for (int i = 0; i < ir_type_in(B, t).rank; i++)
        order[i] = i < at ? i + 1 : i == at ? 0 : i;
    c->dy[0] = with_axes_of(B, ir_transpose(B, t, order), c->y[0]);
}

void jvp_reduce_prod(struct jvp *c)
{
    int n;
    const int64_t *axes = ir_attr_ints(c->n.attrs, IR_KEY_axes, &n);
    int64_t first;
    ir_id x = bring_first(B, gather_axes(B, c->x[0], n, axes), 0, &first);
    ir_id dx = bring_first(B, gather_axes(B, c->dx[0], n, axes), 0, &first);
    if (B->status == JOT_OK && rule_extent(B, x, 0) > 0)
        c->dy[0] = with_axes_of(B, rule_prod_tangent(B, x, dx), c->y[0]);
}

// With the listed axes kept, of extent 1.
static ir_id keep_axes(struct ir_builder *b, ir_id y, struct ir_type operand, int n,
                       const int64_t *axes)
{
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(b->module, operand), sizeof *dims * operand.rank);
    for (int i = 0; i < n; i++)
        dims[axes[i]] = 1;
    return ir_reshape(b, y, operand.rank, dims);
}

// The tangent of the first winner in row-major order of the axes, as pooling wants it.
static void jvp_first_winner(struct jvp *c, int n, const int64_t *axes)
{
    ir_id x = gather_axes(B, c->x[0], n, axes), dx = gather_axes(B, c->dx[0], n, axes);
    if (x == IR_NONE || dx == IR_NONE)
        return;
    enum ir_op op = ir_op_get(c->n.op)->pair == IR_max ? IR_argmax : IR_argmin;
    struct ir_type t = ir_type_in(B, x);
    ir_id winner = keep_axes(B, ir_arg(B, op, x, 0, JOT_I32), t, 1, (int64_t[]){0});
    ir_id wins = ir_eq(B, ir_iota(B, ir_type_with(t, JOT_I32), 0), winner);
    ir_id won = ir_select(B, wins, dx, ir_scalar_like(B, dx, 0));
    c->dy[0] = ir_reduce(B, IR_reduce_sum, won, 1, (int64_t[]){0});
}

// The tangents of all winners, divided equally; also of reduce_min.  Where the result is NaN all win,
// and their number is NaN.
void jvp_reduce_max(struct jvp *c)
{
    int n;
    const int64_t *axes = ir_attr_ints(c->n.attrs, IR_KEY_axes, &n);
    struct ir_type t = ir_type_in(B, c->x[0]);
    if (ir_count(B->module, t) == 0)
        return; // nobody wins
    if (ir_attr_int_or(c->n.attrs, IR_KEY_first, 0)) {
        jvp_first_winner(c, n, axes);
        return;
    }
    ir_id wins =
        rule_wins(B, c->n.op == IR_reduce_max, c->x[0], keep_axes(B, c->y[0], t, n, axes));
    ir_id count = ir_reduce(B, IR_reduce_sum, ir_convert(B, wins, ir_dtype(t)), n, axes);
    ir_id won = ir_select(B, wins, c->dx[0], ir_scalar_like(B, c->x[0], 0));
    c->dy[0] = rule_quotient(B, ir_reduce(B, IR_reduce_sum, won, n, axes),
                             rule_or_nan(B, c->y[0], count));
}

// Each element of the sum sees the whole cotangent.
void transpose_reduce_sum(struct transpose *c)
{
    int n;
    const int64_t *axes = ir_attr_ints(c->n->attrs, IR_KEY_axes, &n);
    struct ir_type t = transpose_type(c, 0);
    int64_t kept[IR_MAX_RANK];
    int n_kept = 0;
    for (int i = 0, next = 0; i < t.rank; i++) {
        if (next < n && axes[next] == i)
            next++;
        else
            kept[n_kept++] = i;
    }
    transpose_give(c, 0, ir_broadcast_in_dim(B, c->ct[0], t.rank, ir_dims(B->module, t), kept));
}

// From the other end.
void transpose_cumsum(struct transpose *c)
{
    bool reverse = ir_attr_int_or(c->n->attrs, IR_KEY_reverse, 0) != 0;
    int axis = (int)ir_attr_int(c->n->attrs, IR_KEY_axis);
    transpose_give(c, 0, ir_cumulative(B, IR_cumsum, c->ct[0], axis, !reverse));
}
