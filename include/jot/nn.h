// SPDX-License-Identifier: Apache-2.0
// Functions of neural networks, as in jax.nn; relu, gelu, silu, softplus, softmax and
// log_softmax are in ops.h.
//
// Real floating types; integers are converted.  Element by element unless an axis is given.
#ifndef JOT_NN_H
#define JOT_NN_H

#include "jot/ops.h"

JOT_BEGIN_C

// minimum(maximum(x, 0), 6).
JOT_API jot_value jot_relu6(jot_value x);
// x above 0, slope x below; JAX's slope is 0.01.
JOT_API jot_value jot_leaky_relu(jot_value x, jot_value slope);
// x above 0, alpha (e^x - 1) below; selu is 1.0507 elu(x, 1.6733), celu alpha (e^(x/alpha) - 1) below.
JOT_API jot_value jot_elu(jot_value x, jot_value alpha);
JOT_API jot_value jot_selu(jot_value x);
JOT_API jot_value jot_celu(jot_value x, jot_value alpha);
// x Phi(x) with the error function; jot_gelu is its approximation.
JOT_API jot_value jot_gelu_exact(jot_value x);
// a logistic(b) of the halves a, b of x along an axis.
JOT_API jot_value jot_glu(jot_value x, int axis);
// relu6(x + 3) / 6, x times that, and x limited to [-1, 1].
JOT_API jot_value jot_hard_sigmoid(jot_value x);
JOT_API jot_value jot_hard_silu(jot_value x);
JOT_API jot_value jot_hard_tanh(jot_value x);
// log(logistic(x)).
JOT_API jot_value jot_log_sigmoid(jot_value x);
// x tanh(softplus(x)).
JOT_API jot_value jot_mish(jot_value x);
// x / (|x| + 1).
JOT_API jot_value jot_soft_sign(jot_value x);
// (x + sqrt(x^2 + b)) / 2; JAX's b is 4.
JOT_API jot_value jot_squareplus(jot_value x, jot_value b);
// 0 below -1, x above 1, (x + 1)^2 / 4 between; and its derivative.
JOT_API jot_value jot_sparse_plus(jot_value x);
JOT_API jot_value jot_sparse_sigmoid(jot_value x);
// log(1 - e^-x) for x > 0.
JOT_API jot_value jot_log1mexp(jot_value x);
// (x - mean) / sqrt(variance + 1e-5) along an axis.
JOT_API jot_value jot_standardize(jot_value x, int axis);
// log(mean(e^x)) over the listed axes, or all; with JOT_KEEPDIMS they stay with size 1.
JOT_API jot_value jot_logmeanexp_axes(jot_value x, const int *axes);

JOT_END_C

#if !defined(JOT_PLAIN)
// clang-format off
#define jot_relu6(x) JOT_OP1_(jot_relu6, #x, x)
#define jot_leaky_relu(x, slope) JOT_OP2_(jot_leaky_relu, #x ", " #slope, x, slope)
#define jot_elu(x, alpha) JOT_OP2_(jot_elu, #x ", " #alpha, x, alpha)
#define jot_selu(x) JOT_OP1_(jot_selu, #x, x)
#define jot_celu(x, alpha) JOT_OP2_(jot_celu, #x ", " #alpha, x, alpha)
#define jot_gelu_exact(x) JOT_OP1_(jot_gelu_exact, #x, x)
#define jot_glu(x, axis) JOT_OP_("jot_glu(" #x ", " #axis ")", jot_glu(JOT_VALUE_("jot_glu", x), axis))
#define jot_hard_sigmoid(x) JOT_OP1_(jot_hard_sigmoid, #x, x)
#define jot_hard_silu(x) JOT_OP1_(jot_hard_silu, #x, x)
#define jot_hard_tanh(x) JOT_OP1_(jot_hard_tanh, #x, x)
#define jot_log_sigmoid(x) JOT_OP1_(jot_log_sigmoid, #x, x)
#define jot_mish(x) JOT_OP1_(jot_mish, #x, x)
#define jot_soft_sign(x) JOT_OP1_(jot_soft_sign, #x, x)
#define jot_squareplus(x, b) JOT_OP2_(jot_squareplus, #x ", " #b, x, b)
#define jot_sparse_plus(x) JOT_OP1_(jot_sparse_plus, #x, x)
#define jot_sparse_sigmoid(x) JOT_OP1_(jot_sparse_sigmoid, #x, x)
#define jot_log1mexp(x) JOT_OP1_(jot_log1mexp, #x, x)
#define jot_logmeanexp(...) JOT_AXES_OP_(logmeanexp, #__VA_ARGS__, __VA_ARGS__)
#define jot_standardize(x, axis) JOT_OP_("jot_standardize(" #x ", " #axis ")", jot_standardize(JOT_VALUE_("jot_standardize", x), axis))
// clang-format on
#endif // JOT_PLAIN

#endif
