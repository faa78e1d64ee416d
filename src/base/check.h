// SPDX-License-Identifier: Apache-2.0
// Checks of a program that runs: what the evaluator and compiled programs say alike.
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include "jot/status.h"

#include <stdint.h>

enum { CHECK_MAX_TRIPS = 8 };

// Flags of an array with these extents, row-major, each 0 or 1; the numbers of the trips of the
// loops around the check, the outermost first, of which the first CHECK_MAX_TRIPS are told.
struct check {
    const char *what; // "prog.c:3: jot_assert(p): message"
    const uint8_t *holds;
    int rank;
    const int64_t *dims;
    int n_trips;
    int64_t trips[CHECK_MAX_TRIPS];
};

// JOT_ERR_CHECK unless all flags are set, with the message "what, at [3, 1], in trip 17": the index of
// the first flag that is 0, none for a scalar.
jot_status check_all(const struct check *c);

#endif
