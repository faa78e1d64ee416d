// SPDX-License-Identifier: Apache-2.0
// A CUDA driver, an assembler and a cuBLAS without a GPU, for tests of everything above them: memory is
// that of the host under addresses that nobody may follow, streams run at once, kernels are C
// functions of this file.
//
//     FAKE_CUDA_VERSION=11040   an old driver
//     FAKE_CUDA_INIT=803        what cuInit returns
//     FAKE_CUDA_COUNT=2         how many GPUs there are
//     FAKE_CUDA_MEMORY=1000     bytes that each has
//     FAKE_CUDA_FAULT=3         the third launch fails, as a wait notices
//
// An image is a text of names of kernels, each with a space behind it.
#include "runtime/cuda/api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define FAR (UINT64_C(1) << 60)
#define MOST 4

#define ENTRY(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/cublas.def"
#include "runtime/cuda/driver.def"
#include "runtime/cuda/nvjitlink.def"
#undef ENTRY

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

// ---- GPUs ----

struct CUctx_st {
    int device;
    bool is_broken; // by a kernel, as the next wait notices
};
struct CUstream_st {
    CUcontext context;
};
struct CUevent_st {
    int unused;
};
struct CUmemPoolHandle_st {
    int device;
};

static struct CUctx_st contexts[MOST] = {{0, false}, {1, false}, {2, false}, {3, false}};
static struct CUmemPoolHandle_st pools[MOST] = {{0}, {1}, {2}, {3}};
static atomic_long in_use[MOST];
static atomic_int launches, blocks_live, modules_live;
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;

// Of the address sanitizer.  Tests count what is left; addresses of a device hide it from a search
// of the memory, and a device that is lost gets nothing back.
void __lsan_ignore_object(const void *block) __attribute__((weak));

static void *untracked(void *block)
{
    if (__lsan_ignore_object)
        __lsan_ignore_object(block);
    return block;
}

// What tests look at.
EXPORT int fake_cuda_blocks(void);
EXPORT int fake_cuda_modules(void);
EXPORT int fake_cuda_launches(void);
int fake_cuda_blocks(void) { return blocks_live; }
int fake_cuda_modules(void) { return modules_live; }
int fake_cuda_launches(void) { return launches; }

static CUcontext current(void) { return depth ? stack[depth - 1] : NULL; }

