// SPDX-License-Identifier: Apache-2.0
// The steps of loops and branches: a body is scheduled like a program, between a step that opens it
// and its end.
//
//     x, y = scan(x0, y0):                  copy x1, x0       copy y1, y0
//         x' = sin y                        loop 0 trips T
//         y' = x + y                            kernel: y' in x, x' in z
//                                           end
//
// Every carry has a slot for what comes in, and one for what goes out when that cannot be
// written over something that nobody reads any more.  Between trips the contents of slots move;
// when slots are more than one the memories go round instead (NEST_TURN), so that a trip copies
// nothing.  Rows of stacked operands and results are views of them (NEST_ROW).
#include "schedule/control/control.h"

#include "ir/control.h"
#include "passes/body.h"
#include "passes/passes.h"
#include "schedule/copies.h"
#include "schedule/order.h"
#include "schedule/plan/plan.h"

#include <stdlib.h>

// The carries of a loop.
struct carries {
    struct schedule *s;
    const struct ir_node *n;
    uint32_t count;
    uint32_t loop;
    bool is_counted; // the number of trips is known
    int64_t trips;
    const uint32_t *start;  // memories of the operands
    const uint32_t *result; // and of the results
    uint32_t *in, *out;     // slots before and after a trip
    uint32_t *from;         // the slot whose content is in slot `in` after the trip
    uint32_t *mover;        // the carry whose slot the content of slot `in` moves to, or NONE
    uint32_t *chain,
        *length; // a carry of the same chain of slots, itself the one that knows how long that is
    uint32_t *carry_of;    // by memory from `in[0]` on: whose `in` it is, or NONE
    struct plan_uses uses; // in the body
    struct schedule_renaming becomes;
    bool *is_gone; // by step of the body
};

static uint32_t *memory_array(struct schedule *s, uint32_t n)
{
    return arena_array(s->program->arena, uint32_t, n + 1);
}

static uint32_t add_temporary(struct schedule *s, jot_dtype d, int64_t count, const char *name)
{
    return schedule_add_memory(
        s,
        (struct nest_memory){.kind = NEST_TEMPORARY, .dtype = d, .count = count, .name = name});
}

static uint32_t add_like(struct schedule *s, uint32_t m, const char *name)
{
    struct nest_memory like = s->program->memories.at[m];
    return add_temporary(s, like.dtype, like.count, name);
}

static void add_marker(struct schedule *s, enum nest_step_kind kind, const char *reason)
{
    schedule_step(s, (struct nest_step){.kind = kind, .reason = reason});
}

static bool is_wanted(const struct schedule *s, ir_id v)
{
    return s->first_demand[v] != NONE || s->is_output[v];
}

// ---- Carries

static struct carries carries_make(struct schedule *s, const struct ir_node *n, int n_consts,
                                   uint32_t count, int64_t trips)
{
    struct carries c = {.s = s, .n = n, .count = count, .loop = s->program->n_loops++};
    c.is_counted = n->op == IR_scan;
    c.trips = trips;
    uint32_t *start = memory_array(s, count), *result = memory_array(s, count);
    c.start = start;
    c.result = result;
    c.in = memory_array(s, count);
    c.out = memory_array(s, count);
    c.from = memory_array(s, count);
    for (uint32_t k = 0; k < count; k++) {
        start[k] = schedule_memory(s, ir_operand(s->g, n, (uint32_t)n_consts + k));
        result[k] = schedule_memory(s, n->out + k);
        c.in[k] = add_like(s, result[k], "carry");
        c.out[k] = add_like(s, result[k], "next");
    }
    return c;
}

// The carry at the head of the chain that k is in.
static uint32_t head_of(const struct carries *c, uint32_t k)
{
    while (c->chain[k] != k)
        k = c->chain[k] = c->chain[c->chain[k]];
    return k;
}

// Lets what is in slot `in` of carry j be in slot `in` of carry k after a trip.  Turns are told what goes
// round, so chains that are long are left in pieces.
static bool pass_on(struct carries *c, uint32_t k, uint32_t j)
{
    uint32_t a = head_of(c, k), b = head_of(c, j);
    if (c->mover[j] != NONE || (a != b && c->length[a] + c->length[b] > COST_TURNS))
        return false;
    c->length[a] += a == b ? 0 : c->length[b];
    c->chain[b] = a;
    c->mover[j] = k;
    c->from[k] = c->in[j];
    return true;
}

