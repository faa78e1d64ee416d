// SPDX-License-Identifier: Apache-2.0
// Linear algebra on small matrices as graphs of other ops.
#ifndef PASSES_EXPAND_EXPAND_H
#define PASSES_EXPAND_EXPAND_H

#include "ir/build.h"

// g, which may be NULL, with what is small enough written out, and convolutions unless they are kept:
// what pass_schedule does first.
const struct ir_graph *pass_expand(const struct ir_graph *g, bool keeps_convolutions);

// Matrices up to so many rows and columns are written out, column by column.
#define EXPAND_SIZE 16
// The most parts that a kernel chooses an element from.
#define EXPAND_PARTS 16
// Outside of loops, where so many are solved at once and, for code is compiled by the op, so many
// for each operation of one; others are left to a routine.
#define EXPAND_COUNT 8
#define EXPAND_COUNT_OF_WORK 0.125
#define EXPAND_WORK (EXPAND_SIZE * EXPAND_SIZE * EXPAND_SIZE)

// The results of a node over operands `in`, whose matrices are written out or, of tridiagonal_solve,
// a loop over rows.  Operands may have axes in front of the matrices.
void expand_cholesky(struct ir_builder *b, const struct ir_attrs *attrs, const ir_id *in,
                     ir_id *out);
void expand_lu(struct ir_builder *b, const struct ir_attrs *attrs, const ir_id *in, ir_id *out);
void expand_triangular_solve(struct ir_builder *b, const struct ir_attrs *attrs,
                             const ir_id *in, ir_id *out);
void expand_tridiagonal_solve(struct ir_builder *b, const struct ir_attrs *attrs,
                              const ir_id *in, ir_id *out);

#endif
