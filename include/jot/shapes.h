// SPDX-License-Identifier: Apache-2.0
// Matrices of numbers, diagonals and triangles, grids, parts put in and taken out, bits, and indices as numbers.
//
//     jot_value f = jot_matrix(2, 2, 1, dt, 0, 1);
//     jot_value d = jot_diagonal(x, 0, 0, 1);           x_ii
//     jot_value s = jot_trace(x, 0);                    its sum
//     jot_value p[3]; jot_unstack(x, 0, p);             the rows of x
//     jot_value g[] = {x, y}; jot_meshgrid(JOT_GRID_XY, g);
//
// Names and meanings are those of jax.numpy.  What only orders indices anew (diagonals of
// memory, grids, parts) costs nothing in a kernel, and derivatives of all of them are exact.
#ifndef JOT_SHAPES_H
#define JOT_SHAPES_H

#include "jot/array.h"
#include "jot/ops.h"

JOT_BEGIN_C

// ---- Numbers of the program ----

// A table of C data of at most 2^24 elements as a value that is part of the program: jot_constant(data, 2, 3),
// without sizes a scalar.  It is copied, and calls with other data compile anew; what is large, or changes, is an
// array (jot_from).  Fails with JOT_ERR_ARGUMENT when the data is NULL.
JOT_API jot_value jot_constant_of(jot_dtype dtype, const void *data, const int64_t *dims);

// The m by n matrix of m n scalars, row by row.  Types as for jot_stack.  Fails with JOT_ERR_ARGUMENT when there are
// more or fewer, with JOT_ERR_SHAPE when one is no scalar that the others are like.
JOT_API jot_value jot_matrix_list(int64_t m, int64_t n, size_t count, const jot_value *x);

// ---- Diagonals and triangles ----

// x[..., i, i + k] of two different axes of x, which become the last one of the result; for k <
// 0 x[..., i - k, i].  Empty where the diagonal is outside.
JOT_API jot_value jot_diagonal(jot_value x, int64_t k, int axis1, int axis2);

// Every step-th element of that diagonal, from the first on.  step is at least 1; another one, and an axis
// twice, is JOT_ERR_ARGUMENT.
JOT_API jot_value jot_diagonal_step(jot_value x, int64_t k, int64_t step, int axis1, int axis2);

// The sum of the k-th diagonal of the first two axes.  Types as for jot_sum.
JOT_API jot_value jot_trace(jot_value x, int64_t k);

// Of a vector the square matrix with it on the k-th diagonal and zeros elsewhere; of a matrix
// its k-th diagonal.
JOT_API jot_value jot_diag(jot_value x, int64_t k);

// x with y on the diagonal of the last two axes.  y broadcasts to the diagonal, and must not
// need a wider type than x.
JOT_API jot_value jot_fill_diagonal(jot_value x, jot_value y);

// The n by m matrix with ones up to the k-th diagonal, zeros above it.
JOT_API jot_value jot_tri(jot_dtype dtype, int64_t n, int64_t m, int64_t k);

// The indices of the elements of an n by m matrix up to, or from, the k-th diagonal, row by row: i32[2, count],
// rows in front of columns.
JOT_API jot_value jot_tril_indices(int64_t n, int64_t k, int64_t m);
JOT_API jot_value jot_triu_indices(int64_t n, int64_t k, int64_t m);

// Square matrices from the elements of their lower, or upper, triangle: x[..., n (n + 1) / 2], row by row, becomes
// [..., n, n] with zeros elsewhere.  The reverse, of x[..., n, n], is below.  Derivatives are those of the elements.
JOT_API jot_value jot_fill_tril(jot_value x);
JOT_API jot_value jot_fill_triu(jot_value x);
JOT_API jot_value jot_tril_elements(jot_value x);
JOT_API jot_value jot_triu_elements(jot_value x);

// x_i^(n - 1 - j) of a vector x, for j = 0, ..., n - 1.
JOT_API jot_value jot_vander(jot_value x, int64_t n);

// ---- Order and size ----

// Turned by 90 degrees, quarters times, from the first listed axis to the second.
JOT_API jot_value jot_rot90(jot_value x, int quarters, int axis1, int axis2);

// At least so many axes.  A scalar is one element; vectors are rows, and of three axes x[1, n,
// 1]; a matrix is x[n, m, 1].
JOT_API jot_value jot_atleast_1d(jot_value x);
JOT_API jot_value jot_atleast_2d(jot_value x);
JOT_API jot_value jot_atleast_3d(jot_value x);

// The elements of x in row-major order, again and again until the sizes are full.
JOT_API jot_value jot_resize_dims(jot_value x, const int64_t *dims);

// x with the slices of y put in before index `index` along the axis; y broadcasts to one slice,
// or has as many along the axis as are put in.  A negative index counts from the end; the
// extent is behind the last.  The type is that of x.
JOT_API jot_value jot_insert(jot_value x, int64_t index, jot_value y, int axis);