// The carry whose slot `in` the memory is, or NONE.
static uint32_t carry_in(const struct carries *c, uint32_t m)
{
    uint32_t first = c->becomes.first;
    return m >= first && m - first < c->becomes.count ? c->carry_of[m - first] : NONE;
}

// The only use of the slot in the body, when that is a copy to it of a slot that no other has.
static bool find_passed(struct carries *c, uint32_t k)
{
    const struct plan_uses *u = &c->uses;
    uint32_t n, i = *plan_uses_of(u, c->out[k], &n);
    const struct nest_step *t = &u->p->steps.at[i];
    if (n != 1 || t->kind != NEST_STEP_COPY || t->memories[0] != c->out[k] ||
        plan_step_of_body(u, NONE, i) != i)
        return false;
    uint32_t j = carry_in(c, t->memories[1]);
    return c->is_gone[i - u->first] = j != NONE && pass_on(c, k, j);
}

// Writes what comes out over what came in, where that is not read any more.
static bool write_over(struct carries *c, uint32_t k, uint32_t j)
{
    struct nest_program *p = c->s->program;
    const struct nest_memory *a = &p->memories.at[c->in[j]], *b = &p->memories.at[c->out[k]];
    if (c->mover[j] != NONE || a->dtype != b->dtype || a->count != b->count ||
        !plan_may_replace(&c->uses, c->in[j], c->out[k]) || !pass_on(c, k, j))
        return false;
    schedule_rename_to(&c->becomes, c->out[k], c->in[j]);
    return true;
}

// The same for what begins as a copy of a carry, over that one: the copy goes.
static bool write_over_copied(struct carries *c, uint32_t k)
{
    uint32_t n;
    const uint32_t *steps = plan_uses_of(&c->uses, c->out[k], &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_step *t = &c->uses.p->steps.at[steps[i]];
        bool is_copy = t->kind == NEST_STEP_COPY && t->memories[0] == c->out[k];
        uint32_t j = is_copy ? carry_in(c, t->memories[1]) : NONE;
        if (j != NONE)
            return write_over(c, k, j);
    }
    return false;
}

// A slot `in` and the step of the body that has to do with it last, or a slot `out` and the one that
// writes it first.
struct slot {
    jot_dtype dtype;
    int64_t count;
    uint32_t step, carry;
};

static struct slot slot_of(const struct carries *c, uint32_t k, bool is_out)
{
    uint32_t m = is_out ? c->out[k] : c->in[k], n, step = is_out ? NONE : 0;
    const struct nest_memory *memory = &c->uses.p->memories.at[m];
    const uint32_t *steps = plan_uses_of(&c->uses, m, &n);
    for (uint32_t i = 0; is_out && i < n && step == NONE; i++)
        if (plan_writes(c->uses.p, steps[i], m))
            step = plan_step_of_body(&c->uses, NONE, steps[i]) + 1;
    if (!is_out && n)
        step = plan_step_of_body(&c->uses, NONE, steps[n - 1]) + 1;
    return (struct slot){memory->dtype, memory->count, step, k};
}

static int compare_types(const struct slot *a, const struct slot *b)
{
    int order = (a->dtype > b->dtype) - (a->dtype < b->dtype);
    return order ? order : (a->count > b->count) - (a->count < b->count);
}

static int compare_steps(const struct slot *a, const struct slot *b)
{
    int order = compare_types(a, b);
    return order ? order : (a->step > b->step) - (a->step < b->step);
}

static int compare_slots(const void *x, const void *y)
{
    const struct slot *a = x, *b = y;
    int order = compare_steps(a, b);
    return order ? order : (a->carry > b->carry) - (a->carry < b->carry);
}

