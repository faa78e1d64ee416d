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
#include "passes/derive/unzip.h"

#include "base/hash.h"
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

// Shared residuals of a type, and how many of them the branch at hand has taken, from the first on.
struct kind {
    struct ir_type type;
    uint32_t taken;
    VEC(uint32_t) slots;
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
    VEC(struct kind) kinds;           //
    struct hash_table kind_table;     // by type
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

// By value of the known part of branch k: the first result that has it, of those that are known in all
// branches, or IR_NONE.
static uint32_t *known_results(const struct split_cond *c, int k)
{
    const struct ir_graph *known = ir_function(c->m, c->parts[k].forward);
    uint32_t *first = pass_no_values(c->m, known->values.count), next = 0;
    for (uint32_t i = 0; i < c->n_out; i++) {
        ir_id v = c->parts[k].linear_out[i] ? IR_NONE : known->outputs.at[next++];
        if (!c->linear_out[i] && first[v] == IR_NONE)
            first[v] = i;
    }
    return first;
}

static struct kind *kind_of(struct split_cond *c, struct ir_type t)
{
    uint64_t h;
    memcpy(&h, &t, sizeof h);
    h = hash_mix(h);
    for (struct hash_probe p = hash_probe(&c->kind_table, h); hash_next(&c->kind_table, &p);)
        if (ir_type_equal(c->kinds.at[p.id].type, t))
            return &c->kinds.at[p.id];
    hash_insert(c->m->arena, &c->kind_table, h, c->kinds.count);
    vec_push(c->m->arena, &c->kinds, (struct kind){.type = t});
    return &c->kinds.at[c->kinds.count - 1];
}

static uint32_t find_slot(struct split_cond *c, struct ir_type t)
{
    struct kind *kind = kind_of(c, t);
    if (kind->taken == kind->slots.count) {
        vec_push(c->m->arena, &kind->slots, c->slots.count);
        vec_push(c->m->arena, &c->slots, t);
    }
    return kind->slots.at[kind->taken++];
}

static struct source find_source(struct split_cond *c, int k, struct pass_residual r,
                                 const uint32_t *results)
{
    const struct ir_graph *known = ir_function(c->m, c->parts[k].forward);
    if (r.from == PASS_RESIDUAL_INPUT) {
        c->uses_operand[r.index] = true;
        return (struct source){FROM_OPERAND, r.index};
    }
    ir_id v = known->outputs.at[r.index];
    if (results[v] != IR_NONE) {
        c->uses_result[results[v]] = true;
        return (struct source){FROM_RESULT, results[v]};
    }
    return (struct source){FROM_SLOT, find_slot(c, ir_type_of(known, v))};
}

static void find_sources(struct split_cond *c)
{
    for (int k = 0; k < c->n; k++) {
        const uint32_t *results = known_results(c, k);
        for (uint32_t i = 0; i < c->kinds.count; i++)
            c->kinds.at[i].taken = 0;
        c->sources[k] = arena_array(c->m->arena, struct source, c->parts[k].n_residuals + 1);
        for (uint32_t r = 0; r < c->parts[k].n_residuals; r++)
            c->sources[k][r] = find_source(c, k, c->parts[k].residuals[r], results);
    }
}

// By what there is of n operands, results or slots: the first residual of branch k from there, or IR_NONE.
static uint32_t *residuals_from(const struct split_cond *c, int k, enum from from, uint32_t n)
{
    uint32_t *residual = pass_no_values(c->m, n);
    for (uint32_t r = c->parts[k].n_residuals; r-- > 0;)
        if (c->sources[k][r].from == from)
            residual[c->sources[k][r].index] = r;
    return residual;
}

// (known operands) -> known results, slots
static jot_status known_branch(struct split_cond *c, int k, uint32_t *out_f)
{
    struct body w = body_of(c->m, c->parts[k].forward);
    body_take_all(&w);
    body_run(&w);
    const uint32_t *residual = residuals_from(c, k, FROM_SLOT, c->slots.count);
    for (uint32_t i = 0, next = 0; i < c->n_out; i++) {
        if (!c->linear_out[i])
            body_give(&w, next);
        next += !c->parts[k].linear_out[i];
    }
    for (uint32_t s = 0; s < c->slots.count; s++) {
        uint32_t r = residual[s];
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

// A parameter for a known value that some branch reads: for this branch one of its residuals, or nothing.
static void take_known(struct body *w, uint32_t residual, struct ir_type t)
{
    if (residual != IR_NONE)
        body_take(w, residual);
    else
        ir_param(&w->b, t);
}

// (operands read, known results read, slots, linear operands) -> linear results
static jot_status linear_branch(struct split_cond *c, int k, uint32_t *out_f)
{
    const struct ir_graph *branch = ir_function(c->m, (uint32_t)c->branches[k]);
    const struct pass_split *part = &c->parts[k];
    struct body w = body_of(c->m, part->linear);
    const uint32_t *residual = residuals_from(c, k, FROM_OPERAND, c->n_in);
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->uses_operand[i])
            take_known(&w, residual[i], ir_type_of(branch, i));
    residual = residuals_from(c, k, FROM_RESULT, c->n_out);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->uses_result[i])
            take_known(&w, residual[i], body_result(branch, i));
    residual = residuals_from(c, k, FROM_SLOT, c->slots.count);
    for (uint32_t s = 0; s < c->slots.count; s++)
        take_known(&w, residual[s], c->slots.at[s]);
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
