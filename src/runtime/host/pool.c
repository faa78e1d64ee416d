// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/timeline.h"
#include "jot/device.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

// How often a thread looks for the next loop, or for the end of the others, before it sleeps:
// waking it takes longer than a phase of a loop over time.  Some tens of microseconds.
enum { LOOKS = 1000, CLOSE_LOOKS = 100 };

#define STACK_LEAST ((size_t)4 << 20)

// What a worker and its caller tell each other, in one cache line: each that goes back and forth
// costs as much as a small phase.
struct share {
    // Chunks that the worker does first: the next one, and above 32 bits the end.  They are the
    // same in each loop of as many chunks, so what it wrote in one loop it finds in its caches
    // in the next.
    atomic_uint_fast64_t chunks;
    // Who has claimed a chunk may read these: the loop is not over before the chunk is.
    rt_pool_body *body;
    void *ctx;
    const char *name;          // or NULL
    atomic_uint_fast64_t done; // chunks that the worker has done, of all loops and shares
    char apart[24];
    struct rt_pool *pool;
    pthread_t thread; // of this worker; the caller has none
    int worker;
    unsigned seen; // loops that were posted when the thread last looked
    char apart_2[32];
};

struct rt_pool {
    pthread_mutex_t turn; // held by the caller whose loop has the threads, and while resizing
    struct share *shares; // by worker
    int room;             // shares: as many threads were to be started, and the caller
    int thread_count;     // threads are workers 1 to this
    atomic_int size;
    unsigned epoch;         // of the process that the threads belong to
    uint64_t given;         // chunks that threads are to have done, of all loops
    atomic_uint posted;     // counts loops
    atomic_int sleepers;    // threads that wait for the next
    atomic_bool is_awaited; // the caller sleeps
    pthread_mutex_t lock;   // of those that sleep
    pthread_cond_t has_work, is_done;
    bool is_stopping; // under the lock
    bool is_part;
    const cpu_set_t *cpus; // of its threads, or NULL
};

// How many forks lie between the first process and this one.
static atomic_uint fork_epoch;
// The pool of the innermost loop that this thread is inside of, and the one that its loops use; NULL: none,
// and that of the process.
static _Thread_local const struct rt_pool *inside;
static _Thread_local struct rt_pool *entered;
static const struct rt_pool nobody; // that of loops without one
static _Thread_local const char *name_of_loops;

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

// Between two looks at what another thread is to write.  At first they follow closely.
static void pause_after(int looks)
{
#if defined(__x86_64__)
    if (looks >= CLOSE_LOOKS)
        __builtin_ia32_pause();
#endif
}

static bool is_empty(const struct share *s)
{
    uint64_t now = atomic_load_explicit(&s->chunks, memory_order_relaxed);
    return (uint32_t)now >= now >> 32;
}

static bool claim(struct share *s, int64_t *out_chunk)
{
    if (is_empty(s))
        return false;
    uint64_t now = atomic_fetch_add_explicit(&s->chunks, 1, memory_order_acquire);
    *out_chunk = (uint32_t)now;
    return (uint32_t)now < now >> 32;
}

// Says what the worker has done of the loop, and touches nothing else of the loop afterwards.
static void report(struct share *own, uint64_t chunks)
{
    struct rt_pool *pool = own->pool;
    atomic_store(&own->done, atomic_load_explicit(&own->done, memory_order_relaxed) + chunks);
    if (!own->worker || !atomic_load(&pool->is_awaited))
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->is_done);
    pthread_mutex_unlock(&pool->lock);
}

// First the chunks of the worker itself, then what others have left.
static void work_on(struct rt_pool *pool, int worker)
{
    int n = pool->room;
    const struct rt_pool *around = inside;
    inside = pool;
    for (int i = 0; i < n; i++) {
        struct share *share = &pool->shares[worker + i < n ? worker + i : worker + i - n];
        uint64_t count = 0;
        int64_t since = worker ? timeline_begin() : 0;
        for (int64_t chunk; claim(share, &chunk); count++)
            share->body(share->ctx, chunk, worker);
        if (count && share->name)
            timeline_end(since, &(struct timeline_event){.kind = "part", .name = share->name});
        if (count)
            report(&pool->shares[worker], count);
    }
    inside = around;
}