// Writes what comes out over any slot that is not read any more, in the order of the steps: one that the
// same step reads last, or the one that has been free for the shortest time.
static void write_over_any(struct carries *c, bool *is_found)
{
    struct slot *ins = arena_array(c->s->scratch, struct slot, c->count + 1);
    struct slot *outs = arena_array(c->s->scratch, struct slot, c->count + 1);
    uint32_t *free = arena_array(c->s->scratch, uint32_t, c->count + 1);
    uint32_t n_in = 0, n_out = 0, n_free = 0, next = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        if (c->mover[k] == NONE)
            ins[n_in++] = slot_of(c, k, false);
        if (!is_found[k])
            outs[n_out++] = slot_of(c, k, true);
    }
    qsort(ins, n_in, sizeof *ins, compare_slots);
    qsort(outs, n_out, sizeof *outs, compare_slots);
    for (uint32_t i = 0; i < n_out; i++) {
        const struct slot *out = &outs[i];
        if (i && compare_types(out, &outs[i - 1]) != 0)
            n_free = 0;
        for (; next < n_in && compare_steps(&ins[next], out) < 0; next++)
            if (compare_types(&ins[next], out) == 0)
                free[n_free++] = ins[next].carry;
        for (uint32_t j = next; j < n_in && j < next + COST_DEMANDS && !is_found[out->carry] &&
                                compare_steps(&ins[j], out) == 0;
             j++)
            is_found[out->carry] = write_over(c, out->carry, ins[j].carry);
        while (n_free && c->mover[free[n_free - 1]] != NONE)
            n_free--;
        if (!is_found[out->carry] && n_free)
            is_found[out->carry] = write_over(c, out->carry, free[n_free - 1]);
    }
}

// Finds where the content of each slot comes from.
static void match_slots(struct carries *c, uint32_t first)
{
    struct schedule *s = c->s;
    uint32_t first_memory = c->count ? c->in[0] : s->program->memories.count;
    bool *is_found = arena_array(s->scratch, bool, c->count + 1);
    c->mover = arena_array(s->scratch, uint32_t, c->count + 1);
    c->chain = arena_array(s->scratch, uint32_t, c->count + 1);
    c->length = arena_array(s->scratch, uint32_t, c->count + 1);
    c->uses =
        plan_find_uses(s->scratch, s->program, first, s->program->steps.count, first_memory);
    c->becomes = schedule_rename(s, first_memory);
    c->carry_of = arena_array(s->scratch, uint32_t, c->becomes.count + 1);
    c->is_gone = arena_array(s->scratch, bool, s->program->steps.count - first + 1);
    memset(c->carry_of, 0xff, c->becomes.count * sizeof *c->carry_of);
    for (uint32_t k = 0; k < c->count; k++) {
        c->carry_of[c->in[k] - first_memory] = c->chain[k] = k;
        c->length[k] = 1;
        c->mover[k] = NONE;
        c->from[k] = c->out[k];
    }
    for (uint32_t k = 0; k < c->count; k++)
        is_found[k] = find_passed(c, k);
    for (uint32_t k = 0; k < c->count; k++)
        is_found[k] = is_found[k] || write_over_copied(c, k);
    for (uint32_t k = 0; k < c->count; k++)
        is_found[k] = is_found[k] || write_over(c, k, k);
    write_over_any(c, is_found);
    // What stays where it is does that in the memory of the result.
    for (uint32_t k = 0; k < c->count; k++)
        if (c->from[k] == c->in[k])
            schedule_rename_to(&c->becomes, c->in[k], c->result[k]);
    schedule_replace(s->program, first, c->is_gone, &c->becomes);
}

// Slots whose contents move from each to the next, as memories that go round.  The first slot,
// when it is what a trip makes anew, is given; else all are carries.
static void turn_slots(struct carries *c, uint32_t n, const uint32_t *slot, const uint32_t *of)
{
    struct nest_program *p = c->s->program;
    bool is_chain = of[0] == NONE;
    uint32_t *memory = memory_array(c->s, n);
    // Memory i has the turn of slot s in trip t when i = t - s.
    int64_t trips = c->is_counted ? c->trips % n : 0;
    for (uint32_t s = 0; s < n; s++) {
        uint32_t i = (uint32_t)(trips + n - s) % n;
        bool is_result = c->is_counted && !(is_chain && s == 0);
        memory[i] = is_result ? c->result[of[s]] : add_like(c->s, slot[s], "turn");
    }
    for (uint32_t s = 0; s < n; s++) {
        struct nest_memory *m = &p->memories.at[slot[s]];
        m->kind = NEST_TURN;
        m->loop = c->loop;
        m->index = (n - s) % n;
        m->n_of = n;
        m->of = arena_copy(p->arena, memory, n * sizeof *memory);
    }
}

