// SPDX-License-Identifier: Apache-2.0
// cuDNN's convolutions, by the routine of the host.
#include "fake_cuda/fake.h"

#include "base/conv.h"
#include "base/dtype.h"
#include "runtime/routine.h"

#include <string.h>

#define WORK 4096
#define RANK_MOST (CONV_AXES_MOST + 2)
#define BAD_PARAM 2000
#define NOT_SUPPORTED 3000

struct cudnnContext {
    CUstream stream;
};
struct cudnnTensorStruct {
    int type, rank, dims[RANK_MOST], strides[RANK_MOST];
};
struct cudnnFilterStruct {
    int type, format, rank, dims[RANK_MOST];
};
struct cudnnConvolutionStruct {
    int n, groups, math, compute, lists[CONV_LISTS][CONV_AXES_MOST];
};

static int convolutions;

int fake_cuda_convolutions(void) { return convolutions; }

size_t cudnnGetVersion(void) { return 91900; }

static void *made(size_t bytes) { return fake_untracked(calloc(1, bytes)); }

#define MAKE(name, type)                                                                       \
    cudnnStatus_t name(type *out)                                                              \
    {                                                                                          \
        *out = made(sizeof **out);                                                             \
        return CUDNN_STATUS_SUCCESS;                                                           \
    }
#define DROP(name, type)                                                                       \
    cudnnStatus_t name(type x)                                                                 \
    {                                                                                          \
        free(x);                                                                               \
        return CUDNN_STATUS_SUCCESS;                                                           \
    }
MAKE(cudnnCreate, cudnnHandle_t)
DROP(cudnnDestroy, cudnnHandle_t)
MAKE(cudnnCreateTensorDescriptor, cudnnTensorDescriptor_t)
DROP(cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t)
MAKE(cudnnCreateFilterDescriptor, cudnnFilterDescriptor_t)
DROP(cudnnDestroyFilterDescriptor, cudnnFilterDescriptor_t)
MAKE(cudnnCreateConvolutionDescriptor, cudnnConvolutionDescriptor_t)
DROP(cudnnDestroyConvolutionDescriptor, cudnnConvolutionDescriptor_t)

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t type,
                                         int rank, const int *dims, const int *strides)
{
    if (rank < 4 || rank > RANK_MOST)
        return BAD_PARAM;
    t->type = type;
    t->rank = rank;
    memcpy(t->dims, dims, sizeof *dims * (size_t)rank);
    memcpy(t->strides, strides, sizeof *strides * (size_t)rank);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t w, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int *dims)
{
    if (rank < 4 || rank > RANK_MOST)
        return BAD_PARAM;
    w->type = type;
    w->format = format;
    w->rank = rank;
    memcpy(w->dims, dims, sizeof *dims * (size_t)rank);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int n,
                                              const int *padding, const int *strides,
                                              const int *dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    const int *lists[CONV_LISTS] = {
        [CONV_STRIDES] = strides, [CONV_PADDING] = padding, [CONV_DILATION] = dilation};
    if (n < 2 || n > CONV_AXES_MOST || mode != CUDNN_CROSS_CORRELATION)
        return BAD_PARAM;
    c->n = n;
    c->compute = compute;
    for (int i = 0; i < CONV_LISTS; i++)
        memcpy(c->lists[i], lists[i], sizeof(int) * (size_t)n);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups)
{
    c->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math)
{
    c->math = math;
    return CUDNN_STATUS_SUCCESS;
}

static int dtype_of(int type)
{
    return type == CUDNN_DATA_DOUBLE     ? JOT_F64
           : type == CUDNN_DATA_FLOAT    ? JOT_F32
           : type == CUDNN_DATA_HALF     ? JOT_F16
           : type == CUDNN_DATA_BFLOAT16 ? JOT_BF16
                                         : -1;
}

// Dims in the order of the axes in memory; false for strides that are none of a dense array.
static bool read_tensor(const struct cudnnTensorStruct *t, enum conv_layout layout, int n,
                        enum conv_part part, int64_t *out)
{
    int64_t apart = 1;
    for (int at = n + 1; at >= 0; at--) {
        int first = conv_spatial(layout, part), axis = 0; // of the library's
        if (at == conv_features(layout, n, part))
            axis = 1;
        else if (at)
            axis = at - first + 2;
        out[at] = t->dims[axis];
        if (t->strides[axis] != apart && t->dims[axis] > 1)
            return false;
        apart *= t->dims[axis];
    }
    return true;
}

// What the descriptors say; false for what belongs to no convolution.
static bool read_call(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                      cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y,
                      enum conv_part part, struct conv_call *out)
{
    struct conv_call c = {.part = part, .n = how->n, .groups = how->groups};
    int dtype = dtype_of(x->type), n = how->n;
    if (dtype < 0 || x->type != w->type || x->type != y->type || x->rank != n + 2 ||
        w->rank != n + 2 || y->rank != n + 2 ||
        how->compute != (dtype == JOT_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT))
        return false;
    c.dtype = (jot_dtype)dtype;
    c.layout = w->format == CUDNN_TENSOR_NHWC ? CONV_FILTERS_FIRST : CONV_FEATURES_FIRST;
    for (int i = 0; i < CONV_LISTS; i++)
        for (int axis = 0; axis < n; axis++)
            c.lists[i][axis] = how->lists[i][axis];
    c.dims[CONV_W][0] = w->dims[0];
    c.dims[CONV_W][conv_in(c.layout, n)] = w->dims[1];
    for (int i = 0; i < n; i++)
        c.dims[CONV_W][conv_spatial(c.layout, CONV_W) + i] = w->dims[2 + i];
    *out = c;
    return read_tensor(x, c.layout, n, CONV_X, out->dims[CONV_X]) &&
           read_tensor(y, c.layout, n, CONV_Y, out->dims[CONV_Y]);
}

