// SPDX-License-Identifier: Apache-2.0
// What a loop over time reads some trips before.
#ifndef CODEGEN_EARLY_H
#define CODEGEN_EARLY_H

#include "codegen/lower.h"

// `values` are those of the trips of a strip, in which so many are written out, and of as many trips
// behind them.
struct cg_early {
    uint32_t n, trips, strip;
    nest_id axis, *statements;
    struct cg_value *values;
    LLVMValueRef last; // trip
    bool is_back;
};
struct cg_early cg_early_of(struct cg_lowering *l, const struct nest_statement *seq,
                            int64_t strip);
// Reads for the first trips; opens phis of that.
void cg_early_begin(struct cg_lowering *l, struct cg_early *e, LLVMValueRef first);
void cg_early_open(struct cg_lowering *l, struct cg_early *e, LLVMBasicBlockRef before);
// Reads in trip k of a strip for a later one, and makes the values those of the trip, which its body does not read
// again.
void cg_early_trip(struct cg_lowering *l, struct cg_early *e, LLVMValueRef trip, int64_t k);
void cg_early_close(struct cg_lowering *l, const struct cg_early *e, LLVMBasicBlockRef latch);

#endif
