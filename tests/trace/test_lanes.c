// SPDX-License-Identifier: Apache-2.0
// Of many lanes of a while the one that goes on longest takes as long as if it were alone.
#include "trace_support.h"

#include <time.h>

enum { LANES = 65536 };

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static jot_value counted(jot_value n)
{
    jot_value k = jot_zeros_like(n);
    JOT_WHILE ((k), jot_less(k, n)) {
        k = jot_add(k, 1);
    }
    return k;
}

static jot_value damped(jot_value n)
{
    jot_value x = jot_from(0.0), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_fma(x, jot_full(JOT_F32, 0.999), 1);
        k = jot_add(k, 1);
    }
    return x;
}

// A row in each lane, and a loop over steps.
static jot_value counted_row(jot_value n)
{
    jot_value x = jot_zeros(JOT_F32, 4), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        JOT_FOR (i, 5, x) {
            x = jot_add(jot_mul(x, 0.999), jot_arange(JOT_F32, 4));
        }
        k = jot_add(k, 1);
    }
    return x;
}

static jot_value row_with_indices(jot_value n)
{
    jot_value x = jot_zeros(JOT_F32, 4), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_at_add(jot_mul(x, 0.999), jot_rem(k, 4), 1);
        x = jot_at_add(x, jot_rem(jot_add(k, 2), 4), jot_take(x, jot_rem(k, 3)));
        k = jot_add(k, 1);
    }
    return x;
}

static jot_value while_in_while(jot_value n)
{
    jot_value x = jot_from(0.0), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        jot_value j = jot_zeros_like(n);
        JOT_WHILE ((x, j), jot_less(j, jot_rem(k, 4))) {
            x = jot_fma(x, jot_full(JOT_F32, 0.999), 1);
            j = jot_add(j, 1);
        }
        k = jot_add(k, 1);
    }
    return x;
}

static jot_value times_matrix(jot_value n)
{
    jot_value x = jot_ones(JOT_F32, 4), k = jot_zeros_like(n);
    jot_value w = jot_div(jot_reshape(jot_arange(JOT_F32, 16), 4, 4), 100);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_add(jot_matmul(w, x), 0.5);
        k = jot_add(k, 1);
    }
    return x;
}

static jot_value matrices(jot_value n)
{
    jot_value x = jot_eye(JOT_F32, 4, 4), k = jot_zeros_like(n);
    jot_value w = jot_div(jot_reshape(jot_arange(JOT_F32, 16), 4, 4), 100);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_add(jot_matmul(x, w), 0.5);
        k = jot_add(k, 1);
    }
    return x;
}

// Each element is a value of its own, and the row a vector.
static jot_value short_row(jot_value n)
{
    jot_value x = jot_arange(JOT_F32, 12), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_add(jot_sin(x), 0.1);
        k = jot_add(k, 1);
    }
    return x;
}

// Rows that are looped over, as vectors where there is one lane.
static jot_value normed_row(jot_value n)
{
    jot_value x = jot_ones(JOT_F32, 64), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_div(jot_add(x, jot_arange(JOT_F32, 64)), jot_sqrt(jot_sum(jot_mul(x, x))));
        k = jot_add(k, 1);
    }
    return x;
}

// A sine hides what some processors (Zen 3) add in some processes, where they expect that a load needs
// the store before it: seven cycles a trip.
static jot_value table(jot_value n)
{
    jot_value x = jot_zeros(JOT_F32, 100), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_at_add(x, jot_rem(k, 100), jot_sin(jot_astype(k, JOT_F32)));
        k = jot_add(k, 1);
    }
    return x;
}

// Calls take some milliseconds at most: of longer ones a loaded machine leaves none alone.
static const struct {
    jot_value (*f)(jot_value);
    int lanes, trips, elements; // trips of the long lane, elements of a result
} bodies[] = {{counted, LANES, 1000000, 1},        {damped, LANES, 1000000, 1},
              {counted_row, LANES, 200000, 4},     {row_with_indices, LANES, 300000, 4},
              {while_in_while, LANES, 600000, 1},  {times_matrix, LANES, 200000, 4},
              {matrices, LANES, 200000, 16},       {short_row, LANES, 100000, 12},
              {normed_row, LANES / 16, 50000, 64}, {table, LANES / 16, 300000, 100}};
enum { BODIES = sizeof bodies / sizeof *bodies };

static jot_array *called(jot_executable *f, jot_array *in)
{
    jot_array *out;
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    must(jot_array_wait(out));
    return out;
}

// The least time of some calls: that of the processor, so that other processes add little.  The
// array is given back at once, so that all calls have the same memory: some pages are slower.
static void time_call(jot_executable *f, jot_array *in, double *least)
{
    double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    jot_array *out = called(f, in);
    *least = fmin(*least, seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    jot_array_release(out);
}

// The three take turns, and go on for some seconds until the least times are as they should be: what
// else runs on the machine only adds.
START_TEST(test_long_lane)
{
    static int n[LANES];
    int lanes = bodies[_i].lanes, row = bodies[_i].elements, at = lanes / 3;
    for (int i = 0; i < lanes; i++)
        n[i] = 1;
    jot_executable *f = jot_jit(jot_vmap(jot_fn(bodies[_i].f)));
    jot_array *in_others = jot_array_from(n, lanes);
    n[at] = bodies[_i].trips;
    jot_array *in_both = jot_array_from(n, lanes), *in_one = jot_array_from(&n[at], 1);

    jot_array *y = called(f, in_both), *a = called(f, in_others), *b = called(f, in_one);
    const uint32_t *got = jot_array_data(y), *rest = jot_array_data(a),
                   *alone = jot_array_data(b);
    for (int i = 0; i < lanes; i++) {
        const uint32_t *want = i == at ? alone : rest + i * row;
        ck_assert_msg(!memcmp(got + i * row, want, (size_t)row * 4), "lane %d differs", i);
    }
    jot_array_release(y), jot_array_release(a), jot_array_release(b);

    double both = 1e9, others = 1e9, one = 1e9, stop = seconds(CLOCK_MONOTONIC) + 20;
    for (int round = 0;
         round < 5 || (both > 1.3 * (others + one) && seconds(CLOCK_MONOTONIC) < stop);
         round++) {
        time_call(f, in_both, &both);
        time_call(f, in_others, &others);
        time_call(f, in_one, &one);
    }
    ck_assert_msg(both <= 1.3 * (others + one), "%.2f ms, the lane %.2f, the others %.2f",
                  1e3 * both, 1e3 * one, 1e3 * others);
    jot_array_release(in_both), jot_array_release(in_others), jot_array_release(in_one);
    jot_executable_release(f);
}
END_TEST

static void add_tests(TCase *t) { tcase_add_loop_test(t, test_long_lane, 0, BODIES); }

int main(void)
{
    if (jot_device_kind_of(jot_default_device()) != JOT_HOST)
        return 77;                 // the times are those of the processor
    setenv("JOT_THREADS", "1", 1); // that wait cost time too
    return run_suite("lanes", add_tests);
}
