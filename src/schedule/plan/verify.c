// SPDX-License-Identifier: Apache-2.0
// Replays a program on its memory plan, with poison in place of values.
//
// Loops make enough trips for every turn to come round, and end where they would end; branches take
// each case in one of the rounds, and a while makes no trip in the first.
#include "schedule/plan/plan.h"

#include "schedule/schedule.h"

#define ROUNDS 3
#define MOST_TRIPS 24

struct replay {
    const struct nest_program *p;
    struct strbuf *report;
    int faults;
    uint32_t round;
    int64_t *trip;     // by loop
    bool *is_whole;    // by memory: it holds what was written to it; a row: in this trip
    uint32_t *spoiled; // by memory: when something else was written there last
    uint32_t now;
    VEC(uint32_t) held; // temporaries that hold something
};

static void report(struct replay *r, uint32_t step, uint32_t memory, const char *what)
{
    r->faults++;
    if (r->report)
        strbuf_printf(r->report, "step %u: memory %u %s\n", step, memory, what);
}

// The memory whose turn it is.
static uint32_t turned(const struct replay *r, uint32_t m)
{
    const struct nest_memory *memory = &r->p->memories.at[m];
    while (memory->kind == NEST_TURN) {
        m = memory->of[(memory->index + (uint64_t)r->trip[memory->loop]) % memory->n_of];
        memory = &r->p->memories.at[m];
    }
    return m;
}

// The memory that a view is in.
static uint32_t base_of(const struct replay *r, uint32_t m)
{
    for (m = turned(r, m); r->p->memories.at[m].kind == NEST_ROW;)
        m = turned(r, r->p->memories.at[m].of[0]);
    return m;
}

// Whether memory m, or what it is a row of, holds its value.
static bool is_held(const struct replay *r, uint32_t m)
{
    for (;;) {
        m = turned(r, m);
        if (r->is_whole[m])
            return true;
        if (r->p->memories.at[m].kind != NEST_ROW)
            return r->p->memories.at[m].count == 0;
        m = r->p->memories.at[m].of[0];
    }
}

static void replay_reads(struct replay *r, uint32_t i)
{
    const struct nest_step *t = &r->p->steps.at[i];
    for (uint32_t k = 0; k < t->n_memories; k++)
        if ((!plan_is_written(r->p, t, k) || plan_is_updated(r->p, t, k)) &&
            !is_held(r, t->memories[k]))
            report(r, i, t->memories[k], "is read when it does not hold its value");
}

// Whether operand j may share memory with operand k, which is written.
static bool may_meet(const struct replay *r, const struct nest_step *t, uint32_t j, uint32_t k)
{
    uint32_t a = turned(r, t->memories[j]), b = turned(r, t->memories[k]);
    const struct nest_memory *x = &r->p->memories.at[a], *y = &r->p->memories.at[b];
    bool same = a == b ||
                (x->kind == y->kind && x->kind != NEST_ROW && x->offset == y->offset) ||
                (x->kind == NEST_INPUT && y->kind == NEST_OUTPUT);
    return same && !plan_is_written(r->p, t, j) &&
           plan_step_may_overwrite(r->p, t, t->memories[j], k);
}

// Whether operands j and k are parts of one memory that share nothing.
static bool are_apart(const struct replay *r, const struct nest_step *t, uint32_t j, uint32_t k)
{
    return t->memories[j] == t->memories[k] &&
           !nest_ranges_meet(nest_step_range(r->p, t, j), nest_step_range(r->p, t, k));
}

static void spoil(struct replay *r, uint32_t m)
{
    r->is_whole[m] = false;
    r->spoiled[m] = r->now;
}

// What the write at operand k destroys.
static void replay_write(struct replay *r, uint32_t i, uint32_t k)
{
    const struct nest_step *t = &r->p->steps.at[i];
    uint32_t m = turned(r, t->memories[k]), base = base_of(r, m), kept = 0;
    const struct nest_memory *memory = &r->p->memories.at[base];
    for (uint32_t j = 0; j < t->n_memories; j++) {
        uint32_t other = base_of(r, t->memories[j]);
        if (j != k && (other == base || plan_overlap(r->p, base, other)) &&
            plan_bytes(memory) && !may_meet(r, t, j, k) && !are_apart(r, t, j, k))
            report(r, i, t->memories[j], "is written over while it is read");
    }
    for (uint32_t j = 0; j < r->held.count; j++) {
        uint32_t other = r->held.at[j];
        if (other != base && plan_overlap(r->p, base, other))
            spoil(r, other);
        else
            r->held.at[kept++] = other;
    }
    r->held.count = kept;
    bool is_held = memory->kind != NEST_TEMPORARY;
    for (uint32_t j = 0; !is_held && j < kept; j++)
        is_held = r->held.at[j] == base;
    if (!is_held)
        vec_push(r->p->arena, &r->held, base);
    if (memory->kind == NEST_OUTPUT && r->p->donated && r->p->donated[memory->index] >= 0)
        spoil(r, plan_input_memory(r->p, (uint32_t)r->p->donated[memory->index]));
    r->is_whole[m] = true;
}

static void replay(struct replay *r, uint32_t first, uint32_t end);

static uint64_t least_common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

