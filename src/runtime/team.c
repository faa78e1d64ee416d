// SPDX-License-Identifier: Apache-2.0
#include "runtime/team.h"

#include "base/collective.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/collective.h"
#include "runtime/distributed.h"
#include "runtime/fork.h"
#include "runtime/host/parts.h"
#include "runtime/host/pool.h"
#include "runtime/steps.h"
#include "runtime/team_call.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

FORK_KEEPS(FORK_TEAMS, lock, NULL)

// ---- loading ----

static jot_status find_groups(const struct rt_team *t, uint32_t step)
{
    const struct rt_plan *p = team_plan(t);
    const struct rt_step *s = &p->steps[step];
    struct team_collective *g = &t->together[step];
    struct collective *c = &g->c;
    collective_read(p->params + s->param_first, s->param_count, p->mesh_rank, p->params, c);
    g->to_bytes = p->buffers[p->operands[s->operand_first]].bytes;
    g->from_bytes = p->buffers[p->operands[s->operand_first + 1]].bytes;
    g->members = memory_allocate(t->count * sizeof *g->members);
    g->processes = memory_allocate(t->count * sizeof *g->processes);
    if (!g->members || !g->processes)
        return status_out_of_memory();
    uint32_t n = 0;
    for (uint32_t d = 0; d < t->count; d++)
        if (collective_position(c, p->mesh_rank, p->params, d) == 0)
            for (int64_t position = 0; position < c->size; position++)
                g->members[n++] =
                    (uint32_t)collective_member(c, p->mesh_rank, p->params, d, position);
    for (uint32_t i = 0; i < n; i++)
        g->processes[i] = rt_distributed_process_of(t->devices[g->members[i]]);
    return JOT_OK;
}

static jot_status load_team(struct rt_team *t, jot_device *const *devices, const void *object,
                            size_t object_size, const void *plan, size_t plan_size,
                            const struct rt_callback *callbacks, uint32_t callback_count)
{
    t->devices = memory_allocate(t->count * sizeof(jot_device *));
    t->programs = memory_allocate_zeroed(t->count * sizeof *t->programs);
    if (!t->devices || !t->programs)
        return status_out_of_memory();
    memcpy(t->devices, devices, t->count * sizeof(jot_device *));
    t->first_own = t->count;
    for (uint32_t d = t->count; d-- > 0;) {
        JOT_TRY(jot_device_check(devices[d]));
        if (team_is_own(t, d))
            t->first_own = d, t->n_own++;
    }
    if (!t->n_own)
        return status_fail(JOT_ERR_ARGUMENT, "no device of the mesh is of this process");
    for (uint32_t d = t->first_own; d < t->count; d++) {
        if (!team_is_own(t, d))
            continue;
        if (d > t->first_own && team_is_on_host(t))
            t->programs[d] = t->programs[t->first_own];
        else
            JOT_TRY(rt_program_load(devices[d], object, object_size, plan, plan_size, callbacks,
                                    callback_count, &t->programs[d]));
    }
    const struct rt_plan *p = team_plan(t);
    int64_t size = collective_mesh_size(p->mesh_rank, p->params);
    if (size != t->count)
        return status_fail(JOT_ERR_ARGUMENT,
                           "the program is one of %lld devices, and the mesh has %u",
                           (long long)size, t->count);
    t->together = memory_allocate_zeroed((p->step_count + 1) * sizeof *t->together);
    if (!t->together)
        return status_out_of_memory();
    for (uint32_t i = 0; i < p->step_count; i++)
        if (p->steps[i].kind == RT_STEP_COLLECTIVE)
            JOT_TRY(find_groups(t, i));
    return JOT_OK;
}

static struct rt_team_content content_of_plan(const struct rt_plan *p, const void *plan,
                                              size_t plan_size)
{
    struct rt_team_content c = {"", hash128_bytes(plan, plan_size)};
    for (uint32_t i = 0; i < p->step_count && !*c.name; i++)
        c.name = p->text + p->steps[i].name;
    return c;
}

// Whether the other processes of the mesh load the same.
static jot_status agree(const struct rt_team *t, struct rt_team_content content)
{
    int *processes = memory_allocate(t->count * sizeof *processes);
    if (!processes)
        return status_out_of_memory();
    struct rt_group all = {0, processes};
    for (uint32_t d = 0; d < t->count; d++) {
        int process = rt_distributed_process_of(t->devices[d]);
        int64_t i = 0;
        while (i < all.count && processes[i] != process)
            i++;
        if (i == all.count)
            processes[all.count++] = process;
    }
    jot_status status = rt_distributed_agree(&all, content.key, content.name);
    memory_release(processes);
    return status;
}

