// SPDX-License-Identifier: Apache-2.0
// Runs of steps of a plan in which the host has no part: kernels, products, copies, clearings, routines
// and collectives that the device records, and loops over such, the ends of which are known or tested.  A
// device may do a whole run at once.
#ifndef RUNTIME_SEGMENTS_H
#define RUNTIME_SEGMENTS_H

#include "base/launch.h"

struct rt_segment {
    uint32_t number;
    uint32_t first, end; // steps
    bool has_collective;
    // Operands whose addresses the segment depends on and that another call or another trip of a
    // loop around it may have elsewhere; and those that loops of the segment move.
    uint32_t *watched, *moved;
    uint32_t watched_count, moved_count;
};

// A loop that a test ends, in a segment.
struct rt_while {
    uint32_t first, test, next,
        end;        // steps: the loop, the jump, its last; behind the copies after it
    uint32_t turns; // trips after which its operands are where they were
};

struct rt_segments {
    struct rt_segment *at;
    struct rt_segment **of_step; // by step: the segment that begins there, or NULL
    struct rt_while *whiles;     // by step; end is 0 where none begins
    uint32_t count;
};

// The segments of at least so many launches; is_recorded says it of each step.  Starts from
// zeroes; what is there after a failure is released as well.
jot_status rt_segments_find(const struct rt_plan *plan, const bool *is_recorded, uint32_t least,
                            struct rt_segments *out);
void rt_segments_release(struct rt_segments *all);

#endif
