// SPDX-License-Identifier: Apache-2.0
// Loop-invariant code motion: what a loop computes anew in each trip of what does not change is computed
// once, in front of it.
//
//     c = scan {c = c + sum a}(a, c)      becomes      s = sum a; c = scan {c = c + s}(a, s, c)
//
// Only folds, products, routines and scans move, with what they need, single elements that are taken of large arrays,
// and what a library's product reads, or is taken from more often than it has elements.  Other elementwise ops stay: a
// kernel of the loop would load what it computes as fast.  So do short folds, which are written out, products and scans
// whose results are larger than what they are of, whiles, which may not end, and what devices do together.  After all
// differentiation.
//
// Before it parts of constants move: what folds, multiplies and changes of index make of more elements.  Cotangents
// of a part are summed over the trips, and put in their place behind the loop:
//
//     c = scan {c = c * w[1]}(w, c)       becomes      p = w[1]; c = scan {c = c * p}(p, c)
#include "ir/control.h"
#include "ir/cost.h"
#include "ir/indexing.h"
#include "passes/body.h"
#include "passes/passes.h"

struct hoisting {
    const struct ir_graph *g; // the body
    bool *moves;              // by value: is computed in front of the loop and wanted in it
    bool *stays;              // by node: is wanted in the loop and computed there
};

bool pass_is_dear(const struct ir_graph *g, const struct ir_node *n)
{
    int64_t in = 0, out = n->n_out ? ir_count_of(g, n->out) : 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        in += ir_count_of(g, ir_operand(g, n, i));
    switch (ir_op_class((enum ir_op)n->op)) {
    case IR_CLASS_LIBRARY:
        return n->op != IR_exchange;
    case IR_CLASS_REDUCE:
    case IR_CLASS_ARG:
        return in >= COST_LONG_FOLD * out;
    case IR_CLASS_CONTRACT:
        return out <= COST_PRODUCT_GROWTH * in && in >= COST_LONG_FOLD * COST_LONG_FOLD;
    case IR_CLASS_CUMULATIVE:
        return in >= COST_LONG_FOLD;
    default:
        return false;
    }
}

// Whether the function makes a known number of trips of all its loops, and nothing together with other devices.
static bool ends(const struct ir_graph *g)
{
    bool does = !g->exchanges;
    ir_for_each_node (g, n) {
        const int64_t *functions;
        int count = ir_bodies_of(n, &functions);
        does &= n->op != IR_while;
        for (int i = 0; i < count && does; i++)
            does = ends(ir_function(g->module, (uint32_t)functions[i]));
    }
    return does;
}

// Whether the node is a loop that ends, the results of which are not larger than what it is of.
static bool is_dear_loop(const struct ir_graph *g, const struct ir_node *n)
{
    int64_t in = 0, out = 0;
    if (n->op != IR_scan || ir_scan_of(n).length < COST_UNROLL)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        in += ir_count_of(g, ir_operand(g, n, i));
    for (uint32_t k = 0; k < n->n_out; k++)
        out += ir_count_of(g, n->out + k);
    return out <= COST_PRODUCT_GROWTH * in;
}

// Whether elements that lie apart, not many more than there are, are taken of an array that no near cache holds: of each a
// whole line is read.
static bool is_scattered(const struct ir_graph *g, const struct ir_node *n)
{
    if (n->op != IR_gather)
        return false;
    ir_id x = ir_operand(g, n, 0);
    int64_t bytes = (int64_t)jot_dtype_size(ir_dtype_of(g, x)), window = bytes;
    struct ir_gather of = ir_gather_of(n->attrs);
    for (int d = 0; d < ir_rank_of(g, x); d++)
        window *= of.sizes[d];
    return window < COST_LINE_BYTES / 2 && ir_count_of(g, x) * bytes > COST_NEAR_BYTES &&
           ir_count_of(g, n->out) <= COST_PRODUCT_GROWTH * ir_count_of(g, x);
}

