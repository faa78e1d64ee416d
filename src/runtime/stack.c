// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack.h"

#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

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
    return s->low && (const char *)address >= s->low - GUARD && (const char *)address < s->high;
}

__attribute__((noinline)) size_t rt_stack_left(void)
{
    const char *here = __builtin_frame_address(0);
    if (!rt_stack_has(here))
        return SIZE_MAX;
    return here > get()->low ? (size_t)(here - get()->low) : 0;
}

// ---- another thread's stack ----

// At least, for what is called; memory that is not touched costs nothing.
#define LENT ((size_t)64 << 20)

struct loan {
    jot_status (*body)(void *ctx);
    void *ctx;
    jot_status status;
    char message[1024];
};

static void *run_loan(void *arg)
{
    struct loan *l = arg;
    l->status = l->body(l->ctx);
    if (l->status != JOT_OK)
        snprintf(l->message, sizeof l->message, "%s", jot_error_message());
    return NULL;
}

static bool start(struct loan *l, size_t bytes, pthread_t *out)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return false;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); // signals are for the threads of the user
    bool ok = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
              pthread_create(out, &attributes, run_loan, l) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return ok;
}

jot_status rt_stack_lend(size_t bytes, jot_status (*body)(void *ctx), void *ctx)
{
    size_t left = rt_stack_left();
    if (left >= bytes)
        return body(ctx);
    struct loan l = {.body = body, .ctx = ctx};
    pthread_t thread;
    size_t room = (bytes + 4 * GUARD) & ~(size_t)(GUARD - 1);
    if (!start(&l, room < LENT ? LENT : room, &thread) && !start(&l, room, &thread))
        return status_fail(JOT_ERR_MEMORY,
                           "the thread has %zu KiB of stack left where %zu are needed, and "
                           "there is no memory for a thread that has them",
                           left >> 10, bytes >> 10);
    pthread_join(thread, NULL);
    return l.status == JOT_OK ? JOT_OK : status_fail(l.status, "%s", l.message);
}
