// SPDX-License-Identifier: Apache-2.0
// Routines and collectives take what they read where it is, and put results where they belong.
//
//     kernel: t[i] = x[i + 960]                   collective (r, x[960:1024])
//     collective (r, t)                 becomes
//
//     routine (t)                                 routine (y[64:128])
//     kernel: y[i + 64] = t[i]          becomes
//
// The kernel moves elements that lie side by side, and nothing else of the program knows t; x, or y, is
// left as it is from the one to the other.  Where kernels run beside exchanges, those that put a part of a
// memory have that part alone:
//
//     kernel: y[i + 64] = f(i)  (y)     becomes   kernel: y[i] = f(i)  (y[64:128])
#include "schedule/copies.h"
#include "schedule/internal.h"
#include "schedule/library/library.h"
#include "schedule/plan/plan.h"
#include "schedule/rewrites.h"

#define ALIGNMENT 64 // bytes, which routines may count on in memory of their own (plan.c)

struct ranges {
    struct nest_program *p;
    uint32_t *uses; // by memory: how often a step names it, or a view shows it
};

// What a kernel that does nothing but move elements side by side does.
struct move {
    uint32_t from, to; // memories
    int64_t first_from, first_to, count;
};

static void count_uses(struct ranges *r)
{
    struct nest_program *p = r->p;
    for (uint32_t i = 0; i < p->steps.count; i++)
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++)
            r->uses[p->steps.at[i].memories[k]]++;
    for (uint32_t m = 0; m < p->memories.count; m++)
        for (uint32_t k = 0; k < p->memories.at[m].n_of; k++)
            r->uses[p->memories.at[m].of[k]]++;
}

// One loop with a load and a put, both at the same form but for a number.
static bool read_move(const struct nest_program *p, const struct nest_step *t, struct move *out)
{
    if (t->kind != NEST_STEP_KERNEL || t->n_memories != 2)
        return false;
    const struct nest *n = p->nests.at[t->nest];
    if (n->buffers.count != 2 || n->blocks.count != 2 ||
        n->blocks.at[0].statements.count != 1 || n->blocks.at[1].statements.count != 2)
        return false;
    const struct nest_statement *loop = &n->statements.at[n->blocks.at[0].statements.at[0]];
    const struct nest_statement *load = &n->statements.at[n->blocks.at[1].statements.at[0]];
    const struct nest_statement *put = &n->statements.at[n->blocks.at[1].statements.at[1]];
    if (loop->kind != NEST_PAR || load->kind != NEST_LOAD || put->kind != NEST_PUT || put->op ||
        put->in[0] != load->result || load->guard != NEST_NONE || put->guard != NEST_NONE ||
        load->index.count != loop->n_axes || put->index.count != loop->n_axes)
        return false;
    // Side by side, in the order of the axes that vary the fastest first.
    int64_t count = 1;
    for (uint32_t i = loop->n_axes; i-- > 0;) {
        nest_id axis = loop->axes[i];
        if (nest_index_factor(&load->index, axis) != count ||
            nest_index_factor(&put->index, axis) != count)
            return false;
        count *= n->axes.at[axis].extent;
    }
    *out = (struct move){.from = t->memories[load->buffer],
                         .to = t->memories[put->buffer],
                         .first_from = load->index.constant,
                         .first_to = put->index.constant,
                         .count = count};
    return true;
}

// Whether step t reads its memory k, or puts it, as a routine or collective that takes a range may.
static bool takes_range(const struct nest_program *p, const struct nest_step *t, uint32_t k,
                        int64_t first)
{
    const struct nest_memory *m = &p->memories.at[t->memories[k]];
    return t->kind == NEST_STEP_COLLECTIVE ||
           (t->kind == NEST_STEP_LIBRARY &&
            first * dtype_get(m->dtype)->bytes % ALIGNMENT == 0);
}

static bool is_straight(const struct nest_step *t)
{
    return !nest_step_opens(t) && t->kind != NEST_STEP_END && t->kind != NEST_STEP_CASE &&
           t->kind != NEST_STEP_TEST;
}

// Whether the step reads something of memory m, or with `writes` puts it.
static bool touches(const struct nest_program *p, const struct nest_step *t, uint32_t m,
                    bool writes)
{
    for (uint32_t k = 0; k < t->n_memories; k++)
        if (plan_is_written(p, t, k) == writes && nest_memory_meets(p, t->memories[k], m))
            return true;
    return false;
}

// What the step has in memory m is in memory `of`, from element `first` on.
static void replace(struct nest_program *p, struct nest_step *t, uint32_t m, uint32_t of,
                    int64_t first)
{
    struct nest_range *ranges = arena_array(p->arena, struct nest_range, t->n_memories);
    uint32_t *memories = arena_copy(p->arena, t->memories, t->n_memories * sizeof *memories);
    bool is_all = true;
    for (uint32_t k = 0; k < t->n_memories; k++) {
        ranges[k] = nest_step_range(p, t, k);
        if (memories[k] == m) {
            memories[k] = of;
            ranges[k].first += first;
        }
        is_all &= ranges[k].count == p->memories.at[memories[k]].count;
    }
    t->memories = memories;
    t->ranges = is_all ? NULL : ranges;
}

