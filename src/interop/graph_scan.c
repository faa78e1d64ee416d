// SPDX-License-Identifier: Apache-2.0
// Scans of CHLO: along one axis a body takes what the arrays have there and the carries, and gives results and
// the next carries.
//
// A body that adds, multiplies or compares the two is a running sum, product or extremum.  One that is
// said to be associative combines neighbours first, so that many elements take few steps.  Any other is a loop
// over rows.
#include "interop/to_graph.h"

#include "jot/control.h"

struct scan {
    struct graph_frame *frame;
    const struct mlir_op *op;
    const struct mlir_block *body;
    int n_in, n_carry, n_out, axis;
    bool is_reversed;
    const char *where;
};

static jot_value input(const struct scan *s, int i)
{
    return graph_operand(s->frame, s->op, (uint32_t)i);
}

static jot_value start(const struct scan *s, int i) { return input(s, s->n_in + i); }

static void give(const struct scan *s, int i, jot_value v)
{
    graph_set_result(s->frame, s->op, (uint32_t)i, v);
}

static bool scan_read(struct graph_frame *frame, const struct mlir_op *op, struct scan *out)
{
    size_t n = 0;
    const int64_t *sizes = mlir_ints(op, "operandSegmentSizes", &n);
    int64_t operands = op->n_operands, results = op->n_results, inputs = n == 2 ? sizes[0] : -1;
    int64_t carries = operands - inputs, axis = mlir_int(op, "dimension", -1);
    if (op->n_regions != 1 || inputs < 0 || carries < 0 || carries > results ||
        op->regions[0].n_args != operands)
        return false;
    const struct mlir_block *body = &op->regions[0];
    if (body->ops[body->n_ops - 1]->n_operands != results)
        return false;
    for (int64_t i = 0; i < inputs; i++)
        if (op->operands[i]->type->kind != MLIR_TENSOR || axis < 0 ||
            axis >= op->operands[i]->type->rank)
            return false;
    *out = (struct scan){frame,
                         op,
                         body,
                         (int)inputs,
                         (int)carries,
                         (int)(results - carries),
                         (int)axis,
                         mlir_int(op, "is_reverse", 0) != 0,
                         graph_where(frame, op)};
    return inputs > 0;
}

// Whether the results are the next carries.
static bool gives_carries(const struct scan *s)
{
    struct mlir_value *const *end = s->body->ops[s->body->n_ops - 1]->operands;
    bool is_same = s->n_in == s->n_carry && s->n_out == s->n_carry;
    for (int i = 0; is_same && i < s->n_out; i++)
        is_same = end[i] == end[s->n_out + i];
    return is_same;
}

// ---- running sums, products and extrema ----

static jot_value row(const struct scan *s, jot_value x, int64_t at)
{
    return jot_squeeze_axes(jot_slice_axis(x, s->axis, at, at + 1, 1),
                            (const int[]){s->axis, JOT_END});
}

static bool trace_running(const struct scan *s)
{
    int arg;
    struct mlir_op end = *s->body->ops[s->body->n_ops - 1];
    struct mlir_op *ops[2];
    if (!gives_carries(s) || s->n_in != 1 || s->body->n_ops != 2 ||
        s->op->operands[0]->type->dims[s->axis] <= 0)
        return false;
    end.n_operands = 1;
    memcpy(ops, (struct mlir_op *[]){s->body->ops[0], &end}, sizeof ops);
    struct mlir_block one = *s->body;
    one.ops = ops;
    jot_dtype d = mlir_elements[s->op->operands[0]->type->element].dtype;
    enum ir_op reduction = graph_reduction(graph_body(&one, &arg), d);
    enum ir_op running = graph_running(reduction);
    if (running == IR_OP_COUNT || !graph_is_neutral(s->frame, s->op->operands[1], reduction))
        return false;
    ir_id x = trace_strong(trace_import(s->op->name, input(s, 0)));
    ir_id y = ir_cumulative(trace_builder(), running, x, s->axis, s->is_reversed);
    jot_value v = trace_result(s->op->name, y, false);
    give(s, 0, v);
    give(s, 1, row(s, v, s->is_reversed ? 0 : s->op->operands[0]->type->dims[s->axis] - 1));
    return true;
}

