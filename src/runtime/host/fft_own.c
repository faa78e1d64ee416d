// SPDX-License-Identifier: Apache-2.0
// Transforms without a library: passes of radix 4, 2, 3, 5, 7 and other small primes, and Bluestein's
// convolution for what has a larger one.
#include "base/memory.h"
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
    void *filter;                // the transform of the conjugates of roots, over its length
};

#define REAL float
#define NAMED(name) name##_f32
#include "runtime/host/fft_own.inc"
#undef REAL
#undef NAMED
#define REAL double
#define NAMED(name) name##_f64
#include "runtime/host/fft_own.inc"
#undef REAL
#undef NAMED

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

static void store_root(const struct fft_own *p, void *table, int64_t at, double scale,
                       int64_t k, int64_t n)
{
    (p->real == JOT_F32 ? store_f32 : store_f64)(table, at, (long double)scale, k, n);
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

static bool make_convolution(struct fft_own *p, bool is_inverse)
{
    size_t element = p->real == JOT_F32 ? 8 : 16;
    int64_t m = 1, n = p->n;
    while (m < 2 * n - 1)
        m *= 2;
    p->convolution = fft_own_create(p->real, false, m);
    char *a = memory_allocate_zeroed((size_t)m * element),
         *b = memory_allocate((size_t)m * element);
    p->filter = a;
    if (!p->convolution || !a || !b) {
        memory_release(b);
        return false;
    }
    // k^2 mod 2 n, for cosines of small angles are right.
    for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), k++) {
        int64_t turns = is_inverse ? square : -square;
        store_root(p, p->roots, k, 1, turns, 2 * n);
        store_root(p, a, k, 1 / (double)m, -turns, 2 * n);
        if (k)
            store_root(p, a, m - k, 1 / (double)m, -turns, 2 * n);
    }
    p->filter = fft_own_run(p->convolution, 1, a, b);
    memory_release(p->filter == a ? b : a);
    return true;
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
    if (is_made)
        return p;
    release(p);
    return NULL;
}

int64_t fft_own_room(const struct fft_own *p, int width)
{
    return (p->convolution ? p->convolution->n : p->n) * width;
}

void *fft_own_run(const struct fft_own *p, int width, void *a, void *b)
{
    if (p->convolution)
        return (p->real == JOT_F32 ? convolve_f32 : convolve_f64)(p, width, a, b);
    return (p->real == JOT_F32 ? passes_f32 : passes_f64)(p, width, a, b);
}
