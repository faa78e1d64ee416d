// SPDX-License-Identifier: Apache-2.0
// The routine fft: axis after axis, lines of one side by side on jot's own threads.
//
// Lines go through panels of as many as a vector has lanes, which are copied to the scratch of
// the thread and back, by whole cache lines; a row of reals as half as many complex numbers.
// Rows that are too few or too long for it are transformed as they lie, where FFTW is there.
#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/fft_plan.h"
#include "runtime/host/pool.h"
#include "runtime/routine.h"

#include <string.h>

#define AXES_MOST 32
#define CHUNK 32768 // elements that are worth a thread
#define LINES_MOST 16

// What the params say.
struct fft {
    jot_dtype real;
    enum fft_kind kind;
    int n_axes;
    const int64_t *sizes;
    int64_t batch;
};

// One axis of an array: `lines` lines of n, from elements to elements `inner` apart.
struct axis {
    enum fft_kind kind;
    jot_dtype real;
    int64_t lines, n, inner;
    bool has_pairs; // reals, two and two in a panel as complex numbers
    int64_t from_n,
        to_n; // elements of a line, of which a half has fewer; pairs where they are in panels
    const void *from;
    void *to;
    double scale;
    const struct fft_plan *plan;
    bool takes_rows; // by FFTW, as they lie
    bool copies;     // such rows: that are not where the plan may take them
    char *scratch;
    size_t scratch_stride;
    int64_t lines_a_chunk;
};

#define REAL float
#define NAMED(name) name##_f32
#include "runtime/host/fft_lines.inc"
#undef REAL
#undef NAMED
#define REAL double
#define NAMED(name) name##_f64
#include "runtime/host/fft_lines.inc"
#undef REAL
#undef NAMED

static size_t element_of(jot_dtype real, bool is_real)
{
    return (real == JOT_F32 ? 4u : 8u) << !is_real;
}

// ---- One axis

static void run_panels(void *ctx, int64_t chunk, int worker)
{
    const struct axis *a = ctx;
    int width = fft_lanes(a->real);
    size_t room = a->scratch_stride / 2;
    char *panel = a->scratch + (size_t)worker * a->scratch_stride;
    int64_t first = chunk * a->lines_a_chunk, end = first + a->lines_a_chunk;
    end = end < a->lines ? end : a->lines;
    for (int64_t line = first; line < end; line += width) {
        int count = end - line < width ? (int)(end - line) : width;
        int64_t from[LINES_MOST], to[LINES_MOST];
        for (int i = 0; i < count; i++) {
            int64_t outer = (line + i) / a->inner, inner = (line + i) % a->inner;
            from[i] = outer * a->from_n * a->inner + inner;
            to[i] = outer * a->to_n * a->inner + inner;
        }
        if (a->real == JOT_F32) {
            gather_f32(a, width, count, from, (float *)(void *)panel);
            scatter_f32(a, width, count, to, fft_own_run(a->plan->own, panel, panel + room));
        } else {
            gather_f64(a, width, count, from, (double *)(void *)panel);
            scatter_f64(a, width, count, to, fft_own_run(a->plan->own, panel, panel + room));
        }
    }
}

static void run_rows(void *ctx, int64_t chunk, int worker)
{
    const struct axis *a = ctx;
    bool is_real = a->kind == FFT_IRFFT;
    size_t from_bytes = (size_t)a->from_n * element_of(a->real, a->kind == FFT_RFFT);
    size_t to_bytes = (size_t)a->to_n * element_of(a->real, is_real);
    char *in = a->scratch + (size_t)worker * a->scratch_stride,
         *out = in + a->scratch_stride / 2;
    int64_t first = chunk * a->lines_a_chunk, end = first + a->lines_a_chunk;
    for (int64_t line = first; line < end && line < a->lines; line++) {
        char *from = (char *)(uintptr_t)a->from + (size_t)line * from_bytes;
        char *to = (char *)a->to + (size_t)line * to_bytes;
        if (a->copies) {
            memcpy(in, from, from_bytes);
            fftw_run(a->plan, in, out);
            memcpy(to, out, to_bytes);
        } else {
            fftw_run(a->plan, from, to);
        }
        if (a->real == JOT_F32)
            scale_f32(a->scale, a->to_n << !is_real, (float *)(void *)to);
        else
            scale_f64(a->scale, a->to_n << !is_real, (double *)(void *)to);
    }
}

