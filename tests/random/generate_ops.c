// SPDX-License-Identifier: Apache-2.0
// Nodes of random programs by the class of their op.
#include "random/maker.h"
#include "support/opcases.h"

// -- Fitting operands -------------------------------------------------------------------------

// A value of the dtype whose shape fits that of x: the same, broadcast, or rank 0.
static ir_id partner(struct maker *k, ir_id x, jot_dtype d)
{
    struct ir_type t = type_in(k, x);
    for (int attempt = chance(k, 5) ? 6 : 0; attempt < 6; attempt++) {
        ir_id y = pick(k);
        struct ir_type u = type_in(k, y), both[] = {t, ir_type_with(u, ir_dtype(t))}, out;
        if (is_derivable(k) && dtype_in(k, y) != d)
            continue;
        if (ir_broadcast_types(k->m, 2, both, &out) && ir_count(k->m, out) <= 2 * k->most)
            return as_dtype(k, y, d);
        // A vector along one of the axes.
        if (u.rank == 1 && t.rank > 1)
            for (int64_t axis = 0; axis < t.rank; axis++)
                if (ir_dims(k->m, t)[axis] == ir_dims(k->m, u)[0])
                    return as_dtype(
                        k, ir_broadcast_in_dim(&k->b, y, t.rank, ir_dims(k->m, t), &axis), d);
    }
    return constant(k, d);
}

// x moved to where the op is tame, most of the time.
static ir_id shaped(struct maker *k, enum ir_op op, ir_id x)
{
    const char *domain = ir_op_get(op)->domain;
    jot_dtype d = dtype_in(k, x);
    struct ir_builder *b = &k->b;
    if (!dtype_is_float(d) || (!is_derivable(k) && chance(k, 6)))
        return x;
    if (!strcmp(domain, "UNIT"))
        return ir_mul(b, ir_sin(b, x), ir_scalar(b, d, 0.875));
    if (!strcmp(domain, "SMALL"))
        return ir_mul(b, ir_tanh(b, x), ir_scalar(b, d, 2));
    if (!strcmp(domain, "POSITIVE"))
        return ir_add(b, ir_abs(b, ir_tanh(b, x)), ir_scalar(b, d, 0.5));
    if (!strcmp(domain, "ABOVE1"))
        return ir_add(b, ir_abs(b, x), ir_scalar(b, d, 1.25));
    if (!strcmp(domain, "NONZERO"))
        return ir_add(b, ir_mul(b, x, x), ir_scalar(b, d, 0.75));
    return x;
}

// -- Nodes, by class --------------------------------------------------------------------------

static enum ir_op draw_op(struct maker *k, enum ir_class op_class)
{
    for (;;) {
        enum ir_op op = (enum ir_op)draw(k, IR_OP_COUNT);
        if (ir_op_class(op) == op_class && strcmp(ir_op_get(op)->domain, "TANGENT") != 0)
            return op;
    }
}

static bool needs_attributes(enum ir_op op)
{
    return op == IR_convert || op == IR_bitcast || op == IR_integer_pow ||
           op == IR_reduce_precision;
}

// Zero for NaN, of which there is more than one and a machine has the choice.
static ir_id without_nan(struct maker *k, ir_id x)
{
    if (!dtype_is_float(dtype_in(k, x)))
        return x;
    return ir_select(&k->b, ir_eq(&k->b, x, x), x, ir_zeros(&k->b, ir_type_of(k->b.graph, x)));
}

