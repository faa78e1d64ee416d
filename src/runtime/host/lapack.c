// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/lapack.h"

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/blas.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
    lapack_function *functions[LAPACK_COUNT][4]; // s, d, c, z
    bool lacks;
} lapack;

static void load_lapack(void)
{
    static const char *const names[][2] = {
#define LAPACK(name, complex_name) {#name, #complex_name},
#include "runtime/host/lapack.def"
#undef LAPACK
    };
    char name[16];
    for (int i = 0; i < LAPACK_COUNT; i++)
        for (int form = 0; form < 4; form++) {
            if (!*names[i][form >= 2])
                continue;
            snprintf(name, sizeof name, "%c%s_", "sdcz"[form], names[i][form >= 2]);
            void *symbol = rt_blas_symbol(name);
            memcpy(&lapack.functions[i][form], &symbol, sizeof symbol);
            lapack.lacks = lapack.lacks || !symbol;
        }
}

jot_status rt_lapack_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    JOT_TRY(rt_blas_open());
    pthread_once(&once, load_lapack);
    return lapack.lacks
               ? status_fail(JOT_ERR_LIBRARY,
                             "decompositions need an OpenBLAS with LAPACK: that which was "
                             "found, %s, has none; set JOT_OPENBLAS to the path of another",
                             rt_blas_version())
               : JOT_OK;
}

lapack_function *rt_lapack(enum lapack_name name, jot_dtype dtype)
{
    int form = dtype == JOT_F32 ? 0 : dtype == JOT_F64 ? 1 : dtype == JOT_C64 ? 2 : 3;
    return lapack.functions[name][form];
}

// ---- Matrices

// Blocks of a side whose lines stay in the first cache, and rows that are worth a thread's while.
#define SIDE 16
#define ROWS 64

// Blocks of 16 bytes a row are turned in registers.
#define TRANSPOSE(name, type)                                                                  \
    static void name(int64_t m, int64_t n, const type *from, int64_t row, type *to,            \
                     int64_t column)                                                           \
    {                                                                                          \
        enum { W = 16 / sizeof(type) };                                                        \
        for (int64_t r = 0; r < m; r += SIDE)                                                  \
            for (int64_t c = 0; c < n; c += SIDE) {                                            \
                int64_t last = r + SIDE < m ? r + SIDE : m;                                    \
                int64_t limit = c + SIDE < n ? c + SIDE : n, i = r;                            \
                for (; i + W <= last; i += W) {                                                \
                    int64_t j = c;                                                             \
                    for (; j + W <= limit; j += W)                                             \
                        name##_block(row, column, from + i * row + j, to + j * column + i);    \
                    for (; j < limit; j++)                                                     \
                        for (int64_t k = i; k < i + W; k++)                                    \
                            to[j * column + k] = from[k * row + j];                            \
                }                                                                              \
                for (; i < last; i++)                                                          \
                    for (int64_t j = c; j < limit; j++)                                        \
                        to[j * column + i] = from[i * row + j];                                \
            }                                                                                  \
    }

typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));
struct element16 {
    uint64_t parts[2];
};

static void transpose_4_block(int64_t n, int64_t m, const uint32_t *from, uint32_t *to)
{
    four a, b, c, d;
    memcpy(&a, from, 16);
    memcpy(&b, from + n, 16);
    memcpy(&c, from + 2 * n, 16);
    memcpy(&d, from + 3 * n, 16);
    four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    c = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    d = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
    memcpy(to, &a, 16);
    memcpy(to + m, &b, 16);
    memcpy(to + 2 * m, &c, 16);
    memcpy(to + 3 * m, &d, 16);
}

static void transpose_8_block(int64_t n, int64_t m, const uint64_t *from, uint64_t *to)
{
    two a, b;
    memcpy(&a, from, 16);
    memcpy(&b, from + n, 16);
    two low = __builtin_shufflevector(a, b, 0, 2), high = __builtin_shufflevector(a, b, 1, 3);
    memcpy(to, &low, 16);
    memcpy(to + m, &high, 16);
}

static void transpose_16_block(int64_t n, int64_t m, const struct element16 *from,
                               struct element16 *to)
{
    (void)n;
    (void)m;
    *to = *from;
}

TRANSPOSE(transpose_4, uint32_t)
TRANSPOSE(transpose_8, uint64_t)
TRANSPOSE(transpose_16, struct element16)

struct transposition {
    size_t element;
    int64_t m, n;
    const void *from;
    void *to;
};

void rt_transpose_part(size_t element, int64_t m, int64_t n, const void *from, int64_t row,
                       void *to, int64_t column)
{
    if (element == 4)
        transpose_4(m, n, from, row, to, column);
    else if (element == 8)
        transpose_8(m, n, from, row, to, column);
    else
        transpose_16(m, n, from, row, to, column);
}

static void transpose_rows(void *ctx, int64_t chunk, int worker)
{
    const struct transposition *t = ctx;
    int64_t first = chunk * ROWS, rows = t->m - first < ROWS ? t->m - first : ROWS;
    (void)worker;
    rt_transpose_part(t->element, rows, t->n,
                      (const char *)t->from + (size_t)(first * t->n) * t->element, t->n,
                      (char *)t->to + (size_t)first * t->element, t->m);
}

void rt_transpose(size_t element, int64_t m, int64_t n, const void *from, void *to)
{
    struct transposition t = {element, m, n, from, to};
    rt_pool_run(rt_pool_default(), INT_MAX, transpose_rows, &t, (m + ROWS - 1) / ROWS);
}

// What is not finite has an exponent of ones: those of four words, or two, at a time.
bool rt_is_finite(jot_dtype dtype, int64_t count, const void *x)
{
    bool is_f32 = dtype_real(dtype) == JOT_F32;
    int64_t bytes = count * (int64_t)dtype_get(dtype)->bytes, at = 0;
    four mask_32 = {0x7f800000u, 0x7f800000u, 0x7f800000u, 0x7f800000u}, word_32;
    two mask_64 = {0x7ff0000000000000u, 0x7ff0000000000000u}, word_64;
    uint64_t found[2];
    four found_32 = {0};
    two found_64 = {0};
    for (; at < bytes && is_f32; at += 16) {
        if (bytes - at < 16) {
            word_32 = (four){0};
            memcpy(&word_32, (const char *)x + at, (size_t)(bytes - at));
        } else
            memcpy(&word_32, (const char *)x + at, 16);
        found_32 |= (four)((word_32 & mask_32) == mask_32);
    }
    for (; at < bytes; at += 16) {
        if (bytes - at < 16) {
            word_64 = (two){0};
            memcpy(&word_64, (const char *)x + at, (size_t)(bytes - at));
        } else
            memcpy(&word_64, (const char *)x + at, 16);
        found_64 |= (two)((word_64 & mask_64) == mask_64);
    }
    found_64 |= (two)found_32;
    memcpy(found, &found_64, sizeof found);
    return !(found[0] | found[1]);
}

void rt_each_matrix(const struct rt_routine_call *call, rt_pool_body *body, void *ctx,
                    int64_t chunks)
{
    if (chunks >= call->workers)
        rt_pool_run(rt_pool_default(), call->workers, body, ctx, chunks);
    else
        for (int64_t i = 0; i < chunks; i++)
            body(ctx, i, 0);
}
