// SPDX-License-Identifier: Apache-2.0
// Locals that every lane has.
#ifndef CODEGEN_OWN_H
#define CODEGEN_OWN_H

#include "codegen/lower.h"

// Whether the buffer is one.
bool cg_is_own(struct cg_lowering *l, nest_id buffer);
struct cg_value cg_own_load(struct cg_lowering *l, const struct nest_statement *s);
void cg_own_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);

#endif
