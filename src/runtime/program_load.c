// SPDX-License-Identifier: Apache-2.0
// Loading a program: its steps are bound to the code of a device, and what each call and each trip of a loop moves is
// listed once.
#include "runtime/program.h"

#include "base/collective.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/steps.h"

#include <string.h>

static jot_status bind_routine(struct rt_program *p, const char *name, struct rt_bound_step *s)
{
    struct rt_routine_call c = rt_routine_call_of(p, s, NULL);
    size_t scratch = 0;
    s->routine = rt_routine_find(name);
    if (!s->routine)
        return status_fail(JOT_ERR_IO, "the program needs the routine %s, which there is not",
                           name);
    if (s->param_count < 2 || s->params[1] < 0)
        return rt_routine_damaged(name);
    JOT_TRY(s->routine->check(&c));
    if (p->device->type->bind_routine)
        JOT_TRY(p->device->type->bind_routine(p, name, &c, s));
    if (s->is_native)
        return JOT_OK;
    JOT_TRY(s->routine->bind(&c, &scratch));
    s->total = (int64_t)scratch;
    return JOT_OK;
}

static jot_status bind_step(struct rt_program *p, uint32_t i)
{
    const struct rt_step *from = &p->plan.steps[i];
    struct rt_bound_step *s = &p->steps[i];
    const char *name = p->plan.text + from->name;
    *s = (struct rt_bound_step){.kind = (uint8_t)from->kind,
                                .total = from->total,
                                .grain = from->grain,
                                .params = p->plan.params + from->param_first,
                                .param_count = from->param_count,
                                .operand_first = from->operand_first,
                                .operand_count = from->operand_count,
                                .target = from->target,
                                .index = from->index,
                                .read_only = from->read_only,
                                .is_parallel = from->flags & RT_STEP_PARALLEL,
                                .has_scratch = from->scratch_bytes > 0};
    switch ((enum rt_step_kind)from->kind) {
    case RT_STEP_KERNEL:
        s->chunks = from->total / from->grain + (from->total % from->grain != 0);
        return p->device->type->bind(p, from, name, s);
    case RT_STEP_PHASES:
        s->chunks = from->total;
        return p->device->type->bind(p, from, name, s);
    case RT_STEP_GEMM:
        s->gemm = &p->plan.gemms[from->index];
        return p->device->type->bind(p, from, name, s);
    case RT_STEP_COPY:
    case RT_STEP_CLEAR:
        s->total = (int64_t)p->plan.buffers[p->plan.operands[from->operand_first]].bytes;
        break;
    case RT_STEP_LIBRARY:
        return bind_routine(p, name, s);
    case RT_STEP_CALLBACK:
        if (from->index >= p->callback_count)
            return status_fail(JOT_ERR_ARGUMENT, "the program calls callback %u, but has %u",
                               from->index, p->callback_count);
        s->callback = &p->callbacks[from->index];
        if (!s->callback->kernel || !p->device->type->bind_raw)
            break;
        s->is_native = true;
        return p->device->type->bind_raw(p, s->callback->kernel, s);
    case RT_STEP_CHECK:
        s->what = name;
        break;
    case RT_STEP_COLLECTIVE: {
        struct collective c;
        collective_read(s->params, s->param_count, p->plan.mesh_rank, p->plan.params, &c);
        s->is_recorded =
            p->device->type->records_collective && p->device->type->records_collective(&c);
        break;
    }
    default:
        break;
    }
    return JOT_OK;
}

static void list_patches(struct rt_program *p)
{
    for (uint32_t i = 0; i < p->plan.operand_count; i++) {
        const struct rt_buffer *b = &p->plan.buffers[p->plan.operands[i]];
        if (b->memory == RT_MEMORY_INPUT || b->memory == RT_MEMORY_OUTPUT)
            p->patches[p->patch_count++] =
                (struct rt_patch){.operand = i,
                                  .index = b->index,
                                  .offset = b->offset,
                                  .is_output = b->memory == RT_MEMORY_OUTPUT};
    }
}

