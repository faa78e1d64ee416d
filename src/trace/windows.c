// SPDX-License-Identifier: Apache-2.0
// Windows, reductions over them, and pooling.
#include "trace/windows.h"

#include "jot/transform.h"

#include <math.h>

// ---------------------------------------------------------------------------------------
// Windows

bool trace_window_list(const char *name, const char *what, const int64_t *list, int n,
                       const char *axes, int64_t least, int64_t otherwise, int64_t *out,
                       jot_value *out_error)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        out[i] = otherwise;
    if (!list)
        return true;
    while (count <= n && list[count] != JOT_END)
        count++;
    if (count != n) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "%s has %s%d numbers for %d %s", what,
                                count > n ? "at least " : "", count, n, axes);
        return false;
    }
    for (int i = 0; i < n; i++) {
        out[i] = list[i];
        if (list[i] >= least && list[i] <= INT32_MAX && list[i] >= -INT32_MAX)
            continue;
        if (list[i] < least)
            *out_error =
                trace_fail(name, JOT_ERR_ARGUMENT, "number %d of %s is %lld: at least %lld", i,
                           what, (long long)list[i], (long long)least);
        else
            *out_error =
                trace_fail(name, JOT_ERR_ARGUMENT, "number %d of %s is %lld: too large", i,
                           what, (long long)list[i]);
        return false;
    }
    return true;
}

bool trace_window_choose(const char *name, jot_value x, int axis, int64_t extent,
                         jot_padding padding, bool is_padded, struct ir_axis_window *w,
                         jot_value *out_error)
{
    if ((unsigned)padding > JOT_PADDING_SAME_LOWER) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "there is no padding %d", (int)padding);
        return false;
    }
    if (padding && is_padded) {
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT,
                                "both a kind of padding and low and high: one of them");
        return false;
    }
    int64_t span = w->size ? (w->size - 1) * w->dilation + 1 : 0;
    if (padding) {
        int64_t count = extent / w->stride + (extent % w->stride != 0);
        int64_t total = count ? (count - 1) * w->stride + span - extent : 0;
        total = total > 0 ? total : 0;
        w->low = padding == JOT_PADDING_SAME ? total / 2 : total - total / 2;
        w->high = total - w->low;
    }
    int64_t padded = (extent ? (extent - 1) * w->base + 1 : 0) + w->low + w->high;
    w->count = padded < span ? 0 : (padded - span) / w->stride + 1;
    if (padded >= span || extent == 0)
        return true;
    *out_error = trace_fail(
        name, JOT_ERR_SHAPE, "a window of %lld%s does not fit axis %d of %s, which has %lld%s",
        (long long)span, w->dilation > 1 ? ", dilated," : "", axis, trace_type_text(x),
        (long long)padded, padded == extent ? "" : " padded");
    return false;
}

// ---------------------------------------------------------------------------------------
// Reductions over windows

struct reduction {
    struct ir_axis_window w[IR_MAX_RANK];
    int rank;
    int n; // axes of windows, the last ones of the windowed value
    int64_t axes[IR_MAX_RANK];
    enum ir_op op;
    ir_id neutral;
};

// The windows that the options say, by axis.
static bool read_windows(const char *name, jot_value x, const jot_window_options *o, bool tile,
                         struct reduction *r, jot_value *error)
{
    struct ir_type t = trace_type(x);
    const int64_t *dims = ir_dims(trace_top()->module, t);
    int64_t lists[6][IR_MAX_RANK];
    const char *axes = "axes of x";
    r->rank = t.rank;
    if (!o || !o->window) {
        *error = trace_fail(name, JOT_ERR_ARGUMENT, "no window: .window = JOT_DIMS(...)");
        return false;
    }
    int n = t.rank;
    if (!trace_window_list(name, "window", o->window, n, axes, 1, 1, lists[0], error) ||
        !trace_window_list(name, "strides", o->strides, n, axes, 1, 0, lists[1], error) ||
        !trace_window_list(name, "low", o->low, n, axes, -INT32_MAX, 0, lists[2], error) ||
        !trace_window_list(name, "high", o->high, n, axes, -INT32_MAX, 0, lists[3], error) ||
        !trace_window_list(name, "base_dilation", o->base_dilation, n, axes, 1, 1, lists[4],
                           error) ||
        !trace_window_list(name, "window_dilation", o->window_dilation, n, axes, 1, 1, lists[5],
                           error))
        return false;
    for (int i = 0; i < n; i++) {
        int64_t stride = lists[1][i] ? lists[1][i] : tile ? lists[0][i] : 1;
        r->w[i] = (struct ir_axis_window){.size = lists[0][i],
                                          .stride = stride,
                                          .low = lists[2][i],
                                          .high = lists[3][i],
                                          .base = lists[4][i],
                                          .dilation = lists[5][i]};
        if (!trace_window_choose(name, x, i, dims[i], o->padding, o->low || o->high, &r->w[i],
                                 error))
            return false;
        if (r->w[i].size != 1)
            r->n++;
    }
    for (int i = 0; i < r->n; i++)
        r->axes[i] = n + i;
    return true;
}

