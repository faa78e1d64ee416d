// SPDX-License-Identifier: Apache-2.0
// Accumulators of folds, their elements and their results: what folds of any target combine.
#ifndef CODEGEN_ACCUMULATE_H
#define CODEGEN_ACCUMULATE_H

#include "codegen/lower.h"

// The accumulators of one combine or one accumulating put.
//
// Own axis: rows are `count` destinations, each of CG_FOLD_LANES lanes.  Otherwise rows are the
// accumulators, each of `count` elements of `lanes` lanes.
struct cg_accumulator {
    enum ir_op op;
    jot_dtype dtype;
    enum nest_order order; // of a combine on a GPU
    int64_t count;         // destinations: 1 for a combine
    int64_t stride;        // elements from row to row, in the other layout
    bool own_axis;
    unsigned lanes;          // of an element in memory
    unsigned rows;           // accumulators that can be in use: at most CG_FOLD_LANES
    struct nest_index index; // of a put: which of the destinations it is
    unsigned row_lanes;      // of a put whose elements are one row that one map walks, or 0
    bool one_row;            // the memory is the row of one accumulator, others are kept aside
    bool is_later;           // a product after the block makes the result; no memory
    unsigned elements;       // of a short fold, one to each accumulator, or 0
    LLVMValueRef base[3];    // memory, as cg_element has its parts
};
void cg_accumulator_make(struct cg_lowering *l, struct cg_accumulator *a);
void cg_accumulator_reset(struct cg_lowering *l, struct cg_accumulator *a);
// Combines element(s) into accumulator `slot`; x for a put says where, NULL for a combine.  The
// position, in the block, is an i32 for each lane.
void cg_accumulate(struct cg_lowering *l, const struct cg_accumulator *a, LLVMValueRef slot,
                   const struct nest_index *x, struct cg_value v, struct cg_value v2,
                   LLVMValueRef position, LLVMValueRef guard);
// One row of an accumulator of puts, for a while: to[0] and to[1] receive the memory of all rows,
// which cg_accumulator_keep_row writes one row of.
void cg_accumulator_one_row(struct cg_lowering *l, struct cg_accumulator *a,
                            LLVMValueRef all[2]);
void cg_accumulator_keep_row(struct cg_lowering *l, struct cg_accumulator *a,
                             const LLVMValueRef all[2], LLVMValueRef slot);
// Of an own axis: close together those of as many slots as `lanes`, for a while; what `all` was
// before receives them as those from `slot` on.
void cg_accumulator_few_slots(struct cg_lowering *l, struct cg_accumulator *a, unsigned lanes);
void cg_accumulator_keep_slots(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_accumulator *all, LLVMValueRef slot);
// Folds the accumulators to one and writes it to row `row` of results; first_position is that of
// the block.
struct cg_results {
    LLVMValueRef base[3]; // memory of count elements a row
};
struct cg_results cg_results_make(struct cg_lowering *l, const struct cg_accumulator *a,
                                  int64_t rows);
void cg_accumulator_finish(struct cg_lowering *l, const struct cg_accumulator *a,
                           const struct cg_results *to, LLVMValueRef row,
                           LLVMValueRef first_position);
// Pairwise tree over rows; the result stands in row 0.
void cg_results_combine(struct cg_lowering *l, const struct cg_accumulator *a,
                        const struct cg_results *r, int64_t rows);
// Element i of row 0.
struct cg_value cg_result_load(struct cg_lowering *l, const struct cg_accumulator *a,
                               const struct cg_results *r, LLVMValueRef i);

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
void cg_element_to_sequence(struct cg_lowering *l, struct cg_element *t, LLVMValueRef first);
struct cg_value cg_element_value(struct cg_lowering *l, const struct cg_accumulator *a,
                                 const struct cg_element *t);

#endif
