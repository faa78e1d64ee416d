// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/blas.h"

#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/linkage.h"
#include "runtime/host/pool.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ROW_MAJOR = 101, TRANS_NO = 111, TRANS_YES = 112, TRANS_CONJUGATE = 113 };

static struct {
#define BLAS(name, result, parameters) result(*name) parameters;
#include "runtime/host/blas.def"
#undef BLAS
    void *library;
    char version[256];
    char fault[512];
} blas;

// ---- loading ----

// Older builds do not know newer CPUs and fall back to kernels that are five times slower.
static const char *best_core(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return "SKYLAKEX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "HASWELL";
#endif
    return NULL;
}

static void *open_library(void)
{
    const char *asked = secure_getenv("JOT_OPENBLAS");
    const char *names[] = {asked, "libopenblas.so.0", "libopenblas.so"};
    for (size_t i = asked && *asked ? 0 : 1; i < sizeof names / sizeof *names; i++) {
        void *library = rt_open_private(names[i], "cblas_sgemm");
        if (library || i == 0)
            return library;
    }
    return NULL;
}

static bool find_symbols(void *library)
{
    void *symbol;
#define BLAS(name, result, parameters)                                                         \
    if (!(symbol = dlsym(library, #name)))                                                     \
        return false;                                                                          \
    memcpy(&blas.name, &symbol, sizeof symbol);
#include "runtime/host/blas.def"
#undef BLAS
    return true;
}

static void load_blas(void)
{
    if (!rt_has_dynamic_linker()) {
        snprintf(
            blas.fault, sizeof blas.fault,
            "matrix products need OpenBLAS, which a program that is linked fully statically "
            "cannot load: link the C library dynamically (without -static)");
        return;
    }
    // The library reads its variables once, while it is loaded.
    const char *best = best_core(), *core = getenv("OPENBLAS_CORETYPE") ? NULL : best;
    bool has_threads = getenv("OPENBLAS_NUM_THREADS") != NULL;
    if (core)
        setenv("OPENBLAS_CORETYPE", core, 1);
    if (!has_threads)
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *library = open_library();
    const char *reason = library ? NULL : dlerror();
    if (core)
        unsetenv("OPENBLAS_CORETYPE");
    if (!has_threads)
        unsetenv("OPENBLAS_NUM_THREADS");
    if (library && find_symbols(library)) {
        blas.library = library;
        blas.openblas_set_num_threads(1);
        const char *taken = blas.openblas_get_corename();
        snprintf(blas.version, sizeof blas.version, "%s %s", blas.openblas_get_config(), taken);
        if (best && strcasecmp(best, taken) != 0)
            snprintf(blas.version + strlen(blas.version),
                     sizeof blas.version - strlen(blas.version),
                     " (OPENBLAS_CORETYPE; this processor has %s)", best);
        return;
    }
    snprintf(
        blas.fault, sizeof blas.fault,
        "matrix products need OpenBLAS: install it (Debian and Ubuntu: libopenblas0; Fedora: "
        "openblas) or set JOT_OPENBLAS to its path (%s)",
        library  ? "the library found lacks entry points"
        : reason ? reason
                 : "not found");
}

jot_status rt_blas_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_blas);
    return blas.fault[0] ? status_fail(JOT_ERR_LIBRARY, "%s", blas.fault) : JOT_OK;
}

const char *rt_blas_version(void) { return rt_blas_open() == JOT_OK ? blas.version : ""; }

void *rt_blas_symbol(const char *name)
{
    return blas.library ? dlsym(blas.library, name) : NULL;
}

// ---- one tile ----

static int trans_of(uint32_t transpose)
{
    return transpose == RT_TRANSPOSE_NO    ? TRANS_NO
           : transpose == RT_TRANSPOSE_YES ? TRANS_YES
                                           : TRANS_CONJUGATE;
}

// y = alpha op(a) x for a real matrix op(a) of rows by k.
static void multiply_vector(const struct rt_gemm *g, int transpose, int rows, const void *a,
                            int lda, const void *x, int step_x, void *y, int step_y)
{
    int memory_rows = transpose == TRANS_NO ? rows : (int)g->k;
    int memory_columns = transpose == TRANS_NO ? (int)g->k : rows;
    if (g->dtype == JOT_F32)
        blas.cblas_sgemv(ROW_MAJOR, transpose, memory_rows, memory_columns, (float)g->alpha, a,
                         lda, x, step_x, (float)g->beta, y, step_y);
    else
        blas.cblas_dgemv(ROW_MAJOR, transpose, memory_rows, memory_columns, g->alpha, a, lda, x,
                         step_x, g->beta, y, step_y);
}

// A beta of 0 clears NaN; not every version of the library sees to it for vectors.
static void clear_vector(const struct rt_gemm *g, int n, char *y, int step, size_t element)
{
    for (int i = 0; g->beta == 0 && i < n; i++)
        memset(y + (size_t)i * (size_t)step * element, 0, element);
}

// A product with a vector reads the matrix once; a general one packs it first.
static bool multiply_as_vector(const struct rt_gemm *g, int m, int n, const void *a,
                               const void *b, void *c)
{
    int trans_a = g->transpose_a ? TRANS_YES : TRANS_NO;
    int trans_b = g->transpose_b ? TRANS_NO : TRANS_YES; // of b seen from the right
    if ((g->dtype != JOT_F32 && g->dtype != JOT_F64) || (m != 1 && n != 1) || g->k == 0)
        return false;
    clear_vector(g, n == 1 ? m : n, c, n == 1 ? (int)g->ldc : 1, g->dtype == JOT_F32 ? 4 : 8);
    if (n == 1)
        multiply_vector(g, trans_a, m, a, (int)g->lda, b, g->transpose_b ? 1 : (int)g->ldb, c,
                        (int)g->ldc);
    else
        multiply_vector(g, trans_b, n, b, (int)g->ldb, a, g->transpose_a ? (int)g->lda : 1, c,
                        1);
    return true;
}

static void multiply(const struct rt_gemm *g, int m, int n, const void *a, const void *b,
                     void *c)
{
    int ta = trans_of(g->transpose_a), tb = trans_of(g->transpose_b), k = (int)g->k;
    int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    float alpha_c[2] = {(float)g->alpha, 0}, beta_c[2] = {(float)g->beta, 0};
    double alpha_z[2] = {g->alpha, 0}, beta_z[2] = {g->beta, 0};
    if (multiply_as_vector(g, m, n, a, b, c))
        return;
    switch ((jot_dtype)g->dtype) {
    case JOT_F32:
        blas.cblas_sgemm(ROW_MAJOR, ta, tb, m, n, k, alpha_c[0], a, lda, b, ldb, beta_c[0], c,
                         ldc);
        break;
    case JOT_F64:
        blas.cblas_dgemm(ROW_MAJOR, ta, tb, m, n, k, alpha_z[0], a, lda, b, ldb, beta_z[0], c,
                         ldc);
        break;
    case JOT_C64:
        blas.cblas_cgemm(ROW_MAJOR, ta, tb, m, n, k, alpha_c, a, lda, b, ldb, beta_c, c, ldc);
        break;
    default:
        blas.cblas_zgemm(ROW_MAJOR, ta, tb, m, n, k, alpha_z, a, lda, b, ldb, beta_z, c, ldc);
    }
}

// ---- tiles over the pool ----

// A tile packs its operands anew, so few large tiles waste least and many small ones spread
// best. Their number grows with the square root of the work: 2 for 512^3, 4 for 1024^3, 16 for
// 2048^3, which loses a few percent to one call on one thread.
// A side, or sums, many times as long as the rest are cut further: that packs little anew.
#define TILE_WORK 1.2e8
#define TILE_SIDE 128
#define PIECE_WORK 2.4e7
#define PIECE_SIDES 8 // times the rest, which a piece of them is at least
#define CHUNK_WORK 4e6

struct tiling {
    const struct rt_gemm *gemm;
    const char *a, *b;
    char *c;
    size_t element;
    int64_t tile_m, tile_n, tiles_m, tiles_n;
    int64_t matrices, tiles, tiles_per_chunk;
    int64_t pieces, piece_k; // of sums, and their terms
    char *sums;              // of the pieces behind the first, whose sums are in c
};

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void run_tile(const struct tiling *t, int64_t tile)
{
    const struct rt_gemm *g = t->gemm;
    int64_t matrix = tile / (t->tiles_m * t->tiles_n),
            within = tile % (t->tiles_m * t->tiles_n);
    int64_t row = within / t->tiles_n * t->tile_m, column = within % t->tiles_n * t->tile_n;
    int64_t at_a = g->transpose_a ? row : row * g->lda;
    int64_t at_b = g->transpose_b ? column * g->ldb : column;
    int64_t at_c = row * g->ldc + column;
    for (int axis = RT_GEMM_BATCH_RANK - 1; axis >= 0; axis--) {
        int64_t i = matrix % g->batch[axis];
        matrix /= g->batch[axis];
        at_a += i * g->stride_a[axis];
        at_b += i * g->stride_b[axis];
        at_c += i * g->stride_c[axis];
    }
    int64_t m = g->m - row < t->tile_m ? g->m - row : t->tile_m;
    int64_t n = g->n - column < t->tile_n ? g->n - column : t->tile_n;
    multiply(g, (int)m, (int)n, t->a + (size_t)at_a * t->element,
             t->b + (size_t)at_b * t->element, t->c + (size_t)at_c * t->element);
}

static void run_chunk(void *ctx, int64_t chunk, int worker)
{
    const struct tiling *t = ctx;
    (void)worker;
    int64_t end = (chunk + 1) * t->tiles_per_chunk;
    for (int64_t i = chunk * t->tiles_per_chunk; i < end && i < t->tiles; i++)
        run_tile(t, i);
}

static int64_t halved(int64_t side) { return divide_up(divide_up(side, 2), 16) * 16; }

// Long sums of few rows and columns are made in pieces, which are added up in order.
static void choose_pieces(struct tiling *t)
{
    const struct rt_gemm *g = t->gemm;
    double flops =
        2.0 * (double)g->m * (double)g->n * (dtype_is_complex((jot_dtype)g->dtype) ? 4 : 1);
    int64_t rest = most(g->m, g->n), k = g->k;
    while (t->matrices == 1 && flops * (double)k > PIECE_WORK && k >= 2 * PIECE_SIDES * rest)
        k = halved(k);
    t->piece_k = k;
    t->pieces = divide_up(g->k, k);
}

static void run_piece(void *ctx, int64_t piece, int worker)
{
    const struct tiling *t = ctx;
    struct rt_gemm g = *t->gemm;
    int64_t first = piece * t->piece_k;
    int64_t at_a = g.transpose_a ? first * g.lda : first;
    int64_t at_b = g.transpose_b ? first : first * g.ldb;
    char *c = t->c;
    (void)worker;
    g.k = g.k - first < t->piece_k ? g.k - first : t->piece_k;
    if (piece > 0) {
        c = t->sums + (size_t)((piece - 1) * g.m * g.n) * t->element;
        g.ldc = g.n;
        g.beta = 0;
    }
    multiply(&g, (int)g.m, (int)g.n, t->a + (size_t)at_a * t->element,
             t->b + (size_t)at_b * t->element, c);
}

static void add_sums(void *ctx, int64_t row, int worker)
{
    const struct tiling *t = ctx;
    const struct rt_gemm *g = t->gemm;
    jot_dtype dtype = (jot_dtype)g->dtype;
    int64_t n = g->n * (dtype_is_complex(dtype) ? 2 : 1);
    void *to = t->c + (size_t)(row * g->ldc) * t->element;
    (void)worker;
    for (int64_t piece = 1; piece < t->pieces; piece++) {
        const void *from = t->sums + (size_t)(((piece - 1) * g->m + row) * g->n) * t->element;
        for (int64_t i = 0; i < n; i++)
            if (dtype_real(dtype) == JOT_F32)
                ((float *)to)[i] += ((const float *)from)[i];
            else
                ((double *)to)[i] += ((const double *)from)[i];
    }
}

static jot_status run_pieces(struct rt_pool *pool, struct tiling *t)
{
    const struct rt_gemm *g = t->gemm;
    size_t bytes = (size_t)((t->pieces - 1) * g->m * g->n) * t->element;
    t->sums = rt_block_allocate(bytes);
    if (!t->sums)
        return status_fail(JOT_ERR_MEMORY, "out of memory: %zu bytes for parts of sums", bytes);
    rt_pool_run(pool, INT_MAX, run_piece, t, t->pieces);
    rt_pool_run(pool, INT_MAX, add_sums, t, g->m);
    rt_block_release(t->sums, bytes);
    return JOT_OK;
}

// Halves the longer side while the halves are still worth a call, with sides that are multiples
// of what the library's inner kernels work on.
static void choose_tiles(struct tiling *t, int64_t shares)
{
    const struct rt_gemm *g = t->gemm;
    double flops = 2.0 * (double)g->k * (dtype_is_complex((jot_dtype)g->dtype) ? 4 : 1);
    int64_t m = g->m, n = g->n;
    double limit = 1.22e4 * sqrt(flops * (double)m * (double)n * (double)shares);
    limit = limit < TILE_WORK ? TILE_WORK : limit;
    while (flops * (double)m * (double)n > limit) {
        if (m >= n && m >= 2 * TILE_SIDE)
            m = halved(m);
        else if (n >= 2 * TILE_SIDE)
            n = halved(n);
        else
            break;
    }
    int64_t *side = m > n ? &m : &n, rest = most(m > n ? n : m, g->k);
    while (flops * (double)m * (double)n > PIECE_WORK && *side >= 2 * PIECE_SIDES * rest)
        *side = halved(*side);
    t->tile_m = m;
    t->tile_n = n;
    t->tiles_m = divide_up(g->m, m);
    t->tiles_n = divide_up(g->n, n);
    t->tiles = t->tiles_m * t->tiles_n * t->matrices;
    double work = flops * (double)m * (double)n;
    t->tiles_per_chunk = work < CHUNK_WORK ? 1 + (int64_t)(CHUNK_WORK / (work + 1)) : 1;
}

// Without products to add, only beta is left.  As in the library, 0 clears even NaN.
static void scale(const struct rt_gemm *g, char *c, size_t element)
{
    for (int64_t row = 0; row < g->m; row++) {
        char *at = c + (size_t)(row * g->ldc) * element;
        if (g->beta == 0) {
            memset(at, 0, (size_t)g->n * element);
            continue;
        }
        size_t parts = dtype_is_complex((jot_dtype)g->dtype) ? 2 : 1;
        for (size_t i = 0; i < (size_t)g->n * parts; i++)
            if (dtype_real((jot_dtype)g->dtype) == JOT_F32)
                ((float *)(void *)at)[i] *= (float)g->beta;
            else
                ((double *)(void *)at)[i] *= g->beta;
    }
}

static void scale_all(const struct tiling *t)
{
    const struct rt_gemm *g = t->gemm;
    for (int64_t matrix = 0; matrix < t->matrices; matrix++) {
        int64_t at = 0, rest = matrix;
        for (int axis = RT_GEMM_BATCH_RANK - 1; axis >= 0; axis--) {
            at += rest % g->batch[axis] * g->stride_c[axis];
            rest /= g->batch[axis];
        }
        scale(g, t->c + (size_t)at * t->element, t->element);
    }
}

jot_status rt_gemm(struct rt_pool *pool, const struct rt_gemm *g, int64_t shares, const void *a,
                   const void *b, void *c)
{
    struct tiling t = {.gemm = g, .a = a, .b = b, .c = c, .matrices = 1};
    t.element = dtype_get((jot_dtype)g->dtype)->bytes;
    for (int axis = 0; axis < RT_GEMM_BATCH_RANK; axis++)
        t.matrices *= g->batch[axis];
    if (g->m == 0 || g->n == 0 || t.matrices == 0)
        return JOT_OK;
    if (g->k == 0) {
        scale_all(&t);
        return JOT_OK;
    }
    JOT_TRY(rt_blas_open());
    if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || g->lda > INT_MAX ||
        g->ldb > INT_MAX || g->ldc > INT_MAX)
        return status_fail(
            JOT_ERR_SHAPE,
            "a matrix product of [%lld, %lld] by [%lld, %lld]: OpenBLAS takes extents "
            "below 2^31",
            (long long)g->m, (long long)g->k, (long long)g->k, (long long)g->n);
    choose_pieces(&t);
    if (t.pieces > 1)
        return run_pieces(pool, &t);
    choose_tiles(&t, shares);
    rt_pool_run(pool, INT_MAX, run_chunk, &t, divide_up(t.tiles, t.tiles_per_chunk));
    return JOT_OK;
}
