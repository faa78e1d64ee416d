// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.h"

#include "base/check.h"
#include "base/collective.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "runtime/fork.h"
#include "runtime/host/parts.h"
#include "runtime/host/pool.h"
#include "runtime/steps.h"

#include <pthread.h>
#include <string.h>

size_t rt_operand_bytes(const struct rt_program *p, const struct rt_bound_step *s, uint32_t i)
{
    return p->plan.buffers[p->plan.operands[s->operand_first + i]].bytes;
}

struct rt_routine_call rt_routine_call_of(const struct rt_program *p,
                                          const struct rt_bound_step *s, void *const *operands)
{
    struct rt_routine_call c = {.params = s->params,
                                .param_count = s->param_count,
                                .operand_count = s->operand_count,
                                .read_count = s->index,
                                .operands = operands};
    for (uint32_t i = 0; i < s->operand_count; i++)
        c.bytes[i] = rt_operand_bytes(p, s, i);
    return c;
}

jot_status rt_program_allocate(struct rt_program *p, size_t bytes, const char *what, char **out)
{
    void *block;
    JOT_TRY(p->device->type->allocate(p->device, bytes, what, &block));
    *out = block;
    return JOT_OK;
}

const struct rt_plan *rt_program_plan(const struct rt_program *program)
{
    return &program->plan;
}

size_t rt_program_bytes(const struct rt_program *p)
{
    return sizeof *p + p->code_bytes + p->plan_size + p->plan.constant_bytes +
           p->plan.step_count * sizeof *p->steps +
           atomic_load(&p->instance_count) * p->plan.arena_bytes;
}

// ---- instances ----

// Of the instances of all programs that wait for a second call at the same time.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

FORK_KEEPS(FORK_PROGRAMS, lock, NULL)

static void close_mirror(struct rt_instance *instance)
{
    memory_release(instance->mirror_memory);
    memory_release(instance->mirror);
    instance->mirror_memory = NULL;
    instance->mirror = NULL;
}

static void release_instance(struct rt_program *p, struct rt_instance *instance)
{
    p->device->type->release(p->device, instance->arena, p->plan.arena_bytes);
    p->device->type->forget(p, instance);
    close_mirror(instance);
    memory_release(instance->trips);
    memory_release(instance->operands);
    memory_release(instance);
}

void rt_program_release(struct rt_program *p)
{
    if (!p)
        return;
    struct rt_instance *first = atomic_load(&p->first);
    if (first)
        release_instance(p, first);
    while (p->others) {
        struct rt_instance *instance = p->others;
        p->others = instance->next;
        release_instance(p, instance);
    }
    p->device->type->release(p->device, p->constants, p->plan.constant_bytes);
    p->device->type->unload(p);
    rt_segments_release(&p->segments);
    memory_release(p->callbacks);
    memory_release(p->view_first);
    memory_release(p->views);
    memory_release(p->patches);
    memory_release(p->steps);
    memory_release(p->plan_bytes);
    memory_release(p);
}

void rt_program_watch(struct rt_program *p, void (*say)(const char *step)) { p->say = say; }

static jot_status create_instance(struct rt_program *p, struct rt_instance **out)
{
    struct rt_instance *instance = memory_allocate_zeroed(sizeof *instance);
    if (!instance)
        return status_out_of_memory();
    instance->program = p;
    instance->operands = memory_allocate_zeroed(p->plan.operand_count * sizeof(void *));
    instance->trips = memory_allocate_zeroed((p->plan.loop_count + 1) * sizeof(int64_t));
    uint64_t zeroed = p->plan.zeroed_bytes, bytes = p->plan.arena_bytes;
    jot_status status =
        instance->operands && instance->trips
            ? rt_program_allocate(p, bytes, "temporaries of a program", &instance->arena)
            : status_out_of_memory();
    if (status == JOT_OK && zeroed)
        status = p->device->type->clear(p->device, instance->arena + bytes - zeroed, zeroed);
    if (status != JOT_OK) {
        release_instance(p, instance);
        return status;
    }
    for (uint32_t i = 0; i < p->plan.operand_count; i++) {
        const struct rt_buffer *b = &p->plan.buffers[p->plan.operands[i]];
        if (b->memory == RT_MEMORY_CONSTANT)
            instance->operands[i] = p->constants + b->offset;
        else if (b->memory == RT_MEMORY_ARENA)
            instance->operands[i] = instance->arena + b->offset;
    }
    atomic_fetch_add(&p->instance_count, 1);
    *out = instance;
    return JOT_OK;
}

