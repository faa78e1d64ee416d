// SPDX-License-Identifier: Apache-2.0
// A branch over known and linear values, in two branches on one index.
//
//     y, dy = cond i {f, g} x dx
// becomes
//     y, r = cond i {f known, g known} x
//     dy = cond i {f linear, g linear} x r dx
//
// Residuals of different branches share a value where their types are equal; a branch that has none
// of a type gives zeros.  What is an operand or a known result is not handed on again.
#include "passes/unzip.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

// How the linear branches get a known value.
enum from {
    FROM_OPERAND, // index: of the operand, the index of the cond not counted
    FROM_RESULT,  // index: of the result
    FROM_SLOT,    // index: of the shared residual
};

struct source {
    enum from from;
    uint32_t index;
};

struct split_cond {
    struct ir_builder *b;
    struct ir_module *m;
    int n;                            // branches
    const int64_t *branches;          //
    uint32_t n_in, n_out;             // operands beside the index; results
    const ir_id *x;                   // operands, the index first
    const bool *linear_in;            // by operand
    bool *linear_out;                 // by result: in some branch
    struct pass_split *parts;         // by branch
    struct source **sources;          // by branch and residual
    VEC(struct ir_type) slots;        // types of shared residuals
    bool *uses_operand, *uses_result; // by the linear branches
    ir_id *y, *slot;                  // results, shared residuals
};

static jot_status split_branches(struct split_cond *c)
{
    for (int k = 0; k < c->n; k++) {
        JOT_TRY(pass_split(c->m, (uint32_t)c->branches[k], c->linear_in, &c->parts[k]));
        for (uint32_t i = 0; i < c->n_out; i++)
            c->linear_out[i] = c->linear_out[i] || c->parts[k].linear_out[i];
    }
    return JOT_OK;
}

// The place of result i among the results of the known part of branch k.
static uint32_t known_result(const struct split_cond *c, int k, uint32_t i)
{
    return body_count(c->parts[k].linear_out, false, 0, i);
}

static uint32_t find_slot(struct split_cond *c, struct ir_type t, bool *taken)
{
    uint32_t i = 0;
    while (i < c->slots.count && (taken[i] || !ir_type_equal(c->slots.at[i], t)))
        i++;
    if (i == c->slots.count)
        vec_push(c->m->arena, &c->slots, t);
    taken[i] = true;
    return i;
}

static struct source find_source(struct split_cond *c, int k, struct pass_residual r,
                                 bool *taken)
{
    const struct ir_graph *known = ir_function(c->m, c->parts[k].forward);
    if (r.from == PASS_RESIDUAL_INPUT) {
        c->uses_operand[r.index] = true;
        return (struct source){FROM_OPERAND, r.index};
    }
    ir_id v = known->outputs.at[r.index];
    for (uint32_t i = 0; i < c->n_out; i++)
        if (!c->linear_out[i] && known->outputs.at[known_result(c, k, i)] == v) {
            c->uses_result[i] = true;
            return (struct source){FROM_RESULT, i};
        }
    return (struct source){FROM_SLOT, find_slot(c, ir_type_of(known, v), taken)};
}

static void find_sources(struct split_cond *c)
{
    uint32_t most = 0;
    for (int k = 0; k < c->n; k++)
        most += c->parts[k].n_residuals;
    for (int k = 0; k < c->n; k++) {
        bool *taken = body_mask(c->m, most);
        c->sources[k] = arena_array(c->m->arena, struct source, c->parts[k].n_residuals + 1);
        for (uint32_t r = 0; r < c->parts[k].n_residuals; r++)
            c->sources[k][r] = find_source(c, k, c->parts[k].residuals[r], taken);
    }
}

// The residual of branch k in a slot, or IR_NONE.
static uint32_t residual_in(const struct split_cond *c, int k, uint32_t slot)
{
    for (uint32_t r = 0; r < c->parts[k].n_residuals; r++)
        if (c->sources[k][r].from == FROM_SLOT && c->sources[k][r].index == slot)
            return r;
    return IR_NONE;
}

// (known operands) -> known results, slots
static jot_status known_branch(struct split_cond *c, int k, uint32_t *out_f)
{
    struct body w = body_of(c->m, c->parts[k].forward);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (!c->linear_out[i])
            body_give(&w, known_result(c, k, i));
    for (uint32_t s = 0; s < c->slots.count; s++) {
        uint32_t r = residual_in(c, k, s);
        bool there = r != IR_NONE;
        body_give_or_zeros(&w, there, there ? c->parts[k].residuals[r].index : 0,
                           c->slots.at[s]);
    }
    return pass_finish(&w.b, out_f);
}

