// SPDX-License-Identifier: Apache-2.0
#include "runtime/segments.h"

#include "base/memory.h"
#include "base/status.h"

#define NONE UINT32_MAX

static bool is_single(const struct rt_step *s)
{
    return s->kind == RT_STEP_KERNEL || s->kind == RT_STEP_GEMM || s->kind == RT_STEP_COPY ||
           s->kind == RT_STEP_CLEAR || s->kind == RT_STEP_PHASES;
}

// Where the step or the whole loop at i ends, NONE when the host has a part in it.
static uint32_t end_of_unit(const struct rt_plan *plan, uint32_t i, uint64_t *launches)
{
    const struct rt_step *s = &plan->steps[i];
    uint64_t body = 0;
    if (is_single(s)) {
        *launches += 1;
        return i + 1;
    }
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
        at = end_of_unit(plan, at, &body);
        if (at == NONE)
            return NONE;
    }
    return NONE;
}

static bool moves(const struct rt_plan *plan, const struct rt_segment *g, uint32_t buffer)
{
    const struct rt_buffer *b = &plan->buffers[buffer];
    if (b->place != RT_PLACE_ROW && b->place != RT_PLACE_TURN)
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
    uint32_t place = plan->buffers[plan->operands[operand]].place;
    return place == RT_PLACE_CONSTANT || place == RT_PLACE_ARENA;
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
    all->count++;
    all->of_step[first] = g;
    return list_operands(plan, g);
}

jot_status rt_segments_find(const struct rt_plan *plan, uint32_t least, struct rt_segments *out)
{
    uint32_t n = plan->step_count;
    out->at = memory_allocate((n + 1) * sizeof *out->at);
    out->of_step = memory_allocate_zeroed((n + 1) * sizeof *out->of_step);
    if (!out->at || !out->of_step)
        return status_out_of_memory();
    for (uint32_t i = 0; i < n;) {
        uint64_t launches = 0;
        uint32_t end = i;
        while (end < n && launches <= RT_GRAPH_MOST) {
            uint64_t more = launches;
            uint32_t next = end_of_unit(plan, end, &more);
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
}
