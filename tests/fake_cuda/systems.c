// SPDX-License-Identifier: Apache-2.0
// What of cuBLAS is no product, by the LAPACK of the host.
#include "fake_cuda/lapack.h"

#include <string.h>

#define FAILED 7

struct cublasContext {
    CUstream stream;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *out)
{
    *out = fake_untracked(calloc(1, sizeof **out));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

CUstream fake_blas_stream(cublasHandle_t handle) { return handle->stream; }

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    return handle && workspace && bytes ? CUBLAS_STATUS_SUCCESS : FAILED;
}

struct system {
    jot_dtype dtype;
    int side, triangle, operation, diagonal, m, n, lda, ldb;
    double alpha[2];
    void *a, *b;
};

typedef void trsm_function(const char *side, const char *uplo, const char *trans,
                           const char *diag, const int *m, const int *n, const void *alpha,
                           const void *a, const int *lda, void *b, const int *ldb, size_t,
                           size_t, size_t, size_t);

static void run_trsm(void *argument)
{
    struct system *s = argument;
    ((trsm_function *)lapack(LAPACK_trsm, s->dtype))(
        s->side == CUBLAS_SIDE_LEFT ? "L" : "R",
        s->triangle == CUBLAS_FILL_MODE_LOWER ? "L" : "U",
        s->operation == CUBLAS_OP_N   ? "N"
        : s->operation == CUBLAS_OP_T ? "T"
                                      : "C",
        s->diagonal == CUBLAS_DIAG_UNIT ? "U" : "N", &s->m, &s->n, s->alpha, s->a, &s->lda,
        s->b, &s->ldb, 1, 1, 1, 1);
}

#define TRSM(letter, dtype, type)                                                              \
    cublasStatus_t cublas##letter##trsm_v2(                                                    \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t triangle,               \
        cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,                  \
        const type *alpha, const type *a, int lda, type *b, int ldb)                           \
    {                                                                                          \
        struct system s = {dtype, side, triangle, operation, diagonal, m,                      \
                           n,     lda,  ldb,      {0},       near(a),  near(b)};               \
        memcpy(s.alpha, alpha, sizeof *alpha);                                                 \
        if (!handle->stream)                                                                   \
            return FAILED;                                                                     \
        fake_submit(handle->stream, run_trsm, &s, sizeof s);                                   \
        return CUBLAS_STATUS_SUCCESS;                                                          \
    }
TRSM(S, JOT_F32, float)
TRSM(D, JOT_F64, double)
TRSM(C, JOT_C64, cuComplex)
TRSM(Z, JOT_C128, cuDoubleComplex)

typedef void trsv_function(const char *uplo, const char *trans, const char *diag, const int *n,
                           const void *a, const int *lda, void *x, const int *stride, size_t,
                           size_t, size_t);

static void run_trsv(void *argument)
{
    struct system *s = argument;
    ((trsv_function *)lapack(LAPACK_trsv, s->dtype))(
        s->triangle == CUBLAS_FILL_MODE_LOWER ? "L" : "U",
        s->operation == CUBLAS_OP_N   ? "N"
        : s->operation == CUBLAS_OP_T ? "T"
                                      : "C",
        s->diagonal == CUBLAS_DIAG_UNIT ? "U" : "N", &s->n, s->a, &s->lda, s->b, &s->ldb, 1, 1,
        1);
}

#define TRSV(letter, dtype, type)                                                              \
    cublasStatus_t cublas##letter##trsv_v2(                                                    \
        cublasHandle_t handle, cublasFillMode_t triangle, cublasOperation_t operation,         \
        cublasDiagType_t diagonal, int n, const type *a, int lda, type *x, int stride)         \
    {                                                                                          \
        struct system s = {dtype, 0,   triangle, operation, diagonal, 1,                       \
                           n,     lda, stride,   {0},       near(a),  near(x)};                \
        if (!handle->stream)                                                                   \
            return FAILED;                                                                     \
        fake_submit(handle->stream, run_trsv, &s, sizeof s);                                   \
        return CUBLAS_STATUS_SUCCESS;                                                          \
    }
TRSV(S, JOT_F32, float)
TRSV(D, JOT_F64, double)
TRSV(C, JOT_C64, cuComplex)
TRSV(Z, JOT_C128, cuDoubleComplex)

// The same for each of the matrices.
struct systems {
    struct system one;
    int count;
};

static void run_trsm_batched(void *argument)
{
    struct systems *all = argument;
    for (int i = 0; i < all->count; i++) {
        struct system s = all->one;
        s.a = near(((void **)s.a)[i]);
        s.b = near(((void **)s.b)[i]);
        run_trsm(&s);
    }
}

#define TRSM_BATCHED(letter, dtype, type)                                                      \
    cublasStatus_t cublas##letter##trsmBatched(                                                \
        cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t triangle,               \
        cublasOperation_t operation, cublasDiagType_t diagonal, int m, int n,                  \
        const type *alpha, const type *const *a, int lda, type *const *b, int ldb, int count)  \
    {                                                                                          \
        struct systems s = {{dtype,                                                            \
                             side,                                                             \
                             triangle,                                                         \
                             operation,                                                        \
                             diagonal,                                                         \
                             m,                                                                \
                             n,                                                                \
                             lda,                                                              \
                             ldb,                                                              \
                             {0},                                                              \
                             near(a),                                                          \
                             near(b)},                                                         \
                            count};                                                            \
        memcpy(s.one.alpha, alpha, sizeof *alpha);                                             \
        if (!handle->stream)                                                                   \
            return FAILED;                                                                     \
        fake_submit(handle->stream, run_trsm_batched, &s, sizeof s);                           \
        return CUBLAS_STATUS_SUCCESS;                                                          \
    }
TRSM_BATCHED(S, JOT_F32, float)
TRSM_BATCHED(D, JOT_F64, double)
TRSM_BATCHED(C, JOT_C64, cuComplex)
TRSM_BATCHED(Z, JOT_C128, cuDoubleComplex)

struct factorings {
    jot_dtype dtype;
    int n, lda, count;
    void **addresses;
    int *pivots, *info;
};

static void run_getrf_batched(void *argument)
{
    const struct factorings *all = argument;
    for (int i = 0; i < all->count; i++)
        ((void (*)(const int *, const int *, void *, const int *, int *, int *))lapack(
            LAPACK_getrf, all->dtype))(&all->n, &all->n, near(all->addresses[i]), &all->lda,
                                       all->pivots + i * all->n, all->info + i);
}

#define GETRF_BATCHED(letter, dtype, type)                                                     \
    cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t handle, int n, type *const *a,  \
                                                int lda, int *pivots, int *info, int count)    \
    {                                                                                          \
        struct factorings f = {dtype, n, lda, count, near(a), near(pivots), near(info)};       \
        if (!handle->stream)                                                                   \
            return FAILED;                                                                     \
        fake_submit(handle->stream, run_getrf_batched, &f, sizeof f);                          \
        return CUBLAS_STATUS_SUCCESS;                                                          \
    }
GETRF_BATCHED(S, JOT_F32, float)
GETRF_BATCHED(D, JOT_F64, double)
GETRF_BATCHED(C, JOT_C64, cuComplex)
GETRF_BATCHED(Z, JOT_C128, cuDoubleComplex)
