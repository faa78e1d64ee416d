// SPDX-License-Identifier: Apache-2.0
// Tangents of products along axes.
//
// The slope of x0 x1 x2 in x0 is x1 x2: the product of the others, never a quotient, so zeros are no
// trouble.  On the way to it numbers are m 2^e, so nothing overflows that ends within the range.
#include "passes/rules/rules.h"

#include <math.h>

enum {
    ROW = 64,   // so many m, 1 <= |m| < 2, are multiplied without care
    SHORT = 16, // axes up to here are taken with each element left out in turn
};

// m 2^e, e of type i32.
struct scaled {
    ir_id m, e;
};

// ---- Powers of 2

static bool is_double(struct ir_builder *b, ir_id x)
{
    return dtype_real(ir_dtype(ir_type_in(b, x))) == JOT_F64;
}

static int fraction_bits(struct ir_builder *b, ir_id x) { return is_double(b, x) ? 52 : 23; }
static int bias(struct ir_builder *b, ir_id x) { return is_double(b, x) ? 1023 : 127; }
static jot_dtype bits_type(struct ir_builder *b, ir_id x)
{
    return is_double(b, x) ? JOT_I64 : JOT_I32;
}

// A real number times 2^e for |e| below the bias.
static ir_id times_power(struct ir_builder *b, ir_id x, ir_id e)
{
    if (x == IR_NONE || e == IR_NONE)
        return IR_NONE;
    ir_id field =
        ir_convert(b, ir_add(b, e, ir_scalar_like(b, e, bias(b, x))), bits_type(b, x));
    if (field == IR_NONE)
        return IR_NONE;
    ir_id bits = ir_shl(b, field, ir_scalar_like(b, field, fraction_bits(b, x)));
    return ir_mul(b, x, ir_bitcast(b, bits, ir_dtype(ir_type_in(b, x))));
}

// A real x with 1 <= |m| < 2; as it is, with e = 0, where that is 0 or no number.
static struct scaled split(struct ir_builder *b, ir_id x)
{
    enum { LIFT = 64 }; // brings a subnormal number among the others
    if (b->status != JOT_OK)
        return (struct scaled){IR_NONE, IR_NONE};
    ir_id size = ir_abs(b, x), one = ir_scalar_like(b, x, 1);
    ir_id is_number = ir_and(b, ir_gt(b, size, ir_scalar_like(b, x, 0)), ir_is_finite(b, x));
    ir_id is_small = ir_lt(b, size, ir_scalar_like(b, x, ldexp(1, 1 - bias(b, x))));
    ir_id is_lifted = ir_and(b, is_number, is_small);
    ir_id y = ir_mul(b, x, ir_scalar_like(b, x, ldexp(1, LIFT)));
    y = ir_select(b, is_lifted, y, x);
    ir_id bits = ir_bitcast(b, ir_select(b, is_number, ir_abs(b, y), one), bits_type(b, x));
    ir_id field = ir_convert(
        b, ir_shr_logical(b, bits, ir_scalar_like(b, bits, fraction_bits(b, x))), JOT_I32);
    ir_id e = ir_sub(b, field, ir_scalar_like(b, field, bias(b, x)));
    // 2^-e itself may be below the normal numbers.
    ir_id m = times_power(b, y, ir_sub(b, ir_scalar_like(b, e, 1), e));
    return (struct scaled){
        ir_mul(b, m, ir_scalar_like(b, x, 0.5)),
        ir_select(b, is_lifted, ir_sub(b, e, ir_scalar_like(b, e, LIFT)), e)};
}

// x 2^e for any e, rounded once where 1 <= |x|.
static ir_id scale(struct ir_builder *b, ir_id x, ir_id e)
{
    if (x == IR_NONE || e == IR_NONE)
        return IR_NONE;
    if (dtype_is_complex(ir_dtype(ir_type_in(b, x))))
        return ir_complex(b, scale(b, ir_real(b, x), e), scale(b, ir_imag(b, x), e));
    int most = is_double(b, x) ? 1000 : 120;
    ir_id low = ir_scalar_like(b, e, -most), high = ir_scalar_like(b, e, most);
    ir_id first = ir_clamp(b, low, e, high);
    ir_id rest = ir_clamp(b, low, ir_sub(b, e, first), high);
    return times_power(b, times_power(b, x, first), rest);
}

// With 1 <= |m| < 2, or as it is where that is 0 or no number.
static struct scaled normal(struct ir_builder *b, struct scaled x)
{
    if (x.m == IR_NONE || x.e == IR_NONE)
        return (struct scaled){IR_NONE, IR_NONE};
    if (!dtype_is_complex(ir_dtype(ir_type_in(b, x.m)))) {
        struct scaled y = split(b, x.m);
        return (struct scaled){y.m, ir_add(b, x.e, y.e)};
    }
    ir_id size = ir_max(b, ir_abs(b, ir_real(b, x.m)), ir_abs(b, ir_imag(b, x.m)));
    ir_id e = split(b, size).e;
    return (struct scaled){scale(b, x.m, ir_neg(b, e)), ir_add(b, x.e, e)};
}

// ---- All but one

