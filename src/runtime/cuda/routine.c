// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/routine.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/steps.h"

#include <string.h>

static const struct {
    const char *name;
    bool is_recorded;
    jot_status (*bind)(struct cuda_device *d, const struct rt_routine_call *call,
                       struct cuda_routine **out);
} routines[] = {
#define ROUTINE(name, is_recorded) {#name, is_recorded, cuda_##name##_bind},
#include "base/gpu_routines.def"
#undef ROUTINE
};

static jot_status widen_workspace(struct cuda_device *d, struct cuda_code *code, size_t bytes)
{
    if (bytes <= code->routine_bytes)
        return JOT_OK;
    cuda_release(&d->base, code->routine_workspace, code->routine_bytes);
    code->routine_workspace = NULL;
    code->routine_bytes = 0;
    JOT_TRY(
        cuda_allocate(&d->base, bytes, "the workspace of routines", &code->routine_workspace));
    code->routine_bytes = bytes;
    return JOT_OK;
}

static jot_status bind(struct cuda_device *d, const char *name,
                       const struct rt_routine_call *call, struct rt_bound_step *step)
{
    jot_status status = JOT_OK;
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        if (!strcmp(name, routines[i].name)) {
            step->own = NULL;
            step->is_recorded = routines[i].is_recorded;
            status = routines[i].bind(d, call, &step->own);
            step->is_native = step->own != NULL;
        }
    return status == JOT_ERR_LIBRARY ? JOT_OK : status; // without it there is none
}

jot_status cuda_routine_bind(struct rt_program *program, const char *name,
                             const struct rt_routine_call *call, struct rt_bound_step *step)
{
    struct cuda_device *d = cuda_device_of(program->device);
    struct cuda_code *code = program->code;
    JOT_TRY(cuda_enter(d));
    jot_status status = bind(d, name, call, step);
    if (step->is_native) {
        step->own->call = *call;
        step->own->next = code->routines;
        code->routines = step->own;
        status = widen_workspace(d, code, step->own->workspace);
    }
    step->is_recorded &= step->is_native;
    cuda_leave();
    return status;
}

void cuda_routine_open(struct cuda_device *d, const char *name,
                       const struct rt_routine_call *call)
{
    const struct rt_routine *routine = rt_routine_find(name);
    struct rt_bound_step step = {0};
    if (routine && call->param_count >= 2 && call->params[1] >= 0 &&
        routine->check(call) == JOT_OK)
        bind(d, name, call, &step);
    cuda_routine_forget(step.own);
}

void cuda_routine_forget(struct cuda_routine *r)
{
    while (r) {
        struct cuda_routine *next = r->next;
        memory_release(r->part);
        memory_release(r);
        r = next;
    }
}

jot_status cuda_routine_run(const struct rt_program *program, const struct rt_bound_step *step,
                            void *const *operands)
{
    struct cuda_device *d = cuda_device_of(program->device);
    const struct cuda_code *code = program->code;
    JOT_TRY(cuda_enter(d));
    jot_status status = step->own->run(d, step->own, operands, code->routine_workspace);
    cuda_leave();
    // Another status: what runs on the host is in no graph.
    return status == JOT_ERR_LIBRARY && cuda_capturing() ? JOT_ERR_DEVICE : status;
}
