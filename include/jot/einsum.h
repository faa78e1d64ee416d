// SPDX-License-Identifier: Apache-2.0
// Products written as subscripts, and products of vectors with names of their own.
//
//     jot_value c = jot_einsum("ij,jk->ik", a, b);              a · b
//     jot_value t = jot_einsum("ii", a);                        the sum of the diagonal
//     jot_value y = jot_einsum("bi,ijk,bj->bk", u, w, v);       three factors, two at a time
//     jot_value s = jot_einsum("...ij->...ji", a);              transposed in the last two axes
//
// Names and meanings are those of jax.numpy.
#ifndef JOT_EINSUM_H
#define JOT_EINSUM_H

#include "jot/ops.h"

JOT_BEGIN_C

// The sum, over all letters that the result has not, of the product of the operands' elements:
// each operand has a letter (a-z, A-Z) for each of its axes.
//
// - A letter twice in one operand takes the diagonal; in several it pairs their axes, which
//   have one size, or 1: such an axis is repeated.
// - "..." stands for axes without a letter, matched from the last one and broadcast.
// - Without "->" the result has the axes of "...", then the letters that occur once, in the
//   order of the alphabet.
// - Spaces count for nothing.
//
// Factors are multiplied two at a time, in the order of fewest multiplications for up to 8 of
// them, found by trying all; with more, the pair next whose product is smallest beside its
// factors (Smith and Gray, opt_einsum, JOSS 2018).  Truth values are counted in i32.
// JOT_ERR_ARGUMENT: subscripts that cannot be read; JOT_ERR_SHAPE: sizes that do not fit them.
JOT_API jot_value jot_einsum_list(const char *subscripts, size_t n, const jot_value *x);

// The Kronecker product: x_i y at every element x_i of x.  With axes of different numbers the
// shorter list has axes of size 1 in front.
JOT_API jot_value jot_kron(jot_value x, jot_value y);

// The vector product along the last axis, of 3 elements each: (x1 y2 - x2 y1, x2 y0 - x0 y2, x0
// y1 - x1 y0), and of 2 elements, which stand for a third that is 0.  Two vectors of 2 elements
// give the last component alone, without the axis.  The other axes broadcast.
JOT_API jot_value jot_cross(jot_value x, jot_value y);

// The sum over the last axes of both; the other axes of x come first.  With a scalar it is mul.
JOT_API jot_value jot_inner(jot_value x, jot_value y);

// sum(conj(x) y) along an axis; the other axes broadcast.
JOT_API jot_value jot_vecdot(jot_value x, jot_value y, int axis);

// A matrix in the last two axes with a vector in the last one, m v and conj(v) m; the axes
// before them broadcast.
JOT_API jot_value jot_matvec(jot_value m, jot_value v);
JOT_API jot_value jot_vecmat(jot_value v, jot_value m);

// The product of a chain of 2 or more matrices in the order of fewest multiplications; the
// first and the last may be vectors.
JOT_API jot_value jot_multi_dot_list(size_t n, const jot_value *x);

// The rows of x[m, k], in groups of so many rows as the integers sizes[g] say, one behind the other,
// each times the matrix of its group in w[g, k, n]; rows behind the groups give 0.  As one product of
// an m by (g k) matrix, of which all but k columns of each row are 0.
JOT_API jot_value jot_ragged_dot(jot_value x, jot_value w, jot_value sizes);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#define jot_einsum(subscripts, ...)                                                            \
    JOT_OP_("jot_einsum(" #subscripts ", " #__VA_ARGS__ ")",                                   \
            jot_einsum_list(subscripts, JOT_VALUES_("jot_einsum", __VA_ARGS__)))
#define jot_kron(x, y) JOT_OP2_(jot_kron, #x ", " #y, x, y)
#define jot_cross(x, y) JOT_OP2_(jot_cross, #x ", " #y, x, y)
#define jot_inner(x, y) JOT_OP2_(jot_inner, #x ", " #y, x, y)
#define jot_vecdot(x, y, axis)                                                                 \
    JOT_OP_("jot_vecdot(" #x ", " #y ", " #axis ")", jot_vecdot(JOT_VALUE_("jot_vecdot", x), JOT_VALUE_("jot_vecdot", y), axis))
#define jot_matvec(m, v) JOT_OP2_(jot_matvec, #m ", " #v, m, v)
#define jot_vecmat(v, m) JOT_OP2_(jot_vecmat, #v ", " #m, v, m)
#define jot_ragged_dot(x, w, sizes)                                                            \
    JOT_OP3_(jot_ragged_dot, #x ", " #w ", " #sizes, x, w, sizes)
#define jot_multi_dot(...)                                                                     \
    JOT_OP_("jot_multi_dot(" #__VA_ARGS__ ")", jot_multi_dot_list(JOT_VALUES_("jot_multi_dot", __VA_ARGS__)))
// clang-format on

#endif // JOT_PLAIN

#endif