// The last of the steps behind i that read what it moves, if all may read it where it is.
static uint32_t find_reader(const struct ranges *r, uint32_t i, const struct move *m)
{
    const struct nest_program *p = r->p;
    uint32_t left = r->uses[m->to] - 1, last = NEST_NONE;
    for (uint32_t j = i + 1; left; j++) {
        const struct nest_step *t = &p->steps.at[j];
        if (j == p->steps.count || !is_straight(t) || touches(p, t, m->from, true))
            return NEST_NONE;
        for (uint32_t k = 0; k < t->n_memories; k++) {
            if (t->memories[k] != m->to)
                continue;
            if (plan_is_written(p, t, k) || !takes_range(p, t, k, m->first_from))
                return NEST_NONE;
            left--;
            last = j;
        }
    }
    return last;
}

// The step before i that makes what it moves, if it may put it where it goes.
static uint32_t find_maker(const struct ranges *r, uint32_t i, const struct move *m)
{
    const struct nest_program *p = r->p;
    for (uint32_t j = i; r->uses[m->from] == 2 && j-- > 0;) {
        const struct nest_step *t = &p->steps.at[j];
        if (!is_straight(t) || touches(p, t, m->to, false))
            return NEST_NONE;
        for (uint32_t k = 0; k < t->n_memories; k++)
            if (t->memories[k] == m->from)
                return plan_is_written(p, t, k) && takes_range(p, t, k, m->first_to)
                           ? j
                           : NEST_NONE;
    }
    return NEST_NONE;
}

static bool is_own(const struct ranges *r, uint32_t m, int64_t count)
{
    const struct nest_memory *memory = &r->p->memories.at[m];
    return memory->kind == NEST_TEMPORARY && memory->count == count;
}

// Has others do what the kernel of step i does.
static bool spare(struct ranges *r, uint32_t i)
{
    struct nest_program *p = r->p;
    struct move m;
    if (!read_move(p, &p->steps.at[i], &m))
        return false;
    uint32_t last = is_own(r, m.to, m.count) ? find_reader(r, i, &m) : NEST_NONE;
    uint32_t maker =
        last == NEST_NONE && is_own(r, m.from, m.count) ? find_maker(r, i, &m) : NEST_NONE;
    if (maker != NEST_NONE) {
        replace(p, &p->steps.at[maker], m.from, m.to, m.first_to);
        return true;
    }
    if (last == NEST_NONE)
        return false;
    for (uint32_t j = i + 1; j <= last; j++)
        replace(p, &p->steps.at[j], m.to, m.from, m.first_from);
    r->uses[m.from] += r->uses[m.to] - 2;
    return true;
}

// ---- Parts

// The elements of the buffer that the nest puts are among these; none where that is not known.
static struct nest_range put_range(const struct nest *n, nest_id buffer)
{
    int64_t first = INT64_MAX, end = INT64_MIN;
    nest_for_all (s, n) {
        if (s->buffer != buffer || (s->kind != NEST_PUT && s->kind != NEST_CONTRACT))
            continue;
        if (s->kind != NEST_PUT || nest_index_has_values(&s->index))
            return (struct nest_range){0};
        int64_t low = s->index.constant, high = low + 1;
        for (uint32_t k = 0; k < s->index.count; k++) {
            struct nest_term t = s->index.terms[k];
            int64_t most = t.factor * (n->axes.at[t.id].extent - 1);
            low += most < 0 ? most : 0;
            high += most > 0 ? most : 0;
        }
        first = low < first ? low : first;
        end = high > end ? high : end;
    }
    bool is_known = first >= 0 && first < end && end <= n->buffers.at[buffer].count;
    return is_known ? (struct nest_range){first, end - first} : (struct nest_range){0};
}

// A kernel that puts a part of a memory has that part alone, so that others put theirs at the same time.
static void narrow(struct nest_program *p, uint32_t nest, nest_id buffer, uint32_t operand)
{
    struct nest *n = p->nests.at[nest];
    struct nest_range r = put_range(n, buffer);
    if (r.count == 0)
        return;
    for (uint32_t i = 0; i < n->statements.count; i++)
        if (n->statements.at[i].kind == NEST_PUT && n->statements.at[i].buffer == buffer)
            n->statements.at[i].index.constant -= r.first;
    n->buffers.at[buffer].count = r.count;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        struct nest_step *t = &p->steps.at[i];
        if (t->kind != NEST_STEP_KERNEL || t->nest != nest)
            continue;
        struct nest_range *ranges = arena_array(p->arena, struct nest_range, t->n_memories);
        for (uint32_t k = 0; k < t->n_memories; k++)
            ranges[k] = nest_step_range(p, t, k);
        ranges[operand] = r;
        t->ranges = ranges;
    }
}

void schedule_narrow_parts(struct nest_program *p)
{
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct nest *n = p->nests.at[i];
        for (uint32_t b = 0, k = 0; b < n->buffers.count; b++) {
            if (n->buffers.at[b].role == NEST_PART)
                narrow(p, i, b, k);
            k += n->buffers.at[b].role != NEST_LOCAL;
        }
    }
}

void schedule_ranges(struct nest_program *p, struct arena *scratch)
{
    struct ranges r = {p, arena_array(scratch, uint32_t, p->memories.count + 1)};
    count_uses(&r);
    for (uint32_t i = 0; i < p->steps.count;)
        if (spare(&r, i))
            schedule_remove_step(p, i);
        else
            i++;
    schedule_drop_nests(p);
}
