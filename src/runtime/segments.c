// SPDX-License-Identifier: Apache-2.0
#include "runtime/segments.h"

#include "base/memory.h"
#include "base/status.h"

#define NONE UINT32_MAX

// A plan, and for each step whether it is a routine that the device records.
struct steps {
    const struct rt_plan *plan;
    const bool *is_recorded;
};

static bool is_single(const struct steps *all, uint32_t i)
{
    const struct rt_step *s = &all->plan->steps[i];
    return s->kind == RT_STEP_KERNEL || s->kind == RT_STEP_GEMM || s->kind == RT_STEP_COPY ||
           s->kind == RT_STEP_CLEAR || s->kind == RT_STEP_PHASES || all->is_recorded[i];
}

static uint32_t end_of_unit(const struct steps *all, uint32_t i, uint64_t *launches);

// The first step from `at` on that begins no unit.
static uint32_t end_of_units(const struct steps *all, uint32_t at, uint64_t *launches)
{
    for (uint32_t next = at; next != NONE && next < all->plan->step_count;
         next = end_of_unit(all, at, launches))
        at = next;
    return at;
}

static bool is_of_loop(const struct rt_buffer *b, uint32_t loop)
{
    return (b->memory == RT_MEMORY_TURN || b->memory == RT_MEMORY_ROW) && b->loop == loop;
}

static bool uses_loop(const struct rt_plan *plan, const struct rt_step *s, uint32_t loop)
{
    for (uint32_t i = 0; i < s->operand_count; i++)
        if (is_of_loop(&plan->buffers[plan->operands[s->operand_first + i]], loop))
            return true;
    return false;
}

// Whether the loop's operands are where they were after a few trips, and what these are after it
// only copies right behind it read.
static bool find_turns(const struct rt_plan *plan, uint32_t loop, struct rt_while *w)
{
    w->turns = 1;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const struct rt_buffer *b = &plan->buffers[i];
        if (!is_of_loop(b, loop))
            continue;
        if (b->memory == RT_MEMORY_ROW || (w->turns % b->of_count && b->of_count % w->turns))
            return false;
        w->turns = b->of_count > w->turns ? b->of_count : w->turns;
    }
    for (w->end = w->next + 1; w->end < plan->step_count &&
                               plan->steps[w->end].kind == RT_STEP_COPY &&
                               uses_loop(plan, &plan->steps[w->end], loop);)
        w->end++;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if ((i < w->first || i >= w->end) && uses_loop(plan, &plan->steps[i], loop))
            return false;
    return w->turns <= RT_TURNS_MOST;
}

// The loop at i that a test ends and that has no other end.
static bool find_while(const struct steps *all, uint32_t i, struct rt_while *out,
                       uint64_t *launches)
{
    const struct rt_plan *plan = all->plan;
    const struct rt_step *s = &plan->steps[i];
    uint64_t trip = 2;
    if (s->kind != RT_STEP_LOOP || s->total >= 0)
        return false;
    struct rt_while w = {.first = i, .test = end_of_units(all, i + 1, &trip)};
    if (w.test >= plan->step_count || plan->steps[w.test].kind != RT_STEP_JUMP_IFN)
        return false;
    w.next = end_of_units(all, w.test + 1, &trip);
    for (uint32_t k = i; k < w.next && k < plan->step_count; k++)
        if (plan->steps[k].kind ==
            RT_STEP_COLLECTIVE) // whose devices would not see the same test
            return false;
    if (w.next >= plan->step_count || plan->steps[w.next].kind != RT_STEP_NEXT ||
        plan->steps[w.next].index != s->index || plan->steps[w.test].target != w.next + 1 ||
        !find_turns(plan, s->index, &w))
        return false;
    *launches += (w.turns + 1) * trip;
    *out = w;
    return true;
}

// Where the step or the whole loop at i ends, NONE when the host has a part in it.
static uint32_t end_of_unit(const struct steps *all, uint32_t i, uint64_t *launches)
{
    const struct rt_plan *plan = all->plan;
    const struct rt_step *s = &plan->steps[i];
    struct rt_while w;
    uint64_t body = 0;
    if (is_single(all, i)) {
        *launches += 1;
        return i + 1;
    }
    if (find_while(all, i, &w, launches))
        return w.end;
    if (s->kind != RT_STEP_LOOP || s->total < 0)
        return NONE;
    for (uint32_t at = i + 1; at < plan->step_count;) {
        const struct rt_step *t = &plan->steps[at];
        if (t->kind == RT_STEP_NEXT) {
            bool is_whole = t->index == s->index && t->target == i + 1 &&
                            (s->total == 0 || body <= RT_GRAPH_MOST / (uint64_t)s->total);
            *launches += is_whole ? body * (uint64_t)s->total : 0;
            return is_whole ? at + 1 : NONE;
        }
        at = end_of_unit(all, at, &body);
        if (at == NONE)
            return NONE;
    }
    return NONE;
}