static ir_id make_special_map(struct maker *k, enum ir_op op, ir_id x)
{
    jot_dtype d = dtype_in(k, x);
    switch (op) {
    case IR_integer_pow:
        return d == JOT_BOOL ? IR_NONE
                             : ir_integer_pow(&k->b, is_derivable(k) ? ir_sin(&k->b, x) : x,
                                              (int64_t)draw(k, 4));
    case IR_bitcast:
        if (is_derivable(k) || d == JOT_BOOL || dtype_is_complex(d))
            return IR_NONE;
        return ir_bitcast(&k->b, without_nan(k, x),
                          dtype_is_integer(d) && jot_dtype_size(d) == 4 ? JOT_F32
                          : jot_dtype_size(d) == 8                      ? JOT_I64
                          : jot_dtype_size(d) == 4                      ? JOT_U32
                          : jot_dtype_size(d) == 2                      ? JOT_I16
                                                                        : JOT_U8);
    case IR_reduce_precision:
        if (!dtype_is_float(d) || is_derivable(k))
            return IR_NONE;
        return ir_build(&k->b, op, 1, &x,
                        ir_attrs(k->m, IR_INT(exponent_bits, 8), IR_INT(mantissa_bits, 7)));
    default:
        return is_derivable(k) ? IR_NONE : ir_convert(&k->b, x, draw_dtype(k));
    }
}

ir_id make_map(struct maker *k)
{
    enum ir_op op = draw_op(k, IR_CLASS_MAP);
    const struct ir_op_info *info = ir_op_get(op);
    ir_id x = pick(k);
    if (needs_attributes(op))
        return make_special_map(k, op, x);
    jot_dtype d = dtype_in(k, x);
    if (op == IR_select) {
        ir_id p = ir_lt(&k->b, is_derivable(k) ? x : as_dtype(k, x, JOT_F32),
                        ir_scalar(&k->b, is_derivable(k) ? real_of(k->kind) : JOT_F32, 0.5));
        return ir_select(&k->b, p, x, partner(k, x, d));
    }
    for (int attempt = 0; !opcase_takes(op, d) && attempt < 30; attempt++)
        d = draw_dtype(k);
    if (!opcase_takes(op, d) || (is_derivable(k) && op == IR_complex))
        return IR_NONE;
    ir_id in[4];
    in[0] = as_dtype(k, x, d);
    for (int i = 1; i < info->in; i++)
        in[i] = partner(k, in[0], d);
    for (int i = 0; i < info->in; i++)
        if (info->in == 1 || op == IR_pow || ((op == IR_div || op == IR_rem) && i == 1) ||
            op == IR_atan2 || op == IR_zeta)
            in[i] = shaped(k, op, in[i]);
    if (op == IR_clamp) { // the lower bound first
        in[1] = in[0];
        in[0] = ir_scalar(&k->b, d, dtype_is_unsigned(d) ? 0 : -1);
        in[2] = ir_scalar(&k->b, d, 2);
    }
    return ir_build(&k->b, op, info->in, in, NULL);
}

