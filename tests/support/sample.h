// SPDX-License-Identifier: Apache-2.0
// Which of many alike cases run.
#ifndef SUPPORT_SAMPLE_H
#define SUPPORT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// One in so many, counted or hashed by i.  JOT_TEST_FULL=1 takes all; JOT_TEST_FEW=4 one in four of
// the others, where everything takes long.
static inline bool sample_takes(uint64_t i, unsigned one_in)
{
    const char *few = getenv("JOT_TEST_FEW");
    uint64_t times = few ? strtoull(few, NULL, 10) : 1;
    return getenv("JOT_TEST_FULL") || i % (one_in * (times ? times : 1)) == 0;
}

#endif