static bool moves(const struct rt_plan *plan, const struct rt_segment *g, uint32_t buffer)
{
    const struct rt_buffer *b = &plan->buffers[buffer];
    if (b->memory != RT_MEMORY_ROW && b->memory != RT_MEMORY_TURN)
        return false;
    for (uint32_t i = g->first; i < g->end; i++)
        if ((plan->steps[i].kind == RT_STEP_LOOP || plan->steps[i].kind == RT_STEP_PHASES) &&
            plan->steps[i].index == b->loop)
            return true;
    for (uint32_t i = 0; i < b->of_count; i++)
        if (moves(plan, g, plan->operands[b->of_first + i]))
            return true;
    return false;
}

// Where no call and no loop around the segment puts anything else.
static bool is_fixed(const struct rt_plan *plan, uint32_t operand)
{
    uint32_t memory = plan->buffers[plan->operands[operand]].memory;
    return memory == RT_MEMORY_CONSTANT || memory == RT_MEMORY_ARENA;
}

static jot_status list_operands(const struct rt_plan *plan, struct rt_segment *g)
{
    uint32_t n = plan->operand_count;
    bool *is_read = memory_allocate_zeroed(n + 1);
    g->moved = memory_allocate((n + 1) * sizeof *g->moved);
    g->watched = memory_allocate((n + 1) * sizeof *g->watched);
    if (!is_read || !g->moved || !g->watched) {
        memory_release(is_read);
        return status_out_of_memory();
    }
    for (uint32_t i = g->first; i < g->end; i++)
        for (uint32_t k = 0; k < plan->steps[i].operand_count; k++)
            is_read[plan->steps[i].operand_first + k] = true;
    for (uint32_t i = 0; i < n; i++) {
        if (!moves(plan, g, plan->operands[i]))
            continue;
        const struct rt_buffer *b = &plan->buffers[plan->operands[i]];
        g->moved[g->moved_count++] = i;
        for (uint32_t k = 0; k < b->of_count; k++)
            is_read[b->of_first + k] = true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (is_read[i] && !is_fixed(plan, i) && !moves(plan, g, plan->operands[i]))
            g->watched[g->watched_count++] = i;
    memory_release(is_read);
    return JOT_OK;
}

static jot_status add_segment(struct rt_segments *all, const struct rt_plan *plan,
                              uint32_t first, uint32_t end)
{
    struct rt_segment *g = &all->at[all->count];
    *g = (struct rt_segment){.number = all->count, .first = first, .end = end};
    for (uint32_t i = first; i < end; i++)
        g->has_collective |= plan->steps[i].kind == RT_STEP_COLLECTIVE;
    all->count++;
    all->of_step[first] = g;
    return list_operands(plan, g);
}

jot_status rt_segments_find(const struct rt_plan *plan, const bool *is_recorded, uint32_t least,
                            struct rt_segments *out)
{
    const struct steps all = {plan, is_recorded};
    uint32_t n = plan->step_count;
    out->at = memory_allocate((n + 1) * sizeof *out->at);
    out->of_step = memory_allocate_zeroed((n + 1) * sizeof *out->of_step);
    out->whiles = memory_allocate_zeroed((n + 1) * sizeof *out->whiles);
    if (!out->at || !out->of_step || !out->whiles)
        return status_out_of_memory();
    for (uint32_t i = 0; i < n; i++)
        find_while(&all, i, &out->whiles[i], &(uint64_t){0});
    for (uint32_t i = 0; i < n;) {
        uint64_t launches = 0;
        uint32_t end = i;
        while (end < n && launches <= RT_GRAPH_MOST) {
            uint64_t more = launches;
            uint32_t next = end_of_unit(&all, end, &more);
            if (next == NONE || more > RT_GRAPH_MOST)
                break;
            launches = more;
            end = next;
        }
        if (launches >= least)
            JOT_TRY(add_segment(out, plan, i, end));
        i = end > i ? end : i + 1;
    }
    return JOT_OK;
}

void rt_segments_release(struct rt_segments *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        memory_release(all->at[i].moved);
        memory_release(all->at[i].watched);
    }
    memory_release(all->at);
    memory_release(all->of_step);
    memory_release(all->whiles);
}
