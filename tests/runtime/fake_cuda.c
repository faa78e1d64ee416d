// SPDX-License-Identifier: Apache-2.0
// A CUDA driver, an assembler and a cuBLAS without a GPU, for tests of everything above them: memory is
// that of the host under addresses that nobody may follow, streams run at once, kernels are C
// functions of this file.
//
//     FAKE_CUDA_VERSION=11040   an old driver
//     FAKE_CUDA_INIT=803        what cuInit returns
//     FAKE_CUDA_COUNT=2         how many GPUs there are
//     FAKE_CUDA_MEMORY=1000     bytes that each has
//     FAKE_CUDA_NO_CAPTURE=1    no stream can be captured
//     FAKE_CUDA_NO_ROUTINE=77   of cuBLASLt, for this type of computation
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
#include "runtime/cuda/cublaslt.def"
#include "runtime/cuda/driver.def"
#include "runtime/cuda/nvjitlink.def"
#include "runtime/cuda/nvrtc.def"
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
    CUgraph capture; // NULL: work runs at once
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
static atomic_int launches, blocks_live, modules_live, graphs_live, graph_launches;
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
EXPORT int fake_cuda_graphs(void);
EXPORT int fake_cuda_graph_launches(void);
int fake_cuda_blocks(void) { return blocks_live; }
int fake_cuda_modules(void) { return modules_live; }
int fake_cuda_launches(void) { return launches; }
int fake_cuda_graphs(void) { return graphs_live; }
int fake_cuda_graph_launches(void) { return graph_launches; }

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
    (*stream)->capture = NULL;
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

// ---- graphs ----

#define ARGUMENT_BYTES 512
#define NODES_MOST 4096

struct node {
    void (*run)(void *argument);
    char argument[ARGUMENT_BYTES] __attribute__((aligned(16)));
};

struct CUgraph_st {
    struct node *nodes;
    int count;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
    CUcontext context;
};

