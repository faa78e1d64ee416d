// SPDX-License-Identifier: Apache-2.0
// Elements of accumulators and of their results: what folds of any target combine.
#ifndef CODEGEN_ACCUMULATE_H
#define CODEGEN_ACCUMULATE_H

#include "codegen/lower.h"

// Real part, imaginary part (complex types), position (ARG ops); the others are NULL.  A
// position is an i32 from the start of the block in accumulators, an i64 in results.
struct cg_element {
    LLVMValueRef v[3];
};

bool cg_is_arg(const struct cg_accumulator *a);
// Lanes i, i + 1, ... of the parts, each at its base.
struct cg_element cg_element_load(struct cg_lowering *l, const struct cg_accumulator *a,
                                  bool is_result, const LLVMValueRef base[3], LLVMValueRef i,
                                  unsigned lanes);
void cg_element_store(struct cg_lowering *l, const struct cg_accumulator *a, bool is_result,
                      const LLVMValueRef base[3], LLVMValueRef i, const struct cg_element *t);
// What an accumulator starts from, in all lanes, without a position: zero in a sum.  In those of a short fold it is -0,
// which changes no element.
struct cg_element cg_element_identity(struct cg_lowering *l, const struct cg_accumulator *a,
                                      unsigned lanes);
// The result of a short fold from that of its elements: a zero is added, so that a sum of -0 is 0 as from zeros.
struct cg_element cg_element_of_short(struct cg_lowering *l, const struct cg_accumulator *a,
                                      const struct cg_element *t);
// x is of what comes first in the sequence.
struct cg_element cg_element_combine(struct cg_lowering *l, const struct cg_accumulator *a,
                                     const struct cg_element *x, const struct cg_element *y);
// Lanes first .. first + n - 1.
struct cg_element cg_element_lanes(struct cg_lowering *l, const struct cg_element *t,
                                   unsigned first, unsigned n);
// Makes the position, in a block, one in the sequence: the block begins at first.
void cg_element_place(struct cg_lowering *l, struct cg_element *t, LLVMValueRef first);
struct cg_value cg_element_value(struct cg_lowering *l, const struct cg_accumulator *a,
                                 const struct cg_element *t);

#endif