static jot_status build_known(struct split_cond *c, uint32_t *functions)
{
    uint32_t n_known = body_count(c->linear_out, false, 0, c->n_out);
    bool any = n_known + c->slots.count > 0;
    for (int k = 0; k < c->n; k++)
        any = any || ir_function(c->m, c->parts[k].forward)->has_effects;
    if (!any)
        return JOT_OK;
    for (int k = 0; k < c->n; k++)
        JOT_TRY(known_branch(c, k, &functions[k]));
    ir_id *in = pass_no_values(c->m, c->n_in + 1);
    in[0] = c->x[0];
    int n = 1 + body_pick(c->linear_in, false, 0, c->n_in, c->x + 1, in + 1);
    ir_id y = ir_cond(c->b, c->n, functions, n, in);
    if (y == IR_NONE)
        return pass_builder_status(c->b);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (!c->linear_out[i])
            c->y[i] = y++;
    c->slot = pass_no_values(c->m, c->slots.count);
    for (uint32_t s = 0; s < c->slots.count; s++)
        c->slot[s] = y++;
    return JOT_OK;
}

// A parameter for each known value that some branch reads: for this branch one of its residuals, or
// nothing.
static void take_known(struct split_cond *c, int k, struct body *w, struct source from,
                       struct ir_type t)
{
    for (uint32_t r = 0; r < c->parts[k].n_residuals; r++)
        if (c->sources[k][r].from == from.from && c->sources[k][r].index == from.index) {
            body_take(w, r);
            return;
        }
    ir_param(&w->b, t);
}

// (operands read, known results read, slots, linear operands) -> linear results
static jot_status linear_branch(struct split_cond *c, int k, uint32_t *out_f)
{
    const struct ir_graph *branch = ir_function(c->m, (uint32_t)c->branches[k]);
    const struct pass_split *part = &c->parts[k];
    struct body w = body_of(c->m, part->linear);
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->uses_operand[i])
            take_known(c, k, &w, (struct source){FROM_OPERAND, i}, ir_type_of(branch, i));
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->uses_result[i])
            take_known(c, k, &w, (struct source){FROM_RESULT, i}, body_result(branch, i));
    for (uint32_t s = 0; s < c->slots.count; s++)
        take_known(c, k, &w, (struct source){FROM_SLOT, s}, c->slots.at[s]);
    for (uint32_t i = part->n_residuals; i < w.f->n_params; i++)
        body_take(&w, i);
    body_run(&w);
    for (uint32_t i = 0, next = 0; i < c->n_out; i++) {
        if (c->linear_out[i])
            body_give_or_zeros(&w, part->linear_out[i], next, body_result(branch, i));
        next += part->linear_out[i];
    }
    return pass_finish(&w.b, out_f);
}

static jot_status build_linear(struct split_cond *c, uint32_t *functions)
{
    for (int k = 0; k < c->n; k++)
        JOT_TRY(linear_branch(c, k, &functions[k]));
    ir_id *in = pass_no_values(c->m, 1 + 2 * c->n_in + c->n_out + c->slots.count);
    in[0] = c->x[0];
    int n = 1 + body_pick(c->uses_operand, true, 0, c->n_in, c->x + 1, in + 1);
    n += body_pick(c->uses_result, true, 0, c->n_out, c->y, in + n);
    for (uint32_t s = 0; s < c->slots.count; s++)
        in[n++] = c->slot[s];
    n += body_pick(c->linear_in, true, 0, c->n_in, c->x + 1, in + n);
    ir_id y = ir_cond(c->b, c->n, functions, n, in);
    if (y == IR_NONE)
        return pass_builder_status(c->b);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->linear_out[i])
            c->y[i] = y++;
    return JOT_OK;
}

static jot_status split_cond(struct split_cond *c)
{
    uint32_t *functions = arena_array(c->m->arena, uint32_t, c->n);
    JOT_TRY(split_branches(c));
    find_sources(c);
    JOT_TRY(build_known(c, functions));
    return body_any(c->linear_out, c->n_out) ? build_linear(c, functions) : JOT_OK;
}

void unzip_cond(struct unzip *u, const struct ir_node *n)
{
    struct ir_module *m = u->b->module;
    struct split_cond c = {.b = u->b,
                           .m = m,
                           .n_in = n->n_in - 1,
                           .n_out = n->n_out,
                           .x = unzip_operands(u, n),
                           .linear_in = unzip_linear_operands(u, n) + 1,
                           .linear_out = body_mask(m, n->n_out),
                           .uses_operand = body_mask(m, n->n_in),
                           .uses_result = body_mask(m, n->n_out),
                           .y = pass_no_values(m, n->n_out)};
    c.n = ir_bodies_of(n, &c.branches);
    c.parts = arena_array(m->arena, struct pass_split, c.n);
    c.sources = arena_array(m->arena, struct source *, c.n);
    u->b->where = n->where;
    jot_status status = split_cond(&c);
    if (status != JOT_OK && u->b->status == JOT_OK)
        ir_fail(u->b, status, "%s", jot_error_message());
    for (uint32_t i = 0; i < n->n_out && status == JOT_OK; i++) {
        u->map[n->out + i] = c.y[i];
        u->linear[n->out + i] = c.linear_out[i];
    }
}
