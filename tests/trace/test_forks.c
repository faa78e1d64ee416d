// SPDX-License-Identifier: Apache-2.0
// Children of a fork, made at any moment of what other threads do: they work or are told at once.
#include "trace_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool is_over;
static jot_executable *shared;

static void scaled(const jot_value *in, jot_value *out, void *ctx)
{
    out[0] = jot_sum(jot_mul(jot_sin(in[0]), (double)*(int *)ctx));
}

static double call_with(jot_executable *e, int n, jot_status *status)
{
    jot_array *x = jot_array_full(JOT_F64, 0, n), *y = NULL;
    *status = jot_call(e, JOT_IN(x), JOT_OUT(y));
    double r = *status == JOT_OK ? jot_array_item(y) : NAN;
    jot_array_release(y);
    jot_array_release(x);
    return r;
}

// Compiles something new all the time: by calls of an executable of its own and of one that all
// share, and in scopes.
static void *compile_on(void *ctx)
{
    int *seed = ctx;
    jot_executable *e = jot_jit(jot_function_make(scaled, 1, 1, seed), .static_data = seed,
                                .static_size = sizeof *seed);
    for (int i = 1; !atomic_load(&is_over); i++) {
        jot_status status;
        *seed += 2;
        ck_assert_double_eq(call_with(e, 3, &status), 0);
        ck_assert_double_eq(call_with(shared, 1 + i % 50, &status), 0);
        jot_scope *s = jot_scope_open();
        ck_assert_double_eq(jot_item(jot_sum(jot_full(JOT_F64, 1, 1 + i % 300))), 1 + i % 300);
        jot_scope_close(s);
    }
    jot_executable_release(e);
    return NULL;
}

static bool is_told(jot_status status)
{
    return status == JOT_ERR_LIBRARY || status == JOT_ERR_MEMORY || status == JOT_ERR_DEVICE;
}

static int new_factor = 12345;

// The message of the last child that was told, or got something wrong.
enum { MESSAGE_BYTES = 1000 };
static char *message;

static bool works_or_is_told(const char *what, jot_status status, double result)
{
    if (status == JOT_OK && result == 0)
        return true;
    if (status == JOT_OK)
        snprintf(message, MESSAGE_BYTES, "%s: %g", what, result);
    else
        snprintf(message, MESSAGE_BYTES, "%s: %s", what, jot_error_message());
    return is_told(status);
}

// What a child does: 0 when all is well, 1 when it was told.
static int do_in_child(int round)
{
    jot_status status, new_status;
    alarm(60);
    double r = call_with(shared, 7, &status); // known
    if (!works_or_is_told("known", status, r))
        return 10;
    jot_executable *e = jot_jit(jot_function_make(scaled, 1, 1, &new_factor));
    new_factor = round;
    r = call_with(e, 5, &new_status); // new
    if (!works_or_is_told("new", new_status, r))
        return 11;
    jot_scope *s = jot_scope_open();
    r = jot_item(jot_sum(jot_full(JOT_F64, 1, 1000 + round)));
    if (!isnan(r) && !works_or_is_told("a scope is off by", JOT_OK, r - (1000 + round)))
        return 12;
    jot_scope_close(s);
    jot_executable_release(e);
    return status != JOT_OK || new_status != JOT_OK;
}

START_TEST(test_children_while_others_compile)
{
    enum { THREADS = 2, FORKS = 25 };
    pthread_t threads[THREADS];
    int seeds[THREADS] = {1, 2}, one = 1, told = 0;
    setenv("JOT_CACHE", "off", 1);
    message =
        mmap(NULL, MESSAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(message != MAP_FAILED);
    shared = jot_jit(jot_function_make(scaled, 1, 1, &one));
    jot_status status;
    ck_assert_double_eq(call_with(shared, 7, &status), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_on, &seeds[i]), 0);
    for (int round = 0; round < FORKS; round++) {
        usleep(1000 * (unsigned)(round % 7));
        pid_t child = fork();
        if (child == 0)
            _exit(do_in_child(round));
        int ended;
        ck_assert_int_eq(waitpid(child, &ended, 0), child);
        ck_assert_msg(WIFEXITED(ended) && WEXITSTATUS(ended) <= 1, "fork %d: %s %d; %s", round,
                      WIFSIGNALED(ended) ? "signal" : "status",
                      WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended), message);
        told += WEXITSTATUS(ended);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    // A GPU is lost in the child.
    if (!getenv("JOT_DEVICE"))
        ck_assert_msg(told <= FORKS / 5, "%d of %d were told, the last: %s", told, FORKS,
                      message);
    munmap(message, MESSAGE_BYTES);
    jot_executable_release(shared);
}
END_TEST

// A fork in the middle of a trace: both sides go on with it.
static jot_value forks(jot_value x)
{
    jot_value y = jot_mul(x, 2.0);
    pid_t child = fork();
    if (child) {
        int ended;
        waitpid(child, &ended, 0);
        ck_assert(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    return jot_sum(y);
}

START_TEST(test_in_a_trace)
{
    pid_t parent = getpid();
    jot_executable *e = jot_jit(jot_fn(forks));
    jot_array *x = jot_array_full(JOT_F64, 1, 3), *y = NULL;
    jot_status status = jot_call(e, JOT_IN(x), JOT_OUT(y));
    double r = status == JOT_OK ? jot_array_item(y) : NAN;
    if (getpid() != parent)
        _exit(r == 6 || is_told(status) ? 0 : 1);
    ck_assert_double_eq(r, 6);
    jot_arrays_release(2, (jot_array *[]){x, y});
    jot_executable_release(e);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, test_children_while_others_compile);
    tcase_add_test(t, test_in_a_trace);
}

int main(void) { return run_suite("trace/forks", add); }
