// SPDX-License-Identifier: Apache-2.0
// Checks of a program that runs: what the evaluator and compiled programs say alike.
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include "jot/status.h"

#include <stddef.h>
#include <stdint.h>

enum { CHECK_MAX_TRIPS = 8, CHECK_MAX_LANES = 16, CHECK_MAX_COUNTS = 24, CHECK_MAX_RANK = 32 };

// Flags of an array with these extents, row-major, each 0 or 1; an extent of -1 is no axis of
// theirs: the index of a lane stands there, the next of the counts behind the trips.  Before
// these come the numbers of the trips of the loops around the check, the outermost first, of
// which the first CHECK_MAX_TRIPS are told.  The first n_lanes axes are lanes of maps, the
// outermost first.
struct check {
    const char *what; // "prog.c:3: jot_assert(p): message"
    const uint8_t *holds;
    int rank; // of the index
    int n_lanes;
    const int64_t *dims;
    int n_counts; // trips, then lanes
    int64_t counts[CHECK_MAX_COUNTS];
};

// JOT_ERR_CHECK unless all flags are set, with the message "what, at [3, 1], in lane 2, in trip
// 17": the index of the first flag that is 0, none for a scalar.
jot_status check_all(const struct check *c);

// Adds ", in lane 3" or ", in trips 2, 7": what each number is, and the numbers; none for none.
void check_add_numbers(char *text, size_t size, const char *what, int n,
                       const int64_t *numbers);

#endif