static bool is_aligned(const struct axis *a)
{
    size_t from = (size_t)a->from_n * element_of(a->real, a->kind == FFT_RFFT);
    size_t to = (size_t)a->to_n * element_of(a->real, a->kind == FFT_IRFFT);
    return (from | to | (uintptr_t)a->from | (uintptr_t)a->to) % 16 == 0;
}

// The plan for an axis as it lies.
static jot_status plan_axis(struct axis *a)
{
    struct fft_key key = {.real = a->real, .kind = a->kind, .n = a->n};
    a->takes_rows = a->inner == 1 && fft_takes_rows(&key, a->lines);
    if (a->takes_rows) {
        a->copies = !is_aligned(a);
        bool is_in_place = a->from == a->to && a->from && !a->copies;
        key.form = is_in_place ? FFT_ROW_IN_PLACE : FFT_ROW;
    } else if (fft_has_pairs(a->kind, a->n)) {
        a->has_pairs = true;
        a->from_n = a->kind == FFT_RFFT ? a->n / 2 : a->from_n;
        a->to_n = a->kind == FFT_IRFFT ? a->n / 2 : a->to_n;
    }
    return fft_plan_get(&key, &a->plan);
}

static jot_status run_axis(struct axis *a, const struct rt_routine_call *call)
{
    JOT_TRY(plan_axis(a));
    int64_t least = CHUNK / a->n + 1;
    int width = fft_lanes(a->real);
    a->lines_a_chunk = a->takes_rows ? least : (least + width - 1) / width * width;
    a->scratch = call->scratch;
    a->scratch_stride = call->scratch_stride;
    rt_pool_run(rt_pool_default(), call->workers, a->takes_rows ? run_rows : run_panels, a,
                (a->lines + a->lines_a_chunk - 1) / a->lines_a_chunk);
    return JOT_OK;
}

// ---- All axes

static struct fft fft_of(const struct rt_routine_call *call)
{
    return (struct fft){
        .real = call->params[0] == JOT_F32 || call->params[0] == JOT_C64 ? JOT_F32 : JOT_F64,
        .batch = call->params[1],
        .kind = (enum fft_kind)call->params[2],
        .n_axes = (int)call->param_count - 3,
        .sizes = call->params + 3};
}

// Axis i of the transform: where it is not the last one, that may be a half.
static struct axis axis_of(const struct fft *f, int i)
{
    int64_t lines = f->batch, inner = 1;
    bool is_half = f->kind == FFT_RFFT || f->kind == FFT_IRFFT;
    for (int k = 0; k < f->n_axes; k++) {
        bool is_last = k == f->n_axes - 1 && k != i;
        int64_t n = is_last && is_half ? fft_half(f->sizes[k]) : f->sizes[k];
        lines *= k == i ? 1 : n;
        inner *= k > i ? n : 1;
    }
    int64_t n = f->sizes[i];
    return (struct axis){.kind = fft_is_inverse(f->kind) ? FFT_IFFT : FFT_FFT,
                         .real = f->real,
                         .lines = lines,
                         .n = n,
                         .inner = inner,
                         .from_n = n,
                         .to_n = n,
                         .scale = 1};
}

// Of the last axis, which may be from or to a half.
static struct axis last_axis(const struct fft *f)
{
    struct axis a = axis_of(f, f->n_axes - 1);
    a.kind = f->kind;
    a.from_n = f->kind == FFT_IRFFT ? fft_half(a.n) : a.n;
    a.to_n = f->kind == FFT_RFFT ? fft_half(a.n) : a.n;
    return a;
}