static bool depends_on_loop(const struct rt_plan *plan, uint32_t buffer, uint32_t loop)
{
    const struct rt_buffer *b = &plan->buffers[buffer];
    if (b->memory != RT_MEMORY_ROW && b->memory != RT_MEMORY_TURN)
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
    if (b->memory != RT_MEMORY_ROW && b->memory != RT_MEMORY_TURN)
        return 0;
    for (uint32_t i = 0; i < b->of_count; i++) {
        uint32_t d = depth_of(plan, plan->operands[b->of_first + i]);
        depth = d > depth ? d : depth;
    }
    return depth + 1;
}

// The operands that each loop moves, what others are part of first.  Without room (views is
// NULL) they are counted.
static uint32_t list_views(const struct rt_plan *plan, struct rt_view *views, uint32_t *first)
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
                    views[n] = (struct rt_view){.operand = i,
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

static jot_status find_segments(struct rt_program *p)
{
    bool *is_recorded = memory_allocate_zeroed(p->plan.step_count + 1);
    if (!is_recorded)
        return status_out_of_memory();
    for (uint32_t i = 0; i < p->plan.step_count; i++)
        is_recorded[i] = p->steps[i].is_recorded;
    jot_status status =
        rt_segments_find(&p->plan, is_recorded, p->device->type->replay_least, &p->segments);
    memory_release(is_recorded);
    return status;
}

static jot_status load_program(struct rt_program *p, const void *object, size_t object_size,
                               const void *plan, size_t plan_size,
                               const struct rt_callback *callbacks)
{
    p->plan_bytes = memory_allocate(plan_size);
    if (!p->plan_bytes)
        return status_out_of_memory();
    memcpy(p->plan_bytes, plan, plan_size);
    JOT_TRY(rt_plan_read(p->plan_bytes, plan_size, &p->plan));
    JOT_TRY(p->device->type->check(p->device));
    JOT_TRY(p->device->type->load(p, object, object_size));
    p->steps = memory_allocate(p->plan.step_count * sizeof *p->steps);
    p->patches = memory_allocate(p->plan.operand_count * sizeof *p->patches);
    p->callbacks = memory_allocate(p->callback_count * sizeof *p->callbacks);
    JOT_TRY(rt_program_allocate(p, p->plan.constant_bytes, "the constants of a program",
                                &p->constants));
    p->views = memory_allocate(list_views(&p->plan, NULL, NULL) * sizeof *p->views);
    p->view_first = memory_allocate((p->plan.loop_count + 1) * sizeof *p->view_first);
    if (!p->steps || !p->patches || !p->callbacks || !p->views || !p->view_first)
        return status_out_of_memory();
    list_views(&p->plan, p->views, p->view_first);
    if (p->callback_count)
        memcpy(p->callbacks, callbacks, p->callback_count * sizeof *p->callbacks);
    JOT_TRY(p->device->type->upload(p->device, p->constants, p->plan.constants,
                                    p->plan.constant_bytes));
    list_patches(p);
    for (uint32_t i = 0; i < p->plan.step_count; i++)
        JOT_TRY(bind_step(p, i));
    return p->device->type->replay ? find_segments(p) : JOT_OK;
}

jot_status rt_program_load(jot_device *device, const void *object, size_t object_size,
                           const void *plan, size_t plan_size,
                           const struct rt_callback *callbacks, uint32_t callback_count,
                           struct rt_program **out_program)
{
    struct rt_program *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    p->device = device;
    p->callback_count = callback_count;
    p->code_bytes = object_size;
    p->plan_size = plan_size;
    jot_status status = load_program(p, object, object_size, plan, plan_size, callbacks);
    if (status == JOT_OK)
        *out_program = p;
    else
        rt_program_release(p);
    return status;
}