ir_id make_layout(struct maker *k)
{
    ir_id x = pick(k);
    struct ir_type t = type_in(k, x);
    const int64_t *dims = dims_in(k, x);
    int64_t a[MOST_AXES + 1], c[MOST_AXES + 1], e[MOST_AXES + 1];
    struct ir_builder *b = &k->b;
    switch (draw(k, 9)) {
    case 0: // a new axis
        if (count_in(k, x) > 2 * k->most / 7 || t.rank == MOST_AXES)
            return IR_NONE;
        for (int i = 0, at = (int)draw(k, t.rank + 1u); i <= t.rank; i++) {
            a[i] = i < at ? dims[i] : i == at ? (int64_t)(1 + draw(k, 5)) : dims[i - 1];
            if (i < t.rank)
                c[i] = i < at ? i : i + 1;
        }
        return ir_broadcast_in_dim(b, x, t.rank + 1, a, c);
    case 1: // other rows
        if (t.rank > 1 && chance(k, 2)) {
            a[0] = dims[0] * dims[1];
            memcpy(a + 1, dims + 2, (t.rank - 2u) * sizeof *a);
            return ir_reshape(b, x, t.rank - 1, a);
        }
        if (t.rank == 0)
            return ir_reshape(b, x, 1, (int64_t[]){1});
        for (int64_t p = 2; p < 8 && t.rank < MOST_AXES; p++)
            if (dims[0] % p == 0) {
                a[0] = p, a[1] = dims[0] / p;
                memcpy(a + 2, dims + 1, (t.rank - 1u) * sizeof *a);
                return ir_reshape(b, x, t.rank + 1, a);
            }
        return IR_NONE;
    case 2:
        for (int i = 0; i < t.rank; i++)
            a[i] = i;
        for (int i = t.rank - 1; i > 0; i--) {
            int j = (int)draw(k, i + 1u);
            int64_t swap = a[i];
            a[i] = a[j], a[j] = swap;
        }
        return ir_transpose(b, x, a);
    case 3:
        if (t.rank == 0)
            return IR_NONE;
        return ir_rev(b, x, 1, (int64_t[]){(int64_t)draw(k, t.rank)});
    case 4:
        for (int i = 0; i < t.rank; i++) {
            a[i] = (int64_t)draw(k, (uint64_t)dims[i] / 2 + 1);
            c[i] = dims[i] - (int64_t)draw(k, (uint64_t)(dims[i] - a[i]) / 2 + 1);
            e[i] = 1 + (int64_t)draw(k, 2) * (int64_t)draw(k, 3);
        }
        return ir_slice(b, x, a, c, e);
    case 5:
        if (count_in(k, x) > 2 * k->most / 7 && t.rank > 1)
            return IR_NONE;
        for (int i = 0; i < t.rank; i++) {
            a[i] = (int64_t)draw(k, 4) - 1;
            c[i] = (int64_t)draw(k, 4) - 1;
            e[i] = (int64_t)draw(k, 2) * (int64_t)draw(k, 2);
            if (dims[i] < 3)
                a[i] = a[i] < 0 ? 0 : a[i], c[i] = c[i] < 0 ? 0 : c[i];
        }
        return ir_pad(b, x, constant(k, ir_dtype(t)), a, c, e);
    case 6: {
        if (t.rank == 0 || count_in(k, x) > 4 * k->most / 7)
            return IR_NONE;
        int axis = (int)draw(k, t.rank);
        ir_id in[3] = {x, x, x};
        for (int i = 1; i < 3; i++) {
            ir_id y = pick(k);
            if (ir_type_equal(type_in(k, y), t))
                in[i] = y;
        }
        return ir_concatenate(b, 2 + (int)draw(k, 2), in, axis);
    }
    case 7: { // windows, or what they were made of
        if (t.rank < 2 || count_in(k, x) > 4 * k->most / 7)
            return IR_NONE;
        int axis = (int)draw(k, t.rank), along = (int)draw(k, t.rank - 1u);
        return ir_shear(b, x, axis, along + (along >= axis), (int64_t)draw(k, 5) - 2,
                        (int64_t)draw(k, 5) - 2,
                        (int64_t)draw(k, 2u * (uint64_t)dims[axis] + 1));
    }
    default:
        if (t.rank == 0)
            return IR_NONE;
        return ir_iota(b, ir_type_with(t, is_derivable(k) || chance(k, 2) ? JOT_I32 : JOT_F32),
                       (int)draw(k, t.rank));
    }
}

ir_id make_fold(struct maker *k, enum ir_class op_class)
{
    enum ir_op op = draw_op(k, op_class);
    ir_id x = pick(k);
    jot_dtype d = dtype_in(k, x);
    for (int attempt = 0; !opcase_takes(op, d) && attempt < 20; attempt++)
        d = draw_dtype(k);
    struct ir_type t = type_in(k, x);
    if (!opcase_takes(op, d) || t.rank == 0)
        return IR_NONE;
    x = as_dtype(k, x, d);
    int64_t axes[MOST_AXES], axis = (int64_t)draw(k, t.rank);
    if (op_class == IR_CLASS_CUMULATIVE) {
        x = op == IR_cumprod ? shaped(k, IR_sin, x) : x;
        return ir_cumulative(&k->b, op, x, (int)axis, chance(k, 2));
    }
    if (op_class == IR_CLASS_ARG)
        return d == JOT_BOOL || dims_in(k, x)[axis] == 0
                   ? IR_NONE
                   : ir_arg(&k->b, op, x, (int)axis, JOT_I32);
    int n = 0;
    for (int i = 0; i < t.rank; i++)
        if (i == axis || chance(k, 2))
            axes[n++] = i;
    if (op == IR_reduce_prod && dtype_is_float(d))
        x = ir_sin(&k->b, x);
    return ir_reduce(&k->b, op, x, n, axes);
}