// The op of a kind on numbers of the dtype, and what changes nothing under it.
static bool read_kind(const char *name, jot_value x, jot_window_kind kind, struct reduction *r,
                      jot_value *error)
{
    struct ir_builder *b = trace_builder();
    jot_dtype d = ir_dtype(trace_kept_type(x));
    bool is_bool = d == JOT_BOOL, is_extremum = kind >= JOT_WINDOW_MAX;
    if ((unsigned)kind > JOT_WINDOW_MIN) {
        *error = trace_fail(name, JOT_ERR_ARGUMENT, "there is no kind of window %d", (int)kind);
        return false;
    }
    if (is_extremum && dtype_is_complex(d)) {
        *error = trace_fail(name, JOT_ERR_DTYPE, "%s: is not defined for complex numbers",
                            trace_type_text(x));
        return false;
    }
    static const enum ir_op ops[] = {IR_reduce_sum, IR_reduce_prod, IR_reduce_max,
                                     IR_reduce_min};
    r->op = ops[kind];
    if (is_bool)
        r->op = kind == JOT_WINDOW_SUM || kind == JOT_WINDOW_MAX ? IR_reduce_or : IR_reduce_and;
    if (!is_extremum || is_bool) {
        r->neutral = ir_scalar_int(b, d, r->op == IR_reduce_prod || r->op == IR_reduce_and);
        return true;
    }
    // That of no elements.
    ir_id none = ir_full(b, ir_type_make(b->module, d, 1, (int64_t[]){0}), 0);
    r->neutral = ir_reduce(b, r->op, none, 1, (int64_t[]){0});
    return true;
}

static bool is_extremum(const struct reduction *r)
{
    return r->op == IR_reduce_max || r->op == IR_reduce_min;
}

static ir_id windowed(const struct reduction *r, ir_id x, ir_id padding)
{
    return ir_windows(trace_builder(), x, padding, r->w, r->rank);
}

static jot_value reduce_window(const char *name, jot_value x, jot_window_kind kind,
                               const jot_window_options *o, bool tile)
{
    struct reduction r = {0};
    jot_value error;
    if (!trace_ready(name, 1, &x, &error) || !read_windows(name, x, o, tile, &r, &error) ||
        !read_kind(name, x, kind, &r, &error))
        return error;
    struct ir_builder *b = trace_builder();
    ir_id y = windowed(&r, trace_kept(x), kind == JOT_WINDOW_SUM ? IR_NONE : r.neutral);
    if (y != IR_NONE)
        y = is_extremum(&r) ? ir_reduce_first(b, r.op, y, r.n, r.axes)
                            : ir_reduce(b, r.op, y, r.n, r.axes);
    return trace_like(name, x, y);
}

jot_value jot_reduce_window_with(jot_value x, jot_window_kind kind,
                                 const jot_window_options *options)
{
    TRACE_RETURN(reduce_window("jot_reduce_window", x, kind, options, false));
}

jot_value jot_max_pool_with(jot_value x, const jot_window_options *options)
{
    TRACE_RETURN(reduce_window("jot_max_pool", x, JOT_WINDOW_MAX, options, true));
}

jot_value jot_min_pool_with(jot_value x, const jot_window_options *options)
{
    TRACE_RETURN(reduce_window("jot_min_pool", x, JOT_WINDOW_MIN, options, true));
}

static jot_value window_sum(jot_value x, const jot_window_options *options)
{
    TRACE_RETURN(reduce_window("jot_avg_pool", x, JOT_WINDOW_SUM, options, true));
}

jot_value jot_avg_pool_with(jot_value x, const jot_window_options *options)
{
    if (!dtype_is_inexact(jot_value_dtype(x)))
        x = jot_convert(x, JOT_F32);
    jot_value sum = window_sum(x, options);
    if (options && options->leave_out_padding)
        return jot_div(sum, window_sum(jot_ones_like(x), options));
    double count = 1;
    for (const int64_t *k = options ? options->window : NULL; k && *k != JOT_END; k++)
        count *= (double)*k;
    return jot_div(sum, jot_from_double(count));
}