// Marks parts of constants by node: results with fewer elements than the largest of those that they are made of.
static bool *find_parts(const struct ir_graph *g)
{
    bool *is_part = body_mask(g->module, g->nodes.count);
    int64_t *most = arena_array(g->module->arena, int64_t, g->values.count + 1);
    for (uint32_t at = 0; at < g->nodes.count; at++) {
        const struct ir_node *n = &g->nodes.at[at];
        enum ir_class class = ir_op_class((enum ir_op)n->op);
        int64_t whole = 0;
        for (uint32_t i = 0; i < n->n_in; i++)
            if (most[ir_operand(g, n, i)] > whole)
                whole = most[ir_operand(g, n, i)];
        for (uint32_t k = 0; k < n->n_out; k++)
            most[n->out + k] = n->op == IR_param ? ir_count_of(g, n->out) : whole;
        is_part[at] = n->n_out == 1 && ir_count_of(g, n->out) < whole &&
                      (class == IR_CLASS_LAYOUT || class == IR_CLASS_INDEX ||
                       class == IR_CLASS_REDUCE || class == IR_CLASS_CONTRACT);
    }
    return is_part;
}

bool *pass_find_invariant(const struct ir_graph *g, uint32_t n_consts)
{
    bool *is_invariant = body_mask(g->module, g->values.count);
    ir_for_each_node (g, n) {
        bool is = n->op == IR_param ? n->out < n_consts : !ir_has_effect(g, n);
        for (uint32_t i = 0; i < n->n_in; i++)
            is &= is_invariant[ir_operand(g, n, i)];
        if (ir_has_bodies((enum ir_op)n->op))
            is &= n->op == IR_scan && ends(ir_function(g->module, ir_scan_of(n).body));
        for (uint32_t k = 0; k < n->n_out; k++)
            is_invariant[n->out + k] = is;
    }
    return is_invariant;
}

// By value, whether it is computed by elements for a product of a library, which reads it in memory, or for what
// takes more than its elements.
static bool *find_fed(const struct ir_graph *g, const bool *is_invariant, int64_t trips)
{
    bool *is_fed = body_mask(g->module, g->values.count);
    ir_for_each_node (g, n) {
        if (pass_takes_more(g, n, is_invariant, trips))
            is_fed[ir_operand(g, n, 0)] =
                ir_op_class((enum ir_op)ir_node_of(g, ir_operand(g, n, 0))->op) == IR_CLASS_MAP;
        if (n->op != IR_dot_general || !cost_is_product(g, n, ir_dtype_of(g, n->out), false))
            continue;
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id v = ir_operand(g, n, i);
            while (ir_node_of(g, v)->op == IR_reshape || ir_node_of(g, v)->op == IR_transpose)
                v = ir_operand(g, ir_node_of(g, v), 0);
            is_fed[v] = ir_op_class((enum ir_op)ir_node_of(g, v)->op) == IR_CLASS_MAP;
        }
    }
    return is_fed;
}

// What moves, and what is still wanted behind it.
static struct hoisting plan(const struct ir_graph *g, uint32_t n_consts, int64_t trips,
                            bool parts)
{
    struct ir_module *m = g->module;
    bool *is_invariant = pass_find_invariant(g, n_consts),
         *wanted = body_mask(m, g->values.count);
    const bool *is_part = parts ? find_parts(g) : NULL;
    const bool *is_fed = parts ? NULL : find_fed(g, is_invariant, trips);
    struct hoisting h = {g, body_mask(m, g->values.count), body_mask(m, g->nodes.count)};
    for (uint32_t i = 0; i < g->outputs.count; i++)
        wanted[g->outputs.at[i]] = true;
    for (uint32_t at = g->nodes.count; at-- > 0;) {
        const struct ir_node *n = &g->nodes.at[at];
        bool moves = n->n_out && is_invariant[n->out] &&
                     (parts ? is_part[at]
                            : pass_is_dear(g, n) || is_dear_loop(g, n) || is_scattered(g, n) ||
                                  is_fed[n->out]);
        h.stays[at] = ir_has_effect(g, n);
        for (uint32_t k = 0; k < n->n_out; k++) {
            h.moves[n->out + k] = moves && wanted[n->out + k];
            h.stays[at] |= !moves && wanted[n->out + k];
        }
        for (uint32_t i = 0; i < n->n_in && h.stays[at]; i++)
            wanted[ir_operand(g, n, i)] = true;
    }
    return h;
}

// Computes what moves of operands `in`; appends it to *out.
static int move(struct ir_builder *b, const struct hoisting *h, int n_consts, const ir_id *in,
                ir_id *out)
{
    const struct ir_graph *g = h->g;
    ir_id *map = pass_no_values(b->module, g->values.count);
    int n = 0;
    for (int i = 0; i < n_consts; i++)
        map[i] = in[i];
    body_copy_wanted(b, g, h->moves, map);
    for (ir_id v = 0; v < g->values.count; v++)
        if (h->moves[v])
            out[n++] = map[v];
    return n;
}

