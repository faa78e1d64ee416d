// SPDX-License-Identifier: Apache-2.0
// What bodies do that only compare and choose.
#ifndef INTEROP_GRAPH_BODIES_H
#define INTEROP_GRAPH_BODIES_H

#include "interop/to_graph.h"

// IR_argmax or IR_argmin when the body, of (value, index) and (value, index), keeps the pair with the
// greater or smaller value, NaN before numbers, and of equal ones the lower index; else IR_OP_COUNT.
enum ir_op graph_arg_body(const struct graph_frame *frame, const struct mlir_block *block);
// Whether the elements of the value count from 0 along the axis.
bool graph_is_iota(const struct graph_frame *frame, const struct mlir_value *v, int64_t axis);

enum graph_order_mode {
    GRAPH_ORDER_NAN_LAST, // -0 is 0; NaN are equal and behind all numbers
    GRAPH_ORDER_TOTAL,    // of IEEE 754
    GRAPH_ORDER_NUMBERS,  // NaN has no order
};

// By the first n_keys operands of a sort, one after the other; complex numbers by real part first.
struct graph_order {
    int n_keys;
    enum graph_order_mode mode;
    bool is_descending;
};
// False when the comparator is of another kind.
bool graph_order_of(const struct graph_frame *frame, const struct mlir_block *block,
                    struct graph_order *out);

// Sorts the first n operands along the axis as the comparator says: the first results.
void graph_sort(struct graph_op *g, int n, const struct mlir_block *comparator, int64_t axis);

#endif
