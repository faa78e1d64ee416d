// SPDX-License-Identifier: Apache-2.0
// Choices for each lane between an array, updated here and there, and the array as it was.
//
//     a = scatter_add(x, i, u);  b = scatter(x, k, v)              c = scatter_add(x, i, select p u -0)
//     y = select (broadcast p) a b                       becomes   y = scatter(c, k, select p c[k] v)
//
// where p has an element for each lane: the work is that of the updates, not of the array, which may
// stay where it is.  A branch that all lanes take alike is such an update, of updates in its
// cases.  What is kept is written again or has -0 added or is multiplied by 1, so no bit
// changes but those of a NaN.
#include "ir/control.h"
#include "ir/cost.h"
#include "ir/indexing.h"
#include "ir/scalar.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

#include <string.h>

enum {
    MOST_UPDATES = 8,
    LEAST_LENGTH = COST_EXPANDED_STATE + 1, // numbers of a lane; of fewer all are in registers
    LEAST_SHARE = 4, // updates of more of the array are as much work as a choice
};

struct masker {
    struct ir_builder *b;
    const struct ir_graph *g;
    const ir_id *map;
    ir_id mask; // of lanes
    int n_axes;
    int64_t axes[IR_MAX_RANK]; // of the array, by axis of the mask
};

// An update, or a cond of which one result is an operand that its cases update.
struct link {
    const struct ir_node *n;
    uint32_t result, operand;
};

struct chain {
    struct link at[MOST_UPDATES]; // the last one first
    int count;
    ir_id base;
};

static bool find_updated(const struct ir_graph *g, struct link *l);

// The updates that v is the last of, none of which anything else reads.
static struct chain chain_of(const struct ir_graph *g, const uint32_t *uses, ir_id v)
{
    struct chain c = {.base = v};
    while (uses[c.base] == 1 && c.count < MOST_UPDATES) {
        struct link l = {.n = ir_node_of(g, c.base)};
        l.result = c.base - l.n->out;
        if (!find_updated(g, &l))
            break;
        c.at[c.count++] = l;
        c.base = ir_operand(g, l.n, l.operand);
    }
    return c;
}

static struct chain chain_of_case(const struct ir_graph *body, uint32_t result)
{
    return chain_of(body, pass_count_uses(body->module, body), body->outputs.at[result]);
}

// The operand that is updated; false when there is none.
static bool find_updated(const struct ir_graph *g, struct link *l)
{
    const int64_t *bodies;
    if (ir_op_class((enum ir_op)l->n->op) == IR_CLASS_UPDATE)
        return true;
    if (l->n->op != IR_cond || ir_has_effect(g, l->n))
        return false;
    for (int i = ir_bodies_of(l->n, &bodies); i-- > 0;) {
        const struct ir_graph *body = ir_body(g, l->n, i);
        ir_id base = chain_of_case(body, l->result).base;
        if (base >= body->n_params || (l->operand && l->operand != base + 1))
            return false;
        l->operand = base + 1;
    }
    return true;
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

// Whether there is an update that leaves any element as it is.
static bool has_neutral(enum ir_op op, jot_dtype d)
{
    if (!ir_is_fold(op))
        return true; // the element
    return !dtype_is_complex(d) &&
           (ir_op_get(op)->pair == IR_add || scalar_identity_is_neutral(op, d));
}

// Whether the update is a small one, and each part of it of one lane.
static bool may_mask_update(const struct masker *k, const struct ir_node *n)
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
    return has_neutral((enum ir_op)n->op, ir_dtype(x)) &&
           ir_count(m, ir_type_of(k->g, ir_operand(k->g, n, number_of_update(n)))) <=
               ir_count(m, x) / LEAST_SHARE;
}

static bool may_mask(const struct masker *k, const struct chain *c)
{
    bool may = true;
    for (int i = 0; i < c->count && may; i++) {
        const struct link *l = &c->at[i];
        const int64_t *bodies;
        if (l->n->op != IR_cond)
            may = may_mask_update(k, l->n);
        for (int j = l->n->op == IR_cond ? ir_bodies_of(l->n, &bodies) : 0; j-- > 0 && may;) {
            struct masker in = *k;
            in.g = ir_body(k->g, l->n, j);
            struct chain of_case = chain_of_case(in.g, l->result);
            may = may_mask(&in, &of_case);
        }
    }
    return may;
}

