// SPDX-License-Identifier: Apache-2.0
// cuSOLVER, by the LAPACK of the host.
#include "fake_cuda/lapack.h"

#include "runtime/host/panels.h"

#include <string.h>

#define WORK 512
#define FAILED 7

struct cusolverDnContext {
    CUstream stream;
};
struct cusolverDnParams {
    int unused;
};

cusolverStatus_t cusolverGetVersion(int *version)
{
    *version = 12000;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *out)
{
    *out = fake_untracked(calloc(1, sizeof **out));
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *out)
{
    *out = fake_untracked(calloc(1, sizeof **out));
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

static int factorings;
int fake_cuda_factorings(void) { return factorings; }

// A call: what there is of it.
struct call {
    jot_dtype dtype;
    int triangle, m, n, k, lda;
    char left, right;
    void *a, *b, *c, *d;
    int *info;
};

// What the routines want: some of the device, and some of the host where it has a part.
static cusolverStatus_t ask(size_t *device, size_t *host, size_t of_host)
{
    *device = WORK;
    *host = of_host;
    return CUSOLVER_STATUS_SUCCESS;
}

// Fails where a stream is captured that the host has a part in.
static cusolverStatus_t submit(cusolverDnHandle_t handle, void (*run)(void *), struct call *c,
                               const void *work, size_t bytes, bool is_captured)
{
    if (!handle->stream || !work || bytes < WORK || (handle->stream->capture && !is_captured))
        return FAILED;
    if (fake_number("FAKE_CUDA_SOLVER_FAULT", 0))
        return (cusolverStatus_t)fake_number("FAKE_CUDA_SOLVER_FAULT", 0);
    factorings++;
    fake_submit(handle->stream, run, c, sizeof *c);
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle,
                                             cusolverDnParams_t params,
                                             cublasFillMode_t triangle, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda,
                                             cudaDataType compute, size_t *device, size_t *host)
{
    (void)handle;
    (void)params;
    (void)triangle;
    (void)n;
    (void)type;
    (void)a;
    (void)lda;
    (void)compute;
    return ask(device, host, 0);
}

static void run_potrf(void *argument)
{
    struct call *c = argument;
    ((void (*)(const char *, const int *, void *, const int *, int *, size_t))lapack(
        LAPACK_potrf, c->dtype))(c->triangle == CUBLAS_FILL_MODE_UPPER ? "U" : "L", &c->n, c->a,
                                 &c->lda, c->info, 1);
}

cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cublasFillMode_t triangle, int64_t n, cudaDataType type,
                                  void *a, int64_t lda, cudaDataType compute, void *work,
                                  size_t bytes, void *host, size_t host_bytes, int *info)
{
    struct call c = {.dtype = dtype_of(type),
                     .triangle = triangle,
                     .n = (int)n,
                     .lda = (int)lda,
                     .a = near(a),
                     .info = near(info)};
    (void)host;
    (void)host_bytes;
    return params && compute == type ? submit(handle, run_potrf, &c, work, bytes, true)
                                     : FAILED;
}

static void run_potrf_batched(void *argument)
{
    struct call c = *(struct call *)argument;
    void **addresses = c.a;
    for (int *info = c.info; c.k--; addresses++) {
        c.a = near(*addresses);
        c.info = info++;
        run_potrf(&c);
    }
}

#define POTRF_BATCHED(letter, type_of, type)                                                   \
    cusolverStatus_t cusolverDn##letter##potrfBatched(cusolverDnHandle_t handle,               \
                                                      cublasFillMode_t triangle, int n,        \
                                                      type **a, int lda, int *info, int count) \
    {                                                                                          \
        struct call c = {.dtype = type_of,                                                     \
                         .triangle = triangle,                                                 \
                         .n = n,                                                               \
                         .k = count,                                                           \
                         .lda = lda,                                                           \
                         .a = near(a),                                                         \
                         .info = near(info)};                                                  \
        return submit(handle, run_potrf_batched, &c, a, WORK, true);                           \
    }
