// SPDX-License-Identifier: Apache-2.0
// GPUs, contexts, streams and events.
#include "fake_cuda/emulate.h"

#include <stdio.h>

// ---- GPUs ----

struct CUevent_st {
    int unused;
};
static struct CUctx_st contexts[FAKE_MOST];
static _Thread_local CUcontext stack[8];
static _Thread_local int depth;

CUcontext fake_context(void) { return depth ? stack[depth - 1] : NULL; }

CUresult fake_health(void)
{
    return fake_context()->is_broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    long result = fake_number("FAKE_CUDA_INIT", 0);
    return result                                   ? (CUresult)result
           : fake_number("FAKE_CUDA_COUNT", 1) == 0 ? CUDA_ERROR_NO_DEVICE
                                                    : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = (int)fake_number("FAKE_CUDA_VERSION", 13000);
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
    *text = *emulated_fault() ? emulated_fault() : number_text;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = (int)fake_number("FAKE_CUDA_COUNT", 1);
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

// All have peer access, and pairs NVLink.
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to)
{
    bool has_access = !fake_number("FAKE_CUDA_NO_PEERS", 0);
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
                 ? has_access
                 : has_access && from / 2 == to / 2;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = fake_memory_bytes();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    contexts[device].device = device;
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

// ---- streams ----

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    *stream = malloc(sizeof **stream);
    (*stream)->context = fake_context();
    (*stream)->capture = NULL;
    (*stream)->is_aborted = NULL;
    (*stream)->submitted = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    if (fake_is_waiting(stream))
        abort(); // for ever
    return fake_health();
}

CUresult cuStreamQuery(CUstream stream)
{
    CUresult health = fake_health();
    return health == CUDA_SUCCESS && fake_is_waiting(stream) ? CUDA_ERROR_NOT_READY : health;
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
    return stream->context == fake_context() ? CUDA_SUCCESS : 400;
}

CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return fake_health();
}

CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return fake_health();
}

CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}
