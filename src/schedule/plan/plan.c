// SPDX-License-Identifier: Apache-2.0
// Where the values of a program live.
//
// Temporaries share one arena: each gets the smallest gap that holds it, from the step that writes
// it to the last that reads it, and through all of a loop when it is needed from trip to trip.  What runs
// beside a collective does not take the memory that this reads, nor what runs beside a kernel that of its
// threads.  A kernel may write over an operand that nobody reads later (plan/overwrite.c); so may an output
// take the memory of a donated input.
#include "schedule/plan/plan.h"

#include "ir/cost.h"
#include "schedule/schedule.h"

#include <assert.h>

#define ALIGNMENT 64

static uint64_t room_of(const struct nest_memory *m)
{
    return (plan_bytes(m) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// ---- The arena

struct gap {
    uint64_t offset, bytes;
};

struct planner {
    struct nest_program *p;
    uint32_t *first, *last;  // steps of its life, by memory that is no view
    uint32_t *next_at_first; // memories whose lives begin together, and end
    uint32_t *next_at_last;
    uint32_t *begins, *ends; // the first such, by step
    bool *is_taken;          // its room went to another memory
    VEC(struct gap) gaps;    // by offset
};

struct life {
    uint32_t first, last;
};

static void extend(struct planner *q, uint32_t m, struct life l)
{
    q->first[m] = q->first[m] < l.first ? q->first[m] : l.first;
    q->last[m] = q->last[m] != UINT32_MAX && q->last[m] > l.last ? q->last[m] : l.last;
}

// Memory m is touched at steps in l.  What a view shows is needed in all trips of its loop.
static void touch(struct planner *q, const struct life *loops, uint32_t m, struct life l)
{
    const struct nest_memory *memory = &q->p->memories.at[m];
    if (!nest_memory_is_view(memory)) {
        extend(q, m, l);
        return;
    }
    struct life loop = loops[memory->loop];
    l.first = l.first < loop.first ? l.first : loop.first;
    l.last = l.last > loop.last ? l.last : loop.last;
    for (uint32_t i = 0; i < memory->n_of; i++)
        touch(q, loops, memory->of[i], l);
}

// What is touched in a loop and outside of it is needed in all its trips.
static void cover_loops(struct planner *q, const struct life *loops)
{
    struct nest_program *p = q->p;
    for (uint32_t i = 0; i < p->steps.count; i++)
        for (uint32_t l = 0; p->steps.at[i].kind == NEST_STEP_END && l < p->n_loops; l++) {
            uint32_t a = loops[l].first, e = loops[l].last;
            for (uint32_t m = 0; e == i && m < p->memories.count; m++) {
                if (q->first[m] > a && q->first[m] <= e && q->last[m] > e)
                    q->first[m] = a;
                if (q->last[m] != UINT32_MAX && q->last[m] >= a && q->last[m] < e &&
                    q->first[m] < a)
                    q->last[m] = e;
            }
        }
}

// What a collective reads is needed as long as steps run beside it, where its result cannot take its memory.
static void cover_beside(struct planner *q, const struct life *loops)
{
    struct nest_program *p = q->p;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (t->kind != NEST_STEP_COLLECTIVE)
            continue;
        bool is_in_place = t->params[0] == COLLECTIVE_ALL_REDUCE && !t->ranges &&
                           p->memories.at[t->memories[0]].kind == NEST_TEMPORARY;
        if (!is_in_place)
            touch(q, loops, t->memories[1], (struct life){i, plan_beside_end(p, i) - 1});
    }
}

// Of kernels that may run at once the threads have memory apart, where that is not much.
static void cover_work(struct planner *q, const struct life *loops)
{
    struct nest_program *p = q->p;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        for (uint32_t k = 0; t->kind == NEST_STEP_KERNEL && k < t->n_memories; k++)
            if (plan_is_work(p, t, k) &&
                plan_bytes(&p->memories.at[t->memories[k]]) <= COST_WORK_APART)
                touch(q, loops, t->memories[k], (struct life){i, plan_kernel_end(p, i) - 1});
    }
}

