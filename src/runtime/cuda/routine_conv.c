// SPDX-License-Identifier: Apache-2.0
// The routine conv, by cuDNN.  Plans are kept as long as the device is, by what they compute.
//
// Of the library's ways that with a number of its own is taken that multiplies and adds as the
// definition says, in an order that is the same each time: not by transforms, whose errors are
// greater, nor with atomics.
#include "runtime/cuda/routine.h"

#include "base/conv.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"

#include <string.h>

enum { AXES_MOST = CONV_AXES_MOST + 2 };

struct cuda_conv_plan {
    struct cuda_conv_plan *next; // of the device
    struct conv_call call;
    jot_status status; // JOT_ERR_LIBRARY: the library takes no such one
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    int way;
    size_t work;
};

struct conv {
    struct cuda_routine base;
    const struct cuda_conv_plan *plan;
};

static jot_status conv_status(struct cuda_device *d, cudnnStatus_t result)
{
    if (result == CUDNN_STATUS_SUCCESS)
        return JOT_OK;
    return status_fail(result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                           ? JOT_ERR_MEMORY
                           : JOT_ERR_LIBRARY,
                       "%s: a convolution: cuDNN fails with %d", d->base.name, result);
}

#define TRY(call)                                                                              \
    do {                                                                                       \
        cudnnStatus_t result = cuda.cudnn.call;                                                \
        if (result != CUDNN_STATUS_SUCCESS)                                                    \
            return result;                                                                     \
    } while (0)

// ---- Plans

static cudnnDataType_t type_of(jot_dtype d)
{
    return d == JOT_F64    ? CUDNN_DATA_DOUBLE
           : d == JOT_F32  ? CUDNN_DATA_FLOAT
           : d == JOT_BF16 ? CUDNN_DATA_BFLOAT16
                           : CUDNN_DATA_HALF;
}

// The extents of a part as the library lists them, features second, and the strides of these.  One
// spatial axis is the second of two.
static int extents_of(const struct conv_call *c, enum conv_part part, int *dims, int *strides)
{
    int64_t of[AXES_MOST], apart = 1;
    int added = c->n == 1, rank = c->n + 2 + added;
    int first = part == CONV_W ? conv_features(c->layout, c->n, part) : 0;
    int second =
        part == CONV_W ? conv_in(c->layout, c->n) : conv_features(c->layout, c->n, part);
    for (int i = c->n + 1; i >= 0; i--) {
        of[i] = apart;
        apart *= c->dims[part][i];
    }
    for (int i = 0; i < c->n + 2; i++) {
        int axis = i == 0 ? first : i == 1 ? second : conv_spatial(c->layout, part) + i - 2;
        int to = i < 2 ? i : i + added;
        dims[to] = (int)c->dims[part][axis];
        strides[to] = (int)of[axis];
    }
    if (added) {
        dims[2] = 1;
        strides[2] = dims[3] * strides[3];
    }
    return rank;
}

static cudnnStatus_t describe_tensor(const struct conv_call *c, enum conv_part part,
                                     cudnnTensorDescriptor_t *out)
{
    int dims[AXES_MOST + 1], strides[AXES_MOST + 1];
    int rank = extents_of(c, part, dims, strides);
    TRY(cudnnCreateTensorDescriptor(out));
    return cuda.cudnn.cudnnSetTensorNdDescriptor(*out, type_of(c->dtype), rank, dims, strides);
}

static cudnnStatus_t describe_filter(const struct conv_call *c, cudnnFilterDescriptor_t *out)
{
    int dims[AXES_MOST + 1], strides[AXES_MOST + 1];
    int rank = extents_of(c, CONV_W, dims, strides);
    TRY(cudnnCreateFilterDescriptor(out));
    return cuda.cudnn.cudnnSetFilterNdDescriptor(
        *out, type_of(c->dtype),
        c->layout == CONV_FEATURES_FIRST ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC, rank, dims);
}

