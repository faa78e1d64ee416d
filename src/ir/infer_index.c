// SPDX-License-Identifier: Apache-2.0
// Result types of ops whose indices are data.
#include "ir/indexing.h"
#include "ir/infer.h"

// Operands from `first` on are one integer for each axis of operand 0.
static bool check_starts(struct ir_infer *call, int first)
{
    if (call->n_in < first)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s takes at least %d operands, not %d",
                          infer_name(call), first, call->n_in);
    struct ir_type x = infer_in(call, 0);
    if (call->n_in - first != x.rank)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "%s of %s takes a start for each of its %d axes, not %d",
                          infer_name(call), infer_text(call, x), x.rank, call->n_in - first);
    for (int i = first; i < call->n_in; i++) {
        struct ir_type t = infer_in(call, i);
        if (t.rank != 0 || !dtype_is_integer(ir_dtype(t)))
            return infer_fail(call, t.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "the start along axis %d of %s is %s, not one integer", i - first,
                              infer_text(call, x), infer_text(call, t));
    }
    return true;
}

static bool check_fits(struct ir_infer *call, const int64_t *sizes)
{
    struct ir_type x = infer_in(call, 0);
    struct ir_gather g = ir_gather_of(call->attrs);
    uint32_t batch = 0; // a window of 1 of each part, however many there are
    for (int i = 0; i < g.n_batch; i++)
        batch |= UINT32_C(1) << g.operand_batch[i];
    for (int i = 0; i < x.rank; i++)
        if (batch >> i & 1)
            continue;
        else if (sizes[i] < 0 || sizes[i] > infer_dims(call, 0)[i])
            return infer_fail(
                call, JOT_ERR_SHAPE, "a window of %lld along axis %d of %s: at most %lld",
                (long long)sizes[i], i, infer_text(call, x), (long long)infer_dims(call, 0)[i]);
    return true;
}

bool infer_dynamic_slice(struct ir_infer *call)
{
    if (!check_starts(call, 1))
        return false;
    struct ir_type x = infer_in(call, 0);
    const int64_t *sizes = infer_ints(call, IR_KEY_sizes, x.rank);
    return sizes && check_fits(call, sizes) &&
           infer_result_dims(call, ir_dtype(x), x.rank, sizes);
}

bool infer_dynamic_update_slice(struct ir_infer *call)
{
    if (!check_starts(call, 2))
        return false;
    struct ir_type x = infer_in(call, 0), u = infer_in(call, 1);
    if (x.dtype != u.dtype)
        return infer_fail(call, JOT_ERR_DTYPE, "an update of %s by %s: convert one",
                          infer_text(call, x), infer_text(call, u));
    if (x.rank != u.rank)
        return infer_fail(call, JOT_ERR_SHAPE, "an update of %s by %s, which needs %d axes",
                          infer_text(call, x), infer_text(call, u), x.rank);
    return check_fits(call, infer_dims(call, 1)) && infer_result(call, x);
}

// The numbers of a list are axes below `rank`, each once.
static bool check_axes(struct ir_infer *call, const char *what, int rank, int n,
                       const int64_t *axes, uint32_t *seen)
{
    for (int i = 0; i < n; i++) {
        if (axes[i] < 0 || axes[i] >= rank)
            return infer_fail(call, JOT_ERR_SHAPE, "%s: axis %lld in %s: axes are 0 to %d",
                              infer_name(call), (long long)axes[i], what, rank - 1);
        if (*seen >> axes[i] & 1)
            return infer_fail(call, JOT_ERR_SHAPE, "%s: axis %lld is listed twice in %s",
                              infer_name(call), (long long)axes[i], what);
        *seen |= UINT32_C(1) << axes[i];
    }
    return true;
}

static bool check_increasing(struct ir_infer *call, const char *what, int n,
                             const int64_t *axes)
{
    for (int i = 1; i < n; i++)
        if (axes[i] < axes[i - 1])
            return infer_fail(call, JOT_ERR_SHAPE, "%s: axis %lld after axis %lld in %s",
                              infer_name(call), (long long)axes[i], (long long)axes[i - 1],
                              what);
    return true;
}

static bool check_batch(struct ir_infer *call, const struct ir_gather *g)
{
    int count;
    uint32_t seen = 0;
    struct ir_type x = infer_in(call, 0), indices = infer_in(call, 1);
    ir_attr_ints(call->attrs, IR_KEY_index_batch, &count);
    if (count != g->n_batch)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%s pairs %d batch axes of %s with %d of the indices %s",
                          infer_name(call), g->n_batch, infer_text(call, x), count,
                          infer_text(call, indices));
    if (!check_axes(call, "index_batch", indices.rank - 1, count, g->index_batch, &seen))
        return false;
    for (int i = 0; i < count; i++) {
        int64_t a = infer_dims(call, 0)[g->operand_batch[i]];
        int64_t b = infer_dims(call, 1)[g->index_batch[i]];
        if (a != b)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "batch axis %lld of %s and %lld of the indices %s: %lld and %lld",
                              (long long)g->operand_batch[i], infer_text(call, x),
                              (long long)g->index_batch[i], infer_text(call, indices),
                              (long long)a, (long long)b);
    }
    return true;
}

