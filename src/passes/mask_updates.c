// SPDX-License-Identifier: Apache-2.0
// Choices for each lane between an array, updated here and there, and the array as it was.
//
//     a = scatter_add(x, i, u);  b = scatter(x, k, v)              c = scatter_add(x, i, select p u -0)
//     y = select (broadcast p) a b                       becomes   y = scatter(c, k, select p c[k] v)
//
// where p has an element for each lane: the work is that of the updates, not of the array, which may
// stay where it is.  What is kept is written again or has -0 added or is multiplied by 1, so no bit
// changes but those of a NaN.
#include "ir/indexing.h"
#include "passes/rules/rules.h"
#include "passes/transform.h"

#include <math.h>

enum {
    MOST_UPDATES = 8,
    LEAST_LENGTH = 1024, // numbers of a lane; of fewer a choice is as good
    LEAST_SHARE = 4,     // updates of more of the array are as much work as a choice
};

struct masker {
    struct ir_builder *b;
    const struct ir_graph *g;
    const ir_id *map;
    ir_id mask; // of lanes
    int n_axes;
    int64_t axes[IR_MAX_RANK]; // of the array, by axis of the mask
};

struct chain {
    const struct ir_node *update[MOST_UPDATES]; // the last one first
    int count;
    ir_id base;
};

// The updates that v is the last of, none of which anything else reads.
static struct chain chain_of(const struct ir_graph *g, const uint32_t *uses, ir_id v)
{
    struct chain c = {.base = v};
    for (const struct ir_node *n = ir_node_of(g, v);
         ir_op_class((enum ir_op)n->op) == IR_CLASS_UPDATE && uses[c.base] == 1 &&
         c.count < MOST_UPDATES;
         n = ir_node_of(g, c.base)) {
        c.update[c.count++] = n;
        c.base = ir_operand(g, n, 0);
    }
    return c;
}

static bool is_slice(const struct ir_node *n) { return n->op == IR_dynamic_update_slice; }

static uint32_t number_of_update(const struct ir_node *n) { return is_slice(n) ? 1 : 2; }

// The axis of what is written that moves along axis a of the array, all of it; or -1.
static int axis_of_update(const struct masker *k, const struct ir_node *n, int a)
{
    const struct ir_module *m = k->b->module;
    struct ir_type x = ir_type_of(k->g, ir_operand(k->g, n, 0));
    struct ir_type u = ir_type_of(k->g, ir_operand(k->g, n, number_of_update(n)));
    if (is_slice(n))
        return ir_dims(m, u)[a] == ir_dims(m, x)[a] ? a : -1;
    struct ir_gather g = ir_gather_of(n->attrs);
    struct ir_window w =
        ir_window_of(m, n->attrs, x, ir_type_of(k->g, ir_operand(k->g, n, 1)), u);
    for (int i = 0; i < g.n_batch; i++)
        if (g.operand_batch[i] == a)
            return w.index_axis[g.index_batch[i]];
    return w.component[a] < 0 && w.size[a] == ir_dims(m, x)[a] ? w.along[a] : -1;
}

// Whether the update is a small one, and each part of it of one lane.
static bool may_mask(const struct masker *k, const struct ir_node *n)
{
    const struct ir_module *m = k->b->module;
    struct ir_type x = ir_type_of(k->g, n->out);
    int last = -1;
    for (int i = 0; i < k->n_axes; i++) {
        int axis = axis_of_update(k, n, (int)k->axes[i]);
        if (axis <= last)
            return false;
        last = axis;
    }
    bool is_product = n->op == IR_scatter_add || n->op == IR_scatter_mul;
    return !(is_product && dtype_is_complex(ir_dtype(x))) &&
           ir_count(m, ir_type_of(k->g, ir_operand(k->g, n, number_of_update(n)))) <=
               ir_count(m, x) / LEAST_SHARE;
}

// The largest or the least there is, of type t.
static ir_id extreme(struct ir_builder *b, struct ir_type t, bool largest)
{
    jot_dtype d = ir_dtype(t);
    int bits = (int)jot_dtype_size(d) * 8;
    uint64_t top = dtype_is_unsigned(d) ? UINT64_MAX >> (64 - bits) : UINT64_MAX >> (65 - bits);
    if (dtype_is_float(d))
        return ir_full(b, t, largest ? INFINITY : -INFINITY);
    ir_id x = ir_scalar_int(b, d, (int64_t)(largest ? top : dtype_is_unsigned(d) ? 0 : ~top));
    return ir_broadcast_in_dim(b, x, t.rank, ir_dims(b->module, t), NULL);
}

