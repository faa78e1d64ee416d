// SPDX-License-Identifier: Apache-2.0
// What becomes of a job when a process dies, stops, leaves, stays away, or runs another program.
#include "job_collectives.h"
#include "job_team.h"
#include "runtime/array.h"
#include "support/suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- failures ----

#define VICTIM 3

struct fall {
    enum kind kind;
    int signal;
    size_t elements;
};

// All repeat one thing until the victim falls in the middle of it: on the thread that does nothing else.
static void *fall_soon(void *ctx)
{
    const struct fall *f = ctx;
    usleep(20000);
    atomic_store(&shared->fell, clock_ns());
    raise(f->signal);
    return NULL;
}

static void repeat(int index, const void *ctx)
{
    const struct fall *f = ctx;
    struct rt_group all = rt_distributed_all();
    size_t bytes = f->elements * 8 * MOST;
    unsigned char *a = calloc(bytes, 1), *b = calloc(bytes, 1);
    const void *from = a;
    void *to = f->kind == BROADCAST || f->kind == ALL_REDUCE ? a : b;
    jot_array *kept = jot_array_fill(JOT_F64, index, (const int64_t[]){3, JOT_END});
    pthread_t thread;
    if (index == VICTIM)
        ck_assert_int_eq(pthread_create(&thread, NULL, fall_soon, (void *)(uintptr_t)f), 0);
    jot_status status;
    do
        status = do_one(f->kind, &all, &(struct shape){{COLLECTIVE_SUM, JOT_F64}, f->elements},
                        &from, &to);
    while (status == JOT_OK);
    job_note(index, status);
    // For good, at once, and of the same kind.
    ck_assert_int_eq(jot_distributed_check(), status);
    ck_assert_int_eq(rt_distributed_barrier(&all, "after"), status);
    ck_assert_double_eq(*(const double *)jot_array_data(kept), index);
    jot_array_release(kept);
    free(a);
    free(b);
    if (index % 2)
        jot_distributed_stop();
    if (index == VICTIM)
        pthread_join(thread, NULL);
}

static void check_fall(const struct test *t, double limit, const char *how)
{
    char name[64];
    snprintf(name, sizeof name, "process %d of %d (", VICTIM, t->count);
    job_all_are(t, VICTIM, JOT_ERR_DEVICE, name, how);
    for (int i = 0; i < t->count; i++) {
        double after = (double)(shared->outcome[i].when - atomic_load(&shared->fell)) * 1e-9;
        ck_assert_msg(i == VICTIM || after < limit, "process %d knows after %g s", i, after);
    }
}

START_TEST(test_death)
{
    struct fall f = {.kind = (enum kind)(_i % KINDS),
                     .signal = SIGKILL,
                     .elements = _i < KINDS ? 3 : 100000};
    struct test t = {.count = 8, .body = repeat, .ctx = &f};
    job_start(&t);
    job_finish(&t, VICTIM);
    check_fall(&t, 10, "has died");
}
END_TEST

START_TEST(test_stopped)
{
    struct fall f = {.kind = (enum kind)_i, .signal = SIGSTOP, .elements = 1000};
    struct test t = {.count = 8, .body = repeat, .ctx = &f, .options.silence_seconds = 2};
    int how;
    job_start(&t);
    ck_assert_int_eq(waitpid(pids[VICTIM], &how, WUNTRACED), pids[VICTIM]);
    ck_assert(WIFSTOPPED(how));
    // The others end while it still stands.
    for (int i = 0; i < t.count; i++)
        if (i != VICTIM)
            ck_assert_int_eq(waitid(P_PID, (id_t)pids[i], NULL, WEXITED | WNOWAIT), 0);
    check_fall(&t, 2, "has not been heard of for");
    // It learns what was said of it.
    kill(pids[VICTIM], SIGCONT);
    job_finish(&t, -1);
    ck_assert_int_eq(shared->outcome[VICTIM].status, JOT_ERR_DEVICE);
}
END_TEST

static void load_other(int index, const void *ctx)
{
    struct rt_team *team = NULL;
    (void)ctx;
    jot_mesh *m = mesh_of(2, (const jot_mesh_axis[]){{"x", 0}, {"y", 1}});
    job_note(index, load_team(m, 0, index == 3 ? 4 : 3, &team));
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    ck_assert_int_eq(load_team(m, 0, 3, &team), JOT_OK);
    rt_team_release(team);
}

START_TEST(test_other_team)
{
    struct test t = {.count = 4, .body = load_other};
    job_run(&t);
    job_all_are(&t, -1, JOT_ERR_CHECK, "process 0 of 4", "and process 3 of 4");
}
END_TEST

