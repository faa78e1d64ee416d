// SPDX-License-Identifier: Apache-2.0
// Modules and launches.  An image is what retarget.c writes, the source of jot's own kernels, or a text
// of names, each with a space behind it, of kernels that are C functions of this file, or PTX.
#include "fake_cuda/emulate.h"

#include "base/status.h"
#include "fake_cuda/own_kernels.h"
#include "runtime/loader.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

static atomic_int launches, modules;

int fake_cuda_launches(void) { return launches; }
int fake_cuda_modules(void) { return modules; }

struct CUfunc_st {
    char name[64];
    int n;                                                 // operands
    void (*run)(const CUlaunchConfig *c, void **operands); // or
    void (*thread)(void **operands);                       // of the machine, by emulate
    void (*then)(void **operands);                         // own_kernels.h
};

struct CUmod_st {
    struct rt_code *code; // NULL: functions of this file
    struct CUfunc_st *functions;
    size_t count;
};

// ---- of this file ----

// y = x + 1 over 1000 floats in chunks of 64.
static void add_one(const CUlaunchConfig *c, void **operands)
{
    float *y = operands[1], *x = operands[0];
    for (unsigned block = 0; block < c->gridDimX; block++)
        for (int64_t chunk = block; chunk < 16; chunk += c->gridDimX)
            for (int64_t i = chunk * 64; i < 1000 && i < chunk * 64 + 64; i++)
                y[i] = x[i] + 1;
}

// state *= 2 unless it is 100 or more; the flag says whether it is below then.
static void double_it(const CUlaunchConfig *c, void **operands)
{
    (void)c;
    double *state = operands[0];
    *state *= 2;
    *(unsigned char *)operands[1] = *state < 100;
}

// The flag says whether the state is below 100.
static void below(const CUlaunchConfig *c, void **operands)
{
    (void)c;
    *(unsigned char *)operands[1] = *(const double *)operands[0] < 100;
}

// What the launch was: blocks, threads, shared memory, cooperative, cluster, early.
static void tell(const CUlaunchConfig *c, void **operands)
{
    int32_t *to = operands[0];
    to[0] = (int32_t)c->gridDimX;
    to[1] = (int32_t)c->blockDimX;
    to[2] = (int32_t)c->sharedMemBytes;
    to[3] = to[4] = to[5] = 0;
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            to[3] = c->attrs[i].value.cooperative;
        else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            to[4] = (int32_t)c->attrs[i].value.clusterDim.x;
        else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            to[5] = c->attrs[i].value.programmaticStreamSerializationAllowed;
}

static void depth_of(const CUlaunchConfig *c, void **operands)
{
    *(int32_t *)operands[0] = (int32_t)c->gridDimZ;
}

// The kernel of runtime/cuda/while.c: the first three operands are handles, 0 for none.
static void set_conditional(const CUlaunchConfig *c, void **operands)
{
    (void)c;
    unsigned char flag = *(const unsigned char *)operands[3];
    for (int i = 0; i < 3; i++)
        if (fake_far(operands[i]))
            fake_set_conditional(fake_far(operands[i]), i < 2 ? flag != 0 : flag == 0);
}

static const struct CUfunc_st functions[] = {
    {"add_one", 2, add_one, NULL, NULL}, {"double_it", 2, double_it, NULL, NULL},
    {"below", 2, below, NULL, NULL},     {"tell", 1, tell, NULL, NULL},
    {"depth", 1, depth_of, NULL, NULL},  {"set_conditional", 4, set_conditional, NULL, NULL},
};

static void load_names(CUmodule m, const char *names)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *at = strstr(names, functions[i].name);
        if (at && at[strlen(functions[i].name)] == ' ')
            m->functions[m->count++] = functions[i];
    }
}

// ---- of the code generator ----