// The identity of the op, of sums -0, as all elements of type t.
static ir_id full_of_identity(struct ir_builder *b, enum ir_op op, struct ir_type t)
{
    jot_dtype d = ir_dtype(t);
    bool is_float = dtype_is_float(d);
    uint64_t bits = scalar_identity(op, is_float ? JOT_F64 : d);
    double x;
    memcpy(&x, &bits, sizeof x);
    if (is_float)
        return ir_full(b, t, ir_op_get(op)->pair == IR_add ? -0.0 : x);
    ir_id one = ir_scalar_int(b, d, (int64_t)bits);
    return ir_broadcast_in_dim(b, one, t.rank, ir_dims(b->module, t), NULL);
}

// What leaves x as it is, written by the update n.
static ir_id neutral(const struct masker *k, const struct ir_node *n, ir_id x, const ir_id *in)
{
    struct ir_type u = ir_type_in(k->b, in[number_of_update(n)]);
    if (is_slice(n))
        return ir_dynamic_slice(k->b, x, in + 2, ir_dims(k->b->module, u));
    if (ir_is_fold((enum ir_op)n->op))
        return full_of_identity(k->b, (enum ir_op)n->op, u);
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

static ir_id update_all(const struct masker *k, const struct chain *c, ir_id x, bool wanted);

// One case of a cond: of its operands, the mask, and what is to be updated where that is not the
// operand itself.
static uint32_t masked_case(const struct masker *k, const struct link *l, int i,
                            struct ir_type mask, bool is_other, bool wanted)
{
    struct ir_module *m = k->b->module;
    const struct ir_graph *g = ir_body(k->g, l->n, i);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ALL);
    struct masker in = *k;
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    in.b = &b;
    in.g = g;
    in.map = map;
    in.mask = ir_param(&b, mask);
    ir_id x = is_other ? ir_param(&b, ir_type_of(g, l->operand - 1)) : map[l->operand - 1];
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        pass_copy_node(&b, g, &g->nodes.at[at], map);
    struct chain c = chain_of_case(g, l->result);
    ir_output(&b, update_all(&in, &c, x, wanted));
    return ir_finish_function(&b);
}

// The one result of the cond that is wanted, made of x where the mask is `wanted`.
static ir_id update_in_cases(const struct masker *k, const struct link *l, ir_id x, bool wanted)
{
    struct ir_module *m = k->b->module;
    const int64_t *bodies;
    int count = ir_bodies_of(l->n, &bodies);
    uint32_t *made = arena_array(m->arena, uint32_t, count + 1), n = l->n->n_in;
    ir_id *in = pass_no_values(m, n + 2);
    for (uint32_t i = 0; i < n; i++)
        in[i] = k->map[ir_operand(k->g, l->n, i)];
    in[n] = k->mask;
    in[n + 1] = x;
    bool is_other = x != in[l->operand];
    for (int i = 0; i < count; i++) {
        made[i] = masked_case(k, l, i, ir_type_in(k->b, k->mask), is_other, wanted);
        if (made[i] == IR_NONE)
            return IR_NONE;
    }
    k->b->where = l->n->where;
    return ir_cond(k->b, count, made, (int)n + 1 + is_other, in);
}

static ir_id update_all(const struct masker *k, const struct chain *c, ir_id x, bool wanted)
{
    for (int i = c->count; i-- > 0 && x != IR_NONE;)
        x = c->at[i].n->op == IR_cond ? update_in_cases(k, &c->at[i], x, wanted)
                                      : update_some(k, c->at[i].n, x, wanted);
    return x;
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
    if (!may_mask(&k, &yes) || !may_mask(&k, &no))
        return IR_NONE;
    return update_all(&k, &no, update_all(&k, &yes, map[yes.base], true), false);
}
