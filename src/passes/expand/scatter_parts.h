// SPDX-License-Identifier: Apache-2.0
// Sums of many updates in parts.
#ifndef PASSES_EXPAND_SCATTER_PARTS_H
#define PASSES_EXPAND_SCATTER_PARTS_H

#include "ir/build.h"

// x from start to limit along the axis.
ir_id scatter_cut(struct ir_builder *b, ir_id x, int axis, int64_t start, int64_t limit);
// The sum over the leading axis, neighbours first.
ir_id scatter_sum_pairs(struct ir_builder *b, ir_id x, int64_t parts);
// The scatter_add node over the operands `in`, in that many parts.
ir_id scatter_in_parts(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                       int64_t parts);

#endif