POTRF_BATCHED(S, JOT_F32, float)
POTRF_BATCHED(D, JOT_F64, double)
POTRF_BATCHED(C, JOT_C64, cuComplex)
POTRF_BATCHED(Z, JOT_C128, cuDoubleComplex)

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle,
                                             cusolverDnParams_t params, int64_t m, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda,
                                             cudaDataType compute, size_t *device, size_t *host)
{
    (void)handle;
    (void)params;
    (void)m;
    (void)n;
    (void)type;
    (void)a;
    (void)lda;
    (void)compute;
    return ask(device, host, 0);
}

static void run_getrf(void *argument)
{
    struct call *c = argument;
    int steps = c->m < c->n ? c->m : c->n;
    int64_t *pivots = c->b;
    int *found = malloc((size_t)steps * sizeof *found);
    ((void (*)(const int *, const int *, void *, const int *, int *, int *))lapack(
        LAPACK_getrf, c->dtype))(&c->m, &c->n, c->a, &c->lda, found, c->info);
    for (int i = 0; i < steps; i++)
        pivots[i] = found[i];
    free(found);
}

cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  int64_t m, int64_t n, cudaDataType type, void *a, int64_t lda,
                                  int64_t *pivots, cudaDataType compute, void *work,
                                  size_t bytes, void *host, size_t host_bytes, int *info)
{
    struct call c = {.dtype = dtype_of(type),
                     .m = (int)m,
                     .n = (int)n,
                     .lda = (int)lda,
                     .a = near(a),
                     .b = near(pivots),
                     .info = near(info)};
    (void)host;
    (void)host_bytes;
    return params && compute == type ? submit(handle, run_getrf, &c, work, bytes, true)
                                     : FAILED;
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle,
                                             cusolverDnParams_t params, int64_t m, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda,
                                             cudaDataType tau_type, const void *tau,
                                             cudaDataType compute, size_t *device, size_t *host)
{
    (void)handle;
    (void)params;
    (void)m;
    (void)n;
    (void)type;
    (void)a;
    (void)lda;
    (void)tau_type;
    (void)tau;
    (void)compute;
    return ask(device, host, WORK);
}

// Elements of workspace, by far enough for what tests factor.
static void *make_work(jot_dtype dtype, int64_t m, int64_t n, int *count)
{
    *count = (int)(8 * (m + n) * (m + n) + 4096);
    return malloc((size_t)*count * dtype_get(dtype)->bytes);
}

static void run_geqrf(void *argument)
{
    struct call *c = argument;
    void *work = malloc((size_t)c->n * dtype_get(c->dtype)->bytes);
    ((void (*)(const int *, const int *, void *, const int *, void *, void *, int *))lapack(
        LAPACK_geqr2, c->dtype))(&c->m, &c->n, c->a, &c->lda, c->b, work, c->info);
    free(work);
}

cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  int64_t m, int64_t n, cudaDataType type, void *a, int64_t lda,
                                  cudaDataType tau_type, void *tau, cudaDataType compute,
                                  void *work, size_t bytes, void *host, size_t host_bytes,
                                  int *info)
{
    struct call c = {.dtype = dtype_of(type),
                     .m = (int)m,
                     .n = (int)n,
                     .lda = (int)lda,
                     .a = near(a),
                     .b = near(tau),
                     .info = near(info)};
    return params && compute == type && tau_type == type && host && host_bytes == WORK
               ? submit(handle, run_geqrf, &c, work, bytes, false)
               : FAILED;
}

// The reflectors on the first columns of the identity.
static void run_orgqr(void *argument)
{
    struct call *c = argument;
    size_t element = dtype_get(c->dtype)->bytes, m = (size_t)c->m, n = (size_t)c->n;
    char *v = malloc(m * (size_t)c->k * element),
         *t = malloc(reflectors_triangles(c->k) * element),
         *work = malloc(reflectors_work(c->k, c->n) * element);
    struct reflectors r = {
        .dtype = c->dtype, .m = c->m, .k = c->k, .v = v, .ldv = c->m, .t = t};
    lapack(LAPACK_larft, c->dtype); // opened
    memcpy(v, c->a, m * (size_t)c->k * element);
    memset(c->a, 0, m * n * element);
    for (size_t i = 0; i < n; i++)
        if (dtype_real(c->dtype) == JOT_F32)
            memcpy((char *)c->a + i * (m + 1) * element, &(float){1}, sizeof(float));
        else
            memcpy((char *)c->a + i * (m + 1) * element, &(double){1}, sizeof(double));
    reflectors_prepare(&r, c->b);
    reflectors_apply(&r, true, c->n, c->a, c->lda, work);
    *c->info = 0;
    free(v);
    free(t);
    free(work);
}

