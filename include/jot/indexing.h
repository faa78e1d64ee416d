// SPDX-License-Identifier: Apache-2.0
// Indices that are values: slices that start anywhere, rows by arrays of indices, and values with
// such parts changed.
//
//     jot_value rows = jot_take(table, words);                  table[words]
//     jot_value next = jot_at_add(counts, words, 1);            counts with 1 added at each
//     jot_value part = jot_dynamic_slice(x, jot_stack(0, i, 0), 8, 4);
//
// An index is of any integer type, and negative ones count from the end.  A C number outside of x is
// an error while tracing (JOT_ERR_ARGUMENT).  Starts of dynamic slices are moved inside instead.
//
// An update gives a new value.  Compiled code writes into the memory of the old one where nothing
// else needs it later, also in loops, in branches, and in gradients of both.
//
// Results do not depend on the number of threads: of several values set at one element the last
// counts, and sums have one order.
#ifndef JOT_INDEXING_H
#define JOT_INDEXING_H

#include "jot/ops.h"

#include <stdbool.h>

JOT_BEGIN_C

// What happens to a window, or a row, that is not inside of x.
enum jot_index_mode {
    JOT_INDEX_CLIP,    // it is moved inside
    JOT_INDEX_FILL,    // gathered as NaN, the lowest integer, the highest unsigned one, true
    JOT_INDEX_PROMISE, // there is none
    JOT_INDEX_DROP,    // gathered as zeros; not scattered
    JOT_INDEX_WRAP     // modulo the extent; of rows only
};

// What an update y does to an element x that it meets.  Updates of one element are made in the
// order of the indices; sums of very many go in parts that the extents alone decide (numerics.md),
// so that results are the same on any number of threads.
enum jot_scatter_kind {
    JOT_SCATTER_SET, // x = y: the last update counts
    JOT_SCATTER_ADD, // x = x + y
    JOT_SCATTER_MUL, // x = x y; its derivative in y needs one element, or a promise that no two meet
    JOT_SCATTER_MIN, // the smaller, or NaN if one is
    JOT_SCATTER_MAX  // the larger, or NaN if one is
};

// ---- Rows and elements ----

// x[..., index[...], ...]: the index has the axes of x, of sizes that are equal or 1 but for the
// one axis, along which it says where each element comes from.  Outside of x: as jot_take.
JOT_API jot_value jot_take_along_axis(jot_value x, jot_value index, int axis);

// x with the rows at the index along the axis set to y, or y added to them, ...:  x[index] = y,
// x[index] += y.  y broadcasts to the shape of jot_take(x, index, axis) and must not need a wider
// type than x.  An index that occurs several times counts several times; one outside of x is left
// out.  The derivative of mul in y needs jot_scatter and its promise that none occurs twice.
JOT_API jot_value jot_at_set_axis(jot_value x, jot_value index, jot_value y, int axis);
JOT_API jot_value jot_at_add_axis(jot_value x, jot_value index, jot_value y, int axis);
JOT_API jot_value jot_at_mul_axis(jot_value x, jot_value index, jot_value y, int axis);
JOT_API jot_value jot_at_min_axis(jot_value x, jot_value index, jot_value y, int axis);
JOT_API jot_value jot_at_max_axis(jot_value x, jot_value index, jot_value y, int axis);

// The same with another mode for what is outside of x.  An update with JOT_INDEX_FILL leaves out.
JOT_API jot_value jot_take_mode(jot_value x, jot_value index, int axis,
                                enum jot_index_mode mode);
JOT_API jot_value jot_take_along_axis_mode(jot_value x, jot_value index, int axis,
                                           enum jot_index_mode mode);
JOT_API jot_value jot_at_mode(enum jot_scatter_kind kind, jot_value x, jot_value index,
                              jot_value y, int axis, enum jot_index_mode mode);

