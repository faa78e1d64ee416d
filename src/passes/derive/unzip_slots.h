// SPDX-License-Identifier: Apache-2.0
// Slots for the states of a loop whose lanes each have their own.  Values that are IR_NONE stay so.
#ifndef PASSES_DERIVE_UNZIP_SLOTS_H
#define PASSES_DERIVE_UNZIP_SLOTS_H

#include "ir/build.h"

// The lanes of a loop.
struct unzip_lanes {
    struct ir_module *m;
    struct ir_type count; // i32 of the lanes
    int axes;             // how many they have
};
// The type of n of them: lanes, n, the rest.
struct ir_type unzip_slots_type(const struct unzip_lanes *l, struct ir_type t, int64_t n);
// slots[at], by lane.
ir_id unzip_fetch(const struct unzip_lanes *l, struct ir_builder *b, ir_id slots, ir_id at);
// slots with slots[at] = v, by lane.
ir_id unzip_store(const struct unzip_lanes *l, struct ir_builder *b, ir_id slots, ir_id at,
                  ir_id v);
// n slots made of those that there are, from the first in steps; then zeros.
ir_id unzip_spread(const struct unzip_lanes *l, struct ir_builder *b, ir_id slots, int64_t step,
                   int64_t n);

#endif
