// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "jot/device.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define SIZE_LIMIT 4096

// One loop, on the stack of its caller.
struct job {
    rt_pool_body *body;
    void *ctx;
    int64_t chunks;
    int workers;
    int entered, active; // under the lock of the pool
    atomic_int_fast64_t next;
};

struct rt_pool {
    pthread_mutex_t turn; // held by the caller whose loop has the threads, and while resizing
    pthread_mutex_t lock; // for what follows
    pthread_cond_t has_work, is_done;
    struct job *job; // the loop that threads may enter, or NULL
    bool is_stopping;
    atomic_int size;
    int thread_count, thread_room;
    pthread_t *threads;
    unsigned epoch; // of the process that the threads belong to
};

// How many forks lie between the first process and this one.
static atomic_uint fork_epoch;
// Loops that this thread is inside of.
static _Thread_local int depth;

static struct {
    _Atomic(bool) is_set;
    jot_parallel_for loop;
} hook;

static void count_fork(void) { atomic_fetch_add(&fork_epoch, 1); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

static int default_size(void)
{
    const char *text = secure_getenv("JOT_THREADS");
    if (text && *text) {
        char *end;
        long n = strtol(text, &end, 10);
        if (!*end && n >= 1 && n <= SIZE_LIMIT)
            return (int)n;
    }
    // The mask grows until the kernel's fits.
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            break;
        int n = sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set) == 0
                    ? CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set)
                    : 0;
        CPU_FREE(set);
        if (n > 0)
            return n < SIZE_LIMIT ? n : SIZE_LIMIT;
    }
    return 1;
}

static void work_on(struct job *job, int worker)
{
    depth++;
    for (;;) {
        int64_t chunk = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (chunk >= job->chunks)
            break;
        job->body(job->ctx, chunk, worker);
    }
    depth--;
}