CUresult cuInit(unsigned flags)
{
    (void)flags;
    long result = number("FAKE_CUDA_INIT", 0);
    return result                              ? (CUresult)result
           : number("FAKE_CUDA_COUNT", 1) == 0 ? CUDA_ERROR_NO_DEVICE
                                               : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = (int)number("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char **name)
{
#define CONSTANT(constant, value)                                                              \
    if (!strncmp(#constant, "CUDA_", 5) && result == value) {                                  \
        *name = #constant;                                                                     \
        return CUDA_SUCCESS;                                                                   \
    }
#include "runtime/cuda/constants.def"
#undef CONSTANT
    *name = NULL;
    return 1;
}

CUresult cuGetErrorString(CUresult result, const char **text)
{
    static char number_text[64];
    snprintf(number_text, sizeof number_text, "fake error %d", result);
    *text = number_text;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = (int)number("FAKE_CUDA_COUNT", 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int index)
{
    *device = index;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                ? 4
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR          ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
             : attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED            ? 1
                                                                                  : 0;
    return CUDA_SUCCESS;
}

static size_t memory_bytes(void) { return (size_t)number("FAKE_CUDA_MEMORY", 1 << 30); }

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = memory_bytes();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *bytes_free, size_t *bytes_total)
{
    *bytes_total = memory_bytes();
    *bytes_free = *bytes_total - (size_t)in_use[current()->device];
    return CUDA_SUCCESS;
}

// ---- streams ----

static CUresult health(void)
{
    return current()->is_broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = malloc(sizeof **stream);
    (*stream)->context = current();
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    return health();
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream;
    (void)event;
    (void)flags;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = malloc(sizeof **event);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event;
    return stream->context == current() ? CUDA_SUCCESS : 400;
}

CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return health();
}

CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

// ---- memory ----

static void *near(CUdeviceptr at) { return (void *)(uintptr_t)(at ^ FAR); }

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    *pool = &pools[props->location.id];
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    (void)pool;
    (void)bytes;
    return CUDA_SUCCESS;
}

// The size stands before the block.
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    (void)stream;
    if (health() != CUDA_SUCCESS)
        return health();
    if ((size_t)in_use[pool->device] + bytes > memory_bytes())
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t padded = (bytes + 255) / 256 * 256;
    char *block = untracked(aligned_alloc(256, padded + 256));
    memset(block, 0xA5, padded + 256);
    memcpy(block, &bytes, sizeof bytes);
    in_use[pool->device] += (long)bytes;
    blocks_live++;
    *at = (CUdeviceptr)(uintptr_t)(block + 256) ^ FAR;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    size_t bytes;
    char *block = (char *)near(at) - 256;
    memcpy(&bytes, block, sizeof bytes);
    in_use[stream->context->device] -= (long)bytes;
    blocks_live--;
    free(block);
    return health();
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    *at = malloc(bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (health() == CUDA_SUCCESS)
        memcpy(near(to), from, bytes);
    return health();
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (health() == CUDA_SUCCESS)
        memcpy(to, near(from), bytes);
    return health();
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (health() == CUDA_SUCCESS)
        memcpy(near(to), near(from), bytes);
    return health();
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
                           size_t bytes, CUstream stream)
{
    return there == here ? 1 : cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    if (health() == CUDA_SUCCESS)
        memset(near(at), value, bytes);
    return health();
}

// ---- kernels ----

struct CUfunc_st {
    const char *name;
    void (*run)(const CUlaunchConfig *c, void **operands);
};

struct CUmod_st {
    char *names;
};

static void *operand(void **parameters, int i)
{
    return near(*(const CUdeviceptr *)parameters[i]);
}

// y = x + 1 over 1000 floats in chunks of 64.
static void add_one(const CUlaunchConfig *c, void **operands)
{
    float *y = operand(operands, 1), *x = operand(operands, 0);
    for (unsigned block = 0; block < c->gridDimX; block++)
        for (int64_t chunk = block; chunk < 16; chunk += c->gridDimX)
            for (int64_t i = chunk * 64; i < 1000 && i < chunk * 64 + 64; i++)
                y[i] = x[i] + 1;
}

// state *= 2 unless it is 100 or more; the flag says whether it is below then.
static void double_it(const CUlaunchConfig *c, void **operands)
{
    (void)c;
    double *state = operand(operands, 0);
    *state *= 2;
    *(unsigned char *)operand(operands, 1) = *state < 100;
}

// What the launch was: blocks, threads, shared memory, cooperative, cluster.
static void tell(const CUlaunchConfig *c, void **operands)
{
    int32_t *to = operand(operands, 0);
    to[0] = (int32_t)c->gridDimX;
    to[1] = (int32_t)c->blockDimX;
    to[2] = (int32_t)c->sharedMemBytes;
    to[3] = to[4] = 0;
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            to[3] = c->attrs[i].value.cooperative;
        else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            to[4] = (int32_t)c->attrs[i].value.clusterDim.x;
}

static struct CUfunc_st functions[] = {
    {"add_one", add_one}, {"double_it", double_it}, {"tell", tell}};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    if (!memcmp(image, "bad", 3))
        return 200;
    *module = untracked(malloc(sizeof **module));
    (*module)->names = untracked(strdup(image));
    modules_live++;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    free(module->names);
    free(module);
    modules_live--;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, "%s ", name);
    for (size_t i = 0; strstr(module->names, word) && i < sizeof functions / sizeof *functions;
         i++)
        if (!strcmp(functions[i].name, name)) {
            *function = &functions[i];
            return CUDA_SUCCESS;
        }
    return 500;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                     int threads, size_t shared)
{
    (void)function;
    *blocks = shared > 232448 ? 0 : 2048 / threads;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config)
{
    (void)function;
    (void)config;
    *clusters = 3;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    (void)extra;
    if (health() != CUDA_SUCCESS)
        return health();
    if (config->hStream->context != current())
        return 400;
    if (++launches == number("FAKE_CUDA_FAULT", 0)) {
        current()->is_broken = true;
        return CUDA_SUCCESS;
    }
    function->run(config, parameters);
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    return 801;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    (void)graph;
    return 801;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)exec;
    (void)graph;
    (void)flags;
    return 801;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)exec;
    (void)stream;
    return 801;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    (void)graph;
    return 801;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    (void)exec;
    return 801;
}

