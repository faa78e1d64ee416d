// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_CHECK_H
#define INTEROP_CHECK_H

#include "interop/to_graph.h"

// factor K |a| |b| for each element of what a product or a convolution of given values gives, K the terms
// of a sum; NULL for other operations.  For memory_release.
double *check_product_bounds(const struct graph_function *f, const struct mlir_op *op,
                             double factor);
// Element i as text.
void check_format(const jot_array *x, size_t i, char *out, size_t size);

#endif
