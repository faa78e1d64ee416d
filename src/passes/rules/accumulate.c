// SPDX-License-Identifier: Apache-2.0
// Sums of cotangents of which one is zero but for some indices.
//
//     z = scatter_add(zeros, i, u)            y = scatter_add(x, i, u)
//     y = add(x, z)                 becomes
//
// which in a loop over x is done where x is, and takes as long as u is large.  The same of a slice
// at a known index, whose cotangent is pad(u, 0), but only over a sum that has memory of its own: a
// parameter or what a loop or a branch gives, and of which u is not made: it would be read whole
// before.  Sums of pads are one kernel otherwise.
#include "passes/rules/rules.h"

#include "ir/indexing.h"

enum {
    MOST_UPDATES = 8, // that are done again over another operand
    LEAST_LENGTH =
        1024,        // of fewer numbers a sum is as good, and a lane can have them to itself
    LEAST_SHARE = 4, // a slice that is more of its operand is added whole
    // The same at known indices, which are added in one kernel with whatever else is.
    LEAST_PADDED_SHARE = 16,
    MOST_OPS = 32, // that are looked at for what a part is made of
};

static bool is_share(const struct ir_builder *b, ir_id part, ir_id whole, int share)
{
    int64_t count = ir_count(b->module, ir_type_in(b, whole));
    return ir_count(b->module, ir_type_in(b, part)) <= count / share;
}

// Whether the update is all that its operand, zeros or what was added to zeros, gets.
static bool adds(const struct ir_builder *b, const struct ir_node *n)
{
    if (n->op != IR_dynamic_update_slice)
        return n->op == IR_scatter_add;
    return ir_is_zero(b->graph, ir_operand(b->graph, n, 0)) &&
           is_share(b, ir_operand(b->graph, n, 1), n->out, LEAST_SHARE);
}

// Whether it is zeros around a part of a few numbers.
static bool is_padded(const struct ir_builder *b, const struct ir_node *n)
{
    if (n->op != IR_pad || !ir_is_zero(b->graph, ir_operand(b->graph, n, 1)))
        return false;
    int rank;
    const int64_t *low = ir_attr_ints(n->attrs, IR_KEY_low, &rank);
    const int64_t *high = ir_attr_ints(n->attrs, IR_KEY_high, &rank);
    const int64_t *interior = ir_attr_ints(n->attrs, IR_KEY_interior, &rank);
    for (int i = 0; i < rank; i++)
        if (low[i] < 0 || high[i] < 0 || interior[i] != 0)
            return false;
    return is_share(b, ir_operand(b->graph, n, 0), n->out, LEAST_PADDED_SHARE);
}

// Whether v is made of most of x, by a few ops of which so many are left to look at.
static bool is_made_of(const struct ir_builder *b, ir_id v, ir_id x, int *left)
{
    const struct ir_node *n = ir_node_in(b, v);
    bool reads = ir_op_class((enum ir_op)n->op) != IR_CLASS_UPDATE, is = false;
    for (uint32_t i = 0; !is && i < n->n_in && (*left)-- > 0; i++) {
        ir_id in = ir_operand(b->graph, n, i);
        is = in == x ? reads && !is_share(b, v, x, LEAST_PADDED_SHARE)
                     : is_made_of(b, in, x, left);
    }
    return is;
}

// Whether x, or what it updates, is where a loop keeps it, and the update is of something else.
static bool has_memory_for(const struct ir_builder *b, ir_id x, ir_id update)
{
    const struct ir_node *n = ir_node_in(b, x);
    while (ir_op_class((enum ir_op)n->op) == IR_CLASS_UPDATE) {
        x = ir_operand(b->graph, n, 0);
        n = ir_node_in(b, x);
    }
    return (n->op == IR_param || ir_has_bodies((enum ir_op)n->op)) &&
           !is_made_of(b, update, x, &(int){MOST_OPS});
}

static ir_id add_part(struct ir_builder *b, ir_id x, ir_id part, const ir_id *starts)
{
    const int64_t *sizes = ir_dims(b->module, ir_type_in(b, part));
    part = ir_add(b, ir_dynamic_slice(b, x, starts, sizes), part);
    return ir_dynamic_update_slice(b, x, part, starts);
}

static ir_id add_padded(struct ir_builder *b, ir_id x, const struct ir_node *pad)
{
    int rank;
    const int64_t *low = ir_attr_ints(pad->attrs, IR_KEY_low, &rank);
    ir_id part = ir_operand(b->graph, pad, 0), starts[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        starts[i] = ir_scalar_int(b, JOT_I64, low[i]);
    return add_part(b, x, part, starts);
}

static ir_id add_to(struct ir_builder *b, ir_id x, ir_id update)
{
    struct ir_node n = *ir_node_in(b, update);
    if (n.op == IR_pad)
        return add_padded(b, x, &n);
    ir_id in[IR_MAX_RANK + 2];
    memcpy(in, &b->graph->operands.at[n.in], n.n_in * sizeof *in);
    if (n.op == IR_dynamic_update_slice)
        return add_part(b, x, in[1], in + 2);
    in[0] = x;
    return ir_build(b, (enum ir_op)n.op, (int)n.n_in, in, n.attrs);
}

// The updates of y, the last one first, if it is zeros with a few; else none.  The first one may be
// what makes the zeros.
static int find_updates(const struct ir_builder *b, ir_id y, ir_id *updates)
{
    int n = 0;
    for (; adds(b, ir_node_in(b, y)); y = ir_operand(b->graph, ir_node_in(b, y), 0)) {
        if (n == MOST_UPDATES)
            return 0;
        updates[n++] = y;
    }
    if (n < MOST_UPDATES && is_padded(b, ir_node_in(b, y)))
        updates[n++] = y;
    else if (!ir_is_zero(b->graph, y))
        return 0;
    return n;
}

// x + y, if y is long, and zeros with a few updates; else IR_NONE.
static ir_id add_updates(struct ir_builder *b, ir_id x, ir_id y)
{
    ir_id updates[MOST_UPDATES];
    if (!rule_accumulates(b->module, ir_type_in(b, x)))
        return IR_NONE;
    int n = find_updates(b, y, updates);
    if (n == 0 ||
        (ir_node_in(b, updates[n - 1])->op == IR_pad && !has_memory_for(b, x, updates[n - 1])))
        return IR_NONE;
    while (n-- > 0)
        x = add_to(b, x, updates[n]);
    return x;
}

bool rule_accumulates(const struct ir_module *m, struct ir_type type)
{
    return ir_count(m, type) >= LEAST_LENGTH;
}

bool rule_is_whole(const struct ir_builder *b, ir_id sum)
{
    return rule_accumulates(b->module, ir_type_in(b, sum)) &&
           find_updates(b, sum, (ir_id[MOST_UPDATES]){0}) == 0;
}

ir_id rule_accumulate(struct ir_builder *b, ir_id x, ir_id y)
{
    if (x == IR_NONE || y == IR_NONE || b->status != JOT_OK)
        return rule_sum(b, x, y);
    ir_id sum = add_updates(b, x, y);
    if (sum == IR_NONE)
        sum = add_updates(b, y, x);
    return sum != IR_NONE ? sum : ir_add(b, x, y);
}
