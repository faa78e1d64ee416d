// SPDX-License-Identifier: Apache-2.0
// What a loop over time reads some steps before.
#ifndef CODEGEN_EARLY_H
#define CODEGEN_EARLY_H

#include "codegen/lower.h"

// `values` are those of the steps of a strip, in which so many are written out, and of as many steps
// behind them.
struct cg_early {
    uint32_t n, steps, strip;
    nest_id axis, *statements;
    struct cg_value *values;
    LLVMValueRef last; // step
    bool is_back;
};
struct cg_early cg_early_of(struct cg_lowering *l, const struct nest_statement *seq,
                            int64_t strip);
// Reads for the first steps; opens phis of that.
void cg_early_begin(struct cg_lowering *l, struct cg_early *e, LLVMValueRef first);
void cg_early_open(struct cg_lowering *l, struct cg_early *e, LLVMBasicBlockRef before);
// Reads in step k of a strip for a later one, and makes the values those of the step, which its body does not read
// again.
void cg_early_step(struct cg_lowering *l, struct cg_early *e, LLVMValueRef step, int64_t k);
void cg_early_close(struct cg_lowering *l, const struct cg_early *e, LLVMBasicBlockRef latch);

#endif
