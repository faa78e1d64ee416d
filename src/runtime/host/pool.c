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

// How often a thread looks for the next loop, or for the end of the others, before it sleeps:
// waking it takes longer than a phase of a loop over time.  Some tens of microseconds.
enum { LOOKS = 1000 };

// A worker and the chunks that it does first.  They are the same in each loop of as many chunks, so
// what a worker wrote in one loop it finds in its caches in the next.
struct share {
    atomic_int_fast64_t next;
    int64_t end;
    bool is_taken;    // a thread has entered as this worker; under the lock of the pool
    pthread_t thread; // of this number, which is this worker when it can
    char apart[32];   // no two counters in one cache line
};

// One loop, on the stack of its caller.
struct job {
    rt_pool_body *body;
    void *ctx;
    struct share *shares; // by worker
    int workers;
    int entered;       // under the lock of the pool
    atomic_int active; // changed under the lock
};

struct rt_pool {
    pthread_mutex_t turn; // held by the caller whose loop has the threads, and while resizing
    pthread_mutex_t lock; // for what follows
    pthread_cond_t has_work, is_done;
    struct job *job; // the loop that threads may enter, or NULL
    bool is_stopping;
    atomic_uint posted; // counts loops
    atomic_int size;
    int thread_count, room; // workers that there are shares for
    int started;            // threads that have a number
    struct share *shares;
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
        if (!*end && n >= 1 && n <= RT_POOL_MOST)
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
            return n < RT_POOL_MOST ? n : RT_POOL_MOST;
    }
    return 1;
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// First the chunks of the worker itself, then what others have left.
static void work_on(struct job *job, int worker)
{
    depth++;
    for (int i = 0; i < job->workers; i++) {
        struct share *share = &job->shares[(worker + i) % job->workers];
        int64_t chunk;
        while ((chunk = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed)) <
               share->end)
            job->body(job->ctx, chunk, worker);
    }
    depth--;
}

static void deal(struct job *job, int64_t chunks)
{
    int64_t each = chunks / job->workers, rest = chunks % job->workers, next = 0;
    for (int i = 0; i < job->workers; i++) {
        struct share *share = &job->shares[i];
        atomic_init(&share->next, next);
        share->end = next += each + (i < rest);
        share->is_taken = i == 0;
    }
}

// The worker that a thread becomes: that of its own number if it is free.
static int enter(struct job *job, int own)
{
    int worker = own < job->workers && !job->shares[own].is_taken ? own : 1;
    while (job->shares[worker].is_taken)
        worker++;
    job->shares[worker].is_taken = true;
    job->entered++;
    return worker;
}

// Gives up the lock until a loop is posted, but not for long.
static void look_for_work(struct rt_pool *pool)
{
    unsigned seen = atomic_load_explicit(&pool->posted, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(&pool->posted, memory_order_relaxed) != seen)
            break;
        pause_briefly();
    }
    pthread_mutex_lock(&pool->lock);
}

static void *thread_main(void *arg)
{
    struct rt_pool *pool = arg;
    bool is_fresh = false; // from a loop
    pthread_mutex_lock(&pool->lock);
    int own = ++pool->started;
    while (!pool->is_stopping) {
        struct job *job = pool->job;
        if (!job || job->entered >= job->workers) {
            if (is_fresh)
                look_for_work(pool);
            else
                pthread_cond_wait(&pool->has_work, &pool->lock);
            is_fresh = false;
            continue;
        }
        is_fresh = true;
        int worker = enter(job, own);
        atomic_fetch_add(&job->active, 1);
        pthread_mutex_unlock(&pool->lock);
        work_on(job, worker);
        pthread_mutex_lock(&pool->lock);
        // Nothing is left of a loop that a worker came out of.
        if (pool->job == job)
            pool->job = NULL;
        if (atomic_fetch_sub(&job->active, 1) == 1)
            pthread_cond_signal(&pool->is_done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

// Brings the number of threads up to size - 1.  Fewer is fine: the caller does what they do
// not.
static void start_threads(struct rt_pool *pool, int size)
{
    if (pool->room < size) {
        struct share *shares = memory_resize(pool->shares, (size_t)size * sizeof *pool->shares);
        if (!shares)
            return;
        pool->shares = shares;
        pool->room = size;
    }
    // Signals are for the threads of the user.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool->thread_count < size - 1 &&
           pthread_create(&pool->shares[pool->thread_count + 1].thread, NULL, thread_main,
                          pool) == 0)
        pool->thread_count++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void stop_threads(struct rt_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i <= pool->thread_count; i++)
        pthread_join(pool->shares[i].thread, NULL);
    pool->thread_count = pool->started = 0;
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
    atomic_init(&pool->size, size < 1 ? 1 : size > RT_POOL_MOST ? RT_POOL_MOST : size);
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
    memory_release(pool->shares);
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

static void run_together(struct rt_pool *pool, struct job *job, int64_t chunks)
{
    if (pool->thread_count < job->workers - 1)
        start_threads(pool, atomic_load_explicit(&pool->size, memory_order_relaxed));
    if (pool->thread_count == 0) {
        run_alone(job->body, job->ctx, chunks);
        return;
    }
    int wake = job->workers - 1 < pool->thread_count ? job->workers - 1 : pool->thread_count;
    job->workers = wake + 1;
    job->shares = pool->shares;
    deal(job, chunks);
    pthread_mutex_lock(&pool->lock);
    pool->job = job;
    atomic_fetch_add_explicit(&pool->posted, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < wake; i++)
        pthread_cond_signal(&pool->has_work);
    work_on(job, 0);
    pthread_mutex_lock(&pool->lock);
    pool->job = NULL;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < LOOKS && atomic_load_explicit(&job->active, memory_order_relaxed); i++)
        pause_briefly();
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&job->active) > 0)
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
        struct job job = {.body = body, .ctx = ctx, .workers = workers, .entered = 1};
        run_together(pool, &job, chunks);
        pthread_mutex_unlock(&pool->turn);
    }
}

// ---- the public settings ----

int jot_threads(void) { return rt_pool_size(rt_pool_default()); }

jot_status jot_set_threads(int n)
{
    if (n < 0 || n > RT_POOL_MOST)
        return status_fail(JOT_ERR_ARGUMENT, "jot_set_threads: %d is not in 0 to %d", n,
                           RT_POOL_MOST);
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