// ---------------------------------------------------------------------------------------
// The adjoints of extrema

static bool is_selecting(const char *name, jot_window_kind kind, jot_value *error)
{
    if (kind == JOT_WINDOW_MAX || kind == JOT_WINDOW_MIN)
        return true;
    *error =
        trace_fail(name, JOT_ERR_ARGUMENT, "it selects by JOT_WINDOW_MAX or JOT_WINDOW_MIN");
    return false;
}

// The axes of windows as one, the last.
static ir_id one_window_axis(const struct reduction *r, ir_id x)
{
    struct ir_builder *b = trace_builder();
    int64_t dims[IR_MAX_RANK];
    if (x == IR_NONE)
        return IR_NONE;
    dims[r->rank] = 1;
    for (int i = 0; i < r->rank; i++) {
        dims[i] = r->w[i].count;
        dims[r->rank] *= r->w[i].size;
    }
    return ir_reshape(b, x, r->rank + 1, dims);
}

static jot_value gather_add(jot_value y, jot_value x, jot_window_kind kind,
                            const jot_window_options *o)
{
    const char *name = "jot_select_and_gather_add";
    jot_value v[] = {y, x}, error;
    struct reduction r = {0};
    if (!is_selecting(name, kind, &error) || !trace_ready(name, 2, v, &error) ||
        !read_windows(name, v[1], o, false, &r, &error) ||
        !read_kind(name, v[1], kind, &r, &error))
        return error;
    if (trace_type(v[0]).shape != trace_type(v[1]).shape)
        return trace_fail(name, JOT_ERR_SHAPE, "%s and %s have not the same shape",
                          trace_type_text(v[0]), trace_type_text(v[1]));
    struct ir_builder *b = trace_builder();
    ir_id zero = ir_scalar_like(b, trace_kept(v[0]), 0);
    ir_id in = one_window_axis(&r, windowed(&r, trace_kept(v[1]), r.neutral));
    ir_id from = one_window_axis(&r, windowed(&r, trace_kept(v[0]), IR_NONE));
    if (in == IR_NONE || from == IR_NONE)
        return trace_result(name, IR_NONE, false);
    struct ir_type t = ir_type_in(b, in);
    int64_t dims[IR_MAX_RANK], last = r.rank;
    memcpy(dims, ir_dims(b->module, t), sizeof *dims * t.rank);
    dims[last] = 1;
    ir_id winner =
        ir_arg(b, r.op == IR_reduce_max ? IR_argmax : IR_argmin, in, r.rank, JOT_I32);
    ir_id wins = ir_eq(b, ir_iota(b, ir_type_with(t, JOT_I32), r.rank),
                       ir_reshape(b, winner, t.rank, dims));
    return trace_like(name, v[0],
                      ir_reduce(b, IR_reduce_sum, ir_select(b, wins, from, zero), 1, &last));
}

jot_value jot_select_and_gather_add_with(jot_value y, jot_value x, jot_window_kind kind,
                                         const jot_window_options *options)
{
    TRACE_RETURN(gather_add(y, x, kind, options));
}

static jot_value times_source(jot_value source, jot_value y)
{
    const char *name = "jot_select_and_scatter_add";
    jot_value v[] = {source, y}, error;
    if (!trace_ready(name, 2, v, &error))
        return error;
    if (trace_type(v[0]).shape != trace_type(v[1]).shape)
        return trace_fail(name, JOT_ERR_SHAPE, "the source is %s, and the windows make %s",
                          trace_type_text(v[0]), trace_type_text(v[1]));
    return trace_map(IR_mul, name, 2, v);
}

static jot_value extremum_of_windows(jot_value source, jot_value x, jot_window_kind kind,
                                     const jot_window_options *o)
{
    const char *name = "jot_select_and_scatter_add";
    jot_value error;
    if (!is_selecting(name, kind, &error))
        return error;
    return times_source(source, reduce_window(name, x, kind, o, false));
}

static jot_value guarded_product(jot_value source, jot_value x, jot_window_kind kind,
                                 const jot_window_options *o)
{
    TRACE_RETURN(extremum_of_windows(source, x, kind, o));
}

