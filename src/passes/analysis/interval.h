// SPDX-License-Identifier: Apache-2.0
// Which integers a value may be.
#ifndef PASSES_ANALYSIS_INTERVAL_H
#define PASSES_ANALYSIS_INTERVAL_H

#include "ir/graph.h"

struct interval {
    int64_t low, high; // both are in it
};

// Those of the type where nothing else is known; of 64 bits and of other types all of int64_t.
struct interval pass_interval_of(const struct ir_graph *g, ir_id v);

#endif
