// SPDX-License-Identifier: Apache-2.0
// The n-th allocation fails, for every n.
#ifndef TRACE_FAILING_ALLOCATION_H
#define TRACE_FAILING_ALLOCATION_H

#include "trace_support.h"

#include "base/memory.h"
#include "trace/tracer.h"

// whole_life makes, uses and releases something; it gives JOT_ERR_MEMORY or JOT_OK and loses
// nothing, whichever allocation fails.
static inline void check_failing_allocations(jot_status (*whole_life)(void))
{
    must(whole_life());
    trace_forget_ended();
    int64_t before = memory_live_blocks();
    jot_status s = JOT_ERR_MEMORY;
    for (uint64_t n = 1; n < 4000 && s != JOT_OK; n++) {
        memory_fail_after(n);
        s = whole_life();
        memory_fail_after(0);
        ck_assert_msg(s == JOT_OK || s == JOT_ERR_MEMORY, "allocation %d: %s", (int)n,
                      jot_error_message());
        ck_assert_ptr_null(trace_top());
        trace_forget_ended();
        ck_assert_msg(memory_live_blocks() == before, "allocation %d leaves %d blocks", (int)n,
                      (int)(memory_live_blocks() - before));
    }
    ck_assert_int_eq(s, JOT_OK);
}

#endif