// Runs the work, or keeps it where the stream is being captured.
static void submit(CUstream stream, void (*run)(void *), void *argument, size_t bytes)
{
    CUgraph g = stream->capture;
    if (!g) {
        run(argument);
        return;
    }
    if (bytes > ARGUMENT_BYTES || g->count == NODES_MOST)
        abort();
    g->nodes[g->count].run = run;
    memcpy(g->nodes[g->count++].argument, argument, bytes);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    if (number("FAKE_CUDA_NO_CAPTURE", 0) || stream->capture ||
        mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return 801;
    stream->capture = untracked(calloc(1, sizeof *stream->capture));
    stream->capture->nodes = untracked(calloc(NODES_MOST, sizeof(struct node)));
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream->capture;
    stream->capture = NULL;
    return *graph ? CUDA_SUCCESS : 801;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    *exec = untracked(calloc(1, sizeof **exec));
    (*exec)->context = current();
    (*exec)->graph.count = graph->count;
    (*exec)->graph.nodes = untracked(calloc((size_t)graph->count + 1, sizeof(struct node)));
    memcpy((*exec)->graph.nodes, graph->nodes, (size_t)graph->count * sizeof(struct node));
    graphs_live++;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (exec->context != current() || stream->context != current())
        return 400;
    graph_launches++;
    for (int i = 0; i < exec->graph.count && !current()->is_broken; i++)
        exec->graph.nodes[i].run(exec->graph.nodes[i].argument);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    free(graph->nodes);
    free(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    graphs_live--;
    free(exec->graph.nodes);
    free(exec);
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

struct range {
    void *to;
    const void *from;
    size_t bytes;
    int value;
};

static void copy_range(void *argument)
{
    const struct range *r = argument;
    memcpy(r->to, r->from, r->bytes);
}

static void fill_range(void *argument)
{
    const struct range *r = argument;
    memset(r->to, r->value, r->bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct range r = {.to = near(to), .from = near(from), .bytes = bytes};
    if (health() == CUDA_SUCCESS)
        submit(stream, copy_range, &r, sizeof r);
    return health();
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
                           size_t bytes, CUstream stream)
{
    return there == here ? 1 : cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    struct range r = {.to = near(at), .bytes = bytes, .value = value};
    if (health() == CUDA_SUCCESS)
        submit(stream, fill_range, &r, sizeof r);
    return health();
}

// ---- kernels ----

struct CUfunc_st {
    const char *name;
    void (*run)(const CUlaunchConfig *c, void **operands);
    int n; // operands
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

static void depth_of(const CUlaunchConfig *c, void **operands)
{
    *(int32_t *)operand(operands, 0) = (int32_t)c->gridDimZ;
}

static struct CUfunc_st functions[] = {{"add_one", add_one, 2},
                                       {"double_it", double_it, 2},
                                       {"tell", tell, 1},
                                       {"depth", depth_of, 1}};

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

#define OPERANDS_MOST 8

struct launch {
    CUfunction function;
    CUlaunchConfig config;
    CUlaunchAttribute attributes[2];
    CUdeviceptr operands[OPERANDS_MOST];
};

static void run_launch(void *argument)
{
    struct launch *l = argument;
    void *operands[OPERANDS_MOST];
    if (current()->is_broken)
        return;
    if (++launches == number("FAKE_CUDA_FAULT", 0)) {
        current()->is_broken = true;
        return;
    }
    l->config.attrs = l->attributes;
    for (int i = 0; i < l->function->n; i++)
        operands[i] = &l->operands[i];
    l->function->run(&l->config, operands);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    (void)extra;
    if (health() != CUDA_SUCCESS)
        return health();
    if (config->hStream->context != current())
        return 400;
    struct launch l = {.function = function, .config = *config};
    for (unsigned i = 0; i < config->numAttrs; i++)
        l.attributes[i] = config->attrs[i];
    for (int i = 0; i < function->n; i++)
        l.operands[i] = *(const CUdeviceptr *)parameters[i];
    submit(config->hStream, run_launch, &l, sizeof l);
    return CUDA_SUCCESS;
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

// ---- NVRTC: the source is an image ----

struct _nvrtcProgram {
    char source[1000], name[100], log[200];
};

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 99;
    *minor = 2;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    (void)result;
    return "fake error";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                               int n, const char *const *headers, const char *const *names)
{
    (void)name;
    (void)n;
    (void)headers;
    (void)names;
    *program = calloc(1, sizeof **program);
    snprintf((*program)->source, sizeof(*program)->source, "%s", source);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *name)
{
    snprintf(program->name, sizeof program->name, "%s", name);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options)
{
    for (int i = 0; i < n; i++) {
        size_t at = strlen(program->log);
        snprintf(program->log + at, sizeof program->log - at, "%s;", options[i]);
    }
    return strstr(program->source, "syntax") ? 6 : NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *name, const char **lowered)
{
    (void)name;
    *lowered = program->name;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    *size = strlen(program->source) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    memcpy(cubin, program->source, strlen(program->source) + 1);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return NVRTC_SUCCESS;
}

// ---- cuBLAS ----

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? 99 : 0;
    return CUBLAS_STATUS_SUCCESS;
}

// ---- cuBLASLt: plain products of f32 and f64, columns one after another ----

struct cublasLtContext {
    int unused;
};

struct cublasLtMatrixLayout {
    cudaDataType type;
    int64_t rows, columns, leading, stride;
    int32_t count;
};

struct cublasLtMatmulPreference {
    uint32_t alignment; // of all operands
};

// What the words of a description hold.
enum { OP_A, OP_B, EPILOGUE, BIAS, BIAS_TYPE, COMPUTE };

static int preferred_alignment, algorithms_made, compute_type;
EXPORT int fake_cuda_alignment(void);
EXPORT int fake_cuda_compute(void);
int fake_cuda_alignment(void) { return preferred_alignment; } // of the last choice
int fake_cuda_compute(void) { return compute_type; }          // of the last product

size_t cublasLtGetVersion(void) { return 130001; }

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    (void)status;
    return "fake status";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    static struct cublasLtContext only;
    *handle = &only;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    (void)scale;
    *out = calloc(1, sizeof **out);
    (*out)->data[EPILOGUE] = CUBLASLT_EPILOGUE_DEFAULT;
    (*out)->data[COMPUTE] = (uint64_t)compute;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    int word = attribute == CUBLASLT_MATMUL_DESC_TRANSA           ? OP_A
               : attribute == CUBLASLT_MATMUL_DESC_TRANSB         ? OP_B
               : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE       ? EPILOGUE
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER   ? BIAS
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? BIAS_TYPE
                                                                  : -1;
    if (word < 0 || bytes != (word == BIAS ? 8 : 4))
        return 7;
    d->data[word] = 0;
    memcpy(&d->data[word], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    *out = calloc(1, sizeof **out);
    **out = (struct cublasLtMatrixLayout){.type = type,
                                          .rows = (int64_t)rows,
                                          .columns = (int64_t)columns,
                                          .leading = leading,
                                          .count = 1};
    return leading >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : 7;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == 4)
        memcpy(&layout->count, value, bytes);
    else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == 8)
        memcpy(&layout->stride, value, bytes);
    else
        return 7;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = calloc(1, sizeof **out);
    (*out)->alignment = 256;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t wish,
                                     cublasLtMatmulPreferenceAttributes_t attribute,
                                     const void *value, size_t bytes)
{
    uint32_t alignment;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return bytes == 8 ? CUBLAS_STATUS_SUCCESS : 7;
    if (attribute < CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES ||
        attribute > CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES || bytes != 4)
        return 7;
    memcpy(&alignment, value, sizeof alignment);
    wish->alignment = alignment < wish->alignment ? alignment : wish->alignment;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t wish)
{
    free(wish);
    return CUBLAS_STATUS_SUCCESS;
}

#define FAKE_WORKSPACE 1000

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t to,
    cublasLtMatmulPreference_t wish, int most, cublasLtMatmulHeuristicResult_t *out, int *count)
{
    (void)handle;
    (void)a;
    (void)b;
    (void)c;
    (void)to;
    *count = most > 0 && d->data[COMPUTE] != (uint64_t)number("FAKE_CUDA_NO_ROUTINE", 0);
    *out = (cublasLtMatmulHeuristicResult_t){.algo = {{(uint64_t)++algorithms_made}},
                                             .workspaceSize = FAKE_WORKSPACE};
    preferred_alignment = (int)wish->alignment;
    return CUBLAS_STATUS_SUCCESS;
}

static double element(const void *matrix, cudaDataType type, int64_t at)
{
    return type == CUDA_R_32F ? (double)((const float *)matrix)[at]
                              : ((const double *)matrix)[at];
}

// The first words of the description, and copies of the rest.
struct fake_product {
    uint64_t d[COMPUTE + 1];
    const void *a, *b, *c, *bias;
    void *to;
    struct cublasLtMatrixLayout of_a, of_b, of_c, of_to;
    double alpha, beta;
};

static double multiply_element(const struct fake_product *p, int64_t matrix, int64_t i,
                               int64_t j)
{
    const struct cublasLtMatrixLayout *a = &p->of_a, *b = &p->of_b, *c = &p->of_c;
    double sum = 0;
    int64_t inner = p->d[OP_A] == CUBLAS_OP_N ? a->columns : a->rows;
    for (int64_t l = 0; l < inner; l++) {
        int64_t at_a = p->d[OP_A] == CUBLAS_OP_N ? l * a->leading + i : i * a->leading + l;
        int64_t at_b = p->d[OP_B] == CUBLAS_OP_N ? j * b->leading + l : l * b->leading + j;
        sum += element(p->a, a->type, matrix * a->stride + at_a) *
               element(p->b, b->type, matrix * b->stride + at_b);
    }
    sum *= p->alpha;
    if (p->beta != 0)
        sum += p->beta * element(p->c, c->type, matrix * c->stride + j * c->leading + i);
    if (p->d[EPILOGUE] & CUBLASLT_EPILOGUE_BIAS)
        sum += element(p->bias, (cudaDataType)p->d[BIAS_TYPE], i);
    return p->d[EPILOGUE] & CUBLASLT_EPILOGUE_RELU && sum <= 0 ? 0 : sum;
}

static void run_product(void *argument)
{
    const struct fake_product *p = argument;
    for (int64_t matrix = 0; matrix < p->of_c.count; matrix++)
        for (int64_t j = 0; j < p->of_c.columns; j++)
            for (int64_t i = 0; i < p->of_c.rows; i++) {
                int64_t at = matrix * p->of_to.stride + j * p->of_to.leading + i;
                double x = multiply_element(p, matrix, i, j);
                if (p->of_to.type == CUDA_R_32F)
                    ((float *)p->to)[at] = (float)x;
                else
                    ((double *)p->to)[at] = x;
            }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t of_a,
                              const void *b, cublasLtMatrixLayout_t of_b, const void *beta,
                              const void *c, cublasLtMatrixLayout_t of_c, void *to,
                              cublasLtMatrixLayout_t of_to,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    cudaDataType type = of_a->type;
    if (!handle || !stream || !algorithm->data[0] || !workspace ||
        workspace_bytes < FAKE_WORKSPACE || type != of_b->type || type != of_c->type ||
        (type != CUDA_R_32F && type != CUDA_R_64F))
        return 7;
    compute_type = (int)d->data[COMPUTE];
    struct fake_product p = {.a = near((CUdeviceptr)(uintptr_t)a),
                             .b = near((CUdeviceptr)(uintptr_t)b),
                             .c = near((CUdeviceptr)(uintptr_t)c),
                             .bias = near((CUdeviceptr)d->data[BIAS]),
                             .to = near((CUdeviceptr)(uintptr_t)to),
                             .of_a = *of_a,
                             .of_b = *of_b,
                             .of_c = *of_c,
                             .of_to = *of_to,
                             .alpha = element(alpha, type, 0),
                             .beta = element(beta, type, 0)};
    memcpy(p.d, d->data, sizeof p.d);
    submit(stream, run_product, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}