// x without one slice along the axis.
JOT_API jot_value jot_delete(jot_value x, int64_t index, int axis);

// n parts along an axis, into out: the first extent % n of them have one slice more.
JOT_API void jot_array_split_into(jot_value x, int axis, size_t n, jot_value *out);

// The n slices along an axis of extent n, which goes, into out.
JOT_API void jot_unstack_into(jot_value x, int axis, size_t n, jot_value *out);

// ---- Grids ----

// Which axis of a grid goes along which vector.
enum jot_grid {
    JOT_GRID_IJ, // axis i of the results goes along vector i
    JOT_GRID_XY  // the first two axes exchanged, as images have them
};

// n vectors, in place, each repeated along the axes of the others.
JOT_API void jot_meshgrid_tree(enum jot_grid grid, size_t n, jot_value *x);

// n values, in place, each broadcast to their common shape.
JOT_API void jot_broadcast_arrays_tree(size_t n, jot_value *x);

// The index along each axis of a shape: [rank, sizes...], or jot_indices(JOT_I32, 2, 3)[0] the
// rows.
JOT_API jot_value jot_indices_dims(jot_dtype dtype, const int64_t *dims);

// n numbers at even distances of their logarithm, from 10^start to 10^stop, or from start to
// stop (both not 0, of one sign).
JOT_API jot_value jot_logspace(jot_dtype dtype, double start, double stop, int64_t n);
JOT_API jot_value jot_geomspace(jot_dtype dtype, double start, double stop, int64_t n);

// ---- Indices as numbers ----

// The indices along each axis of sizes [rank, ...] of the element whose number is the index in
// row-major order, and back.  Indices outside are moved to the first or last element.
JOT_API jot_value jot_unravel_index_dims(jot_value index, const int64_t *dims);
JOT_API jot_value jot_ravel_multi_index_dims(jot_value indices, const int64_t *dims);

// x with x[..., index[...], ...] = y[...], the reverse of jot_take_along_axis: the index has
// the axes of x, of sizes that are equal or 1 but for the one axis.  An index outside is left
// out.
JOT_API jot_value jot_put_along_axis(jot_value x, jot_value index, jot_value y, int axis);

// ---- Bits ----

// Eight truth values (what is not 0) in a byte, along an axis, the first as the highest bit;
// the last byte is filled up with zeros.  bool or integers to u8.
JOT_API jot_value jot_packbits(jot_value x, int axis);