static unsigned digit(char c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

static struct rt_code *load_object(const char *text)
{
    size_t size = strlen(text) / 2;
    struct rt_code *code = NULL;
    unsigned char *object = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        object[i] = (unsigned char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    if (rt_code_load(object, size, emulated_symbol, NULL, &code) != JOT_OK)
        fprintf(stderr, "fake_cuda: %s\n", jot_error_message());
    free(object);
    return code;
}

static void load_emulated(CUmodule m, const char *lines)
{
    for (; *lines != '\n'; lines = strchr(lines, '\n') + 1) {
        struct CUfunc_st *f = &m->functions[m->count++];
        sscanf(lines, "%63s %d", f->name, &f->n);
    }
    m->code = load_object(lines + 1);
    for (size_t i = 0; i < m->count && m->code; i++) {
        char entry[80];
        snprintf(entry, sizeof entry, "emulated_%s", m->functions[i].name);
        void *address = rt_code_find(m->code, entry);
        memcpy(&m->functions[i].thread, &address, sizeof address);
    }
}

enum { MOST_PARAMETERS = 32764 }; // bytes

static void do_nothing(const CUlaunchConfig *c, void **operands)
{
    (void)c;
    (void)operands;
}

// Whether the parameters of a kernel, all addresses, are as many bytes as a kernel may have.
static bool fit(const char *kernel)
{
    size_t bytes = 0;
    for (const char *at = kernel, *end = strchr(kernel, ')'); at < end; at++) {
        at += strcspn(at, ".)");
        bytes += strncmp(at, ".param", 6) ? 0 : 8;
    }
    return bytes <= MOST_PARAMETERS;
}

// PTX, for tests that compile and do not look at what comes out: kernels that do nothing.
static bool load_ptx(CUmodule m, const char *text)
{
    static const char entry[] = ".visible .entry ";
    while ((text = strstr(text, entry))) {
        struct CUfunc_st *f = &m->functions[m->count++];
        text += strlen(entry);
        f->run = do_nothing;
        sscanf(text, "%63[^( \n]", f->name);
        if (!fit(text))
            return false;
    }
    return true;
}

static void load_own(CUmodule m)
{
    size_t n = 0;
    while (own_kernels[n].name)
        n++;
    free(m->functions);
    m->functions = fake_untracked(calloc(n, sizeof *m->functions));
    for (m->count = 0; m->count < n; m->count++) {
        struct CUfunc_st *f = &m->functions[m->count];
        snprintf(f->name, sizeof f->name, "%s", own_kernels[m->count].name);
        f->n = own_kernels[m->count].n;
        f->thread = own_kernels[m->count].thread;
        f->then = own_kernels[m->count].then;
    }
}

// ---- modules ----

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    static const char emulated[] = "emulated\n", own[] = "#define DEVICE";
    if (!memcmp(image, "bad", 3))
        return 200;
    CUmodule m = fake_untracked(calloc(1, sizeof *m));
    m->functions = fake_untracked(calloc(
        count_lines(image) + sizeof functions / sizeof *functions, sizeof *m->functions));
    if (!strncmp(image, emulated, strlen(emulated)))
        load_emulated(m, (const char *)image + strlen(emulated));
    else if (!strncmp(image, own, strlen(own)))
        load_own(m);
    else
        load_names(m, image);
    if (!m->count && !load_ptx(m, image))
        return 218; // as the assembler would say
    modules++;
    *module = m;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    rt_code_release(module->code);
    free(module->functions);
    free(module);
    modules--;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    for (size_t i = 0; i < module->count; i++)
        if (!strcmp(module->functions[i].name, name)) {
            *function = &module->functions[i];
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

// ---- launches ----

#define OPERANDS_MOST 1024

struct launch {
    struct CUfunc_st function;
    CUlaunchConfig config;
    CUlaunchAttribute attributes[3];
    void *operands[OPERANDS_MOST];
};

static void run_launch(void *argument)
{
    struct launch *l = argument;
    if (fake_context()->is_broken)
        return;
    l->config.attrs = l->attributes;
    if (++launches == fake_number("FAKE_CUDA_FAULT", 0))
        fake_context()->is_broken = true;
    else if (l->function.run)
        l->function.run(&l->config, l->operands);
    else
        fake_context()->is_broken =
            !emulate(l->function.name, l->function.thread, &l->config, l->operands);
}

// Of a kernel that GPUs run together, whose first parameter is a table of where each has its memory, and the
// fourth and fifth which GPU it is, of how many.
static void run_phase(void *argument, int phase)
{
    struct launch *l = argument;
    if (phase == 0)
        run_launch(l);
    else if (!fake_context()->is_broken)
        fake_context()->is_broken =
            !emulate(l->function.name, l->function.then, &l->config, l->operands);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    (void)extra;
    if (fake_health() != CUDA_SUCCESS)
        return fake_health();
    if (config->hStream->context != fake_context())
        return 400;
    struct launch l;
    if (function->n > OPERANDS_MOST)
        abort();
    l.function = *function;
    l.config = *config;
    for (unsigned i = 0; i < config->numAttrs; i++)
        l.attributes[i] = config->attrs[i];
    for (int i = 0; i < function->n; i++)
        l.operands[i] = fake_near(*(const CUdeviceptr *)parameters[i]);
    size_t bytes = offsetof(struct launch, operands) + (size_t)function->n * sizeof *l.operands;
    if (function->then)
        fake_come(*(void **)l.operands[0], (int)fake_far(l.operands[5]),
                  (int)fake_far(l.operands[4]), config->hStream, run_phase, &l, bytes);
    else
        fake_submit(config->hStream, run_launch, &l, bytes);
    return CUDA_SUCCESS;
}