// One dies while all are inside of a program.
static void run_until(int index, const void *ctx)
{
    struct rt_team *team;
    float x[ROW] = {1}, y[ROW];
    const void *inputs[] = {x, x, x, x};
    void *outputs[] = {y, y, y, y};
    (void)ctx;
    jot_mesh *m = mesh_of(2, (const jot_mesh_axis[]){{"x", 0}, {"y", 1}});
    ck_assert_int_eq(load_team(m, 0, 1000000000, &team), JOT_OK);
    pthread_t thread;
    if (index == 3)
        ck_assert_int_eq(pthread_create(&thread, NULL, fall_soon, (void *)(uintptr_t)ctx), 0);
    job_note(index, rt_team_run(team, inputs, outputs));
    rt_team_release(team);
}

START_TEST(test_dead_team)
{
    struct fall f = {.signal = SIGKILL};
    struct test t = {.count = 4, .body = run_until, .ctx = &f};
    job_start(&t);
    job_finish(&t, 3);
    check_fall(&t, 10, "has died");
}
END_TEST

// ---- programs that differ ----

static void call_other(int index, const void *ctx)
{
    struct rt_group all = rt_distributed_all();
    struct hash128 key = {42, 43}, other = {42, 44};
    (void)ctx;
    ck_assert_int_eq(rt_distributed_agree(&all, key, "energy"), JOT_OK);
    job_note(index, rt_distributed_agree(&all, index == VICTIM ? other : key,
                                         index == VICTIM ? "loss" : "energy"));
    // They are still together.
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
}

START_TEST(test_other_program)
{
    struct test t = {.count = 8, .body = call_other};
    job_run(&t);
    job_all_are(&t, -1, JOT_ERR_CHECK, "process 0 of 8", "calls 'energy'");
    job_all_are(&t, -1, JOT_ERR_CHECK, "process 3 of 8", "calls 'loss'");
}
END_TEST

static void do_other(int index, const void *ctx)
{
    struct rt_group all = rt_distributed_all();
    int64_t own = index, to[8];
    const void *from = &own;
    void *at = to;
    (void)ctx;
    job_note(index, index == VICTIM
                        ? rt_distributed_agree(&all, (struct hash128){1, 2}, "loss")
                        : rt_distributed_all_gather(&all, "of energy", 8, &from, &at));
}

START_TEST(test_other_step)
{
    struct test t = {.count = 4, .body = do_other};
    job_run(&t);
    job_all_are(&t, -1, JOT_ERR_CHECK, "at all_gather of energy, 8 bytes",
                "at the first call of loss, 120 bytes");
}
END_TEST

// Of the same name and another size.
static void do_larger(int index, const void *ctx)
{
    jot_array *own = jot_array_fill(JOT_F32, 1, (const int64_t[]){index == 1 ? 3 : 2, JOT_END});
    (void)ctx;
    job_note(index, jot_process_all_gather(own) ? JOT_OK : JOT_ERR_CHECK);
    jot_array_release(own);
}

START_TEST(test_other_shape)
{
    struct test t = {.count = 2, .body = do_larger};
    job_run(&t);
    job_all_are(&t, -1, JOT_ERR_CHECK, "all_gather of f32[2], 8 bytes",
                "all_gather of f32[3], 12 bytes");
}
END_TEST

// One cannot go on, by its own word or for what it passes.
static void give_up(int index, const void *ctx)
{
    const bool *says = ctx;
    if (index == VICTIM && *says)
        rt_distributed_fail(JOT_ERR_MEMORY, "%s", "out of memory");
    else if (index == VICTIM)
        ck_assert_ptr_null(jot_process_all_gather(NULL));
    job_note(index, jot_process_barrier());
}

START_TEST(test_given_up)
{
    bool says = _i;
    struct test t = {.count = 4, .body = give_up, .ctx = &says};
    job_run(&t);
    job_all_are(&t, -1, says ? JOT_ERR_MEMORY : JOT_ERR_ARGUMENT, "process 3 of 4 (",
                says ? "): out of memory" : "): jot_process_all_gather: a is NULL");
}
END_TEST

// ---- leaving ----

static void leave_early(int index, const void *ctx)
{
    const bool *stops = ctx;
    if (index == VICTIM && *stops) {
        jot_distributed_stop();
        jot_distributed_stop();
        ck_assert_int_eq(jot_process_count(), 1);
        ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    }
    if (index == VICTIM)
        return;
    job_note(index, jot_process_barrier());
}

START_TEST(test_left)
{
    bool stops = _i;
    struct test t = {.count = 4, .body = leave_early, .ctx = &stops};
    job_run(&t);
    job_all_are(&t, VICTIM, JOT_ERR_DEVICE, "process 3 of 4 (", "has left before barrier");
}
END_TEST

// What was sent arrives though its sender is gone; those that are left go on.
static void give_and_leave(int index, const void *ctx)
{
    size_t bytes = 3000000;
    char *block = calloc(bytes, 1);
    void *at = block;
    static const int first[] = {0, 1, 2}, rest[] = {1, 2};
    (void)ctx;
    memset(block, index + 1, bytes);
    if (index)
        usleep(100000);
    job_note(index, rt_distributed_broadcast(&(struct rt_group){3, first}, "", bytes, 0, &at));
    ck_assert_int_eq(block[bytes - 1], 1);
    free(block);
    if (index == 0)
        return;
    usleep(100000);
    ck_assert_int_eq(rt_distributed_barrier(&(struct rt_group){2, rest}, "of the rest"),
                     JOT_OK);
}

