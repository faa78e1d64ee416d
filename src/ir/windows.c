// SPDX-License-Identifier: Apache-2.0
#include "ir/windows.h"

// x with padding around and between its elements, by axis.
static ir_id padded(struct ir_builder *b, ir_id x, ir_id padding,
                    const struct ir_axis_window *w)
{
    int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], interior[IR_MAX_RANK];
    bool any = false;
    for (int i = 0; i < ir_type_in(b, x).rank; i++) {
        low[i] = w[i].low;
        high[i] = w[i].high;
        interior[i] = w[i].base - 1;
        any |= low[i] || high[i] || interior[i];
    }
    if (!any)
        return x;
    return ir_pad(b, x, padding == IR_NONE ? ir_scalar_like(b, x, 0) : padding, low, high,
                  interior);
}

// Windows side by side: axes of windows and their elements by a reshape.
static ir_id tiles(struct ir_builder *b, ir_id x, const struct ir_axis_window *w, int at)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], dims[IR_MAX_RANK];
    int64_t axes[IR_MAX_RANK], within[IR_MAX_RANK];
    int rank = 0, n_within = 0, n_axes = 0;
    for (int i = 0; i < t.rank; i++) {
        limits[i] = w[i].count * w[i].stride;
        dims[rank++] = w[i].count;
        if (w[i].size == 1)
            continue;
        within[n_within++] = rank;
        dims[rank++] = w[i].size;
    }
    for (int i = 0, from = 0; i <= t.rank; i++) {
        for (int k = 0; i == at && k < n_within; k++)
            axes[n_axes++] = within[k];
        if (i < t.rank) {
            axes[n_axes++] = from;
            from += 1 + (w[i].size != 1);
        }
    }
    x = ir_reshape(b, ir_slice(b, x, starts, limits, NULL), rank, dims);
    return ir_transpose(b, x, axes);
}

// Each axis repeated for each element of the window, and shifted by it; zeros_before of them before
// x.
static ir_id sheared(struct ir_builder *b, ir_id x, const struct ir_axis_window *w,
                     const int64_t *zeros_before, int at, int n)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK], axes[IR_MAX_RANK], strides[IR_MAX_RANK];
    int64_t starts[IR_MAX_RANK] = {0};
    for (int i = 0, k = at; i < t.rank; i++) {
        axes[i] = i < at ? i : i + n;
        dims[axes[i]] = ir_dims(b->module, t)[i];
        if (w[i].size != 1)
            dims[k++] = w[i].size;
    }
    x = ir_broadcast_in_dim(b, x, t.rank + n, dims, axes);
    for (int i = 0; i < n; i++)
        strides[at + i] = 1;
    for (int i = 0, k = at; i < t.rank; i++) {
        int64_t length = w[i].count ? (w[i].count - 1) * w[i].stride + 1 : 0;
        strides[axes[i]] = w[i].stride;
        dims[axes[i]] = length;
        if (w[i].size != 1)
            x = ir_shear(b, x, (int)axes[i], k++, -zeros_before[i], w[i].dilation, length);
    }
    return ir_slice(b, x, starts, dims, strides);
}

ir_id ir_windows(struct ir_builder *b, ir_id x, ir_id padding,
                 const struct ir_axis_window *windows, int at)
{
    struct ir_axis_window w[IR_MAX_RANK];
    int64_t zeros_before[IR_MAX_RANK] = {0};
    bool side_by_side = true;
    int n = 0;
    if (x == IR_NONE)
        return IR_NONE;
    int rank = ir_type_in(b, x).rank;
    memcpy(w, windows, sizeof *w * (size_t)rank);
    for (int i = 0; i < rank; i++) {
        n += w[i].size != 1;
        side_by_side &= w[i].size == w[i].stride && w[i].dilation == 1;
    }
    if (rank + n > IR_MAX_RANK)
        return ir_fail(b, JOT_ERR_SHAPE, "%d axes with those of windows: at most %d", rank + n,
                       IR_MAX_RANK);
    if (side_by_side)
        return tiles(b, padded(b, x, padding, w), w, at);
    // Shears put zeros outside of their operand by themselves.
    for (int i = 0; i < rank; i++)
        if (padding == IR_NONE && w[i].size != 1 && w[i].base == 1) {
            zeros_before[i] = w[i].low;
            w[i].low = w[i].high = 0;
        }
    return sheared(b, padded(b, x, padding, w), w, zeros_before, at, n);
}
