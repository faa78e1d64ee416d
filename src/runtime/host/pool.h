// SPDX-License-Identifier: Apache-2.0
// The thread pool: a parallel loop over chunks.
//
// The caller takes part as worker 0, the pool's threads as 1, 2, ...  Each does its own share of
// the chunks first, then what is left of the others'.  Threads look for the next loop for some
// tens of microseconds before they sleep; one that looks is told by a store, so a loop then
// costs a few hundred nanoseconds.  A loop inside a chunk of another, a loop that finds the pool
// busy with another caller, and any loop in the child of a fork run on their caller alone, so no
// combination of callers can wait for one another.  Pools are of the process, or of a part of the host:
// a chunk of the former may run loops of the latter, and not the other way round.
//
// Thread-safety: any thread may run loops; resizing waits for the loop that has the threads.
#ifndef RUNTIME_HOST_POOL_H
#define RUNTIME_HOST_POOL_H

#include "jot/status.h"

#include <sched.h>
#include <stdint.h>

#define RT_POOL_MOST 4096 // threads

struct rt_pool;

typedef void rt_pool_body(void *ctx, int64_t chunk, int worker);

// NULL when memory is out.  Threads start with the first loop that can use them.
struct rt_pool *rt_pool_create(int size);
void rt_pool_release(struct rt_pool *pool); // NULL is fine

// That of a part of the host, whose threads run on these CPUs; NULL: wherever they may.  The set stays.
struct rt_pool *rt_pool_create_part(int size, const cpu_set_t *cpus);
// Waits for work that the pool does at the time.
void rt_pool_resize(struct rt_pool *pool, int size);

// The pool of the process, made at the first call.  Never released.
struct rt_pool *rt_pool_of_process(void);
// The pool that calls of this thread use: that of the process where no other was entered.
struct rt_pool *rt_pool_default(void);
// Uses another from here on, NULL for that of the process, and gives the one before.
struct rt_pool *rt_pool_enter(struct rt_pool *pool);

// Workers, the caller included.
int rt_pool_size(const struct rt_pool *pool);

// What loops of this thread belong to from here on, for the timeline of the other threads; NULL: nothing that it
// shows.  The name stays until the next.
void rt_pool_name(const char *name);

// Calls body(ctx, i, worker) for each i in [0, chunks), and returns when all have ended.  Calls
// that overlap in time have different workers, in [0, workers); a pool that has more of them leaves
// the loop to its caller.
void rt_pool_run(struct rt_pool *pool, int workers, rt_pool_body *body, void *ctx,
                 int64_t chunks);

#endif