// The body without what moves.  Behind its constants it has a parameter for each new value of the loop, also
// for those of the other body; its own begin with number `first`.
static uint32_t without(const struct hoisting *h, int n_consts, int first, int n_new,
                        const ir_id *new_values, const struct ir_builder *outside)
{
    const struct ir_graph *g = h->g;
    struct ir_builder b = ir_builder_make(g->module, g->name, IR_BUILD_PLAIN);
    ir_id *map = pass_no_values(g->module, g->values.count), *added;
    added = pass_no_values(g->module, (uint32_t)n_new);
    for (uint32_t i = 0; i <= g->n_params; i++) {
        for (int k = 0; i == (uint32_t)n_consts && k < n_new; k++)
            added[k] = ir_param(&b, ir_type_in(outside, new_values[k]));
        if (i < g->n_params)
            map[i] = ir_param(&b, ir_type_of(g, i));
    }
    for (ir_id v = 0; v < g->values.count; v++)
        if (h->moves[v])
            map[v] = added[first++];
    for (uint32_t at = g->n_params; at < g->nodes.count; at++)
        if (h->stays[at])
            pass_copy_node(&b, g, &g->nodes.at[at], map);
    pass_copy_outputs(&b, g, map);
    return ir_finish_function(&b);
}

// The loop, with bodies of which nothing is left to move.
static ir_id hoist(struct ir_builder *b, const struct ir_node *n, const uint32_t *bodies,
                   const ir_id *in, bool parts)
{
    struct ir_module *m = b->module;
    bool is_scan = n->op == IR_scan;
    struct ir_scan s = is_scan ? ir_scan_of(n) : (struct ir_scan){0};
    struct ir_while w = is_scan ? (struct ir_while){0} : ir_while_of(n);
    int n_consts = is_scan ? s.n_consts : w.n_consts, n_bodies = is_scan ? 1 : 2, n_new = 0;
    int64_t trips = is_scan ? s.length : 1;
    struct hoisting h[2];
    uint32_t room = n->n_in, made[2] = {IR_NONE, IR_NONE};
    int first[2];
    for (int i = 0; i < n_bodies; i++) {
        made[i] = bodies[i];
        if (!parts)
            made[i] = pass_map_before_take(m, made[i], (uint32_t)n_consts, trips);
        h[i] = plan(ir_function(m, made[i]), (uint32_t)n_consts, trips, parts);
        room += h[i].g->values.count;
    }
    ir_id *all = pass_no_values(m, room);
    memcpy(all, in, (size_t)n_consts * sizeof *all);
    for (int i = 0; i < n_bodies; i++) {
        first[i] = n_new;
        n_new += move(b, &h[i], n_consts, in, all + n_consts + n_new);
    }
    for (int i = 0; i < n_bodies && n_new; i++)
        made[i] = without(&h[i], n_consts, first[i], n_new, all + n_consts, b);
    memcpy(all + n_consts + n_new, in + n_consts, (n->n_in - (uint32_t)n_consts) * sizeof *all);
    b->where = n->where;
    if (is_scan) {
        s.body = made[0];
        s.n_consts += n_new;
        return ir_scan(b, &s, (int)n->n_in + n_new, all);
    }
    w.test = made[0];
    w.body = made[1];
    w.n_consts += n_new;
    return ir_while(b, &w, (int)n->n_in + n_new, all);
}

static void copy(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                 ir_id *map, bool parts)
{
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    struct ir_module *m = b->module;
    uint32_t *bodies = body_rewrite_all(m, n, parts ? pass_hoist_parts : pass_hoist);
    ir_id *in = body_operands(m, g, n, map);
    b->where = n->where;
    ir_id y = n->op == IR_scan || n->op == IR_while
                  ? hoist(b, n, bodies, in, parts)
                  : ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                             ir_with_functions(m, n->attrs, bodies));
    body_set_results(n, y, map);
}

static void copy_dear(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                      ir_id *map)
{
    copy(b, g, n, map, false);
}

static void copy_parts(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                       ir_id *map)
{
    copy(b, g, n, map, true);
}

uint32_t pass_hoist(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_HOIST, copy_dear);
}

uint32_t pass_hoist_parts(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_HOIST_PARTS, copy_parts);
}
