// SPDX-License-Identifier: Apache-2.0
// The part of a loop where comparisons of its index are decided.
#ifndef CODEGEN_INTERVALS_H
#define CODEGEN_INTERVALS_H

#include "codegen/loop.h"

// Whether the block compares the index of the axis with numbers.
bool cg_interval_has(const struct cg_lowering *l, uint32_t block, nest_id axis);
// The longest such part for the comparisons in the block, from multiple to multiple of the unit;
// false when there are none, or it is not worth code of its own.
bool cg_interval_find(const struct cg_lowering *l, uint32_t block, nest_id axis, int64_t unit,
                      struct nest_interval *out);
// Code in between is for indices of the interval.
void cg_interval_enter(struct cg_lowering *l, nest_id axis,
                       const struct nest_interval *interval);
void cg_interval_leave(struct cg_lowering *l, nest_id axis);
// What the statement, a comparison, always gives there; NULL when that depends.
LLVMValueRef cg_interval_decides(const struct cg_lowering *l, const struct nest_statement *s);
// A range and what of it lies in the interval; when nothing does the inner one is empty, at the end.
struct cg_ranges {
    LLVMValueRef begin, end, inner_begin, inner_end;
};
struct cg_ranges cg_ranges_of(struct cg_lowering *l, const struct nest_interval *interval,
                              LLVMValueRef begin, LLVMValueRef end);
// A loop over the two ranges beside the inner one.
struct cg_loop cg_border_open(struct cg_lowering *l, const struct cg_ranges *r,
                              LLVMValueRef *begin, LLVMValueRef *end);

#endif
