// SPDX-License-Identifier: Apache-2.0
// Changes of shape and of the order of axes.
#include "trace/emit.h"

static jot_value reshape(jot_value x, const int64_t *sizes)
{
    const char *name = "jot_reshape";
    jot_value error;
    int rank, left = -1;
    int64_t dims[IR_MAX_RANK], known;
    if (!trace_ready(name, 1, &x, &error) ||
        !trace_sizes(name, sizes, -1, &rank, dims, &error) ||
        !trace_count(name, rank, dims, INT64_C(1) << 62, &known, &error))
        return error;
    for (int i = 0; i < rank; i++) {
        if (dims[i] >= 0)
            continue;
        if (left >= 0)
            return trace_fail(name, JOT_ERR_ARGUMENT,
                              "the sizes of axes %d and %d are -1, which only one may be", left,
                              i);
        left = i;
    }
    struct ir_builder *b = trace_builder();
    int64_t count = ir_count(b->module, trace_type(x));
    if (left >= 0 && known == 0)
        return trace_fail(name, JOT_ERR_ARGUMENT,
                          "the size of axis %d is -1, and beside a size of 0 it may be any",
                          left);
    if (left >= 0)
        dims[left] = count / known;
    if (left >= 0 ? known * dims[left] != count : known != count)
        return trace_fail(name, JOT_ERR_SHAPE, "%s has %lld elements, the sizes %s%lld",
                          trace_type_text(x), (long long)count,
                          left >= 0 ? "a multiple of " : "", (long long)known);
    return trace_like(name, x, ir_reshape(b, trace_kept(x), rank, dims));
}

jot_value jot_reshape_dims(jot_value x, const int64_t *dims) { TRACE_RETURN(reshape(x, dims)); }

static jot_value broadcast_to(jot_value x, const int64_t *sizes)
{
    const char *name = "jot_broadcast_to";
    jot_value error;
    int rank;
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK];
    if (!trace_ready(name, 1, &x, &error) || !trace_sizes(name, sizes, 0, &rank, dims, &error))
        return error;
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    const int64_t *old = ir_dims(b->module, t);
    if (t.rank > rank)
        return trace_fail(name, JOT_ERR_SHAPE, "%s has more axes than the %d sizes",
                          trace_type_text(x), rank);
    for (int i = 0; i < t.rank; i++) {
        axes[i] = rank - t.rank + i;
        if (old[i] != 1 && old[i] != dims[axes[i]])
            return trace_fail(name, JOT_ERR_SHAPE,
                              "axis %d of %s cannot become %lld: only size 1 is repeated", i,
                              trace_type_text(x), (long long)dims[axes[i]]);
    }
    return trace_like(name, x, ir_broadcast_in_dim(b, trace_kept(x), rank, dims, axes));
}

jot_value jot_broadcast_to_dims(jot_value x, const int64_t *dims)
{
    TRACE_RETURN(broadcast_to(x, dims));
}

static jot_value transpose(jot_value x, const int *list)
{
    const char *name = "jot_transpose";
    jot_value error;
    int n;
    int64_t axes[IR_MAX_RANK];
    if (!trace_ready(name, 1, &x, &error))
        return error;
    int rank = trace_type(x).rank;
    if (!trace_axes(name, x, rank, list, false, &n, axes, NULL, &error))
        return error;
    if (n && n != rank)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d axes listed, %s has %d", n,
                          trace_type_text(x), rank);
    for (int i = 0; i < rank && n == 0; i++)
        axes[i] = rank - 1 - i;
    return trace_like(name, x, ir_transpose(trace_builder(), trace_kept(x), axes));
}

jot_value jot_transpose_axes(jot_value x, const int *axes) { TRACE_RETURN(transpose(x, axes)); }

static jot_value swap_axes(jot_value x, int a, int b)
{
    jot_value error;
    int64_t from, to, axes[IR_MAX_RANK];
    if (!trace_ready("jot_swap_axes", 1, &x, &error) ||
        !trace_axis("jot_swap_axes", x, a, &from, &error) ||
        !trace_axis("jot_swap_axes", x, b, &to, &error))
        return error;
    for (int i = 0; i < trace_type(x).rank; i++)
        axes[i] = i == from ? to : i == to ? from : i;
    return trace_like("jot_swap_axes", x, ir_transpose(trace_builder(), trace_kept(x), axes));
}

jot_value jot_swap_axes(jot_value x, int a, int b) { TRACE_RETURN(swap_axes(x, a, b)); }

static jot_value move_axis(jot_value x, int from_axis, int to_axis)
{
    jot_value error;
    int64_t from, to, axes[IR_MAX_RANK];
    if (!trace_ready("jot_move_axis", 1, &x, &error) ||
        !trace_axis("jot_move_axis", x, from_axis, &from, &error) ||
        !trace_axis("jot_move_axis", x, to_axis, &to, &error))
        return error;
    int rank = trace_type(x).rank;
    for (int i = 0, next = 0; i < rank; i++) {
        if (i == to) {
            axes[i] = from;
            continue;
        }
        next += next == from;
        axes[i] = next++;
    }
    return trace_like("jot_move_axis", x, ir_transpose(trace_builder(), trace_kept(x), axes));
}

jot_value jot_move_axis(jot_value x, int from, int to) { TRACE_RETURN(move_axis(x, from, to)); }