// The bits of bytes, u8, as u8 of 0 and 1 along the axis.
JOT_API jot_value jot_unpackbits(jot_value x, int axis);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
// A compound literal stands in parentheses of its own: jot_constant(((float[]){1, 2}), 2).
#define jot_constant(...)                                                                      \
    JOT_OP_("jot_constant(" #__VA_ARGS__ ")",                                                  \
            jot_constant_of(JOT_DTYPE_OF_("jot_constant", JOT_FIRST_(__VA_ARGS__, 0)),         \
                            JOT_FIRST_(__VA_ARGS__, 0), JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_matrix(m, n, ...)                                                                  \
    JOT_OP_("jot_matrix(" #m ", " #n ", " #__VA_ARGS__ ")",                                    \
            jot_matrix_list(m, n, JOT_VALUES_("jot_matrix", __VA_ARGS__)))
#define jot_fill_tril(x) JOT_OP1_(jot_fill_tril, #x, x)
#define jot_fill_triu(x) JOT_OP1_(jot_fill_triu, #x, x)
#define jot_tril_elements(x) JOT_OP1_(jot_tril_elements, #x, x)
#define jot_triu_elements(x) JOT_OP1_(jot_triu_elements, #x, x)
#define jot_diagonal(x, k, a, b)                                                               \
    JOT_OP_("jot_diagonal(" #x ", " #k ", " #a ", " #b ")", jot_diagonal(JOT_VALUE_("jot_diagonal", x), k, a, b))
#define jot_diagonal_step(x, k, step, a, b)                                                    \
    JOT_OP_("jot_diagonal_step(" #x ", " #k ", " #step ", " #a ", " #b ")",                     \
            jot_diagonal_step(JOT_VALUE_("jot_diagonal_step", x), k, step, a, b))
#define jot_trace(x, k)                                                                        \
    JOT_OP_("jot_trace(" #x ", " #k ")", jot_trace(JOT_VALUE_("jot_trace", x), k))
#define jot_diag(x, k)                                                                         \
    JOT_OP_("jot_diag(" #x ", " #k ")", jot_diag(JOT_VALUE_("jot_diag", x), k))
#define jot_fill_diagonal(x, y) JOT_OP2_(jot_fill_diagonal, #x ", " #y, x, y)
#define jot_tri(dtype, n, m, k)                                                                \
    JOT_OP_("jot_tri(" #dtype ", " #n ", " #m ", " #k ")", jot_tri(dtype, n, m, k))
#define jot_tril_indices(n, k, m)                                                              \
    JOT_OP_("jot_tril_indices(" #n ", " #k ", " #m ")", jot_tril_indices(n, k, m))
#define jot_triu_indices(n, k, m)                                                              \
    JOT_OP_("jot_triu_indices(" #n ", " #k ", " #m ")", jot_triu_indices(n, k, m))
#define jot_vander(x, n)                                                                       \
    JOT_OP_("jot_vander(" #x ", " #n ")", jot_vander(JOT_VALUE_("jot_vander", x), n))
#define jot_rot90(x, quarters, a, b)                                                           \
    JOT_OP_("jot_rot90(" #x ", " #quarters ", " #a ", " #b ")",                                \
            jot_rot90(JOT_VALUE_("jot_rot90", x), quarters, a, b))
#define jot_atleast_1d(x) JOT_OP1_(jot_atleast_1d, #x, x)
#define jot_atleast_2d(x) JOT_OP1_(jot_atleast_2d, #x, x)
#define jot_atleast_3d(x) JOT_OP1_(jot_atleast_3d, #x, x)
#define jot_resize(...) JOT_SIZES_OP_(resize, #__VA_ARGS__, __VA_ARGS__)
#define jot_insert(x, index, y, axis)                                                          \
    JOT_OP_("jot_insert(" #x ", " #index ", " #y ", " #axis ")",                               \
            jot_insert(JOT_VALUE_("jot_insert", x), index, JOT_VALUE_("jot_insert", y), axis))
#define jot_delete(x, index, axis)                                                             \
    JOT_OP_("jot_delete(" #x ", " #index ", " #axis ")", jot_delete(JOT_VALUE_("jot_delete", x), index, axis))
// Into an array or a struct of values:  jot_value p[3]; jot_unstack(x, 0, p);
#define jot_array_split(x, axis, tree)                                                         \
    (jot_array_split_into(JOT_VALUE_("jot_array_split", x), axis, JOT_TREE_("jot_array_split", tree)),                                   \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_array_split(" #x ", " #axis ", " #tree ")"))
#define jot_unstack(x, axis, tree)                                                             \
    (jot_unstack_into(JOT_VALUE_("jot_unstack", x), axis, JOT_TREE_("jot_unstack", tree)),                                       \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_unstack(" #x ", " #axis ", " #tree ")"))
#define jot_meshgrid(grid, tree)                                                               \
    (jot_meshgrid_tree(grid, JOT_TREE_("jot_meshgrid", tree)),                                                \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_meshgrid(" #grid ", " #tree ")"))
#define jot_broadcast_arrays(tree)                                                             \
    (jot_broadcast_arrays_tree(JOT_TREE_("jot_broadcast_arrays", tree)),                                                \
     jot_place(*JOT_LEAVES_(tree), JOT_HERE ": jot_broadcast_arrays(" #tree ")"))
#define jot_indices(dtype, ...)                                                                \
    JOT_OP_("jot_indices(" #dtype ", " #__VA_ARGS__ ")",                                       \
            jot_indices_dims(dtype, JOT_DIMS_(__VA_ARGS__, JOT_END)))
#define jot_logspace(dtype, start, stop, n)                                                    \
    JOT_OP_("jot_logspace(" #dtype ", " #start ", " #stop ", " #n ")",                         \
            jot_logspace(dtype, start, stop, n))
#define jot_geomspace(dtype, start, stop, n)                                                   \
    JOT_OP_("jot_geomspace(" #dtype ", " #start ", " #stop ", " #n ")",                        \
            jot_geomspace(dtype, start, stop, n))
#define jot_unravel_index(...) JOT_SIZES_OP_(unravel_index, #__VA_ARGS__, __VA_ARGS__)
#define jot_ravel_multi_index(...) JOT_SIZES_OP_(ravel_multi_index, #__VA_ARGS__, __VA_ARGS__)
#define jot_put_along_axis(x, index, y, axis)                                                  \
    JOT_OP_("jot_put_along_axis(" #x ", " #index ", " #y ", " #axis ")",                       \
            jot_put_along_axis(JOT_VALUE_("jot_put_along_axis", x), JOT_VALUE_("jot_put_along_axis", index), JOT_VALUE_("jot_put_along_axis", y), axis))
#define jot_packbits(x, axis)                                                                  \
    JOT_OP_("jot_packbits(" #x ", " #axis ")", jot_packbits(JOT_VALUE_("jot_packbits", x), axis))
#define jot_unpackbits(x, axis)                                                                \
    JOT_OP_("jot_unpackbits(" #x ", " #axis ")", jot_unpackbits(JOT_VALUE_("jot_unpackbits", x), axis))
// clang-format on

#endif // JOT_PLAIN

#endif