// x as [rows, width, ...] of what is [n, ...], filled up.
static ir_id in_rows(struct ir_builder *b, ir_id x, int64_t rows, int64_t width, double fill)
{
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {rows * width - rule_extent(b, x, 0)};
    int64_t dims[IR_MAX_RANK + 1] = {rows, width};
    struct ir_type t = ir_type_in(b, x);
    memcpy(dims + 2, ir_dims(b->module, t) + 1, sizeof *dims * (size_t)(t.rank - 1));
    if (high[0])
        x = ir_pad(b, x, ir_scalar_like(b, x, fill), low, high, NULL);
    return ir_reshape(b, x, t.rank + 1, dims);
}

// The products of what comes before each element along axis 1, or after it.
static ir_id products_before(struct ir_builder *b, ir_id x, bool after)
{
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    low[1] = after ? -1 : 1;
    high[1] = -low[1];
    ir_id moved = ir_pad(b, x, ir_scalar_like(b, x, 1), low, high, NULL);
    return ir_cumulative(b, IR_cumprod, moved, 1, after);
}

// The same of all others: for short rows with each element left out in turn, so that nothing is stored.
static ir_id products_beside(struct ir_builder *b, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t n = rule_extent(b, x, 1), dims[IR_MAX_RANK + 1] = {rule_extent(b, x, 0), n},
            axes[IR_MAX_RANK];
    if (n > SHORT)
        return ir_mul(b, products_before(b, x, false), products_before(b, x, true));
    memcpy(dims + 2, ir_dims(b->module, t) + 1, sizeof *dims * (size_t)(t.rank - 1));
    for (int i = 0; i < t.rank; i++)
        axes[i] = i ? i + 1 : 0;
    axes[1] = 1;
    ir_id all = ir_broadcast_in_dim(b, x, t.rank + 1, dims, axes);
    if (all == IR_NONE)
        return IR_NONE;
    struct ir_type indices = ir_type_with(ir_type_in(b, all), JOT_I32);
    ir_id is_other = ir_ne(b, ir_iota(b, indices, 1), ir_iota(b, indices, 2));
    ir_id some = ir_select(b, is_other, all, ir_scalar_like(b, x, 1));
    return ir_reduce(b, IR_reduce_prod, some, 1, (int64_t[]){1});
}

// A value of each row for the elements of the row.
static ir_id over_row(struct ir_builder *b, ir_id v, ir_id like)
{
    int64_t axes[IR_MAX_RANK];
    struct ir_type t = ir_type_in(b, like);
    for (int i = 0; i < t.rank; i++)
        axes[i] = i ? i + 1 : 0;
    return ir_broadcast_in_dim(b, v, t.rank, ir_dims(b->module, t), axes);
}

// Along axis 0 the product of all elements but this one.  Rows are multiplied one by one, and the
// products of other rows found likewise.  An m is below 2^ROW.
static struct scaled others(struct ir_builder *b, struct scaled x)
{
    if (b->status != JOT_OK)
        return x;
    struct ir_type t = ir_type_in(b, x.m);
    int64_t n = rule_extent(b, x.m, 0), rows = (n + ROW - 1) / ROW, width = rows > 1 ? ROW : n;
    ir_id m = in_rows(b, x.m, rows, width, 1), e = in_rows(b, x.e, rows, width, 0);
    ir_id total = ir_reduce(b, IR_reduce_sum, e, 1, (int64_t[]){1});
    if (b->status != JOT_OK)
        return x;
    struct scaled y = {products_beside(b, m), ir_sub(b, over_row(b, total, e), e)};
    if (rows > 1) {
        ir_id whole = ir_reduce(b, IR_reduce_prod, m, 1, (int64_t[]){1});
        struct scaled z = normal(b, (struct scaled){whole, total});
        struct scaled up = normal(b, others(b, z));
        y = (struct scaled){ir_mul(b, y.m, over_row(b, up.m, m)),
                            ir_add(b, y.e, over_row(b, up.e, e))};
    }
    int64_t starts[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK], flat[IR_MAX_RANK] = {rows * width};
    for (int i = 0; i < t.rank; i++)
        strides[i] = 1;
    memcpy(flat + 1, ir_dims(b->module, t) + 1, sizeof *flat * (size_t)(t.rank - 1));
    ir_id parts[] = {ir_reshape(b, y.m, t.rank, flat), ir_reshape(b, y.e, t.rank, flat)};
    for (int i = 0; i < 2; i++)
        parts[i] = ir_slice(b, parts[i], starts, ir_dims(b->module, t), strides);
    return (struct scaled){parts[0], parts[1]};
}

// Which elements along axis 0 are in each product k of a new axis 1: those with i <keep> k; or all are in
// the one product there is.
static const enum ir_op all = IR_OP_COUNT;

// x as x_i of each product k, or as x_k of each i.
static ir_id spread(struct ir_builder *b, ir_id x, enum ir_op keep, int axis)
{
    if (x == IR_NONE || keep == all)
        return x;
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK + 1] = {rule_extent(b, x, 0)}, axes[IR_MAX_RANK] = {axis};
    memcpy(dims + 1, ir_dims(b->module, t), sizeof *dims * t.rank);
    for (int i = 1; i < t.rank; i++)
        axes[i] = i + 1;
    return ir_broadcast_in_dim(b, x, t.rank + 1, dims, axes);
}

