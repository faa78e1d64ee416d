// SPDX-License-Identifier: Apache-2.0
// Kernels are C functions of this file.  An image is a text of names of kernels, each with a space
// behind it.
#include "fake_cuda/fake.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_int launches, modules;

int fake_cuda_launches(void) { return launches; }
int fake_cuda_modules(void) { return modules; }

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
    return fake_near(*(const CUdeviceptr *)parameters[i]);
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
    *module = fake_untracked(malloc(sizeof **module));
    (*module)->names = fake_untracked(strdup(image));
    modules++;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    free(module->names);
    free(module);
    modules--;
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
    if (fake_context()->is_broken)
        return;
    if (++launches == fake_number("FAKE_CUDA_FAULT", 0)) {
        fake_context()->is_broken = true;
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
    if (fake_health() != CUDA_SUCCESS)
        return fake_health();
    if (config->hStream->context != fake_context())
        return 400;
    struct launch l = {.function = function, .config = *config};
    for (unsigned i = 0; i < config->numAttrs; i++)
        l.attributes[i] = config->attrs[i];
    for (int i = 0; i < function->n; i++)
        l.operands[i] = *(const CUdeviceptr *)parameters[i];
    fake_submit(config->hStream, run_launch, &l, sizeof l);
    return CUDA_SUCCESS;
}
