// SPDX-License-Identifier: Apache-2.0
// Branches, and values that come from either side of one.
#ifndef CODEGEN_BRANCH_H
#define CODEGEN_BRANCH_H

#include "codegen/lower.h"

void cg_lower_if(struct cg_lowering *l, const struct nest_statement *s);
// The values that a branch ends with, of every turn.
void cg_take_yields(struct cg_lowering *l, const struct nest_statement *s,
                    const nest_id *yields, struct cg_value *out);
// Whether some lane of the mask is set.
LLVMValueRef cg_any(struct cg_lowering *l, LLVMValueRef mask);
// One value from either of two blocks.
struct cg_value cg_merge(struct cg_lowering *l, struct cg_value a, LLVMBasicBlockRef from_a,
                         struct cg_value b, LLVMBasicBlockRef from_b);
struct cg_value cg_phi(struct cg_lowering *l, struct cg_value from, LLVMBasicBlockRef block);
void cg_phi_add(struct cg_value phi, struct cg_value from, LLVMBasicBlockRef block);

#endif
