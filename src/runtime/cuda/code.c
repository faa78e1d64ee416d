// SPDX-License-Identifier: Apache-2.0
// Kernels of a program: assembled, loaded, and launched.
//
// The code generator gives PTX: texts that each end in a zero byte.  What is loaded, and kept by
// the cache of compiled code, is a list of images, cubins where nvJitLink is there and the PTX
// itself where it is not: the number of images, then the size of each and its bytes, padded to
// 8.
#include "runtime/cuda/device.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/host/pool.h"
#include "runtime/steps.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

// What a block may have of shared memory without asking.
#define SHARED_FREELY (48 << 10)
// The largest cluster that any device of its kind can run.
#define CLUSTER_PORTABLE 8
// A kernel is small whose blocks are no more than this share of the multiprocessors.
#define SMALL_SHARE 4
// A small kernel of so many threads for each multiprocessor takes longer than it takes to start one beside it.
#define ASIDE_THREADS 32

// ---- assembling ----

struct image {
    const char *ptx;
    size_t ptx_size; // with its zero byte
    void *cubin;     // of memory_allocate; NULL when the PTX itself is the image
    size_t cubin_size;
    jot_status status;
    char fault[600];
};

struct assembly {
    struct image *images;
    const char *arch; // "-arch=sm_90"
};

static jot_status fail_assembly(struct image *i, nvJitLinkHandle linker)
{
    size_t size = 0;
    char *log = NULL;
    if (cuda.nvjitlink.nvJitLinkGetErrorLogSize(linker, &size) == NVJITLINK_SUCCESS && size > 1)
        log = memory_allocate_zeroed(size + 1);
    if (log)
        cuda.nvjitlink.nvJitLinkGetErrorLog(linker, log);
    snprintf(i->fault, sizeof i->fault, "nvJitLink does not assemble a kernel: %s",
             log ? log : "no reason given");
    memory_release(log);
    return JOT_ERR_LIBRARY;
}

static jot_status link_image(struct image *i, nvJitLinkHandle linker)
{
    if (cuda.nvjitlink.nvJitLinkAddData(linker, NVJITLINK_INPUT_PTX, i->ptx, i->ptx_size,
                                        "jot") != NVJITLINK_SUCCESS ||
        cuda.nvjitlink.nvJitLinkComplete(linker) != NVJITLINK_SUCCESS ||
        cuda.nvjitlink.nvJitLinkGetLinkedCubinSize(linker, &i->cubin_size) != NVJITLINK_SUCCESS)
        return fail_assembly(i, linker);
    i->cubin = memory_allocate(i->cubin_size);
    if (!i->cubin) {
        snprintf(i->fault, sizeof i->fault, "out of memory");
        return JOT_ERR_MEMORY;
    }
    if (cuda.nvjitlink.nvJitLinkGetLinkedCubin(linker, i->cubin) != NVJITLINK_SUCCESS)
        return fail_assembly(i, linker);
    return JOT_OK;
}

// Any thread: what goes wrong stays with the image.
static void assemble_image(void *ctx, int64_t index, int worker)
{
    const struct assembly *a = ctx;
    struct image *i = &a->images[index];
    const char *options[] = {a->arch, "-O3"};
    nvJitLinkHandle linker = NULL;
    (void)worker;
    if (cuda.nvjitlink.nvJitLinkCreate(&linker, 2, options) != NVJITLINK_SUCCESS) {
        snprintf(i->fault, sizeof i->fault, "nvJitLink does not know %s", a->arch);
        i->status = JOT_ERR_LIBRARY;
        return;
    }
    i->status = link_image(i, linker);
    cuda.nvjitlink.nvJitLinkDestroy(&linker);
}

static size_t padded(size_t size) { return (size + 7) & ~(size_t)7; }

static void put_image(char **at, const void *bytes, uint64_t size)
{
    memcpy(*at, &size, sizeof size);
    memcpy(*at + sizeof size, bytes, size);
    *at += sizeof size + padded(size);
}

static jot_status write_images(const struct image *images, uint64_t count, void **out,
                               size_t *out_size)
{
    size_t size = sizeof count;
    for (uint64_t i = 0; i < count; i++)
        size += sizeof(uint64_t) +
                padded(images[i].cubin ? images[i].cubin_size : images[i].ptx_size);
    char *at = memory_allocate_zeroed(size);
    if (!at)
        return status_out_of_memory();
    *out = at;
    *out_size = size;
    memcpy(at, &count, sizeof count);
    at += sizeof count;
    for (uint64_t i = 0; i < count; i++)
        if (images[i].cubin)
            put_image(&at, images[i].cubin, images[i].cubin_size);
        else
            put_image(&at, images[i].ptx, images[i].ptx_size);
    return JOT_OK;
}

