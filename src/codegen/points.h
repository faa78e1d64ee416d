// SPDX-License-Identifier: Apache-2.0
// A loop over points some of whose statements are products with small matrices.
#ifndef CODEGEN_POINTS_H
#define CODEGEN_POINTS_H

#include "codegen/fold.h"

bool cg_is_network(const struct cg_lowering *l, nest_id loop);
unsigned cg_network_lanes(const struct cg_lowering *l);
void cg_lower_network(struct cg_lowering *l, nest_id loop, LLVMValueRef begin,
                      LLVMValueRef end);
void cg_fold_network(struct cg_lowering *l, struct cg_fold_plan *p, LLVMValueRef first,
                     LLVMValueRef last, LLVMValueRef row);
// Whether the put is of products that are summed after the block.
bool cg_is_put_later(const struct cg_lowering *l, nest_id fold, nest_id put);
void cg_lower_contract(struct cg_lowering *l, const struct nest_statement *s);

#endif
