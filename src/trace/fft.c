// SPDX-License-Identifier: Apache-2.0
// Fourier transforms: the axes are moved to the end, brought to their lengths, transformed by the op fft
// and moved back.
#include "trace/emit.h"

#include "jot/fft.h"

#include <math.h>

// One of the public transforms.
struct form {
    const char *name;
    enum fft_kind kind;
    int n_axes;       // 0: all of them
    bool is_mirrored; // of a signal that is its own mirrored conjugate
};

// A call of it.
struct call {
    const struct form *form;
    jot_value x;
    struct ir_type type;
    int n;
    int64_t axes[IR_MAX_RANK], sizes[IR_MAX_RANK]; // of the op
    double scale;                                  // beyond that of the op
};

static const jot_fft_options no_options;

// The dtype that the op takes; false with an error.
static bool find_dtype(const struct call *c, jot_dtype *out, jot_value *out_error)
{
    jot_dtype d = dtype_to_inexact(ir_dtype(c->type));
    const char *name = c->form->name, *text = trace_type_text(c->x);
    if (dtype_is_half(d)) {
        *out_error =
            trace_fail(name, JOT_ERR_DTYPE,
                       "%s: transforms are of f32, f64, c64 and c128: convert it first", text);
        return false;
    }
    if (c->form->kind == FFT_RFFT && dtype_is_complex(d)) {
        *out_error = trace_fail(
            name, JOT_ERR_DTYPE,
            "%s: of complex numbers no half tells all: take jot_fft, or a part", text);
        return false;
    }
    *out = c->form->kind == FFT_RFFT || dtype_is_complex(d) ? d : dtype_complex(d);
    return true;
}

static int count_sizes(const int64_t *sizes)
{
    int n = 0;
    while (sizes && n <= IR_MAX_RANK && sizes[n] != JOT_END)
        n++;
    return n;
}

static bool find_axes(struct call *c, const jot_fft_options *o, jot_value *out_error)
{
    const char *name = c->form->name;
    int rank = c->type.rank, n_sizes = count_sizes(o->n), want = c->form->n_axes;
    if (!trace_axes(name, c->x, rank, o->axes, false, &c->n, c->axes, NULL, out_error))
        return false;
    bool is_listed = c->n > 0;
    if (!is_listed) {
        c->n = want ? want : n_sizes ? n_sizes : rank;
        for (int i = 0; i < c->n && c->n <= rank; i++)
            c->axes[i] = rank - c->n + i;
    }
    if (c->n > rank || c->n == 0)
        *out_error =
            trace_fail(name, JOT_ERR_SHAPE, "%s has fewer axes than the %d transformed",
                       trace_type_text(c->x), c->n ? c->n : 1);
    else if (want && c->n != want)
        *out_error = trace_fail(name, JOT_ERR_ARGUMENT, "%d axes are listed: it transforms %d",
                                c->n, want);
    else if (n_sizes && n_sizes != c->n)
        *out_error =
            trace_fail(name, JOT_ERR_ARGUMENT, "lengths for %d axes, of %d", n_sizes, c->n);
    else
        return true;
    return false;
}

static bool find_sizes(struct call *c, const jot_fft_options *o, jot_value *out_error)
{
    const int64_t *dims = ir_dims(trace_builder()->module, c->type);
    bool is_given = o->n && o->n[0] != JOT_END;
    double points = 1;
    for (int i = 0; i < c->n; i++) {
        int64_t n = is_given ? o->n[i] : dims[c->axes[i]];
        if (!is_given && c->form->kind == FFT_IRFFT && i == c->n - 1)
            n = 2 * (n - 1);
        if (n < 1) {
            *out_error = trace_fail(
                c->form->name, JOT_ERR_ARGUMENT,
                "length %lld along axis %lld of %s: it must be at least 1%s", (long long)n,
                (long long)c->axes[i], trace_type_text(c->x), is_given ? "" : ": say .n");
            return false;
        }
        c->sizes[i] = n;
        points *= (double)n;
    }
    // The inverse op divides by the points already.  Mirrored ones are divided the other way.
    bool is_inverse = fft_is_inverse(c->form->kind);
    bool divides_there = o->norm == (c->form->is_mirrored ? JOT_FFT_BACKWARD : JOT_FFT_FORWARD);
    double by = o->norm == JOT_FFT_ORTHO      ? sqrt(points)
                : divides_there != is_inverse ? points
                                              : 1;
    c->scale = (is_inverse ? points : 1) / by;
    return true;
}

