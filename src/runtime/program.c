// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/host/blas.h"
#include "runtime/host/blocks.h"
#include "runtime/host/pool.h"
#include "runtime/loader.h"
#include "runtime/symbols.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

// A copy is spread over the pool in parts of this size.
#define COPY_GRAIN ((int64_t)1 << 20)

// What one call needs: its arena, the addresses of all operands, and scratch of each worker.
struct instance {
    struct instance *next;
    char *arena, *scratch;
    size_t scratch_bytes;
    int workers; // that there is scratch for
    void **operands;
    int64_t *trips; // by loop
};

// An operand that a loop moves: a row of another operand, or one of several.
struct view {
    uint32_t operand, first, count, index, loop;
    uint64_t offset;
    int64_t stride;
};

// An operand that has another address in each call.
struct patch {
    uint32_t operand, index;
    uint64_t offset;
    bool is_output;
};

struct step {
    union {
        rt_kernel *kernel;
        rt_loop *loop;
        rt_routine *routine;
        const struct rt_callback *callback;
        const struct rt_gemm *gemm;
        const char *what; // CHECK
    };
    int64_t total, grain, chunks;
    const int64_t *params;
    uint32_t param_count, operand_first, operand_count, target, index;
    uint8_t kind;
    bool is_parallel, has_scratch;
};

struct rt_program {
    struct rt_plan plan; // borrows from plan_bytes
    void *plan_bytes;
    struct rt_code *code;
    struct step *steps;
    struct patch *patches;
    uint32_t patch_count;
    struct view *views;   // by loop: those that depend on it, in an order to make them in
    uint32_t *view_first; // by loop, and the end
    struct rt_callback *callbacks;
    uint32_t callback_count;
    char *constants;
    size_t scratch_stride; // of each worker; 0 when no step asks for any
    bool has_parallel_scratch;
    _Atomic(struct instance *) first; // the one kept for the next call
    pthread_mutex_t lock;
    struct instance *others;
};

// ---- loading ----

static void *resolve(void *ctx, const char *name)
{
    (void)ctx;
    return rt_symbol_find(name);
}

// The address of a function of the object, to a pointer of so many bytes.
static jot_status bind_code(const struct rt_program *p, const char *name, void *out,
                            size_t bytes)
{
    void *address = p->code ? rt_code_find(p->code, name) : NULL;
    if (!address)
        return status_fail(JOT_ERR_IO, "the object file has no kernel %s", name);
    memcpy(out, &address, bytes);
    return JOT_OK;
}

static jot_status reserve_scratch(struct rt_program *p, const struct rt_step *from,
                                  const char *name)
{
    if (from->scratch_bytes > (size_t)1 << 40)
        return status_fail(JOT_ERR_IO, "kernel %s asks for more scratch than any memory has",
                           name);
    size_t scratch = ((size_t)from->scratch_bytes + 63) & ~(size_t)63;
    p->scratch_stride = scratch > p->scratch_stride ? scratch : p->scratch_stride;
    p->has_parallel_scratch |= scratch && from->flags & RT_STEP_PARALLEL;
    return JOT_OK;
}

static jot_status bind_step(struct rt_program *p, uint32_t i)
{
    const struct rt_step *from = &p->plan.steps[i];
    struct step *s = &p->steps[i];
    const char *name = p->plan.text + from->name;
    *s = (struct step){.kind = (uint8_t)from->kind,
                       .total = from->total,
                       .grain = from->grain,
                       .params = p->plan.params + from->param_first,
                       .param_count = from->param_count,
                       .operand_first = from->operand_first,
                       .operand_count = from->operand_count,
                       .target = from->target,
                       .index = from->index,
                       .is_parallel = from->flags & RT_STEP_PARALLEL,
                       .has_scratch = from->scratch_bytes > 0};
    switch ((enum rt_step_kind)from->kind) {
    case RT_STEP_KERNEL:
        JOT_TRY(bind_code(p, name, &s->kernel, sizeof s->kernel));
        s->chunks = from->total / from->grain + (from->total % from->grain != 0);
        return reserve_scratch(p, from, name);
    case RT_STEP_PHASES:
        JOT_TRY(bind_code(p, name, &s->loop, sizeof s->loop));
        if (p->plan.gemm_count)
            JOT_TRY(rt_blas_open());
        return reserve_scratch(p, from, name);
    case RT_STEP_GEMM:
        s->gemm = &p->plan.gemms[from->index];
        JOT_TRY(rt_blas_open());
        break;
    case RT_STEP_COPY:
    case RT_STEP_CLEAR:
        s->total = (int64_t)p->plan.buffers[p->plan.operands[from->operand_first]].bytes;
        break;
    case RT_STEP_LIBRARY:
        s->routine = rt_routine_find(name);
        if (!s->routine)
            return status_fail(JOT_ERR_LIBRARY, "this library has no routine %s", name);
        break;
    case RT_STEP_CALLBACK:
        if (from->index >= p->callback_count)
            return status_fail(JOT_ERR_ARGUMENT, "the program calls callback %u, but has %u",
                               from->index, p->callback_count);
        s->callback = &p->callbacks[from->index];
        break;
    case RT_STEP_CHECK:
        s->what = name;
        break;
    default:
        break;
    }
    return JOT_OK;
}

