// SPDX-License-Identifier: Apache-2.0
// Folds that accumulate rows.
#ifndef CODEGEN_FOLD_ROWS_H
#define CODEGEN_FOLD_ROWS_H

#include "codegen/fold.h"

// One block with the rows that it accumulates in registers; false when they do not fit.
bool cg_fold_rows(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                  LLVMValueRef last);

#endif