// Axis `axis` of x cut or filled with zeros at its end.
static ir_id with_extent(ir_id x, int axis, int64_t extent)
{
    struct ir_builder *b = trace_builder();
    int64_t zeros[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
    if (x == IR_NONE)
        return x;
    int64_t old = ir_dims(b->module, ir_type_in(b, x))[axis];
    high[axis] = extent - old;
    return old == extent ? x : ir_pad(b, x, ir_scalar_like(b, x, 0), zeros, high, zeros);
}

// The axes in the order of `order`, or back.
static ir_id permute(ir_id x, int rank, const int64_t *order, bool back)
{
    int64_t axes[IR_MAX_RANK];
    bool is_same = true;
    for (int i = 0; i < rank; i++) {
        axes[back ? order[i] : i] = back ? i : order[i];
        is_same &= order[i] == i;
    }
    return is_same || x == IR_NONE ? x : ir_transpose(trace_builder(), x, axes);
}

static ir_id emit(const struct call *c, ir_id x)
{
    struct ir_builder *b = trace_builder();
    int rank = c->type.rank, others = 0;
    int64_t order[IR_MAX_RANK];
    uint64_t set = 0;
    for (int i = 0; i < c->n; i++) {
        order[rank - c->n + i] = c->axes[i];
        set |= UINT64_C(1) << c->axes[i];
    }
    for (int axis = 0; axis < rank; axis++)
        if (!(set >> axis & 1))
            order[others++] = axis;
    enum fft_kind kind = c->form->kind;
    if (c->form->is_mirrored && kind == FFT_IRFFT)
        x = ir_conj(b, x);
    x = permute(x, rank, order, false);
    for (int i = 0; i < c->n; i++) {
        bool is_half = kind == FFT_IRFFT && i == c->n - 1;
        x = with_extent(x, rank - c->n + i, is_half ? fft_half(c->sizes[i]) : c->sizes[i]);
    }
    ir_id y = x == IR_NONE ? x : ir_fft(b, kind, x, c->n, c->sizes);
    if (c->form->is_mirrored && kind == FFT_RFFT && y != IR_NONE)
        y = ir_conj(b, y);
    if (c->scale != 1 && y != IR_NONE)
        y = ir_mul(b, y, ir_scalar_like(b, y, c->scale));
    return permute(y, rank, order, true);
}

static jot_value transform(const struct form *form, jot_value x, const jot_fft_options *o)
{
    struct call c = {.form = form, .x = x};
    jot_value error;
    jot_dtype dtype;
    o = o ? o : &no_options;
    if (!trace_ready(form->name, 1, &c.x, &error))
        return error;
    c.type = trace_type(c.x);
    if (o->norm < JOT_FFT_BACKWARD || o->norm > JOT_FFT_FORWARD)
        return trace_fail(form->name, JOT_ERR_ARGUMENT, "norm %d: there are 0 to %d",
                          (int)o->norm, (int)JOT_FFT_FORWARD);
    if (!find_dtype(&c, &dtype, &error) || !find_axes(&c, o, &error) ||
        !find_sizes(&c, o, &error))
        return error;
    return trace_result(form->name, emit(&c, trace_operand(c.x, dtype)), false);
}

#define TRANSFORM(name, kind, n_axes, is_mirrored)                                             \
    jot_value jot_##name(jot_value x, const jot_fft_options *options)                          \
    {                                                                                          \
        static const struct form form = {"jot_" #name, kind, n_axes, is_mirrored};             \
        TRACE_RETURN(transform(&form, x, options));                                            \
    }
TRANSFORM(fft, FFT_FFT, 1, false)
TRANSFORM(ifft, FFT_IFFT, 1, false)
TRANSFORM(rfft, FFT_RFFT, 1, false)
TRANSFORM(irfft, FFT_IRFFT, 1, false)
TRANSFORM(hfft, FFT_IRFFT, 1, true)
TRANSFORM(ihfft, FFT_RFFT, 1, true)
TRANSFORM(fft2, FFT_FFT, 2, false)
TRANSFORM(ifft2, FFT_IFFT, 2, false)
TRANSFORM(rfft2, FFT_RFFT, 2, false)
TRANSFORM(irfft2, FFT_IRFFT, 2, false)
TRANSFORM(fftn, FFT_FFT, 0, false)
TRANSFORM(ifftn, FFT_IFFT, 0, false)
TRANSFORM(rfftn, FFT_RFFT, 0, false)
TRANSFORM(irfftn, FFT_IRFFT, 0, false)

// ---- Shifts and frequencies

static jot_value check_axes(const char *name, jot_value x, const int *list, int *out_n,
                            int64_t *out_axes)
{
    jot_value error;
    return trace_ready(name, 1, &x, &error) && trace_axes(name, x, trace_type(x).rank, list,
                                                          true, out_n, out_axes, NULL, &error)
               ? x
               : error;
}

static jot_value guarded_axes(const char *name, jot_value x, const int *list, int *out_n,
                              int64_t *out_axes)
{
    TRACE_RETURN(check_axes(name, x, list, out_n, out_axes));
}

static jot_value shift(const char *name, jot_value x, const int *list, bool back)
{
    int n = 0;
    int64_t axes[IR_MAX_RANK];
    x = guarded_axes(name, x, list, &n, axes);
    for (int i = 0; i < n; i++) {
        int64_t half = jot_value_dim(x, (int)axes[i]) / 2;
        x = jot_roll(x, back ? -half : half, (int)axes[i]);
    }
    return x;
}

jot_value jot_fftshift_axes(jot_value x, const int *axes)
{
    return shift("jot_fftshift", x, axes, false);
}

jot_value jot_ifftshift_axes(jot_value x, const int *axes)
{
    return shift("jot_ifftshift", x, axes, true);
}

// 0 .. count - 1, from which n is taken where they are at least `turn`.
static jot_value numbers(const char *name, jot_dtype dtype, int64_t n, double d, int64_t count,
                         int64_t turn)
{
    jot_value error;
    if (!trace_ready(name, 0, NULL, &error) || !trace_is_dtype(name, dtype, &error))
        return error;
    if (!dtype_is_float(dtype))
        return trace_fail(name, JOT_ERR_DTYPE, "frequencies of %s: they are floats",
                          dtype_get(dtype)->name);
    if (n < 1)
        return trace_fail(name, JOT_ERR_ARGUMENT, "%lld samples: there must be at least 1",
                          (long long)n);
    if (d == 0 || d != d)
        return trace_fail(name, JOT_ERR_ARGUMENT, "samples %g apart", d);
    struct ir_builder *b = trace_builder();
    ir_id k = ir_iota(b, ir_type_make(b->module, JOT_I64, 1, &count), 0);
    ir_id is_negative = ir_ge(b, k, ir_scalar_int(b, JOT_I64, turn));
    k = ir_select(b, is_negative, ir_sub(b, k, ir_scalar_int(b, JOT_I64, n)), k);
    k = ir_convert(b, k, dtype);
    return trace_result(name, ir_div(b, k, ir_scalar_like(b, k, d * (double)n)), false);
}

jot_value jot_fftfreq(jot_dtype dtype, int64_t n, double d)
{
    TRACE_RETURN(numbers("jot_fftfreq", dtype, n, d, n, n / 2 + n % 2));
}

jot_value jot_rfftfreq(jot_dtype dtype, int64_t n, double d)
{
    TRACE_RETURN(numbers("jot_rfftfreq", dtype, n, d, fft_half(n), n));
}
