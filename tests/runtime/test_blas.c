// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/blas.h"

#include "jot/device.h"
#include "runtime/host/pool.h"
#include "support/suite.h"

#include <check.h>
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned seed;

// Tests have a process each and load the library themselves; where it is not installed they
// have nothing to say.
#define NEED_LIBRARY                                                                           \
    do {                                                                                       \
        if (rt_blas_open() != JOT_OK) {                                                        \
            printf("skipped: %s\n", jot_error_message());                                      \
            return;                                                                            \
        }                                                                                      \
    } while (0)

static int below(int n) { return rand() % n; }

static size_t bytes_of(uint32_t dtype) { return jot_dtype_size((jot_dtype)dtype); }

static double complex get(uint32_t dtype, const void *at, int64_t i)
{
    switch (dtype) {
    case JOT_F32:
        return (double)((const float *)at)[i];
    case JOT_F64:
        return ((const double *)at)[i];
    case JOT_C64:
        return ((const float complex *)at)[i];
    default:
        return ((const double complex *)at)[i];
    }
}

static void *random_matrix(uint32_t dtype, int64_t count)
{
    bool is_single = dtype == JOT_F32 || dtype == JOT_C64;
    int64_t reals = count * (int64_t)bytes_of(dtype) / (is_single ? 4 : 8);
    void *data = malloc((size_t)count * bytes_of(dtype) + 8);
    for (int64_t i = 0; i < reals; i++) {
        double x = rand() / (double)RAND_MAX - 0.5;
        if (is_single)
            ((float *)data)[i] = (float)x;
        else
            ((double *)data)[i] = x;
    }
    return data;
}

static double complex element(const struct rt_gemm *g, const void *matrix, bool is_a,
                              int64_t at, int64_t row, int64_t column)
{
    uint32_t transpose = is_a ? g->transpose_a : g->transpose_b;
    int64_t lead = is_a ? g->lda : g->ldb;
    at += transpose ? column * lead + row : row * lead + column;
    double complex x = get(g->dtype, matrix, at);
    return transpose == RT_TRANSPOSE_CONJUGATE ? conj(x) : x;
}

// The largest error against a naive loop over one matrix of the batch.
static double error_of(const struct rt_gemm *g, const void *a, const void *b, const void *c,
                       const void *old_c, const int64_t at[3])
{
    double worst = 0;
    for (int64_t row = 0; row < g->m; row++)
        for (int64_t column = 0; column < g->n; column++) {
            double complex sum = 0;
            int64_t i = at[2] + row * g->ldc + column;
            for (int64_t k = 0; k < g->k; k++)
                sum +=
                    element(g, a, true, at[0], row, k) * element(g, b, false, at[1], k, column);
            sum *= g->alpha;
            if (g->beta != 0)
                sum += g->beta * get(g->dtype, old_c, i);
            double error = cabs(sum - get(g->dtype, c, i));
            worst = error > worst || isnan(error) ? error : worst;
        }
    return worst;
}

// The first ones have sums, rows or columns so long that they are cut.
static struct rt_gemm random_gemm(int round)
{
    static const int64_t lengths[][3] = {{30, 40, 12001}, {12001, 30, 40}, {40, 12001, 30}};
    static const uint32_t dtypes[] = {JOT_F32, JOT_F64, JOT_C64, JOT_C128};
    static const int sizes[] = {0, 1, 1, 2, 3, 17, 64, 130, 300};
    struct rt_gemm g = {.dtype = dtypes[below(4)],
                        .transpose_a = (uint32_t)below(3),
                        .transpose_b = (uint32_t)below(3),
                        .m = sizes[below(9)],
                        .n = sizes[below(9)],
                        .k = sizes[below(9)],
                        .alpha = below(2) ? 1 : -0.5,
                        .beta = below(2) ? 0 : 0.25,
                        .batch = {1, 1, 1, 1}};
    if (round < 3) {
        g.dtype = below(2) ? JOT_F64 : JOT_C128;
        g.m = lengths[round][0];
        g.n = lengths[round][1];
        g.k = lengths[round][2];
    } else if (g.m * g.n * g.k < 300000)
        for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
            g.batch[i] = 1 + below(3);
    g.lda = (g.transpose_a ? g.m : g.k) + below(3);
    g.ldb = (g.transpose_b ? g.k : g.n) + below(3);
    g.ldc = g.n + below(3);
    return g;
}

