// SPDX-License-Identifier: Apache-2.0
// Transforms without a library: passes of radix 4, 2, 3, 5, 7 and other small primes, and Bluestein's
// convolution for what has a larger one.
#include "base/memory.h"
#include "runtime/host/blocks.h"
#include "runtime/host/fft_plan.h"

#include <math.h>
#include <string.h>

#define RADIX_MOST 31
#define FACTORS_MOST 64

struct fft_own {
    jot_dtype real;
    int64_t n;
    int n_factors, factors[FACTORS_MOST];
    void *roots; // exp(-+ 2 pi i k / n); with a convolution exp(-+ pi i k^2 / n)
    struct fft_own *convolution; // NULL: passes alone
    void *(*run)(const struct fft_own *p, void *a, void *b);
    void *filter; // the transform of the conjugates of roots, over its length
};

typedef float lanes_f32 __attribute__((vector_size(FFT_VECTOR)));
typedef double lanes_f64 __attribute__((vector_size(FFT_VECTOR)));

#define TARGET
#define REAL float
#define VEC lanes_f32
#define NAMED(name) name##_f32
#include "runtime/host/fft_own.inc"
#undef REAL
#undef VEC
#undef NAMED
#define REAL double
#define VEC lanes_f64
#define NAMED(name) name##_f64
#include "runtime/host/fft_own.inc"
#undef NAMED

// The same, of which vectors are registers.
#if defined(__x86_64__)
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq")))
#define NAMED(name) name##_f64_avx512
#include "runtime/host/fft_own.inc"
#undef REAL
#undef VEC
#undef NAMED
#define REAL float
#define VEC lanes_f32
#define NAMED(name) name##_f32_avx512
#include "runtime/host/fft_own.inc"
#endif
#undef TARGET
#undef REAL
#undef VEC
#undef NAMED

typedef void *transform_panel(const struct fft_own *p, void *a, void *b);

// By whether it is a convolution, by type; nothing is fused, so the bits are the same.
static transform_panel *find_transform(bool is_single, bool convolves)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return convolves   ? is_single ? convolve_f32_avx512 : convolve_f64_avx512
               : is_single ? passes_f32_avx512
                           : passes_f64_avx512;
#endif
    return convolves   ? is_single ? convolve_f32 : convolve_f64
           : is_single ? passes_f32
                       : passes_f64;
}

// Small primes of n, as few passes as may be; false when there is another.
static bool find_factors(struct fft_own *p)
{
    static const int radices[] = {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
    int64_t left = p->n;
    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
        for (; left % radices[i] == 0; left /= radices[i])
            p->factors[p->n_factors++] = radices[i];
    return left == 1;
}

// scale exp(2 pi i k / n)
static void store_root(const struct fft_own *p, void *table, int64_t at, double scale,
                       int64_t k, int64_t n)
{
    long double angle = 2 * acosl(-1.0L) * (long double)k / (long double)n;
    long double re = (long double)scale * cosl(angle), im = (long double)scale * sinl(angle);
    if (p->real == JOT_F32) {
        ((float *)table)[2 * at] = (float)re;
        ((float *)table)[2 * at + 1] = (float)im;
    } else {
        ((double *)table)[2 * at] = (double)re;
        ((double *)table)[2 * at + 1] = (double)im;
    }
}

static void release(struct fft_own *p)
{
    if (!p)
        return;
    memory_release(p->roots);
    memory_release(p->filter);
    release(p->convolution);
    memory_release(p);
}

// Line 0 of a panel is the filter, as numbers side by side.
static void copy_line(const struct fft_own *p, const char *panel, int64_t n, char *to)
{
    size_t size = p->real == JOT_F32 ? sizeof(float) : sizeof(double);
    for (int64_t i = 0; i < 2 * n; i++)
        memcpy(to + (size_t)i * size, panel + (size_t)i * FFT_VECTOR, size);
}

static void fill_line(const struct fft_own *p, const char *from, int64_t n, char *panel)
{
    size_t size = p->real == JOT_F32 ? sizeof(float) : sizeof(double);
    memset(panel, 0, (size_t)(2 * n) * FFT_VECTOR);
    for (int64_t i = 0; i < 2 * n; i++)
        memcpy(panel + (size_t)i * FFT_VECTOR, from + (size_t)i * size, size);
}

static bool make_convolution(struct fft_own *p, bool is_inverse)
{
    int64_t m = 1, n = p->n;
    while (m < 2 * n - 1)
        m *= 2;
    size_t panel = (size_t)(2 * m) * FFT_VECTOR;
    p->convolution = fft_own_create(p->real, false, m);
    p->filter = memory_allocate_zeroed((size_t)m * (p->real == JOT_F32 ? 8 : 16));
    char *a = rt_block_allocate(panel), *b = rt_block_allocate(panel);
    bool is_made = p->convolution && p->filter && a && b;
    // k^2 mod 2 n, for cosines of small angles are right.
    for (int64_t k = 0, square = 0; is_made && k < n;
         square = (square + 2 * k + 1) % (2 * n), k++) {
        int64_t turns = is_inverse ? square : -square;
        store_root(p, p->roots, k, 1, turns, 2 * n);
        store_root(p, p->filter, k, 1 / (double)m, -turns, 2 * n);
        if (k)
            store_root(p, p->filter, m - k, 1 / (double)m, -turns, 2 * n);
    }
    if (is_made) {
        fill_line(p, p->filter, m, a);
        copy_line(p, fft_own_run(p->convolution, a, b), m, p->filter);
    }
    rt_block_release(a, panel);
    rt_block_release(b, panel);
    return is_made;
}

struct fft_own *fft_own_create(jot_dtype real, bool is_inverse, int64_t n)
{
    struct fft_own *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return NULL;
    *p = (struct fft_own){.real = real, .n = n};
    p->roots = memory_allocate((size_t)n * (real == JOT_F32 ? 8 : 16));
    bool is_made = p->roots != NULL;
    if (is_made && find_factors(p)) {
        for (int64_t k = 0; k < n; k++)
            store_root(p, p->roots, k, 1, is_inverse ? k : -k, n);
    } else if (is_made) {
        is_made = make_convolution(p, is_inverse);
    }
    p->run = find_transform(real == JOT_F32, p->convolution != NULL);
    if (is_made)
        return p;
    release(p);
    return NULL;
}

size_t fft_own_room(const struct fft_own *p)
{
    return (size_t)(2 * (p->convolution ? p->convolution->n : p->n)) * FFT_VECTOR;
}

void *fft_own_run(const struct fft_own *p, void *a, void *b) { return p->run(p, a, b); }