static void lay_out_slots(struct carries *c)
{
    uint32_t *slot = memory_array(c->s, c->count + 1), *of = memory_array(c->s, c->count + 1);
    bool *is_placed = arena_array(c->s->scratch, bool, c->count + 1);
    // Chains begin with what is made anew and end with what is not passed on; the rest are rings.
    for (int rings = 0; rings < 2; rings++)
        for (uint32_t k = 0; k < c->count; k++) {
            uint32_t n = 0;
            if (is_placed[k] || (!rings && c->from[k] != c->out[k]))
                continue;
            if (c->from[k] == c->in[k]) {
                c->in[k] = c->result[k];
                continue;
            }
            if (!rings) {
                slot[n] = c->out[k];
                of[n++] = NONE;
            }
            for (uint32_t j = k; j != NONE && !is_placed[j]; j = c->mover[j]) {
                is_placed[j] = true;
                slot[n] = c->in[j];
                of[n++] = j;
            }
            turn_slots(c, n, slot, of);
        }
}

// Where carry k is before the first trip.
static uint32_t first_memory(const struct carries *c, uint32_t k)
{
    const struct nest_memory *m = &c->s->program->memories.at[c->in[k]];
    return c->in[k] == c->result[k] ? c->in[k] : m->of[m->index];
}

// Once the body is made from step `first` on: the loop around it, the copies before and after it.
static void close_loop(struct carries *c, struct nest_step loop, uint32_t first)
{
    struct schedule *s = c->s;
    struct nest_program *p = s->program;
    match_slots(c, first);
    lay_out_slots(c);
    add_marker(s, NEST_STEP_END, NULL);
    for (uint32_t k = 0; k < c->count; k++)
        if (c->in[k] != c->result[k] && !c->is_counted)
            schedule_add_copy(s, c->result[k], c->in[k], "how often a carry moved is not known",
                              c->n);
    // The steps before the body go to the end first, and then in front of the body.
    uint32_t body = p->steps.count - first;
    for (uint32_t k = 0; k < c->count; k++)
        schedule_add_copy(s, first_memory(c, k), c->start[k], "a carry starts as its operand",
                          c->n);
    loop.loop = c->loop;
    loop.trips = c->trips;
    schedule_step(s, loop);
    uint32_t before = p->steps.count - first - body;
    struct nest_step *steps =
        arena_copy(s->scratch, p->steps.at + first, (body + before) * sizeof *steps);
    memcpy(p->steps.at + first, steps + body, before * sizeof *steps);
    memcpy(p->steps.at + first + before, steps, body * sizeof *steps);
}

// ---- Loops

static uint32_t add_row(struct schedule *s, uint32_t of, ir_id v, uint32_t loop, bool reverse,
                        int64_t trips)
{
    uint32_t *base = memory_array(s, 1);
    base[0] = of;
    return schedule_add_memory(
        s, (struct nest_memory){.kind = NEST_ROW,
                                .dtype = ir_dtype_of(s->g, v),
                                .count = trips ? value_count(s, v) / trips : 0,
                                .loop = loop,
                                .reverse = reverse,
                                .n_of = 1,
                                .of = base});
}

static void add_scan(struct schedule *s, const struct ir_node *n, const char *reason)
{
    struct ir_scan scan = ir_scan_of(n);
    const struct ir_graph *body = ir_function(s->g->module, scan.body);
    uint32_t n_carry = (uint32_t)scan.n_carry, n_consts = (uint32_t)scan.n_consts;
    struct carries c = carries_make(s, n, scan.n_consts, n_carry, scan.length);
    uint32_t *in = memory_array(s, n->n_in), *out = memory_array(s, n->n_out);
    bool *dies = arena_array(s->scratch, bool, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(s->g, n, i);
        if (i >= n_consts && i < n_consts + n_carry) {
            in[i] = c.in[i - n_consts];
            dies[i] = true;
            continue;
        }
        in[i] = schedule_memory(s, x);
        if (i >= n_consts)
            in[i] = add_row(s, in[i], x, c.loop, scan.reverse, scan.length);
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        ir_id y = n->out + i;
        struct ir_type t = ir_type_of(body, body->outputs.at[i]);
        if (i < n_carry)
            out[i] = c.out[i];
        else if (is_wanted(s, y))
            out[i] = add_row(s, schedule_memory(s, y), y, c.loop, scan.reverse, scan.length);
        else
            out[i] = add_temporary(s, ir_dtype(t), ir_count(s->g->module, t), "unused");
    }
    uint32_t first = s->program->steps.count;
    schedule_body(s, body, dies, in, out);
    close_loop(&c, (struct nest_step){.kind = NEST_STEP_LOOP, .reason = reason}, first);
}

