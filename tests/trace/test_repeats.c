// SPDX-License-Identifier: Apache-2.0
// Kernels whose blocks of threads tell one another something give the same bits in every run, whichever
// of them are first: a thousand runs on a GPU that another process keeps busy, few elsewhere.
#include "trace_support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS 1000
#define RUNS_ELSEWHERE 3
#define N (1 << 18)

static jot_value running_sum(jot_value x) { return jot_cumsum(x, 0); }
static jot_value running_most(jot_value x) { return jot_cummax(x, 0); }
static jot_value ragged_sum(jot_value x)
{
    return jot_cumsum(jot_flip(jot_slice(x, 0, 3, N - 2), 0), 0);
}
static jot_value whole_sum(jot_value x) { return jot_sum(jot_exp(x)); }
static jot_value index_of_most(jot_value x) { return jot_argmax(x, 0); }
static jot_value column_sums(jot_value x) { return jot_sum(jot_reshape(x, 4096, 64), 0); }

// Blocks that wait for one another behind each of an unknown number of trips.
static jot_value waiting(jot_value x)
{
    jot_value left = jot_add(6, jot_mul(0, jot_take(x, 0)));
    JOT_WHILE ((x, left), jot_greater(left, 0)) {
        x = jot_mul(0.5, jot_add(jot_roll(x, 1, 0), jot_mul(0.25, x)));
        left = jot_sub(left, 1);
    }
    return x;
}

static jot_value stencil(jot_value x)
{
    x = jot_reshape(x, 512, 512);
    JOT_FOR (i, 15, x)
        x = jot_add(jot_mul(0.5, jot_roll(x, 1, 0)), jot_mul(0.25, jot_roll(x, -1, 1)));
    return x;
}

static jot_value load(jot_value x) { return jot_cumsum(jot_sin(x), 0); }

static jot_value (*const functions[])(jot_value) = {
    running_sum,   running_most, ragged_sum, whole_sum,
    index_of_most, column_sums,  waiting,    stencil,
};

static jot_array *numbers(void)
{
    static float x[N];
    uint32_t draw = 7;
    for (int i = 0; i < N; i++) {
        draw = draw * 1664525 + 1013904223;
        x[i] = (float)(draw >> 8) / 0x1p24f - 0.5f;
    }
    return jot_array_from(x, N);
}

static bool is_gpu(void)
{
    const char *device = getenv("JOT_DEVICE");
    return device && !strncmp(device, "cuda", 4) && !getenv("JOT_TEST_EMULATED");
}

// Runs of it until it is killed, or its parent is gone.
static void keep_busy(void)
{
    pid_t parent = getppid();
    jot_array *x = numbers(), *y = NULL;
    jot_executable *f = jot_jit(jot_fn(load));
    while (getppid() == parent && jot_call(f, JOT_IN(x), JOT_OUT(y)) == JOT_OK) {
        if (jot_array_wait(y) != JOT_OK)
            break;
        jot_array_release(y);
    }
    _exit(0);
}

START_TEST(bits_are_the_same_in_every_run)
{
    pid_t other = is_gpu() ? fork() : -1; // before there is a driver
    if (!other)
        keep_busy();
    jot_array *x = numbers(), *first = NULL;
    jot_executable *f = jot_jit(jot_fn(functions[_i]));
    must(jot_call(f, JOT_IN(x), JOT_OUT(first)));
    size_t bytes = (size_t)jot_array_size(first) * jot_dtype_size(jot_array_dtype(first));
    for (int i = 0; i < (other > 0 ? RUNS : RUNS_ELSEWHERE); i++) {
        jot_array *y = NULL;
        must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
        ck_assert_msg(!memcmp(jot_array_data(y), jot_array_data(first), bytes),
                      "function %d, run %d", _i, i);
        jot_array_release(y);
    }
    if (other > 0) {
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
    jot_executable_release(f);
    jot_arrays_release(2, (jot_array *[]){x, first});
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, bits_are_the_same_in_every_run, 0,
                        sizeof functions / sizeof *functions);
}

int main(void) { return run_suite("repeats", add); }