void rt_instance_put_back(struct rt_program *p, struct rt_instance *instance)
{
    struct rt_instance *expected = NULL;
    if (atomic_compare_exchange_strong_explicit(&p->first, &expected, instance,
                                                memory_order_acq_rel, memory_order_acquire))
        return;
    pthread_mutex_lock(&lock);
    instance->next = p->others;
    p->others = instance;
    pthread_mutex_unlock(&lock);
}

jot_status rt_instance_take(struct rt_program *p, struct rt_instance **out)
{
    struct rt_instance *instance =
        atomic_exchange_explicit(&p->first, NULL, memory_order_acq_rel);
    if (!instance) {
        pthread_mutex_lock(&lock);
        instance = p->others;
        if (instance)
            p->others = instance->next;
        pthread_mutex_unlock(&lock);
    }
    if (!instance)
        JOT_TRY(create_instance(p, &instance));
    jot_status status = p->device->type->prepare(p, instance);
    if (status == JOT_OK)
        *out = instance;
    else
        rt_instance_put_back(p, instance);
    return status;
}

// ---- running ----

static void move_views(const struct rt_program *p, const struct rt_instance *instance,
                       uint32_t loop)
{
    void **operands = instance->operands;
    for (uint32_t i = p->view_first[loop]; i < p->view_first[loop + 1]; i++) {
        const struct rt_view *v = &p->views[i];
        uint64_t trip = (uint64_t)instance->trips[v->loop];
        uint32_t turn = v->count == 1 ? 0 : (uint32_t)((v->index + trip) % v->count);
        operands[v->operand] =
            (char *)operands[v->first + turn] + v->offset + (int64_t)trip * v->stride;
    }
}

void rt_program_turn(const struct rt_program *p, struct rt_instance *instance, uint32_t loop,
                     int64_t trips)
{
    instance->trips[loop] = trips;
    move_views(p, instance, loop);
}

// What an operand of a few bytes holds, which the host has to know.
static jot_status read_operand(const struct rt_program *p, const void *operand, void *to,
                               size_t bytes)
{
    return p->device->type->download(p->device, to, operand, bytes);
}

static jot_status run_switch(const struct rt_program *p, const struct rt_bound_step *s,
                             const void *operand, uint32_t *at)
{
    int32_t index, last = (int32_t)s->param_count - 1;
    JOT_TRY(read_operand(p, operand, &index, sizeof index));
    *at = (uint32_t)s->params[index < 0 ? 0 : index > last ? last : index];
    return JOT_OK;
}

static jot_status run_jump(const struct rt_program *p, const struct rt_bound_step *s,
                           const void *operand, uint32_t *at)
{
    unsigned char flag;
    JOT_TRY(read_operand(p, operand, &flag, 1));
    if ((flag != 0) == (s->kind == RT_STEP_JUMP_IF))
        *at = s->target;
    return JOT_OK;
}

// How many of the operands are read, before those that only hold results.
static uint32_t reads_of(const struct rt_bound_step *s)
{
    return s->kind == RT_STEP_LIBRARY ? s->index : s->operand_count;
}

// Copies of operands that are not on the host, one after the other, each 64-byte aligned.
static jot_status open_mirror(const struct rt_program *p, struct rt_instance *instance,
                              const struct rt_bound_step *s, void *const *operands)
{
    size_t bytes = 64, at = 0;
    for (uint32_t i = 0; i < s->operand_count; i++)
        bytes += (rt_operand_bytes(p, s, i) + 63) & ~(size_t)63;
    close_mirror(instance);
    void **mirror = memory_allocate((s->operand_count + 1) * sizeof(void *));
    char *memory = memory_allocate(bytes);
    instance->mirror = mirror;
    instance->mirror_memory = memory;
    if (!mirror || !memory)
        return status_out_of_memory();
    char *start = memory + (64 - (uintptr_t)memory % 64) % 64;
    for (uint32_t i = 0; i < s->operand_count; i++) {
        mirror[i] = start + at;
        at += (rt_operand_bytes(p, s, i) + 63) & ~(size_t)63;
        if (i < reads_of(s))
            JOT_TRY(read_operand(p, operands[i], mirror[i], rt_operand_bytes(p, s, i)));
    }
    return JOT_OK;
}

