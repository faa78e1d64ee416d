// SPDX-License-Identifier: Apache-2.0
// NVRTC: the source is an image.
#include "fake_cuda/fake.h"

#include <stdio.h>

struct _nvrtcProgram {
    char *source, name[100], log[200];
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
    (*program)->source = strdup(source);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free((*program)->source);
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
