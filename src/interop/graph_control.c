// SPDX-License-Identifier: Apache-2.0
// Loops and branches.  A loop whose trips are counted is traced as one that knows how often it runs,
// so that reverse mode goes through it; carries that no trip changes are values around it.
#include "interop/graph_loop.h"
#include "interop/to_graph.h"

#include "jot/control.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// ---- loops ----

struct loop {
    struct graph_frame *frame;
    const struct mlir_op *op;
    struct graph_loop facts;
    int *carried; // of the carries of the graph: the operand that each one is
    int n_carried;
};

static const struct mlir_block *test_of(const struct loop *l) { return &l->op->regions[0]; }
static const struct mlir_block *step_of(const struct loop *l) { return &l->op->regions[1]; }

static void set_arg(const struct loop *l, int region, int i, jot_value v)
{
    l->frame->values[l->op->regions[region].args[i]->number] = v;
}

static bool is_carried(const struct loop *l, int i)
{
    return !l->facts.is_invariant[i] && !(l->facts.is_counted && i == l->facts.counter);
}

// Invariants stand for themselves in both regions.
static void bind(struct loop *l)
{
    int n = (int)l->op->n_operands;
    l->carried = arena_array(l->frame->arena, int, n + 1);
    for (int i = 0; i < n; i++)
        if (is_carried(l, i))
            l->carried[l->n_carried++] = i;
        else
            for (int region = 0; region < 2; region++)
                set_arg(l, region, i, graph_operand(l->frame, l->op, (uint32_t)i));
}

static void set_carries(const struct loop *l, int region, const jot_value *carry)
{
    for (int k = 0; k < l->n_carried; k++)
        set_arg(l, region, l->carried[k], carry[k]);
}

static jot_value condition(const jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    set_carries(l, 0, carry);
    const struct mlir_op *end = graph_block(l->frame, test_of(l));
    return graph_operand(l->frame, end, 0);
}

static void step(jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    set_carries(l, 1, carry);
    const struct mlir_op *end = graph_block(l->frame, step_of(l));
    for (int k = 0; k < l->n_carried; k++)
        carry[k] = graph_operand(l->frame, end, (uint32_t)l->carried[k]);
}

// start + step * index, of the type of the counter.
static jot_value counter_at(const struct loop *l, jot_value index)
{
    const struct graph_loop *f = &l->facts;
    jot_dtype d = mlir_elements[l->op->operands[f->counter]->type->element].dtype;
    jot_value i = jot_convert(index, d);
    if (!f->is_known)
        return i;
    struct ir_builder *b = trace_builder();
    ir_id at = trace_strong(trace_import("stablehlo.while", i));
    if (f->step != 1)
        at = ir_mul(b, at, ir_scalar_int(b, d, f->step));
    if (f->start)
        at = ir_add(b, at, ir_scalar_int(b, d, f->start));
    return trace_result("stablehlo.while", at, false);
}

static void counted_step(jot_value index, jot_value *carry, void *ctx)
{
    const struct loop *l = ctx;
    set_arg(l, 1, l->facts.counter, counter_at(l, index));
    step(carry, ctx);
}

static void run_counted(struct loop *l, jot_value *carry, const char *where)
{
    const struct graph_loop *f = &l->facts;
    jot_value first = jot_from_int(0), end = jot_from_int(f->trips);
    jot_value start = graph_operand(l->frame, l->op, (uint32_t)f->counter);
    if (!f->is_known) {
        first = start;
        end = f->bound ? l->frame->values[f->bound->number] : first;
    }
    jot_for_at(counted_step, l, first, end, (size_t)l->n_carried, carry, where);
    jot_value after =
        f->is_known ? counter_at(l, jot_convert(end, JOT_I64)) : jot_maximum(start, end);
    graph_set_result(l->frame, l->op, (uint32_t)f->counter, after);
}

static void trace_while(struct graph_frame *frame, const struct mlir_op *op)
{
    struct loop l = {.frame = frame, .op = op};
    const char *where = graph_where(frame, op);
    graph_loop_read(frame, op, &l.facts);
    bind(&l);
    jot_value *carry = arena_array(frame->arena, jot_value, l.n_carried + 1);
    for (int k = 0; k < l.n_carried; k++)
        carry[k] = graph_operand(frame, op, (uint32_t)l.carried[k]);
    if (l.facts.is_counted)
        run_counted(&l, carry, where);
    else
        jot_while_at(condition, step, &l, (size_t)l.n_carried, carry, NULL, where);
    for (uint32_t i = 0; i < op->n_results; i++)
        if (l.facts.is_invariant[i])
            graph_set_result(frame, op, i, graph_operand(frame, op, i));
    for (int k = 0; k < l.n_carried; k++)
        graph_set_result(frame, op, (uint32_t)l.carried[k], carry[k]);
}

// ---- branches ----

static void run_branch(struct graph_frame *frame, const struct mlir_op *op, uint32_t region,
                       jot_value *out)
{
    const struct mlir_op *end = graph_block(frame, &op->regions[region]);
    for (uint32_t i = 0; i < end->n_operands; i++)
        out[i] = graph_operand(frame, end, i);
}

// Region k as branch k, but for those of `if`, whose first one is taken when the predicate is true.
static void trace_branches(struct graph_frame *frame, const struct mlir_op *op)
{
    bool is_if = op->row->code == HLO_(if);
    jot_value index = graph_operand(frame, op, 0);
    jot_value *out = arena_array(frame->arena, jot_value, op->n_results + 1);
    jot_piece results[] = {{out, op->n_results, "out"}, {NULL, 0, NULL}};
    int last = (int)op->n_regions - 1;
    // An index that is out of range takes the last branch.
    if (!is_if)
        index = jot_where(jot_less(index, jot_from_int(0)), jot_from_int(last), index);
    const char *where = graph_where(frame, op);
    jot_block *b = is_if ? jot_if_begin(results, index, where)
                         : jot_switch_begin(results, index, last + 1, where);
    while (jot_block_next(b))
        run_branch(frame, op, is_if ? (jot_if_first(b) ? 0 : 1) : (uint32_t)jot_switch_case(b),
                   out);
    jot_block_leave(&b);
    for (uint32_t i = 0; i < op->n_results; i++)
        graph_set_result(frame, op, i, out[i]);
}

graph_trace *graph_control_find(enum mlir_code code)
{
    return code == MLIR_OP_sdy_manual_computation   ? graph_manual
           : code == HLO_(while)                    ? trace_while
           : code == HLO_(if) || code == HLO_(case) ? trace_branches
                                                    : NULL;
}
