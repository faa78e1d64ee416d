// SPDX-License-Identifier: Apache-2.0
// Collectives: what the lanes of a named map, or the devices of a mesh, compute together.  Names and
// meanings are those of jax.lax.
//
//     static jot_value normalised(jot_value x) { return jot_div(x, jot_psum(x, "i")); }
//     jot_vmap_named(jot_fn(normalised), "i")       f of x: each element over the sum of all
//
//     jot_psum(x, "i")             the sum of the x of all lanes; jot_pmean, jot_pmax, jot_pmin
//     jot_all_gather(x, "i")       all of them, stacked along a new axis 0
//     jot_psum_scatter(x, "i")     of the sum of all x the row with the lane's number
//     jot_all_to_all(x, "i")       row k goes to lane k, which has as row l what lane l sent
//     jot_ppermute(x, "i", 0, 1)   lane 1 has the x of lane 0, the others have zeros
//     jot_axis_index("i")          the number of the lane, i32
//
// Axes are listed in a text, "i" or "i, j", and must be named by maps or meshes around the call: an
// error otherwise.  Over several axes lanes are numbered in row-major order, the first axis slowest.
//
// A value is the same in all lanes of an axis, or it differs, and jot knows which while it traces.
// Sums, means, extrema, and what jot_all_gather and jot_pbroadcast give are the same.  What depends
// on mapped arguments or on jot_axis_index differs.  For a collective every lane has a value that is
// the same: jot_psum of it is the value times the number of lanes.
//
// All lanes come to a collective together.  So the condition of a branch or loop around it must be
// the same along its axes, as jot_pmax of a condition is; else the error names the collective.  Sums
// have the order of the lanes, so their bits are the same in every run.
//
// A derivative that is taken inside of a map is that of a lane's own result.  So the gradient of a
// loss in parameters that all lanes share is jot_psum or jot_pmean of the gradients of the lanes.
// Derivatives of the whole map see through collectives.
#ifndef JOT_COLLECTIVE_H
#define JOT_COLLECTIVE_H

#include "jot/ops.h"

JOT_BEGIN_C

// Over all lanes along the axes, element by element.  A sum has the type of jot_sum, a mean that of
// jot_mean; extrema are of real types, and of bool whether any is true, whether all are.  A tangent of
// an extremum goes to all lanes that have it, in equal parts.
JOT_API jot_value jot_psum(jot_value x, const char *axes);
JOT_API jot_value jot_pmean(jot_value x, const char *axes);
JOT_API jot_value jot_pmax(jot_value x, const char *axes);
JOT_API jot_value jot_pmin(jot_value x, const char *axes);
// The same of n values, each replaced by its sum or mean: of a tree of gradients.
JOT_API void jot_psum_tree(size_t n, jot_value *x, const char *axes);
JOT_API void jot_pmean_tree(size_t n, jot_value *x, const char *axes);

// Named options of the collectives below, `.axis = 1`.
typedef struct jot_collective_options {
    int axis;    // of x or the result: see below; may count from the end
    int to;      // of jot_all_to_all: the axis of the result
    bool tiled;  // no axis comes or goes: parts follow each other along one
    size_t size; // of this struct, set by the macro; 0 is this version
} jot_collective_options;

// The x of all lanes, stacked along a new axis `axis` of the result; tiled: one after the other along
// axis `axis`.  options may be NULL.
JOT_API jot_value jot_all_gather(jot_value x, const char *axes,
                                 const jot_collective_options *options);
// The sum over all lanes, of which lane k has index k along axis `axis` of x, with an extent of as many
// as there are lanes; tiled: part k of as many equal ones.  Type as of jot_psum.
JOT_API jot_value jot_psum_scatter(jot_value x, const char *axes,
                                   const jot_collective_options *options);
// Index k along axis `axis` of x, with an extent of as many as there are lanes, goes to lane k, where
// those of all lanes are stacked along a new axis `to` of the result; tiled: equal parts go, and follow
// each other along axis `to`.
JOT_API jot_value jot_all_to_all(jot_value x, const char *axes,
                                 const jot_collective_options *options);