// What leaves x as it is, written by the update n.
static ir_id neutral(const struct masker *k, const struct ir_node *n, ir_id x, const ir_id *in)
{
    struct ir_type u = ir_type_in(k->b, in[number_of_update(n)]);
    if (is_slice(n))
        return ir_dynamic_slice(k->b, x, in + 2, ir_dims(k->b->module, u));
    if (n->op == IR_scatter_add)
        return ir_full(k->b, u, dtype_is_float(ir_dtype(u)) ? -0.0 : 0);
    if (n->op == IR_scatter_mul)
        return ir_full(k->b, u, 1);
    if (n->op != IR_scatter && !dtype_is_bool(ir_dtype(u)))
        return extreme(k->b, u, n->op == IR_scatter_min);
    return rule_gather_updated(k->b, x, in[1], u, n->attrs);
}

// The update, made of x where the mask is `wanted`.
static ir_id update_some(const struct masker *k, const struct ir_node *n, ir_id x, bool wanted)
{
    int64_t axes[IR_MAX_RANK];
    ir_id in[IR_MAX_RANK + 3];
    uint32_t u = number_of_update(n);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = k->map[ir_operand(k->g, n, i)];
    k->b->where = n->where;
    for (int i = 0; i < k->n_axes; i++)
        axes[i] = axis_of_update(k, n, (int)k->axes[i]);
    struct ir_type t = ir_type_in(k->b, in[u]);
    ir_id mask = ir_broadcast_in_dim(k->b, k->mask, t.rank, ir_dims(k->b->module, t), axes);
    ir_id none = neutral(k, n, x, in);
    in[u] = wanted ? ir_select(k->b, mask, in[u], none) : ir_select(k->b, mask, none, in[u]);
    in[0] = x;
    return ir_build(k->b, (enum ir_op)n->op, (int)n->n_in, in, n->attrs);
}

// The mask of lanes that p, which chooses between arrays of type t, repeats along all other axes.
static bool find_mask(struct masker *k, ir_id p, struct ir_type t)
{
    const struct ir_node *n = ir_node_of(k->b->graph, p);
    const int64_t *dims = ir_dims(k->b->module, t), *of_p;
    int64_t sizes[IR_MAX_RANK];
    if (n->op == IR_broadcast_in_dim && ir_type_in(k->b, p).rank == t.rank) {
        k->mask = ir_operand(k->b->graph, n, 0);
        const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &k->n_axes);
        of_p = ir_dims(k->b->module, ir_type_in(k->b, k->mask));
        for (int i = 0; i < k->n_axes; i++) {
            k->axes[i] = axes[i];
            if (of_p[i] != dims[axes[i]])
                return false;
        }
    } else {
        // Axes of extent 1 are repeated by the select itself, and so is a single one.
        of_p = ir_dims(k->b->module, ir_type_in(k->b, p));
        for (int i = 0; i < ir_type_in(k->b, p).rank; i++)
            if (of_p[i] != 1) {
                sizes[k->n_axes] = of_p[i];
                k->axes[k->n_axes++] = i;
            }
        k->mask = ir_reshape(k->b, p, k->n_axes, sizes);
    }
    int64_t lanes = ir_count(k->b->module, ir_type_in(k->b, k->mask));
    return ir_count(k->b->module, t) >= LEAST_LENGTH * lanes;
}

ir_id pass_mask_updates(struct ir_builder *b, const struct ir_graph *g, const uint32_t *uses,
                        const ir_id *map, const struct ir_node *n)
{
    struct masker k = {.b = b, .g = g, .map = map};
    struct chain yes = chain_of(g, uses, ir_operand(g, n, 1)),
                 no = chain_of(g, uses, ir_operand(g, n, 2));
    if (yes.base != no.base || yes.count + no.count == 0 ||
        !find_mask(&k, map[ir_operand(g, n, 0)], ir_type_of(g, n->out)))
        return IR_NONE;
    for (int i = 0; i < yes.count; i++)
        if (!may_mask(&k, yes.update[i]))
            return IR_NONE;
    for (int i = 0; i < no.count; i++)
        if (!may_mask(&k, no.update[i]))
            return IR_NONE;
    ir_id x = map[yes.base];
    for (int i = yes.count; i-- > 0;)
        x = update_some(&k, yes.update[i], x, true);
    for (int i = no.count; i-- > 0;)
        x = update_some(&k, no.update[i], x, false);
    return x;
}
