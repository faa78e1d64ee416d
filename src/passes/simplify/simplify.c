// SPDX-License-Identifier: Apache-2.0
// Exact simplification: what the builder does with every flag on, and rewrites that need the end
// of differentiation or a look at more than one node.
//
//     v = variable x                                    v is x
//     p = convert (eq (iota 0) (iota 1)); y = dot p a   becomes   y is a
//     t = dot a b; y = transpose t [1,0]                becomes   y = dot b a
//     y = gather (concatenate a b c) [2, 0]             becomes   y = concatenate c a
//     t = transpose a; u = transpose b; y = add t u     becomes   v = add a b; y = transpose v
//
// Needs all differentiation and mapping done: it erases `variable`, `stop_gradient`, the
// derivative rules of calls, and mul_z and guard (support.c).  Keeps parameters and results.
#include "base/status.h"
#include "ir/control.h"
#include "ir/indexing.h"
#include "ir/number.h"
#include "passes/transform.h"

enum { ROUNDS = 4, TAKEN_ROWS = 16 };

struct simplifier {
    struct ir_builder *b;
    const struct ir_graph *g;
    ir_id *map;
    uint32_t *uses; // by value of g
};

// A slice of a concatenation that is exactly one of the joined operands.
static ir_id cut_concatenation(struct simplifier *s, const struct ir_node *n, const ir_id *in)
{
    struct ir_builder *b = s->b;
    const struct ir_node *join = ir_node_in(b, in[0]);
    if (join->op != IR_concatenate)
        return IR_NONE;
    int rank, axis = (int)ir_attr_int(join->attrs, IR_KEY_axis);
    const int64_t *starts = ir_attr_ints(n->attrs, IR_KEY_starts, &rank);
    const int64_t *strides = ir_attr_ints(n->attrs, IR_KEY_strides, &rank);
    for (int i = 0; i < rank; i++)
        if (strides[i] != 1)
            return IR_NONE;
    int64_t at = 0;
    uint32_t i = 0;
    for (; i < join->n_in && at < starts[axis]; i++)
        at += ir_dims(b->module, ir_type_in(b, ir_operand(b->graph, join, i)))[axis];
    // Empty operands may stand before the one that is meant.
    for (; i < join->n_in && at == starts[axis]; i++) {
        ir_id x = ir_operand(b->graph, join, i);
        if (ir_type_equal(ir_type_in(b, x), ir_type_of(s->g, n->out)))
            return x;
        at += ir_dims(b->module, ir_type_in(b, x))[axis];
    }
    return IR_NONE;
}

// Rows of a concatenation at known indices, of which there are few, are a concatenation of its operands' rows.
static ir_id take_of_concatenation(struct simplifier *s, const struct ir_node *n,
                                   const ir_id *in)
{
    struct ir_builder *b = s->b;
    struct ir_module *m = b->module;
    const struct ir_node join = *ir_node_in(b, in[0]), at = *ir_node_in(b, in[1]);
    jot_dtype d = ir_dtype(ir_type_in(b, in[1]));
    if (join.op != IR_concatenate || at.op != IR_const || (d != JOT_I32 && d != JOT_I64))
        return IR_NONE;
    struct ir_type x = ir_type_in(b, in[0]), y = ir_type_of(s->g, n->out);
    struct ir_window w = ir_window_of(m, n->attrs, x, ir_type_in(b, in[1]), y);
    int axis = (int)ir_attr_int(join.attrs, IR_KEY_axis);
    int64_t rows = ir_count(m, ir_type_in(b, in[1]));
    if (w.index_rank != 1 || w.component[axis] != 0 || w.index_axis[0] != axis ||
        y.rank != x.rank || w.size[axis] != 1 || rows == 0 || rows > TAKEN_ROWS)
        return IR_NONE;
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    for (int i = 0; i < x.rank; i++) {
        limits[i] = w.size[i];
        if (i != axis && (w.is_batch[i] || w.component[i] >= 0 || w.along[i] != i))
            return IR_NONE;
    }
    ir_id taken[TAKEN_ROWS];
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = ir_integer_at(d, ir_const_data(&at), i);
        if (row < 0 || row >= ir_dims(m, x)[axis])
            return IR_NONE;
        ir_id v;
        for (uint32_t k = 0;; k++, row -= limits[axis]) {
            v = ir_operand(b->graph, &join, k);
            limits[axis] = ir_dims(m, ir_type_in(b, v))[axis];
            if (row < limits[axis])
                break;
        }
        starts[axis] = row;
        limits[axis] = row + 1;
        taken[i] = ir_slice(b, v, starts, limits, NULL);
    }
    return ir_concatenate(b, (int)rows, taken, axis);
}

