// SPDX-License-Identifier: Apache-2.0
// NVRTC: the source is an image.
#include "fake_cuda/fake.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// Behind the parenthesis that closes the one at `at`.
static const char *behind_parentheses(const char *at)
{
    int depth = 0;
    do
        depth += (*at == '(') - (*at == ')');
    while (*at++ && depth);
    return at;
}

static bool is_defined(const char *source, const char *call, size_t length)
{
    for (const char *at = source; (at = strstr(at, "NAMED(")); at++)
        if (!strncmp(at, call, length)) {
            const char *end = behind_parentheses(at + length);
            if (end[strspn(end, " \n")] == '{')
                return true;
        }
    return false;
}

// Of jot's own kernels: each has the functions that it calls.
static void check_functions(const char *source)
{
    for (const char *at = source; (at = strstr(at, "NAMED(")); at++) {
        size_t length = (size_t)(strchr(at, ')') + 1 - at);
        if (at[length] == '(' && !is_defined(source, at, length)) {
            fprintf(stderr, "a kernel has no function %.*s\n", (int)length, at);
            abort();
        }
    }
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options)
{
    for (int i = 0; i < n; i++) {
        size_t at = strlen(program->log);
        snprintf(program->log + at, sizeof program->log - at, "%s;", options[i]);
    }
    check_functions(program->source);
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
