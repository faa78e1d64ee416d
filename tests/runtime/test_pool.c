// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/pool.h"

#include "jot/device.h"
#include "support/suite.h"

#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNKS 1000
#define WORKERS 8

struct tally {
    struct rt_pool *pool;
    atomic_int runs[CHUNKS];
    atomic_int busy[WORKERS]; // workers that are in a chunk
    atomic_int faults;
    int workers;
};

static void count(void *ctx, int64_t chunk, int worker)
{
    struct tally *t = ctx;
    if (worker < 0 || worker >= t->workers || atomic_fetch_add(&t->busy[worker], 1) != 0) {
        atomic_fetch_add(&t->faults, 1);
        return;
    }
    atomic_fetch_add(&t->runs[chunk], 1);
    atomic_fetch_sub(&t->busy[worker], 1);
}

static void check_each_once(struct tally *t, int chunks)
{
    ck_assert_int_eq(atomic_load(&t->faults), 0);
    for (int i = 0; i < CHUNKS; i++)
        ck_assert_int_eq(atomic_load(&t->runs[i]), i < chunks);
}

START_TEST(runs_each_chunk_once)
{
    static const int sizes[] = {1, 2, 3, WORKERS};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct rt_pool *pool = rt_pool_create(sizes[s]);
        ck_assert_int_eq(rt_pool_size(pool), sizes[s]);
        for (int chunks = 0; chunks <= CHUNKS; chunks = chunks * 3 + 1) {
            struct tally t = {.workers = sizes[s]};
            rt_pool_run(pool, INT_MAX, count, &t, chunks);
            check_each_once(&t, chunks);
        }
        rt_pool_release(pool);
    }
    rt_pool_release(NULL);
}
END_TEST

START_TEST(keeps_to_the_workers_asked_for)
{
    struct rt_pool *pool = rt_pool_create(WORKERS);
    for (int workers = 1; workers <= WORKERS; workers++) {
        struct tally t = {.workers = workers};
        rt_pool_run(pool, workers, count, &t, CHUNKS);
        check_each_once(&t, CHUNKS);
    }
    struct tally t = {.workers = 1};
    rt_pool_run(NULL, INT_MAX, count, &t, CHUNKS);
    check_each_once(&t, CHUNKS);
    rt_pool_release(pool);
}
END_TEST

// A loop of two chunks that wait for each other ends only when two threads run it.
static void meet(void *ctx, int64_t chunk, int worker)
{
    atomic_int *arrived = ctx;
    (void)chunk, (void)worker;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2)
        usleep(10);
}

START_TEST(uses_several_threads)
{
    struct rt_pool *pool = rt_pool_create(2);
    for (int i = 0; i < 20; i++) {
        atomic_int arrived = 0;
        rt_pool_run(pool, INT_MAX, meet, &arrived, 2);
    }
    rt_pool_release(pool);
}
END_TEST

static void nest(void *ctx, int64_t chunk, int worker)
{
    struct tally *outer = ctx;
    struct tally inner = {.workers = 1};
    count(outer, chunk, worker);
    rt_pool_run(outer->pool, INT_MAX, count, &inner, 10);
    for (int i = 0; i < 10; i++)
        if (atomic_load(&inner.runs[i]) != 1 || atomic_load(&inner.faults))
            atomic_fetch_add(&outer->faults, 1);
}

START_TEST(nested_loops_stay_on_their_thread)
{
    struct rt_pool *pool = rt_pool_create(4);
    struct tally t = {.workers = 4, .pool = pool};
    rt_pool_run(pool, INT_MAX, nest, &t, CHUNKS);
    check_each_once(&t, CHUNKS);
    rt_pool_release(pool);
}
END_TEST

static void *call_often(void *arg)
{
    struct rt_pool *pool = arg;
    for (int i = 0; i < 300; i++) {
        struct tally t = {.workers = 4, .pool = pool};
        int chunks = 1 + i % 50;
        rt_pool_run(pool, 4, i % 7 ? count : nest, &t, chunks);
        if (atomic_load(&t.faults))
            return pool;
        for (int k = 0; k < CHUNKS; k++)
            if (atomic_load(&t.runs[k]) != (k < chunks))
                return pool;
    }
    return NULL;
}

static void call_from_several_threads(struct rt_pool *pool)
{
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, pool), 0);
    for (int i = 0; i < 6; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        ck_assert_ptr_null(fault);
    }
}

START_TEST(serves_several_callers)
{
    struct rt_pool *pool = rt_pool_create(4);
    call_from_several_threads(pool);
    rt_pool_release(pool);
}
END_TEST

