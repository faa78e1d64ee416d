// SPDX-License-Identifier: Apache-2.0
#include "runtime/routine.h"

#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/pool.h"

#include <string.h>

static const struct rt_routine routines[] = {
#define ROUTINE(name) {#name, host_##name##_check, host_##name##_bind, host_##name},
#include "runtime/host/routines.def"
#undef ROUTINE
};

const struct rt_routine *rt_routine_find(const char *name)
{
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        if (!strcmp(name, routines[i].name))
            return &routines[i];
    return NULL;
}

jot_status rt_routine_run(const struct rt_routine *routine, struct rt_routine_call *call,
                          size_t scratch_bytes)
{
    call->workers = rt_pool_size(rt_pool_default());
    call->scratch_stride = (scratch_bytes + 63) & ~(size_t)63;
    size_t bytes = call->scratch_stride * (size_t)call->workers;
    call->scratch = bytes ? rt_block_allocate(bytes) : NULL;
    if (bytes && !call->scratch)
        return status_fail(JOT_ERR_MEMORY, "out of memory: %zu bytes of scratch for %s", bytes,
                           routine->name);
    jot_status status = routine->run(call);
    rt_block_release(call->scratch, bytes);
    return status;
}

jot_status rt_routine_damaged(const char *name)
{
    return status_fail(JOT_ERR_IO, "the launch plan is damaged: a step of routine %s", name);
}
