// SPDX-License-Identifier: Apache-2.0
// What the tests of the scheduler share: a scheduled program checked and run against the evaluator.
#ifndef TESTS_SCHEDULE_SUPPORT_H
#define TESTS_SCHEDULE_SUPPORT_H

#include "passes/pass_support.h"
#include "schedule/schedule.h"
#include "support/nest_eval.h"

static inline const char *schedule_text(const struct nest_program *p)
{
    struct strbuf s = strbuf_make(module->arena);
    schedule_print(&s, p);
    return s.text;
}

static inline struct nest_program *schedule_with(uint32_t f, const struct schedule_options *o)
{
    struct nest_program *p;
    require(pass_schedule(module->arena, graph(f), o, &p));
    return p;
}

static inline struct nest_program *schedule(uint32_t f) { return schedule_with(f, NULL); }

// Fails the test when it does not hold; the texts may be longer than Check allows.
static inline void require_of(bool holds, const char *what, uint32_t f,
                              const struct nest_program *p)
{
    if (!holds)
        fprintf(stderr, "seed %" PRIu64 ": %s\n%s\n%s\n", seed, what, ir_graph_text(graph(f)),
                schedule_text(p));
    ck_assert_msg(holds, "see above");
}

// A row of values that nothing reads.
static inline const struct nest_buffer *idle_row(const struct nest *n)
{
    bool *is_read = arena_array(module->arena, bool, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->statements.count; i++)
        if (n->statements.at[i].kind == NEST_LOAD)
            is_read[n->statements.at[i].buffer] = true;
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        const struct nest_buffer *b = &n->buffers.at[i];
        if (b->role == NEST_LOCAL && !is_read[i] && !strncmp(b->name, "row", 3))
            return b;
    }
    return NULL;
}

// Every rule of kernels, programs and plans.
static inline void check_program(uint32_t f, const struct nest_program *p)
{
    struct strbuf report = strbuf_make(module->arena);
    int faults = nest_program_verify(p, &report) + plan_verify(p, &report);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct nest_buffer *idle = idle_row(p->nests.at[i]);
        if (idle)
            strbuf_printf(&report, "%s: nothing reads %s\n", p->nests.at[i]->name, idle->name);
        faults += idle != NULL;
    }
    require_of(faults == 0, report.text, f, p);
}

static inline size_t tensor_bytes(struct ir_type t)
{
    return (size_t)ir_count(module, t) * dtype_get(ir_dtype(t))->bytes;
}

// Whether routines, or graphs in their place, compute a part of it in their own way.
static inline bool has_routines(const struct ir_graph *g)
{
    ir_for_each_node (g, n) {
        int bodies = 0;
        if (ir_op_class((enum ir_op)n->op) == IR_CLASS_LIBRARY)
            return true;
        if (ir_has_bodies((enum ir_op)n->op))
            ir_attr_ints(n->attrs, IR_KEY_functions, &bodies);
        for (int i = 0; i < bodies; i++)
            if (has_routines(ir_body(g, n, i)))
                return true;
    }
    return false;
}

// The program gives the bits of the evaluator, where that is promised.
static inline void check_run(uint32_t f, const struct nest_program *p,
                             const struct ir_tensor *in)
{
    const struct ir_graph *g = graph(f);
    if (has_routines(g))
        return;
    void **inputs = arena_array(module->arena, void *, g->n_params + 1);
    void **outputs = arena_array(module->arena, void *, g->outputs.count + 1);
    struct ir_tensor *want = evaluate(f, in);
    for (uint32_t i = 0; i < g->n_params; i++)
        inputs[i] = in[i].data;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        outputs[i] = arena_allocate(module->arena, tensor_bytes(want[i].type) + 16);
    jot_status status = nest_program_eval(p, inputs, outputs);
    require_of(status == JOT_OK, jot_error_message(), f, p);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_tensor got = {want[i].type, outputs[i]};
        require_of(bits_equal(got, want[i]) || distance(got, want[i]) == 0,
                   "the evaluator gives something else", f, p);
    }
}

// Inputs drawn for the parameters of a function.
static inline struct ir_tensor *draw_inputs(uint32_t f, uint64_t draw_seed)
{
    const struct ir_graph *g = graph(f);
    struct ir_tensor *in = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = opcase_draw(module, ir_type_of(g, i), "SMALL", &draw_seed);
    return in;
}

static inline uint32_t count_kind(const struct nest *n, enum nest_kind kind)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < n->blocks.count; b++)
        for (uint32_t i = 0; i < n->blocks.at[b].statements.count; i++)
            count += n->statements.at[n->blocks.at[b].statements.at[i]].kind == kind;
    return count;
}

static inline uint32_t count_ops(const struct nest *n, enum ir_op op)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < n->blocks.count; b++)
        for (uint32_t i = 0; i < n->blocks.at[b].statements.count; i++) {
            const struct nest_statement *s =
                &n->statements.at[n->blocks.at[b].statements.at[i]];
            count += s->kind == NEST_OP && s->op == op;
        }
    return count;
}

// Loads of the program's memory m in a kernel step.
static inline uint32_t count_loads(const struct nest_program *p, uint32_t step, uint32_t memory)
{
    const struct nest_step *t = &p->steps.at[step];
    const struct nest *n = p->nests.at[t->nest];
    uint32_t count = 0, operand = 0;
    for (uint32_t b = 0; b < n->buffers.count; b++) {
        if (n->buffers.at[b].role == NEST_LOCAL || t->memories[operand++] != memory)
            continue;
        for (uint32_t k = 0; k < n->blocks.count; k++)
            for (uint32_t i = 0; i < n->blocks.at[k].statements.count; i++) {
                const struct nest_statement *s =
                    &n->statements.at[n->blocks.at[k].statements.at[i]];
                count += s->kind == NEST_LOAD && s->buffer == b;
            }
    }
    return count;
}

#endif