static cudnnStatus_t ask(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                         cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y,
                         enum conv_part part, int way, size_t *bytes)
{
    struct conv_call c;
    if (!read_call(x, w, how, y, part, &c))
        return BAD_PARAM;
    long fault = fake_number("FAKE_CUDA_NO_CONV", 0);
    if (fault)
        return (cudnnStatus_t)fault;
    // As the library, which has that way for fewer types than the first.
    if (part == CONV_Y && way && c.dtype == JOT_F64)
        return NOT_SUPPORTED;
    if (part != CONV_Y && way != 1)
        return NOT_SUPPORTED;
    *bytes = WORK;
    return CUDNN_STATUS_SUCCESS;
}

struct work {
    struct conv_call c;
    void *operands[3];
};

static void run_work(void *argument)
{
    struct work *w = argument;
    int64_t params[CONV_PARAMS_MOST];
    struct rt_routine_call call = {.params = params,
                                   .param_count = conv_call_write(&w->c, params),
                                   .operand_count = 3,
                                   .read_count = 2,
                                   .operands = w->operands};
    for (int i = 0; i < 3; i++) {
        enum conv_part part = i == 2 ? w->c.part : conv_operand(w->c.part, i);
        call.bytes[i] = dtype_get(w->c.dtype)->bytes;
        for (int axis = 0; axis < w->c.n + 2; axis++)
            call.bytes[i] *= (uint64_t)w->c.dims[part][axis];
    }
    const struct rt_routine *conv = rt_routine_find("conv");
    if (conv->check(&call) != JOT_OK || rt_routine_run(conv, &call, 0) != JOT_OK)
        abort();
    convolutions++;
}

static cudnnStatus_t execute(cudnnHandle_t h, cudnnTensorDescriptor_t x,
                             cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                             cudnnTensorDescriptor_t y, enum conv_part part,
                             const void *const from[2], void *to, void *work, size_t bytes)
{
    struct work run;
    long fault = fake_number("FAKE_CUDA_CONV_FAULT", 0);
    bool has_work = ((CUdeviceptr)(uintptr_t)work & FAKE_FAR) != 0 && bytes >= WORK;
    if (!h->stream || !has_work || !read_call(x, w, how, y, part, &run.c))
        return BAD_PARAM;
    if (fault)
        return (cudnnStatus_t)fault;
    run.operands[0] = fake_near((CUdeviceptr)(uintptr_t)from[0]);
    run.operands[1] = fake_near((CUdeviceptr)(uintptr_t)from[1]);
    run.operands[2] = fake_near((CUdeviceptr)(uintptr_t)to);
    fake_submit(h->stream, run_work, &run, sizeof run);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t way,
    size_t *bytes)
{
    (void)h;
    return ask(x, w, how, y, CONV_Y, way, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t h, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t how, cudnnTensorDescriptor_t x,
    cudnnConvolutionBwdDataAlgo_t way, size_t *bytes)
{
    (void)h;
    return ask(x, w, how, y, CONV_X, way, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t y,
    cudnnConvolutionDescriptor_t how, cudnnFilterDescriptor_t w,
    cudnnConvolutionBwdFilterAlgo_t way, size_t *bytes)
{
    (void)h;
    return ask(x, w, how, y, CONV_W, way, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
                                      cudnnTensorDescriptor_t x, const void *of_x,
                                      cudnnFilterDescriptor_t w, const void *of_w,
                                      cudnnConvolutionDescriptor_t how,
                                      cudnnConvolutionFwdAlgo_t way, void *work, size_t bytes,
                                      const void *beta, cudnnTensorDescriptor_t y, void *to)
{
    (void)alpha;
    (void)beta;
    (void)way;
    return execute(h, x, w, how, y, CONV_Y, (const void *const[]){of_x, of_w}, to, work, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha,
                                           cudnnFilterDescriptor_t w, const void *of_w,
                                           cudnnTensorDescriptor_t y, const void *of_y,
                                           cudnnConvolutionDescriptor_t how,
                                           cudnnConvolutionBwdDataAlgo_t way, void *work,
                                           size_t bytes, const void *beta,
                                           cudnnTensorDescriptor_t x, void *to)
{
    (void)alpha;
    (void)beta;
    (void)way;
    return execute(h, x, w, how, y, CONV_X, (const void *const[]){of_w, of_y}, to, work, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha,
                                             cudnnTensorDescriptor_t x, const void *of_x,
                                             cudnnTensorDescriptor_t y, const void *of_y,
                                             cudnnConvolutionDescriptor_t how,
                                             cudnnConvolutionBwdFilterAlgo_t way, void *work,
                                             size_t bytes, const void *beta,
                                             cudnnFilterDescriptor_t w, void *to)
{
    (void)alpha;
    (void)beta;
    (void)way;
    return execute(h, x, w, how, y, CONV_W, (const void *const[]){of_x, of_y}, to, work, bytes);
}
