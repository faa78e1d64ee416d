// SPDX-License-Identifier: Apache-2.0
// Reductions and running folds.
#include "trace/emit.h"

#include "jot/special.h"

#include <math.h>

struct reduced {
    int n;
    int64_t axes[IR_MAX_RANK];
    bool keep;
};

static bool read_axes(const char *name, jot_value x, const int *axes, bool all_when_empty,
                      struct reduced *r, jot_value *error)
{
    return trace_axes(name, x, trace_type(x).rank, axes, all_when_empty, &r->n, r->axes,
                      &r->keep, error);
}

// x, reduced from a value of that type, with the axes that are to be kept.
static ir_id with_kept(ir_id x, struct ir_type from, const struct reduced *r)
{
    struct ir_builder *b = trace_builder();
    int64_t dims[IR_MAX_RANK];
    if (x == IR_NONE || !r->keep)
        return x;
    memcpy(dims, ir_dims(b->module, from), from.rank * sizeof *dims);
    for (int i = 0; i < r->n; i++)
        dims[r->axes[i]] = 1;
    return ir_reshape(b, x, from.rank, dims);
}

jot_dtype trace_sum_dtype(jot_dtype d)
{
    if (dtype_is_bool(d) || (dtype_is_signed(d) && dtype_get(d)->bytes < 4))
        return JOT_I32;
    return dtype_is_unsigned(d) && dtype_get(d)->bytes < 4 ? JOT_U32 : d;
}

static jot_value reduce_as(enum ir_op op, const char *name, jot_value x, jot_dtype dtype,
                           const int *axes)
{
    struct reduced r;
    jot_value error;
    if (!read_axes(name, x, axes, true, &r, &error))
        return error;
    ir_id y = ir_reduce(trace_builder(), op, trace_operand(x, dtype), r.n, r.axes);
    return trace_result(name, with_kept(y, trace_type(x), &r), false);
}

static jot_value sum_like(enum ir_op op, const char *name, jot_value x, const int *axes)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    return reduce_as(op, name, x, trace_sum_dtype((jot_dtype)trace_slot_of(x)->dtype), axes);
}

jot_value jot_sum_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(sum_like(IR_reduce_sum, "jot_sum", x, axes));
}

jot_value jot_prod_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(sum_like(IR_reduce_prod, "jot_prod", x, axes));
}

static jot_value extremum(enum ir_op op, enum ir_op op_of_bool, const char *name, jot_value x,
                          const int *axes)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    jot_dtype d = (jot_dtype)trace_slot_of(x)->dtype;
    if (dtype_is_complex(d))
        return trace_complex_extremum(name, op == IR_reduce_max, x, axes);
    return reduce_as(d == JOT_BOOL ? op_of_bool : op, name, x, d, axes);
}

jot_value jot_max_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(extremum(IR_reduce_max, IR_reduce_or, "jot_max", x, axes));
}

jot_value jot_min_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(extremum(IR_reduce_min, IR_reduce_and, "jot_min", x, axes));
}

static jot_value truth(enum ir_op op, const char *name, jot_value x, const int *axes)
{
    jot_value error;
    if (!trace_ready(name, 1, &x, &error))
        return error;
    jot_dtype d = (jot_dtype)trace_slot_of(x)->dtype;
    if (d != JOT_BOOL) {
        ir_id in = trace_strong(x);
        x = trace_result(
            name, ir_ne(trace_builder(), in, ir_scalar_like(trace_builder(), in, 0)), false);
    }
    return trace_is_error(x) ? x : reduce_as(op, name, x, JOT_BOOL, axes);
}

jot_value jot_any_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(truth(IR_reduce_or, "jot_any", x, axes));
}

jot_value jot_all_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(truth(IR_reduce_and, "jot_all", x, axes));
}

// ---------------------------------------------------------------------------------------
// Means

