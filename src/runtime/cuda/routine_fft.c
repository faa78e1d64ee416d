// SPDX-License-Identifier: Apache-2.0
// The routine fft, by cuFFT.  Plans are kept as long as the device is, by what they transform.
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/routine.h"

#include "base/dtype.h"
#include "base/fft.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/cuda/matrix.h"

#include <string.h>

enum { AXES_MOST = 3 }; // that cuFFT transforms at once

struct key {
    enum fft_kind kind; // an inverse is its forward one, but from a half
    int is_double, n_axes;
    long long batch, sizes[AXES_MOST];
};

struct cuda_fft_plan {
    struct cuda_fft_plan *next; // of the device
    struct key key;
    cufftHandle handle;
    size_t work;
};

struct fft {
    struct cuda_routine base;
    const struct cuda_fft_plan *plan;
    bool is_inverse;
    CUfunction scale; // of an inverse
    double factor;
    size_t copy;   // IRFFT: of the operand, which cuFFT overwrites; in the workspace
    int64_t count; // real numbers of the result
};

static jot_status fft_status(struct cuda_device *d, cufftResult result)
{
    if (result == CUFFT_SUCCESS)
        return JOT_OK;
    return status_fail(result == CUFFT_ALLOC_FAILED ? JOT_ERR_MEMORY : JOT_ERR_LIBRARY,
                       "%s: a Fourier transform: cuFFT fails with %d", d->base.name, result);
}

// ---- Plans

static cufftResult make_plan(struct cuda_fft_plan *p)
{
    struct key k = p->key;
    cudaDataType complex = k.is_double ? CUDA_C_64F : CUDA_C_32F,
                 real = k.is_double ? CUDA_R_64F : CUDA_R_32F;
    cufftResult result = cuda.cufft.cufftCreate(&p->handle);
    if (result != CUFFT_SUCCESS)
        return result;
    result = cuda.cufft.cufftSetAutoAllocation(p->handle, 0);
    if (result == CUFFT_SUCCESS)
        result = cuda.cufft.cufftXtMakePlanMany(
            p->handle, k.n_axes, k.sizes, NULL, 1, 0, k.kind == FFT_RFFT ? real : complex, NULL,
            1, 0, k.kind == FFT_IRFFT ? real : complex, k.batch, &p->work, complex);
    if (result != CUFFT_SUCCESS)
        cuda.cufft.cufftDestroy(p->handle);
    return result;
}

// Under the lock.
static jot_status find_plan(struct cuda_device *d, const struct key *key,
                            const struct cuda_fft_plan **out)
{
    for (struct cuda_fft_plan *p = d->fft_plans; p; p = p->next)
        if (!memcmp(&p->key, key, sizeof *key)) {
            *out = p;
            return JOT_OK;
        }
    struct cuda_fft_plan *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    p->key = *key;
    jot_status status = fft_status(d, make_plan(p));
    if (status != JOT_OK) {
        memory_release(p);
        return status;
    }
    p->next = d->fft_plans;
    d->fft_plans = p;
    *out = p;
    return JOT_OK;
}

// ---- Running

static cufftResult execute(struct cuda_device *d, const struct fft *f, void *from, void *to,
                           void *work)
{
    cufftHandle plan = f->plan->handle;
    cufftResult result = cuda.cufft.cufftSetStream(plan, cuda_stream(d));
    if (result == CUFFT_SUCCESS && f->plan->work)
        result = cuda.cufft.cufftSetWorkArea(plan, work);
    return result == CUFFT_SUCCESS
               ? cuda.cufft.cufftXtExec(plan, from, to,
                                        f->is_inverse ? CUFFT_INVERSE : CUFFT_FORWARD)
               : result;
}

static jot_status run_fft(struct cuda_device *d, const struct cuda_routine *r,
                          void *const *operands, char *workspace)
{
    const struct fft *f = (const struct fft *)r;
    void *from = operands[0];
    if (f->plan->key.kind == FFT_IRFFT) {
        from = workspace + f->copy;
        JOT_TRY(cuda_copy(&d->base, from, &d->base, operands[0], r->call.bytes[0]));
    }
    pthread_mutex_lock(&d->routine_lock);
    cufftResult result = execute(d, f, from, operands[1], workspace);
    pthread_mutex_unlock(&d->routine_lock);
    JOT_TRY(fft_status(d, result));
    if (!f->is_inverse)
        return JOT_OK;
    uint64_t factor;
    memcpy(&factor, &f->factor, sizeof factor);
    return cuda_start(
        d, &(struct cuda_start){f->scale,
                                cuda_blocks(d, f->count),
                                256,
                                {cuda_address(operands[1]), (uint64_t)f->count, factor}});
}

// ---- Binding

jot_status cuda_fft_bind(struct cuda_device *d, const struct rt_routine_call *call,
                         struct cuda_routine **out)
{
    jot_dtype dtype = (jot_dtype)call->params[0], real = dtype_real(dtype);
    enum fft_kind kind = (enum fft_kind)call->params[2];
    struct key key;
    memset(&key, 0, sizeof key); // what is between its members is compared too
    key.kind = kind == FFT_IFFT ? FFT_FFT : kind;
    key.is_double = real == JOT_F64;
    key.n_axes = (int)call->param_count - 3;
    key.batch = call->params[1];
    // cuFFT leaves out a last axis of one element, and takes the axis before it for that of the half.
    bool has_one =
        kind == FFT_IRFFT && key.n_axes > 1 && call->params[call->param_count - 1] == 1;
    if (key.n_axes > AXES_MOST || has_one)
        return JOT_OK;
    double factor = 1;
    for (int i = 0; i < key.n_axes; i++) {
        key.sizes[i] = call->params[3 + i];
        factor /= (double)key.sizes[i];
    }
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_cufft));
    struct fft *f = memory_allocate_zeroed(sizeof *f);
    if (!f)
        return status_out_of_memory();
    f->base = (struct cuda_routine){.run = run_fft};
    f->factor = factor;
    f->is_inverse = fft_is_inverse(kind);
    f->count = (int64_t)(call->bytes[1] / dtype_get(real)->bytes);
    jot_status status = JOT_OK;
    if (f->is_inverse)
        status = cuda_matrix_kernels(d, CUDA_OF_MATRICES, real, "scale", &f->scale);
    if (status == JOT_OK) {
        pthread_mutex_lock(&d->routine_lock);
        status = find_plan(d, &key, &f->plan);
        pthread_mutex_unlock(&d->routine_lock);
    }
    if (status != JOT_OK) {
        memory_release(f);
        return status;
    }
    cuda_take(&f->base.workspace, f->plan->work);
    if (kind == FFT_IRFFT)
        f->copy = cuda_take(&f->base.workspace, call->bytes[0]);
    *out = &f->base;
    return JOT_OK;
}
