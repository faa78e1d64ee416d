// SPDX-License-Identifier: Apache-2.0
// Identities and constant folding.
//
// A rule is a small function from a node that is about to be made to an equal value, or IR_NONE.
// Each must hold for every value of its dtype: -0, NaN and infinities included.
#include "ir/rewrite.h"

#include "ir/eval.h"
#include "ir/indexing.h"
#include "ir/number.h"

#include <math.h>
#include <string.h>

#define FOLD_BYTES 4096
#define LEAST_SHARE 4 // of its operand that a sum with a window has

static const struct ir_node *maker(const struct ir_rewrite *r, int i)
{
    return ir_node_of(r->b->graph, r->in[i]);
}

static bool same_type(const struct ir_rewrite *r, int i)
{
    return ir_type_equal(ir_type_in(r->b, r->in[i]), r->type);
}

// The number that fills operand i, when it is a constant of one element, perhaps broadcast.
static bool is_splat(const struct ir_rewrite *r, int i, double *out_x)
{
    const struct ir_graph *g = r->b->graph;
    const struct ir_node *n = ir_filling(g, r->in[i]);
    return n && ir_number_at(ir_dtype_of(g, n->out), ir_const_data(n), 0, out_x);
}

static bool is_number(const struct ir_rewrite *r, int i, double number)
{
    double x;
    return is_splat(r, i, &x) && x == number && signbit(x) == signbit(number);
}

// x * 1 = x, x / 1 = x.
static ir_id drop_one(struct ir_rewrite *r)
{
    if (is_number(r, 1, 1) && same_type(r, 0))
        return r->in[0];
    if (r->op != IR_div && is_number(r, 0, 1) && same_type(r, 1))
        return r->in[1];
    return IR_NONE;
}

// x + (-0) = x and x - 0 = x for floats; x + 0 = x for integers.
static ir_id drop_zero(struct ir_rewrite *r)
{
    double zero = dtype_is_integer(ir_dtype(r->type)) || r->op == IR_sub ? 0.0 : -0.0;
    if (is_number(r, 1, zero) && same_type(r, 0))
        return r->in[0];
    if (r->op == IR_add && is_number(r, 0, zero) && same_type(r, 1))
        return r->in[1];
    return IR_NONE;
}

// -(-x) = x, and the same for not and conj.
static ir_id undo_twice(struct ir_rewrite *r)
{
    const struct ir_node *n = maker(r, 0);
    return n->op == r->op ? ir_operand(r->b->graph, n, 0) : IR_NONE;
}

// Whether v is op(x, y).
static bool is_made_by(const struct ir_rewrite *r, ir_id v, enum ir_op op, ir_id x, ir_id y)
{
    const struct ir_graph *g = r->b->graph;
    const struct ir_node *n = ir_node_of(g, v);
    return n->op == op && ir_operand(g, n, 0) == x && ir_operand(g, n, 1) == y;
}

// select(a > b, x, select(a <= b, y, x)) = select(a <= b, y, x), also where a or b is NaN.
static bool is_chosen_again(const struct ir_rewrite *r)
{
    const struct ir_graph *g = r->b->graph;
    const struct ir_node *test = maker(r, 0), *rest = maker(r, 2);
    return test->op == IR_gt && rest->op == IR_select && same_type(r, 2) &&
           ir_operand(g, rest, 2) == r->in[1] &&
           is_made_by(r, ir_operand(g, rest, 0), IR_le, ir_operand(g, test, 0),
                      ir_operand(g, test, 1));
}

// select(true, x, y) = x, select(p, x, x) = x.
static ir_id choose(struct ir_rewrite *r)
{
    if (is_chosen_again(r))
        return r->in[2];
    double p;
    if (is_splat(r, 0, &p)) {
        int i = p != 0 ? 1 : 2;
        if (same_type(r, i))
            return r->in[i];
    }
    return r->in[1] == r->in[2] && same_type(r, 1) ? r->in[1] : IR_NONE;
}