#define FORM(name, of, type)                                                                   \
    cusolverStatus_t cusolverDn##name##_bufferSize(cusolverDnHandle_t handle, int m, int n,    \
                                                   int k, const type *a, int lda,              \
                                                   const type *tau, int *count)                \
    {                                                                                          \
        (void)handle;                                                                          \
        (void)m;                                                                               \
        (void)n;                                                                               \
        (void)k;                                                                               \
        (void)a;                                                                               \
        (void)lda;                                                                             \
        (void)tau;                                                                             \
        *count = WORK;                                                                         \
        return CUSOLVER_STATUS_SUCCESS;                                                        \
    }                                                                                          \
    cusolverStatus_t cusolverDn##name(cusolverDnHandle_t handle, int m, int n, int k, type *a, \
                                      int lda, const type *tau, type *work, int count,         \
                                      int *info)                                               \
    {                                                                                          \
        struct call c = {.dtype = of,                                                          \
                         .m = m,                                                               \
                         .n = n,                                                               \
                         .k = k,                                                               \
                         .lda = lda,                                                           \
                         .a = near(a),                                                         \
                         .b = near(tau),                                                       \
                         .info = near(info)};                                                  \
        return submit(handle, run_orgqr, &c, work, (size_t)count, true);                       \
    }
FORM(Sorgqr, JOT_F32, float)
FORM(Dorgqr, JOT_F64, double)
FORM(Cungqr, JOT_C64, cuComplex)
FORM(Zungqr, JOT_C128, cuDoubleComplex)

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle,
                                             cusolverDnParams_t params, cusolverEigMode_t mode,
                                             cublasFillMode_t triangle, int64_t n,
                                             cudaDataType type, const void *a, int64_t lda,
                                             cudaDataType real, const void *w,
                                             cudaDataType compute, size_t *device, size_t *host)
{
    (void)handle;
    (void)params;
    (void)mode;
    (void)triangle;
    (void)n;
    (void)type;
    (void)a;
    (void)lda;
    (void)real;
    (void)w;
    (void)compute;
    return ask(device, host, WORK);
}

static void run_syevd(void *argument)
{
    struct call *c = argument;
    int count, rcount = (int)(8 * c->n * c->n + 4096), icount = 8 * c->n + 64;
    void *work = make_work(c->dtype, c->n, c->n, &count),
         *rwork = malloc((size_t)rcount * sizeof(double));
    int *iwork = malloc((size_t)icount * sizeof *iwork);
    const char *job = c->left ? "V" : "N",
               *uplo = c->triangle == CUBLAS_FILL_MODE_LOWER ? "L" : "U";
    lapack_function *f = lapack(LAPACK_syevd, c->dtype);
    if (dtype_is_complex(c->dtype))
        ((void (*)(const char *, const char *, const int *, void *, const int *, void *, void *,
                   const int *, void *, const int *, int *, const int *, int *, size_t,
                   size_t))f)(job, uplo, &c->n, c->a, &c->lda, c->b, work, &count, rwork,
                              &rcount, iwork, &icount, c->info, 1, 1);
    else
        ((void (*)(const char *, const char *, const int *, void *, const int *, void *, void *,
                   const int *, int *, const int *, int *, size_t, size_t))f)(
            job, uplo, &c->n, c->a, &c->lda, c->b, work, &count, iwork, &icount, c->info, 1, 1);
    if (fake_number("FAKE_CUDA_NO_CONVERGENCE", 0))
        *c->info = 1;
    if (fake_number("FAKE_CUDA_WRONG_VECTORS", 0))
        *(double *)c->a += 0.125;
    free(work);
    free(rwork);
    free(iwork);
}

cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cusolverEigMode_t mode, cublasFillMode_t triangle, int64_t n,
                                  cudaDataType type, void *a, int64_t lda, cudaDataType real,
                                  void *w, cudaDataType compute, void *work, size_t bytes,
                                  void *host, size_t host_bytes, int *info)
{
    struct call c = {.dtype = dtype_of(type),
                     .triangle = triangle,
                     .n = (int)n,
                     .lda = (int)lda,
                     .left = mode == CUSOLVER_EIG_MODE_VECTOR,
                     .a = near(a),
                     .b = near(w),
                     .info = near(info)};
    bool is_real = real == CUDA_R_32F || real == CUDA_R_64F;
    return params && compute == type && is_real && host && host_bytes == WORK
               ? submit(handle, run_syevd, &c, work, bytes, false)
               : FAILED;
}