jot_status rt_team_load(jot_device *const *devices, uint32_t count,
                        const struct rt_team_content *content, const void *object,
                        size_t object_size, const void *plan, size_t plan_size,
                        const struct rt_callback *callbacks, uint32_t callback_count,
                        struct rt_team **out)
{
    struct rt_team *t = memory_allocate_zeroed(sizeof *t);
    if (!t)
        return status_out_of_memory();
    t->count = count;
    jot_status status =
        load_team(t, devices, object, object_size, plan, plan_size, callbacks, callback_count);
    if (status == JOT_OK && t->n_own < count)
        status = agree(t, content ? *content : content_of_plan(team_plan(t), plan, plan_size));
    if (status == JOT_OK)
        *out = t;
    else
        rt_team_release(t);
    return status;
}

const struct rt_plan *rt_team_plan(const struct rt_team *team) { return team_plan(team); }

size_t rt_team_bytes(const struct rt_team *t)
{
    size_t bytes = sizeof *t;
    for (uint32_t d = t->first_own; d < (team_is_on_host(t) ? t->first_own + 1 : t->count); d++)
        bytes += t->programs[d] ? rt_program_bytes(t->programs[d]) : 0;
    return bytes;
}

// ---- calls ----

static void release_call(struct team_call *c)
{
    memory_release(c->instances);
    memory_release(c->at);
    memory_release(c->stepwise);
    memory_release(c->running);
    memory_release(c->to);
    memory_release(c->from);
    memory_release(c->devices);
    memory_release(c->blocks);
    memory_release(c);
}

static jot_status create_call(struct rt_team *t, struct team_call **out)
{
    struct team_call *c = memory_allocate_zeroed(sizeof *c);
    uint32_t n = t->count;
    if (!c)
        return status_out_of_memory();
    c->team = t;
    c->instances = memory_allocate_zeroed(n * sizeof *c->instances);
    c->at = memory_allocate(n * sizeof *c->at);
    c->running = memory_allocate(n * sizeof *c->running);
    c->stepwise = memory_allocate(n * sizeof *c->stepwise);
    c->to = memory_allocate(n * sizeof *c->to);
    c->from = memory_allocate(n * sizeof *c->from);
    c->devices = memory_allocate(n * sizeof(jot_device *));
    c->blocks = memory_allocate(n * sizeof *c->blocks);
    if (c->instances && c->at && c->stepwise && c->running && c->to && c->from && c->devices &&
        c->blocks) {
        *out = c;
        return JOT_OK;
    }
    release_call(c);
    return status_out_of_memory();
}

void rt_team_watch(struct rt_team *t, void (*say)(const char *step))
{
    for (uint32_t d = 0; d < t->count; d++)
        if (t->programs[d])
            rt_program_watch(t->programs[d], say);
}

void rt_team_release(struct rt_team *t)
{
    if (!t)
        return;
    struct team_call *first = atomic_load(&t->first);
    if (first)
        release_call(first);
    while (t->others) {
        struct team_call *c = t->others;
        t->others = c->next;
        release_call(c);
    }
    for (uint32_t i = 0; t->together && i < team_plan(t)->step_count; i++) {
        memory_release(t->together[i].members);
        memory_release(t->together[i].processes);
    }
    memory_release(t->together);
    for (uint32_t d = t->first_own; t->programs && d < t->count; d++)
        if (d == t->first_own || t->programs[d] != t->programs[t->first_own])
            rt_program_release(t->programs[d]);
    memory_release(t->programs);
    memory_release(t->devices);
    memory_release(t);
}

static jot_status take_call(struct rt_team *t, struct team_call **out)
{
    *out = atomic_exchange_explicit(&t->first, NULL, memory_order_acq_rel);
    if (*out)
        return JOT_OK;
    pthread_mutex_lock(&lock);
    *out = t->others;
    if (*out)
        t->others = (*out)->next;
    pthread_mutex_unlock(&lock);
    return *out ? JOT_OK : create_call(t, out);
}