START_TEST(agrees_with_a_loop)
{
    NEED_LIBRARY;
    printf("agrees_with_a_loop: seed %u\n", seed);
    for (int round = 0; round < 150; round++) {
        struct rt_gemm g = random_gemm(round);
        int64_t size_a = (g.transpose_a ? g.k : g.m) * g.lda, size_c = g.m * g.ldc;
        int64_t size_b = (g.transpose_b ? g.n : g.k) * g.ldb, matrices = 1;
        for (int i = RT_GEMM_BATCH_RANK - 1; i >= 0; i--) {
            g.stride_a[i] = i == 1 ? 0 : size_a * matrices; // one axis of a repeats
            g.stride_b[i] = size_b * matrices;
            g.stride_c[i] = size_c * matrices;
            matrices *= g.batch[i];
        }
        void *a = random_matrix(g.dtype, size_a * matrices);
        void *b = random_matrix(g.dtype, size_b * matrices);
        void *old_c = random_matrix(g.dtype, size_c * matrices);
        void *c = malloc((size_t)(size_c * matrices) * bytes_of(g.dtype) + 8);
        if (g.beta == 0) // what is not read may be anything
            memset(old_c, 0xff, (size_t)(size_c * matrices) * bytes_of(g.dtype));
        memcpy(c, old_c, (size_t)(size_c * matrices) * bytes_of(g.dtype));
        ck_assert_int_eq(rt_gemm(rt_pool_default(), &g, 1, a, b, c), JOT_OK);
        double limit = bytes_of(g.dtype) == 4 || g.dtype == JOT_C64 ? 1e-4 : 1e-12;
        for (int64_t i = 0; i < matrices; i++) {
            int64_t at[3] = {0, i * size_b, i * size_c}, rest = i;
            for (int axis = RT_GEMM_BATCH_RANK - 1; axis >= 0; axis--) {
                at[0] += rest % g.batch[axis] * g.stride_a[axis];
                rest /= g.batch[axis];
            }
            double error = error_of(&g, a, b, c, old_c, at);
            ck_assert_msg(error < limit, "%s %lldx%lldx%lld transposed %u %u: error %g",
                          jot_dtype_name((jot_dtype)g.dtype), (long long)g.m, (long long)g.n,
                          (long long)g.k, g.transpose_a, g.transpose_b, error);
        }
        free(a), free(b), free(c), free(old_c);
    }
}
END_TEST

static struct rt_gemm square(uint32_t dtype, int64_t n)
{
    return (struct rt_gemm){.dtype = dtype,
                            .m = n,
                            .n = n,
                            .k = n,
                            .lda = n,
                            .ldb = n,
                            .ldc = n,
                            .alpha = 1,
                            .batch = {1, 1, 1, 1}};
}

START_TEST(bits_do_not_depend_on_threads)
{
    NEED_LIBRARY;
    struct rt_gemm g = square(JOT_F32, 600);
    if (_i) { // of a long sum
        g.m = g.n = g.lda = g.ldb = g.ldc = 20;
        g.k = 18000;
        g.transpose_a = RT_TRANSPOSE_YES;
    }
    void *a = random_matrix(JOT_F32, 600 * 600), *b = random_matrix(JOT_F32, 600 * 600);
    void *first = random_matrix(JOT_F32, 600 * 600), *c = random_matrix(JOT_F32, 600 * 600);
    memcpy(c, first, 600 * 600 * 4);
    ck_assert_int_eq(rt_gemm(NULL, &g, 1, a, b, first), JOT_OK);
    for (int threads = 1; threads <= 5; threads++) {
        ck_assert_int_eq(jot_set_threads(threads), JOT_OK);
        ck_assert_int_eq(rt_gemm(rt_pool_default(), &g, 1, a, b, c), JOT_OK);
        ck_assert_int_eq(memcmp(first, c, 600 * 600 * 4), 0);
    }
    free(a), free(b), free(c), free(first);
}
END_TEST

START_TEST(shares_have_the_bits_of_the_whole)
{
    NEED_LIBRARY;
    enum { N = 1024 };
    struct rt_gemm g = square(JOT_F32, N);
    float *a = random_matrix(JOT_F32, N * N), *b = random_matrix(JOT_F32, N * N);
    float *c = malloc(N * N * sizeof *c), *rows = malloc(N * N * sizeof *rows);
    ck_assert_int_eq(rt_gemm(NULL, &g, 1, a, b, c), JOT_OK);
    g.m = N / 2;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(rt_gemm(NULL, &g, 2, a + i * N * N / 2, b, rows + i * N * N / 2),
                         JOT_OK);
    ck_assert_int_eq(memcmp(c, rows, N * N * sizeof *c), 0);
    free(a), free(b), free(c), free(rows);
}
END_TEST