// So that three matrices are more than a call may want.
#define BATCH_WORK ((size_t)100 << 20)

cusolverStatus_t
cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  cusolverEigMode_t mode, cublasFillMode_t triangle, int64_t n,
                                  cudaDataType type, const void *a, int64_t lda,
                                  cudaDataType real, const void *w, cudaDataType compute,
                                  size_t *device, size_t *host, int64_t count)
{
    cusolverStatus_t status = cusolverDnXsyevd_bufferSize(
        handle, params, mode, triangle, n, type, a, lda, real, w, compute, device, host);
    *device = (size_t)count * BATCH_WORK;
    return status;
}

static void run_syev_batched(void *argument)
{
    struct call c = *(struct call *)argument;
    size_t element = dtype_get(c.dtype)->bytes, part = dtype_get(dtype_real(c.dtype))->bytes;
    for (int count = c.k; count--; c.info++) {
        run_syevd(&c);
        c.a = (char *)c.a + (size_t)(c.n * c.n) * element;
        c.b = (char *)c.b + (size_t)c.n * part;
    }
}

cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                        cusolverEigMode_t mode, cublasFillMode_t triangle,
                                        int64_t n, cudaDataType type, void *a, int64_t lda,
                                        cudaDataType real, void *w, cudaDataType compute,
                                        void *work, size_t bytes, void *host, size_t host_bytes,
                                        int *info, int64_t count)
{
    struct call c = {.dtype = dtype_of(type),
                     .triangle = triangle,
                     .n = (int)n,
                     .k = (int)count,
                     .lda = (int)lda,
                     .left = mode == CUSOLVER_EIG_MODE_VECTOR,
                     .a = near(a),
                     .b = near(w),
                     .info = near(info)};
    bool is_real = real == CUDA_R_32F || real == CUDA_R_64F;
    return params && compute == type && is_real && host && host_bytes == WORK &&
                   bytes >= (size_t)count * BATCH_WORK
               ? submit(handle, run_syev_batched, &c, work, bytes, false)
               : FAILED;
}

cusolverStatus_t cusolverDnXgesvd_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, signed char left, signed char right,
    int64_t m, int64_t n, cudaDataType type, const void *a, int64_t lda, cudaDataType real,
    const void *s, cudaDataType type_u, const void *u, int64_t ldu, cudaDataType type_v,
    const void *v, int64_t ldv, cudaDataType compute, size_t *device, size_t *host)
{
    (void)handle;
    (void)params;
    (void)left;
    (void)right;
    (void)m;
    (void)n;
    (void)type;
    (void)a;
    (void)lda;
    (void)real;
    (void)s;
    (void)type_u;
    (void)u;
    (void)ldu;
    (void)type_v;
    (void)v;
    (void)ldv;
    (void)compute;
    return ask(device, host, WORK);
}

static void run_gesvd(void *argument)
{
    struct call *c = argument;
    int count, rows = c->left == 'A' ? c->n : c->k;
    size_t large = (size_t)(c->m + c->n);
    void *work = make_work(c->dtype, c->m, c->n, &count),
         *rwork = malloc((20 * large * large + 64) * sizeof(double)),
         *iwork = malloc(8 * large * sizeof(int));
    char job[] = {c->left, 0};
    lapack_function *f = lapack(LAPACK_gesdd, c->dtype);
    if (dtype_is_complex(c->dtype))
        ((void (*)(const char *, const int *, const int *, void *, const int *, void *, void *,
                   const int *, void *, const int *, void *, const int *, void *, int *, int *,
                   size_t))f)(job, &c->m, &c->n, c->a, &c->lda, c->b, c->c, &c->m, c->d, &rows,
                              work, &count, rwork, iwork, c->info, 1);
    else
        ((void (*)(const char *, const int *, const int *, void *, const int *, void *, void *,
                   const int *, void *, const int *, void *, const int *, int *, int *,
                   size_t))f)(job, &c->m, &c->n, c->a, &c->lda, c->b, c->c, &c->m, c->d, &rows,
                              work, &count, iwork, c->info, 1);
    free(work);
    free(rwork);
    free(iwork);
}

cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                  signed char left, signed char right, int64_t m, int64_t n,
                                  cudaDataType type, void *a, int64_t lda, cudaDataType real,
                                  void *s, cudaDataType type_u, void *u, int64_t ldu,
                                  cudaDataType type_v, void *v, int64_t ldv,
                                  cudaDataType compute, void *work, size_t bytes, void *host,
                                  size_t host_bytes, int *info)
{
    struct call c = {.dtype = dtype_of(type),
                     .m = (int)m,
                     .n = (int)n,
                     .k = (int)n,
                     .lda = (int)lda,
                     .left = (char)left,
                     .right = (char)right,
                     .a = near(a),
                     .b = near(s),
                     .c = near(u),
                     .d = near(v),
                     .info = near(info)};
    (void)real;
    if (!params || m < n || left != right || type_u != type || type_v != type ||
        compute != type || !host || host_bytes != WORK ||
        (left != 'N' && (ldu != m || ldv != n)))
        return FAILED;
    return submit(handle, run_gesvd, &c, work, bytes, false);
}

cusolverStatus_t cusolverDnXgesvdr_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, signed char left, signed char right,
    int64_t m, int64_t n, int64_t k, int64_t p, int64_t steps, cudaDataType type, const void *a,
    int64_t lda, cudaDataType real, const void *s, cudaDataType type_u, const void *u,
    int64_t ldu, cudaDataType type_v, const void *v, int64_t ldv, cudaDataType compute,
    size_t *device, size_t *host)
{
    (void)k;
    (void)p;
    (void)steps;
    return cusolverDnXgesvd_bufferSize(handle, params, left, right, m, n, type, a, lda, real, s,
                                       type_u, u, ldu, type_v, v, ldv, compute, device, host);
}

// All of f64, of which the first k are given: v, not its transpose.  Or the last ones, which
// are as much a part of the matrix.
static void run_gesvdr(void *argument)
{
    struct call *c = argument, all = *c;
    size_t m = (size_t)c->m, n = (size_t)c->n, k = (size_t)c->k;
    size_t first = fake_number("FAKE_CUDA_OTHER_VALUES", 0) ? n - k : 0;
    double *s = malloc(n * sizeof *s), *u = malloc(m * n * sizeof *u),
           *vt = malloc(n * n * sizeof *vt), *v = c->d;
    all.k = c->n;
    all.left = 'S';
    all.b = s;
    all.c = u;
    all.d = vt;
    run_gesvd(&all);
    memcpy(c->b, s + first, k * sizeof *s);
    memcpy(c->c, u + first * m, m * k * sizeof *u);
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < n; j++)
            v[i * n + j] = vt[j * n + first + i];
    if (fake_number("FAKE_CUDA_WRONG_VECTORS", 0))
        *v += 0.125;
    free(s);
    free(u);
    free(vt);
}

cusolverStatus_t cusolverDnXgesvdr(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                   signed char left, signed char right, int64_t m, int64_t n,
                                   int64_t k, int64_t p, int64_t steps, cudaDataType type,
                                   void *a, int64_t lda, cudaDataType real, void *s,
                                   cudaDataType type_u, void *u, int64_t ldu,
                                   cudaDataType type_v, void *v, int64_t ldv,
                                   cudaDataType compute, void *work, size_t bytes, void *host,
                                   size_t host_bytes, int *info)
{
    struct call c = {.dtype = dtype_of(type),
                     .m = (int)m,
                     .n = (int)n,
                     .k = (int)k,
                     .lda = (int)lda,
                     .a = near(a),
                     .b = near(s),
                     .c = near(u),
                     .d = near(v),
                     .info = near(info)};
    if (!params || m < n || left != 'S' || right != 'S' || type != CUDA_R_64F || real != type ||
        type_u != type || type_v != type || compute != type || !host || host_bytes != WORK ||
        ldu != m || ldv != n || k + p > n || steps < 0)
        return FAILED;
    return submit(handle, run_gesvdr, &c, work, bytes, false);
}