// The results of a routine go back.  Which of its operands a callback writes only it knows: what
// nobody may write stays, and the rest goes back.
static jot_status return_operands(const struct rt_program *p, const struct rt_bound_step *s,
                                  void *const *operands, void *const *mirror)
{
    for (uint32_t i = s->kind == RT_STEP_LIBRARY ? s->index : 0; i < s->operand_count; i++) {
        uint32_t memory = p->plan.buffers[p->plan.operands[s->operand_first + i]].memory;
        if (memory != RT_MEMORY_INPUT && memory != RT_MEMORY_CONSTANT)
            JOT_TRY(p->device->type->upload(p->device, operands[i], mirror[i],
                                            rt_operand_bytes(p, s, i)));
    }
    return JOT_OK;
}

static jot_status run_check(const struct rt_bound_step *s, void *const *operands)
{
    struct check c = {.what = s->what,
                      .holds = operands[0],
                      .rank = (int)s->param_count - 1,
                      .dims = s->params + 1,
                      .n_lanes = (int)s->params[0],
                      .n_counts = (int)s->operand_count - 1};
    for (int i = 0; i < c.n_counts; i++)
        c.counts[i] = *(const int64_t *)operands[1 + i];
    return check_all(&c);
}

static jot_status run_here(const struct rt_program *p, const struct rt_bound_step *s,
                           void *const *operands)
{
    if (s->kind == RT_STEP_LIBRARY) {
        struct rt_routine_call c = rt_routine_call_of(p, s, operands);
        size_t scratch = (size_t)s->total;
        if (s->is_native) // the device could not after all
            JOT_TRY(s->routine->bind(&c, &scratch));
        return rt_routine_run(s->routine, &c, scratch);
    }
    if (s->kind == RT_STEP_CHECK)
        return run_check(s, operands);
    return s->callback->call(s->callback->ctx, operands, s->params);
}

// Steps of the host.
static jot_status run_on_host(const struct rt_program *p, struct rt_instance *instance,
                              const struct rt_bound_step *s, void *const *operands)
{
    if (rt_is_host(p->device))
        return run_here(p, s, operands);
    jot_status status = open_mirror(p, instance, s, operands);
    if (status == JOT_OK)
        status = run_here(p, s, instance->mirror);
    if (status == JOT_OK && s->kind != RT_STEP_CHECK)
        status = return_operands(p, s, operands, instance->mirror);
    close_mirror(instance);
    return status;
}

// By the device's form of it; on the host where that does not work.
static jot_status run_routine(const struct rt_program *p, struct rt_instance *instance,
                              const struct rt_bound_step *s, void *const *operands)
{
    jot_status status = p->device->type->routine(p, s, operands);
    return status == JOT_ERR_LIBRARY ? run_on_host(p, instance, s, operands) : status;
}

// The loop whose first step is before *at begins, or is taken down as a whole.
static jot_status run_loop(const struct rt_program *p, struct rt_instance *instance,
                           uint32_t *at)
{
    const struct rt_bound_step *s = &p->steps[*at - 1];
    const struct rt_while *w = p->segments.whiles ? &p->segments.whiles[*at - 1] : NULL;
    bool is_done = false;
    if (w && w->end && !p->say)
        JOT_TRY(p->device->type->take_while(p, instance, w, &is_done));
    if (is_done) {
        *at = w->end;
        return JOT_OK;
    }
    rt_program_turn(p, instance, s->index, 0);
    *at = s->total == 0 ? s->target : *at;
    return JOT_OK;
}

// The name of a step that computes, or NULL.
static const char *step_name(const struct rt_program *p, uint32_t at)
{
    switch ((enum rt_step_kind)p->steps[at].kind) {
    case RT_STEP_KERNEL:
    case RT_STEP_PHASES:
        return p->plan.text + p->plan.steps[at].title;
    case RT_STEP_LIBRARY:
    case RT_STEP_COLLECTIVE:
        return p->plan.text + p->plan.steps[at].name;
    case RT_STEP_GEMM:
        return "product";
    case RT_STEP_COPY:
        return "copy";
    case RT_STEP_CLEAR:
        return "clear";
    case RT_STEP_CALLBACK:
        return "callback";
    default:
        return NULL;
    }
}

