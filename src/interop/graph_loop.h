// SPDX-License-Identifier: Apache-2.0
// What the text of a loop tells before it is traced.
#ifndef INTEROP_GRAPH_LOOP_H
#define INTEROP_GRAPH_LOOP_H

#include "interop/to_graph.h"

struct graph_loop {
    bool *is_invariant; // by operand: every trip gives it on as it is
    bool is_counted; // a carry counts trips, and only its comparison with a bound ends the loop
    int counter;     // that carry
    bool is_known;   // how many there are, from `start` by `step`
    int64_t start, step, trips;
    const struct mlir_value *bound; // else: from the carry up to this one, by 1
};

void graph_loop_read(const struct graph_frame *frame, const struct mlir_op *op,
                     struct graph_loop *out);

#endif
