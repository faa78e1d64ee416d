// SPDX-License-Identifier: Apache-2.0
// Rules of what puts rows in order.  Tangents go where their elements go.
#include "ir/indexing.h"
#include "passes/rules/rules.h"

#define B c->b

// x[..., index[..., i]] for each i; nothing of empty rows.
static ir_id take_from_rows(struct ir_builder *b, ir_id x, ir_id index)
{
    if (x == IR_NONE || index == IR_NONE || !ir_count(b->module, ir_type_in(b, x)))
        return IR_NONE;
    struct ir_type t = ir_type_in(b, index);
    int64_t last = t.rank - 1, axes[IR_MAX_RANK], sizes[IR_MAX_RANK], dims[IR_MAX_RANK + 1];
    if (t.rank == IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "%d axes: at most %d", t.rank, IR_MAX_RANK - 1);
    for (int i = 0; i < t.rank; i++) {
        axes[i] = i;
        sizes[i] = 1;
        dims[i] = ir_dims(b->module, t)[i];
    }
    dims[t.rank] = 1;
    struct ir_gather g = {.n_collapsed = 1,
                          .collapsed_dims = &last,
                          .n_batch = (int)last,
                          .operand_batch = axes,
                          .index_batch = axes,
                          .n_map = 1,
                          .index_map = &last,
                          .sizes = sizes,
                          .mode = IR_MODE_PROMISE};
    return ir_gather(b, x, ir_reshape(b, index, t.rank + 1, dims), &g);
}

// Whether x numbers the elements of rows.
static bool is_numbers(const struct ir_builder *b, ir_id x)
{
    const struct ir_node *n = ir_node_of(b->graph, x);
    return n->op == IR_iota && ir_attr_int(n->attrs, IR_KEY_axis) == ir_type_in(b, x).rank - 1;
}

// One sort gives the results and, of one more operand that numbers the elements, where they came
// from; argsort has it already.  Where there is no room for it, the indices have a sort of their own.
void jvp_sort(struct jvp *c)
{
    int n = (int)c->n.n_in, n_keys = (int)ir_attr_int(c->n.attrs, IR_KEY_num_keys);
    struct ir_type t = ir_type_in(B, c->x[0]);
    int64_t length = ir_dims(B->module, t)[t.rank - 1];
    ir_id in[IR_SORT_MOST], y = c->y[0];
    int at = n_keys;
    while (at < n && !is_numbers(B, c->x[at]))
        at++;
    if (n_keys == IR_SORT_MOST) {
        rule_refuse(B, "the derivative of a sort by %d keys: at most %d", n_keys,
                    IR_SORT_MOST - 1);
        return;
    }
    if (at == n) {
        at = n < IR_SORT_MOST ? n : n_keys;
        memcpy(in, c->x, (size_t)at * sizeof *in);
        in[at] =
            ir_iota(B, ir_type_with(t, length > INT32_MAX ? JOT_I64 : JOT_I32), t.rank - 1);
        y = ir_sort(B, at + 1, in, n_keys);
        for (int i = 0; i < at && y != IR_NONE; i++)
            c->y[i] = y + (ir_id)i;
    }
    for (int i = 0; i < n && y != IR_NONE; i++)
        c->dy[i] = take_from_rows(B, c->dx[i], y + (ir_id)at);
}

void jvp_top_k(struct jvp *c) { c->dy[0] = take_from_rows(B, c->dx[0], c->y[1]); }

void batch_sort(struct batch *c)
{
    ir_id in[IR_SORT_MOST];
    for (uint32_t i = 0; i < c->n->n_in; i++)
        in[i] = batch_materialise(c, i);
    ir_id y = ir_sort(B, (int)c->n->n_in, in, (int)ir_attr_int(c->n->attrs, IR_KEY_num_keys));
    for (uint32_t i = 0; i < c->n->n_out; i++)
        c->y[i] = y == IR_NONE ? y : y + i;
}

void batch_top_k(struct batch *c)
{
    ir_id y = ir_build(B, IR_top_k, 1, c->x, c->n->attrs);
    c->y[0] = y;
    c->y[1] = y == IR_NONE ? y : y + 1;
}