// The gradient of <source, extrema of windows>.
jot_value jot_select_and_scatter_add_with(jot_value source, jot_value x, jot_window_kind kind,
                                          const jot_window_options *options)
{
    jot_variable_tree(1, &x);
    jot_gradient_tree(jot_sum_axes(guarded_product(source, x, kind, options), NULL), 1, &x);
    return x;
}

// ---------------------------------------------------------------------------------------
// Reductions by a function

struct by_function {
    jot_function combine; // of vectors
    int n;
    const jot_value *init;
    const jot_window_options *options;
    const char *where;
};

// The elements of the values in[0 .. n) and those of in[n .. 2 n), combined.
static bool combine_all(const struct by_function *f, const jot_value *in, jot_value *out)
{
    struct arena *arena = trace_top()->module->arena;
    jot_value *flat = arena_array(arena, jot_value, 3 * f->n + 1), *made = flat + 2 * f->n;
    struct ir_type t = trace_type(in[0]);
    int64_t dims[IR_MAX_RANK + 1], count = ir_count(trace_top()->module, t);
    memcpy(dims, ir_dims(trace_top()->module, t), (size_t)t.rank * sizeof *dims);
    dims[t.rank] = JOT_END;
    for (int i = 0; i < 2 * f->n; i++)
        flat[i] = jot_reshape_dims(in[i], (const int64_t[]){count, JOT_END});
    jot_apply_at(f->combine, 2 * (size_t)f->n, flat, (size_t)f->n, made, f->where);
    for (int i = 0; i < f->n; i++) {
        if (trace_is_error(made[i]))
            return false;
        jot_dtype have = jot_value_dtype(made[i]), want = jot_value_dtype(in[i]);
        if (have != want || jot_value_rank(made[i]) != 1) {
            trace_fail("jot_reduce_window_by", JOT_ERR_SHAPE,
                       "%s gives %s for value %d, whose elements are %s",
                       f->combine.callee.name, trace_type_text(made[i]), i,
                       jot_dtype_name(want));
            return false;
        }
        out[i] = jot_reshape_dims(made[i], dims);
    }
    return true;
}

// The elements 0, 2, ... and 1, 3, ... of the windows, along the first axis, combined; count of them.
static bool combine_pairs(const struct by_function *f, int64_t count, jot_value *x)
{
    jot_value *in = arena_array(trace_top()->module->arena, jot_value, 3 * f->n + 1);
    jot_value *out = in + 2 * f->n;
    int64_t size = jot_value_dim(x[0], 0);
    for (int i = 0; i < 2 * f->n; i++)
        in[i] = jot_slice_axis(x[i % f->n], 0, i / f->n, 2 * count, 2);
    if (!combine_all(f, in, out))
        return false;
    for (int i = 0; i < f->n; i++) {
        jot_value rest = jot_slice_axis(x[i], 0, 2 * count, size, 1);
        x[i] =
            size % 2 ? jot_concatenate_list(0, 2, (const jot_value[]){out[i], rest}) : out[i];
    }
    return true;
}

// Windows along one axis, as many of which have an element as it is worth to make once what these share: with table k,
// the combinations of 2^k elements from each element on, a window is its largest power of two and then the rest, in the
// order of combine_pairs.
struct tables {
    struct ir_axis_window w;
    int axis;
    int64_t length; // of the axis, padded
};

static bool has_tables(const struct reduction *r, struct tables *t)
{
    int64_t levels = 0;
    *t = (struct tables){.axis = -1};
    for (int i = 0; i < r->rank && r->n == 1; i++)
        t->axis = r->w[i].size != 1 ? i : t->axis;
    if (t->axis < 0)
        return false;
    t->w = r->w[t->axis];
    for (int64_t size = 1; size < t->w.size; size *= 2)
        levels++;
    t->length = (t->w.count - 1) * t->w.stride + (t->w.size - 1) * t->w.dilation + 1;
    return t->w.count > 0 && 2 * levels * t->length < t->w.count * t->w.size;
}

// The elements of a table that windows have `from` elements behind their first one.
static jot_value of_windows(const struct tables *t, jot_value table, int64_t from)
{
    int64_t start = from * t->w.dilation, end = start + (t->w.count - 1) * t->w.stride + 1;
    return jot_slice_axis(table, t->axis, start, end, t->w.stride);
}

