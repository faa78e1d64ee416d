// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_PORTABLE_H
#define INTEROP_PORTABLE_H

#include "interop/program.h"

// Adds the program as portable bytecode (mlir_write_bytecode).  Operations of CHLO, which that has not,
// are functions of what it has.  Inside a guard of the arena of `out`.
jot_status portable_write(struct strbuf *out, const struct mlir_program *p);

#endif
