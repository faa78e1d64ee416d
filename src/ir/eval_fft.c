// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by their definition, axis by axis, in long doubles: right to the last bits of
// what it is compared with.
#include "base/fft.h"
#include "ir/eval_ops.h"

#include <math.h>

struct wide {
    long double re, im;
};

static struct wide load_wide(jot_dtype d, const void *data, int64_t i)
{
    struct eval_number x = eval_load(d, data, i);
    if (dtype_real(d) == JOT_F32)
        return (struct wide){(long double)scalar_f32(x.re), (long double)scalar_f32(x.im)};
    return (struct wide){(long double)scalar_f64(x.re), (long double)scalar_f64(x.im)};
}

static void store(jot_dtype d, void *data, int64_t i, struct wide x)
{
    struct eval_number y;
    if (dtype_real(d) == JOT_F32)
        y = (struct eval_number){scalar_from_f32((float)x.re), scalar_from_f32((float)x.im)};
    else
        y = (struct eval_number){scalar_from_f64((double)x.re), scalar_from_f64((double)x.im)};
    eval_store(d, data, i, y);
}

// The exponentials of one length, and room for a line.
struct tables {
    int64_t n;
    bool is_inverse;
    struct wide *w, *line;
};

static struct tables make_tables(struct arena *arena, int64_t n, bool is_inverse)
{
    const long double turn = 2 * acosl(-1.0L);
    struct tables t = {n, is_inverse, arena_array(arena, struct wide, n),
                       arena_array(arena, struct wide, n)};
    for (int64_t k = 0; k < n; k++) {
        long double angle = turn * (long double)k / (long double)n;
        t.w[k] = (struct wide){cosl(angle), is_inverse ? sinl(angle) : -sinl(angle)};
    }
    return t;
}

// X[k] = scale sum_j x[j] w[j k mod n], of elements `stride` apart.
static void transform_line(const struct tables *t, struct wide *x, int64_t stride)
{
    int64_t n = t->n;
    long double scale = t->is_inverse ? 1.0L / (long double)n : 1;
    for (int64_t k = 0; k < n; k++)
        t->line[k] = x[k * stride];
    for (int64_t k = 0; k < n; k++) {
        struct wide sum = {0, 0};
        for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n) {
            sum.re += t->line[j].re * t->w[at].re - t->line[j].im * t->w[at].im;
            sum.im += t->line[j].re * t->w[at].im + t->line[j].im * t->w[at].re;
        }
        x[k * stride] = (struct wide){scale * sum.re, scale * sum.im};
    }
}

// The middle axis of extents [outer, n, inner].
static void transform_axis(struct arena *arena, bool is_inverse, int64_t outer, int64_t n,
                           int64_t inner, struct wide *x)
{
    struct tables t = make_tables(arena, n, is_inverse);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            transform_line(&t, x + o * n * inner + i, inner);
}

// Rows of n elements from those of their halves; what is its own conjugate is real.
static struct wide *complete(struct arena *arena, int64_t rows, int64_t n,
                             const struct wide *half)
{
    int64_t h = fft_half(n);
    struct wide *x = arena_array(arena, struct wide, rows * n + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < n; k++) {
            struct wide from = half[r * h + (k < h ? k : n - k)];
            long double im = k < h ? from.im : -from.im;
            x[r * n + k] = (struct wide){from.re, 2 * k % n == 0 ? 0 : im};
        }
    return x;
}

jot_status eval_fft(const struct eval_call *c)
{
    enum fft_kind kind = (enum fft_kind)ir_attr_int(c->attrs, IR_KEY_mode);
    bool is_inverse = fft_is_inverse(kind);
    int n_axes, rank = c->in[0].type.rank;
    const int64_t *sizes = ir_attr_ints(c->attrs, IR_KEY_sizes, &n_axes);
    const int64_t *dims = ir_dims(c->module, c->in[0].type);
    int64_t count = eval_count(c, c->in[0].type), inner = dims[rank - 1], n = sizes[n_axes - 1];
    struct wide *x = arena_array(c->arena, struct wide, count + 1);
    if (count == 0)
        return JOT_OK;
    for (int64_t i = 0; i < count; i++)
        x[i] = load_wide(ir_dtype(c->in[0].type), c->in[0].data, i);
    for (int i = n_axes - 2, axis = rank - 2; i >= 0; i--, axis--) {
        transform_axis(c->arena, is_inverse, count / (inner * dims[axis]), dims[axis], inner,
                       x);
        inner *= dims[axis];
    }
    int64_t rows = count / dims[rank - 1], given = n;
    if (kind == FFT_IRFFT)
        x = complete(c->arena, rows, n, x);
    if (kind == FFT_RFFT)
        given = fft_half(n);
    transform_axis(c->arena, is_inverse, rows, n, 1, x);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < given; k++)
            store(ir_dtype(c->out[0].type), c->out[0].data, r * given + k, x[r * n + k]);
    return JOT_OK;
}