// test(x...) with whether any lane goes on before the lanes that do.
static uint32_t test_of_any(struct ir_module *m, uint32_t test)
{
    struct body w = body_of(m, test);
    body_take_all(&w);
    body_run(&w);
    int64_t axes[IR_MAX_RANK];
    int rank = ir_type_in(&w.b, w.out[0]).rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    ir_output(&w.b, ir_reduce(&w.b, IR_reduce_or, w.out[0], rank, axes));
    body_give(&w, 0);
    return pass_simplify(m, ir_finish_function(&w.b));
}

// body(x...) for the lanes whose flag, one more operand, holds; the others keep their carries.
static uint32_t body_of_lanes(struct ir_module *m, const struct ir_while *l,
                              struct ir_type flags)
{
    struct body w = body_of(m, l->body);
    int64_t axes[IR_MAX_RANK];
    body_take_all(&w);
    ir_id goes_on = ir_param(&w.b, flags);
    body_run(&w);
    for (int i = 0; i < flags.rank; i++)
        axes[i] = i;
    for (uint32_t k = 0; k < w.f->outputs.count; k++) {
        struct ir_type t = body_result(w.f, k);
        ir_id mask = ir_broadcast_in_dim(&w.b, goes_on, t.rank, ir_dims(m, t), axes);
        ir_output(&w.b, ir_select(&w.b, mask, w.out[k], w.in[(uint32_t)l->n_consts + k]));
    }
    return pass_simplify(m, ir_finish_function(&w.b));
}

static void add_while(struct schedule *s, const struct ir_node *n, const char *reason)
{
    struct ir_module *m = s->g->module;
    struct ir_while l = ir_while_of(n);
    struct carries c = carries_make(s, n, l.n_consts, n->n_out, l.max_trips);
    const struct ir_graph *test = ir_function(m, l.test);
    struct ir_type flags = ir_type_of(test, test->outputs.at[0]);
    uint32_t test_f = l.test, body_f = l.body;
    if (flags.rank) {
        test_f = test_of_any(m, l.test);
        body_f = body_of_lanes(m, &l, flags);
    }
    uint32_t *in = memory_array(s, n->n_in + 1), *out = memory_array(s, 2);
    bool *dies = arena_array(s->scratch, bool, n->n_in + 2);
    for (uint32_t i = 0; i < n->n_in; i++) {
        bool is_carry = i >= (uint32_t)l.n_consts;
        in[i] = is_carry ? c.in[i - (uint32_t)l.n_consts]
                         : schedule_memory(s, ir_operand(s->g, n, i));
        dies[i] = is_carry;
    }
    out[0] = add_temporary(s, JOT_BOOL, 1, "any");
    out[1] = in[n->n_in] = add_temporary(s, JOT_BOOL, ir_count(m, flags), "lanes");
    uint32_t first = s->program->steps.count;
    schedule_body(s, ir_function(m, test_f), arena_array(s->scratch, bool, n->n_in + 1), in,
                  out);
    schedule_step(s,
                  (struct nest_step){.kind = NEST_STEP_TEST, .n_memories = 1, .memories = out});
    schedule_body(s, ir_function(m, body_f), dies, in, c.out);
    close_loop(&c, (struct nest_step){.kind = NEST_STEP_WHILE, .reason = reason}, first);
}

// ---- Branches
//
//     y = cond(i, x):  0: at_set(x, j, u)           copy y, x
//                      1: x                         branch i
//                                                       case      kernel: puts u in y
//                                                       case
//                                                   end
//
// An operand that nobody needs afterwards begins every case in the memory of the result; that copy
// goes when the operand is made there.  Where a branch makes something else of it, and cannot over
// it, all cases begin without: it stays where it is, and those that only change it copy it.

