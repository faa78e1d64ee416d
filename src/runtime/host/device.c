// SPDX-License-Identifier: Apache-2.0
// The host as a device: memory of the data pool, kernels over chunks on the thread pool.
#include "runtime/steps.h"

#include "base/collective.h"
#include "base/dtype.h"
#include "base/status.h"
#include "runtime/host/blas.h"
#include "runtime/host/blocks.h"
#include "runtime/host/conv_tiles.h"
#include "runtime/host/cpu.h"
#include "runtime/host/pool.h"
#include "runtime/loader.h"

#include <limits.h>
#include <string.h>

// A copy is spread over the pool in parts of this size.
#define COPY_GRAIN ((int64_t)1 << 20)

// ---- memory ----

static jot_status wait(jot_device *d)
{
    (void)d;
    return JOT_OK;
}

static jot_status allocate(jot_device *d, size_t bytes, const char *what, void **out)
{
    (void)d;
    *out = rt_block_allocate(bytes);
    return *out ? JOT_OK
                : status_fail(JOT_ERR_MEMORY, "out of memory: %s of %zu bytes", what, bytes);
}

static void release(jot_device *d, void *block, size_t bytes)
{
    (void)d;
    rt_block_release(block, bytes);
}

static void trim(jot_device *d)
{
    (void)d;
    rt_block_trim();
}

static jot_status memory(jot_device *d, jot_device_memory_use *out)
{
    (void)d;
    *out = (jot_device_memory_use){.used = jot_memory().bytes};
    return JOT_OK;
}

static jot_status copy_bytes(jot_device *d, void *to, const void *from, size_t bytes)
{
    (void)d;
    if (bytes)
        memcpy(to, from, bytes);
    return JOT_OK;
}

static jot_status clear(jot_device *d, void *block, size_t bytes)
{
    (void)d;
    if (bytes)
        memset(block, 0, bytes);
    return JOT_OK;
}

static jot_status copy(jot_device *to_device, void *to, jot_device *from_device,
                       const void *from, size_t bytes)
{
    (void)from_device;
    return copy_bytes(to_device, to, from, bytes);
}

// ---- code ----

static jot_status target(jot_device *d, char *buffer, size_t size)
{
    (void)d;
    (void)size;
    buffer[0] = 0;
    return JOT_OK;
}

static void identity(jot_device *d, char *buffer, size_t size)
{
    (void)d;
    rt_cpu_text(buffer, size);
}

static void *resolve(void *ctx, const char *name)
{
    (void)ctx;
    return rt_symbol_find(name);
}

static jot_status load_object(struct rt_program *p, const void *object, size_t size)
{
    struct rt_code *code = NULL;
    if (size)
        JOT_TRY(rt_code_load(object, size, resolve, NULL, &code));
    p->code = code;
    return JOT_OK;
}

static void unload(struct rt_program *p) { rt_code_release(p->code); }

// The address of a function of the object, to a pointer of so many bytes.
static jot_status bind_code(const struct rt_program *p, const char *name, void *out,
                            size_t bytes)
{
    void *address = p->code ? rt_code_find(p->code, name) : NULL;
    if (!address)
        return status_fail(JOT_ERR_IO, "the object file has no kernel %s", name);
    memcpy(out, &address, bytes);
    return JOT_OK;
}

static jot_status reserve_scratch(struct rt_program *p, const struct rt_step *from,
                                  const char *name)
{
    if (from->scratch_bytes > (size_t)1 << 40)
        return status_fail(JOT_ERR_IO, "kernel %s asks for more scratch than any memory has",
                           name);
    size_t scratch = ((size_t)from->scratch_bytes + 63) & ~(size_t)63;
    p->scratch_stride = scratch > p->scratch_stride ? scratch : p->scratch_stride;
    p->has_parallel_scratch |= scratch && from->flags & RT_STEP_PARALLEL;
    return JOT_OK;
}

// The products of the plan are plain ones, and OpenBLAS is there.
static jot_status open_blas(const struct rt_program *p)
{
    for (uint32_t i = 0; i < p->plan.gemm_count; i++) {
        const struct rt_gemm *g = &p->plan.gemms[i];
        if (dtype_is_half((jot_dtype)g->dtype) || g->flags || g->activation)
            return status_fail(JOT_ERR_IO, "gemm %u is one that only a GPU does", i);
    }
    return rt_blas_open();
}

static jot_status bind(struct rt_program *p, const struct rt_step *from, const char *name,
                       struct rt_bound_step *s)
{
    if (from->kind == RT_STEP_GEMM)
        return open_blas(p);
    if (from->kind == RT_STEP_KERNEL)
        JOT_TRY(bind_code(p, name, &s->kernel, sizeof s->kernel));
    else
        JOT_TRY(bind_code(p, name, &s->loop, sizeof s->loop));
    if (from->kind == RT_STEP_PHASES && p->plan.gemm_count)
        JOT_TRY(open_blas(p));
    return reserve_scratch(p, from, name);
}

// ---- running ----

// Scratch for as many workers as the pool has at the time.
static jot_status prepare(const struct rt_program *p, struct rt_instance *instance)
{
    if (!p->scratch_stride)
        return JOT_OK;
    int workers = p->has_parallel_scratch ? rt_pool_size(rt_pool_default()) : 1;
    if (instance->workers >= workers)
        return JOT_OK;
    rt_block_release(instance->scratch, instance->scratch_bytes);
    instance->workers = 0;
    instance->scratch_bytes = p->scratch_stride * (size_t)workers;
    instance->scratch = rt_block_allocate(instance->scratch_bytes);
    if (!instance->scratch)
        return status_fail(JOT_ERR_MEMORY, "out of memory: locals of %d threads, %zu bytes",
                           workers, instance->scratch_bytes);
    instance->workers = workers;
    return JOT_OK;
}

