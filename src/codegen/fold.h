// SPDX-License-Identifier: Apache-2.0
// Folds over a sequence in their fixed order.
#ifndef CODEGEN_FOLD_H
#define CODEGEN_FOLD_H

#include "codegen/lower.h"

// A fold whose body is being lowered.
struct cg_fold {
    nest_id statement;
    bool own_axis;     // the vector axis is the fold's last: lane l is accumulator l
    LLVMValueRef slot; // which accumulator this element goes to: lane offset or row, an i64
    struct cg_accumulator *accumulators; // of the combines, then of the accumulating puts
    uint32_t n_combines, n_puts;
    const nest_id *puts;
    struct cg_fold *outer;
};

// A fold as a whole, its results defined.
void cg_lower_fold(struct cg_lowering *l, nest_id s);
// One block of a fold: accumulators reset, filled and written to row `row` of the results.
struct cg_fold_plan {
    nest_id statement;
    int64_t length, block, blocks;
    nest_id vector_axis; // the fold's own last axis, or NEST_NONE
    unsigned lanes;
    unsigned chunks; // vectors side by side, 0: one by one
    bool windowed;   // several axes whose last is no multiple of 64
    bool is_network;
    unsigned rows;  // accumulators: at most CG_FOLD_LANES
    unsigned group; // of them that come together in registers, 1: none
    struct cg_fold state;
    struct cg_results *results; // per accumulator
    // Parts that go through a block one after the other (fold_parts.c): of each combine and each statement of the
    // body, or NULL where there is one; and the part at hand, without which statements are left out.
    uint32_t *part_of_combine, *part_of_statement, part;
    bool *is_left_out;
};
struct cg_fold_plan cg_fold_plan_make(struct cg_lowering *l, nest_id s, int64_t result_rows);
void cg_fold_block(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef block,
                   LLVMValueRef row);
// The element at a position of the sequence; in steps: its axes and accumulator, its body, its yield.
void cg_fold_element(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at);
void cg_fold_set_position(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at);
void cg_fold_yield(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef at);
// Results of the fold from row 0: values of the combines, stores of the accumulating puts.
void cg_fold_results(struct cg_lowering *l, struct cg_fold_plan *p);

#endif
