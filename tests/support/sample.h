// SPDX-License-Identifier: Apache-2.0
// Which of many alike cases run.
//
// JOT_TEST_FULL=1 takes all.  JOT_TEST_FEW=4 takes one in four of those that run otherwise, where everything takes
// long, and JOT_TEST_TURN says which: a number that .ci/run takes from the commit.
#ifndef SUPPORT_SAMPLE_H
#define SUPPORT_SAMPLE_H

#include "support/number.h"

#include <stdbool.h>

static inline uint64_t sample_few(void)
{
    uint64_t few = getenv("JOT_TEST_FULL") ? 1 : number_from("JOT_TEST_FEW", 1);
    return few ? few : 1;
}

static inline uint64_t sample_turn(void) { return number_from("JOT_TEST_TURN", 0); }

// One in so many, counted or hashed by i, and of these one in JOT_TEST_FEW.
static inline bool sample_takes(uint64_t i, unsigned one_in)
{
    return getenv("JOT_TEST_FULL") ||
           (i % one_in == 0 && (i / one_in + sample_turn()) % sample_few() == 0);
}

// So many of a list of `all`, in turn from *first on.
static inline uint64_t sample_part(uint64_t all, uint64_t *first)
{
    uint64_t part = (all + sample_few() - 1) / sample_few();
    *first = sample_turn() % sample_few() * part;
    return *first + part > all ? all - *first : part;
}

// As tcase_add_loop_test, of a sample of the cases.
#define tcase_add_sampled_test(tcase, test, begin, end)                                        \
    do {                                                                                       \
        for (int i_ = (begin); i_ < (int)(end); i_++)                                          \
            if (sample_takes((uint64_t)i_, 1))                                                 \
                tcase_add_loop_test(tcase, test, i_, i_ + 1);                                  \
    } while (0)

#endif
