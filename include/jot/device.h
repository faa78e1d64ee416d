// SPDX-License-Identifier: Apache-2.0
// The machine that programs run on: threads and memory of the host.
//
// Thread-safety: every function here may be called from any thread.
#ifndef JOT_DEVICE_H
#define JOT_DEVICE_H

#include "jot/status.h"

#include <stddef.h>
#include <stdint.h>

JOT_BEGIN_C

// The number of threads that a call may use, the caller's among them.  At the start it is
// JOT_THREADS from the environment, else the number of CPUs the process may run on.  Threads
// are started by the first call that has enough work for them, and sleep between calls.  No
// result depends on their number.
JOT_API int jot_threads(void);

// Sets that number; 1 keeps all work on the caller's thread, 0 goes back to the default.  Waits
// for work that the pool does at the time.  JOT_ERR_ARGUMENT for a number outside 0 to 4096 or
// from inside parallel work.
JOT_API JOT_MUST_USE jot_status jot_set_threads(int n);

// A parallel loop to use instead of jot's threads.  `run` calls body(ctx, i, worker) once for
// each i in [0, chunks), in any order and on any thread, and returns when all calls have ended;
// calls that overlap in time have different workers, in [0, workers).
typedef struct jot_parallel_for {
    void (*run)(void *user, int64_t chunks, void (*body)(void *ctx, int64_t chunk, int worker),
                void *ctx);
    void *user;
    int workers; // at least 1
} jot_parallel_for;

// Uses another parallel loop from here on; NULL goes back to jot's threads.  No call may be in
// flight.  The struct is copied.
JOT_API JOT_MUST_USE jot_status jot_set_parallel_for(const jot_parallel_for *loop);

// Memory for array data to use instead of jot's pool.  `allocate` returns NULL when there is
// none.
typedef struct jot_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *block, size_t bytes);
    void *user;
} jot_allocator;

// Uses another allocator from here on; NULL goes back to jot's pool.  JOT_ERR_ARGUMENT while
// there is an array, an executable that has been called, or a scope that holds an array.  No other
// thread may use jot at the time.  The struct is copied.
JOT_API JOT_MUST_USE jot_status jot_set_allocator(const jot_allocator *allocator);

typedef struct jot_memory_use {
    size_t blocks; // in use by arrays and programs
    size_t bytes;  // in use by arrays and programs
    size_t peak;   // the most that `bytes` of large blocks came to
    size_t held;   // kept for reuse by the pool, on top of what is in use
} jot_memory_use;

// The use of array memory.  Exact when no other thread allocates at the time.
JOT_API jot_memory_use jot_memory(void);

// Gives memory that is kept for reuse back to the system.
JOT_API void jot_memory_trim(void);

JOT_END_C

#endif