static void list_patches(struct rt_program *p)
{
    for (uint32_t i = 0; i < p->plan.operand_count; i++) {
        const struct rt_buffer *b = &p->plan.buffers[p->plan.operands[i]];
        if (b->place == RT_PLACE_INPUT || b->place == RT_PLACE_OUTPUT)
            p->patches[p->patch_count++] =
                (struct patch){.operand = i,
                               .index = b->index,
                               .offset = b->offset,
                               .is_output = b->place == RT_PLACE_OUTPUT};
    }
}

static bool depends_on_loop(const struct rt_plan *plan, uint32_t buffer, uint32_t loop)
{
    const struct rt_buffer *b = &plan->buffers[buffer];
    if (b->place != RT_PLACE_ROW && b->place != RT_PLACE_TURN)
        return false;
    for (uint32_t i = 0; i < b->of_count; i++)
        if (depends_on_loop(plan, plan->operands[b->of_first + i], loop))
            return true;
    return b->loop == loop;
}

static uint32_t depth_of(const struct rt_plan *plan, uint32_t buffer)
{
    const struct rt_buffer *b = &plan->buffers[buffer];
    uint32_t depth = 0;
    if (b->place != RT_PLACE_ROW && b->place != RT_PLACE_TURN)
        return 0;
    for (uint32_t i = 0; i < b->of_count; i++) {
        uint32_t d = depth_of(plan, plan->operands[b->of_first + i]);
        depth = d > depth ? d : depth;
    }
    return depth + 1;
}

// The operands that each loop moves, what others are part of first.  Without room (views is NULL) they
// are counted.
static uint32_t list_views(const struct rt_plan *plan, struct view *views, uint32_t *first)
{
    uint32_t n = 0;
    for (uint32_t loop = 0; loop < plan->loop_count; loop++) {
        bool is_deeper = true;
        if (views)
            first[loop] = n;
        for (uint32_t depth = 1; is_deeper; depth++) {
            is_deeper = false;
            for (uint32_t i = 0; i < plan->operand_count; i++) {
                uint32_t buffer = plan->operands[i];
                const struct rt_buffer *b = &plan->buffers[buffer];
                if (!depends_on_loop(plan, buffer, loop) || depth_of(plan, buffer) < depth)
                    continue;
                is_deeper |= depth_of(plan, buffer) > depth;
                if (depth_of(plan, buffer) > depth)
                    continue;
                if (views)
                    views[n] = (struct view){.operand = i,
                                             .first = b->of_first,
                                             .count = b->of_count,
                                             .index = b->index,
                                             .loop = b->loop,
                                             .offset = b->offset,
                                             .stride = b->stride};
                n++;
            }
        }
    }
    if (views)
        first[plan->loop_count] = n;
    return n;
}

