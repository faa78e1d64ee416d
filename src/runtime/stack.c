// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack.h"

#include <pthread.h>
#include <stdint.h>

struct stack {
    bool is_known;
    const char *low, *high;
};

static _Thread_local struct stack stack;

// The lowest page may be the guard page of the thread, which some systems count.
#define GUARD 4096

static const struct stack *get(void)
{
    pthread_attr_t attributes;
    if (stack.is_known)
        return &stack;
    stack.is_known = true;
    if (pthread_getattr_np(pthread_self(), &attributes))
        return &stack;
    void *low;
    size_t size;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0 && size > GUARD) {
        stack.low = (const char *)low + GUARD;
        stack.high = (const char *)low + size;
    }
    pthread_attr_destroy(&attributes);
    return &stack;
}

bool rt_stack_has(const void *address)
{
    const struct stack *s = get();
    return (const char *)address >= s->low && (const char *)address < s->high;
}

__attribute__((noinline)) size_t rt_stack_left(void)
{
    const char *here = __builtin_frame_address(0);
    return rt_stack_has(here) ? (size_t)(here - get()->low) : SIZE_MAX;
}
