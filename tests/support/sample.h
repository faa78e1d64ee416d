// SPDX-License-Identifier: Apache-2.0
// Which of many alike cases run.
#ifndef SUPPORT_SAMPLE_H
#define SUPPORT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// One in so many, counted or hashed by i.  JOT_TEST_FULL=1 takes all; JOT_TEST_FEW=1 one in four of
// the others, for builds in which everything takes long.
static inline bool sample_takes(uint64_t i, unsigned one_in)
{
    return getenv("JOT_TEST_FULL") || i % (one_in * (getenv("JOT_TEST_FEW") ? 4u : 1u)) == 0;
}

#endif
