// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/lapack.h"

#include "base/status.h"
#include "runtime/host/blas.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
    lapack_function *functions[LAPACK_COUNT][4]; // s, d, c, z
    bool lacks;
} lapack;

static void load(void)
{
    static const char *const names[][2] = {
#define LAPACK(name, complex_name) {#name, #complex_name},
#include "runtime/host/lapack.def"
#undef LAPACK
    };
    char name[16];
    for (int i = 0; i < LAPACK_COUNT; i++)
        for (int form = 0; form < 4; form++) {
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
    pthread_once(&once, load);
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

// Blocks of a side whose lines stay in the first cache.
#define SIDE 16

#define TRANSPOSE(name, type)                                                                  \
    static void name(int64_t m, int64_t n, const type *from, type *to)                         \
    {                                                                                          \
        for (int64_t r = 0; r < m; r += SIDE)                                                  \
            for (int64_t c = 0; c < n; c += SIDE)                                              \
                for (int64_t i = r; i < r + SIDE && i < m; i++)                                \
                    for (int64_t j = c; j < c + SIDE && j < n; j++)                            \
                        to[j * m + i] = from[i * n + j];                                       \
    }

struct element16 {
    uint64_t parts[2];
};
TRANSPOSE(transpose_4, uint32_t)
TRANSPOSE(transpose_8, uint64_t)
TRANSPOSE(transpose_16, struct element16)

void rt_transpose(size_t element, int64_t m, int64_t n, const void *from, void *to)
{
    if (element == 4)
        transpose_4(m, n, from, to);
    else if (element == 8)
        transpose_8(m, n, from, to);
    else
        transpose_16(m, n, from, to);
}
