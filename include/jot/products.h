// SPDX-License-Identifier: Apache-2.0
// Products of vectors, matrices and stacks of them.  Sums are in f32 for f16 and bf16, else in the type of the
// operands, in a fixed order.
#ifndef JOT_PRODUCTS_H
#define JOT_PRODUCTS_H

#include "jot/trace.h"

JOT_BEGIN_C

// How exact the factors of a product of f32 (and of c64) need be; sums stay in f32.  It is a licence
// that a GPU with units for such numbers uses; the host computes in full.  Derivatives of a product
// have its precision.
//     jot_matmul(x, w, .precision = JOT_PRECISION_TF32)
// For all products of a function see jot_jit_options.
typedef enum jot_precision {
    JOT_PRECISION_FULL, // f32 is f32
    JOT_PRECISION_TF32, // 11 bits: about 8 times as fast on an H200
    JOT_PRECISION_BF16, // 8 bits
    // Parts of 11 bits of a factor and of its rest: twice as fast as in full on an H200. A long sum is
    // one of several, in as many pieces as keep the errors those of a product in f32.
    JOT_PRECISION_3TF32,
} jot_precision;

// Named options of the products below.
typedef struct jot_product_options {
    jot_precision precision; // FULL is that of the function
    size_t size;             // of this struct, set by the macro; 0 is this version
} jot_product_options;

// numpy.dot: the sum over the last axis of x and the last but one of y (its only one if y is a
// vector).  With a scalar it is mul.
JOT_API jot_value jot_dot(jot_value x, jot_value y);
JOT_API jot_value jot_dot_with(jot_value x, jot_value y, const jot_product_options *options);

// numpy.matmul: matrices in the last two axes, the axes before them broadcast; a vector counts
// as a row on the left, a column on the right.
JOT_API jot_value jot_matmul(jot_value x, jot_value y);
JOT_API jot_value jot_matmul_with(jot_value x, jot_value y, const jot_product_options *options);

// x_i y_j of the flattened x and y.
JOT_API jot_value jot_outer(jot_value x, jot_value y);

// sum(conj(x) y) of the flattened x and y.
JOT_API jot_value jot_vdot(jot_value x, jot_value y);

// The sum over the last `axes` axes of x and the first `axes` axes of y.
JOT_API jot_value jot_tensordot(jot_value x, jot_value y, int axes);

// The sum over the paired axes of both lists; the other axes of x come first.
JOT_API jot_value jot_tensordot_axes(jot_value x, jot_value y, const int *x_axes,
                                     const int *y_axes);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#if defined(__cplusplus)
#define jot_dot(x, y) JOT_OP2_(jot_dot, #x ", " #y, x, y)
#define jot_matmul(x, y) JOT_OP2_(jot_matmul, #x ", " #y, x, y)
#else
#define JOT_PRODUCT_(f, x, t, ...)                                                             \
    JOT_OP_(#f "(" t ")",                                                                      \
            f##_with(JOT_VALUE_(#f, x), JOT_VALUE_(#f, JOT_FIRST_(__VA_ARGS__, 0)),                              \
                     JOT_OPTIONS_(jot_product_options, #f " takes (x, y, .precision = ...)",   \
                                  JOT_REST_(__VA_ARGS__, .size = sizeof(jot_product_options)))))
#define jot_dot(x, ...) JOT_PRODUCT_(jot_dot, x, #x ", " #__VA_ARGS__, __VA_ARGS__)
#define jot_matmul(x, ...) JOT_PRODUCT_(jot_matmul, x, #x ", " #__VA_ARGS__, __VA_ARGS__)
#endif
#define jot_outer(x, y) JOT_OP2_(jot_outer, #x ", " #y, x, y)
#define jot_vdot(x, y) JOT_OP2_(jot_vdot, #x ", " #y, x, y)
#define jot_tensordot(x, y, axes)                                                              \
    JOT_OP_("jot_tensordot(" #x ", " #y ", " #axes ")",                                        \
            jot_tensordot(JOT_VALUE_("jot_tensordot", x), JOT_VALUE_("jot_tensordot", y), axes))
// clang-format on

#endif // JOT_PLAIN

#endif
