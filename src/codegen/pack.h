// SPDX-License-Identifier: Apache-2.0
// Short rows of the state of a lane alone as vectors.
#ifndef CODEGEN_PACK_H
#define CODEGEN_PACK_H

#include "codegen/lower.h"

// The while of a lane alone with vectors of carries, from what they are to what they become; false
// when there are none.
bool cg_lower_packed(struct cg_lowering *l, const struct nest_statement *s,
                     const struct cg_value *init, struct cg_value *carries);

#endif