static void find_lives(struct planner *q, bool runs_beside)
{
    struct nest_program *p = q->p;
    struct arena *arena = p->arena;
    struct life *loops = arena_array(arena, struct life, p->n_loops + 1);
    uint32_t n = p->memories.count, n_steps = p->steps.count;
    uint32_t **all[] = {&q->first, &q->last, &q->next_at_first, &q->next_at_last};
    for (int i = 0; i < 4; i++) {
        *all[i] = arena_array(arena, uint32_t, n + 1);
        memset(*all[i], 0xff, n * sizeof(uint32_t));
    }
    q->begins = arena_array(arena, uint32_t, n_steps + 1);
    q->ends = arena_array(arena, uint32_t, n_steps + 1);
    memset(q->begins, 0xff, n_steps * sizeof(uint32_t));
    memset(q->ends, 0xff, n_steps * sizeof(uint32_t));
    for (uint32_t i = 0; i < n_steps; i++)
        if (nest_step_loops(&p->steps.at[i]))
            loops[p->steps.at[i].loop] = (struct life){i, nest_step_end(p, i)};
    for (uint32_t i = 0; i < n_steps; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            touch(q, loops, p->steps.at[i].memories[k], (struct life){i, i});
    if (runs_beside)
        cover_beside(q, loops);
    cover_work(q, loops);
    cover_loops(q, loops);
    for (uint32_t m = n; m-- > 0;) {
        if (q->first[m] == UINT32_MAX)
            continue;
        q->next_at_first[m] = q->begins[q->first[m]];
        q->begins[q->first[m]] = m;
        q->next_at_last[m] = q->ends[q->last[m]];
        q->ends[q->last[m]] = m;
    }
}

static uint64_t take_room(struct planner *q, uint64_t bytes)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < q->gaps.count; i++)
        if (q->gaps.at[i].bytes >= bytes &&
            (best == UINT32_MAX || q->gaps.at[i].bytes < q->gaps.at[best].bytes))
            best = i;
    if (best != UINT32_MAX) {
        uint64_t offset = q->gaps.at[best].offset;
        q->gaps.at[best].offset += bytes;
        q->gaps.at[best].bytes -= bytes;
        return offset;
    }
    // A gap at the end grows.
    uint64_t offset = q->p->arena_bytes;
    if (q->gaps.count) {
        struct gap *g = &vec_last(&q->gaps);
        if (g->offset + g->bytes == offset) {
            offset = g->offset;
            q->gaps.count--;
        }
    }
    q->p->arena_bytes = offset + bytes;
    return offset;
}

static void give_room(struct planner *q, uint64_t offset, uint64_t bytes)
{
    assert(offset + bytes <= q->p->arena_bytes);
    uint32_t i = q->gaps.count;
    if (bytes == 0)
        return;
    vec_push(q->p->arena, &q->gaps, (struct gap){offset, bytes});
    for (; i > 0 && q->gaps.at[i - 1].offset > offset; i--)
        q->gaps.at[i] = q->gaps.at[i - 1];
    q->gaps.at[i] = (struct gap){offset, bytes};
    uint32_t kept = 0;
    for (uint32_t k = 0; k < q->gaps.count; k++) {
        struct gap g = q->gaps.at[k];
        if (g.bytes == 0)
            continue;
        if (kept && q->gaps.at[kept - 1].offset + q->gaps.at[kept - 1].bytes == g.offset)
            q->gaps.at[kept - 1].bytes += g.bytes;
        else
            q->gaps.at[kept++] = g;
    }
    q->gaps.count = kept;
}

// An operand that ends with the step and whose memory the result m may take.
static uint32_t find_dying(struct planner *q, uint32_t step, uint32_t result)
{
    const struct nest_step *t = &q->p->steps.at[step];
    uint32_t operand = 0;
    while (operand < t->n_memories && t->memories[operand] != result)
        operand++;
    if (operand == t->n_memories || !plan_is_written(q->p, t, operand))
        return UINT32_MAX;
    for (uint32_t i = 0; i < t->n_memories; i++) {
        uint32_t m = t->memories[i];
        const struct nest_memory *from = &q->p->memories.at[m];
        if (from->kind == NEST_TEMPORARY && q->last[m] == step && !q->is_taken[m] &&
            plan_bytes(from) == plan_bytes(&q->p->memories.at[result]) &&
            !plan_is_written(q->p, t, i) && plan_step_may_overwrite(q->p, t, m, operand))
            return m;
    }
    return UINT32_MAX;
}

static void begin_lives(struct planner *q, uint32_t step)
{
    for (uint32_t m = q->begins[step]; m != UINT32_MAX; m = q->next_at_first[m]) {
        struct nest_memory *memory = &q->p->memories.at[m];
        if (memory->kind != NEST_TEMPORARY)
            continue;
        uint32_t dying = find_dying(q, step, m);
        if (dying != UINT32_MAX) {
            memory->offset = q->p->memories.at[dying].offset;
            q->is_taken[dying] = true;
        } else {
            memory->offset = take_room(q, room_of(memory));
        }
    }
}

static void end_lives(struct planner *q, uint32_t step)
{
    for (uint32_t m = q->ends[step]; m != UINT32_MAX; m = q->next_at_last[m]) {
        const struct nest_memory *memory = &q->p->memories.at[m];
        if (memory->kind != NEST_TEMPORARY || q->is_taken[m])
            continue;
        q->is_taken[m] = true;
        give_room(q, memory->offset, room_of(memory));
    }
}

static void lay_out_constants(struct nest_program *p)
{
    for (uint32_t i = 0; i < p->memories.count; i++) {
        struct nest_memory *m = &p->memories.at[i];
        if (m->kind != NEST_CONSTANT)
            continue;
        m->offset = p->constant_bytes;
        p->constant_bytes += room_of(m);
    }
}

