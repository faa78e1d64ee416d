// SPDX-License-Identifier: Apache-2.0
// Which elements of operands make those of a result, axis by axis.
//
//     y = slice x {starts=[2, 0], limits=[8, 4], strides=[3, 1]}     index r of axis 0: of index 2 + 3 r
//     y = reduce_sum x {axes=[0]}                                    index r of axis 0: of index r of axis 1
//     y = concatenate w, x {axis=0}                                  index r of axis 0: of index r - 5 of x, where w has 5
#ifndef IR_ORIGIN_H
#define IR_ORIGIN_H

#include "ir/graph.h"

// Index r along an axis of the result is made of index offset + step r along this axis of the operand, if it has that index.
// Axis -1: of all that the operand has, whatever r is.
struct ir_origin {
    int axis;
    int64_t step, offset;
};

// Of an axis of n's first result, and operand i.  False where an index is made of several or of one that data say, and of
// what runs bodies or exchanges something.
bool ir_origin_of(const struct ir_graph *g, const struct ir_node *n, uint32_t i, int axis,
                  struct ir_origin *out);

#endif