static void *thread_main(void *arg)
{
    struct rt_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_stopping) {
        struct job *job = pool->job;
        if (!job || job->entered >= job->workers) {
            pthread_cond_wait(&pool->has_work, &pool->lock);
            continue;
        }
        int worker = job->entered++;
        job->active++;
        pthread_mutex_unlock(&pool->lock);
        work_on(job, worker);
        pthread_mutex_lock(&pool->lock);
        // Nothing is left of a loop that a worker came out of.
        if (pool->job == job)
            pool->job = NULL;
        if (--job->active == 0)
            pthread_cond_signal(&pool->is_done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

// Brings the number of threads up to size - 1.  Fewer is fine: the caller does what they do
// not.
static void start_threads(struct rt_pool *pool, int size)
{
    if (pool->thread_room < size - 1) {
        pthread_t *threads =
            memory_resize(pool->threads, (size_t)(size - 1) * sizeof *pool->threads);
        if (!threads)
            return;
        pool->threads = threads;
        pool->thread_room = size - 1;
    }
    // Signals are for the threads of the user.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool->thread_count < size - 1 &&
           pthread_create(&pool->threads[pool->thread_count], NULL, thread_main, pool) == 0)
        pool->thread_count++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void stop_threads(struct rt_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pool->thread_count = 0;
    pool->is_stopping = false;
}

static bool is_forked(const struct rt_pool *pool)
{
    return pool->epoch != atomic_load_explicit(&fork_epoch, memory_order_relaxed);
}

struct rt_pool *rt_pool_create(int size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    struct rt_pool *pool = memory_allocate_zeroed(sizeof *pool);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->has_work, NULL);
    pthread_cond_init(&pool->is_done, NULL);
    atomic_init(&pool->size, size < 1 ? 1 : size > SIZE_LIMIT ? SIZE_LIMIT : size);
    pool->epoch = atomic_load(&fork_epoch);
    return pool;
}

void rt_pool_release(struct rt_pool *pool)
{
    if (!pool)
        return;
    if (!is_forked(pool)) {
        stop_threads(pool);
        pthread_cond_destroy(&pool->is_done);
        pthread_cond_destroy(&pool->has_work);
        pthread_mutex_destroy(&pool->lock);
        pthread_mutex_destroy(&pool->turn);
    }
    memory_release(pool->threads);
    memory_release(pool);
}

static _Atomic(struct rt_pool *) default_pool;

struct rt_pool *rt_pool_default(void)
{
    struct rt_pool *pool = atomic_load_explicit(&default_pool, memory_order_acquire);
    if (pool)
        return pool;
    pool = rt_pool_create(default_size());
    struct rt_pool *expected = NULL;
    if (pool && !atomic_compare_exchange_strong(&default_pool, &expected, pool)) {
        rt_pool_release(pool);
        return expected;
    }
    return pool;
}

int rt_pool_size(const struct rt_pool *pool)
{
    if (atomic_load_explicit(&hook.is_set, memory_order_acquire))
        return hook.loop.workers;
    return pool ? atomic_load_explicit(&pool->size, memory_order_relaxed) : 1;
}

static void run_alone(rt_pool_body *body, void *ctx, int64_t chunks)
{
    depth++;
    for (int64_t i = 0; i < chunks; i++)
        body(ctx, i, 0);
    depth--;
}

static void run_together(struct rt_pool *pool, int workers, struct job *job)
{
    if (pool->thread_count < workers - 1)
        start_threads(pool, atomic_load_explicit(&pool->size, memory_order_relaxed));
    int wake = workers - 1 < pool->thread_count ? workers - 1 : pool->thread_count;
    pthread_mutex_lock(&pool->lock);
    pool->job = job;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < wake; i++)
        pthread_cond_signal(&pool->has_work);
    work_on(job, 0);
    pthread_mutex_lock(&pool->lock);
    pool->job = NULL;
    while (job->active > 0)
        pthread_cond_wait(&pool->is_done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void rt_pool_run(struct rt_pool *pool, int workers, rt_pool_body *body, void *ctx,
                 int64_t chunks)
{
    int size = pool ? rt_pool_size(pool) : 1, room = workers;
    workers = workers < size ? workers : size;
    workers = workers < chunks ? workers : (int)chunks;
    if (workers <= 1 || depth > 0) {
        run_alone(body, ctx, chunks);
    } else if (atomic_load_explicit(&hook.is_set, memory_order_acquire)) {
        // The hook numbers its workers as it likes.
        if (room < size)
            run_alone(body, ctx, chunks);
        else
            hook.loop.run(hook.loop.user, chunks, body, ctx);
    } else if (is_forked(pool) || pthread_mutex_trylock(&pool->turn)) {
        run_alone(body, ctx, chunks);
    } else {
        struct job job = {
            .body = body, .ctx = ctx, .chunks = chunks, .workers = workers, .entered = 1};
        run_together(pool, workers, &job);
        pthread_mutex_unlock(&pool->turn);
    }
}

// ---- the public settings ----

int jot_threads(void) { return rt_pool_size(rt_pool_default()); }

jot_status jot_set_threads(int n)
{
    if (n < 0 || n > SIZE_LIMIT)
        return status_fail(JOT_ERR_ARGUMENT, "jot_set_threads: %d is not in 0 to %d", n,
                           SIZE_LIMIT);
    if (depth > 0)
        return status_fail(JOT_ERR_ARGUMENT,
                           "jot_set_threads: called from inside parallel work: call it between "
                           "calls of compiled functions");
    struct rt_pool *pool = rt_pool_default();
    if (!pool)
        return status_out_of_memory();
    if (is_forked(pool))
        return n == 1 ? JOT_OK
                      : status_fail(JOT_ERR_ARGUMENT,
                                    "jot_set_threads: the child of a fork has one thread");
    if (n == 0)
        n = default_size();
    pthread_mutex_lock(&pool->turn);
    if (n - 1 < pool->thread_count)
        stop_threads(pool);
    atomic_store(&pool->size, n);
    pthread_mutex_unlock(&pool->turn);
    return JOT_OK;
}

jot_status jot_set_parallel_for(const jot_parallel_for *loop)
{
    if (loop && (!loop->run || loop->workers < 1))
        return status_fail(JOT_ERR_ARGUMENT, "jot_set_parallel_for: %s",
                           loop->run ? "workers must be at least 1" : "run is NULL");
    atomic_store(&hook.is_set, false);
    if (loop) {
        hook.loop = *loop;
        atomic_store_explicit(&hook.is_set, true, memory_order_release);
    }
    return JOT_OK;
}
