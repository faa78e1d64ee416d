// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Thread_local uint64_t fail_countdown;
static atomic_int_fast64_t live_blocks;

int memory_should_fail(void)
{
    if (fail_countdown == 0)
        return 0;
    if (fail_countdown > 1)
        fail_countdown--;
    return fail_countdown == 1;
}

void *memory_allocate(size_t bytes)
{
    void *block = memory_should_fail() ? NULL : malloc(bytes ? bytes : 1);
    if (block)
        atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return block;
}

void *memory_allocate_zeroed(size_t bytes)
{
    void *block = memory_should_fail() ? NULL : calloc(1, bytes ? bytes : 1);
    if (block)
        atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return block;
}

void *memory_resize(void *block, size_t bytes)
{
    if (!block)
        return memory_allocate(bytes);
    return memory_should_fail() ? NULL : realloc(block, bytes ? bytes : 1);
}

void memory_release(void *block)
{
    if (!block)
        return;
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    free(block);
}

void memory_fail_after(uint64_t n) { fail_countdown = n ? n + 1 : 0; }

int64_t memory_live_blocks(void) { return atomic_load(&live_blocks); }
