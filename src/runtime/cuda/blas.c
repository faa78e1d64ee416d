// SPDX-License-Identifier: Apache-2.0
// Matrix products on a GPU, by cuBLAS.  f32 is f32: TF32 is not used.
#include "runtime/cuda/device.h"

#include "base/status.h"
#include "runtime/steps.h"

#include <stdio.h>

static jot_status blas_status(struct cuda_device *d, cublasStatus_t result)
{
    if (result == CUBLAS_STATUS_SUCCESS)
        return JOT_OK;
    jot_status status = result == CUBLAS_STATUS_ALLOC_FAILED ? JOT_ERR_MEMORY : JOT_ERR_LIBRARY;
    return status_fail(status, "%s: a matrix product: %s", d->base.name,
                       cuda.cublas.cublasGetStatusString(result));
}

// In the context, with the lock.
static jot_status create(struct cuda_device *d)
{
    if (d->blas)
        return JOT_OK;
    cublasHandle_t handle = NULL;
    JOT_TRY(blas_status(d, cuda.cublas.cublasCreate_v2(&handle)));
    jot_status status = blas_status(d, cuda.cublas.cublasSetStream_v2(handle, d->stream));
    if (status == JOT_OK)
        d->blas = handle;
    else
        cuda.cublas.cublasDestroy_v2(handle);
    return status;
}

jot_status cuda_gemm_open(struct cuda_device *d)
{
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_cublas));
    JOT_TRY(cuda_enter(d));
    pthread_mutex_lock(&d->blas_lock);
    jot_status status = create(d);
    pthread_mutex_unlock(&d->blas_lock);
    cuda_leave();
    return status;
}

static cublasOperation_t operation_of(uint32_t transpose)
{
    return transpose == RT_TRANSPOSE_NO    ? CUBLAS_OP_N
           : transpose == RT_TRANSPOSE_YES ? CUBLAS_OP_T
                                           : CUBLAS_OP_C;
}

struct kind {
    cudaDataType type;
    cublasComputeType_t compute;
    size_t element;
};

static struct kind kind_of(uint32_t dtype)
{
    switch ((jot_dtype)dtype) {
    case JOT_F32:
        return (struct kind){CUDA_R_32F, CUBLAS_COMPUTE_32F, 4};
    case JOT_C64:
        return (struct kind){CUDA_C_32F, CUBLAS_COMPUTE_32F, 8};
    case JOT_F64:
        return (struct kind){CUDA_R_64F, CUBLAS_COMPUTE_64F, 8};
    default:
        return (struct kind){CUDA_C_64F, CUBLAS_COMPUTE_64F, 16};
    }
}

// As the library wants leading dimensions, also of matrices without elements.
static int64_t at_least_1(int64_t stride) { return stride > 0 ? stride : 1; }

// c = alpha op(a) op(b) + beta c of rows is, seen as columns, c' = alpha op(b)' op(a)' + beta c'.
// `axis` is the one of the batch that one call runs over.
static jot_status multiply(struct cuda_device *d, const struct rt_gemm *g, int axis,
                           const char *a, const char *b, char *c)
{
    struct kind k = kind_of(g->dtype);
    bool is_double = k.compute == CUBLAS_COMPUTE_64F;
    float alpha_f[2] = {(float)g->alpha, 0}, beta_f[2] = {(float)g->beta, 0};
    double alpha_d[2] = {g->alpha, 0}, beta_d[2] = {g->beta, 0};
    return blas_status(
        d,
        cuda.cublas.cublasGemmStridedBatchedEx_64(
            d->blas, operation_of(g->transpose_b), operation_of(g->transpose_a), g->n, g->m,
            g->k, is_double ? (void *)alpha_d : (void *)alpha_f, b, k.type, at_least_1(g->ldb),
            g->stride_b[axis], a, k.type, at_least_1(g->lda), g->stride_a[axis],
            is_double ? (void *)beta_d : (void *)beta_f, c, k.type, at_least_1(g->ldc),
            g->stride_c[axis], g->batch[axis], k.compute, CUBLAS_GEMM_DEFAULT));
}

// The longest axis of the batch goes into one call.
static int longest_axis(const struct rt_gemm *g)
{
    int axis = 0;
    for (int i = 1; i < RT_GEMM_BATCH_RANK; i++)
        axis = g->batch[i] > g->batch[axis] ? i : axis;
    return axis;
}

static jot_status multiply_all(struct cuda_device *d, const struct rt_gemm *g,
                               void *const *operands)
{
    int axis = longest_axis(g);
    int64_t calls = 1;
    size_t element = kind_of(g->dtype).element;
    for (int i = 0; i < RT_GEMM_BATCH_RANK; i++)
        calls *= i == axis ? g->batch[i] > 0 : g->batch[i];
    for (int64_t call = 0; call < calls; call++) {
        int64_t rest = call, at_a = 0, at_b = 0, at_c = 0;
        for (int i = RT_GEMM_BATCH_RANK - 1; i >= 0; i--) {
            if (i == axis)
                continue;
            int64_t at = rest % g->batch[i];
            rest /= g->batch[i];
            at_a += at * g->stride_a[i];
            at_b += at * g->stride_b[i];
            at_c += at * g->stride_c[i];
        }
        JOT_TRY(multiply(d, g, axis, (const char *)operands[0] + (size_t)at_a * element,
                         (const char *)operands[1] + (size_t)at_b * element,
                         (char *)operands[2] + (size_t)at_c * element));
    }
    return JOT_OK;
}

jot_status cuda_gemm(const struct rt_program *program, const struct rt_bound_step *step,
                     void *const *operands)
{
    struct cuda_device *d = cuda_device_of(program->device);
    if (step->gemm->m == 0 || step->gemm->n == 0)
        return JOT_OK;
    JOT_TRY(cuda_enter(d));
    // A handle is one thread's at a time.
    pthread_mutex_lock(&d->blas_lock);
    jot_status status = multiply_all(d, step->gemm, operands);
    pthread_mutex_unlock(&d->blas_lock);
    cuda_leave();
    return status;
}