// A reshape or convert that changes nothing.
static ir_id drop_identity(struct ir_rewrite *r)
{
    return same_type(r, 0) ? r->in[0] : IR_NONE;
}

// Whether the node is a reshape, or a broadcast that is one: it only adds axes of one element.
static bool is_reshape(const struct ir_graph *g, const struct ir_node *n)
{
    return n->op == IR_reshape ||
           (n->op == IR_broadcast_in_dim &&
            ir_count_of(g, n->out) == ir_count_of(g, ir_operand(g, n, 0)));
}

// reshape(reshape(x)) = reshape(x)
static ir_id merge_reshape(struct ir_rewrite *r)
{
    if (same_type(r, 0))
        return r->in[0];
    const struct ir_node *n = maker(r, 0);
    if (!is_reshape(r->b->graph, n))
        return IR_NONE;
    return ir_reshape(r->b, ir_operand(r->b->graph, n, 0), r->type.rank,
                      ir_dims(r->b->module, r->type));
}

// transpose(x, identity) = x, transpose(transpose(x, p), q) = transpose(x, p[q])
static ir_id merge_transpose(struct ir_rewrite *r)
{
    int rank;
    const int64_t *axes = ir_attr_ints(r->attrs, IR_KEY_axes, &rank);
    bool identity = true;
    for (int i = 0; i < rank; i++)
        identity = identity && axes[i] == i;
    if (identity)
        return r->in[0];
    const struct ir_node *n = maker(r, 0);
    if (n->op != IR_transpose)
        return IR_NONE;
    int inner_rank;
    const int64_t *inner = ir_attr_ints(n->attrs, IR_KEY_axes, &inner_rank);
    int64_t both[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        both[i] = inner[axes[i]];
    return ir_transpose(r->b, ir_operand(r->b->graph, n, 0), both);
}

// broadcast(broadcast(x, p), q) = broadcast(x, q[p])
static ir_id merge_broadcast(struct ir_rewrite *r)
{
    if (same_type(r, 0))
        return r->in[0];
    const struct ir_node *n = maker(r, 0);
    if (n->op != IR_broadcast_in_dim)
        return IR_NONE;
    int inner_rank, rank;
    const int64_t *inner = ir_attr_ints(n->attrs, IR_KEY_axes, &inner_rank);
    const int64_t *axes = ir_attr_ints(r->attrs, IR_KEY_axes, &rank);
    int64_t both[IR_MAX_RANK];
    for (int i = 0; i < inner_rank; i++)
        both[i] = axes[inner[i]];
    return ir_broadcast_in_dim(r->b, ir_operand(r->b->graph, n, 0), r->type.rank,
                               ir_dims(r->b->module, r->type), both);
}

// A slice of everything.
static ir_id drop_slice(struct ir_rewrite *r)
{
    int rank;
    const int64_t *strides = ir_attr_ints(r->attrs, IR_KEY_strides, &rank);
    bool unit = true;
    for (int i = 0; i < rank; i++)
        unit = unit && strides[i] == 1;
    return unit && same_type(r, 0) ? r->in[0] : IR_NONE;
}

// concatenate(x, nothing, y) = concatenate(x, y)
static ir_id drop_empty(struct ir_rewrite *r)
{
    int n = 0, axis = (int)ir_attr_int(r->attrs, IR_KEY_axis);
    ir_id *in = arena_array(r->b->module->arena, ir_id, r->n_in);
    for (int i = 0; i < r->n_in; i++)
        if (ir_dims(r->b->module, ir_type_in(r->b, r->in[i]))[axis])
            in[n++] = r->in[i];
    return n && n < r->n_in ? ir_concatenate(r->b, n, in, axis) : IR_NONE;
}

// concatenate(x) = x; of one number everywhere it is that number
static ir_id settle_concatenate(struct ir_rewrite *r)
{
    double x = 0, y;
    if (r->n_in == 1)
        return r->in[0];
    ir_id some = drop_empty(r);
    if (some != IR_NONE)
        return some;
    for (int i = 0; i < r->n_in; i++) {
        if (!is_splat(r, i, &y) || (i && (y != x || signbit(y) != signbit(x))))
            return IR_NONE;
        x = y;
    }
    jot_dtype d = ir_dtype(r->type);
    return d == JOT_I64 ? IR_NONE : ir_full(r->b, r->type, x);
}

static bool is_whole(const struct ir_rewrite *r, const int64_t *part)
{
    struct ir_type x = ir_type_in(r->b, r->in[0]);
    for (int i = 0; i < x.rank; i++)
        if (part[i] != ir_dims(r->b->module, x)[i])
            return false;
    return true;
}

// The starts of a window, operands from `first` on, as numbers inside of operand 0.
static bool are_known_starts(const struct ir_rewrite *r, int first, const int64_t *part,
                             int64_t *out)
{
    for (int i = first; i < r->n_in; i++) {
        int64_t last =
            ir_dims(r->b->module, ir_type_in(r->b, r->in[0]))[i - first] - part[i - first];
        double x = 0;
        if (last && !is_splat(r, i, &x))
            return false;
        out[i - first] = x<0 ? 0 : x>(double) last ? last : (int64_t)x;
    }
    return true;
}

// dynamic_slice(x, numbers) = slice(x), which is x when it is all of it.
static ir_id settle_slice(struct ir_rewrite *r)
{
    const int64_t *part = ir_dims(r->b->module, r->type);
    int64_t starts[IR_MAX_RANK], limits[IR_MAX_RANK];
    if (!are_known_starts(r, 1, part, starts))
        return IR_NONE;
    for (int i = 0; i < r->type.rank; i++)
        limits[i] = starts[i] + part[i];
    return ir_slice(r->b, r->in[0], starts, limits, NULL);
}

// Element i of an operand of whole numbers that is a constant.
static bool whole_number(const struct ir_rewrite *r, int operand, int64_t i, int64_t *out)
{
    const struct ir_node *n = maker(r, operand);
    jot_dtype d = ir_dtype(ir_type_in(r->b, r->in[operand]));
    double x;
    if (d != JOT_I32 && d != JOT_I64)
        return false;
    if (is_splat(r, operand, &x)) {
        *out = (int64_t)x;
        return true;
    }
    if (n->op != IR_const)
        return false;
    *out = ir_integer_at(d, ir_const_data(n), i);
    return true;
}

// Where the only window of a gather or scatter, of those sizes, starts, if that is numbers inside of operand 0.
static bool is_known_window(const struct ir_rewrite *r, const struct ir_gather *g,
                            const int64_t *sizes, int64_t *starts)
{
    const int64_t *dims = ir_dims(r->b->module, ir_type_in(r->b, r->in[0]));
    if (ir_type_in(r->b, r->in[1]).rank != 1 || g->n_batch)
        return false;
    for (int i = 0; i < g->n_map; i++) {
        int64_t axis = g->index_map[i], last = dims[axis] - sizes[axis], at;
        if (!whole_number(r, 1, i, &at) || at < 0 || at > last)
            return false;
        starts[axis] = at;
    }
    return true;
}

// gather of one window at numbers = slice
static ir_id settle_gather(struct ir_rewrite *r)
{
    struct ir_module *m = r->b->module;
    struct ir_type x = ir_type_in(r->b, r->in[0]);
    struct ir_gather g = ir_gather_of(r->attrs);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    if (!is_known_window(r, &g, g.sizes, starts))
        return IR_NONE;
    for (int i = 0; i < x.rank; i++)
        limits[i] = starts[i] + g.sizes[i];
    return ir_reshape(r->b, ir_slice(r->b, r->in[0], starts, limits, NULL), r->type.rank,
                      ir_dims(m, r->type));
}

// An update of everything.
static ir_id settle_update(struct ir_rewrite *r)
{
    return is_whole(r, ir_dims(r->b->module, ir_type_in(r->b, r->in[1]))) ? r->in[1] : IR_NONE;
}

// An operand without updates; the sum with one window at numbers that is much of the operand, which is what no
// update has -0 added to: x + -0 is x, whatever x is.
static ir_id settle_scatter(struct ir_rewrite *r)
{
    struct ir_module *m = r->b->module;
    struct ir_type x = ir_type_in(r->b, r->in[0]), u = ir_type_in(r->b, r->in[2]);
    int64_t count = ir_count(m, u), starts[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    int64_t interior[IR_MAX_RANK] = {0};
    if (count == 0)
        return r->in[0];
    struct ir_gather g = ir_gather_of(r->attrs);
    struct ir_window w = ir_window_of(m, r->attrs, x, ir_type_in(r->b, r->in[1]), u);
    if (r->op != IR_scatter_add || dtype_is_complex(ir_dtype(x)) ||
        count < ir_count(m, x) / LEAST_SHARE || !is_known_window(r, &g, w.size, starts))
        return IR_NONE;
    for (int i = 0; i < x.rank; i++)
        high[i] = ir_dims(m, x)[i] - starts[i] - w.size[i];
    ir_id whole = ir_reshape(r->b, r->in[2], x.rank, w.size);
    ir_id none = ir_scalar_like(r->b, r->in[0], -0.0);
    return ir_add(r->b, r->in[0], ir_pad(r->b, whole, none, starts, high, interior));
}

typedef ir_id rule(struct ir_rewrite *r);

static rule *const identities[IR_OP_COUNT] = {
    [IR_mul] = drop_one,
    [IR_div] = drop_one,
    [IR_mul_z] = drop_one,
    [IR_add] = drop_zero,
    [IR_sub] = drop_zero,
    [IR_neg] = undo_twice,
    [IR_not] = undo_twice,
    [IR_conj] = undo_twice,
    [IR_select] = choose,
    [IR_convert] = ir_rewrite_convert,
    [IR_shr_logical] = ir_rewrite_shift,
    [IR_shr_arith] = ir_rewrite_shift,
    [IR_reshape] = merge_reshape,
    [IR_transpose] = merge_transpose,
    [IR_broadcast_in_dim] = merge_broadcast,
    [IR_slice] = drop_slice,
    [IR_concatenate] = settle_concatenate,
    [IR_dynamic_slice] = settle_slice,
    [IR_gather] = settle_gather,
    [IR_dynamic_update_slice] = settle_update,
};

// What transforms make themselves: products with 1 and sums with -0.
static rule *const zeros_and_ones[IR_OP_COUNT] = {
    [IR_mul] = drop_one,          [IR_mul_z] = drop_one, [IR_div] = drop_one,
    [IR_add] = drop_zero,         [IR_sub] = drop_zero,  [IR_convert] = drop_identity,
    [IR_reshape] = drop_identity,
};

static bool is_foldable(const struct ir_rewrite *r)
{
    enum ir_class c = ir_op_class(r->op);
    if (r->n_in == 0 || ir_has_bodies(r->op) || c == IR_CLASS_HINT || c == IR_CLASS_LIBRARY ||
        c == IR_CLASS_COLLECTIVE)
        return false;
    struct ir_module *m = r->b->module;
    if (r->op == IR_broadcast_in_dim &&
        ir_count(m, r->type) != ir_count(m, ir_type_in(r->b, r->in[0])))
        return false;
    if ((uint64_t)ir_count(m, r->type) > FOLD_BYTES / jot_dtype_size(ir_dtype(r->type)))
        return false;
    for (int i = 0; i < r->n_in; i++)
        if (maker(r, i)->op != IR_const)
            return false;
    return true;
}

static jot_status evaluate(struct ir_rewrite *r, const void *const *data, struct ir_tensor *out)
{
    struct ir_builder *b = r->b;
    struct ir_tensor *in = arena_array(b->module->arena, struct ir_tensor, r->n_in);
    for (int i = 0; i < r->n_in; i++)
        in[i] = (struct ir_tensor){.type = ir_type_in(b, r->in[i]),
                                   .data = (void *)(uintptr_t)data[i]};
    return ir_eval_op(b->module->arena, b->module, r->op, r->attrs, r->n_in, in, 1, &r->type,
                      out);
}

static ir_id fold(struct ir_rewrite *r)
{
    const void **data = arena_array(r->b->module->arena, const void *, r->n_in);
    struct ir_tensor out = {0};
    for (int i = 0; i < r->n_in; i++)
        data[i] = ir_const_data(maker(r, i));
    return evaluate(r, data, &out) == JOT_OK ? ir_const(r->b, r->type, out.data) : IR_NONE;
}

// The elements of operand i, when they are known and few; or NULL.
static const void *known_data(const struct ir_rewrite *r, int i)
{
    const struct ir_builder *b = r->b;
    const struct ir_node *n = maker(r, i);
    ir_id v = r->in[i];
    if (n->op == IR_const)
        return ir_const_data(n);
    if (n->op != IR_broadcast_in_dim)
        return v < b->known.count ? b->known.at[v] : NULL;
    n = ir_node_of(b->graph, ir_operand(b->graph, n, 0));
    int64_t count = ir_count(b->module, ir_type_in(b, v)),
            bytes = jot_dtype_size(ir_dtype_of(b->graph, v));
    if (n->op != IR_const || ir_rank_of(b->graph, n->out) != 0 || count > FOLD_BYTES / bytes)
        return NULL;
    const void *element = ir_const_data(n);
    char *data = arena_allocate_many(b->module->arena, (size_t)bytes, (size_t)count);
    for (int64_t k = 0; k < count; k++)
        memcpy(data + k * bytes, element, (size_t)bytes);
    return data;
}

// A mask that is made of constants.  What only changes the index of what is the same everywhere is
// better than an array: that node stays and its elements are noted, for what is made of it.
static ir_id fold_mask(struct ir_rewrite *r)
{
    struct ir_builder *b = r->b;
    enum ir_class c = ir_op_class(r->op);
    int64_t count = ir_count(b->module, r->type);
    struct ir_tensor out = {0};
    if (ir_dtype(r->type) != JOT_BOOL || count == 0 || count > FOLD_BYTES || r->n_in == 0 ||
        ir_has_bodies(r->op) || c == IR_CLASS_HINT || c == IR_CLASS_LIBRARY ||
        c == IR_CLASS_COLLECTIVE ||
        (r->op == IR_broadcast_in_dim && ir_type_in(b, r->in[0]).rank == 0))
        return IR_NONE;
    bool is_array = c == IR_CLASS_UPDATE;
    const void **data = arena_array(b->module->arena, const void *, r->n_in);
    for (int i = 0; i < r->n_in; i++) {
        if (!(data[i] = known_data(r, i)))
            return IR_NONE;
        is_array = is_array || (maker(r, i)->op == IR_const && ir_type_in(b, r->in[i]).rank);
    }
    if (evaluate(r, data, &out) != JOT_OK)
        return IR_NONE;
    const uint8_t *elements = out.data;
    if (!memchr(elements, !elements[0], (size_t)count))
        return ir_full(b, r->type, elements[0]);
    if (is_array)
        return ir_const(b, r->type, elements);
    r->known = elements;
    return IR_NONE;
}

static rule *identity_of(enum ir_op op)
{
    if (identities[op])
        return identities[op];
    return ir_op_class(op) == IR_CLASS_UPDATE ? settle_scatter : NULL;
}

ir_id ir_rewrite(struct ir_rewrite *r)
{
    unsigned flags = r->b->flags;
    rule *simplify = flags & IR_BUILD_IDENTITIES ? identity_of(r->op)
                     : flags & IR_BUILD_ZEROS    ? zeros_and_ones[r->op]
                                                 : NULL;
    ir_id simpler = simplify ? simplify(r) : IR_NONE;
    if (simpler != IR_NONE)
        return simpler;
    return !(flags & IR_BUILD_FOLD) ? IR_NONE : is_foldable(r) ? fold(r) : fold_mask(r);
}