static int64_t split_texts(const char *ptx, size_t size, struct image *images)
{
    int64_t n = 0;
    for (size_t at = 0; at < size; n++) {
        size_t length = strnlen(ptx + at, size - at);
        if (images)
            images[n] = (struct image){.ptx = ptx + at, .ptx_size = length + 1};
        at += length + 1;
    }
    return n;
}

static jot_status assemble_all(struct cuda_device *d, struct image *images, int64_t n)
{
    char arch[32];
    struct assembly a = {.images = images, .arch = arch};
    // Without the library the driver compiles the PTX, which takes longer and at each load.
    if (cuda_library_open(CUDA_LIBRARY_nvjitlink) != JOT_OK)
        return JOT_OK;
    snprintf(arch, sizeof arch, "-arch=sm_%d%d%s", d->major, d->minor, cuda_arch_suffix(d));
    rt_pool_run(rt_pool_default(), INT_MAX, assemble_image, &a, n);
    for (int64_t i = 0; i < n; i++)
        if (images[i].status != JOT_OK)
            return status_fail(images[i].status, "%s: %s", d->base.name, images[i].fault);
    return JOT_OK;
}

jot_status cuda_assemble(jot_device *device, const void *object, size_t size, void **out,
                         size_t *out_size)
{
    struct cuda_device *d = cuda_device_of(device);
    if (size && ((const char *)object)[size - 1])
        return status_fail(JOT_ERR_INTERNAL, "the code generator gave PTX that does not end");
    JOT_TRY(d->base.type->check(device));
    int64_t n = split_texts(object, size, NULL);
    struct image *images = memory_allocate(((size_t)n + 1) * sizeof *images);
    if (!images)
        return status_out_of_memory();
    split_texts(object, size, images);
    jot_status status = assemble_all(d, images, n);
    if (status == JOT_OK)
        status = write_images(images, (uint64_t)n, out, out_size);
    for (int64_t i = 0; i < n; i++)
        memory_release(images[i].cubin);
    memory_release(images);
    return status;
}

// ---- loading ----

struct cuda_kernel {
    struct cuda_kernel *next;
    CUfunction function;
    CUlaunchConfig config;
    CUlaunchAttribute attributes[3];
};

// Image `index` of the list, or NULL when the list is damaged.  Images are 8-byte aligned.
static const void *image_at(const char *object, size_t size, uint64_t index)
{
    size_t at = sizeof(uint64_t);
    for (uint64_t i = 0;; i++) {
        uint64_t bytes;
        if (size < at + sizeof bytes)
            return NULL;
        memcpy(&bytes, object + at, sizeof bytes);
        at += sizeof bytes;
        if (bytes == 0 || bytes > size - at)
            return NULL;
        if (i == index)
            return object + at;
        at += padded(bytes);
    }
}

static jot_status load_modules(struct cuda_device *d, struct cuda_code *code,
                               const char *object, size_t size, uint64_t count)
{
    for (; code->count < count; code->count++) {
        const void *image = image_at(object, size, code->count);
        if (!image)
            return status_fail(JOT_ERR_IO, "the list of kernels is damaged");
        JOT_TRY(cuda_status(d, cuda.driver.cuModuleLoadData(&code->modules[code->count], image),
                            "loading kernels"));
    }
    return JOT_OK;
}

jot_status cuda_load(struct rt_program *program, const void *object, size_t size)
{
    struct cuda_device *d = cuda_device_of(program->device);
    uint64_t count = 0;
    if (size >= sizeof count)
        memcpy(&count, object, sizeof count);
    if ((size && size < sizeof count) || count > size / sizeof count)
        return status_fail(JOT_ERR_IO, "the list of kernels is damaged");
    struct cuda_code *code =
        memory_allocate_zeroed(sizeof *code + (size_t)count * sizeof(CUmodule));
    if (!code)
        return status_out_of_memory();
    program->code = code;
    JOT_TRY(cuda_enter(d));
    jot_status status = load_modules(d, code, object, size, count);
    cuda_leave();
    return status;
}