struct branches {
    struct schedule *s;
    const struct ir_node *n;
    const ir_id *taken;         // by result: the operand whose memory it has, or IR_NONE
    const uint32_t *taken_from; // its memory
    const uint32_t *in, *out;   // memories of operands but the index, and of results
    bool *is_refused;           // by result: some case does not begin with its operand
};

// Operands that nobody needs after the branch, none for two results.
static const ir_id *find_taken(struct schedule *s, const struct ir_node *n, uint32_t group)
{
    ir_id *taken = arena_array(s->scratch, ir_id, n->n_out + 1);
    for (uint32_t k = 0; k < n->n_out; k++) {
        ir_id x = schedule_overwritten(s->g, n->out + k);
        bool is_taken =
            x != IR_NONE && x != ir_operand(s->g, n, 0) && schedule_ends_with(s, x, group);
        for (uint32_t j = 0; j < k; j++)
            is_taken = is_taken && taken[j] != x;
        taken[k] = is_taken ? x : IR_NONE;
    }
    return taken;
}

static void keep_operand(struct branches *b, uint32_t k, uint32_t to)
{
    if (b->taken[k] != IR_NONE)
        schedule_add_copy(b->s, to, b->taken_from[k], "a branch keeps its operand", b->n);
}

// Slots for the operands that are taken, and for what the branch makes of them.
static void add_slots(struct branches *b, uint32_t *in, uint32_t *out, uint32_t *slot,
                      bool *dies)
{
    const struct ir_node *n = b->n;
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (b->taken[k] == IR_NONE)
            continue;
        slot[k] = add_like(b->s, out[k], "operand");
        out[k] = add_like(b->s, out[k], "result");
        for (uint32_t i = 1; i < n->n_in; i++)
            if (ir_operand(b->s->g, n, i) == b->taken[k]) {
                in[i - 1] = slot[k];
                dies[i - 1] = true;
            }
        keep_operand(b, k, slot[k]);
    }
}

static bool takes_any(const struct branches *b)
{
    for (uint32_t k = 0; k < b->n->n_out; k++)
        if (b->taken[k] != IR_NONE)
            return true;
    return false;
}

// Writes what the case makes over its operands.  Its steps begin with copies, those of the body with
// step `body`; its memories with the first.
static void join_slots(struct branches *b, const struct ir_graph *f, uint32_t begin,
                       uint32_t body, uint32_t first_memory, const uint32_t *slot,
                       const uint32_t *made)
{
    struct schedule *s = b->s;
    struct nest_program *p = s->program;
    struct schedule_renaming becomes = schedule_rename(s, first_memory);
    struct plan_uses uses = plan_find_uses(s->scratch, p, body, p->steps.count, first_memory);
    for (uint32_t k = 0; k < b->n->n_out; k++) {
        if (b->taken[k] == IR_NONE)
            continue;
        uint32_t to = b->out[k]; // of the operand
        if (plan_may_replace(&uses, slot[k], made[k])) {
            schedule_rename_to(&becomes, made[k], slot[k]);
        } else if (schedule_source(f, f->outputs.at[k]) != IR_NONE) {
            schedule_add_copy(s, slot[k], made[k], "a branch reads what it writes over", b->n);
        } else {
            b->is_refused[k] = true;
            to = b->taken_from[k];
            schedule_rename_to(&becomes, made[k], b->out[k]);
        }
        schedule_rename_to(&becomes, slot[k], to);
    }
    schedule_replace(p, begin, arena_array(s->scratch, bool, p->steps.count - begin + 1),
                     &becomes);
}

static void add_case(struct branches *b, const struct ir_graph *f)
{
    struct schedule *s = b->s;
    const struct ir_node *n = b->n;
    uint32_t *in = memory_array(s, n->n_in), *out = memory_array(s, n->n_out);
    uint32_t *slot = memory_array(s, n->n_out);
    bool *dies = arena_array(s->scratch, bool, n->n_in);
    memcpy(in, b->in, (n->n_in - 1) * sizeof *in);
    memcpy(out, b->out, n->n_out * sizeof *out);
    add_marker(s, NEST_STEP_CASE, NULL);
    uint32_t begin = s->program->steps.count;
    uint32_t first_memory = s->program->memories.count;
    add_slots(b, in, out, slot, dies);
    uint32_t body = s->program->steps.count;
    schedule_body(s, f, dies, in, out);
    if (takes_any(b))
        join_slots(b, f, begin, body, first_memory, slot, out);
}