static void end_call(struct team_call *c)
{
    struct rt_team *t = c->team;
    struct team_call *expected = NULL;
    for (uint32_t d = 0; d < t->count; d++) {
        struct rt_program *p = t->programs[d];
        if (!c->instances[d])
            continue;
        rt_instance_put_back(p, c->instances[d]);
        c->instances[d] = NULL;
    }
    if (atomic_compare_exchange_strong_explicit(&t->first, &expected, c, memory_order_acq_rel,
                                                memory_order_acquire))
        return;
    pthread_mutex_lock(&lock);
    c->next = t->others;
    t->others = c;
    pthread_mutex_unlock(&lock);
}

// ---- running ----

// Keeps the first failure of a device, which may be one on a thread of the pool.
static void keep_failure(struct team_call *c, uint32_t d, jot_status status)
{
    bool expected = false;
    if (!atomic_compare_exchange_strong(&c->has_failed, &expected, true))
        return;
    c->status = status;
    snprintf(c->message, sizeof c->message, "%s: %s", c->team->devices[d]->name,
             jot_error_message());
}

// What runs of a device with a stream end with.
static void leave(struct team_call *c)
{
    if (team_is_on_host(c->team) || !c->inside)
        return;
    c->inside->device->type->finish(c->inside);
    c->inside = NULL;
}

static jot_status go_on(struct team_call *c, uint32_t d)
{
    struct rt_team *t = c->team;
    struct rt_program *p = t->programs[d];
    if (c->instances[d]) {
        JOT_TRY(p->device->type->prepare(p, c->instances[d]));
    } else {
        uint32_t n_in = p->plan.input_count, n_out = p->plan.output_count;
        JOT_TRY(rt_instance_take(p, &c->instances[d]));
        rt_instance_patch(p, c->instances[d], c->inputs + (size_t)d * n_in,
                          c->outputs + (size_t)d * n_out);
    }
    if (!team_is_on_host(t)) // where one thread runs them all
        c->inside = p;
    jot_status status = rt_program_go_on(p, c->instances[d], &c->at[d], &c->stepwise[d]);
    leave(c);
    return status;
}

static void run_device(void *ctx, int64_t i, int worker)
{
    struct team_call *c = ctx;
    uint32_t d = c->running[i];
    (void)worker;
    if (atomic_load_explicit(&c->has_failed, memory_order_relaxed))
        return;
    struct rt_pool *outer = rt_host_enter(c->team->devices[d]);
    jot_status status = go_on(c, d);
    rt_host_leave(outer);
    if (status != JOT_OK)
        keep_failure(c, d, status);
}

// Callbacks are called by the thread of the call.
static void run_devices(struct team_call *c)
{
    if (team_is_on_host(c->team) && c->n_running > 1 &&
        !c->team->programs[c->team->first_own]->callback_count)
        rt_pool_run(rt_pool_of_process(), INT_MAX, run_device, c, c->n_running);
    else
        for (uint32_t i = 0; i < c->n_running; i++)
            run_device(c, i, 0);
}

static bool is_at_collective(const struct team_call *c, uint32_t d)
{
    return c->at[d] < team_plan(c->team)->step_count &&
           team_plan(c->team)->steps[c->at[d]].kind == RT_STEP_COLLECTIVE;
}

// The segment with collectives that the device stands before, or NULL.
static const struct rt_segment *segment_at(const struct team_call *c, uint32_t d)
{
    const struct rt_program *p = c->team->programs[d];
    bool has_segments = team_is_own(c->team, d) && p->segments.count && !p->say &&
                        c->at[d] < p->plan.step_count;
    const struct rt_segment *g = has_segments ? p->segments.of_step[c->at[d]] : NULL;
    return g && g->has_collective && c->stepwise[d] != g ? g : NULL;
}

static bool is_waiting(const struct team_call *c, uint32_t d)
{
    return is_at_collective(c, d) || segment_at(c, d);
}

static jot_status meet_all(void *ctx)
{
    struct team_call *c = ctx;
    size_t met = 0;
    c->is_captured = true;
    jot_status status = team_meet_at(c, c->at[0], &met);
    c->is_captured = false;
    return status;
}