static atomic_bool stop;

static void *resize_often(void *unused)
{
    (void)unused;
    for (int n = 1; !atomic_load(&stop); n = n % 4 + 1)
        if (jot_set_threads(n) != JOT_OK)
            return &stop;
    return NULL;
}

START_TEST(resizes_under_load)
{
    pthread_t thread;
    void *fault;
    ck_assert_int_eq(jot_set_threads(2), JOT_OK);
    ck_assert_int_eq(jot_threads(), 2);
    pthread_create(&thread, NULL, resize_often, NULL);
    call_from_several_threads(rt_pool_default());
    atomic_store(&stop, true);
    pthread_join(thread, &fault);
    ck_assert_ptr_null(fault);
    ck_assert_int_eq(jot_set_threads(-1), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_set_threads(5000), JOT_ERR_ARGUMENT);
    ck_assert_int_eq(jot_set_threads(0), JOT_OK);
    ck_assert_int_ge(jot_threads(), 1);
}
END_TEST

static void resize_inside(void *ctx, int64_t chunk, int worker)
{
    (void)chunk, (void)worker;
    *(jot_status *)ctx = jot_set_threads(3);
}

START_TEST(refuses_to_resize_inside)
{
    jot_status status = JOT_OK;
    rt_pool_run(rt_pool_default(), INT_MAX, resize_inside, &status, 1);
    ck_assert_int_eq(status, JOT_ERR_ARGUMENT);
}
END_TEST

START_TEST(reads_the_environment)
{
    setenv("JOT_THREADS", "3", 1);
    ck_assert_int_eq(jot_threads(), 3);
    setenv("JOT_THREADS", "many", 1);
    ck_assert_int_eq(jot_set_threads(0), JOT_OK);
    ck_assert_int_ge(jot_threads(), 1);
}
END_TEST

START_TEST(child_of_a_fork_works_alone)
{
    struct rt_pool *pool = rt_pool_create(4);
    struct tally t = {.workers = 4};
    rt_pool_run(pool, INT_MAX, count, &t, CHUNKS);
    pid_t child = fork();
    if (child == 0) {
        struct tally alone = {.workers = 1};
        rt_pool_run(pool, INT_MAX, count, &alone, CHUNKS);
        rt_pool_release(pool);
        _exit(atomic_load(&alone.faults) || atomic_load(&alone.runs[CHUNKS - 1]) != 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    rt_pool_release(pool);
}
END_TEST

static int hook_calls;

static void hook(void *user, int64_t chunks, void (*body)(void *, int64_t, int), void *ctx)
{
    ck_assert_ptr_eq(user, &hook_calls);
    hook_calls++;
    for (int64_t i = chunks; i-- > 0;)
        body(ctx, i, (int)(i % 3));
}

START_TEST(uses_the_loop_of_the_user)
{
    jot_parallel_for loop = {.run = hook, .user = &hook_calls, .workers = 3};
    ck_assert_int_eq(jot_set_parallel_for(&loop), JOT_OK);
    ck_assert_int_eq(jot_threads(), 3);
    struct tally t = {.workers = 3};
    rt_pool_run(rt_pool_default(), 3, count, &t, CHUNKS);
    check_each_once(&t, CHUNKS);
    ck_assert_int_eq(hook_calls, 1);
    struct tally few = {.workers = 2}; // fewer workers than the hook has: it cannot be used
    rt_pool_run(rt_pool_default(), 2, count, &few, CHUNKS);
    check_each_once(&few, CHUNKS);
    ck_assert_int_eq(hook_calls, 1);
    ck_assert_int_eq(jot_set_parallel_for(NULL), JOT_OK);
    loop.workers = 0;
    ck_assert_int_eq(jot_set_parallel_for(&loop), JOT_ERR_ARGUMENT);
    loop = (jot_parallel_for){.workers = 1};
    ck_assert_int_eq(jot_set_parallel_for(&loop), JOT_ERR_ARGUMENT);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, runs_each_chunk_once);
    tcase_add_test(tests, keeps_to_the_workers_asked_for);
    tcase_add_test(tests, uses_several_threads);
    tcase_add_test(tests, nested_loops_stay_on_their_thread);
    tcase_add_test(tests, serves_several_callers);
    tcase_add_test(tests, resizes_under_load);
    tcase_add_test(tests, refuses_to_resize_inside);
    tcase_add_test(tests, reads_the_environment);
    tcase_add_test(tests, child_of_a_fork_works_alone);
    tcase_add_test(tests, uses_the_loop_of_the_user);
}

int main(void) { return suite_run("pool", add_tests); }