void cuda_unload(struct rt_program *program)
{
    struct cuda_device *d = cuda_device_of(program->device);
    struct cuda_code *code = program->code;
    if (!code)
        return;
    if (!atomic_load(&d->is_lost) && cuda_enter(d) == JOT_OK) {
        // Kernels of a module that goes may still run.
        cuda_status(d, cuda.driver.cuStreamSynchronize(d->stream), "waiting for a program");
        for (uint64_t i = 0; i < code->count; i++)
            cuda.driver.cuModuleUnload(code->modules[i]);
        cuda_raw_forget(code->raws);
        code->raws = NULL;
        cuda_leave();
    }
    cuda_release(&d->base, code->workspace, code->workspaces * code->workspace_bytes);
    cuda_gemm_forget(code->products);
    cuda_routine_forget(code->routines);
    cuda_release(&d->base, code->routine_workspace, code->routine_bytes);
    while (code->kernels) {
        struct cuda_kernel *next = code->kernels->next;
        memory_release(code->kernels);
        code->kernels = next;
    }
    memory_release(code);
}

// ---- kernels ----

static jot_status find_function(struct cuda_device *d, const struct cuda_code *code,
                                const char *name, CUfunction *out)
{
    for (uint64_t i = 0; i < code->count; i++)
        if (cuda.driver.cuModuleGetFunction(out, code->modules[i], name) == CUDA_SUCCESS)
            return JOT_OK;
    return status_fail(JOT_ERR_IO, "%s: the program has no kernel %s", d->base.name, name);
}

static void add_attributes(const struct cuda_device *d, struct cuda_kernel *k,
                           const struct rt_step *from)
{
    CUlaunchConfig *c = &k->config;
    c->attrs = k->attributes;
    if (from->flags & RT_STEP_COOPERATIVE)
        k->attributes[c->numAttrs++] = (CUlaunchAttribute){
            .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
    if (from->flags & RT_STEP_EARLY && d->major >= 9)
        k->attributes[c->numAttrs++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                .value = {.programmaticStreamSerializationAllowed = 1}};
    if (from->cluster > 1)
        k->attributes[c->numAttrs++] =
            (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                .value = {.clusterDim = {from->cluster, 1, 1}}};
}

// How many blocks the device runs at once.
static jot_status count_resident(struct cuda_device *d, struct cuda_kernel *k,
                                 const struct rt_step *from, int64_t *out)
{
    int blocks = 0;
    if (from->cluster > 1) {
        k->config.gridDimX = from->cluster;
        JOT_TRY(cuda_status(
            d, cuda.driver.cuOccupancyMaxActiveClusters(&blocks, k->function, &k->config),
            "asking how many clusters fit"));
        *out = (int64_t)blocks * from->cluster;
        return JOT_OK;
    }
    JOT_TRY(cuda_status(d,
                        cuda.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                            &blocks, k->function, (int)from->block, from->scratch_bytes),
                        "asking how many blocks fit"));
    *out = (int64_t)blocks * d->sm_count;
    return JOT_OK;
}

static jot_status choose_grid(struct cuda_device *d, struct cuda_kernel *k,
                              const struct rt_step *from, const char *name, int64_t chunks)
{
    int64_t resident, cluster = from->cluster > 1 ? from->cluster : 1;
    JOT_TRY(count_resident(d, k, from, &resident));
    if (resident < 1)
        return status_fail(JOT_ERR_DEVICE, "%s: a block of kernel %s does not fit",
                           d->base.name, name);
    int64_t grid = chunks;
    if (!(from->flags & RT_STEP_EXACT_GRID) && grid > resident)
        grid = resident;
    grid = (grid + cluster - 1) / cluster * cluster;
    if (grid > INT_MAX || (from->flags & RT_STEP_COOPERATIVE && grid > resident))
        return status_fail(JOT_ERR_DEVICE, "%s: kernel %s wants %" PRId64 " blocks",
                           d->base.name, name, grid);
    k->config.gridDimX = (unsigned)grid;
    return JOT_OK;
}