// x as x_i of each product k, or `idle` where i is not in it.
static ir_id chosen(struct ir_builder *b, ir_id x, enum ir_op keep, double idle)
{
    ir_id wide = spread(b, x, keep, 0);
    if (wide == IR_NONE || keep == all)
        return wide;
    struct ir_type indices = ir_type_with(ir_type_in(b, wide), JOT_I32);
    ir_id kept = ir_map2(b, keep, ir_iota(b, indices, 0), ir_iota(b, indices, 1));
    return ir_select(b, kept, wide, ir_scalar_like(b, x, idle));
}

// The exponent of each product k without that of i, for i in it.
static ir_id exponents(struct ir_builder *b, ir_id e, enum ir_op keep)
{
    ir_id total = IR_NONE;
    if (b->status == JOT_OK && keep == IR_ne) {
        total = ir_reduce(b, IR_reduce_sum, e, 1, (int64_t[]){0});
        int64_t axes[IR_MAX_RANK];
        struct ir_type t = ir_type_in(b, e);
        for (int i = 0; i < t.rank; i++)
            axes[i] = i + 1;
        total = ir_broadcast_in_dim(b, total, t.rank, ir_dims(b->module, t), axes);
        total = ir_sub(b, total, e);
    } else if (b->status == JOT_OK) {
        total = ir_cumulative(b, IR_cumsum, e, 0, keep == IR_ge);
    }
    return ir_sub(b, spread(b, total, keep, 1), spread(b, e, keep, 0));
}

// The same of the few of each product: each with one left out.
static struct scaled short_others(struct ir_builder *b, struct scaled x, enum ir_op keep)
{
    ir_id m = chosen(b, x.m, keep, 1);
    if (b->status != JOT_OK)
        return x;
    struct ir_type t = ir_type_in(b, m);
    ir_id beside = products_beside(b, in_rows(b, m, 1, rule_extent(b, m, 0), 1));
    beside = ir_reshape(b, beside, t.rank, ir_dims(b->module, t));
    return (struct scaled){beside, exponents(b, x.e, keep)};
}

// For each x_i of each product that of its others.
static ir_id others_of(struct ir_builder *b, ir_id x, enum ir_op keep)
{
    struct ir_type t = ir_type_in(b, x);
    jot_dtype d = ir_dtype(t);
    ir_id m = dtype_is_half(d) ? ir_convert(b, x, JOT_F32) : x;
    struct scaled z = normal(b, (struct scaled){m, ir_zeros(b, ir_type_with(t, JOT_I32))});
    struct scaled y = keep == all ? others(b, z) : short_others(b, z, keep);
    return ir_convert(b, scale(b, y.m, y.e), d);
}

static ir_id tangents(struct ir_builder *b, ir_id x, ir_id dx, enum ir_op keep, int orders);

// The same with a rule for its derivatives: they are products of all but two.
static ir_id others_derived(struct ir_builder *b, ir_id x, enum ir_op keep, int orders)
{
    if (b->status != JOT_OK)
        return IR_NONE;
    if (orders == 0 || rule_extent(b, x, 0) > SHORT)
        return others_of(b, x, keep);
    struct ir_type t = ir_type_in(b, x);
    struct ir_builder f = ir_builder_make(b->module, "others", IR_BUILD_ALL);
    struct ir_builder rule = ir_builder_make(b->module, "others_rule", IR_BUILD_ALL);
    f.where = rule.where = b->where;
    ir_output(&f, others_of(&f, ir_param(&f, t), keep));
    ir_id p = ir_param(&rule, t), dp = ir_param(&rule, t);
    p = chosen(&rule, p, keep, 1);
    dp = chosen(&rule, dp, keep, 0);
    ir_output(&rule, tangents(&rule, p, dp, IR_ne, orders - 1));
    uint32_t functions[] = {ir_finish_function(&f), ir_finish_function(&rule)};
    return ir_call(b, IR_custom_jvp, 2, functions, 1, &x);
}

// The tangents of the products of x along axis 0 of those chosen.
static ir_id tangents(struct ir_builder *b, ir_id x, ir_id dx, enum ir_op keep, int orders)
{
    ir_id moved = ir_mul_z(b, chosen(b, dx, keep, 0), others_derived(b, x, keep, orders));
    return ir_reduce(b, IR_reduce_sum, moved, 1, (int64_t[]){0});
}

ir_id rule_prod_tangent(struct ir_builder *b, ir_id x, ir_id dx)
{
    return tangents(b, x, dx, all, 1);
}

bool rule_is_short(const struct ir_builder *b, ir_id x, int axis)
{
    return ir_dims(b->module, ir_type_in(b, x))[axis] <= SHORT;
}

ir_id rule_cumprod_tangent(struct ir_builder *b, ir_id x, ir_id dx, bool reverse)
{
    return tangents(b, x, dx, reverse ? IR_ge : IR_le, 1);
}