static bool combine_tables(const struct by_function *f, const struct tables *t, jot_value *x)
{
    struct arena *arena = trace_top()->module->arena;
    jot_value *in = arena_array(arena, jot_value, 4 * f->n + 1), *rest = in + 2 * f->n;
    jot_value *table = rest + f->n;
    int64_t done = 0; // elements of the windows' ends that are combined
    for (int i = 0; i < f->n; i++)
        table[i] = jot_slice_axis(x[i], t->axis, 0, t->length, 1);
    for (int64_t size = 1; size <= t->w.size; size *= 2) {
        if (t->w.size & size) {
            int64_t from = t->w.size - done - size;
            for (int i = 0; i < f->n; i++) {
                in[i] = of_windows(t, table[i], from);
                in[f->n + i] = rest[i];
            }
            if (!done)
                memcpy(rest, in, (size_t)f->n * sizeof *in);
            else if (!combine_all(f, in, rest))
                return false;
            done += size;
        }
        int64_t length = jot_value_dim(table[0], t->axis), shift = size * t->w.dilation;
        if (2 * size > t->w.size)
            break;
        for (int i = 0; i < f->n; i++) {
            in[i] = jot_slice_axis(table[i], t->axis, 0, length - shift, 1);
            in[f->n + i] = jot_slice_axis(table[i], t->axis, shift, length, 1);
        }
        if (!combine_all(f, in, table))
            return false;
    }
    memcpy(x, rest, (size_t)f->n * sizeof *x);
    return true;
}

static bool reduce_by(void *ctx, jot_value *x, jot_value *out_error)
{
    const char *name = "jot_reduce_window_by";
    const struct by_function *f = ctx;
    struct reduction r = {0};
    if (!trace_ready(name, f->n, x, out_error))
        return false;
    jot_value *init = arena_array(trace_top()->module->arena, jot_value, f->n + 1);
    memcpy(init, f->init, sizeof *init * (size_t)f->n);
    if (!trace_ready(name, f->n, init, out_error))
        return false;
    int64_t windows = 1, count = 1, dims[IR_MAX_RANK + 1];
    for (int i = 1; i < f->n; i++)
        if (trace_type(x[i]).shape != trace_type(x[0]).shape) {
            *out_error = trace_fail(name, JOT_ERR_SHAPE, "%s and %s have not the same shape",
                                    trace_type_text(x[0]), trace_type_text(x[i]));
            return false;
        }
    struct tables t = {0};
    bool by_tables = false;
    for (int i = 0; i < f->n; i++) {
        r.n = 0;
        if (!read_windows(name, x[i], f->options, false, &r, out_error))
            return false;
        by_tables = has_tables(&r, &t);
        if (by_tables) { // each element is a window
            r.w[t.axis].count = t.length;
            r.w[t.axis].size = r.w[t.axis].stride = r.w[t.axis].dilation = 1;
        }
        ir_id padding = trace_operand(init[i], ir_dtype(trace_type(x[i])));
        ir_id y = windowed(&r, trace_strong(x[i]), padding);
        x[i] = jot_move_axis(trace_result(name, one_window_axis(&r, y), false), -1, 0);
    }
    for (int i = 0; i < r.rank; i++) {
        dims[i] = r.w[i].count;
        windows *= r.w[i].count;
        count *= r.w[i].size;
    }
    dims[r.rank] = JOT_END;
    for (int i = 0; i < f->n; i++)
        x[i] = jot_reshape_dims(x[i], (const int64_t[]){count, windows, JOT_END});
    bool is_done = true;
    for (; is_done && count > 1; count -= count / 2)
        is_done = combine_pairs(f, count / 2, x);
    for (int i = 0; is_done && i < f->n; i++)
        x[i] = jot_reshape_dims(x[i], dims);
    if (is_done && by_tables)
        is_done = combine_tables(f, &t, x);
    if (!is_done)
        *out_error = trace_fail_latest();
    return is_done;
}

void jot_reduce_window_tree(jot_function combine, size_t n, jot_value *x, const jot_value *init,
                            const jot_window_options *options, const char *where)
{
    const char *name = "jot_reduce_window_by";
    if (trace_lacks(name, "x", n, x, n, x, where) ||
        trace_lacks(name, "init", n, init, n, x, where))
        return;
    struct by_function f = {jot_vmap_of(combine, where, NULL), (int)n, init, options, where};
    trace_make(reduce_by, &f, n, x, where);
}

jot_value jot_reduce_window_by_with(jot_function combine, jot_value x, jot_value init,
                                    const jot_window_options *options, const char *where)
{
    jot_reduce_window_tree(combine, 1, &x, &init, options, where);
    return x;
}
