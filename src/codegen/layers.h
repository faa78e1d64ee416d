// SPDX-License-Identifier: Apache-2.0
// Products with small matrices as functions of their own, one for each shape (layers.c).  A row is
// an output or an input of all points, its lanes are points.
#ifndef CODEGEN_LAYERS_H
#define CODEGEN_LAYERS_H

#include "codegen/lower.h"

// to[j] = sum over k, in order, by fma, of from[k] matrix[input_step * k + output_step * j]
struct cg_layer {
    jot_dtype dtype;
    unsigned lanes;
    int64_t inputs, outputs, input_step, output_step;
    int64_t from_row, to_row; // elements from row to row
};
void cg_call_layer(struct cg_lowering *l, const struct cg_layer *layer, LLVMValueRef to,
                   LLVMValueRef from, LLVMValueRef matrix);

// to[sides[1] * i + j] = sum over points of a block, in the order of sums, of a[i] b[j].  What
// is of `lanes` points stands together: rows[0] rows of a, rows[1] of b, of which the first ones
// count.  Those that have the same accumulators follow each other, `trips` of them.
struct cg_product {
    nest_id put, source[2];
    jot_dtype dtype;
    unsigned lanes;
    int64_t sides[2], rows[2], trips;
};
// count: of points; behind them there are zeros.
void cg_call_product(struct cg_lowering *l, const struct cg_product *product, LLVMValueRef to,
                     LLVMValueRef a, LLVMValueRef b, LLVMValueRef count);

// Adds up rows of sums pairwise, the result in row 0.
void cg_call_tree(struct cg_lowering *l, jot_dtype d, LLVMValueRef base, int64_t rows,
                  int64_t width);

#endif
