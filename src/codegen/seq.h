// SPDX-License-Identifier: Apache-2.0
// Loops of a known number of trips.
#ifndef CODEGEN_SEQ_H
#define CODEGEN_SEQ_H

#include "codegen/lower.h"

void cg_lower_seq(struct cg_lowering *l, const struct nest_statement *s);

#endif
