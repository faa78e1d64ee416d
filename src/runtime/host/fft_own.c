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
    enum fft_kind kind;
    int64_t n; // elements of a panel: n / 2 of n reals, where n is even
    int n_factors, factors[FACTORS_MOST];
    void *roots; // exp(-+ 2 pi i k / n); with a convolution exp(-+ pi i k^2 / n)
    struct fft_own *convolution; // NULL: passes alone
    const struct code *code;
    void *filter; // the transform of the conjugates of roots, over its length
    void *turns; // of reals two and two: -i/2 exp(-2 pi i k / 2n), or i exp(2 pi i k / 2n) back
};

// What is compiled for one real type and one size of registers.
struct code {
    int lanes; // of a register
    void *(*passes)(const struct fft_own *p, void *a, void *b);
    void *(*convolve)(const struct fft_own *p, void *a, void *b);
    void (*load)(int64_t n, const void *block, int64_t step, void *panel);
    void (*store)(int64_t n, const void *panel, double scale, void *block, int64_t step);
    void (*load_rows)(int64_t n, const void *rows, int64_t step, void *panel);
    void (*store_rows)(int64_t n, const void *panel, double scale, void *rows, int64_t step);
    void (*split)(const struct fft_own *p, void *a);
};

// Of two vectors the even and the odd elements, and elements of both in turn, of the low and of the high
// halves.
#define EVEN_2 0, 2
#define EVEN_4 EVEN_2, 4, 6
#define EVEN_8 EVEN_4, 8, 10, 12, 14
#define EVEN_16 EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_2 1, 3
#define ODD_4 ODD_2, 5, 7
#define ODD_8 ODD_4, 9, 11, 13, 15
#define ODD_16 ODD_8, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW_2 0, 2
#define LOW_4 0, 4, 1, 5
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_2 1, 3
#define HIGH_4 2, 6, 3, 7
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define MIX(a, b, which) __builtin_shufflevector(a, b, PASTE(which, LANES))

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
#define TARGET
#define REAL float
#define VEC f32x4
#define LANES 4
#define NAMED(name) name##_f32
#include "runtime/host/fft_own.inc"
#define REAL double
#define VEC f64x2
#define LANES 2
#define NAMED(name) name##_f64
#include "runtime/host/fft_own.inc"
#undef TARGET

#if defined(__x86_64__)
typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x4 __attribute__((vector_size(32)));
#define TARGET __attribute__((target("avx2")))
#define REAL float
#define VEC f32x8
#define LANES 8
#define NAMED(name) name##_f32_avx2
#include "runtime/host/fft_own.inc"
#define REAL double
#define VEC f64x4
#define LANES 4
#define NAMED(name) name##_f64_avx2
#include "runtime/host/fft_own.inc"
#undef TARGET

typedef float f32x16 __attribute__((vector_size(64)));
typedef double f64x8 __attribute__((vector_size(64)));
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq")))
#define REAL float
#define VEC f32x16
#define LANES 16
#define NAMED(name) name##_f32_avx512
#include "runtime/host/fft_own.inc"
#define REAL double
#define VEC f64x8
#define LANES 8
#define NAMED(name) name##_f64_avx512
#include "runtime/host/fft_own.inc"
#undef TARGET
#endif

// Nothing is fused, so the bits are the same.
static const struct code *find_code(bool is_single)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return is_single ? &code_f32_avx512 : &code_f64_avx512;
    if (__builtin_cpu_supports("avx2"))
        return is_single ? &code_f32_avx2 : &code_f64_avx2;
#endif
    return is_single ? &code_f32 : &code_f64;
}

// Small primes of n, as few passes as may be, and how many; -1 when there is another.
static int find_factors(int64_t n, int *factors)
{
    static const int radices[] = {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
    int count = 0;
    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++)
        for (; n % radices[i] == 0; n /= radices[i])
            factors[count++] = radices[i];
    return n == 1 ? count : -1;
}

bool fft_own_has_passes(int64_t n)
{
    int factors[FACTORS_MOST];
    return find_factors(n, factors) >= 0;
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
    memory_release(p->turns);
    release(p->convolution);
    memory_release(p);
}