// All axes but the last.
static jot_status run_others(const struct fft *f, const struct rt_routine_call *call,
                             const void *from, void *to, double scale)
{
    for (int i = f->n_axes - 2; i >= 0; i--) {
        struct axis a = axis_of(f, i);
        a.from = from;
        a.to = to;
        a.scale = i == 0 ? scale : 1;
        JOT_TRY(run_axis(&a, call));
        from = to;
    }
    return JOT_OK;
}

jot_status host_fft(const struct rt_routine_call *call)
{
    struct fft f = fft_of(call);
    struct axis last = last_axis(&f);
    const void *from = call->operands[0];
    void *to = call->operands[1];
    double scale = 1;
    for (int i = 0; fft_is_inverse(f.kind) && i < f.n_axes; i++)
        scale /= (double)f.sizes[i];
    last.from = from;
    last.to = to;
    last.scale = f.kind == FFT_IRFFT || f.n_axes == 1 ? scale : 1;
    if (f.kind != FFT_IRFFT || f.n_axes == 1) {
        JOT_TRY(run_axis(&last, call));
        return run_others(&f, call, to, to, scale);
    }
    void *half = rt_block_allocate(call->bytes[0]);
    if (!half)
        return status_fail(JOT_ERR_MEMORY,
                           "out of memory: a temporary of a Fourier transform of %zu bytes",
                           call->bytes[0]);
    jot_status status = run_others(&f, call, from, half, 1);
    last.from = half;
    if (status == JOT_OK)
        status = run_axis(&last, call);
    rt_block_release(half, call->bytes[0]);
    return status;
}

// ---- Loading

static bool fits(const struct rt_routine_call *call)
{
    int64_t dtype = call->params[0], kind = call->param_count > 3 ? call->params[2] : -1;
    bool from_reals = kind == FFT_RFFT;
    if (call->operand_count != 2 || call->read_count != 1 || call->param_count < 4 ||
        call->param_count > 3 + AXES_MOST || kind < 0 || kind >= FFT_KIND_COUNT ||
        (from_reals ? dtype != JOT_F32 && dtype != JOT_F64
                    : dtype != JOT_C64 && dtype != JOT_C128))
        return false;
    struct fft f = fft_of(call);
    uint64_t in = element_of(f.real, kind == FFT_RFFT),
             out = element_of(f.real, kind == FFT_IRFFT);
    for (int i = -1; i < f.n_axes; i++) {
        int64_t n = i < 0 ? f.batch : f.sizes[i];
        bool is_last = i == f.n_axes - 1;
        if (n < (i >= 0) ||
            __builtin_mul_overflow(in, is_last && kind == FFT_IRFFT ? fft_half(n) : n, &in) ||
            __builtin_mul_overflow(out, is_last && kind == FFT_RFFT ? fft_half(n) : n, &out))
            return false;
    }
    return in == call->bytes[0] && out == call->bytes[1];
}

jot_status host_fft_check(const struct rt_routine_call *call)
{
    return fits(call) ? JOT_OK : rt_routine_damaged("fft");
}

jot_status host_fft_bind(const struct rt_routine_call *call, size_t *out_scratch)
{
    struct fft f = fft_of(call);
    size_t most = 0;
    for (int i = 0; i < f.n_axes; i++) {
        struct axis a = i == f.n_axes - 1 ? last_axis(&f) : axis_of(&f, i);
        JOT_TRY(plan_axis(&a));
        size_t row = ((size_t)(a.n + 2) * element_of(f.real, false) + 63) & ~(size_t)63;
        size_t bytes = a.takes_rows ? row : fft_own_room(a.plan->own);
        most = bytes > most ? bytes : most;
    }
    *out_scratch = 2 * most;
    return JOT_OK;
}