// The segment that all devices stand before, whole where that works; step by step where it does not, or
// where they do not all.
static jot_status run_segment(struct team_call *c)
{
    const struct rt_team *t = c->team;
    bool is_done = false;
    uint32_t n = 0, first = t->count;
    for (uint32_t d = t->count; d-- > 0;)
        if (segment_at(c, d))
            n++, first = d;
    if (!n)
        return JOT_OK;
    const struct rt_segment *g = segment_at(c, first);
    for (uint32_t d = 0; d < t->count; d++)
        n -= segment_at(c, d) && c->at[d] != c->at[first];
    if (n == t->count) {
        struct rt_together all = {.count = n,
                                  .programs = t->programs,
                                  .instances = c->instances,
                                  .at = c->at,
                                  .segment = g,
                                  .meet = meet_all,
                                  .ctx = c};
        JOT_TRY(t->devices[0]->type->replay_together(&all, &is_done));
    }
    for (uint32_t d = 0; d < t->count; d++)
        if (is_done)
            c->at[d] = g->end;
        else if (segment_at(c, d))
            c->stepwise[d] = segment_at(c, d);
    return JOT_OK;
}

static bool is_before_segment(const struct team_call *c)
{
    for (uint32_t d = 0; d < c->team->count; d++)
        if (segment_at(c, d))
            return true;
    return false;
}

// All segments and collectives that can be done; lists the devices that go on.  A segment may begin behind a collective,
// or behind another segment.
static jot_status meet(struct team_call *c)
{
    do {
        size_t met = 1;
        JOT_TRY(run_segment(c));
        while (met) {
            met = 0;
            for (uint32_t d = 0; d < c->team->count; d++)
                if (is_at_collective(c, d) && !segment_at(c, d))
                    JOT_TRY(team_meet_at(c, c->at[d], &met));
        }
        c->n_running = 0;
        for (uint32_t d = 0; d < c->team->count; d++)
            if (c->at[d] < team_plan(c->team)->step_count && !is_waiting(c, d))
                c->running[c->n_running++] = d;
    } while (!c->n_running && is_before_segment(c));
    return JOT_OK;
}

// The first device of the group of d that does not wait where d waits.
static uint32_t find_missing(const struct team_call *c, uint32_t d)
{
    const struct team_collective *g = &c->team->together[c->at[d]];
    uint32_t i = 0;
    while (g->members[i] != d)
        i++;
    i -= i % (uint32_t)g->c.size;
    while (!team_is_own(c->team, g->members[i]) || c->at[g->members[i]] == c->at[d])
        i++;
    return g->members[i];
}

// Whether no device waits when none goes on.
static jot_status check_end(const struct team_call *c)
{
    const struct rt_plan *p = team_plan(c->team);
    for (uint32_t d = 0; d < c->team->count; d++) {
        if (is_at_collective(c, d))
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s has come to the collective %s, and %s has not: what decides "
                               "about loops and branches around it is to be the same there",
                               c->team->devices[d]->name, p->text + p->steps[c->at[d]].name,
                               c->team->devices[find_missing(c, d)]->name);
        assert(c->at[d] == p->step_count);
    }
    return JOT_OK;
}

static jot_status run_call(struct team_call *c)
{
    c->n_running = 0;
    for (uint32_t d = 0; d < c->team->count; d++) {
        c->at[d] = team_is_own(c->team, d) ? 0 : team_plan(c->team)->step_count;
        c->stepwise[d] = NULL;
        if (team_is_own(c->team, d))
            c->running[c->n_running++] = d;
    }
    do {
        run_devices(c);
        if (atomic_load(&c->has_failed))
            return status_fail(c->status, "%s", c->message);
        JOT_TRY(meet(c));
    } while (c->n_running);
    return check_end(c);
}

static void abandon(struct rt_frame *frame)
{
    struct team_call *c = (struct team_call *)frame;
    leave(c);
    rt_host_leave(c->outer);
    end_call(c);
}

__attribute__((noinline)) static jot_status run_open(struct team_call *c)
{
    RT_MARK mark = {0};
    rt_host_leave(c->outer = rt_pool_enter(NULL));
    rt_frame_open(&c->frame, &mark, abandon);
    jot_status status = run_call(c);
    rt_frame_close(&mark);
    return status;
}

jot_status rt_team_run(struct rt_team *team, const void *const *inputs, void *const *outputs)
{
    struct team_call *c;
    JOT_TRY(take_call(team, &c));
    c->inputs = inputs;
    c->outputs = outputs;
    atomic_store(&c->has_failed, false);
    jot_status status =
        team->programs[team->first_own]->callback_count ? run_open(c) : run_call(c);
    end_call(c);
    // Others wait for what is not done here.
    if (status != JOT_OK && team->n_own < team->count)
        rt_distributed_fail(status, "%s", jot_error_message());
    return status;
}
