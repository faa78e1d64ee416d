// SPDX-License-Identifier: Apache-2.0
// The result type of convolutions.
#include "ir/conv.h"
#include "ir/infer.h"

static const char *const names[] = {"x", "w", "y"};

static bool check_list(struct ir_infer *call, enum ir_key key, int n, int64_t least)
{
    const int64_t *list = infer_ints(call, key, n);
    for (int i = 0; list && i < n; i++)
        if (list[i] < least || list[i] > INT32_MAX)
            return infer_fail(call, JOT_ERR_ARGUMENT, "conv: number %d of %s is %lld", i,
                              ir_key_table[key].name, (long long)list[i]);
    return list;
}

static bool check_attributes(struct ir_infer *call, struct ir_conv *c)
{
    int64_t mode;
    if (!infer_int(call, IR_KEY_mode, &mode))
        return false;
    if (mode < 0 || mode >= CONV_PARTS)
        return infer_fail(call, JOT_ERR_ARGUMENT, "conv of mode %lld: there are 0 to %d",
                          (long long)mode, CONV_PARTS - 1);
    *c = ir_conv_of(call->attrs);
    if ((int)c->layout < 0 || c->layout >= CONV_LAYOUTS)
        return infer_fail(call, JOT_ERR_ARGUMENT, "conv of layout %d: there are 0 to %d",
                          (int)c->layout, CONV_LAYOUTS - 1);
    if (!check_list(call, IR_KEY_strides, c->n, 1) ||
        !check_list(call, IR_KEY_low, c->n, -INT32_MAX) ||
        !check_list(call, IR_KEY_high, c->n, -INT32_MAX) ||
        !check_list(call, IR_KEY_lhs_dilation, c->n, 1) ||
        !check_list(call, IR_KEY_rhs_dilation, c->n, 1) ||
        !check_list(call, IR_KEY_sizes, c->part == CONV_Y ? 0 : c->n, 0))
        return false;
    if (c->precision < 0 || c->precision > 3)
        return infer_fail(call, JOT_ERR_ARGUMENT, "precision %d: there are 0 to 3",
                          c->precision);
    if (c->groups < 1)
        return infer_fail(call, JOT_ERR_ARGUMENT, "conv of %lld groups: at least 1",
                          (long long)c->groups);
    return true;
}

// What the three parts are in numbers: known where an operand says so.
struct extents {
    int64_t batch, in, out; // features of x and of y
    int64_t spatial[CONV_PARTS][IR_MAX_RANK];
};

static bool agree(struct ir_infer *call, const char *what, int64_t *known, int64_t got)
{
    if (*known >= 0 && *known != got)
        return infer_fail(call, JOT_ERR_SHAPE, "conv of %s and %s: %lld and %lld %s",
                          infer_text(call, infer_in(call, 0)),
                          infer_text(call, infer_in(call, 1)), (long long)*known,
                          (long long)got, what);
    *known = got;
    return true;
}

static bool read_operand(struct ir_infer *call, const struct ir_conv *c, int i,
                         struct extents *e)
{
    enum conv_part part = ir_conv_operand(c, i);
    struct ir_type t = infer_in(call, i);
    const int64_t *dims = infer_dims(call, i);
    if (t.rank != c->n + 2)
        return infer_fail(call, JOT_ERR_SHAPE, "conv over %d spatial axes of %s, its %s", c->n,
                          infer_text(call, t), names[part]);
    int64_t in = dims[ir_conv_in(c)];
    memcpy(e->spatial[part], dims + ir_conv_spatial(c, part), sizeof *dims * (size_t)c->n);
    if (part == CONV_W && __builtin_mul_overflow(in, c->groups, &in))
        return infer_fail(call, JOT_ERR_SHAPE, "conv of %lld groups of %lld features",
                          (long long)c->groups, (long long)in);
    int64_t features = dims[ir_conv_features(c, part)];
    return (part == CONV_W || agree(call, "of the batch", &e->batch, dims[0])) &&
           (part == CONV_X || agree(call, "features out", &e->out, features)) &&
           (part == CONV_Y || agree(call, "features", &e->in, part == CONV_W ? in : features));
}

bool infer_conv(struct ir_infer *call)
{
    struct ir_conv c;
    struct extents e = {.batch = -1, .in = -1, .out = -1};
    int64_t dims[IR_MAX_RANK];
    if (!check_attributes(call, &c) || !infer_one_dtype(call, 0))
        return false;
    if (c.part != CONV_Y && !dtype_is_inexact(ir_dtype(infer_in(call, 0))))
        return infer_fail(call, JOT_ERR_DTYPE, "conv of %s: derivatives are of floats",
                          infer_text(call, infer_in(call, 0)));
    if (c.n + 2 > IR_MAX_RANK)
        return infer_fail(call, JOT_ERR_SHAPE, "conv over %d spatial axes", c.n);
    if (!read_operand(call, &c, 0, &e) || !read_operand(call, &c, 1, &e))
        return false;
    if (e.in % c.groups || e.out % c.groups)
        return infer_fail(call, JOT_ERR_SHAPE,
                          "%lld groups do not divide %lld features and %lld out",
                          (long long)c.groups, (long long)e.in, (long long)e.out);
    if (c.part != CONV_Y)
        memcpy(e.spatial[c.part], c.sizes, sizeof *c.sizes * (size_t)c.n);
    int rank = c.n + 3; // of the windows, with an axis of groups
    for (int i = 0; i < c.n; i++) {
        struct ir_axis_window w =
            ir_conv_window(&c, i, e.spatial[CONV_X][i], e.spatial[CONV_W][i]);
        rank += w.size != 1;
        if (c.part == CONV_Y)
            e.spatial[CONV_Y][i] = w.count;
        else if (w.count != e.spatial[CONV_Y][i])
            return infer_fail(call, JOT_ERR_SHAPE,
                              "conv: spatial axis %d has %lld windows, and y %lld", i,
                              (long long)w.count, (long long)e.spatial[CONV_Y][i]);
    }
    if (rank > IR_MAX_RANK)
        return infer_fail(call, JOT_ERR_SHAPE, "%d axes with those of windows: at most %d",
                          rank, IR_MAX_RANK);
    bool is_w = c.part == CONV_W;
    dims[is_w ? ir_conv_in(&c) : 0] = is_w ? e.in / c.groups : e.batch;
    dims[ir_conv_features(&c, c.part)] = c.part == CONV_X ? e.in : e.out;
    memcpy(dims + ir_conv_spatial(&c, c.part), e.spatial[c.part], sizeof *dims * (size_t)c.n);
    return infer_result_dims(call, ir_dtype(infer_in(call, 0)), c.n + 2, dims);
}