// Step *at, and where it goes on.
static jot_status run_step(const struct rt_program *p, struct rt_instance *instance,
                           uint32_t *at)
{
    const struct rt_device_type *on = p->device->type;
    const struct rt_bound_step *s = &p->steps[(*at)++];
    void *const *operands = instance->operands + s->operand_first;
    if (on->begin_step)
        JOT_TRY(on->begin_step(p, instance, s));
    switch ((enum rt_step_kind)s->kind) {
    case RT_STEP_KERNEL:
        JOT_TRY(on->kernel(p, instance, s));
        break;
    case RT_STEP_GEMM:
        JOT_TRY(on->gemm(p, s, operands));
        break;
    case RT_STEP_COPY:
        // A donated input may stay where it is.
        if (operands[0] != operands[1])
            JOT_TRY(on->copy_step(p, s, operands));
        break;
    case RT_STEP_CLEAR:
        JOT_TRY(on->clear(p->device, operands[0], (size_t)s->total));
        break;
    case RT_STEP_JUMP:
        *at = s->target;
        break;
    case RT_STEP_JUMP_IF:
    case RT_STEP_JUMP_IFN:
        JOT_TRY(run_jump(p, s, operands[0], at));
        break;
    case RT_STEP_LOOP:
        return run_loop(p, instance, at);
    case RT_STEP_NEXT:
        // At the end as well: a while that its bound ends leaves carries where they moved.
        rt_program_turn(p, instance, s->index, instance->trips[s->index] + 1);
        *at = instance->trips[s->index] != s->total ? s->target : *at;
        break;
    case RT_STEP_PHASES:
        JOT_TRY(on->phases(p, instance, s));
        move_views(p, instance, s->index);
        break;
    case RT_STEP_SWITCH:
        JOT_TRY(run_switch(p, s, operands[0], at));
        break;
    case RT_STEP_LIBRARY:
    case RT_STEP_CALLBACK:
    case RT_STEP_CHECK:
        if (!s->is_native)
            JOT_TRY(run_on_host(p, instance, s, operands));
        else if (s->kind == RT_STEP_LIBRARY)
            JOT_TRY(run_routine(p, instance, s, operands));
        else
            JOT_TRY(on->raw(p, instance, s));
        break;
    case RT_STEP_COLLECTIVE:
        return status_fail(JOT_ERR_ARGUMENT,
                           "a program of %lld devices that work together runs on all of them",
                           (long long)collective_mesh_size(p->plan.mesh_rank, p->plan.params));
    case RT_STEP_KIND_COUNT:
        break;
    }
    return on->end_step ? on->end_step(p, s) : JOT_OK;
}

jot_status rt_program_run_steps(const struct rt_program *p, struct rt_instance *instance,
                                uint32_t first, uint32_t end)
{
    for (uint32_t at = first; at < end;)
        JOT_TRY(run_step(p, instance, &at));
    return JOT_OK;
}

// What the timeline says of a step, which a GPU has only been handed when it ends.
static struct timeline_event event_of(const struct rt_program *p, uint32_t at, const char *name)
{
    const struct rt_bound_step *s = &p->steps[at];
    uint32_t where = p->plan.steps[at].where;
    struct timeline_event e = {.kind = rt_is_host(p->device) ? "step" : "launch",
                               .name = name,
                               .where = where ? p->plan.text + where : NULL};
    for (uint32_t i = 0; i < s->operand_count; i++)
        e.bytes += (int64_t)rt_operand_bytes(p, s, i);
    return e;
}

static jot_status run_timed(const struct rt_program *p, struct rt_instance *instance,
                            uint32_t *at)
{
    uint32_t first = *at;
    const char *name = step_name(p, first);
    if (!name)
        return run_step(p, instance, at);
    // The phases of a loop are too many, and a callback may be left.
    uint8_t kind = p->steps[first].kind;
    rt_pool_name(kind == RT_STEP_PHASES || kind == RT_STEP_CALLBACK ? NULL : name);
    int64_t since = timeline_begin();
    jot_status status = run_step(p, instance, at);
    struct timeline_event e = event_of(p, first, name);
    timeline_end(since, &e);
    rt_pool_name(NULL);
    return status;
}

