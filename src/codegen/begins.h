// SPDX-License-Identifier: Apache-2.0
// Nests that differ in where they begin to read.
#ifndef CODEGEN_BEGINS_H
#define CODEGEN_BEGINS_H

#include "nest/program.h"

// Of the nests that are wanted those that are equal but for where they begin to read become one, which
// steps of the others are steps of; their ranges say where it begins, a multiple of `alignment` bytes.  By nest: the
// one that stands for it, or itself.
void cg_begins_share(struct arena *arena, struct nest_program *program, const bool *wanted,
                     unsigned alignment, uint32_t *out_of);

#endif
