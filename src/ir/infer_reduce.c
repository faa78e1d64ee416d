// SPDX-License-Identifier: Apache-2.0
// Result types of folds, prefix folds and contractions.
#include "ir/infer.h"

bool infer_reduce(struct ir_infer *call)
{
    int n, rank = 0;
    struct ir_type t = infer_in(call, 0);
    const int64_t *axes = ir_attr_ints(call->attrs, IR_KEY_axes, &n),
                  *from = infer_dims(call, 0);
    int64_t dims[IR_MAX_RANK];
    if (!infer_axes(call, t, n, axes))
        return false;
    for (int i = 0, next = 0; i < t.rank; i++) {
        if (next < n && axes[next] == i)
            next++;
        else
            dims[rank++] = from[i];
    }
    return infer_result_dims(call, ir_dtype(t), rank, dims);
}

bool infer_arg(struct ir_infer *call)
{
    int64_t axis, dims[IR_MAX_RANK];
    jot_dtype dtype;
    struct ir_type t = infer_in(call, 0);
    const int64_t *from = infer_dims(call, 0);
    int rank = 0;
    if (!infer_int(call, IR_KEY_axis, &axis) || !infer_dtype(call, &dtype) ||
        !infer_axis(call, t, axis))
        return false;
    if (!dtype_is_integer(dtype))
        return infer_fail(call, JOT_ERR_DTYPE, "%s as %s: an index is an integer",
                          infer_name(call), dtype_get(dtype)->name);
    if (from[axis] == 0)
        return infer_fail(call, JOT_ERR_SHAPE, "%s along axis %lld of %s: it is empty",
                          infer_name(call), (long long)axis, infer_text(call, t));
    int bits = dtype_get(dtype)->bits - dtype_is_signed(dtype);
    if (bits < 63 && (from[axis] - 1) >> bits)
        return infer_fail(call, JOT_ERR_DTYPE,
                          "%s along axis %lld of %s: the index does not fit %s: ask for i64",
                          infer_name(call), (long long)axis, infer_text(call, t),
                          dtype_get(dtype)->name);
    for (int i = 0; i < t.rank; i++) {
        if (i != axis)
            dims[rank++] = from[i];
    }
    return infer_result_dims(call, dtype, rank, dims);
}

bool infer_cumulative(struct ir_infer *call)
{
    int64_t axis;
    return infer_int(call, IR_KEY_axis, &axis) && infer_axis(call, infer_in(call, 0), axis) &&
           infer_result(call, infer_in(call, 0));
}

// The axes of a list are axes of t and none of them was seen before.
static bool mark_axes(struct ir_infer *call, struct ir_type t, int n, const int64_t *axes,
                      uint32_t *seen)
{
    for (int i = 0; i < n; i++) {
        if (!infer_axis(call, t, axes[i]))
            return false;
        if (*seen >> axes[i] & 1)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "axis %lld of %s is listed twice among contracted and batch axes",
                              (long long)axes[i], infer_text(call, t));
        *seen |= UINT32_C(1) << axes[i];
    }
    return true;
}

static int free_dims(const int64_t *from, int rank, uint32_t seen, int64_t *dims)
{
    int n = 0;
    for (int i = 0; i < rank; i++) {
        if (!(seen >> i & 1))
            dims[n++] = from[i];
    }
    return n;
}

bool infer_dot_general(struct ir_infer *call)
{
    int n, n_batch, rank;
    uint32_t seen_x = 0, seen_y = 0;
    struct ir_type x = infer_in(call, 0), y = infer_in(call, 1);
    const int64_t *dx = infer_dims(call, 0), *dy = infer_dims(call, 1);
    const int64_t *cx = ir_attr_ints(call->attrs, IR_KEY_lhs_contract, &n);
    const int64_t *bx = ir_attr_ints(call->attrs, IR_KEY_lhs_batch, &n_batch);
    const int64_t *cy = infer_ints(call, IR_KEY_rhs_contract, n);
    const int64_t *by = cy ? infer_ints(call, IR_KEY_rhs_batch, n_batch) : NULL;
    if (!by || !infer_one_dtype(call, 0) || !mark_axes(call, x, n_batch, bx, &seen_x) ||
        !mark_axes(call, x, n, cx, &seen_x) || !mark_axes(call, y, n_batch, by, &seen_y) ||
        !mark_axes(call, y, n, cy, &seen_y))
        return false;
    int64_t precision = ir_attr_int_or(call->attrs, IR_KEY_precision, 0);
    if (precision < 0 || precision > 3)
        return infer_fail(call, JOT_ERR_ARGUMENT, "precision %lld: there are 0 to 3",
                          (long long)precision);
    for (int i = 0; i < n; i++) {
        if (dx[cx[i]] != dy[cy[i]])
            return infer_fail(call, JOT_ERR_SHAPE, "contracting %lld with %lld: %s · %s",
                              (long long)dx[cx[i]], (long long)dy[cy[i]], infer_text(call, x),
                              infer_text(call, y));
    }
    // Room for the free axes of both before their number is checked.
    int64_t dims[2 * IR_MAX_RANK];
    for (int i = 0; i < n_batch; i++) {
        if (dx[bx[i]] != dy[by[i]])
            return infer_fail(call, JOT_ERR_SHAPE,
                              "batch axis %d is %lld in one and %lld in the "
                              "other: %s · %s",
                              i, (long long)dx[bx[i]], (long long)dy[by[i]],
                              infer_text(call, x), infer_text(call, y));
        dims[i] = dx[bx[i]];
    }
    rank = n_batch + free_dims(dx, x.rank, seen_x, dims + n_batch);
    rank += free_dims(dy, y.rank, seen_y, dims + rank);
    return infer_result_dims(call, ir_dtype(x), rank, dims);
}
