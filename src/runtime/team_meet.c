// SPDX-License-Identifier: Apache-2.0
// What the devices of a group do together when all have come to a collective: by the library of their kind, else by
// the host on copies; groups of several processes through what joins these.
#include "runtime/team_call.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "runtime/distributed.h"
#include "runtime/steps.h"

// How many devices of the group are of this process, where all these wait at the step; else 0.
static int64_t count_ready(const struct team_call *c, const uint32_t *members, int64_t size,
                           uint32_t step)
{
    int64_t n = 0;
    for (int64_t i = 0; i < size; i++) {
        if (!team_is_own(c->team, members[i]))
            continue;
        if (c->at[members[i]] != step)
            return 0;
        n++;
    }
    return n;
}

// Copies on the host of n blocks of devices.
struct copies {
    void **to;
    const void **from;
    char *memory;
};

static jot_status copy_here(const struct team_call *c, const struct team_collective *g,
                            size_t n, struct copies *out)
{
    size_t bytes = g->to_bytes + g->from_bytes;
    out->to = memory_allocate(n * sizeof *out->to);
    out->from = memory_allocate(n * sizeof *out->from);
    out->memory = memory_allocate(n * bytes + 1);
    if (!out->to || !out->from || !out->memory)
        return status_out_of_memory();
    for (size_t i = 0; i < n; i++) {
        char *copy = out->memory + i * bytes;
        out->from[i] = copy;
        out->to[i] = copy + g->from_bytes;
        JOT_TRY(c->devices[i]->type->download(c->devices[i], copy, c->from[i], g->from_bytes));
    }
    return JOT_OK;
}

static jot_status copy_back(const struct team_call *c, const struct team_collective *g,
                            size_t n, const struct copies *copies)
{
    for (size_t i = 0; i < n; i++)
        JOT_TRY(
            c->devices[i]->type->upload(c->devices[i], c->to[i], copies->to[i], g->to_bytes));
    return JOT_OK;
}

static void release_copies(struct copies *copies)
{
    memory_release(copies->memory);
    memory_release(copies->from);
    memory_release(copies->to);
}

// By the host, on copies of the blocks.
static jot_status do_here(const struct team_call *c, const struct team_collective *g,
                          size_t n_groups)
{
    size_t size = (size_t)g->c.size, n = n_groups * size;
    struct copies copies = {0};
    struct rt_blocks *blocks = memory_allocate(n_groups * sizeof *blocks);
    jot_status status = blocks ? copy_here(c, g, n, &copies) : status_out_of_memory();
    if (status == JOT_OK) {
        for (size_t i = 0; i < n_groups; i++)
            blocks[i] = (struct rt_blocks){copies.to + i * size, copies.from + i * size};
        rt_collective_run(&g->c, n_groups, blocks, g->to_bytes, g->from_bytes);
        status = copy_back(c, g, n, &copies);
    }
    release_copies(&copies);
    memory_release(blocks);
    return status;
}

// Of a group that is in several processes.  Its blocks are by position, those elsewhere NULL.
static jot_status do_across(const struct team_call *c, const struct team_collective *g,
                            const struct rt_group *group, const char *what)
{
    const struct rt_device_type *on = c->team->devices[c->team->first_own]->type;
    const struct rt_blocks blocks = {c->to, c->from};
    struct copies copies = {0};
    size_t n = 0;
    if (on->collective) {
        jot_status status =
            on->collective(c->devices, &g->c, 1, &blocks, g->to_bytes, g->from_bytes);
        if (status != JOT_ERR_LIBRARY)
            return status;
    }
    for (int64_t i = 0; i < g->c.size; i++)
        if (!rt_is_elsewhere(c->devices[i])) {
            c->to[n] = c->to[i];
            c->from[n] = c->from[i];
            c->devices[n++] = c->devices[i];
        }
    if (team_is_on_host(c->team))
        return rt_distributed_run(group, what, &g->c, g->to_bytes, g->from_bytes, c->from,
                                  c->to);
    jot_status status = copy_here(c, g, n, &copies);
    if (status == JOT_OK)
        status = rt_distributed_run(group, what, &g->c, g->to_bytes, g->from_bytes, copies.from,
                                    copies.to);
    if (status == JOT_OK)
        status = copy_back(c, g, n, &copies);
    release_copies(&copies);
    return status;
}

static jot_status do_together(const struct team_call *c, const struct team_collective *g,
                              size_t n_groups)
{
    const struct rt_device_type *on = c->devices[0]->type;
    if (team_is_on_host(c->team)) {
        rt_collective_run(&g->c, n_groups, c->blocks, g->to_bytes, g->from_bytes);
        return JOT_OK;
    }
    jot_status status = on->collective ? on->collective(c->devices, &g->c, n_groups, c->blocks,
                                                        g->to_bytes, g->from_bytes)
                                       : JOT_ERR_LIBRARY;
    return status == JOT_ERR_LIBRARY && !c->is_captured ? do_here(c, g, n_groups) : status;
}

static void end_collective(int64_t since, const struct rt_plan *p, const struct rt_step *s)
{
    timeline_end(since,
                 &(struct timeline_event){.kind = "collective",
                                          .name = p->text + s->name,
                                          .where = s->where ? p->text + s->where : NULL});
}

// The blocks of a group, from n on; its devices are at the step after it.  Nothing is here of those elsewhere.
static void take_blocks(struct team_call *c, const uint32_t *members, int64_t size,
                        uint32_t operand, size_t n)
{
    for (int64_t i = 0; i < size; i++, n++) {
        bool is_here = team_is_own(c->team, members[i]);
        void **operands = is_here ? c->instances[members[i]]->operands + operand : NULL;
        c->to[n] = is_here ? operands[0] : NULL;
        c->from[n] = is_here ? operands[1] : NULL;
        c->devices[n] = c->team->devices[members[i]];
        c->at[members[i]] += is_here;
    }
}

jot_status team_meet_at(struct team_call *c, uint32_t step, size_t *out_met)
{
    const struct team_collective *g = &c->team->together[step];
    const struct rt_plan *p = team_plan(c->team);
    const struct rt_step *s = &p->steps[step];
    void (*say)(const char *) = c->team->programs[c->team->first_own]->say;
    size_t n_groups = 0, n = 0;
    for (uint32_t k = 0; k < c->team->count; k += (uint32_t)g->c.size) {
        int64_t n_own = count_ready(c, g->members + k, g->c.size, step);
        if (n_own && n_own < g->c.size) {
            // Groups of several processes come in one order in all of them, each by itself.
            struct rt_group group = {g->c.size, g->processes + k};
            take_blocks(c, g->members + k, g->c.size, s->operand_first, 0);
            if (say)
                say(p->text + s->name);
            int64_t since = timeline_begin();
            JOT_TRY(do_across(c, g, &group, p->text + s->name));
            end_collective(since, p, s);
            ++*out_met;
        }
    }
    for (uint32_t k = 0; k < c->team->count; k += (uint32_t)g->c.size) {
        if (count_ready(c, g->members + k, g->c.size, step) < g->c.size)
            continue;
        c->blocks[n_groups++] = (struct rt_blocks){c->to + n, c->from + n};
        take_blocks(c, g->members + k, g->c.size, s->operand_first, n);
        n += (size_t)g->c.size;
    }
    *out_met += n_groups;
    if (n_groups && say)
        say(p->text + s->name);
    if (!n_groups)
        return JOT_OK;
    int64_t since = timeline_begin();
    jot_status status = do_together(c, g, n_groups);
    end_collective(since, p, s);
    return status;
}