static jot_status load(struct rt_program *p, const void *object, size_t object_size,
                       const void *plan, size_t plan_size, const struct rt_callback *callbacks)
{
    p->plan_bytes = memory_allocate(plan_size);
    if (!p->plan_bytes)
        return status_out_of_memory();
    memcpy(p->plan_bytes, plan, plan_size);
    JOT_TRY(rt_plan_read(p->plan_bytes, plan_size, &p->plan));
    if (object_size)
        JOT_TRY(rt_code_load(object, object_size, resolve, NULL, &p->code));
    p->steps = memory_allocate(p->plan.step_count * sizeof *p->steps);
    p->patches = memory_allocate(p->plan.operand_count * sizeof *p->patches);
    p->callbacks = memory_allocate(p->callback_count * sizeof *p->callbacks);
    p->constants = rt_block_allocate(p->plan.constant_bytes);
    p->views = memory_allocate(list_views(&p->plan, NULL, NULL) * sizeof *p->views);
    p->view_first = memory_allocate((p->plan.loop_count + 1) * sizeof *p->view_first);
    if (!p->steps || !p->patches || !p->callbacks || !p->constants || !p->views ||
        !p->view_first)
        return status_out_of_memory();
    list_views(&p->plan, p->views, p->view_first);
    if (p->callback_count)
        memcpy(p->callbacks, callbacks, p->callback_count * sizeof *p->callbacks);
    if (p->plan.constant_bytes)
        memcpy(p->constants, p->plan.constants, p->plan.constant_bytes);
    list_patches(p);
    for (uint32_t i = 0; i < p->plan.step_count; i++)
        JOT_TRY(bind_step(p, i));
    return JOT_OK;
}

jot_status rt_program_load(const void *object, size_t object_size, const void *plan,
                           size_t plan_size, const struct rt_callback *callbacks,
                           uint32_t callback_count, struct rt_program **out_program)
{
    struct rt_program *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    p->callback_count = callback_count;
    pthread_mutex_init(&p->lock, NULL);
    jot_status status = load(p, object, object_size, plan, plan_size, callbacks);
    if (status == JOT_OK)
        *out_program = p;
    else
        rt_program_release(p);
    return status;
}

const struct rt_plan *rt_program_plan(const struct rt_program *program)
{
    return &program->plan;
}

// ---- instances ----

static void release_instance(struct rt_program *p, struct instance *instance)
{
    rt_block_release(instance->arena, p->plan.arena_bytes);
    rt_block_release(instance->scratch, instance->scratch_bytes);
    memory_release(instance->trips);
    memory_release(instance->operands);
    memory_release(instance);
}

void rt_program_release(struct rt_program *p)
{
    if (!p)
        return;
    struct instance *first = atomic_load(&p->first);
    if (first)
        release_instance(p, first);
    while (p->others) {
        struct instance *instance = p->others;
        p->others = instance->next;
        release_instance(p, instance);
    }
    rt_block_release(p->constants, p->plan.constant_bytes);
    rt_code_release(p->code);
    memory_release(p->callbacks);
    memory_release(p->view_first);
    memory_release(p->views);
    memory_release(p->patches);
    memory_release(p->steps);
    memory_release(p->plan_bytes);
    pthread_mutex_destroy(&p->lock);
    memory_release(p);
}

static struct instance *create_instance(struct rt_program *p)
{
    struct instance *instance = memory_allocate_zeroed(sizeof *instance);
    if (!instance)
        return NULL;
    instance->operands = memory_allocate_zeroed(p->plan.operand_count * sizeof(void *));
    instance->arena = rt_block_allocate(p->plan.arena_bytes);
    instance->trips = memory_allocate_zeroed((p->plan.loop_count + 1) * sizeof(int64_t));
    if (!instance->operands || !instance->arena || !instance->trips) {
        release_instance(p, instance);
        return NULL;
    }
    for (uint32_t i = 0; i < p->plan.operand_count; i++) {
        const struct rt_buffer *b = &p->plan.buffers[p->plan.operands[i]];
        if (b->place == RT_PLACE_CONSTANT)
            instance->operands[i] = p->constants + b->offset;
        else if (b->place == RT_PLACE_ARENA)
            instance->operands[i] = instance->arena + b->offset;
    }
    return instance;
}

// Scratch for as many workers as the pool has at the time.
static bool grow_scratch(const struct rt_program *p, struct instance *instance)
{
    int workers = p->has_parallel_scratch ? rt_pool_size(rt_pool_default()) : 1;
    if (instance->workers >= workers)
        return true;
    rt_block_release(instance->scratch, instance->scratch_bytes);
    instance->workers = 0;
    instance->scratch_bytes = p->scratch_stride * (size_t)workers;
    instance->scratch = rt_block_allocate(instance->scratch_bytes);
    if (!instance->scratch)
        return false;
    instance->workers = workers;
    return true;
}

static void put_back(struct rt_program *p, struct instance *instance)
{
    struct instance *expected = NULL;
    if (atomic_compare_exchange_strong_explicit(&p->first, &expected, instance,
                                                memory_order_acq_rel, memory_order_acquire))
        return;
    pthread_mutex_lock(&p->lock);
    instance->next = p->others;
    p->others = instance;
    pthread_mutex_unlock(&p->lock);
}