// x[i, j, ...]: points[..., k] has in its last axis an index along each of the first k axes of x, as jot_stack(-1, i, j)
// does.  The result has the other axes of points, then those of x.  Outside of x: as jot_take.  Fails with
// JOT_ERR_SHAPE when the last axis of points is longer than x has axes, with JOT_ERR_DTYPE when they are no integers.
JOT_API jot_value jot_take_points(jot_value x, jot_value points);

// x with the elements at the points set to y, or y added to them, ...:  x[i, j] = y.  y broadcasts to the shape of
// jot_take_points(x, points) and must not need a wider type than x.  A point outside of x is left out.
JOT_API jot_value jot_at_points(enum jot_scatter_kind kind, jot_value x, jot_value points,
                                jot_value y);

// ---- Slices ----

// x with the slice x[start:stop] along the axis (jot_slice) set to y, or y added to it, ...  y broadcasts to the slice
// and must not need a wider type than x.
JOT_API jot_value jot_at_slice(enum jot_scatter_kind kind, jot_value x, int axis, int64_t start,
                               int64_t stop, jot_value y);

// The part of the sizes of x that starts at starts[i] along axis i; one number will do for a value
// of one axis.  A start is moved so that the part is inside of x.
JOT_API jot_value jot_dynamic_slice_dims(jot_value x, jot_value starts, const int64_t *sizes);

// x with y in place of the part of y's shape that starts there.
JOT_API jot_value jot_dynamic_update_slice(jot_value x, jot_value y, jot_value starts);

// ---- The general forms ----

// How the axes of x, of indices and of the windows belong together, as in StableHLO.  The last axis
// of indices holds the index of one window of x: its element k is where the window starts along
// axis map[k].  The result of a gather, and the updates of a scatter, have the other axes of
// indices, and at `offset` those of the window that are not collapsed.  Lists end with JOT_END;
// NULL is none. Negative indices are outside here.
struct jot_index_dims {
    const int *offset;        // axes of the result that run over the window
    const int *collapsed;     // axes of x of which the window has 1, and the result none
    const int *operand_batch; // axes of x that are paired with
    const int *index_batch;   // these of indices
    const int *map;
    enum jot_index_mode mode;
    bool unique; // promised: no two windows of a scatter meet
};

// sizes: those of the window, for each axis of x, ended by JOT_END.
JOT_API jot_value jot_gather(jot_value x, jot_value indices, const struct jot_index_dims *dims,
                             const int64_t *sizes);
JOT_API jot_value jot_scatter(enum jot_scatter_kind kind, jot_value x, jot_value indices,
                              jot_value updates, const struct jot_index_dims *dims);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#define jot_take_along_axis(x, index, axis)                                                    \
    JOT_OP_("jot_take_along_axis(" #x ", " #index ", " #axis ")",                              \
            jot_take_along_axis(JOT_VALUE_("jot_take_along_axis", x), JOT_VALUE_("jot_take_along_axis", index), axis))
