// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_GRAPH_FOLD_H
#define INTEROP_GRAPH_FOLD_H

#include "interop/graph_bodies.h"

// select_and_scatter by any bodies: the windows' elements one after the other.
void graph_select_and_scatter(struct graph_frame *frame, const struct mlir_op *op,
                              const int64_t *window, const int64_t *strides, const int64_t *low,
                              const int64_t *high);

// x, a vector, with the elements at the indices, [n, 1], changed by the body and the updates, [n], one after
// the other; indices below 0 are none.
jot_value graph_scatter_elements(struct graph_frame *frame, const struct mlir_op *op,
                                 const struct mlir_block *body, ir_id x, ir_id indices,
                                 ir_id updates);

#endif
