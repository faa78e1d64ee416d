// SPDX-License-Identifier: Apache-2.0
// Kernels in CUDA C of the user's: compiled by NVRTC, kept by the disk cache, launched.
//
// What is kept is the name that the kernel has in the code, padded to 8 bytes, and the cubin.
#include "runtime/cuda/device.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/cache.h"
#include "runtime/raw_kernel.h"
#include "runtime/steps.h"

#include <stdio.h>
#include <string.h>

#define OPTIONS_MOST 32

struct cuda_raw {
    struct cuda_raw *next; // of the program
    CUmodule module;
    CUfunction function;
    CUlaunchConfig config;
    int64_t launches; // one for each lane, or one
    uint32_t n;       // operands
    uint64_t moves[]; // by operand: bytes from lane to lane
};

// ---- Compiling

struct code {
    void *bytes; // of memory_allocate
    size_t size;
};

static size_t padded(size_t size) { return (size + 7) & ~(size_t)7; }

static jot_status fail(const struct rt_raw_kernel *k, nvrtcProgram program, nvrtcResult result)
{
    size_t size = 0;
    char *log = NULL;
    if (program && cuda.nvrtc.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS &&
        size > 1)
        log = memory_allocate_zeroed(size + 1);
    if (log)
        cuda.nvrtc.nvrtcGetProgramLog(program, log);
    jot_status status =
        status_fail(JOT_ERR_ARGUMENT, "kernel %s is not compiled: %s", k->text + k->name,
                    log ? log : cuda.nvrtc.nvrtcGetErrorString(result));
    memory_release(log);
    return status;
}

// The options of the user, which are words, and the architecture.
static int list_options(char *words, const char *arch, const char **out)
{
    int n = 0;
    out[n++] = arch;
    for (char *at = strtok_r(words, " ", &words); at && n < OPTIONS_MOST;
         at = strtok_r(NULL, " ", &words))
        out[n++] = at;
    return n;
}

static nvrtcResult take_code(nvrtcProgram program, const char *name, struct code *out)
{
    const char *lowered;
    size_t size;
    nvrtcResult result = cuda.nvrtc.nvrtcGetLoweredName(program, name, &lowered);
    if (result == NVRTC_SUCCESS)
        result = cuda.nvrtc.nvrtcGetCUBINSize(program, &size);
    if (result != NVRTC_SUCCESS)
        return result;
    size_t at = padded(strlen(lowered) + 1);
    out->size = at + size;
    out->bytes = memory_allocate_zeroed(out->size);
    if (!out->bytes)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    memcpy(out->bytes, lowered, strlen(lowered));
    return cuda.nvrtc.nvrtcGetCUBIN(program, (char *)out->bytes + at);
}

static jot_status compile(const struct rt_raw_kernel *k, const char *arch, struct code *out)
{
    const char *name = k->text + k->name, *options[OPTIONS_MOST];
    size_t length = strlen(k->text + k->options) + 1;
    char *words = memory_allocate(length);
    if (!words)
        return status_out_of_memory();
    memcpy(words, k->text + k->options, length);
    nvrtcProgram program = NULL;
    nvrtcResult result =
        cuda.nvrtc.nvrtcCreateProgram(&program, k->text + k->source, name, 0, NULL, NULL);
    if (result == NVRTC_SUCCESS)
        result = cuda.nvrtc.nvrtcAddNameExpression(program, name);
    if (result == NVRTC_SUCCESS)
        result = cuda.nvrtc.nvrtcCompileProgram(program, list_options(words, arch, options),
                                                options);
    if (result == NVRTC_SUCCESS)
        result = take_code(program, name, out);
    jot_status status = result == NVRTC_SUCCESS ? JOT_OK : fail(k, program, result);
    if (program)
        cuda.nvrtc.nvrtcDestroyProgram(&program);
    memory_release(words);
    return status;
}

static struct hash128 key_of(const struct rt_raw_kernel *k, const char *arch)
{
    char text[64];
    snprintf(text, sizeof text, "%s nvrtc %s", arch, cuda_library_version(CUDA_LIBRARY_nvrtc));
    struct hash128 h[4] = {hash128_bytes(text, strlen(text)),
                           hash128_bytes(k->text + k->name, strlen(k->text + k->name)),
                           hash128_bytes(k->text + k->options, strlen(k->text + k->options)),
                           hash128_bytes(k->text + k->source, strlen(k->text + k->source))};
    return hash128_bytes(h, sizeof h);
}

// From the cache, or compiled.  Gives a copy.
jot_status cuda_raw_compile(const struct rt_raw_kernel *k, const char *arch, void **out,
                            size_t *out_size)
{
    struct rt_cache_entry entry;
    struct code code = {0};
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_nvrtc));
    struct hash128 key = key_of(k, arch);
    if (rt_cache_find(rt_cache_default(), key, &entry, NULL)) {
        code.size = entry.size;
        code.bytes = memory_allocate(entry.size);
        if (code.bytes)
            memcpy(code.bytes, entry.bytes, entry.size);
        rt_cache_entry_release(&entry);
        if (!code.bytes)
            return status_out_of_memory();
    } else {
        jot_status status = compile(k, arch, &code);
        if (status != JOT_OK) {
            memory_release(code.bytes);
            return status;
        }
        rt_cache_store(rt_cache_default(), key, code.bytes, code.size, NULL);
    }
    *out = code.bytes;
    *out_size = code.size;
    return JOT_OK;
}