// Leaves the copies before step `branch`, or those in its cases.
static void remove_copies(struct branches *b, uint32_t begin, uint32_t branch)
{
    struct nest_program *p = b->s->program;
    uint32_t first = NONE, count = begin;
    for (uint32_t k = 0; k < b->n->n_out; k++)
        first = b->out[k] < first ? b->out[k] : first;
    uint32_t *result = arena_array(b->s->scratch, uint32_t, p->memories.count - first + 1);
    for (uint32_t k = 0; k < b->n->n_out; k++)
        result[b->out[k] - first] = b->taken[k] == IR_NONE ? 0 : k + 1;
    for (uint32_t i = begin; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        bool is_copy = t->kind == NEST_STEP_COPY && t->memories[0] >= first;
        uint32_t k = is_copy ? result[t->memories[0] - first] : 0;
        bool goes =
            k && t->memories[1] == b->taken_from[k - 1] && (i > branch) != b->is_refused[k - 1];
        if (!goes && count++ != i)
            p->steps.at[count - 1] = *t;
    }
    p->steps.count = count;
}

static void add_cond(struct schedule *s, const struct ir_node *n, uint32_t group,
                     const char *reason)
{
    const int64_t *cases;
    int count = ir_bodies_of(n, &cases);
    uint32_t *in = memory_array(s, n->n_in), *out = memory_array(s, n->n_out);
    uint32_t *taken_from = memory_array(s, n->n_out);
    struct branches b = {.s = s,
                         .n = n,
                         .taken = find_taken(s, n, group),
                         .taken_from = taken_from,
                         .in = in + 1,
                         .out = out,
                         .is_refused = arena_array(s->scratch, bool, n->n_out + 1)};
    uint32_t begin = s->program->steps.count;
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = schedule_memory(s, ir_operand(s->g, n, i));
    for (uint32_t k = 0; k < n->n_out; k++) {
        out[k] = schedule_memory(s, n->out + k);
        if (b.taken[k] != IR_NONE)
            taken_from[k] = schedule_memory(s, b.taken[k]);
        keep_operand(&b, k, out[k]);
    }
    uint32_t branch = s->program->steps.count;
    schedule_step(
        s, (struct nest_step){
               .kind = NEST_STEP_BRANCH, .n_memories = 1, .memories = in, .reason = reason});
    for (int i = 0; i < count; i++)
        add_case(&b, ir_function(s->g->module, (uint32_t)cases[i]));
    add_marker(s, NEST_STEP_END, NULL);
    if (takes_any(&b))
        remove_copies(&b, begin, branch);
}

// "resident, 2 loops"; "resident, not joined: they have different lanes".
static const char *resident_reason(struct schedule *s, const struct ir_node *n)
{
    struct strbuf b = strbuf_make(s->program->arena);
    const char *apart = s->apart[n - s->g->nodes.at];
    uint32_t loops = 0;
    if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL)
        ir_for_each_node (ir_body(s->g, n, 0), m)
            loops += ir_op_class((enum ir_op)m->op) == IR_CLASS_CONTROL;
    strbuf_add(&b, "resident");
    if (loops)
        strbuf_printf(&b, ", %u loops", loops);
    if (apart)
        strbuf_printf(&b, ", not joined: %s", apart);
    return b.text;
}

void schedule_control(struct schedule *s, uint32_t group)
{
    const struct ir_node *n = &s->g->nodes.at[s->groups.at[group].node];
    struct kernel k;
    const char *reason = "asked for";
    bool as_steps = s->options->steps || s->options->separate;
    if (!as_steps && schedule_resident(s, n, &k, &reason)) {
        k.nest->place = ir_where_text(s->g->module, n->where);
        schedule_kernel_step(s, &k, resident_reason(s, n));
    } else if (n->op == IR_scan)
        add_scan(s, n, reason);
    else if (n->op == IR_while)
        add_while(s, n, reason);
    else
        add_cond(s, n, group, reason);
}
