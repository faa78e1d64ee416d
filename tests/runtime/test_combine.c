// SPDX-License-Identifier: Apache-2.0
// Blocks combined by vectors, against their elements one by one.
#include "runtime/host/combine.h"

#include "base/dtype.h"
#include "support/suite.h"

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4, MOST = COMBINE_TILE, ROOM = 16 * MOST + 64 };

static char blocks[BLOCKS][ROOM], out[2][ROOM], want[ROOM];

// ---- one element; sums and products of integers wrap

static double larger(double a, double b)
{
    return a != a || b != b ? NAN : a > b || (a == b && !signbit(a)) ? a : b;
}
static double smaller(double a, double b) { return -larger(-a, -b); }

static double combine_float(enum collective_combiner c, double a, double b)
{
    return c == COLLECTIVE_SUM       ? a + b
           : c == COLLECTIVE_PRODUCT ? a * b
           : c == COLLECTIVE_MAX     ? larger(a, b)
                                     : smaller(a, b);
}

static uint64_t combine_bits(enum collective_combiner c, bool is_signed, uint64_t a, uint64_t b)
{
    bool is_larger = is_signed ? (int64_t)a > (int64_t)b : a > b;
    switch (c) {
    case COLLECTIVE_SUM:
        return a + b;
    case COLLECTIVE_PRODUCT:
        return a * b;
    case COLLECTIVE_MAX:
        return is_larger ? a : b;
    case COLLECTIVE_MIN:
        return is_larger ? b : a;
    case COLLECTIVE_AND:
        return a & b;
    default:
        return a | b;
    }
}

static uint64_t integer_at(const char *at, size_t size, bool is_signed)
{
    uint64_t u = 0;
    memcpy(&u, at, size);
    int unused = 64 - 8 * (int)size;
    return is_signed ? (uint64_t)((int64_t)(u << unused) >> unused) : u;
}

static void fold_integers(enum collective_combiner c, jot_dtype d, size_t n, size_t at)
{
    bool is_signed = dtype_get(d)->kind == 'i';
    size_t size = dtype_get(d)->bytes;
    uint64_t acc = integer_at(blocks[0] + at * size, size, is_signed);
    for (size_t j = 1; j < n; j++)
        acc =
            combine_bits(c, is_signed, acc, integer_at(blocks[j] + at * size, size, is_signed));
    memcpy(want + at * size, &acc, size);
}

static double half_at(const char *at, jot_dtype d)
{
    uint16_t h;
    memcpy(&h, at, sizeof h);
    return (double)(d == JOT_F16 ? dtype_f16_to_f32(h) : dtype_bf16_to_f32(h));
}

#define FOLD(type, product)                                                                    \
    do {                                                                                       \
        type acc, x;                                                                           \
        memcpy(&acc, blocks[0] + at * sizeof x, sizeof x);                                     \
        for (size_t j = 1; j < n; j++) {                                                       \
            memcpy(&x, blocks[j] + at * sizeof x, sizeof x);                                   \
            acc = (type)(product);                                                             \
        }                                                                                      \
        memcpy(want + at * sizeof x, &acc, sizeof x);                                          \
    } while (0)

static void fold(enum collective_combiner c, jot_dtype d, size_t n, size_t at)
{
    if (!dtype_is_inexact(d) || c == COLLECTIVE_AND || c == COLLECTIVE_OR) {
        fold_integers(c, d, n, at);
    } else if (dtype_is_half(d)) {
        float acc = (float)half_at(blocks[0] + 2 * at, d);
        for (size_t j = 1; j < n; j++)
            acc = (float)combine_float(c, (double)acc, half_at(blocks[j] + 2 * at, d));
        uint16_t h = d == JOT_F16 ? dtype_f16_from_f32(acc) : dtype_bf16_from_f32(acc);
        memcpy(want + 2 * at, &h, sizeof h);
    } else if (d == JOT_F32) {
        FOLD(float, combine_float(c, (double)acc, (double)x));
    } else if (d == JOT_F64) {
        FOLD(double, combine_float(c, acc, x));
    } else if (d == JOT_C64) {
        FOLD(float complex, c == COLLECTIVE_SUM ? acc + x : acc * x);
    } else {
        FOLD(double complex, c == COLLECTIVE_SUM ? acc + x : acc * x);
    }
}

