// SPDX-License-Identifier: Apache-2.0
// Loops over time that update elements of an array.
#ifndef CODEGEN_UPDATES_H
#define CODEGEN_UPDATES_H

#include "codegen/lower.h"

// False when it is of another kind.
bool cg_lower_updates(struct cg_lowering *l, const struct nest_statement *s);

#endif