static cudnnStatus_t describe_windows(const struct conv_call *c,
                                      cudnnConvolutionDescriptor_t *out)
{
    int lists[CONV_LISTS][CONV_AXES_MOST], added = c->n == 1, n = c->n + added;
    for (int i = 0; i < CONV_LISTS; i++) {
        lists[i][0] = i != CONV_PADDING;
        for (int axis = 0; axis < c->n; axis++)
            lists[i][axis + added] = (int)c->lists[i][axis];
    }
    TRY(cudnnCreateConvolutionDescriptor(out));
    TRY(cudnnSetConvolutionNdDescriptor(
        *out, n, lists[CONV_PADDING], lists[CONV_STRIDES], lists[CONV_DILATION],
        CUDNN_CROSS_CORRELATION, c->dtype == JOT_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    TRY(cudnnSetConvolutionGroupCount(*out, (int)c->groups));
    bool is_full = c->dtype == JOT_F32 && c->precision == RT_PRECISION_FULL;
    return cuda.cudnn.cudnnSetConvolutionMathType(*out, is_full ? CUDNN_FMA_MATH
                                                                : CUDNN_TENSOR_OP_MATH);
}

static cudnnStatus_t ask_work(cudnnHandle_t h, struct cuda_conv_plan *p)
{
    switch (p->call.part) {
    case CONV_X:
        return cuda.cudnn.cudnnGetConvolutionBackwardDataWorkspaceSize(h, p->w, p->y, p->how,
                                                                       p->x, p->way, &p->work);
    case CONV_W:
        return cuda.cudnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(
            h, p->x, p->y, p->how, p->w, p->way, &p->work);
    default:
        return cuda.cudnn.cudnnGetConvolutionForwardWorkspaceSize(h, p->x, p->w, p->how, p->y,
                                                                  p->way, &p->work);
    }
}

static cudnnStatus_t make_plan(cudnnHandle_t h, struct cuda_conv_plan *p)
{
    cudnnStatus_t result = describe_tensor(&p->call, CONV_X, &p->x);
    if (result == CUDNN_STATUS_SUCCESS)
        result = describe_tensor(&p->call, CONV_Y, &p->y);
    if (result == CUDNN_STATUS_SUCCESS)
        result = describe_filter(&p->call, &p->w);
    if (result == CUDNN_STATUS_SUCCESS)
        result = describe_windows(&p->call, &p->how);
    if (result != CUDNN_STATUS_SUCCESS)
        return result;
    p->way = p->call.part == CONV_X   ? CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
             : p->call.part == CONV_W ? CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1
                                      : CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    result = ask_work(h, p);
    if (result == CUDNN_STATUS_SUCCESS || p->call.part != CONV_Y)
        return result;
    p->way = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    return ask_work(h, p);
}

static void forget_parts(struct cuda_conv_plan *p)
{
    if (p->how)
        cuda.cudnn.cudnnDestroyConvolutionDescriptor(p->how);
    if (p->w)
        cuda.cudnn.cudnnDestroyFilterDescriptor(p->w);
    if (p->y)
        cuda.cudnn.cudnnDestroyTensorDescriptor(p->y);
    if (p->x)
        cuda.cudnn.cudnnDestroyTensorDescriptor(p->x);
    p->how = NULL;
    p->w = NULL;
    p->x = p->y = NULL;
}

// Under the lock.  That there is none is known from then on, too.
static jot_status find_plan(struct cuda_device *d, const struct conv_call *call,
                            const struct cuda_conv_plan **out)
{
    for (struct cuda_conv_plan *p = d->conv_plans; p; p = p->next)
        if (!memcmp(&p->call, call, sizeof *call)) {
            *out = p;
            return p->status;
        }
    if (!d->conv)
        JOT_TRY(conv_status(d, cuda.cudnn.cudnnCreate(&d->conv)));
    struct cuda_conv_plan *p = memory_allocate_zeroed(sizeof *p);
    if (!p)
        return status_out_of_memory();
    p->call = *call;
    p->status = conv_status(d, make_plan(d->conv, p));
    if (p->status != JOT_OK)
        forget_parts(p);
    p->next = d->conv_plans;
    d->conv_plans = p;
    *out = p;
    return p->status;
}

// ---- Running

static cudnnStatus_t execute(cudnnHandle_t h, const struct cuda_conv_plan *p,
                             void *const *operands, void *work)
{
    static const float one[] = {1}, zero[] = {0};
    static const double one_f64[] = {1}, zero_f64[] = {0};
    bool is_f64 = p->call.dtype == JOT_F64;
    const void *alpha = is_f64 ? (const void *)one_f64 : one,
               *beta = is_f64 ? (const void *)zero_f64 : zero;
    switch (p->call.part) {
    case CONV_X:
        return cuda.cudnn.cudnnConvolutionBackwardData(h, alpha, p->w, operands[0], p->y,
                                                       operands[1], p->how, p->way, work,
                                                       p->work, beta, p->x, operands[2]);
    case CONV_W:
        return cuda.cudnn.cudnnConvolutionBackwardFilter(h, alpha, p->x, operands[0], p->y,
                                                         operands[1], p->how, p->way, work,
                                                         p->work, beta, p->w, operands[2]);
    default:
        return cuda.cudnn.cudnnConvolutionForward(h, alpha, p->x, operands[0], p->w,
                                                  operands[1], p->how, p->way, work, p->work,
                                                  beta, p->y, operands[2]);
    }
}

static jot_status run_conv(struct cuda_device *d, const struct cuda_routine *r,
                           void *const *operands, char *workspace)
{
    const struct conv *c = (const struct conv *)r;
    pthread_mutex_lock(&d->routine_lock);
    cudnnStatus_t result = cuda.cudnn.cudnnSetStream(d->conv, cuda_stream(d));
    if (result == CUDNN_STATUS_SUCCESS)
        result = execute(d->conv, c->plan, operands, workspace);
    pthread_mutex_unlock(&d->routine_lock);
    return conv_status(d, result);
}

// ---- Binding

// The plan, where there is one.
static jot_status plan_call(struct cuda_device *d, const int64_t *params, uint32_t count,
                            const struct cuda_conv_plan **out)
{
    struct conv_call c;
    if (!conv_call_read(params, count, &c))
        return JOT_OK;
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_cudnn));
    pthread_mutex_lock(&d->routine_lock);
    jot_status status = find_plan(d, &c, out);
    pthread_mutex_unlock(&d->routine_lock);
    return status;
}