static struct instance *take(struct rt_program *p)
{
    struct instance *instance = atomic_exchange_explicit(&p->first, NULL, memory_order_acq_rel);
    if (!instance) {
        pthread_mutex_lock(&p->lock);
        instance = p->others;
        if (instance)
            p->others = instance->next;
        pthread_mutex_unlock(&p->lock);
    }
    if (!instance)
        instance = create_instance(p);
    if (instance && p->scratch_stride && !grow_scratch(p, instance)) {
        put_back(p, instance);
        return NULL;
    }
    return instance;
}

// ---- running ----

// A kernel over its chunks.
struct launch {
    rt_kernel *kernel;
    void *const *operands;
    int64_t total, grain;
    char *scratch; // of worker 0, or NULL
    size_t stride;
};

static void run_chunk(void *ctx, int64_t chunk, int worker)
{
    const struct launch *l = ctx;
    int64_t begin = chunk * l->grain;
    int64_t end = l->total - begin < l->grain ? l->total : begin + l->grain;
    l->kernel(l->operands, begin, end, chunk,
              l->scratch ? l->scratch + (size_t)worker * l->stride : NULL);
}

static void run_kernel(const struct rt_program *p, const struct instance *instance,
                       const struct step *s)
{
    struct launch l = {.kernel = s->kernel,
                       .operands = instance->operands + s->operand_first,
                       .total = s->total,
                       .grain = s->grain,
                       .scratch = s->has_scratch ? instance->scratch : NULL,
                       .stride = p->scratch_stride};
    if (s->is_parallel && s->chunks > 1) {
        rt_pool_run(rt_pool_default(), l.scratch ? instance->workers : INT_MAX, run_chunk, &l,
                    s->chunks);
        return;
    }
    for (int64_t chunk = 0; chunk < s->chunks; chunk++)
        run_chunk(&l, chunk, 0);
}

struct copy {
    char *to;
    const char *from;
    int64_t bytes;
};

static void copy_part(void *ctx, int64_t part, int worker)
{
    const struct copy *c = ctx;
    (void)worker;
    int64_t at = part * COPY_GRAIN, left = c->bytes - at;
    memcpy(c->to + at, c->from + at, (size_t)(left < COPY_GRAIN ? left : COPY_GRAIN));
}

static void run_copy(const struct instance *instance, const struct step *s)
{
    void *const *operands = instance->operands + s->operand_first;
    struct copy c = {.to = operands[0], .from = operands[1], .bytes = s->total};
    int64_t parts = s->total / COPY_GRAIN + (s->total % COPY_GRAIN != 0);
    if (c.to == c.from) // a donated input that stays where it is
        return;
    if (s->is_parallel && parts > 1)
        rt_pool_run(rt_pool_default(), INT_MAX, copy_part, &c, parts);
    else if (s->total)
        memcpy(c.to, c.from, (size_t)s->total);
}

// Operands as they are in this trip of the loop.
static void move_views(const struct rt_program *p, const struct instance *instance,
                       uint32_t loop)
{
    void **operands = instance->operands;
    for (uint32_t i = p->view_first[loop]; i < p->view_first[loop + 1]; i++) {
        const struct view *v = &p->views[i];
        uint64_t trip = (uint64_t)instance->trips[v->loop];
        uint32_t turn = v->count == 1 ? 0 : (uint32_t)((v->index + trip) % v->count);
        operands[v->operand] =
            (char *)operands[v->first + turn] + v->offset + (int64_t)trip * v->stride;
    }
}

static uint32_t target_of_switch(const struct step *s, const void *operand)
{
    int32_t index, last = (int32_t)s->param_count - 1;
    memcpy(&index, operand, sizeof index);
    return (uint32_t)s->params[index < 0 ? 0 : index > last ? last : index];
}

static jot_status run_check(const struct step *s, void *const *operands)
{
    struct check c = {.what = s->what,
                      .holds = operands[0],
                      .rank = (int)s->param_count,
                      .dims = s->params,
                      .n_trips = (int)s->operand_count - 1};
    for (int i = 0; i < c.n_trips; i++)
        c.trips[i] = *(const int64_t *)operands[1 + i];
    return check_all(&c);
}

