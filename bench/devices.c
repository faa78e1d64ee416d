// SPDX-License-Identifier: Apache-2.0
// What a device costs besides the work: transfers, memory, calls.
//
//     devices [host | cuda | cuda:1]
#include "measure.h"

#include <string.h>

#define REPEATS 7

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, jot_error_message());
    exit(1);
}

static double least(double a, double b) { return a < b ? a : b; }

static void time_transfers(jot_device *d)
{
    printf("%-12s %14s %14s   least of %d\n", "bytes", "to, us (GB/s)", "from", REPEATS);
    for (int64_t bytes = 4; bytes <= INT64_C(1) << 30; bytes *= 16) {
        int64_t n = bytes / 4;
        double to = 1e9, from = 1e9;
        float *buffer = malloc((size_t)bytes);
        jot_array *here = jot_array_full(JOT_F32, 1, n);
        memset(buffer, 0, (size_t)bytes);
        for (int i = 0; i < REPEATS; i++) {
            double start = seconds();
            jot_array *there = jot_array_to(here, d);
            if (!there || jot_array_wait(there) != JOT_OK)
                fail("upload");
            double middle = seconds();
            if (jot_array_read(there, buffer, (size_t)n) != JOT_OK)
                fail("download");
            to = least(to, middle - start);
            from = least(from, seconds() - middle);
            jot_array_release(there);
        }
        printf("%-12lld %8.1f (%4.1f) %8.1f (%4.1f)\n", (long long)bytes, to * 1e6,
               (double)bytes / to * 1e-9, from * 1e6, (double)bytes / from * 1e-9);
        jot_array_release(here);
        free(buffer);
    }
}

static jot_value add_one(jot_value x) { return jot_add(x, 1); }

// Calls one after another, and each with a wait.
static void time_calls(jot_device *d, int64_t n)
{
    enum { CALLS = 1000 };
    double together = 1e9, alone = 1e9, first;
    jot_executable *f = jot_jit(jot_fn(add_one), .device = d);
    jot_array *here = jot_array_full(JOT_F32, 1, n), *x = jot_array_to(here, d), *y;
    double start = seconds();
    if (jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK || jot_array_wait(y) != JOT_OK)
        fail("call");
    first = seconds() - start;
    jot_array_release(y);
    for (int i = 0; i < REPEATS; i++) {
        start = seconds();
        for (int call = 0; call < CALLS; call++) {
            if (jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK)
                fail("call");
            jot_array_release(y);
        }
        if (jot_device_wait(d) != JOT_OK)
            fail("wait");
        together = least(together, (seconds() - start) / CALLS);
        start = seconds();
        for (int call = 0; call < CALLS; call++) {
            if (jot_call(f, JOT_IN(x), JOT_OUT(y)) != JOT_OK || jot_array_wait(y) != JOT_OK)
                fail("call");
            jot_array_release(y);
        }
        alone = least(alone, (seconds() - start) / CALLS);
    }
    printf("x + 1, %9lld: %8.2f us a call, %8.2f with a wait, the first %.1f ms\n",
           (long long)n, together * 1e6, alone * 1e6, first * 1e3);
    jot_arrays_release(2, (jot_array *[]){here, x});
    jot_executable_release(f);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        setenv("JOT_DEVICE", argv[1], 1);
    jot_device *d = jot_default_device();
    jot_set_default_device(jot_host());
    if (jot_device_check(d) != JOT_OK)
        fail(jot_device_name(d));
    printf("%s\n", jot_device_name(d));
    if (d != jot_host())
        time_transfers(d);
    time_calls(d, 1000);
    time_calls(d, 1000000);
    time_calls(d, 100000000);
    return 0;
}
