// SPDX-License-Identifier: Apache-2.0
// cuFFT, by the routine of the host.
#include "fake_cuda/fake.h"

#include "base/fft.h"
#include "runtime/routine.h"

#include <string.h>

#define PLANS_MOST 1024
#define WORK 512

static struct plan {
    int64_t params[6];
    uint32_t n_axes;
    int64_t batch;
    cudaDataType from, to;
    CUstream stream;
    bool has_work;
} plans[PLANS_MOST];
static int count, transforms;

int fake_cuda_transforms(void) { return transforms; }

cufftResult cufftGetVersion(int *version)
{
    *version = 12000;
    return CUFFT_SUCCESS;
}

cufftResult cufftCreate(cufftHandle *out)
{
    long fault = fake_number("FAKE_CUDA_NO_FFT", 0);
    if (count == PLANS_MOST || fault)
        return fault ? (cufftResult)fault : CUFFT_ALLOC_FAILED;
    *out = count++;
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle plan)
{
    plans[plan].n_axes = 0;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetAutoAllocation(cufftHandle plan, int is_wanted)
{
    (void)plan;
    return is_wanted ? 4 : CUFFT_SUCCESS;
}

cufftResult cufftXtMakePlanMany(cufftHandle plan, int n_axes, long long *sizes,
                                long long *in_embed, long long in_stride, long long in_next,
                                cudaDataType from, long long *out_embed, long long out_stride,
                                long long out_next, cudaDataType to, long long batch,
                                size_t *work, cudaDataType compute)
{
    struct plan *p = &plans[plan];
    (void)in_stride;
    (void)in_next;
    (void)out_stride;
    (void)out_next;
    if (in_embed || out_embed || n_axes > 3 || (compute != CUDA_C_32F && compute != CUDA_C_64F))
        return 4;
    bool is_half = from != to && from != CUDA_R_32F && from != CUDA_R_64F;
    if (is_half && n_axes > 1 && sizes[n_axes - 1] == 1)
        return 4; // the library's result is that of another axis
    *p = (struct plan){.n_axes = (uint32_t)n_axes, .batch = batch, .from = from, .to = to};
    p->params[0] = from == CUDA_R_32F   ? JOT_F32
                   : from == CUDA_R_64F ? JOT_F64
                   : from == CUDA_C_32F ? JOT_C64
                                        : JOT_C128;
    p->params[1] = batch;
    for (int i = 0; i < n_axes; i++)
        p->params[3 + i] = sizes[i];
    *work = WORK;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream)
{
    plans[plan].stream = stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetWorkArea(cufftHandle plan, void *work)
{
    plans[plan].has_work = ((CUdeviceptr)(uintptr_t)work & FAKE_FAR) != 0;
    return CUFFT_SUCCESS;
}

struct transform {
    struct plan plan;
    int direction;
    void *operands[2];
};

static size_t size_of(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_C_64F ? 16 : 8;
}

// Inverses of cuFFT are not scaled.
static void grow(const struct plan *p, uint64_t bytes, double by, void *x)
{
    bool is_float = p->to == CUDA_C_32F || p->to == CUDA_R_32F;
    for (uint64_t i = 0; is_float && i < bytes / 4; i++)
        ((float *)x)[i] = (float)((double)((float *)x)[i] * by);
    for (uint64_t i = 0; !is_float && i < bytes / 8; i++)
        ((double *)x)[i] *= by;
}

static void run_transform(void *argument)
{
    struct transform *t = argument;
    struct plan *p = &t->plan;
    transforms++;
    bool from_real = p->from == CUDA_R_32F || p->from == CUDA_R_64F,
         to_real = p->to == CUDA_R_32F || p->to == CUDA_R_64F;
    bool is_inverse = to_real || (!from_real && t->direction == CUFFT_INVERSE);
    uint64_t in = size_of(p->from) * (uint64_t)p->batch,
             out = size_of(p->to) * (uint64_t)p->batch;
    double all = 1;
    for (uint32_t i = 0; i < p->n_axes; i++) {
        int64_t n = p->params[3 + i], half = i == p->n_axes - 1 ? fft_half(n) : n;
        in *= (uint64_t)(to_real ? half : n);
        out *= (uint64_t)(from_real ? half : n);
        all *= (double)n;
    }
    p->params[2] = to_real ? FFT_IRFFT : from_real ? FFT_RFFT : is_inverse ? FFT_IFFT : FFT_FFT;
    struct rt_routine_call call = {.params = p->params,
                                   .param_count = 3 + p->n_axes,
                                   .operand_count = 2,
                                   .read_count = 1,
                                   .bytes = {in, out},
                                   .operands = t->operands};
    const struct rt_routine *fft = rt_routine_find("fft");
    size_t scratch;
    if (fft->check(&call) != JOT_OK || fft->bind(&call, &scratch) != JOT_OK ||
        rt_routine_run(fft, &call, scratch) != JOT_OK)
        abort();
    if (is_inverse)
        grow(p, out, all, t->operands[1]);
    if (to_real) // as cuFFT may do
        memset(t->operands[0], 0xff, in);
}

cufftResult cufftXtExec(cufftHandle plan, void *from, void *to, int direction)
{
    struct transform t = {.plan = plans[plan],
                          .direction = direction,
                          .operands = {fake_near((CUdeviceptr)(uintptr_t)from),
                                       fake_near((CUdeviceptr)(uintptr_t)to)}};
    if (!t.plan.stream || !t.plan.n_axes || !t.plan.has_work)
        return 4;
    if (fake_number("FAKE_CUDA_FFT_FAULT", 0))
        return (cufftResult)fake_number("FAKE_CUDA_FFT_FAULT", 0);
    fake_submit(t.plan.stream, run_transform, &t, sizeof t);
    return CUFFT_SUCCESS;
}