// pairs: lane `from`, lane `to`, by turns, ended by JOT_END: x of the one is the result of the other.
// No lane is named twice on one side; the result is zeros where none is named.
JOT_API jot_value jot_ppermute_pairs(jot_value x, const char *axes, const int *pairs);
// The result of lane k is the x of lane order[k], a permutation of all lanes, ended by JOT_END.
JOT_API jot_value jot_pshuffle_order(jot_value x, const char *axes, const int *order);
// The x of one lane, in all of them.
JOT_API jot_value jot_pbroadcast(jot_value x, const char *axes, int64_t source);

// The number of the lane, i32, and how many lanes there are, 0 with an error of the trace.
JOT_API jot_value jot_axis_index(const char *axes);
JOT_API int64_t jot_axis_size(const char *axes);
// x, as what each lane has of its own.
JOT_API jot_value jot_pvary(jot_value x, const char *axes);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#define JOT_OVER_(f, x, axes)                                                                  \
    JOT_OP_(#f "(" #x ", " #axes ")", f(JOT_VALUE_(#f, x), axes))
#define jot_psum(x, axes) JOT_OVER_(jot_psum, x, axes)
#define jot_pmean(x, axes) JOT_OVER_(jot_pmean, x, axes)
#define jot_pmax(x, axes) JOT_OVER_(jot_pmax, x, axes)
#define jot_pmin(x, axes) JOT_OVER_(jot_pmin, x, axes)
#define jot_pvary(x, axes) JOT_OVER_(jot_pvary, x, axes)
// In C++ the options are the third argument, a pointer or nothing.
#if defined(__cplusplus)
#define JOT_EXCHANGE_(f, t, ...) JOT_EXCHANGE_OF_(f, t, __VA_ARGS__, nullptr, 0)
#define JOT_EXCHANGE_OF_(f, t, x, axes, options, ...) JOT_OP_(#f "(" t ")", f(JOT_VALUE_(#f, x), axes, options))
#else
#define JOT_EXCHANGE_(f, t, ...) JOT_EXCHANGE_OF_(f, t, __VA_ARGS__, .size = sizeof(jot_collective_options))
#define JOT_EXCHANGE_OF_(f, t, x, axes, ...)                                                   \
    JOT_OP_(#f "(" t ")", f(JOT_VALUE_(#f, x), axes, JOT_OPTIONS_(jot_collective_options, #f " takes (x, axes, .axis = ..., .tiled = true)", __VA_ARGS__)))
#endif
#define jot_all_gather(...) JOT_EXCHANGE_(jot_all_gather, #__VA_ARGS__, __VA_ARGS__)
#define jot_psum_scatter(...) JOT_EXCHANGE_(jot_psum_scatter, #__VA_ARGS__, __VA_ARGS__)
#define jot_all_to_all(...) JOT_EXCHANGE_(jot_all_to_all, #__VA_ARGS__, __VA_ARGS__)
// jot_ppermute(x, "i", 0, 1, 1, 2)  jot_pshuffle(x, "i", 1, 2, 0)
#define jot_ppermute(...)                                                                      \
    JOT_OP_("jot_ppermute(" #__VA_ARGS__ ")", jot_ppermute_pairs(                              \
        JOT_VALUE_("jot_ppermute", JOT_FIRST_(__VA_ARGS__, 0)), JOT_SECOND_(__VA_ARGS__, 0),   \
        JOT_INTS_(JOT_REST2_(__VA_ARGS__, JOT_END))))
#define jot_pshuffle(...)                                                                      \
    JOT_OP_("jot_pshuffle(" #__VA_ARGS__ ")", jot_pshuffle_order(                              \
        JOT_VALUE_("jot_pshuffle", JOT_FIRST_(__VA_ARGS__, 0)), JOT_SECOND_(__VA_ARGS__, 0),   \
        JOT_INTS_(JOT_REST2_(__VA_ARGS__, JOT_END))))
#define jot_pbroadcast(x, axes, source)                                                        \
    JOT_OP_("jot_pbroadcast(" #x ", " #axes ", " #source ")", jot_pbroadcast(JOT_VALUE_("jot_pbroadcast", x), axes, source))
#define jot_axis_index(axes) JOT_OP_("jot_axis_index(" #axes ")", jot_axis_index(axes))
// clang-format on

#endif // JOT_PLAIN

#endif
