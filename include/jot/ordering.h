// SPDX-License-Identifier: Apache-2.0
// Sorting, and what rests on it: the greatest k, quantiles, indices in sorted values, counts in bins,
// and sets.
//
//     jot_value ranked = jot_sort(x);                        along the last axis
//     jot_value best = jot_top_k(scores, 5, &indices);
//     jot_value middle = jot_median(x, 0);
//     jot_value bin = jot_searchsorted(edges, x, JOT_SIDE_RIGHT);
//
// The order is total: -0 equals 0, all NaN are equal and come last, complex numbers go by their real
// part and then by their imaginary part.  Equal elements stay in their order.  Derivatives go where
// elements go; indices, counts and memberships have none.
//
// What has as many elements as the data say (nonzero, unique, ...) is given a size: what is too much
// is left out, and what is missing is filled.
#ifndef JOT_ORDERING_H
#define JOT_ORDERING_H

#include "jot/ops.h"

#include <stdbool.h>

JOT_BEGIN_C

// ---- Sorting ----

// x with the elements along the axis from low to high, or from high to low.
JOT_API jot_value jot_sort_axis(jot_value x, int axis);
JOT_API jot_value jot_sort_descending_axis(jot_value x, int axis);

// Where along the axis the elements of the sorted x come from: i32 (i64 where the axis needs it).
// Equal elements are in the order of x in both.
JOT_API jot_value jot_argsort_axis(jot_value x, int axis);
JOT_API jot_value jot_argsort_descending_axis(jot_value x, int axis);

// The indices that sort by the last key, what is equal there by the last but one, and so on.  Keys
// have one shape; there are at most 7.
JOT_API jot_value jot_lexsort_list(int axis, size_t n, const jot_value *keys);

// The n values x, of one shape, each in the order of the first num_keys of them: by the first, what
// is equal there by the second, and so on.  At most 8; for derivatives, 7 keys.
JOT_API void jot_sort_by_key_into(int axis, int num_keys, size_t n, jot_value *x);

// The k greatest along the last axis, the greatest first; of equal ones the one with the lowest
// index comes first.  The order is not that of sort but, as in JAX, the total one of IEEE 754:
// 0 is greater than -0, NaN without a sign are the greatest and NaN with a sign the least.
// Their indices go to *out_indices, unless it is NULL.  Not complex.
JOT_API jot_value jot_top_k(jot_value x, int64_t k, jot_value *out_indices);

// x with the element number kth of the sorted axis where sorting puts it, none greater before it and none
// less behind it; where these come from.  The rest is in order here, too.
JOT_API jot_value jot_partition_axis(jot_value x, int64_t kth, int axis);
JOT_API jot_value jot_argpartition_axis(jot_value x, int64_t kth, int axis);

// ---- Quantiles ----

// What stands for a quantile between two neighbours, of which the upper one has the weight w.
enum jot_quantile_method {
    JOT_QUANTILE_LINEAR,  // (1 - w) lower + w upper
    JOT_QUANTILE_LOWER,   // the lower
    JOT_QUANTILE_HIGHER,  // the upper
    JOT_QUANTILE_NEAREST, // the lower where w <= 1/2
    JOT_QUANTILE_MIDPOINT // (lower + upper) / 2
};

// The elements at q (n - 1) of the n sorted ones over the axes, as for the reductions of ops.h; q is
// a number or a vector, whose axis then comes first.  Integers give floats.  NaN where one is among
// the n, or where q is outside of [0, 1] (of a C number: JOT_ERR_ARGUMENT).  Percentiles: q / 100.
JOT_API jot_value jot_quantile_axes(jot_value x, jot_value q, enum jot_quantile_method method,
                                    const int *axes);
JOT_API jot_value jot_percentile_axes(jot_value x, jot_value q, enum jot_quantile_method method,
                                      const int *axes);
// The same of what is not NaN; NaN where nothing is left.
JOT_API jot_value jot_nanquantile_axes(jot_value x, jot_value q,
                                       enum jot_quantile_method method, const int *axes);
JOT_API jot_value jot_nanpercentile_axes(jot_value x, jot_value q,
                                         enum jot_quantile_method method, const int *axes);

