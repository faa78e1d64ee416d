// SPDX-License-Identifier: Apache-2.0
// Whether two memories may be one: what the one holds is not read any more once the other is written.
//
// Only the steps that have to do with them are looked at, so many pairs of one body take no longer than the
// uses of all.
#include "schedule/plan/plan.h"

// ---- Uses

static void add_use(struct plan_uses *u, uint32_t m, uint32_t step, uint32_t *last)
{
    const struct nest_memory *memory = &u->p->memories.at[m];
    if (m < u->first_memory || last[m - u->first_memory] == step + 1)
        return;
    last[m - u->first_memory] = step + 1;
    if (u->steps)
        u->steps[u->begin[m - u->first_memory]] = step;
    u->begin[m - u->first_memory]++;
    for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++)
        add_use(u, memory->of[i], step, last);
}

static void add_uses(struct plan_uses *u, struct arena *arena)
{
    uint32_t *last = arena_array(arena, uint32_t, u->p->memories.count - u->first_memory + 1);
    for (uint32_t i = u->first; i < u->end; i++)
        for (uint32_t k = 0; k < u->p->steps.at[i].n_memories; k++)
            add_use(u, u->p->steps.at[i].memories[k], i, last);
}

// Bodies, and cases of branches, are closed by what comes behind them.
static void find_bodies(struct plan_uses *u)
{
    uint32_t open = NEST_NONE;
    for (uint32_t i = u->first; i < u->end; i++) {
        enum nest_step_kind kind = u->p->steps.at[i].kind;
        bool ends = kind == NEST_STEP_END || kind == NEST_STEP_CASE;
        if (ends && u->p->steps.at[open].kind == NEST_STEP_CASE) {
            u->last[open - u->first] = i;
            open = u->around[open - u->first];
        }
        if (kind == NEST_STEP_END) {
            u->last[open - u->first] = i;
            open = u->around[open - u->first];
        }
        u->around[i - u->first] = open;
        if (kind == NEST_STEP_CASE || nest_step_opens(&u->p->steps.at[i]))
            open = i;
    }
}

struct plan_uses plan_find_uses(struct arena *arena, const struct nest_program *p,
                                uint32_t first, uint32_t end, uint32_t first_memory)
{
    struct plan_uses u = {.p = p, .first = first, .end = end, .first_memory = first_memory};
    uint32_t n = p->memories.count - first_memory, total = 0;
    u.begin = arena_array(arena, uint32_t, n + 1);
    u.around = arena_array(arena, uint32_t, end - first + 1);
    u.last = arena_array(arena, uint32_t, end - first + 1);
    find_bodies(&u);
    add_uses(&u, arena);
    for (uint32_t m = 0; m < n; m++) {
        uint32_t count = u.begin[m];
        u.begin[m] = total;
        total += count;
    }
    u.steps = arena_array(arena, uint32_t, total + 1);
    add_uses(&u, arena);
    for (uint32_t m = n; m > 0; m--) // where each has come to is where the next one begins
        u.begin[m] = u.begin[m - 1];
    u.begin[0] = 0;
    return u;
}

const uint32_t *plan_uses_of(const struct plan_uses *u, uint32_t m, uint32_t *n)
{
    uint32_t begin = u->begin[m - u->first_memory];
    *n = u->begin[m - u->first_memory + 1] - begin;
    return u->steps + begin;
}

uint32_t plan_step_of_body(const struct plan_uses *u, uint32_t body, uint32_t i)
{
    while (u->around[i - u->first] != body)
        i = u->around[i - u->first];
    return i;
}

bool plan_writes(const struct nest_program *p, uint32_t i, uint32_t m)
{
    const struct nest_step *t = &p->steps.at[i];
    for (uint32_t k = 0; k < t->n_memories; k++)
        if (nest_memory_shows(p, t->memories[k], m) && plan_is_written(p, t, k))
            return true;
    return false;
}

// ---- One memory for two

struct replacing {
    const struct plan_uses *u;
    uint32_t from, to;
    const uint32_t *reads, *reads_end, *others,
        *others_end; // uses of both that are to be looked at
};

// The next step that has to do with one of them; NEST_NONE behind the last.
static uint32_t next_use(const struct replacing *r)
{
    uint32_t i = r->reads < r->reads_end ? *r->reads : NEST_NONE;
    return r->others < r->others_end && *r->others < i ? *r->others : i;
}

// Looks at that step; whether it reads what is in the one, and whether it writes the other.
static void look(struct replacing *r, uint32_t i, bool *is_read, bool *is_written)
{
    *is_read = r->reads < r->reads_end && *r->reads == i;
    *is_written = false;
    r->reads += *is_read;
    if (r->others < r->others_end && *r->others == i) {
        *is_written = plan_writes(r->u->p, i, r->to);
        r->others++;
    }
}

// Both in one step: whole memories only, read before they are written.
static bool may_write(const struct replacing *r, uint32_t i)
{
    const struct nest_program *p = r->u->p;
    const struct nest_step *t = &p->steps.at[i];
    for (uint32_t k = 0; k < t->n_memories; k++) {
        uint32_t m = t->memories[k];
        if (m != r->from && nest_memory_shows(p, m, r->from))
            return false;
        if (!nest_memory_shows(p, m, r->to) || !plan_is_written(p, t, k))
            continue;
        if (m != r->to || plan_is_updated(p, t, k) || plan_is_part(p, t, k) ||
            !plan_step_may_overwrite(p, t, r->from, k))
            return false;
    }
    return true;
}

static bool may_replace(struct replacing *r, uint32_t body, uint32_t end, bool *written);

// A loop comes back to what it reads.
static bool may_loop(struct replacing *r, uint32_t end, bool *written)
{
    bool any_read = false, any_written = *written, is_read, is_written;
    for (uint32_t i; (i = next_use(r)) < end;) {
        look(r, i, &is_read, &is_written);
        any_read |= is_read;
        any_written |= is_written;
    }
    *written = any_written;
    return !any_read || !any_written;
}

static bool may_branch(struct replacing *r, uint32_t branch, uint32_t end, bool *written)
{
    bool any = *written;
    for (uint32_t i; (i = next_use(r)) < end;) {
        uint32_t at = plan_step_of_body(r->u, branch, i);
        bool here = *written;
        if (!may_replace(r, at, r->u->last[at - r->u->first], &here))
            return false;
        any |= here;
    }
    *written = any;
    return true;
}

static bool may_replace(struct replacing *r, uint32_t body, uint32_t end, bool *written)
{
    for (uint32_t i; (i = next_use(r)) < end;) {
        uint32_t step = plan_step_of_body(r->u, body, i), last = r->u->last[step - r->u->first];
        const struct nest_step *t = &r->u->p->steps.at[step];
        bool is_read = false, is_written = false;
        if (step == i)
            look(r, i, &is_read, &is_written);
        if (is_read && (*written || (is_written && !may_write(r, i))))
            return false;
        *written |= is_written;
        if (t->kind == NEST_STEP_BRANCH ? !may_branch(r, step, last, written)
                                        : nest_step_loops(t) && !may_loop(r, last, written))
            return false;
    }
    return true;
}

bool plan_may_replace(const struct plan_uses *u, uint32_t from, uint32_t to)
{
    struct replacing r = {.u = u, .from = from, .to = to};
    uint32_t n;
    bool written = false;
    r.reads = plan_uses_of(u, from, &n);
    r.reads_end = r.reads + n;
    r.others = plan_uses_of(u, to, &n);
    r.others_end = r.others + n;
    return may_replace(&r, NEST_NONE, u->end, &written);
}