// ---- associative bodies ----

static void combine(const jot_value *in, jot_value *out, void *ctx)
{
    const struct scan *s = ctx;
    int n = s->n_in;
    jot_value *args = arena_array(s->frame->arena, jot_value, 4 * n + 1),
              *results = args + 2 * n;
    for (int i = 0; i < n; i++) {
        args[i] = in[n + i];
        args[n + i] = in[i];
    }
    graph_region_step(s->frame, s->body, args, results);
    memcpy(out, results, (size_t)n * sizeof *out);
}

// The carries that there are at first are one element more, which goes again.
static void trace_associative(struct scan *s)
{
    int n = s->n_in;
    int64_t rows = s->op->operands[0]->type->dims[s->axis];
    jot_value *x = arena_array(s->frame->arena, jot_value, n);
    for (int i = 0; i < n; i++) {
        jot_value first = jot_expand_dims_axes(start(s, i), (const int[]){s->axis, JOT_END});
        jot_value both[2] = {first, input(s, i)};
        if (s->is_reversed)
            both[0] = both[1], both[1] = first;
        x[i] = jot_concatenate_list(s->axis, 2, both);
    }
    jot_associative_scan_tree(jot_function_uniform("scan", s->where, combine, 2 * n, n, s),
                              (size_t)n, x, s->axis, s->is_reversed, s->where);
    for (int i = 0; i < n; i++) {
        int64_t skipped = s->is_reversed ? 0 : 1;
        give(s, i, jot_slice_axis(x[i], s->axis, skipped, skipped + rows, 1));
        give(s, n + i, row(s, x[i], s->is_reversed ? 0 : rows));
    }
}

// ---- any other ----

static void step(jot_value *carry, const jot_value *in, jot_value *out, void *ctx)
{
    const struct scan *s = ctx;
    int n = s->n_in + s->n_carry;
    jot_value *args = arena_array(s->frame->arena, jot_value, n + s->n_out + s->n_carry + 1);
    jot_value *results = args + n;
    for (int i = 0; i < s->n_in; i++)
        args[i] = in[i];
    for (int i = 0; i < s->n_carry; i++)
        args[s->n_in + i] = carry[i];
    graph_region_step(s->frame, s->body, args, results);
    for (int i = 0; i < s->n_out; i++)
        out[i] = results[i];
    for (int i = 0; i < s->n_carry; i++)
        carry[i] = results[s->n_out + i];
}

static void trace_rows(struct scan *s)
{
    jot_value *rows =
        arena_array(s->frame->arena, jot_value, s->n_in + s->n_carry + s->n_out + 1);
    jot_value *carry = rows + s->n_in, *out = carry + s->n_carry;
    jot_loop_options options = {.size = sizeof options, .reverse = s->is_reversed};
    for (int i = 0; i < s->n_in; i++)
        rows[i] = jot_move_axis(input(s, i), s->axis, 0);
    for (int i = 0; i < s->n_carry; i++)
        carry[i] = start(s, i);
    jot_scan_at(step, s, (size_t)s->n_carry, carry, (size_t)s->n_in, rows, (size_t)s->n_out,
                out, &options, s->where);
    for (int i = 0; i < s->n_out; i++)
        give(s, i, jot_move_axis(out[i], 0, s->axis));
    for (int i = 0; i < s->n_carry; i++)
        give(s, s->n_out + i, carry[i]);
}

static void trace_scan(struct graph_frame *frame, const struct mlir_op *op)
{
    struct scan *s = arena_new(frame->arena, struct scan);
    if (!scan_read(frame, op, s))
        graph_fail(frame, op, "its operands, results and body do not fit together");
    else if (trace_running(s))
        return;
    else if (mlir_int(op, "is_associative", 0) && gives_carries(s))
        trace_associative(s);
    else
        trace_rows(s);
}

graph_trace *graph_scan_find(enum mlir_code code)
{
    return code == MLIR_OP_chlo_scan ? trace_scan : NULL;
}
