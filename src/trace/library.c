// SPDX-License-Identifier: Apache-2.0
// What a library on the public headers needs of a trace: errors of its own, and memory.
#include "trace/tracer.h"

static jot_value make_error(const char *op, jot_status status, const char *text)
{
    return trace_fail(op ? op : "jot_error", status == JOT_OK ? JOT_ERR_ARGUMENT : status, "%s",
                      text ? text : jot_status_name(status));
}

jot_value jot_error(jot_status status, const char *op, const char *text)
{
    TRACE_RETURN(make_error(op, status, text));
}

void *jot_trace_memory(size_t size)
{
    struct arena_guard guard;
    rt_frames_collect();
    if (!trace_top() || arena_guard_left(&guard))
        return NULL;
    void *memory = arena_allocate(trace_top()->module->arena, size);
    arena_guard_close(&guard);
    return memory;
}