// The sum over the axes divided by their size, in f32 at least.
static jot_value mean(const char *name, jot_value x, const int *axes)
{
    jot_value error;
    struct reduced r;
    if (!trace_ready(name, 1, &x, &error) || !read_axes(name, x, axes, true, &r, &error))
        return error;
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    jot_dtype result = dtype_to_inexact((jot_dtype)t.dtype), wide = dtype_compute(result);
    double count = 1;
    for (int i = 0; i < r.n; i++)
        count *= (double)ir_dims(b->module, t)[r.axes[i]];
    ir_id y = ir_reduce(b, IR_reduce_sum, trace_operand(x, wide), r.n, r.axes);
    y = y == IR_NONE ? y : ir_div(b, y, ir_scalar(b, wide, count));
    y = y == IR_NONE ? y : ir_convert(b, y, result);
    return trace_result(name, with_kept(y, t, &r), false);
}

jot_value jot_mean_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(mean("jot_mean", x, axes));
}

void trace_with_keepdims(const int *axes, int *out)
{
    int n = 0;
    for (; axes && axes[n] != JOT_END && n < IR_MAX_RANK; n++)
        out[n] = axes[n];
    out[n] = JOT_KEEPDIMS;
    out[n + 1] = JOT_END;
}

static jot_value squared_modulus(jot_value x)
{
    if (dtype_is_complex(jot_value_dtype(x)))
        return jot_real(jot_mul(x, jot_conj(x)));
    return jot_square(x);
}

jot_value jot_var_axes(jot_value x, const int *axes)
{
    int keep[IR_MAX_RANK + 2];
    trace_with_keepdims(axes, keep);
    jot_value y = jot_sub(x, jot_mean_axes(x, keep));
    TRACE_RETURN(mean("jot_var", squared_modulus(y), axes));
}

jot_value jot_std_axes(jot_value x, const int *axes) { return jot_sqrt(jot_var_axes(x, axes)); }

jot_value jot_norm_axes(jot_value x, const int *axes)
{
    return jot_sqrt(jot_sum_axes(squared_modulus(x), axes));
}

// The maximum, of real parts, where it is finite and 0 elsewhere, so that infinities stay what they are.
static jot_value safe_maximum(jot_value x, const int *axes)
{
    jot_value m = jot_max_axes(jot_real(jot_stop_gradient(x)), axes);
    return jot_where(jot_is_finite(m), m, jot_zeros_like(m));
}

jot_value jot_logsumexp_axes(jot_value x, const int *axes)
{
    int keep[IR_MAX_RANK + 2];
    trace_with_keepdims(axes, keep);
    jot_value y = jot_exp(jot_sub(x, safe_maximum(x, keep)));
    return jot_add(jot_log(jot_sum_axes(y, axes)), safe_maximum(x, axes));
}

jot_signed_log jot_logsumexp_signed_axes(jot_value x, jot_value b, const int *axes,
                                         const char *where)
{
    int keep[IR_MAX_RANK + 2];
    trace_with_keepdims(axes, keep);
    jot_value counts = jot_not_equal(b, jot_zeros_like(b));
    x = jot_where(counts, x, jot_from_double(-INFINITY));
    jot_value sum = jot_sum_axes(jot_mul(b, jot_exp(jot_sub(x, safe_maximum(x, keep)))), axes);
    jot_value log = jot_add(jot_log(jot_abs(sum)), safe_maximum(x, axes));
    if (where)
        jot_place(log, where);
    return (jot_signed_log){log, jot_sign(sum)};
}

jot_value jot_logsumexp_weights_axes(jot_value x, jot_value b, const int *axes)
{
    jot_signed_log y = jot_logsumexp_signed_axes(x, b, axes, NULL);
    jot_value is_negative = jot_less(y.sign, jot_zeros_like(y.sign));
    return jot_where(is_negative, jot_from_double((double)NAN), y.log);
}