START_TEST(test_last_words)
{
    struct test t = {.count = 3, .body = give_and_leave};
    job_run(&t);
    job_all_are(&t, -1, JOT_OK, "", "");
}
END_TEST

// One is there, and does not come.
static void stay_away(int index, const void *ctx)
{
    (void)ctx;
    while (index == VICTIM && jot_distributed_check() == JOT_OK)
        usleep(1000);
    job_note(index, jot_process_barrier());
}

START_TEST(test_wait)
{
    struct test t = {.count = 4, .body = stay_away, .options.wait_seconds = 0.5};
    job_run(&t);
    job_all_are(&t, -1, JOT_ERR_DEVICE, "has waited 0.5 s at barrier of all processes for",
                "process 3 of 4");
}
END_TEST

static void nothing(int index, const void *ctx)
{
    (void)index;
    (void)ctx;
}

START_TEST(test_absent)
{
    struct test t = {.count = 3, .body = nothing, .absent = 2, .options.start_seconds = 1};
    job_run(&t);
    job_all_are(&t, 2, JOT_ERR_DEVICE, "process 2 of 3", "has not come");
}
END_TEST

// ---- at the side ----

static atomic_int calls;
static void count_call(void *ctx) { atomic_fetch_add((atomic_int *)ctx, 1); }

static void be_called(int index, const void *ctx)
{
    static atomic_int others;
    (void)ctx;
    ck_assert(rt_distributed_on_failure(count_call, &calls));
    ck_assert(rt_distributed_on_failure(count_call, &others));
    rt_distributed_off_failure(count_call, &others);
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    while (index == 0 && !atomic_load(&shared->at))
        usleep(1000);
    if (index == 0)
        raise(SIGKILL);
    atomic_store(&shared->at, 1);
    job_note(index, jot_process_barrier());
    while (!atomic_load(&calls))
        usleep(1000);
    ck_assert(rt_distributed_on_failure(count_call, &calls));
    ck_assert_int_eq(atomic_load(&calls), 2);
    ck_assert_int_eq(atomic_load(&others), 0);
}

START_TEST(test_on_failure)
{
    struct test t = {.count = 2, .body = be_called};
    job_start(&t);
    job_finish(&t, 0);
    ck_assert_int_eq(shared->outcome[1].status, JOT_ERR_DEVICE);
}
END_TEST

// The child of a fork is alone, and keeps no socket of its parent.
static void have_child(int index, const void *ctx)
{
    (void)ctx;
    if (index == 0) {
        pid_t child = fork();
        if (child == 0) {
            ck_assert_int_eq(jot_process_count(), 1);
            ck_assert_int_eq(jot_process_barrier(), JOT_OK);
            ck_assert_int_eq(jot_distributed_check(), JOT_OK);
            // It outlives its parent.
            usleep(1000000);
            exit(0);
        }
        ck_assert_int_eq(jot_process_barrier(), JOT_OK);
        while (!atomic_load(&shared->at))
            usleep(1000);
        atomic_store(&shared->fell, clock_ns());
        raise(SIGKILL);
    }
    ck_assert_int_eq(jot_process_barrier(), JOT_OK);
    atomic_store(&shared->at, 1);
    job_note(index, jot_process_barrier());
}

START_TEST(test_fork)
{
    struct test t = {.count = 2, .body = have_child};
    job_start(&t);
    job_finish(&t, 0);
    ck_assert_int_eq(shared->outcome[1].status, JOT_ERR_DEVICE);
    ck_assert(shared->outcome[1].when - atomic_load(&shared->fell) < INT64_C(900000000));
}
END_TEST

static void add(TCase *t)
{
    bool is_full = getenv("JOT_TEST_FULL") != NULL;
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, test_death, 0, 2 * KINDS);
    tcase_add_loop_test(t, test_stopped, is_full ? 0 : ALL_REDUCE, is_full ? KINDS : BARRIER);
    tcase_add_test(t, test_other_team);
    tcase_add_test(t, test_dead_team);
    tcase_add_test(t, test_other_program);
    tcase_add_test(t, test_other_step);
    tcase_add_test(t, test_other_shape);
    tcase_add_loop_test(t, test_given_up, 0, 2);
    tcase_add_loop_test(t, test_left, 0, 2);
    tcase_add_test(t, test_last_words);
    tcase_add_test(t, test_wait);
    tcase_add_test(t, test_absent);
    tcase_add_test(t, test_on_failure);
    tcase_add_test(t, test_fork);
}

int main(void) { return suite_run("distributed_failures", add); }
