// SPDX-License-Identifier: Apache-2.0
// Copies that need not be made.
//
//     t = f x                 y = f x         when nothing else reads t afterwards or y before
//     y = copy t     becomes
#include "passes/schedule_internal.h"

void schedule_remove_step(struct nest_program *p, uint32_t i)
{
    memmove(&p->steps.at[i], &p->steps.at[i + 1], (--p->steps.count - i) * sizeof *p->steps.at);
}

struct schedule_renaming schedule_rename(struct schedule *s, uint32_t first)
{
    uint32_t n = s->program->memories.count - first;
    return (struct schedule_renaming){first, n, arena_array(s->scratch, uint32_t, n + 1)};
}

// What is in the place of memory m.
static uint32_t renamed(const struct schedule_renaming *r, uint32_t m)
{
    while (m >= r->first && m - r->first < r->count && r->by[m - r->first])
        m = r->by[m - r->first] - 1;
    return m;
}

void schedule_replace(struct nest_program *p, uint32_t first, const bool *is_gone,
                      const struct schedule_renaming *r)
{
    uint32_t count = first;
    for (uint32_t i = first; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        for (uint32_t k = 0; k < t->n_memories; k++)
            ((uint32_t *)(uintptr_t)t->memories)[k] = renamed(r, t->memories[k]);
        bool is_same = t->kind == NEST_STEP_COPY && t->memories[0] == t->memories[1];
        if (!is_same && !is_gone[i - first] && count++ != i)
            p->steps.at[count - 1] = *t;
    }
    p->steps.count = count;
    for (uint32_t i = r->first; i < p->memories.count;
         i++) { // views are made after what they show
        const struct nest_memory *m = &p->memories.at[i];
        for (uint32_t k = 0; nest_memory_is_view(m) && k < m->n_of; k++)
            ((uint32_t *)(uintptr_t)m->of)[k] = renamed(r, m->of[k]);
    }
}

// The first and the last step, counted from 1, in which a memory is shown; 0: there is none.
struct use {
    uint32_t first, last;
};

static void add_use(const struct nest_program *p, struct use *use, uint32_t m, struct use u)
{
    const struct nest_memory *memory = &p->memories.at[m];
    if (!use[m].first || u.first < use[m].first)
        use[m].first = u.first;
    if (u.last > use[m].last)
        use[m].last = u.last;
    for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++)
        add_use(p, use, memory->of[i], u);
}

void schedule_forward_copies(struct schedule *s, uint32_t first, uint32_t first_memory)
{
    struct nest_program *p = s->program;
    struct arena_mark mark = arena_mark(s->scratch);
    struct use *use = arena_array(s->scratch, struct use, p->memories.count + 1);
    struct schedule_renaming becomes = schedule_rename(s, first_memory);
    bool *is_gone = arena_array(s->scratch, bool, p->steps.count - first + 1), any = false;
    for (uint32_t i = first; i < p->steps.count; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            add_use(p, use, p->steps.at[i].memories[k], (struct use){i + 1, i + 1});
    for (uint32_t i = first; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (nest_step_opens(t)) {
            i = nest_step_end(p, i);
            continue;
        }
        if (t->kind != NEST_STEP_COPY)
            continue;
        uint32_t to = renamed(&becomes, t->memories[0]),
                 from = renamed(&becomes, t->memories[1]);
        if (from < first_memory || p->memories.at[from].place != NEST_TEMPORARY ||
            use[to].first <= i || use[from].last > i + 1)
            continue;
        add_use(p, use, to, use[from]);
        schedule_rename_to(&becomes, from, to);
        is_gone[i - first] = any = true;
    }
    if (any)
        schedule_replace(p, first, is_gone, &becomes);
    arena_rewind(s->scratch, mark);
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