ir_id make_dot(struct maker *k)
{
    ir_id x = pick(k), y = pick(k);
    jot_dtype d = dtype_in(k, x);
    if (d == JOT_BOOL)
        return IR_NONE;
    struct ir_type t = type_in(k, x), u = type_in(k, y);
    for (int64_t i = 0; i < t.rank; i++)
        for (int64_t j = 0; j < u.rank; j++) {
            int64_t n = ir_dims(k->m, t)[i];
            if (n != ir_dims(k->m, u)[j] || n == 0 || t.rank + u.rank - 2 > MOST_AXES)
                continue;
            if (ir_count(k->m, t) / n * (ir_count(k->m, u) / n) > k->most)
                continue;
            if (is_derivable(k) && ir_dtype(u) != real_of(k->kind))
                continue;
            struct ir_dot dot = {.n_contract = 1, .lhs_contract = &i, .rhs_contract = &j};
            return ir_dot_general(&k->b, x, as_dtype(k, y, d), &dot);
        }
    return IR_NONE;
}

// Two values of rank 2 that are rows of points and a matrix for them.
static bool find_layer(struct maker *k, ir_id *x, ir_id *w)
{
    jot_dtype d = real_of(k->kind);
    for (int attempt = 0; attempt < 30; attempt++) {
        *x = pick(k), *w = pick(k);
        struct ir_type t = type_in(k, *x), u = type_in(k, *w);
        if (t.rank == 2 && u.rank == 2 && ir_dtype(t) == d && ir_dtype(u) == d &&
            dims_in(k, *x)[1] == dims_in(k, *w)[0] && dims_in(k, *x)[0] > dims_in(k, *w)[0])
            return true;
    }
    return false;
}

// A number of each row: of a vector that is as long, or the sum of the row.
static ir_id number_of_rows(struct maker *k, ir_id x)
{
    static const int64_t one = 1;
    for (int attempt = 0; attempt < 6; attempt++) {
        ir_id v = pick(k);
        if (type_in(k, v).rank == 1 && dims_in(k, v)[0] == dims_in(k, x)[0] &&
            dtype_in(k, v) == dtype_in(k, x))
            return v;
    }
    return ir_reduce(&k->b, IR_reduce_sum, x, 1, &one);
}

// Rows times a matrix, with a number of each row perhaps, and a function of that.
ir_id make_layer(struct maker *k)
{
    static const enum ir_op functions[] = {IR_tanh, IR_logistic, IR_sin, IR_neg};
    static const int64_t zero = 0, one = 1;
    struct ir_builder *b = &k->b;
    ir_id x, w;
    if (!find_layer(k, &x, &w) || dims_in(k, x)[0] * dims_in(k, w)[1] > k->most)
        return IR_NONE;
    struct ir_dot dot = {.n_contract = 1, .lhs_contract = &one, .rhs_contract = &zero};
    ir_id y = ir_dot_general(b, x, w, &dot);
    if (chance(k, 2)) {
        ir_id row = ir_broadcast_in_dim(b, number_of_rows(k, x), 2, dims_in(k, y), &zero);
        y = chance(k, 2) ? ir_mul(b, y, row) : ir_add(b, y, row);
    }
    return chance(k, 4) ? y : ir_map1(b, functions[draw(k, 4)], y);
}