// jot_at_set(x, index, y) along axis 0, or jot_at_set(x, index, y, axis).
#define jot_at_set(...) JOT_AT_OF_(set, #__VA_ARGS__, __VA_ARGS__)
#define jot_at_add(...) JOT_AT_OF_(add, #__VA_ARGS__, __VA_ARGS__)
#define jot_at_mul(...) JOT_AT_OF_(mul, #__VA_ARGS__, __VA_ARGS__)
#define jot_at_min(...) JOT_AT_OF_(min, #__VA_ARGS__, __VA_ARGS__)
#define jot_at_max(...) JOT_AT_OF_(max, #__VA_ARGS__, __VA_ARGS__)
#define JOT_AT_OF_(word, t, ...)                                                               \
    (JOT_TAKES_("jot_at_" #word " takes (x, index, y) or (x, index, y, axis)", 3, 4, __VA_ARGS__), \
     JOT_AT_(word, t, __VA_ARGS__, 0, 0, 0, 0))
#define JOT_AT_(word, t, x, index, y, axis, ...)                                               \
    JOT_OP_("jot_at_" #word "(" t ")",                                                         \
            jot_at_##word##_axis(JOT_VALUE_("jot_at_" #word, x), JOT_VALUE_("jot_at_" #word, index), JOT_VALUE_("jot_at_" #word, y), axis))
#define jot_take_mode(x, index, axis, mode)                                                    \
    JOT_OP_("jot_take_mode(" #x ", " #index ", " #axis ", " #mode ")",                         \
            jot_take_mode(JOT_VALUE_("jot_take_mode", x), JOT_VALUE_("jot_take_mode", index), axis, mode))
#define jot_take_along_axis_mode(x, index, axis, mode)                                         \
    JOT_OP_("jot_take_along_axis_mode(" #x ", " #index ", " #axis ", " #mode ")",              \
            jot_take_along_axis_mode(JOT_VALUE_("jot_take_along_axis_mode", x), JOT_VALUE_("jot_take_along_axis_mode", index), axis, mode))
#define jot_at_mode(kind, x, index, y, axis, mode)                                             \
    JOT_OP_("jot_at_mode(" #kind ", " #x ", " #index ", " #y ", " #axis ", " #mode ")",        \
            jot_at_mode(kind, JOT_VALUE_("jot_at_mode", x), JOT_VALUE_("jot_at_mode", index), JOT_VALUE_("jot_at_mode", y), axis, mode))
#define jot_take_points(x, points) JOT_OP2_(jot_take_points, #x ", " #points, x, points)
#define jot_at_points(kind, x, points, y)                                                      \
    JOT_OP_("jot_at_points(" #kind ", " #x ", " #points ", " #y ")",                           \
            jot_at_points(kind, JOT_VALUE_("jot_at_points", x), JOT_VALUE_("jot_at_points", points), JOT_VALUE_("jot_at_points", y)))
#define jot_at_slice(kind, x, axis, start, stop, y)                                            \
    JOT_OP_("jot_at_slice(" #kind ", " #x ", " #axis ", " #start ", " #stop ", " #y ")",       \
            jot_at_slice(kind, JOT_VALUE_("jot_at_slice", x), axis, start, stop, JOT_VALUE_("jot_at_slice", y)))
#define jot_dynamic_slice(x, starts, ...)                                                      \
    JOT_OP_("jot_dynamic_slice(" #x ", " #starts ", " #__VA_ARGS__ ")",                        \
            jot_dynamic_slice_dims(JOT_VALUE_("jot_dynamic_slice", x), JOT_VALUE_("jot_dynamic_slice", starts), JOT_DIMS_(__VA_ARGS__, JOT_END)))
#define jot_dynamic_update_slice(x, y, starts)                                                 \
    JOT_OP_("jot_dynamic_update_slice(" #x ", " #y ", " #starts ")",                           \
            jot_dynamic_update_slice(JOT_VALUE_("jot_dynamic_update_slice", x), JOT_VALUE_("jot_dynamic_update_slice", y), JOT_VALUE_("jot_dynamic_update_slice", starts)))
#define jot_gather(x, indices, dims, sizes)                                                    \
    JOT_OP_("jot_gather(" #x ", " #indices ", " #dims ", " #sizes ")",                         \
            jot_gather(JOT_VALUE_("jot_gather", x), JOT_VALUE_("jot_gather", indices), dims, sizes))
#define jot_scatter(kind, x, indices, updates, dims)                                           \
    JOT_OP_("jot_scatter(" #kind ", " #x ", " #indices ", " #updates ", " #dims ")",           \
            jot_scatter(kind, JOT_VALUE_("jot_scatter", x), JOT_VALUE_("jot_scatter", indices), JOT_VALUE_("jot_scatter", updates), dims))
// clang-format on

#endif // JOT_PLAIN

#endif
