// SPDX-License-Identifier: Apache-2.0
// The assembler: a cubin is the PTX.
#include "fake_cuda/fake.h"

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
    return n == 2 && !strcmp(options[0], "-arch=sm_90a") ? NVJITLINK_SUCCESS : 1;
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