// Waits for a loop, at first by looking; false when the thread is to end.
static bool wait_for_work(const struct share *own)
{
    struct rt_pool *pool = own->pool;
    for (int i = 0; i < LOOKS; i++) {
        if (!is_empty(own))
            return true;
        pause_after(i);
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    // A caller who has not seen that may have posted a loop that is not seen here: there is no
    // fence between the two.  It gets by without the thread then.
    while (atomic_load(&pool->posted) == own->seen && !pool->is_stopping)
        pthread_cond_wait(&pool->has_work, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    bool is_stopping = pool->is_stopping;
    pthread_mutex_unlock(&pool->lock);
    return !is_stopping;
}

static void *thread_main(void *arg)
{
    struct share *own = arg;
    entered = own->pool->is_part ? own->pool : NULL;
    while (wait_for_work(own)) {
        own->seen = atomic_load(&own->pool->posted);
        work_on(own->pool, own->worker);
    }
    return NULL;
}

static void stop_threads(struct rt_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i <= pool->thread_count; i++)
        pthread_join(pool->shares[i].thread, NULL);
    memory_release(pool->shares);
    pool->shares = NULL;
    pool->thread_count = pool->room = 0;
    pool->is_stopping = false;
}

// Kernels have rows of lanes on the stack, also where new threads have little of it by default.
static bool set_attributes(const struct rt_pool *pool, pthread_attr_t *out)
{
    size_t size;
    if (pthread_attr_init(out))
        return false;
    if (pthread_attr_getstacksize(out, &size) == 0 && size < STACK_LEAST)
        pthread_attr_setstacksize(out, STACK_LEAST);
    if (pool->cpus)
        pthread_attr_setaffinity_np(out, sizeof *pool->cpus, pool->cpus);
    return true;
}

// Starts the threads of a pool of that size, which has none.  Fewer is fine: the others do what
// they do not.
static void start_threads(struct rt_pool *pool, int size)
{
    pool->shares = memory_allocate_zeroed((size_t)size * sizeof *pool->shares);
    if (!pool->shares)
        return;
    pool->room = size;
    pool->given = 0;
    for (int i = 0; i < size; i++) {
        pool->shares[i].pool = pool;
        pool->shares[i].worker = i;
        pool->shares[i].seen = atomic_load(&pool->posted);
    }
    // Signals are for the threads of the user.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attributes;
    bool has_attributes = set_attributes(pool, &attributes);
    for (int i = 1; i < size; i++) {
        struct share *share = &pool->shares[i];
        if (pthread_create(&share->thread, has_attributes ? &attributes : NULL, thread_main,
                           share) != 0)
            break;
        pool->thread_count = i;
    }
    if (has_attributes)
        pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
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

struct rt_pool *rt_pool_create_part(int size, const cpu_set_t *cpus)
{
    struct rt_pool *pool = rt_pool_create(size);
    if (!pool)
        return NULL;
    pool->is_part = true;
    pool->cpus = cpus;
    return pool;
}

static _Atomic(struct rt_pool *) default_pool;

struct rt_pool *rt_pool_of_process(void)
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

struct rt_pool *rt_pool_default(void) { return entered ? entered : rt_pool_of_process(); }

struct rt_pool *rt_pool_enter(struct rt_pool *pool)
{
    struct rt_pool *before = entered;
    entered = pool;
    return before;
}

// Parts of the host have the thread of their caller where the loops of the process are the user's.
int rt_pool_size(const struct rt_pool *pool)
{
    if (atomic_load_explicit(&hook.is_set, memory_order_acquire))
        return pool && pool->is_part ? 1 : hook.loop.workers;
    return pool ? atomic_load_explicit(&pool->size, memory_order_relaxed) : 1;
}

static void run_alone(const struct rt_pool *pool, rt_pool_body *body, void *ctx, int64_t chunks)
{
    const struct rt_pool *around = inside;
    inside = pool ? pool : &nobody;
    for (int64_t i = 0; i < chunks; i++)
        body(ctx, i, 0);
    inside = around;
}

// Whether a loop of the pool may have threads here.
static bool is_free_for(const struct rt_pool *pool)
{
    return !inside || (pool->is_part && inside != pool);
}

static bool is_over(const struct rt_pool *pool)
{
    uint64_t done = 0;
    for (int i = 0; i < pool->room; i++)
        done += atomic_load(&pool->shares[i].done);
    return done == pool->given;
}

// Waits for what threads do of the loop.
static void wait_for_threads(struct rt_pool *pool)
{
    for (int i = 0; i < LOOKS; i++) {
        if (is_over(pool))
            return;
        pause_after(i);
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->is_awaited, true);
    while (!is_over(pool))
        pthread_cond_wait(&pool->is_done, &pool->lock);
    atomic_store(&pool->is_awaited, false);
    pthread_mutex_unlock(&pool->lock);
}

static void wake_threads(struct rt_pool *pool, int most)
{
    pthread_mutex_lock(&pool->lock);
    for (int i = atomic_load(&pool->sleepers); i > 0 && most > 0; i--, most--)
        pthread_cond_signal(&pool->has_work);
    pthread_mutex_unlock(&pool->lock);
}

// The first chunk is the caller's own: it goes to work while the others are told.
static void run_together(struct rt_pool *pool, rt_pool_body *body, void *ctx, int64_t chunks)
{
    int workers = pool->thread_count < chunks ? pool->thread_count + 1 : (int)chunks;
    uint64_t each = (uint64_t)(chunks / workers), rest = (uint64_t)(chunks % workers);
    pool->given += (uint64_t)chunks - 1;
    for (int i = workers; i-- > 0;) {
        struct share *share = &pool->shares[i];
        uint64_t k = (uint64_t)i, first = k * each + (k < rest ? k : rest);
        uint64_t end = first + each + (k < rest);
        share->body = body;
        share->ctx = ctx;
        share->name = name_of_loops;
        atomic_store_explicit(&share->chunks, end << 32 | (first + (i == 0)),
                              memory_order_release);
    }
    unsigned posted = atomic_load_explicit(&pool->posted, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool->posted, posted, memory_order_release);
    if (atomic_load_explicit(&pool->sleepers, memory_order_relaxed))
        wake_threads(pool, workers - 1);
    const struct rt_pool *around = inside;
    inside = pool;
    body(ctx, 0, 0);
    inside = around;
    work_on(pool, 0);
    wait_for_threads(pool);
}

void rt_pool_name(const char *name) { name_of_loops = name; }

void rt_pool_run(struct rt_pool *pool, int workers, rt_pool_body *body, void *ctx,
                 int64_t chunks)
{
    int size = pool ? rt_pool_size(pool) : 1;
    if (workers <= 1 || size <= 1 || chunks <= 1 || chunks > INT32_MAX || !is_free_for(pool)) {
        run_alone(pool, body, ctx, chunks);
    } else if (atomic_load_explicit(&hook.is_set, memory_order_acquire)) {
        // The hook numbers its workers as it likes.
        if (workers < size)
            run_alone(pool, body, ctx, chunks);
        else
            hook.loop.run(hook.loop.user, chunks, body, ctx);
    } else if (is_forked(pool) || pthread_mutex_trylock(&pool->turn)) {
        run_alone(pool, body, ctx, chunks);
    } else {
        if (!pool->shares)
            start_threads(pool, atomic_load_explicit(&pool->size, memory_order_relaxed));
        // Threads keep their numbers.
        if (pool->thread_count == 0 || workers <= pool->thread_count)
            run_alone(pool, body, ctx, chunks);
        else
            run_together(pool, body, ctx, chunks);
        pthread_mutex_unlock(&pool->turn);
    }
}

void rt_pool_resize(struct rt_pool *pool, int size)
{
    if (size == atomic_load(&pool->size) || is_forked(pool))
        return;
    pthread_mutex_lock(&pool->turn);
    if (size != atomic_load(&pool->size))
        stop_threads(pool);
    atomic_store(&pool->size, size);
    pthread_mutex_unlock(&pool->turn);
}

// ---- the public settings ----

int jot_threads(void) { return rt_pool_size(rt_pool_of_process()); }

jot_status jot_set_threads(int n)
{
    if (n < 0 || n > RT_POOL_MOST)
        return status_fail(JOT_ERR_ARGUMENT, "jot_set_threads: %d is not in 0 to %d", n,
                           RT_POOL_MOST);
    if (inside)
        return status_fail(JOT_ERR_ARGUMENT,
                           "jot_set_threads: called from inside parallel work: call it between "
                           "calls of compiled functions");
    struct rt_pool *pool = rt_pool_of_process();
    if (!pool)
        return status_out_of_memory();
    if (is_forked(pool))
        return n == 1 ? JOT_OK
                      : status_fail(JOT_ERR_ARGUMENT,
                                    "jot_set_threads: the child of a fork has one thread");
    if (n == 0)
        n = default_size();
    rt_pool_resize(pool, n);
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
