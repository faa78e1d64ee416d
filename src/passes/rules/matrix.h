// SPDX-License-Identifier: Apache-2.0
// Matrices, the last two axes of values of any rank, in the rules of linear algebra.  The axes before
// them are the same in all operands.
#ifndef PASSES_RULES_MATRIX_H
#define PASSES_RULES_MATRIX_H

#include "ir/build.h"

int64_t rule_rows(struct ir_builder *b, ir_id x);
int64_t rule_columns(struct ir_builder *b, ir_id x);
ir_id rule_transpose(struct ir_builder *b, ir_id x);
ir_id rule_adjoint(struct ir_builder *b, ir_id x); // conjugated as well
ir_id rule_product(struct ir_builder *b, ir_id x, ir_id y);
// Whether row + k op column, by element of a matrix of x.
ir_id rule_compare(struct ir_builder *b, enum ir_op op, ir_id x, int64_t k);
// x where it holds and 0 elsewhere.
ir_id rule_keep(struct ir_builder *b, ir_id holds, ir_id x);
// Up to diagonal k, and from it on.
ir_id rule_lower(struct ir_builder *b, ir_id x, int64_t k);
ir_id rule_upper(struct ir_builder *b, ir_id x, int64_t k);
// The first rows and columns, or with zeros behind them.
ir_id rule_resize(struct ir_builder *b, ir_id x, int64_t rows, int64_t columns);
// The vectors of main diagonals.
ir_id rule_diagonal(struct ir_builder *b, ir_id x);
// Vectors as matrices of one row, or of one column.
ir_id rule_row(struct ir_builder *b, ir_id x);
ir_id rule_column(struct ir_builder *b, ir_id x);

#endif
