// SPDX-License-Identifier: Apache-2.0
// Interpolation between the points of a grid of any rank.
#include "trace/emit.h"

#include "jot/indexing.h"
#include "jot/windows.h"

#define MOST_AXES 8 // of which a point has 2^8 neighbours

static jot_value num(double x) { return jot_from_double(x); }

static jot_value whole(int64_t x) { return jot_from_int(x); }

// Reflection at the centres of the first and the last point, of period 2 (size - 1).
static jot_value mirrored(jot_value at, int64_t size)
{
    int64_t last = size - 1;
    if (last == 0)
        return jot_zeros_like(at);
    return jot_abs(jot_sub(jot_mod(jot_add(at, whole(last)), whole(2 * last)), whole(last)));
}

// Where the point outside of an axis is read.
static jot_value index_inside(jot_value at, int64_t size, enum jot_border_mode mode)
{
    switch (mode) {
    case JOT_BORDER_NEAREST:
        return jot_clip(at, whole(0), whole(size - 1));
    case JOT_BORDER_WRAP:
        return jot_mod(at, whole(size));
    case JOT_BORDER_MIRROR:
        return mirrored(at, size);
    case JOT_BORDER_REFLECT: {
        jot_value twice = jot_add(jot_mul(whole(2), at), whole(1));
        return jot_floor_divide(jot_sub(mirrored(twice, 2 * size + 1), whole(1)), whole(2));
    }
    default:
        return at;
    }
}

// The points beside a coordinate along one axis, one or two, and their weights.
struct beside {
    jot_value at[2], weight[2], is_inside[2];
};

static struct beside points_beside(jot_value c, int64_t size, int order,
                                   enum jot_border_mode mode)
{
    struct beside b;
    jot_value low = order ? jot_floor(c) : jot_round_away(c), share = jot_sub(c, low);
    b.weight[0] = order ? jot_sub(num(1), share) : jot_ones_like(c);
    b.weight[1] = share;
    for (int i = 0; i <= order; i++) {
        jot_value at = jot_add(jot_convert(low, JOT_I32), whole(i));
        b.is_inside[i] =
            jot_logical_and(jot_greater_equal(at, whole(0)), jot_less(at, whole(size)));
        b.at[i] = index_inside(at, size, mode);
    }
    return b;
}

static jot_value check(const char *name, jot_value x, jot_value coordinates, int order,
                       enum jot_border_mode mode)
{
    jot_value v[] = {x, coordinates}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    struct ir_module *m = trace_top()->module;
    struct ir_type tx = trace_type(v[0]), tc = trace_type(v[1]);
    if (order != 0 && order != 1)
        return trace_fail(name, JOT_ERR_ARGUMENT, "order %d: there are 0 and 1", order);
    if ((unsigned)mode > JOT_BORDER_REFLECT)
        return trace_fail(name, JOT_ERR_ARGUMENT, "there is no mode %d", (int)mode);
    if (dtype_is_complex(ir_dtype(tc)))
        return trace_fail(name, JOT_ERR_DTYPE, "coordinates of %s: they are real",
                          trace_type_text(v[1]));
    if (!tx.rank || !tc.rank || ir_dims(m, tc)[0] != tx.rank || ir_count(m, tx) == 0)
        return trace_fail(
            name, JOT_ERR_SHAPE,
            "coordinates of %s in %s: the first axis has one for each axis, of which "
            "none is empty",
            trace_type_text(v[1]), trace_type_text(v[0]));
    if (order && tx.rank > MOST_AXES)
        return trace_fail(name, JOT_ERR_SHAPE, "%s: at most %d axes", trace_type_text(v[0]),
                          MOST_AXES);
    return v[0];
}

static jot_value checked(const char *name, jot_value x, jot_value coordinates, int order,
                         enum jot_border_mode mode)
{
    TRACE_RETURN(check(name, x, coordinates, order, mode));
}

// What the corner gives of which axis i has the upper point where bit i of `upper` is set.
static jot_value corner(jot_value x, int rank, const struct beside *b, unsigned upper,
                        bool has_outside, jot_value outside)
{
    jot_value at[IR_MAX_RANK], weight = {0}, is_inside = {0};
    for (int i = 0; i < rank; i++) {
        unsigned k = upper >> i & 1;
        at[i] = b[i].at[k];
        weight = i ? jot_mul(weight, b[i].weight[k]) : b[i].weight[k];
        is_inside = i ? jot_logical_and(is_inside, b[i].is_inside[k]) : b[i].is_inside[k];
    }
    jot_value part = jot_take_points(x, jot_stack_list(-1, (size_t)rank, at));
    if (has_outside)
        part = jot_where(is_inside, part, outside);
    return jot_mul(weight, part);
}

jot_value jot_map_coordinates(jot_value x, jot_value coordinates, int order,
                              enum jot_border_mode mode, double outside)
{
    x = checked("jot_map_coordinates", x, coordinates, order, mode);
    if (jot_value_failed(x))
        return x;
    struct beside b[IR_MAX_RANK];
    int rank = jot_value_rank(x);
    jot_dtype d = jot_value_dtype(x);
    coordinates = jot_convert(coordinates, dtype_to_inexact(jot_value_dtype(coordinates)));
    for (int i = 0; i < rank; i++)
        b[i] =
            points_beside(jot_take_axis(coordinates, i, 0), jot_value_dim(x, i), order, mode);
    jot_value sum = {0};
    for (unsigned upper = 0; upper < (order ? 1u << rank : 1u); upper++) {
        jot_value part = corner(x, rank, b, upper, mode == JOT_BORDER_CONSTANT, num(outside));
        sum = upper ? jot_add(sum, part) : part;
    }
    return jot_convert(dtype_is_inexact(d) ? sum : jot_round_away(sum), d);
}
