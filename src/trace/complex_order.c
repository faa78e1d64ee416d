// SPDX-License-Identifier: Apache-2.0
// Extrema of complex numbers over axes, and running folds that compare them.
#include "trace/linalg.h"

#include "jot/control.h"

#include <math.h>

// ---- Rows

bool trace_read_rows(const char *name, jot_value x, jot_dtype d, const int *axes,
                     struct trace_rows *out, jot_value *out_error)
{
    int n_axes, kept = 0;
    int64_t list[IR_MAX_RANK], order[IR_MAX_RANK], dims[IR_MAX_RANK + 1];
    bool keep;
    struct ir_builder *b = trace_builder();
    struct ir_type t = trace_type(x);
    if (!trace_axes(name, x, t.rank, axes, true, &n_axes, list, &keep, out_error))
        return false;
    uint32_t set = 0;
    for (int i = 0; i < n_axes; i++)
        set |= UINT32_C(1) << list[i];
    *out = (struct trace_rows){.n = 1};
    for (int i = 0, last = t.rank - n_axes; i < t.rank; i++) {
        bool is_kept = !(set >> i & 1);
        int64_t size = ir_dims(b->module, t)[i];
        order[is_kept ? kept : last++] = i;
        if (is_kept)
            dims[kept++] = size;
        else
            out->n *= size;
        if (is_kept || keep)
            out->dims[out->rank++] = is_kept ? size : 1;
    }
    dims[kept] = out->n;
    out->dims[out->rank] = JOT_END;
    ir_id y = ir_transpose(b, trace_operand(x, d), order);
    out->x = trace_result(name, ir_reshape(b, y, kept + 1, dims), false);
    return true;
}

// ---- Extrema

static const int along[] = {-1, JOT_END}, along_kept[] = {-1, JOT_KEEPDIMS, JOT_END};

// The largest of each row; NaN where it has one.
static jot_value largest(jot_value x)
{
    jot_value re = jot_real(x), im = jot_imag(x), nan = jot_from_double((double)NAN);
    jot_value most = jot_max_axes(re, along_kept);
    im = jot_where(jot_equal(re, most), im, jot_from_double(-INFINITY));
    jot_value y = jot_complex(jot_max_axes(re, along), jot_max_axes(im, along));
    return jot_where(jot_any_axes(jot_is_nan(x), along), jot_complex(nan, nan), y);
}

static void largest_body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    out[0] = largest(in[0]);
}

// (x, dx): equal extrema share the derivative.
static void largest_rule(const jot_value *in, jot_value *out, void *ctx)
{
    (void)ctx;
    jot_value wins = jot_equal(in[0], jot_expand_dims_axes(largest(in[0]), along));
    jot_value sum = jot_sum_axes(jot_where(wins, in[1], jot_from_int(0)), along);
    jot_value count = jot_convert(jot_sum_axes(wins, along), jot_value_dtype(sum));
    out[0] = jot_div(sum, count);
}

jot_value trace_complex_extremum(const char *name, bool is_max, jot_value x, const int *axes)
{
    struct trace_rows r;
    jot_value error, y;
    if (!trace_read_rows(name, x, (jot_dtype)trace_type(x).dtype, axes, &r, &error))
        return error;
    jot_value in = is_max ? r.x : jot_neg(r.x);
    linalg_apply(name, largest_body, largest_rule, 1, &in, 1, &y);
    return jot_reshape_dims(is_max ? y : jot_neg(y), r.dims);
}

// ---- Running folds

jot_value trace_complex_running(enum ir_op op, const char *name, jot_value x, int axis)
{
    jot_value (*combine)(jot_value, jot_value) = op == IR_cummax   ? jot_maximum
                                                 : op == IR_cummin ? jot_minimum
                                                                   : jot_logaddexp;
    if (jot_value_size(x) == 0)
        return x;
    if (op == IR_cumlogsumexp)
        x = trace_within_pi(x);
    jot_associative_scan_tree(jot_function_plain(name, name, 2, (void (*)(void))combine), 1, &x,
                              axis, false, name);
    return x;
}
