// SPDX-License-Identifier: Apache-2.0
// Copies that need not be made.
//
//     t = f x                 y = f x         when nothing else reads t afterwards or y before
//     y = copy t     becomes
//
// and where others read t too, as when sums of a loop begin as the same zeros:
//
//     par { put t = f x }     par { put t = f x   put y = f x }
//     y = copy t           becomes
#include "schedule/copies.h"

#include "schedule/plan/plan.h"

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
        if (from < first_memory || p->memories.at[from].kind != NEST_TEMPORARY ||
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

// ---- Copies that the kernel puts which makes what is copied

// Memories of a kernel that puts copies: each makes it longer.
#define MOST_PUTS 32

// Whether the kernel makes elements one by one, without loops inside of its points.
static bool is_elementwise(const struct nest *n)
{
    nest_for_below (s, n, 0)
        if (!nest_is_scalar(s) && s->kind != NEST_PAR && (s->kind != NEST_PUT || s->op))
            return false;
    return true;
}

// The kernel that puts in a buffer more, its last, what it puts in buffer `from`.
static struct nest *with_second(struct arena *arena, const struct nest *n, nest_id from)
{
    struct nest_builder b = nest_builder_make(arena, n->name);
    struct nest *copy = b.nest;
    const struct nest_buffer *x = &n->buffers.at[from];
    *copy = *nest_copy(arena, n);
    copy->blocks.at = arena_array(arena, struct nest_block, n->blocks.count);
    copy->blocks.capacity = n->blocks.count;
    nest_id second = nest_buffer(&b, x->name, x->dtype, x->count, NEST_OUT);
    for (uint32_t k = 0; k < n->blocks.count; k++)
        nest_for_each (s, n, k) {
            vec_push(arena, &copy->blocks.at[k].statements, nest_id_of(n, s));
            if (s->kind != NEST_PUT || s->buffer != from)
                continue;
            vec_push(arena, &copy->blocks.at[k].statements, copy->statements.count);
            vec_push(arena, &copy->statements, *s);
            copy->statements.at[copy->statements.count - 1].buffer = second;
        }
    return copy;
}

// A step that has a memory, itself or by a view.
struct touch {
    uint32_t step, memory; // of the step: what has it
    uint32_t
        before; // the entry of the same list before this one, counted from 1; 0: there is none
};

// Who has had each memory so far.
struct touches {
    const struct nest_program *p;
    struct arena *scratch;
    VEC(struct touch) all;
    // By memory that is no view: the last of the list of its touches, and of that of its puts, counted from 1.
    uint32_t *last_touch, *last_put;
    uint32_t first; // the step behind the last one that begins or ends a body
};

// Adds step i, which has memory m, to the lists of what m shows.
static void add_touch(struct touches *r, uint32_t *last, uint32_t shown, uint32_t i, uint32_t m)
{
    const struct nest_memory *memory = &r->p->memories.at[shown];
    if (nest_memory_is_view(memory)) {
        for (uint32_t k = 0; k < memory->n_of; k++)
            add_touch(r, last, memory->of[k], i, m);
        return;
    }
    uint32_t *at = &last[shown];
    while (*at && r->all.at[*at - 1].step > i)
        at = &r->all.at[*at - 1].before;
    struct touch t = {.step = i, .memory = m, .before = *at};
    *at = r->all.count + 1;
    vec_push(r->scratch, &r->all, t);
}

static void add_memory(struct touches *r, uint32_t i, uint32_t m, bool is_put)
{
    add_touch(r, r->last_touch, m, i, m);
    if (is_put)
        add_touch(r, r->last_put, m, i, m);
}

static void add_step(struct touches *r, uint32_t i)
{
    const struct nest_step *t = &r->p->steps.at[i];
    const struct nest *n = t->kind == NEST_STEP_KERNEL ? r->p->nests.at[t->nest] : NULL;
    if (nest_step_opens(t) || t->kind == NEST_STEP_CASE || t->kind == NEST_STEP_END)
        r->first = i + 1;
    for (uint32_t k = 0, b = 0; k < t->n_memories; k++, b++) {
        while (n && n->buffers.at[b].role == NEST_LOCAL)
            b++;
        bool is_put = n ? n->buffers.at[b].role != NEST_IN : plan_is_written(r->p, t, k);
        add_memory(r, i, t->memories[k], is_put);
    }
}

// The last step of the lists of what m shows that has m in the same trip, counted from 1; 0: there is none.
static uint32_t last_step(const struct touches *r, const uint32_t *last, uint32_t shown,
                          uint32_t m)
{
    const struct nest_memory *memory = &r->p->memories.at[shown];
    uint32_t step = 0;
    for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++) {
        uint32_t of = last_step(r, last, memory->of[i], m);
        step = of > step ? of : step;
    }
    for (uint32_t at = last[shown]; at && !step; at = r->all.at[at - 1].before)
        if (nest_memory_meets(r->p, r->all.at[at - 1].memory, m))
            step = r->all.at[at - 1].step + 1;
    return step;
}