// What gather and scatter have in common; *out_rank is the rank of the result or of the updates.
static bool check_dimensions(struct ir_infer *call, const struct ir_gather *g, int *out_rank)
{
    struct ir_type x = infer_in(call, 0), indices = infer_in(call, 1);
    uint32_t used = 0, mapped = 0, offsets = 0;
    if (indices.rank == 0 || !dtype_is_integer(ir_dtype(indices)))
        return infer_fail(call, indices.rank ? JOT_ERR_DTYPE : JOT_ERR_SHAPE,
                          "%s at %s: indices are integers whose last axis holds the index of "
                          "one window",
                          infer_name(call), infer_text(call, indices));
    if (infer_dims(call, 1)[indices.rank - 1] != g->n_map)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%s: index_map has %d axes and the indices of %s have %lld",
                          infer_name(call), g->n_map, infer_text(call, indices),
                          (long long)infer_dims(call, 1)[indices.rank - 1]);
    if (!check_axes(call, "collapsed_dims and operand_batch", x.rank, g->n_collapsed,
                    g->collapsed_dims, &used) ||
        !check_axes(call, "collapsed_dims and operand_batch", x.rank, g->n_batch,
                    g->operand_batch, &used) ||
        !check_axes(call, "index_map", x.rank, g->n_map, g->index_map, &mapped))
        return false;
    for (int i = 0; i < g->n_batch; i++)
        if (mapped >> g->operand_batch[i] & 1)
            return infer_fail(call, JOT_ERR_SHAPE, "%s: batch axis %lld is in index_map too",
                              infer_name(call), (long long)g->operand_batch[i]);
    if (!check_batch(call, g))
        return false;
    *out_rank = indices.rank - 1 + g->n_offset;
    if (g->n_offset != x.rank - g->n_collapsed - g->n_batch)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%s: offset_dims has %d axes and the window of %s has %d",
                          infer_name(call), g->n_offset, infer_text(call, x),
                          x.rank - g->n_collapsed - g->n_batch);
    if (*out_rank > IR_MAX_RANK)
        return infer_fail(call, JOT_ERR_SHAPE, "a result of %d axes: at most %d", *out_rank,
                          IR_MAX_RANK);
    if ((int)g->mode < 0 || g->mode >= IR_MODE_COUNT)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s: mode %d: modes are 0 to %d",
                          infer_name(call), (int)g->mode, IR_MODE_COUNT - 1);
    return check_axes(call, "offset_dims", *out_rank, g->n_offset, g->offset_dims, &offsets) &&
           check_increasing(call, "offset_dims", g->n_offset, g->offset_dims);
}

bool infer_gather(struct ir_infer *call)
{
    int rank;
    struct ir_type x = infer_in(call, 0);
    struct ir_gather g = ir_gather_of(call->attrs);
    if (!check_dimensions(call, &g, &rank) || !infer_ints(call, IR_KEY_sizes, x.rank) ||
        !check_fits(call, g.sizes))
        return false;
    int64_t dims[IR_MAX_RANK], windows[IR_MAX_RANK];
    uint32_t gone = 0, offsets = 0;
    for (int i = 0; i < g.n_collapsed + g.n_batch; i++) {
        int64_t axis =
            i < g.n_collapsed ? g.collapsed_dims[i] : g.operand_batch[i - g.n_collapsed];
        if (g.sizes[axis] != 1)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "gather: a window of %lld along axis %lld, which is dropped: 1",
                              (long long)g.sizes[axis], (long long)axis);
        gone |= UINT32_C(1) << axis;
    }
    int n = 0;
    for (int i = 0; i < x.rank; i++)
        if (!(gone >> i & 1))
            windows[n++] = g.sizes[i];
    for (int i = 0; i < g.n_offset; i++) {
        offsets |= UINT32_C(1) << g.offset_dims[i];
        dims[g.offset_dims[i]] = windows[i];
    }
    for (int i = 0, next = 0; i < rank; i++)
        if (!(offsets >> i & 1))
            dims[i] = infer_dims(call, 1)[next++];
    return infer_result_dims(call, ir_dtype(x), rank, dims);
}

bool infer_scatter(struct ir_infer *call)
{
    int rank;
    struct ir_type x = infer_in(call, 0), u = infer_in(call, 2);
    struct ir_gather g = ir_gather_of(call->attrs);
    if (!check_dimensions(call, &g, &rank))
        return false;
    if (x.dtype != u.dtype)
        return infer_fail(call, JOT_ERR_DTYPE, "updates %s of %s: convert one",
                          infer_text(call, u), infer_text(call, x));
    if (u.rank != rank)
        return infer_fail(call, JOT_ERR_SHAPE, "updates %s of %s at %s: they need %d axes",
                          infer_text(call, u), infer_text(call, x),
                          infer_text(call, infer_in(call, 1)), rank);
    struct ir_window w = ir_window_of(call->b->module, call->attrs, x, infer_in(call, 1), u);
    for (int i = 0; i < w.index_rank; i++)
        if (infer_dims(call, 2)[w.index_axis[i]] != infer_dims(call, 1)[i])
            return infer_fail(call, JOT_ERR_SHAPE,
                              "updates %s at indices %s: axis %d is %lld and would be %lld",
                              infer_text(call, u), infer_text(call, infer_in(call, 1)),
                              w.index_axis[i], (long long)infer_dims(call, 2)[w.index_axis[i]],
                              (long long)infer_dims(call, 1)[i]);
    return check_fits(call, w.size) && infer_result(call, x);
}