jot_status cuda_conv_bind(struct cuda_device *d, const struct rt_routine_call *call,
                          struct cuda_routine **out)
{
    const struct cuda_conv_plan *plan = NULL;
    JOT_TRY(plan_call(d, call->params, call->param_count, &plan));
    if (!plan)
        return JOT_OK;
    struct conv *c = memory_allocate_zeroed(sizeof *c);
    if (!c)
        return status_out_of_memory();
    c->base = (struct cuda_routine){.run = run_conv};
    c->plan = plan;
    cuda_take(&c->base.workspace, plan->work);
    *out = &c->base;
    return JOT_OK;
}

// ---- What it is better for

// Multiplications of tensor cores from which all parts are faster than products, and features-last y:
// an H200 took 43 us for y of 32 images of 56 by 56, 64 features and windows of 3 by 3 in TF32, and 172
// with windows in memory, and 191 and 418 for the derivatives; of full f32 products are 1.1 to 2 times
// faster in all parts.
#define LEAST_WORK 1e9
#define LEAST_WORK_OF_Y 1e7
// Bytes of windows that had better not be in memory.
#define MOST_WINDOWS 0x1p30

static bool pays(const struct conv_call *c)
{
    const int64_t *w = c->dims[CONV_W], *y = c->dims[CONV_Y];
    double kernel = 1, positions = 1;
    for (int i = 0; i < c->n; i++) {
        kernel *= (double)w[conv_spatial(c->layout, CONV_W) + i];
        positions *= (double)y[conv_spatial(c->layout, CONV_Y) + i];
    }
    double windows = (double)y[0] * positions * kernel *
                     (double)c->dims[CONV_X][conv_features(c->layout, c->n, CONV_X)];
    double work =
        windows / (double)c->groups * (double)y[conv_features(c->layout, c->n, CONV_Y)];
    bool has_cores =
        dtype_is_half(c->dtype) || (c->dtype == JOT_F32 && c->precision == RT_PRECISION_TF32);
    bool is_y = c->part == CONV_Y && c->layout == CONV_FILTERS_FIRST;
    return windows * dtype_get(c->dtype)->bytes >= MOST_WINDOWS ||
           (has_cores && work >= (is_y ? LEAST_WORK_OF_Y : LEAST_WORK));
}

bool cuda_takes_convolution(jot_device *device, const int64_t *params, uint32_t count)
{
    struct cuda_device *d = cuda_device_of(device);
    const struct cuda_conv_plan *plan = NULL;
    struct conv_call c;
    if (!conv_call_read(params, count, &c) || !pays(&c) || cuda_enter(d) != JOT_OK)
        return false;
    jot_status status = plan_call(d, params, count, &plan);
    cuda_leave();
    return status == JOT_OK && plan;
}