// One that is watched is named, and awaited.
static jot_status run_named(const struct rt_program *p, struct rt_instance *instance,
                            uint32_t *at)
{
    const char *name = p->say ? step_name(p, *at) : NULL;
    if (name)
        p->say(name);
    JOT_TRY(timeline_is_on() ? run_timed(p, instance, at) : run_step(p, instance, at));
    return name ? p->device->type->wait(p->device) : JOT_OK;
}

jot_status rt_program_advance(const struct rt_program *p, struct rt_instance *instance,
                              uint32_t *at, uint32_t end)
{
    while (*at < end && p->steps[*at].kind != RT_STEP_COLLECTIVE)
        JOT_TRY(run_named(p, instance, at));
    return JOT_OK;
}

jot_status rt_program_go_on(const struct rt_program *p, struct rt_instance *instance,
                            uint32_t *at, const struct rt_segment **stepwise)
{
    bool has_segments = p->segments.count && !p->say;
    while (*at < p->plan.step_count && p->steps[*at].kind != RT_STEP_COLLECTIVE) {
        const struct rt_segment *g = has_segments ? p->segments.of_step[*at] : NULL;
        bool is_done = false;
        if (*stepwise && (*at < (*stepwise)->first || *at >= (*stepwise)->end))
            *stepwise = NULL;
        if (g && g->has_collective) {
            if (*stepwise != g)
                return JOT_OK;
            g = NULL;
        }
        int64_t since = g ? timeline_begin() : 0;
        if (g)
            JOT_TRY(p->device->type->replay(p, instance, g, &is_done));
        if (is_done)
            timeline_end(since, &(struct timeline_event){.kind = "launch", .name = "graph"});
        if (is_done)
            *at = g->end;
        else
            JOT_TRY(run_named(p, instance, at));
    }
    return JOT_OK;
}

static jot_status run_instance(const struct rt_program *p, struct rt_instance *instance)
{
    uint32_t at = 0;
    const struct rt_segment *stepwise = NULL;
    JOT_TRY(rt_program_go_on(p, instance, &at, &stepwise));
    return at == p->plan.step_count ? JOT_OK : run_named(p, instance, &at);
}

static void end_run(struct rt_program *p, struct rt_instance *instance)
{
    if (p->device->type->finish)
        p->device->type->finish(p);
    rt_host_leave(instance->outer);
    rt_instance_put_back(p, instance);
}

static void abandon_run(struct rt_frame *frame)
{
    struct rt_instance *instance = (struct rt_instance *)frame;
    end_run(instance->program, instance);
}

__attribute__((noinline)) static jot_status run_open(struct rt_program *p,
                                                     struct rt_instance *instance)
{
    RT_MARK mark = {0};
    rt_frame_open(&instance->frame, &mark, abandon_run);
    jot_status status = run_instance(p, instance);
    rt_frame_close(&mark);
    end_run(p, instance);
    return status;
}

void rt_instance_patch(const struct rt_program *p, struct rt_instance *instance,
                       const void *const *inputs, void *const *outputs)
{
    for (uint32_t i = 0; i < p->patch_count; i++) {
        const struct rt_patch *patch = &p->patches[i];
        char *base =
            patch->is_output ? outputs[patch->index] : (char *)(uintptr_t)inputs[patch->index];
        instance->operands[patch->operand] = base + patch->offset;
    }
}

jot_status rt_program_run(struct rt_program *program, const void *const *inputs,
                          void *const *outputs)
{
    struct rt_instance *instance;
    struct rt_pool *outer = rt_host_enter(program->device);
    jot_status taken = rt_instance_take(program, &instance);
    if (taken != JOT_OK) {
        rt_host_leave(outer);
        return taken;
    }
    instance->outer = outer;
    rt_instance_patch(program, instance, inputs, outputs);
    if (program->callback_count)
        return run_open(program, instance);
    jot_status status = run_instance(program, instance);
    end_run(program, instance);
    return status;
}