static jot_value expand_dims(jot_value x, const int *list)
{
    const char *name = "jot_expand_dims";
    jot_value error;
    int n = 0;
    int64_t axes[IR_MAX_RANK], dims[IR_MAX_RANK];
    if (!trace_ready(name, 1, &x, &error))
        return error;
    while (list && list[n] != JOT_END && n < IR_MAX_RANK)
        n++;
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    int rank = t.rank + n;
    if (rank > IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "%d axes: at most %d", rank, IR_MAX_RANK);
    if (!trace_axes(name, x, rank, list, false, &n, axes, NULL, &error))
        return error;
    for (int i = 0; i < rank; i++)
        dims[i] = -1;
    for (int i = 0; i < n; i++)
        dims[axes[i]] = 1;
    for (int i = 0, k = 0; i < rank; i++)
        if (dims[i] < 0)
            dims[i] = ir_dims(b->module, t)[k++];
    return trace_like(name, x, ir_reshape(b, trace_kept(x), rank, dims));
}

jot_value jot_expand_dims_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(expand_dims(x, axes));
}

static jot_value squeeze(jot_value x, const int *list)
{
    const char *name = "jot_squeeze";
    jot_value error;
    int n, rank = 0;
    int64_t axes[IR_MAX_RANK], dims[IR_MAX_RANK];
    bool gone[IR_MAX_RANK] = {false};
    if (!trace_ready(name, 1, &x, &error))
        return error;
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    const int64_t *old = ir_dims(b->module, t);
    if (!trace_axes(name, x, t.rank, list, false, &n, axes, NULL, &error))
        return error;
    for (int i = 0; i < n; i++) {
        if (old[axes[i]] != 1)
            return trace_fail(name, JOT_ERR_SHAPE, "axis %lld of %s has not size 1",
                              (long long)axes[i], trace_type_text(x));
        gone[axes[i]] = true;
    }
    for (int i = 0; i < t.rank; i++)
        if (!gone[i] && (n || old[i] != 1))
            dims[rank++] = old[i];
    return trace_like(name, x, ir_reshape(b, trace_kept(x), rank, dims));
}

jot_value jot_squeeze_axes(jot_value x, const int *axes) { TRACE_RETURN(squeeze(x, axes)); }

static jot_value flip(jot_value x, const int *list)
{
    jot_value error;
    int n;
    int64_t axes[IR_MAX_RANK];
    if (!trace_ready("jot_flip", 1, &x, &error) ||
        !trace_axes("jot_flip", x, trace_type(x).rank, list, true, &n, axes, NULL, &error))
        return error;
    for (int i = 1; i < n; i++) // the graph wants them in order
        for (int k = i; k > 0 && axes[k - 1] > axes[k]; k--) {
            int64_t t = axes[k];
            axes[k] = axes[k - 1];
            axes[k - 1] = t;
        }
    return trace_like("jot_flip", x, ir_rev(trace_builder(), trace_kept(x), n, axes));
}

jot_value jot_flip_axes(jot_value x, const int *axes) { TRACE_RETURN(flip(x, axes)); }

// Each axis as (count, size) or (size, count) and then both as one.
static jot_value repeat_axes(const char *name, jot_value x, int rank, const int64_t *counts,
                             bool whole)
{
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    const int64_t *old = ir_dims(b->module, t);
    int64_t wide[IR_MAX_RANK], dims[IR_MAX_RANK], axes[IR_MAX_RANK];
    if (2 * rank > IR_MAX_RANK)
        return trace_fail(name, JOT_ERR_SHAPE, "%d axes: at most %d", rank, IR_MAX_RANK / 2);
    for (int i = 0; i < rank; i++) {
        int k = i - (rank - t.rank);
        int64_t size = k >= 0 ? old[k] : 1;
        wide[2 * i] = whole ? counts[i] : size;
        wide[2 * i + 1] = whole ? size : counts[i];
        // What is too large for a number is so for the broadcast.
        (void)!__builtin_mul_overflow(size, counts[i], &dims[i]);
        if (k >= 0)
            axes[k] = whole ? 2 * i + 1 : 2 * i;
    }
    ir_id y = ir_broadcast_in_dim(b, trace_kept(x), 2 * rank, wide, axes);
    return trace_like(name, x, ir_reshape(b, y, rank, dims));
}

static jot_value tile(jot_value x, const int64_t *list)
{
    jot_value error;
    int n;
    int64_t listed[IR_MAX_RANK], counts[IR_MAX_RANK];
    if (!trace_ready("jot_tile", 1, &x, &error) ||
        !trace_sizes("jot_tile", list, 0, &n, listed, &error))
        return error;
    int rank = trace_type(x).rank > n ? trace_type(x).rank : n;
    for (int i = 0; i < rank; i++)
        counts[i] = i < rank - n ? 1 : listed[i - (rank - n)];
    return repeat_axes("jot_tile", x, rank, counts, true);
}

jot_value jot_tile_dims(jot_value x, const int64_t *counts) { TRACE_RETURN(tile(x, counts)); }

static jot_value repeat(jot_value x, int64_t count, int axis)
{
    jot_value error;
    int64_t at, counts[IR_MAX_RANK];
    if (!trace_ready("jot_repeat", 1, &x, &error) ||
        !trace_axis("jot_repeat", x, axis, &at, &error))
        return error;
    if (count < 0)
        return trace_fail("jot_repeat", JOT_ERR_ARGUMENT, "%lld times: it takes 0 or more",
                          (long long)count);
    for (int i = 0; i < trace_type(x).rank; i++)
        counts[i] = i == at ? count : 1;
    return repeat_axes("jot_repeat", x, trace_type(x).rank, counts, false);
}

jot_value jot_repeat(jot_value x, int64_t count, int axis)
{
    TRACE_RETURN(repeat(x, count, axis));
}
