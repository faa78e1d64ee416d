// SPDX-License-Identifier: Apache-2.0
// What a fork finds: a lock that another thread holds stays locked in the child for ever, for that
// thread is not there.  So the locks of the process are taken before a fork, in their order, and
// given back after it, on both sides: the child finds what they guard whole.
//
// Who holds a lock takes only locks of a higher order, and nobody holds one while code of the user
// runs.
#ifndef RUNTIME_FORK_H
#define RUNTIME_FORK_H

#include <pthread.h>

enum fork_order {
    FORK_EXECUTABLES,
    FORK_SCOPES,
    FORK_TRACES,
    FORK_LOADER,
    FORK_CACHE,
    FORK_PLANS,
    FORK_PROGRAMS,
    FORK_TEAMS,
    FORK_MESHES,
    FORK_ELSEWHERE,
    FORK_COLLECTIVES,
    FORK_COMMUNICATORS,
    FORK_BLOCKS,
    FORK_DEVICES,   // no lock: those of a GPU are made anew in the child
    FORK_PROCESSES, // no lock: the child is in no job
    FORK_LOCKS
};

// Before the first use of the lock, which lives as long as the process; NULL is none.  in_child, which
// may be NULL too, is called in the child of each fork, when all locks are free again.
void fork_register(enum fork_order order, pthread_mutex_t *lock, void (*in_child)(void));

// How many forks lie between the first process and this one.
unsigned fork_count(void);

// Registers a lock of this file when the library is loaded.
#define FORK_KEEPS(order, lock, in_child)                                                      \
    __attribute__((constructor)) static void keep_##lock(void)                                 \
    {                                                                                          \
        fork_register((order), &(lock), (in_child));                                           \
    }

#endif