// Few trips after which all turns of the loop are where they are after all of its trips.
static int64_t trips_of(const struct replay *r, const struct nest_step *t)
{
    uint64_t cycle = 1;
    for (uint32_t m = 0; m < r->p->memories.count; m++) {
        const struct nest_memory *memory = &r->p->memories.at[m];
        if (memory->kind == NEST_TURN && memory->loop == t->loop)
            cycle = least_common_multiple(cycle, memory->n_of);
    }
    if (t->kind == NEST_STEP_WHILE)
        return r->round == 0 ? 0
                             : (int64_t)(cycle < MOST_TRIPS ? cycle + r->round : MOST_TRIPS);
    uint64_t few = cycle + (uint64_t)t->trips % cycle;
    return (uint64_t)t->trips < few ? t->trips : (int64_t)few;
}

// Rows of the loop hold nothing (rows == false), or what they are rows of is whole when they were
// written and nothing else was there since the loop began.
static void replay_rows(struct replay *r, uint32_t loop, bool rows, uint32_t since)
{
    for (uint32_t m = 0; m < r->p->memories.count; m++) {
        const struct nest_memory *memory = &r->p->memories.at[m];
        if (memory->kind != NEST_ROW || memory->loop != loop)
            continue;
        if (rows && r->is_whole[m] && r->spoiled[base_of(r, m)] <= since)
            r->is_whole[turned(r, memory->of[0])] = true;
        r->is_whole[m] = false;
    }
}

static void replay_loop(struct replay *r, uint32_t first, uint32_t end)
{
    const struct nest_step *t = &r->p->steps.at[first];
    int64_t trips = trips_of(r, t);
    uint32_t since = r->now++;
    replay_rows(r, t->loop, false, since);
    for (r->trip[t->loop] = 0; r->trip[t->loop] < trips; r->trip[t->loop]++) {
        if (r->trip[t->loop])
            replay_rows(r, t->loop, false, since);
        replay(r, first + 1, end);
        r->now++;
        if (r->trip[t->loop] + 1 == trips && t->kind == NEST_STEP_LOOP)
            replay_rows(r, t->loop, true, since);
    }
    // The test that ends it.
    for (uint32_t i = first + 1; t->kind == NEST_STEP_WHILE && i < end; i++)
        if (r->p->steps.at[i].kind == NEST_STEP_TEST) {
            replay(r, first + 1, i + 1);
            break;
        } else if (nest_step_opens(&r->p->steps.at[i])) {
            i = nest_step_end(r->p, i);
        }
}

// One of the cases.
static void replay_branch(struct replay *r, uint32_t first, uint32_t end)
{
    uint32_t n = 0, at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = first + 1, k = 0; i < end; i++) {
            const struct nest_step *t = &r->p->steps.at[i];
            if (nest_step_opens(t))
                i = nest_step_end(r->p, i);
            else if (t->kind == NEST_STEP_CASE && pass == 0)
                n++;
            else if (t->kind == NEST_STEP_CASE && k++ == r->round % n)
                at = i + 1;
        }
    uint32_t last = at;
    while (last < end && r->p->steps.at[last].kind != NEST_STEP_CASE)
        last =
            nest_step_opens(&r->p->steps.at[last]) ? nest_step_end(r->p, last) + 1 : last + 1;
    if (n)
        replay(r, at, last);
}

static void replay(struct replay *r, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct nest_step *t = &r->p->steps.at[i];
        replay_reads(r, i);
        for (uint32_t k = 0; k < t->n_memories; k++)
            if (plan_is_written(r->p, t, k))
                replay_write(r, i, k);
        r->now++;
        if (!nest_step_opens(t))
            continue;
        uint32_t last = nest_step_end(r->p, i);
        (t->kind == NEST_STEP_BRANCH ? replay_branch : replay_loop)(r, i, last);
        i = last;
    }
}

int plan_verify(const struct nest_program *p, struct strbuf *text)
{
    struct replay r = {.p = p, .report = text};
    r.trip = arena_array(p->arena, int64_t, p->n_loops + 1);
    r.is_whole = arena_array(p->arena, bool, p->memories.count + 1);
    r.spoiled = arena_array(p->arena, uint32_t, p->memories.count + 1);
    bool is_straight = true;
    for (uint32_t i = 0; i < p->steps.count; i++)
        is_straight &= !nest_step_opens(&p->steps.at[i]);
    for (r.round = 0; r.round < (is_straight ? 1 : ROUNDS) && r.faults == 0; r.round++) {
        r.held.count = 0;
        for (uint32_t i = 0; i < p->memories.count; i++) {
            const struct nest_memory *m = &p->memories.at[i];
            r.is_whole[i] = m->kind == NEST_INPUT || m->kind == NEST_CONSTANT;
            r.spoiled[i] = 0;
            if (m->kind == NEST_TEMPORARY && m->offset + plan_bytes(m) > p->arena_bytes)
                report(&r, 0, i, "ends outside of the arena");
        }
        replay(&r, 0, p->steps.count);
        for (uint32_t i = 0; i < p->memories.count; i++)
            if (p->memories.at[i].kind == NEST_OUTPUT && p->memories.at[i].count &&
                !r.is_whole[i])
                report(&r, p->steps.count, i, "is an output that is not there at the end");
    }
    return r.faults;
}