// ---- the assembler ----

struct nvJitLink {
    void *text;
    size_t size;
};

nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    *major = 99;
    *minor = 1;
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *linker, uint32_t n, const char **options)
{
    *linker = calloc(1, sizeof **linker);
    return n == 2 && !strcmp(options[0], "-arch=sm_90") ? NVJITLINK_SUCCESS : 1;
}

nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *linker)
{
    free((*linker)->text);
    free(*linker);
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle linker, nvJitLinkInputType type,
                                 const void *data, size_t size, const char *name)
{
    (void)name;
    linker->text = malloc(size);
    linker->size = size;
    memcpy(linker->text, data, size);
    return type == NVJITLINK_INPUT_PTX ? NVJITLINK_SUCCESS : 1;
}

nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle linker)
{
    return strstr(linker->text, "syntax") ? 4 : NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle linker, size_t *size)
{
    *size = linker->size;
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle linker, void *cubin)
{
    memcpy(cubin, linker->text, linker->size);
    return NVJITLINK_SUCCESS;
}

static const char fake_log[] = "line 3: syntax error";

nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle linker, size_t *size)
{
    (void)linker;
    *size = sizeof fake_log;
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle linker, char *text)
{
    (void)linker;
    memcpy(text, fake_log, sizeof fake_log);
    return NVJITLINK_SUCCESS;
}

// ---- cuBLAS ----

struct cublasContext {
    CUstream stream;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? 99 : 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle;
    (void)workspace;
    (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    (void)status;
    return "fake status";
}

static double element(const void *matrix, cudaDataType type, int64_t at)
{
    return type == CUDA_R_32F ? (double)((const float *)matrix)[at]
                              : ((const double *)matrix)[at];
}

// Columns one after another, as the library has them.
cublasStatus_t cublasGemmStridedBatchedEx_64(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,
    int64_t k, const void *alpha, const void *a, cudaDataType type_a, int64_t lda,
    long long stride_a, const void *b, cudaDataType type_b, int64_t ldb, long long stride_b,
    const void *beta, void *c, cudaDataType type_c, int64_t ldc, long long stride_c,
    int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    (void)compute;
    (void)algorithm;
    if (!handle->stream || type_a != type_b || type_a != type_c ||
        (type_a != CUDA_R_32F && type_a != CUDA_R_64F))
        return 7;
    a = near((CUdeviceptr)(uintptr_t)a);
    b = near((CUdeviceptr)(uintptr_t)b);
    c = near((CUdeviceptr)(uintptr_t)c);
    for (int64_t matrix = 0; matrix < batch; matrix++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                double sum = 0;
                int64_t at = matrix * stride_c + j * ldc + i;
                double old = element(beta, type_a, 0) != 0
                                 ? element(beta, type_a, 0) * element(c, type_c, at)
                                 : 0;
                for (int64_t l = 0; l < k; l++)
                    sum += element(a, type_a,
                                   matrix * stride_a +
                                       (op_a == CUBLAS_OP_N ? l * lda + i : i * lda + l)) *
                           element(b, type_b,
                                   matrix * stride_b +
                                       (op_b == CUBLAS_OP_N ? j * ldb + l : l * ldb + j));
                sum = sum * element(alpha, type_a, 0) + old;
                if (type_c == CUDA_R_32F)
                    ((float *)c)[at] = (float)sum;
                else
                    ((double *)c)[at] = sum;
            }
    return CUBLAS_STATUS_SUCCESS;
}
