// SPDX-License-Identifier: Apache-2.0
// Bodies whose lanes differ only where an index equals some number.
#ifndef CODEGEN_ONEHOT_H
#define CODEGEN_ONEHOT_H

#include "codegen/lower.h"

struct cg_onehot;

// Made before the loop over vectors, NULL when the body is not of this kind.
struct cg_onehot *cg_onehot_make(struct cg_lowering *l, uint32_t block);
void cg_onehot_lower(struct cg_lowering *l, uint32_t block, const struct cg_onehot *onehot);

#endif
