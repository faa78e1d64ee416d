// SPDX-License-Identifier: Apache-2.0
// Of many lanes of a while the one that goes on longest takes as long as if it were alone.
#include "trace_support.h"

#include <time.h>

enum { LANES = 65536, LONG = 1000000, AT = LANES / 3 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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

static jot_value (*const bodies[])(jot_value) = {counted, damped};

// A call, and the least time of those so far.
static jot_array *timed(jot_executable *f, jot_array *in, double *least)
{
    jot_array *out;
    double start = seconds();
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    must(jot_array_wait(out));
    *least = fmin(*least, seconds() - start);
    return out;
}

// The three take turns, and go on for some seconds until the least times are as they should be: what
// else runs on the machine only adds.
START_TEST(test_long_lane)
{
    static int n[LANES];
    double both = 1e9, others = 1e9, one = 1e9, stop = seconds() + 20;
    for (int i = 0; i < LANES; i++)
        n[i] = 1;
    jot_executable *f = jot_jit(jot_vmap(jot_fn(bodies[_i])));
    jot_array *in_others = jot_array_from(n, LANES);
    n[AT] = LONG;
    jot_array *in_both = jot_array_from(n, LANES), *in_one = jot_array_from(&n[AT], 1);
    for (int round = 0; round < 5 || (both > 1.3 * (others + one) && seconds() < stop);
         round++) {
        jot_array *y = timed(f, in_both, &both), *a = timed(f, in_others, &others),
                  *b = timed(f, in_one, &one);
        const uint32_t *got = jot_array_data(y), *rest = jot_array_data(a),
                       *alone = jot_array_data(b);
        for (int i = 0; i < LANES; i++)
            ck_assert_msg(got[i] == (i == AT ? *alone : rest[i]), "lane %d differs", i);
        jot_array_release(y), jot_array_release(a), jot_array_release(b);
    }
    ck_assert_msg(both <= 1.3 * (others + one), "%.2f ms, the lane %.2f, the others %.2f",
                  1e3 * both, 1e3 * one, 1e3 * others);
    jot_array_release(in_both), jot_array_release(in_others), jot_array_release(in_one);
    jot_executable_release(f);
}
END_TEST

static void add_tests(TCase *t) { tcase_add_loop_test(t, test_long_lane, 0, 2); }

int main(void) { return run_suite("lanes", add_tests); }
