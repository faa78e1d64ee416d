// SPDX-License-Identifier: Apache-2.0
// Copies that need not be made.
//
//     t = f x                 y = f x         when nothing else reads t afterwards or y before
//     y = copy t     becomes
#include "passes/schedule_internal.h"

void schedule_replace_memory(struct nest_program *p, uint32_t first, uint32_t from, uint32_t to)
{
    for (uint32_t i = first; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        for (uint32_t k = 0; k < t->n_memories; k++)
            if (t->memories[k] == from)
                ((uint32_t *)(uintptr_t)t->memories)[k] = to;
    }
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        for (uint32_t k = 0; nest_memory_is_view(m) && k < m->n_of; k++)
            if (m->of[k] == from)
                ((uint32_t *)(uintptr_t)m->of)[k] = to;
    }
}

void schedule_remove_step(struct nest_program *p, uint32_t i)
{
    memmove(&p->steps.at[i], &p->steps.at[i + 1], (--p->steps.count - i) * sizeof *p->steps.at);
}

void schedule_share_memory(struct nest_program *p, uint32_t first, uint32_t from, uint32_t to)
{
    schedule_replace_memory(p, first, from, to);
    for (uint32_t i = first; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (t->kind == NEST_STEP_COPY && t->memories[0] == t->memories[1])
            schedule_remove_step(p, i--);
    }
}

static bool uses(const struct nest_program *p, uint32_t first, uint32_t end, uint32_t m)
{
    for (uint32_t i = first; i < end; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            if (nest_memory_shows(p, p->steps.at[i].memories[k], m))
                return true;
    return false;
}

void schedule_forward_copies(struct schedule *s, uint32_t first, uint32_t first_memory)
{
    struct nest_program *p = s->program;
    for (uint32_t i = first; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (nest_step_opens(t)) {
            i = nest_step_end(p, i);
            continue;
        }
        if (t->kind != NEST_STEP_COPY)
            continue;
        uint32_t to = t->memories[0], from = t->memories[1];
        if (from < first_memory || p->memories.at[from].place != NEST_TEMPORARY ||
            uses(p, first, i, to) || uses(p, i + 1, p->steps.count, from))
            continue;
        schedule_remove_step(p, i);
        schedule_replace_memory(p, first, from, to);
        i--;
    }
}

// Numbers memory m, after what it shows.
static void number(struct nest_program *p, uint32_t m, uint32_t *number_of, uint32_t *count)
{
    const struct nest_memory *memory = &p->memories.at[m];
    if (number_of[m] != NONE)
        return;
    for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++)
        number(p, memory->of[i], number_of, count);
    number_of[m] = (*count)++;
}

void schedule_sort_memories(struct nest_program *p)
{
    uint32_t n = p->memories.count, count = 0;
    uint32_t *number_of = arena_array(p->arena, uint32_t, n + 1);
    bool *is_used = arena_array(p->arena, bool, n + 1);
    struct nest_memory *sorted = arena_array(p->arena, struct nest_memory, n + 1);
    memset(number_of, 0xff, n * sizeof *number_of);
    for (uint32_t i = 0; i < p->steps.count; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            is_used[p->steps.at[i].memories[k]] = true;
    for (uint32_t m = 0; m < n; m++)
        if (is_used[m] || p->memories.at[m].place == NEST_INPUT ||
            p->memories.at[m].place == NEST_OUTPUT)
            number(p, m, number_of, &count);
    for (uint32_t m = 0; m < n; m++) {
        if (number_of[m] == NONE)
            continue;
        struct nest_memory *to = &sorted[number_of[m]];
        *to = p->memories.at[m];
        for (uint32_t i = 0; nest_memory_is_view(to) && i < to->n_of; i++)
            ((uint32_t *)(uintptr_t)to->of)[i] = number_of[to->of[i]];
    }
    if (count)
        memcpy(p->memories.at, sorted, count * sizeof *sorted);
    p->memories.count = count;
    for (uint32_t i = 0; i < p->steps.count; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++) {
            uint32_t *m = &((uint32_t *)(uintptr_t)p->steps.at[i].memories)[k];
            *m = number_of[*m];
        }
}