// The step that makes what step i copies; NONE where that is no kernel of elements, or where something else has
// the memory of the copy in between.
static uint32_t find_maker(const struct touches *r, uint32_t i)
{
    const struct nest_program *p = r->p;
    uint32_t to = p->steps.at[i].memories[0], from = p->steps.at[i].memories[1];
    uint32_t maker = last_step(r, r->last_put, from, from);
    if (maker <= r->first || maker <= last_step(r, r->last_touch, to, to))
        return NONE;
    const struct nest_step *t = &p->steps.at[--maker];
    bool is_elements = t->kind == NEST_STEP_KERNEL && is_elementwise(p->nests.at[t->nest]);
    return is_elements ? maker : NONE;
}

// The buffer of all elements that a kernel puts in the memory.
static nest_id find_buffer(const struct nest_step *t, const struct nest *n, uint32_t memory)
{
    for (uint32_t k = 0; k < t->n_memories; k++) {
        nest_id b = nest_buffer_of(n, k);
        if (n->buffers.at[b].role == NEST_OUT && t->memories[k] == memory)
            return b;
    }
    return NEST_NONE;
}

// Its number, or that of an equal one that was added.
static uint32_t add_nest(struct nest_program *p, struct hash_table *added, struct nest *n)
{
    uint64_t h = nest_hash(n);
    for (struct hash_probe at = hash_probe(added, h); hash_next(added, &at);)
        if (nest_equal(p->nests.at[at.id], n))
            return at.id;
    hash_insert(p->arena, added, h, p->nests.count);
    vec_push(p->arena, &p->nests, n);
    return p->nests.count - 1;
}

// Whether the kernel that makes what step i copies puts the copy as well from now on.
static bool put_copy(struct nest_program *p, struct touches *r, struct hash_table *added,
                     uint32_t i)
{
    const uint32_t *copied = p->steps.at[i].memories;
    uint32_t maker = find_maker(r, i);
    if (maker == NONE || p->steps.at[maker].n_memories >= MOST_PUTS)
        return false;
    struct nest_step *t = &p->steps.at[maker];
    const struct nest *n = p->nests.at[t->nest];
    nest_id from = find_buffer(t, n, copied[1]);
    if (from == NEST_NONE)
        return false;
    uint32_t *memories = arena_array(p->arena, uint32_t, t->n_memories + 1);
    memcpy(memories, t->memories, t->n_memories * sizeof *memories);
    memories[t->n_memories++] = copied[0];
    t->memories = memories;
    t->nest = add_nest(p, added, with_second(p->arena, n, from));
    add_memory(r, maker, copied[0], true);
    return true;
}

void schedule_put_copies(struct nest_program *p, struct arena *scratch)
{
    struct hash_table added = {0};
    uint32_t *last = arena_array(scratch, uint32_t, 2 * p->memories.count + 1);
    struct touches r = {
        .p = p, .scratch = scratch, .last_touch = last, .last_put = last + p->memories.count};
    uint32_t count = 0, n = p->steps.count;
    for (uint32_t i = 0; i < n; i++) {
        p->steps.at[count] = p->steps.at[i];
        if (p->steps.at[count].kind == NEST_STEP_COPY && put_copy(p, &r, &added, count))
            continue;
        add_step(&r, count++);
    }
    p->steps.count = count;
}

// Numbers memory m, after what it shows.
static void number_memory(struct nest_program *p, uint32_t m, uint32_t *number_of,
                          uint32_t *count)
{
    const struct nest_memory *memory = &p->memories.at[m];
    if (number_of[m] != NONE)
        return;
    for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++)
        number_memory(p, memory->of[i], number_of, count);
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
        if (is_used[m] || p->memories.at[m].kind == NEST_INPUT ||
            p->memories.at[m].kind == NEST_OUTPUT)
            number_memory(p, m, number_of, &count);
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
