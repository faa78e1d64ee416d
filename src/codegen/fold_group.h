// SPDX-License-Identifier: Apache-2.0
// Accumulators that come together in registers.
#ifndef CODEGEN_FOLD_GROUP_H
#define CODEGEN_FOLD_GROUP_H

#include "codegen/fold.h"

// How many of them do, and one block with those.
unsigned cg_fold_group(const struct cg_lowering *l, const struct cg_fold_plan *p);
void cg_fold_groups(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                    LLVMValueRef last);

#endif
