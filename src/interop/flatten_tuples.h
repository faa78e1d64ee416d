// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_FLATTEN_TUPLES_H
#define INTEROP_FLATTEN_TUPLES_H

#include "interop/mlir.h"

// The program with parts where tuples are, and without tokens and operations that do nothing; itself when it has none
// of them, or tuples of so many parts that they are left to be refused.  Its functions are those of p, in their order.  In the arena of p,
// inside a guard.
const struct mlir_program *mlir_flatten(const struct mlir_program *p);

#endif
