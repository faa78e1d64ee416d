// SPDX-License-Identifier: Apache-2.0
// Integers of a loop that change by the same number from each row to the next: counters, and the
// indices that are computed of them.
//
//     carry i = 0: i' = i + 1;  j = 99 - i;  select(j < 0, j + 100, j)        is    99 - row
//
// Comparisons are done for all rows at once, and no number is outside of its type in any row.
#ifndef PASSES_ANALYSIS_AFFINE_H
#define PASSES_ANALYSIS_AFFINE_H

#include "ir/control.h"

// start + step * row, with row from 0 to length - 1: with reverse the first trip has the last row.
struct affine {
    int64_t step, start;
};

// The same with the rows numbered from the other end.
static inline struct affine affine_turned(struct affine a, int64_t length)
{
    return (struct affine){-a.step, a.start + a.step * (length - 1)};
}

// A scan that is about to be built in b, over in.
struct affine_loop {
    const struct ir_builder *b;
    const struct ir_graph *body;
    const struct ir_scan *scan; // of two rows or more
    const ir_id *in;
};

// The value v of the body, one integer.
bool affine_in_body(const struct affine_loop *l, ir_id v, struct affine *out);
// Rows of integers, value v of the graph around the loop.
bool affine_rows(const struct affine_loop *l, ir_id v, struct affine *out);
// Carry i of the body, when each trip adds the same number.  *out_end is what it is after the loop.
bool affine_carry(const struct affine_loop *l, uint32_t i, struct affine *out,
                  int64_t *out_end);

#endif