jot_value jot_softmax(jot_value x, int axis)
{
    const int keep[] = {axis, JOT_KEEPDIMS, JOT_END};
    jot_value e = jot_exp(jot_sub(x, jot_max_axes(jot_stop_gradient(x), keep)));
    return jot_div(e, jot_sum_axes(e, keep));
}

jot_value jot_log_softmax(jot_value x, int axis)
{
    const int keep[] = {axis, JOT_KEEPDIMS, JOT_END};
    jot_value shifted = jot_sub(x, jot_max_axes(jot_stop_gradient(x), keep));
    return jot_sub(shifted, jot_log(jot_sum_axes(jot_exp(shifted), keep)));
}

// ---------------------------------------------------------------------------------------
// Along one axis

static ir_id flatten(ir_id x)
{
    struct ir_builder *b = trace_builder();
    int64_t count = ir_count(b->module, ir_type_in(b, x));
    return ir_reshape(b, x, 1, &count);
}

static jot_value arg(enum ir_op op, const char *name, jot_value x, const int *axes)
{
    jot_value error;
    struct reduced r;
    if (!trace_ready(name, 1, &x, &error) || !read_axes(name, x, axes, false, &r, &error))
        return error;
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    if (r.n > 1)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d axes: it takes one, or none", r.n);
    ir_id in = trace_strong(x);
    int64_t axis = r.n ? r.axes[0] : 0;
    in = r.n ? in : flatten(in);
    int64_t extent = ir_dims(b->module, ir_type_in(b, in))[axis];
    if (extent == 0)
        return trace_fail(name, JOT_ERR_SHAPE, "%s: no elements to choose from",
                          trace_type_text(x));
    ir_id y = ir_arg(b, op, in, (int)axis, trace_index_dtype(extent));
    if (r.n == 0) {
        r.n = t.rank;
        for (int i = 0; i < t.rank; i++)
            r.axes[i] = i;
    }
    return trace_result(name, with_kept(y, t, &r), false);
}

jot_value jot_argmax_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(arg(IR_argmax, "jot_argmax", x, axes));
}

jot_value jot_argmin_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(arg(IR_argmin, "jot_argmin", x, axes));
}

static jot_value running(enum ir_op op, const char *name, jot_value x, const int *axes)
{
    jot_value error;
    int n;
    int64_t axis[IR_MAX_RANK];
    if (!trace_ready(name, 1, &x, &error))
        return error;
    struct ir_type t = trace_type(x);
    if (!trace_axes(name, x, t.rank, axes, false, &n, axis, NULL, &error))
        return error;
    if (n > 1)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%d axes: it takes one, or none", n);
    jot_dtype d = (jot_dtype)t.dtype;
    if (op == IR_cumsum || op == IR_cumprod)
        d = trace_sum_dtype(d);
    if (op == IR_cumlogsumexp)
        d = dtype_to_inexact(d);
    ir_id in = trace_operand(x, d);
    if (dtype_is_complex(d) && op != IR_cumsum && op != IR_cumprod)
        return trace_complex_running(op, name, trace_result(name, n ? in : flatten(in), false),
                                     n ? (int)axis[0] : 0);
    return trace_result(
        name,
        ir_cumulative(trace_builder(), op, n ? in : flatten(in), n ? (int)axis[0] : 0, false),
        false);
}

jot_value jot_cumsum_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(running(IR_cumsum, "jot_cumsum", x, axes));
}

jot_value jot_cumprod_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(running(IR_cumprod, "jot_cumprod", x, axes));
}

jot_value jot_cummax_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(running(IR_cummax, "jot_cummax", x, axes));
}

jot_value jot_cummin_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(running(IR_cummin, "jot_cummin", x, axes));
}

jot_value jot_cumor_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(running(IR_cumor, "jot_cumor", x, axes));
}

jot_value jot_cumlogsumexp_axes(jot_value x, const int *axes)
{
    TRACE_RETURN(running(IR_cumlogsumexp, "jot_cumlogsumexp", x, axes));
}
