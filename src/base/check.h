// SPDX-License-Identifier: Apache-2.0
// Checks of a program that runs: what the evaluator and compiled programs say alike.
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include "jot/status.h"

#include <stdint.h>

enum { CHECK_MAX_TRIPS = 8, CHECK_MAX_LANES = 16, CHECK_MAX_COUNTS = 24 };

// Flags of an array with these extents, row-major, each 0 or 1; an extent of -1 is no axis of
// theirs: the index of a lane stands there, the next of the counts behind the trips.  Before
// these come the numbers of the trips of the loops around the check, the outermost first, of
// which the first CHECK_MAX_TRIPS are told.
struct check {
    const char *what; // "prog.c:3: jot_assert(p): message"
    const uint8_t *holds;
    int rank; // of the index
    const int64_t *dims;
    int n_counts; // trips, then lanes
    int64_t counts[CHECK_MAX_COUNTS];
};

// JOT_ERR_CHECK unless all flags are set, with the message "what, at [3, 1], in trip 17": the
// index of the first flag that is 0, none for a scalar.
jot_status check_all(const struct check *c);

#endif