// ---- operands

// Of any bits; floats are small or special.
static void draw(jot_dtype d, size_t n)
{
    static const double special[] = {0, -0.0, 1, -1, 0.5, -3, INFINITY, -INFINITY, NAN, 1e-7};
    static uint32_t state = 1;
    size_t size = dtype_get(dtype_real(d))->bytes;
    bool is_complex =
        dtype_is_complex(d); // whose products of infinities C has its own rules for
    for (size_t j = 0; j < BLOCKS; j++)
        for (size_t i = 0; i < n * (is_complex ? 2 : 1); i++) {
            state = state * 1664525 + 1013904223;
            uint64_t bits = state * UINT64_C(0x9e3779b97f4a7c15);
            double x = special[(state >> 24) % (is_complex ? 6 : 10)];
            float f = (float)x;
            uint16_t h = d == JOT_F16 ? dtype_f16_from_f64(x) : dtype_bf16_from_f64(x);
            h = state >> 31 ? h : (uint16_t)(state >> 8); // all of their bits, too
            bool is_bool = d == JOT_BOOL;
            bits = is_bool ? bits >> 63 : bits;
            const void *from = !dtype_is_inexact(d) ? (const void *)&bits
                               : dtype_is_half(d)   ? (const void *)&h
                               : size == 4          ? (const void *)&f
                                                    : (const void *)&x;
            memcpy(blocks[j] + i * size, from, size);
        }
}

static bool is_nan_at(jot_dtype d, const char *at)
{
    double x;
    float f;
    memcpy(&x, at, d == JOT_F64 ? 8 : 0);
    memcpy(&f, at, d == JOT_F32 ? 4 : 0);
    return dtype_is_half(d) ? isnan(half_at(at, d))
           : d == JOT_F32   ? isnan(f)
                            : d == JOT_F64 && isnan(x);
}

static void check(enum collective_combiner c, jot_dtype d, size_t n, size_t count, size_t begin)
{
    size_t size = dtype_get(d)->bytes;
    const void *from[BLOCKS];
    // To addresses that vectors are aligned at, and to others.
    void *to[2] = {out[0], out[1] + size};
    for (size_t j = 0; j < BLOCKS; j++)
        from[j] = blocks[j];
    for (size_t i = begin; i < begin + count; i++)
        fold(c, d, n, i);
    for (int is_large = 0; is_large < 2; is_large++) {
        memset(out, 0x5a, sizeof out);
        host_combine(c, d, n, from, begin, begin + count, 2, to, 3, is_large);
        for (int k = 0; k < 2; k++) {
            const char *y = (const char *)to[k] + 3 * size;
            for (size_t i = 0; i < count; i++) {
                const char *have = y + i * size, *right = want + (begin + i) * size;
                bool is_equal =
                    !memcmp(have, right, size) || (is_nan_at(d, have) && is_nan_at(d, right));
                ck_assert_msg(is_equal, "%s of %zu blocks of %s: element %zu of %zu",
                              collective_combiner_name(c), n, jot_dtype_name(d), i, count);
            }
            ck_assert(y[-1] == 0x5a && y[count * size] == 0x5a);
        }
    }
}

START_TEST(vectors_do_what_elements_do)
{
    static const size_t counts[] = {1, 3, 8, 17, 67, MOST - 1};
    enum collective_combiner c = (enum collective_combiner)_i;
    for (int d = 0; dtype_is_valid(d); d++) {
        int64_t params[] = {COLLECTIVE_ALL_REDUCE, c, d, 1, 0}, mesh[] = {BLOCKS};
        struct collective read;
        if (collective_read(params, 5, 1, mesh, &read))
            continue;
        draw((jot_dtype)d, MOST);
        for (size_t n = 1; n <= BLOCKS; n++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                check(c, (jot_dtype)d, n, counts[i], i % 2);
    }
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, vectors_do_what_elements_do, 0, COLLECTIVE_COMBINER_COUNT);
}

int main(void) { return suite_run("runtime/combine", add); }
