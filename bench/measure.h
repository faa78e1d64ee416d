// SPDX-License-Identifier: Apache-2.0
// What measurements share.
#ifndef JOT_BENCH_MEASURE_H
#define JOT_BENCH_MEASURE_H

#include <jot/jot.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

#endif
