// SPDX-License-Identifier: Apache-2.0
// Loops that end by a test.
#ifndef CODEGEN_WHILE_H
#define CODEGEN_WHILE_H

#include "codegen/lower.h"

void cg_lower_while(struct cg_lowering *l, const struct nest_statement *s);

#endif