// ---- Donation

uint32_t plan_input_memory(const struct nest_program *p, uint32_t input)
{
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].kind == NEST_INPUT && p->memories.at[i].index == input)
            return i;
    return UINT32_MAX;
}

// Whether the output may be written to the memory of the input.
static bool may_donate(const struct planner *q, const struct plan_uses *uses, uint32_t input,
                       uint32_t output)
{
    const struct nest_program *p = q->p;
    return q->first[output] != UINT32_MAX &&
           plan_bytes(&p->memories.at[input]) == plan_bytes(&p->memories.at[output]) &&
           plan_may_replace(uses, input, output);
}

static void give_donated(struct planner *q, const bool *donated)
{
    struct nest_program *p = q->p;
    bool *is_used = arena_array(p->arena, bool, p->n_inputs + 1);
    p->donated = arena_array(p->arena, int32_t, p->n_outputs + 1);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->donated[i] = -1;
    if (!donated)
        return;
    struct plan_uses uses = plan_find_uses(p->arena, p, 0, p->steps.count, 0);
    for (uint32_t m = 0; m < p->memories.count; m++) {
        if (p->memories.at[m].kind != NEST_OUTPUT || p->memories.at[m].count == 0)
            continue;
        for (uint32_t i = 0; i < p->n_inputs; i++)
            if (donated[i] && !is_used[i] && may_donate(q, &uses, plan_input_memory(p, i), m)) {
                p->donated[p->memories.at[m].index] = (int32_t)i;
                is_used[i] = true;
                break;
            }
    }
}

void plan_memory(struct nest_program *p, const bool *donated, bool runs_beside)
{
    struct planner q = {.p = p};
    q.is_taken = arena_array(p->arena, bool, p->memories.count);
    p->is_planned = false;
    p->arena_bytes = p->constant_bytes = 0;
    find_lives(&q, runs_beside);
    p->is_planned = true;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        begin_lives(&q, i);
        end_lives(&q, i);
    }
    lay_out_constants(p);
    give_donated(&q, donated);
}

// Whether the copy is from an input to the output that takes its memory, so that there is none to
// make where the caller is the only one who holds the input.
static bool is_copy_to_itself(const struct nest_program *p, const struct nest_step *t)
{
    const struct nest_memory *to = &p->memories.at[t->memories[0]];
    const struct nest_memory *from = &p->memories.at[t->memories[1]];
    return to->kind == NEST_OUTPUT && from->kind == NEST_INPUT && p->donated &&
           p->donated[to->index] == (int32_t)from->index;
}

void plan_print(struct strbuf *s, const struct nest_program *p)
{
    static const char *const kinds[] = {"input",     "output", "constant",
                                        "temporary", "row",    "turn"};
    strbuf_printf(s, "arena %llu bytes, constants %llu bytes\n",
                  (unsigned long long)p->arena_bytes, (unsigned long long)p->constant_bytes);
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        strbuf_printf(s, "memory %u %s %s: %s[%lld]", i, m->name ? m->name : "", kinds[m->kind],
                      dtype_get(m->dtype)->name, (long long)m->count);
        if (m->kind == NEST_TEMPORARY || m->kind == NEST_CONSTANT)
            strbuf_printf(s, " at %llu", (unsigned long long)m->offset);
        if (nest_memory_is_view(m)) {
            for (uint32_t k = 0; k < m->n_of; k++)
                strbuf_printf(s, "%s %u", k ? "," : " of memory",
                              m->of[(m->index + k) % m->n_of]);
            strbuf_printf(s, " by trips of loop %u", m->loop);
        }
        if (m->kind == NEST_OUTPUT && p->donated && p->donated[m->index] >= 0)
            strbuf_printf(s, " in the memory of input %d", (int)p->donated[m->index]);
        strbuf_add(s, "\n");
    }
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        bool computes = t->kind == NEST_STEP_KERNEL || t->kind == NEST_STEP_GEMM ||
                        t->kind == NEST_STEP_COPY;
        strbuf_printf(s, "step %u:%s%s", i, computes ? "" : " ",
                      computes ? "" : nest_step_name(t->kind));
        for (uint32_t k = 0; k < t->n_memories; k++) {
            strbuf_printf(s, " %s %u", plan_is_written(p, t, k) ? "writes" : "reads",
                          t->memories[k]);
            if (t->ranges)
                strbuf_printf(s, "[%lld:%lld]", (long long)t->ranges[k].first,
                              (long long)(t->ranges[k].first + t->ranges[k].count));
        }
        if (t->kind == NEST_STEP_COPY)
            strbuf_printf(s, ": a copy%s, because %s",
                          is_copy_to_itself(p, t) ? " if others hold the input too" : "",
                          t->reason);
        strbuf_add(s, "\n");
    }
}