// ---- Binding

jot_status cuda_raw_load(struct cuda_device *d, const char *code, size_t size, CUmodule *out,
                         CUfunction *out_function)
{
    size_t length = strnlen(code, size);
    if (padded(length + 1) >= size)
        return status_fail(JOT_ERR_IO, "the kernel is damaged");
    JOT_TRY(cuda_status(d, cuda.driver.cuModuleLoadData(out, code + padded(length + 1)),
                        "loading a kernel"));
    return cuda_status(d, cuda.driver.cuModuleGetFunction(out_function, *out, code),
                       "finding a kernel");
}

// params: as of a callback (nest.h).
static void read_lanes(struct cuda_raw *r, const struct rt_raw_kernel *k, const int64_t *params)
{
    int64_t lanes = 1;
    const int64_t *type = params + 4;
    for (int64_t i = 0; i < params[3]; i++)
        lanes *= type[2 + i];
    for (uint32_t i = 0; i < r->n; i++) {
        uint64_t bytes = jot_dtype_size((jot_dtype)type[0]);
        for (int64_t a = params[3]; a < type[1]; a++)
            bytes *= (uint64_t)type[2 + a];
        r->moves[i] = bytes;
        type += 2 + type[1];
    }
    r->launches = k->maps_batch ? lanes > 0 : lanes;
    if (k->maps_batch)
        r->config.gridDimZ *= (unsigned)lanes;
}

static unsigned at_least_1(unsigned x) { return x ? x : 1; }

static jot_status prepare(struct cuda_device *d, struct cuda_raw *r,
                          const struct rt_raw_kernel *k)
{
    char arch[32];
    void *code;
    size_t size;
    snprintf(arch, sizeof arch, "-arch=sm_%d%d", d->major, d->minor);
    JOT_TRY(cuda_raw_compile(k, arch, &code, &size));
    jot_status status = cuda_raw_load(d, code, size, &r->module, &r->function);
    memory_release(code);
    if (status == JOT_OK && k->shared_bytes > 48 << 10)
        status = cuda_status(d,
                             cuda.driver.cuFuncSetAttribute(
                                 r->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 (int)k->shared_bytes),
                             "asking for shared memory");
    return status;
}

jot_status cuda_raw_bind(struct rt_program *program, const struct rt_raw_kernel *k,
                         struct rt_bound_step *step)
{
    struct cuda_device *d = cuda_device_of(program->device);
    struct cuda_code *code = program->code;
    uint32_t n = step->operand_count;
    struct cuda_raw *r = memory_allocate_zeroed(sizeof *r + n * sizeof *r->moves);
    if (!r)
        return status_out_of_memory();
    r->next = code->raws;
    code->raws = r;
    r->n = n;
    r->config = (CUlaunchConfig){.gridDimX = at_least_1(k->grid[0]),
                                 .gridDimY = at_least_1(k->grid[1]),
                                 .gridDimZ = at_least_1(k->grid[2]),
                                 .blockDimX = at_least_1(k->block[0]),
                                 .blockDimY = at_least_1(k->block[1]),
                                 .blockDimZ = at_least_1(k->block[2]),
                                 .sharedMemBytes = (unsigned)k->shared_bytes};
    read_lanes(r, k, step->params);
    JOT_TRY(cuda_enter(d));
    jot_status status = prepare(d, r, k);
    cuda_leave();
    if (status == JOT_OK)
        step->raw = r;
    return status;
}

void cuda_raw_forget(struct cuda_raw *r)
{
    while (r) {
        struct cuda_raw *next = r->next;
        if (r->module)
            cuda.driver.cuModuleUnload(r->module);
        memory_release(r);
        r = next;
    }
}

// ---- Running

static jot_status launch(struct cuda_device *d, const struct cuda_raw *r, void **parameters)
{
    CUlaunchConfig config = r->config;
    config.hStream = cuda_stream(d);
    return cuda_status(d, cuda.driver.cuLaunchKernelEx(&config, r->function, parameters, NULL),
                       "starting a kernel");
}

jot_status cuda_raw_launch(const struct rt_program *program, const struct rt_instance *instance,
                           const struct rt_bound_step *step)
{
    struct cuda_device *d = cuda_device_of(program->device);
    const struct cuda_raw *r = step->raw;
    if (r->launches == 1)
        return launch(d, r, instance->parameters + step->operand_first);
    char **at = memory_allocate((r->n + 1) * 2 * sizeof *at);
    if (!at)
        return status_out_of_memory();
    void **parameters = (void **)(at + r->n + 1);
    jot_status status = JOT_OK;
    for (uint32_t i = 0; i < r->n; i++) {
        at[i] = instance->operands[step->operand_first + i];
        parameters[i] = &at[i];
    }
    for (int64_t lane = 0; lane < r->launches && status == JOT_OK; lane++) {
        status = launch(d, r, parameters);
        for (uint32_t i = 0; i < r->n; i++)
            at[i] += r->moves[i];
    }
    memory_release(at);
    return status;
}