// The middle element, or the mean of the two in the middle.
JOT_API jot_value jot_median_axes(jot_value x, const int *axes);
JOT_API jot_value jot_nanmedian_axes(jot_value x, const int *axes);

// ---- Indices in sorted values, and bins ----

// Where jot_searchsorted puts a value among elements that are equal to it.
enum jot_side {
    JOT_SIDE_LEFT, // before equal elements
    JOT_SIDE_RIGHT // behind them
};

// For each element of v, where it would have to go in the sorted vector x: the number of elements
// before it.  By binary search.  i32 (i64 where x needs it).
JOT_API jot_value jot_searchsorted(jot_value x, jot_value v, enum jot_side side);
// The same in x[sorter], of indices that sort x, as jot_argsort gives them.
JOT_API jot_value jot_searchsorted_sorter(jot_value x, jot_value v, enum jot_side side,
                                          jot_value sorter);

// The number of the bin that each element of x is in: bins[i - 1] <= x < bins[i], or < and <= if the
// right edge belongs to a bin.  Bins are a vector that increases or decreases.
JOT_API jot_value jot_digitize(jot_value x, jot_value bins, bool right);

// How often 0, 1, ..., length - 1 occur among the integers x; negative ones count as 0.  With weights,
// of the shape of x, the sum of those of each.
JOT_API jot_value jot_bincount(jot_value x, int64_t length);
JOT_API jot_value jot_bincount_weights(jot_value x, jot_value weights, int64_t length);

// bins + 1 numbers evenly from the least to the greatest of x, or from low to high: the edges of bins
// of one width.  Equal ends are moved apart by 1/2 each.
JOT_API jot_value jot_histogram_bin_edges(jot_value x, int64_t bins);
JOT_API jot_value jot_histogram_bin_edges_between(jot_value x, int64_t bins, jot_value low,
                                                  jot_value high);

// How many elements of x are in each bin between the edges, a vector that increases; the last bin has
// its right edge.  Floats, as in JAX.  The sum of weights, of the shape of x, instead; and as a
// density, whose integral is 1.
JOT_API jot_value jot_histogram(jot_value x, jot_value edges);
JOT_API jot_value jot_histogram_weights(jot_value x, jot_value edges, jot_value weights);
JOT_API jot_value jot_histogram_density(jot_value x, jot_value edges);
// The same between jot_histogram_bin_edges(x, bins).
JOT_API jot_value jot_histogram_bins(jot_value x, int64_t bins);
// How many points (x, y) are in each: i32[bins of x, bins of y].
JOT_API jot_value jot_histogram2d(jot_value x, jot_value y, jot_value x_edges,
                                  jot_value y_edges);
// The same of points with any number of coordinates, the rows of a matrix, with a vector of edges for
// each coordinate; and the sum of weights, one for each point, instead of their number.
JOT_API jot_value jot_histogramdd_list(jot_value points, size_t n, const jot_value *edges);
JOT_API jot_value jot_histogramdd_weights_list(jot_value points, jot_value weights, size_t n,
                                               const jot_value *edges);

// ---- What is not 0, and sets ----

// The indices of the elements of the flattened x that are not 0, in order: [size], i32.
JOT_API jot_value jot_flatnonzero(jot_value x, int64_t size, jot_value fill);
// The same as indices for each axis: [size, rank].
JOT_API jot_value jot_argwhere(jot_value x, int64_t size, jot_value fill);
// The same as one vector for each axis: out has room for as many.
JOT_API void jot_nonzero_into(jot_value x, int64_t size, jot_value fill, size_t n,
                              jot_value *out);
// The elements of x where the condition, of its shape, is not 0.
JOT_API jot_value jot_extract(jot_value condition, jot_value x, int64_t size, jot_value fill);

// The different elements of x, sorted.  All NaN are one, behind the others; of complex numbers
// the first in x.
JOT_API jot_value jot_unique(jot_value x, int64_t size, jot_value fill);
// With the index of the first of each in the flattened x, behind them that of the least again; for each
// element of x its index among the different ones; and how often each occurs.  Any of the three may be
// NULL.
JOT_API jot_value jot_unique_all(jot_value x, int64_t size, jot_value fill,
                                 jot_value *out_index, jot_value *out_inverse,
                                 jot_value *out_counts);