// A native loop in progress.
struct phases {
    struct rt_phases calls; // first, for what the loop has is its address
    const struct rt_program *program;
    const struct instance *instance;
    bool has_scratch;
    jot_status status;
};

static void run_phase(struct rt_phases *phases, rt_kernel *kernel, void *const *buffers,
                      int64_t total, int64_t grain)
{
    const struct phases *q = (const struct phases *)phases;
    struct launch l = {.kernel = kernel,
                       .operands = buffers,
                       .total = total,
                       .grain = grain,
                       .scratch = q->has_scratch ? q->instance->scratch : NULL,
                       .stride = q->program->scratch_stride};
    rt_pool_run(rt_pool_default(), l.scratch ? q->instance->workers : INT_MAX, run_chunk, &l,
                total / grain + (total % grain != 0));
}

static bool multiply(struct rt_phases *phases, void *const *buffers, int64_t index)
{
    struct phases *q = (struct phases *)phases;
    q->status = rt_gemm(rt_pool_default(), &q->program->plan.gemms[index], buffers[0],
                        buffers[1], buffers[2]);
    return q->status == JOT_OK;
}

static jot_status run_phases(const struct rt_program *p, const struct instance *instance,
                             const struct step *s)
{
    struct phases q = {.calls = {.run = run_phase, .multiply = multiply},
                       .program = p,
                       .instance = instance,
                       .has_scratch = s->has_scratch};
    instance->trips[s->index] = s->loop(instance->operands + s->operand_first, &q.calls,
                                        s->has_scratch ? instance->scratch : NULL);
    if (q.status == JOT_OK)
        move_views(p, instance, s->index);
    return q.status;
}

static jot_status run_steps(const struct rt_program *p, const struct instance *instance)
{
    for (uint32_t at = 0; at < p->plan.step_count;) {
        const struct step *s = &p->steps[at++];
        void *const *operands = instance->operands + s->operand_first;
        switch ((enum rt_step_kind)s->kind) {
        case RT_STEP_KERNEL:
            run_kernel(p, instance, s);
            break;
        case RT_STEP_GEMM:
            JOT_TRY(rt_gemm(s->is_parallel ? rt_pool_default() : NULL, s->gemm, operands[0],
                            operands[1], operands[2]));
            break;
        case RT_STEP_COPY:
            run_copy(instance, s);
            break;
        case RT_STEP_CLEAR:
            if (s->total)
                memset(operands[0], 0, (size_t)s->total);
            break;
        case RT_STEP_JUMP:
            at = s->target;
            break;
        case RT_STEP_JUMP_IF:
            at = *(const unsigned char *)operands[0] ? s->target : at;
            break;
        case RT_STEP_JUMP_IFN:
            at = *(const unsigned char *)operands[0] ? at : s->target;
            break;
        case RT_STEP_LOOP:
            instance->trips[s->index] = 0;
            move_views(p, instance, s->index);
            at = s->total == 0 ? s->target : at;
            break;
        case RT_STEP_NEXT:
            // At the end as well: a while that its bound ends leaves carries where they moved.
            ++instance->trips[s->index];
            move_views(p, instance, s->index);
            at = instance->trips[s->index] != s->total ? s->target : at;
            break;
        case RT_STEP_PHASES:
            JOT_TRY(run_phases(p, instance, s));
            break;
        case RT_STEP_SWITCH:
            at = target_of_switch(s, operands[0]);
            break;
        case RT_STEP_LIBRARY:
            JOT_TRY(s->routine(operands, s->params, s->param_count));
            break;
        case RT_STEP_CALLBACK:
            JOT_TRY(s->callback->call(s->callback->ctx, operands, s->params));
            break;
        case RT_STEP_CHECK:
            JOT_TRY(run_check(s, operands));
            break;
        case RT_STEP_KIND_COUNT:
            break;
        }
    }
    return JOT_OK;
}

jot_status rt_program_run(struct rt_program *program, const void *const *inputs,
                          void *const *outputs)
{
    struct instance *instance = take(program);
    if (!instance)
        return status_out_of_memory();
    for (uint32_t i = 0; i < program->patch_count; i++) {
        const struct patch *patch = &program->patches[i];
        char *base =
            patch->is_output ? outputs[patch->index] : (char *)(uintptr_t)inputs[patch->index];
        instance->operands[patch->operand] = base + patch->offset;
    }
    jot_status status = run_steps(program, instance);
    put_back(program, instance);
    return status;
}
