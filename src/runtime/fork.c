// SPDX-License-Identifier: Apache-2.0
#include "runtime/fork.h"

#include <stdatomic.h>
#include <stddef.h>

static struct {
    pthread_mutex_t *lock;
    void (*in_child)(void);
} kept[FORK_LOCKS];

static atomic_uint forks;

static void before(void)
{
    for (int i = 0; i < FORK_LOCKS; i++)
        if (kept[i].lock)
            pthread_mutex_lock(kept[i].lock);
}

static void in_parent(void)
{
    for (int i = FORK_LOCKS; i-- > 0;)
        if (kept[i].lock)
            pthread_mutex_unlock(kept[i].lock);
}

static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
    in_parent();
    for (int i = 0; i < FORK_LOCKS; i++)
        if (kept[i].in_child)
            kept[i].in_child();
}

static void watch(void) { pthread_atfork(before, in_parent, in_child); }

void fork_register(enum fork_order order, pthread_mutex_t *lock, void (*call)(void))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    kept[order].lock = lock;
    kept[order].in_child = call;
}

unsigned fork_count(void) { return atomic_load_explicit(&forks, memory_order_relaxed); }