// The different elements that are in x or y, in both, in x and not in y, in one of the two;
// sorted.  NaN of one is not in the other, but in the union all are one.
JOT_API jot_value jot_union1d(jot_value x, jot_value y, int64_t size, jot_value fill);
JOT_API jot_value jot_intersect1d(jot_value x, jot_value y, int64_t size, jot_value fill);
JOT_API jot_value jot_setdiff1d(jot_value x, jot_value y, int64_t size, jot_value fill);
JOT_API jot_value jot_setxor1d(jot_value x, jot_value y, int64_t size, jot_value fill);

// Whether each element of x is one of the set's: bool.  NaN never is.
JOT_API jot_value jot_isin(jot_value x, jot_value set);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
// jot_sort(x) along the last axis, or jot_sort(x, axis).
#define JOT_SORT_OF_(name, t, ...)                                                             \
    (JOT_TAKES_("jot_" #name " takes (x) or (x, axis)", 1, 2, __VA_ARGS__),                    \
     JOT_SORT_(name, t, __VA_ARGS__, -1, 0))
#define JOT_SORT_(name, t, x, axis, ...)                                                       \
    JOT_OP_("jot_" #name "(" t ")", jot_##name##_axis(JOT_VALUE_("jot_" #name, x), axis))
#define jot_sort(...) JOT_SORT_OF_(sort, #__VA_ARGS__, __VA_ARGS__)
#define jot_sort_descending(...) JOT_SORT_OF_(sort_descending, #__VA_ARGS__, __VA_ARGS__)
#define jot_argsort(...) JOT_SORT_OF_(argsort, #__VA_ARGS__, __VA_ARGS__)
#define jot_argsort_descending(...)                                                            \
    JOT_SORT_OF_(argsort_descending, #__VA_ARGS__, __VA_ARGS__)
#define jot_lexsort(axis, ...)                                                                 \
    JOT_OP_("jot_lexsort(" #axis ", " #__VA_ARGS__ ")",                                        \
            jot_lexsort_list(axis, JOT_VALUES_("jot_lexsort", __VA_ARGS__)))
#define jot_sort_by_key(axis, num_keys, tree)                                                  \
    (jot_sort_by_key_into(axis, num_keys, JOT_TREE_("jot_sort_by_key", tree)),                                 \
     jot_place(*JOT_LEAVES_(tree),                                                              \
               JOT_HERE ": jot_sort_by_key(" #axis ", " #num_keys ", " #tree ")"))
#define jot_top_k(x, k, indices)                                                               \
    JOT_OP_("jot_top_k(" #x ", " #k ", " #indices ")", jot_top_k(JOT_VALUE_("jot_top_k", x), k, indices))
#define jot_partition(x, kth, axis)                                                            \
    JOT_OP_("jot_partition(" #x ", " #kth ", " #axis ")",                                      \
            jot_partition_axis(JOT_VALUE_("jot_partition", x), kth, axis))
#define jot_argpartition(x, kth, axis)                                                         \
    JOT_OP_("jot_argpartition(" #x ", " #kth ", " #axis ")",                                   \
            jot_argpartition_axis(JOT_VALUE_("jot_argpartition", x), kth, axis))
// jot_quantile(x, q, axes...) is linear, jot_quantile_method(x, q, method, axes...) as it says.
#define JOT_QUANTILE_(name, t, x, method, ...)                                                 \
    JOT_OP_(t ")",                                                                             \
            jot_##name##_axes(JOT_VALUE_("jot_" #name, x), JOT_VALUE_("jot_" #name, JOT_FIRST_(__VA_ARGS__, 0)), method,           \
                              JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_quantile(x, ...)                                                                   \
    JOT_QUANTILE_(quantile, "jot_quantile(" #x ", " #__VA_ARGS__, x, JOT_QUANTILE_LINEAR, __VA_ARGS__)
#define jot_percentile(x, ...)                                                                 \
    JOT_QUANTILE_(percentile, "jot_percentile(" #x ", " #__VA_ARGS__, x, JOT_QUANTILE_LINEAR, __VA_ARGS__)
#define jot_nanquantile(x, ...)                                                                \
    JOT_QUANTILE_(nanquantile, "jot_nanquantile(" #x ", " #__VA_ARGS__, x, JOT_QUANTILE_LINEAR, __VA_ARGS__)
#define jot_nanpercentile(x, ...)                                                              \
    JOT_QUANTILE_(nanpercentile, "jot_nanpercentile(" #x ", " #__VA_ARGS__, x, JOT_QUANTILE_LINEAR, __VA_ARGS__)
#define JOT_QUANTILE_METHOD_(name, x, q, ...)                                                  \
    JOT_OP_("jot_" #name "_method(" #x ", " #q ", " #__VA_ARGS__ ")",                          \
            jot_##name##_axes(JOT_VALUE_("jot_" #name "_method", x), JOT_VALUE_("jot_" #name "_method", q), JOT_FIRST_(__VA_ARGS__, 0),                  \
                              JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END))))
#define jot_quantile_method(x, q, ...) JOT_QUANTILE_METHOD_(quantile, x, q, __VA_ARGS__)
#define jot_percentile_method(x, q, ...) JOT_QUANTILE_METHOD_(percentile, x, q, __VA_ARGS__)
#define jot_median(...) JOT_AXES_OP_(median, #__VA_ARGS__, __VA_ARGS__)
#define jot_nanmedian(...) JOT_AXES_OP_(nanmedian, #__VA_ARGS__, __VA_ARGS__)
#define jot_searchsorted(x, v, side)                                                           \
    JOT_OP_("jot_searchsorted(" #x ", " #v ", " #side ")",                                     \
            jot_searchsorted(JOT_VALUE_("jot_searchsorted", x), JOT_VALUE_("jot_searchsorted", v), side))
#define jot_searchsorted_sorter(x, v, side, sorter)                                            \
    JOT_OP_("jot_searchsorted_sorter(" #x ", " #v ", " #side ", " #sorter ")",                 \
            jot_searchsorted_sorter(JOT_VALUE_("jot_searchsorted_sorter", x), JOT_VALUE_("jot_searchsorted_sorter", v), side, JOT_VALUE_("jot_searchsorted_sorter", sorter)))
#define jot_digitize(x, bins, right)                                                           \
    JOT_OP_("jot_digitize(" #x ", " #bins ", " #right ")",                                     \
            jot_digitize(JOT_VALUE_("jot_digitize", x), JOT_VALUE_("jot_digitize", bins), JOT_TRUTH_("jot_digitize", right)))
#define jot_bincount(x, length)                                                                \
    JOT_OP_("jot_bincount(" #x ", " #length ")", jot_bincount(JOT_VALUE_("jot_bincount", x), length))
#define jot_bincount_weights(x, weights, length)                                               \
    JOT_OP_("jot_bincount_weights(" #x ", " #weights ", " #length ")",                         \
            jot_bincount_weights(JOT_VALUE_("jot_bincount_weights", x), JOT_VALUE_("jot_bincount_weights", weights), length))
#define jot_histogram_bin_edges(x, bins)                                                       \
    JOT_OP_("jot_histogram_bin_edges(" #x ", " #bins ")",                                      \
            jot_histogram_bin_edges(JOT_VALUE_("jot_histogram_bin_edges", x), bins))
#define jot_histogram_bin_edges_between(x, bins, low, high)                                    \
    JOT_OP_("jot_histogram_bin_edges_between(" #x ", " #bins ", " #low ", " #high ")",         \
            jot_histogram_bin_edges_between(JOT_VALUE_("jot_histogram_bin_edges_between", x), bins, JOT_VALUE_("jot_histogram_bin_edges_between", low), JOT_VALUE_("jot_histogram_bin_edges_between", high)))
#define jot_histogram(x, edges) JOT_OP2_(jot_histogram, #x ", " #edges, x, edges)
#define jot_histogram_weights(x, edges, weights)                                               \
    JOT_OP3_(jot_histogram_weights, #x ", " #edges ", " #weights, x, edges, weights)
#define jot_histogram_density(x, edges) JOT_OP2_(jot_histogram_density, #x ", " #edges, x, edges)
#define jot_histogram_bins(x, bins)                                                            \
    JOT_OP_("jot_histogram_bins(" #x ", " #bins ")", jot_histogram_bins(JOT_VALUE_("jot_histogram_bins", x), bins))
// jot_histogramdd(points, edges...)
#define jot_histogramdd(points, ...)                                                           \
    JOT_OP_("jot_histogramdd(" #points ", " #__VA_ARGS__ ")",                                  \
            jot_histogramdd_list(JOT_VALUE_("jot_histogramdd", points), JOT_VALUES_("jot_histogramdd", __VA_ARGS__)))
#define jot_histogramdd_weights(points, weights, ...)                                          \
    JOT_OP_("jot_histogramdd_weights(" #points ", " #weights ", " #__VA_ARGS__ ")",            \
            jot_histogramdd_weights_list(JOT_VALUE_("jot_histogramdd_weights", points), JOT_VALUE_("jot_histogramdd_weights", weights),                        \
                                         JOT_VALUES_("jot_histogramdd_weights", __VA_ARGS__)))
#define jot_histogram2d(x, y, x_edges, y_edges)                                                \
    JOT_OP_("jot_histogram2d(" #x ", " #y ", " #x_edges ", " #y_edges ")",                     \
            jot_histogram2d(JOT_VALUE_("jot_histogram2d", x), JOT_VALUE_("jot_histogram2d", y), JOT_VALUE_("jot_histogram2d", x_edges), JOT_VALUE_("jot_histogram2d", y_edges)))
#define jot_flatnonzero(x, size, fill)                                                         \
    JOT_OP_("jot_flatnonzero(" #x ", " #size ", " #fill ")",                                   \
            jot_flatnonzero(JOT_VALUE_("jot_flatnonzero", x), size, JOT_VALUE_("jot_flatnonzero", fill)))
#define jot_argwhere(x, size, fill)                                                            \
    JOT_OP_("jot_argwhere(" #x ", " #size ", " #fill ")",                                      \
            jot_argwhere(JOT_VALUE_("jot_argwhere", x), size, JOT_VALUE_("jot_argwhere", fill)))
#define jot_nonzero(x, size, fill, tree)                                                       \
    (jot_nonzero_into(JOT_VALUE_("jot_nonzero", x), size, JOT_VALUE_("jot_nonzero", fill), JOT_TREE_("jot_nonzero", tree)),                          \
     jot_place(*JOT_LEAVES_(tree),                                                              \
               JOT_HERE ": jot_nonzero(" #x ", " #size ", " #fill ", " #tree ")"))
#define jot_extract(condition, x, size, fill)                                                  \
    JOT_OP_("jot_extract(" #condition ", " #x ", " #size ", " #fill ")",                       \
            jot_extract(JOT_VALUE_("jot_extract", condition), JOT_VALUE_("jot_extract", x), size, JOT_VALUE_("jot_extract", fill)))
#define jot_unique(x, size, fill)                                                              \
    JOT_OP_("jot_unique(" #x ", " #size ", " #fill ")",                                        \
            jot_unique(JOT_VALUE_("jot_unique", x), size, JOT_VALUE_("jot_unique", fill)))
#define jot_unique_all(x, size, fill, index, inverse, counts)                                  \
    JOT_OP_("jot_unique_all(" #x ", " #size ", " #fill ", ...)",                               \
            jot_unique_all(JOT_VALUE_("jot_unique_all", x), size, JOT_VALUE_("jot_unique_all", fill), index, inverse, counts))
#define JOT_SET_OP_(f, t, x, y, size, fill)                                                    \
    JOT_OP_(#f "(" t ")", f(JOT_VALUE_(#f, x), JOT_VALUE_(#f, y), size, JOT_VALUE_(#f, fill)))
#define jot_union1d(x, y, size, fill)                                                          \
    JOT_SET_OP_(jot_union1d, #x ", " #y ", " #size ", " #fill, x, y, size, fill)
#define jot_intersect1d(x, y, size, fill)                                                      \
    JOT_SET_OP_(jot_intersect1d, #x ", " #y ", " #size ", " #fill, x, y, size, fill)
#define jot_setdiff1d(x, y, size, fill)                                                        \
    JOT_SET_OP_(jot_setdiff1d, #x ", " #y ", " #size ", " #fill, x, y, size, fill)
#define jot_setxor1d(x, y, size, fill)                                                         \
    JOT_SET_OP_(jot_setxor1d, #x ", " #y ", " #size ", " #fill, x, y, size, fill)
#define jot_isin(x, set) JOT_OP2_(jot_isin, #x ", " #set, x, set)
// clang-format on

#endif // JOT_PLAIN

#endif