// A product that only its transpose reads: when the free axes of the operands are swapped, so can
// the operands.  Each element is the same sum in the same order.
static ir_id swap_factors(struct simplifier *s, const struct ir_node *n, const ir_id *in)
{
    struct ir_builder *b = s->b;
    const struct ir_node *dot = ir_node_in(b, in[0]);
    if (dot->op != IR_dot_general || s->uses[ir_operand(s->g, n, 0)] != 1)
        return IR_NONE;
    int rank, n_batch, n_contract;
    const int64_t *axes = ir_attr_ints(n->attrs, IR_KEY_axes, &rank);
    struct ir_dot d = {
        .lhs_batch = ir_attr_ints(dot->attrs, IR_KEY_rhs_batch, &n_batch),
        .rhs_batch = ir_attr_ints(dot->attrs, IR_KEY_lhs_batch, &n_batch),
        .lhs_contract = ir_attr_ints(dot->attrs, IR_KEY_rhs_contract, &n_contract),
        .rhs_contract = ir_attr_ints(dot->attrs, IR_KEY_lhs_contract, &n_contract),
        .precision = (int)ir_attr_int_or(dot->attrs, IR_KEY_precision, 0)};
    d.n_batch = n_batch;
    d.n_contract = n_contract;
    // Several contracted axes are summed in the order of the first operand, and the two products of
    // an imaginary part in that of the factors.
    if (n_contract > 1 || dtype_is_complex(ir_dtype_of(s->g, n->out)))
        return IR_NONE;
    int free_y = ir_type_in(b, ir_operand(b->graph, dot, 1)).rank - n_batch - n_contract;
    for (int i = 0; i < rank; i++) {
        int first = i < n_batch + free_y ? i - n_batch + (rank - free_y) : i - free_y;
        if (axes[i] != (i < n_batch ? i : first))
            return IR_NONE;
    }
    return ir_dot_general(b, ir_operand(b->graph, dot, 1), ir_operand(b->graph, dot, 0), &d);
}

// x as it is before a transpose by the axes makes it what it is; IR_NONE where that takes a node more.
static ir_id before_transpose(struct ir_builder *b, ir_id x, int rank, const int64_t *axes)
{
    const struct ir_node *n = ir_node_in(b, x);
    int count;
    if (ir_type_in(b, x).rank == 0)
        return x;
    if (n->op == IR_transpose)
        return memcmp(ir_attr_ints(n->attrs, IR_KEY_axes, &count), axes,
                      (size_t)rank * sizeof *axes)
                   ? IR_NONE
                   : ir_operand(b->graph, n, 0);
    // Of one axis or none, whose position is all that changes.
    if (n->op != IR_broadcast_in_dim || ir_type_in(b, ir_operand(b->graph, n, 0)).rank > 1)
        return IR_NONE;
    const int64_t *along = ir_attr_ints(n->attrs, IR_KEY_axes, &count);
    int64_t dims[IR_MAX_RANK], axis = count ? axes[along[0]] : 0;
    for (int i = 0; i < rank; i++)
        dims[axes[i]] = ir_dims(b->module, ir_type_in(b, x))[i];
    return ir_broadcast_in_dim(b, ir_operand(b->graph, n, 0), rank, dims, &axis);
}

// An elementwise op of transposes is the transpose of one, so that those that meet again are none.
static ir_id sink_transpose(struct simplifier *s, const struct ir_node *n, const ir_id *in)
{
    struct ir_builder *b = s->b;
    ir_id few[8];
    int rank = 0;
    const int64_t *axes = NULL;
    for (uint32_t i = 0; i < n->n_in && !axes && n->n_in <= 8 && n->n_out == 1; i++)
        if (ir_node_in(b, in[i])->op == IR_transpose)
            axes = ir_attr_ints(ir_node_in(b, in[i])->attrs, IR_KEY_axes, &rank);
    if (!axes)
        return IR_NONE;
    axes = arena_copy(b->module->arena, axes, (size_t)rank * sizeof *axes);
    for (uint32_t i = 0; i < n->n_in; i++)
        if ((few[i] = before_transpose(b, in[i], rank, axes)) == IR_NONE)
            return IR_NONE;
    ir_id y = ir_rebuild(b, s->g, n, few);
    return y == IR_NONE ? IR_NONE : ir_transpose(b, y, axes);
}

// The body, simplified, without rules.
static ir_id simplify_call(struct simplifier *s, const struct ir_node *n, const ir_id *in)
{
    uint32_t f = (uint32_t)ir_field_find(n->attrs, IR_KEY_functions)->ints[0];
    f = pass_simplify(s->b->module, f);
    enum ir_op op = n->op == IR_checkpoint ? IR_checkpoint : IR_call;
    return ir_call(s->b, op, 1, &f, (int)n->n_in, in);
}