// Number i of line 0 of a panel, real and imaginary parts in turn.
static char *at_line(const struct fft_own *p, const char *panel, int64_t i, size_t size)
{
    return (char *)(uintptr_t)panel + (size_t)(i / 2) * 2 * FFT_VECTOR +
           (size_t)(i % 2 * p->code->lanes) * size;
}

// Line 0 of a panel is the filter, as numbers side by side.
static void copy_line(const struct fft_own *p, const char *panel, int64_t n, char *to)
{
    size_t size = p->real == JOT_F32 ? sizeof(float) : sizeof(double);
    for (int64_t i = 0; i < 2 * n; i++)
        memcpy(to + (size_t)i * size, at_line(p, panel, i, size), size);
}

static void fill_line(const struct fft_own *p, const char *from, int64_t n, char *panel)
{
    size_t size = p->real == JOT_F32 ? sizeof(float) : sizeof(double);
    memset(panel, 0, (size_t)(2 * n) * FFT_VECTOR);
    for (int64_t i = 0; i < 2 * n; i++)
        memcpy(at_line(p, panel, i, size), from + (size_t)i * size, size);
}

static bool make_convolution(struct fft_own *p, bool is_inverse)
{
    int64_t m = 1, n = p->n;
    while (m < 2 * n - 1)
        m *= 2;
    size_t panel = (size_t)(2 * m) * FFT_VECTOR;
    p->convolution = fft_own_create(p->real, FFT_FFT, m);
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

static bool make_turns(struct fft_own *p)
{
    bool is_inverse = p->kind == FFT_IRFFT;
    int64_t n = 4 * p->n; // i is exp(2 pi i p->n / n)
    p->turns = memory_allocate((size_t)(p->n / 2 + 1) * (p->real == JOT_F32 ? 8 : 16));
    for (int64_t k = 0; p->turns && k <= p->n / 2; k++)
        store_root(p, p->turns, k, is_inverse ? 1 : 0.5,
                   is_inverse ? 2 * k + p->n : -2 * k - p->n, n);
    return p->turns;
}

struct fft_own *fft_own_create(jot_dtype real, enum fft_kind kind, int64_t n)
{
    bool is_inverse = fft_is_inverse(kind);
    struct fft_own *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return NULL;
    *p = (struct fft_own){
        .real = real, .kind = kind, .n = n, .code = find_code(real == JOT_F32)};
    bool has_pairs = fft_has_pairs(kind, n);
    p->n = n = has_pairs ? n / 2 : n;
    p->roots = memory_allocate((size_t)n * (real == JOT_F32 ? 8 : 16));
    bool is_made = p->roots && (!has_pairs || make_turns(p));
    if (is_made && (p->n_factors = find_factors(n, p->factors)) >= 0) {
        for (int64_t k = 0; k < n; k++)
            store_root(p, p->roots, k, 1, is_inverse ? k : -k, n);
    } else if (is_made) {
        is_made = make_convolution(p, is_inverse);
    }
    if (is_made)
        return p;
    release(p);
    return NULL;
}

size_t fft_own_room(const struct fft_own *p)
{
    int64_t n = p->convolution ? p->convolution->n : p->n;
    return (size_t)(2 * (n + (p->turns != NULL))) * FFT_VECTOR;
}

int fft_own_lanes(const struct fft_own *p) { return p->code->lanes; }

void fft_own_load(const struct fft_own *p, const void *block, int64_t step, void *panel)
{
    p->code->load(p->n, block, step, panel);
}

void *fft_own_run(const struct fft_own *p, void *a, void *b)
{
    bool is_inverse = p->kind == FFT_IRFFT;
    if (p->turns && is_inverse)
        p->code->split(p, a);
    a = (p->convolution ? p->code->convolve : p->code->passes)(p, a, b);
    if (p->turns && !is_inverse)
        p->code->split(p, a);
    return a;
}

void fft_own_store(const struct fft_own *p, const void *panel, double scale, void *block,
                   int64_t step)
{
    p->code->store(p->n, panel, scale, block, step);
}

void fft_own_load_rows(const struct fft_own *p, int64_t n, const void *rows, int64_t step,
                       void *panel)
{
    p->code->load_rows(n, rows, step, panel);
}

void fft_own_store_rows(const struct fft_own *p, int64_t n, const void *panel, double scale,
                        void *rows, int64_t step)
{
    p->code->store_rows(n, panel, scale, rows, step);
}