static void forget(const struct rt_program *program, struct rt_instance *instance)
{
    (void)program;
    rt_block_release(instance->scratch, instance->scratch_bytes);
}

// A kernel over its chunks.
struct launch {
    rt_kernel *kernel;
    void *const *operands;
    int64_t total, grain;
    char *scratch; // of worker 0, or NULL
    size_t stride;
};

static void run_chunk(void *ctx, int64_t chunk, int worker)
{
    const struct launch *l = ctx;
    int64_t begin = chunk * l->grain;
    int64_t end = l->total - begin < l->grain ? l->total : begin + l->grain;
    l->kernel(l->operands, begin, end, chunk,
              l->scratch ? l->scratch + (size_t)worker * l->stride : NULL);
}

static jot_status run_kernel(const struct rt_program *p, const struct rt_instance *instance,
                             const struct rt_bound_step *s)
{
    struct launch l = {.kernel = s->kernel,
                       .operands = instance->operands + s->operand_first,
                       .total = s->total,
                       .grain = s->grain,
                       .scratch = s->has_scratch ? instance->scratch : NULL,
                       .stride = p->scratch_stride};
    if (s->is_parallel && s->chunks > 1) {
        rt_pool_run(rt_pool_default(), l.scratch ? instance->workers : INT_MAX, run_chunk, &l,
                    s->chunks);
        return JOT_OK;
    }
    for (int64_t chunk = 0; chunk < s->chunks; chunk++)
        run_chunk(&l, chunk, 0);
    return JOT_OK;
}

// The devices that run the program, each with a share of the work.
static int64_t shares_of(const struct rt_program *p)
{
    return collective_mesh_size(p->plan.mesh_rank, p->plan.params);
}

static jot_status run_gemm(const struct rt_program *p, const struct rt_bound_step *s,
                           void *const *operands)
{
    return rt_gemm(s->is_parallel ? rt_pool_default() : NULL, s->gemm, shares_of(p),
                   operands[0], operands[1], operands[2]);
}

struct copy {
    char *to;
    const char *from;
    int64_t bytes;
};

static void copy_part(void *ctx, int64_t part, int worker)
{
    const struct copy *c = ctx;
    (void)worker;
    int64_t at = part * COPY_GRAIN, left = c->bytes - at;
    memcpy(c->to + at, c->from + at, (size_t)(left < COPY_GRAIN ? left : COPY_GRAIN));
}

static jot_status copy_step(const struct rt_program *p, const struct rt_bound_step *s,
                            void *const *operands)
{
    struct copy c = {.to = operands[0], .from = operands[1], .bytes = s->total};
    int64_t parts = s->total / COPY_GRAIN + (s->total % COPY_GRAIN != 0);
    (void)p;
    if (s->is_parallel && parts > 1)
        rt_pool_run(rt_pool_default(), INT_MAX, copy_part, &c, parts);
    else if (s->total)
        memcpy(c.to, c.from, (size_t)s->total);
    return JOT_OK;
}

// A native loop in progress.
struct phases {
    struct rt_phases calls; // first, for what the loop has is its address
    const struct rt_program *program;
    const struct rt_instance *instance;
    bool has_scratch;
    jot_status status;
};

static void run_phase(struct rt_phases *phases, rt_kernel *kernel, void *const *buffers,
                      int64_t total, int64_t grain)
{
    const struct phases *q = (const struct phases *)phases;
    struct launch l = {.kernel = kernel,
                       .operands = buffers,
                       .total = total,
                       .grain = grain,
                       .scratch = q->has_scratch ? q->instance->scratch : NULL,
                       .stride = q->program->scratch_stride};
    rt_pool_run(rt_pool_default(), l.scratch ? q->instance->workers : INT_MAX, run_chunk, &l,
                total / grain + (total % grain != 0));
}

static bool multiply(struct rt_phases *phases, void *const *buffers, int64_t index)
{
    struct phases *q = (struct phases *)phases;
    q->status = rt_gemm(rt_pool_default(), &q->program->plan.gemms[index],
                        shares_of(q->program), buffers[0], buffers[1], buffers[2]);
    return q->status == JOT_OK;
}

static jot_status run_phases(const struct rt_program *p, const struct rt_instance *instance,
                             const struct rt_bound_step *s)
{
    struct phases q = {.calls = {.run = run_phase, .multiply = multiply},
                       .program = p,
                       .instance = instance,
                       .has_scratch = s->has_scratch};
    instance->trips[s->index] = s->loop(instance->operands + s->operand_first, &q.calls,
                                        s->has_scratch ? instance->scratch : NULL);
    return q.status;
}

const struct rt_device_type rt_host_type = {
    .kind = JOT_HOST,
    .check = rt_host_check,
    .allocate = allocate,
    .release = release,
    .trim = trim,
    .memory = memory,
    .upload = copy_bytes,
    .download = copy_bytes,
    .copy = copy,
    .clear = clear,
    .wait = wait,
    .target = target,
    .identity = identity,
    .load = load_object,
    .unload = unload,
    .bind = bind,
    .prepare = prepare,
    .forget = forget,
    .kernel = run_kernel,
    .phases = run_phases,
    .gemm = run_gemm,
    .copy_step = copy_step,
    .takes_convolution = host_takes_convolution,
};