static jot_status set_limits(struct cuda_device *d, struct cuda_kernel *k,
                             const struct rt_step *from)
{
    if (from->scratch_bytes > SHARED_FREELY)
        JOT_TRY(cuda_status(d,
                            cuda.driver.cuFuncSetAttribute(
                                k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                (int)from->scratch_bytes),
                            "asking for shared memory"));
    if (from->cluster > CLUSTER_PORTABLE)
        JOT_TRY(cuda_status(
            d,
            cuda.driver.cuFuncSetAttribute(
                k->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
            "asking for a large cluster"));
    return JOT_OK;
}

static jot_status bind_kernel(struct cuda_device *d, struct cuda_kernel *k,
                              const struct rt_step *from, const char *name, int64_t chunks)
{
    k->config = (CUlaunchConfig){.gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = from->block,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .sharedMemBytes = (unsigned)from->scratch_bytes,
                                 .hStream = d->stream};
    add_attributes(d, k, from);
    JOT_TRY(set_limits(d, k, from));
    return choose_grid(d, k, from, name, chunks);
}

jot_status cuda_bind(struct rt_program *program, const struct rt_step *from, const char *name,
                     struct rt_bound_step *step)
{
    struct cuda_device *d = cuda_device_of(program->device);
    struct cuda_code *code = program->code;
    if (from->kind == RT_STEP_GEMM)
        return cuda_gemm_bind(program, from, step);
    if (from->kind != RT_STEP_KERNEL && (from->kind != RT_STEP_PHASES || !from->param_count))
        return status_fail(JOT_ERR_IO, "%s: a step that only the host runs", d->base.name);
    if (from->block == 0 || from->scratch_bytes > (uint64_t)d->shared_bytes)
        return status_fail(JOT_ERR_IO,
                           "%s: kernel %s has %u threads and %" PRIu64
                           " bytes of shared memory a block",
                           d->base.name, name, from->block, from->scratch_bytes);
    struct cuda_kernel *k = memory_allocate_zeroed(sizeof *k);
    if (!k)
        return status_out_of_memory();
    k->next = code->kernels;
    code->kernels = k;
    step->launch = k;
    JOT_TRY(cuda_enter(d));
    jot_status status = find_function(d, code, name, &k->function);
    if (status == JOT_OK)
        status = bind_kernel(d, k, from, name, step->chunks);
    cuda_leave();
    return status;
}

// ---- running ----

jot_status cuda_prepare(const struct rt_program *program, struct rt_instance *instance)
{
    uint32_t n = program->plan.operand_count;
    if (!instance->parameters) {
        instance->parameters = memory_allocate((n + 1) * sizeof(void *));
        if (!instance->parameters)
            return status_out_of_memory();
        for (uint32_t i = 0; i < n; i++)
            instance->parameters[i] = &instance->operands[i];
    }
    return cuda_enter(cuda_device_of(program->device)); // once for all steps
}

void cuda_finish(const struct rt_program *program)
{
    (void)program;
    cuda_leave();
}

void cuda_forget(const struct rt_program *program, struct rt_instance *instance)
{
    cuda_graphs_forget(program, instance);
    memory_release(instance->parameters);
}

jot_status cuda_launch(const struct rt_program *program, const struct rt_instance *instance,
                       const struct rt_bound_step *step)
{
    struct cuda_device *d = cuda_device_of(program->device);
    const struct cuda_kernel *k = step->launch;
    if (step->chunks == 0)
        return JOT_OK;
    CUlaunchConfig config = k->config;
    config.hStream = cuda_stream(d);
    return cuda_status(d,
                       cuda.driver.cuLaunchKernelEx(&config, k->function,
                                                    instance->parameters + step->operand_first,
                                                    NULL),
                       "starting a kernel");
}

bool cuda_kernel_is_small(const struct rt_program *program, const struct rt_bound_step *step)
{
    const struct cuda_device *d = cuda_device_of(program->device);
    return step->kind == RT_STEP_KERNEL &&
           (int64_t)step->launch->config.gridDimX * SMALL_SHARE <= d->sm_count;
}

bool cuda_kernel_is_aside(const struct rt_program *program, const struct rt_bound_step *step)
{
    const CUlaunchConfig *c = step->kind == RT_STEP_KERNEL ? &step->launch->config : NULL;
    const struct cuda_device *d = cuda_device_of(program->device);
    return c && cuda_kernel_is_small(program, step) &&
           (int64_t)c->gridDimX * c->blockDimX >= (int64_t)ASIDE_THREADS * d->sm_count;
}

// The kernel leaves turns as they are after so many trips.
jot_status cuda_loop(const struct rt_program *program, const struct rt_instance *instance,
                     const struct rt_bound_step *step)
{
    instance->trips[step->index] = step->params[0];
    return cuda_launch(program, instance, step);
}