START_TEST(refuses_what_the_library_cannot)
{
    NEED_LIBRARY;
    float x[1] = {0};
    struct rt_gemm g = square(JOT_F32, 1);
    g.lda = INT64_C(1) << 32;
    ck_assert_int_eq(rt_gemm(NULL, &g, 1, x, x, x), JOT_ERR_SHAPE);
}
END_TEST

START_TEST(leaves_the_environment)
{
    unsetenv("OPENBLAS_CORETYPE");
    setenv("OPENBLAS_NUM_THREADS", "7", 1);
    NEED_LIBRARY;
    ck_assert_ptr_null(getenv("OPENBLAS_CORETYPE"));
    ck_assert_str_eq(getenv("OPENBLAS_NUM_THREADS"), "7");
    printf("%s\n", rt_blas_version());
}
END_TEST

// Releases of OpenBLAS that do not know a processor take kernels of older ones for it.
START_TEST(takes_the_core_of_the_processor)
{
    unsetenv("OPENBLAS_CORETYPE");
    NEED_LIBRARY;
#if defined(__x86_64__)
    const char *version = rt_blas_version(), *core = strrchr(version, ' ') + 1;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        ck_assert_str_eq(core, "SkylakeX");
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        ck_assert_str_eq(core, "Haswell");
#endif
}
END_TEST

START_TEST(takes_the_core_that_the_user_wants)
{
#if defined(__x86_64__)
    setenv("OPENBLAS_CORETYPE", "SANDYBRIDGE", 1);
    NEED_LIBRARY;
    ck_assert_ptr_nonnull(strstr(rt_blas_version(), " Sandybridge"));
    ck_assert_str_eq(getenv("OPENBLAS_CORETYPE"), "SANDYBRIDGE");
    // And says that another one would suit.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        ck_assert_ptr_nonnull(
            strstr(rt_blas_version(), " (OPENBLAS_CORETYPE; this processor has SKYLAKEX)"));
#endif
}
END_TEST

// A library that the program has already keeps its number of threads.
START_TEST(leaves_the_library_of_others)
{
    void *theirs = dlopen("libopenblas.so.0", RTLD_LOCAL | RTLD_NOW);
    if (!theirs)
        return;
    void (*set_threads)(int);
    int (*get_threads)(void);
    *(void **)&set_threads = dlsym(theirs, "openblas_set_num_threads");
    *(void **)&get_threads = dlsym(theirs, "openblas_get_num_threads");
    set_threads(2);
    ck_assert_int_eq(rt_blas_open(), JOT_OK);
    float a[1] = {3}, b[1] = {5}, c[1] = {0};
    struct rt_gemm g = square(JOT_F32, 1);
    ck_assert_int_eq(rt_gemm(NULL, &g, 1, a, b, c), JOT_OK);
    ck_assert(c[0] == 15);
    ck_assert_int_eq(get_threads(), 2);
    dlclose(theirs);
}
END_TEST

START_TEST(says_what_to_install)
{
    setenv("JOT_OPENBLAS", "/no/such/library.so", 1);
    ck_assert_int_eq(rt_blas_open(), JOT_ERR_LIBRARY);
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "install"));
    ck_assert_ptr_nonnull(strstr(jot_error_message(), "/no/such/library.so"));
    ck_assert_str_eq(rt_blas_version(), "");
    struct rt_gemm g = square(JOT_F32, 1);
    float x[1] = {0};
    ck_assert_int_eq(rt_gemm(NULL, &g, 1, x, x, x), JOT_ERR_LIBRARY);
}
END_TEST

static void add_tests(TCase *tests)
{
    seed = (unsigned)time(NULL);
    srand(seed);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, leaves_the_library_of_others);
    tcase_add_test(tests, says_what_to_install);
    tcase_add_test(tests, agrees_with_a_loop);
    tcase_add_loop_test(tests, bits_do_not_depend_on_threads, 0, 2);
    tcase_add_test(tests, shares_have_the_bits_of_the_whole);
    tcase_add_test(tests, refuses_what_the_library_cannot);
    tcase_add_test(tests, leaves_the_environment);
    tcase_add_test(tests, takes_the_core_of_the_processor);
    tcase_add_test(tests, takes_the_core_that_the_user_wants);
}

int main(void) { return suite_run("blas", add_tests); }
