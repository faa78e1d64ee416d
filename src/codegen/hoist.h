// SPDX-License-Identifier: Apache-2.0
// What is the same in all iterations of a loop.
#ifndef CODEGEN_HOIST_H
#define CODEGEN_HOIST_H

#include "codegen/lower.h"

// Lowers that before the loop.
void cg_hoist(struct cg_lowering *l, const nest_id *axes, int n_axes, nest_id first_carry,
              uint32_t n_carries, const uint32_t *blocks, int n_blocks);
void cg_forget_hoisted(struct cg_lowering *l, uint32_t block);

#endif
