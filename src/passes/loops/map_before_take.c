// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of what a loop takes from an array that it does not change, at indices that it does, are
// computed of the array instead, where all trips together take more elements than it has.
//
//     i = scan {x = gather t (f i); i = g (exp (-x)) i}(t, i)
// becomes
//     i = scan {u = exp (-t); x = gather u (f i); i = g x i}(t, i)
//
// of which pass_hoist takes u in front of the loop.  Binary search and interpolation are such loops.
#include "ir/control.h"
#include "ir/cost.h"
#include "ir/indexing.h"
#include "ir/number.h"
#include "passes/body.h"
#include "passes/passes.h"

// What is made of what one gather takes.
struct function {
    ir_id last; // the value that anything else reads
    bool is_one;
    int ops;
};

struct takes {
    const struct ir_graph *g;
    ir_id *
        of; // by value: what a gather takes, which this is an elementwise function of; or IR_NONE
    struct function *all; // by value that a gather takes
};

bool *pass_taken_more(const struct ir_graph *g, const struct ir_node *loop)
{
    struct ir_module *m = g->module;
    bool *is_taken = body_mask(m, loop->n_in);
    if (loop->op != IR_scan)
        return is_taken;
    struct ir_scan s = ir_scan_of(loop);
    const struct ir_graph *body = ir_function(m, s.body);
    const bool *is_invariant = pass_find_invariant(body, (uint32_t)s.n_consts);
    ir_for_each_node (body, n)
        if (pass_takes_more(body, n, is_invariant, s.length) &&
            ir_operand(body, n, 0) < body->n_params)
            is_taken[ir_operand(body, n, 0)] = true;
    return is_taken;
}

// What a gather takes that the op is an elementwise function, or a reshape, of; or IR_NONE.
static ir_id taken_of(const struct takes *t, const struct ir_node *n)
{
    ir_id of = IR_NONE;
    if (n->n_out != 1 ||
        (n->op != IR_reshape && ir_op_class((enum ir_op)n->op) != IR_CLASS_MAP))
        return IR_NONE;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id v = ir_operand(t->g, n, i);
        if (ir_filling(t->g, v))
            continue;
        if (t->of[v] == IR_NONE || (of != IR_NONE && t->of[v] != of))
            return IR_NONE;
        of = t->of[v];
    }
    // Operands of fewer axes are broadcast: what has other elements is no function of one.
    bool is_of_each = of != IR_NONE && ir_count_of(t->g, n->out) == ir_count_of(t->g, of);
    return is_of_each ? of : IR_NONE;
}

static void note_use(struct takes *t, ir_id v)
{
    if (t->of[v] == IR_NONE)
        return;
    struct function *f = &t->all[t->of[v]];
    f->is_one &= f->last == IR_NONE || f->last == v;
    f->last = v;
}

bool pass_takes_more(const struct ir_graph *g, const struct ir_node *n,
                     const bool *is_invariant, int64_t trips)
{
    if (n->op != IR_gather || !is_invariant[ir_operand(g, n, 0)] ||
        is_invariant[ir_operand(g, n, 1)] || !ir_mode_moves(ir_gather_of(n->attrs).mode))
        return false;
    return (double)ir_count_of(g, n->out) * (double)trips >=
           COST_TAKEN * (double)ir_count_of(g, ir_operand(g, n, 0));
}

// Whether there are any.
static bool find_takes(struct takes *t, const bool *is_invariant, int64_t trips)
{
    const struct ir_graph *g = t->g;
    bool any = false;
    ir_for_each_node (g, n) {
        ir_id of = taken_of(t, n);
        for (uint32_t i = 0; i < n->n_in && of == IR_NONE; i++)
            note_use(t, ir_operand(g, n, i));
        if (pass_takes_more(g, n, is_invariant, trips))
            t->all[of = n->out] = (struct function){.last = IR_NONE, .is_one = true};
        else if (of != IR_NONE)
            t->all[of].ops += n->op != IR_reshape;
        for (uint32_t k = 0; k < n->n_out; k++)
            t->of[n->out + k] = of;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        note_use(t, g->outputs.at[i]);
    for (ir_id v = 0; v < g->values.count; v++) {
        const struct function *f = t->of[v] == IR_NONE ? NULL : &t->all[t->of[v]];
        bool is = f && f->is_one && f->last != IR_NONE && f->ops >= COST_TAKEN_OPS;
        t->of[v] = is ? t->of[v] : IR_NONE;
        any |= is;
    }
    return any;
}

// The op with the array in place of what is taken of it.
static ir_id op_of_array(struct ir_builder *b, const struct takes *t, const struct ir_node *n,
                         const ir_id *map)
{
    ir_id in[8];
    struct ir_type shape = ir_type_in(b, map[t->of[n->out]]);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const struct ir_node *number = ir_filling(t->g, ir_operand(t->g, n, i));
        in[i] = map[ir_operand(t->g, n, i)];
        if (number)
            in[i] = ir_broadcast_in_dim(b, ir_rebuild(b, t->g, number, NULL), shape.rank,
                                        ir_dims(b->module, shape), NULL);
    }
    return n->op == IR_reshape ? in[0] : ir_rebuild(b, t->g, n, in);
}

static ir_id take_rows(struct ir_builder *b, const struct ir_graph *g, ir_id taken, ir_id from,
                       ir_id last, const ir_id *map)
{
    const struct ir_node *n = ir_node_of(g, taken);
    struct ir_gather at = ir_gather_of(n->attrs);
    struct ir_type type = ir_type_of(g, last);
    b->where = n->where;
    ir_id y = ir_gather(b, from, map[ir_operand(g, n, 1)], &at);
    return ir_reshape(b, y, type.rank, ir_dims(b->module, type));
}

uint32_t pass_map_before_take(struct ir_module *m, uint32_t f, uint32_t n_consts, int64_t trips)
{
    const struct ir_graph *g = ir_function(m, f);
    struct takes t = {g, pass_no_values(m, g->values.count),
                      arena_array(m->arena, struct function, g->values.count + 1)};
    if (!find_takes(&t, pass_find_invariant(g, n_consts), trips))
        return f;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(m, g->values.count);
    pass_copy_params(&b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        ir_id of = n->n_out ? t.of[n->out] : IR_NONE;
        b.where = n->where;
        if (of == IR_NONE)
            pass_copy_node(&b, g, n, map);
        else if (of == n->out)
            map[of] = map[ir_operand(g, n, 0)];
        else
            map[n->out] = op_of_array(&b, &t, n, map);
        if (of != IR_NONE && n->out == t.all[of].last)
            map[n->out] = take_rows(&b, g, of, map[n->out], n->out, map);
    }
    pass_copy_outputs(&b, g, map);
    return ir_finish_function(&b);
}
