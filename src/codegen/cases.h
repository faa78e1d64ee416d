// SPDX-License-Identifier: Apache-2.0
// Branches on one integer in one another are one jump.
#ifndef CODEGEN_CASES_H
#define CODEGEN_CASES_H

#include "codegen/lower.h"

// Lowers the branch and those in it, if they are such a tree; else does nothing and is false.
bool cg_lower_cases(struct cg_lowering *l, const struct nest_statement *s);
#endif