static void simplify_nodes(struct simplifier *s);

// A loop of one trip is its body, over the only row of each operand.  The nodes of the body are made here
// and nowhere else, so those of loops in one another once.
static void run_once(struct simplifier *s, const struct ir_node *n, const struct ir_scan *scan,
                     const ir_id *in, ir_id *out)
{
    struct ir_builder *b = s->b;
    struct ir_module *m = b->module;
    const struct ir_graph *g = ir_function(m, pass_support(m, scan->body));
    struct simplifier trip = {.b = b,
                              .g = g,
                              .map = pass_no_values(m, g->values.count),
                              .uses = pass_count_uses(m, g)};
    for (uint32_t i = 0; i < n->n_in; i++) {
        struct ir_type t = ir_type_of(g, i);
        trip.map[i] = ir_reshape(b, in[i], t.rank, ir_dims(m, t));
    }
    simplify_nodes(&trip);
    b->where = n->where;
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct ir_type t = ir_type_of(s->g, n->out + i);
        out[i] = ir_reshape(b, trip.map[g->outputs.at[i]], t.rank, ir_dims(m, t));
    }
}

static void simplify_loop(struct simplifier *s, const struct ir_node *n, const ir_id *in,
                          ir_id *out)
{
    struct ir_scan scan = {0};
    if (n->op == IR_scan)
        scan = ir_scan_of(n);
    if (scan.length == 1)
        run_once(s, n, &scan, in, out);
    else
        pass_simplify_control(s->b, n, in, out);
}

static void simplify_node(struct simplifier *s, const struct ir_node *n)
{
    struct ir_builder *b = s->b;
    ir_id few[8], *in = n->n_in <= 8 ? few : pass_no_values(b->module, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = s->map[ir_operand(s->g, n, i)];
    b->where = n->where;
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CONTROL) {
        simplify_loop(s, n, in, s->map + n->out);
        return;
    }
    ir_id y = IR_NONE;
    if (n->op == IR_variable || n->op == IR_stop_gradient)
        y = in[0];
    else if (n->op == IR_dot_general)
        y = pass_contract_basis(b, n, in, ir_type_of(s->g, n->out));
    else if (n->op == IR_transpose)
        y = swap_factors(s, n, in);
    else if (n->op == IR_slice)
        y = cut_concatenation(s, n, in);
    else if (n->op == IR_gather)
        y = take_of_concatenation(s, n, in);
    else if (n->op == IR_select)
        y = pass_mask_updates(b, s->g, s->uses, s->map, n);
    else if (n->op >= IR_scatter && n->op <= IR_scatter_max)
        y = pass_unique_updates(b, n, in);
    else if (ir_op_class(n->op) == IR_CLASS_CALL)
        y = simplify_call(s, n, in);
    if (y == IR_NONE && ir_op_class((enum ir_op)n->op) == IR_CLASS_MAP)
        y = sink_transpose(s, n, in);
    if (y == IR_NONE)
        y = ir_rebuild(b, s->g, n, in);
    for (uint32_t i = 0; i < n->n_out; i++)
        s->map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
}

static void simplify_nodes(struct simplifier *s)
{
    for (uint32_t i = s->g->n_params; i < s->g->nodes.count; i++)
        simplify_node(s, &s->g->nodes.at[i]);
}

static uint32_t round_of(struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ALL);
    struct simplifier s = {.b = &b,
                           .g = g,
                           .map = pass_no_values(m, g->values.count),
                           .uses = pass_count_uses(m, g)};
    pass_copy_params(&b, g, NULL, true, s.map);
    simplify_nodes(&s);
    pass_copy_outputs(&b, g, s.map);
    uint32_t made = ir_finish_function(&b);
    return made == IR_NONE ? f
                           : made; // a rewrite that does not type is our fault, not the user's
}

static bool has_bodies(const struct ir_graph *g)
{
    ir_for_each_node (g, n)
        if (ir_has_bodies((enum ir_op)n->op))
            return true;
    return false;
}

uint32_t pass_simplify(struct ir_module *m, uint32_t f)
{
    struct memo_key key = {.kind = MEMO_SIMPLIFY, .f = f};
    const uint32_t *known = pass_memo_find(m, &key);
    if (known)
        return *known;
    uint32_t made = pass_support(m, f), before = IR_NONE;
    for (int i = 0; i < ROUNDS && made != before; i++) {
        before = made;
        made = round_of(m, made);
        if (has_bodies(ir_function(m, made)))
            made = pass_dce(m, pass_merge_control(m, made));
    }
    return pass_memo_add_function(m, &key, made);
}
