// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/kernels.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/raw_kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define KERNELS_MOST 16 // of one call

// What the sources of all files are written in.
static const char language[] =
    "#define DEVICE static __device__ __forceinline__\n"
    "#define KERNEL(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)\n"
    "#define SHARED __shared__\n"
    "#define VOLATILE volatile\n"
    "#define UNROLL _Pragma(\"unroll\")\n"
    "#define ROLLED _Pragma(\"unroll 1\")\n"
    "#define REDUCE_MAX(x) __reduce_max_sync(~0u, x)\n"
    "#define REDUCE_MIN(x) __reduce_min_sync(~0u, x)\n"
    "#define FIRST_LANE(x) (__ffs(__ballot_sync(~0u, x)) - 1)\n"
    "#define ALIGNED __align__(16)\n"
    // The address that another GPU's memory has here, and numbers that others wait for in it, until one
    // says that they are not to.
    "#define ADDRESS(x) (x)\n"
    "#define SYSTEM_FENCE() __threadfence_system()\n"
    "DEVICE void SEND(unsigned *at, unsigned x) { asm volatile("
    "\"st.release.sys.u32 [%0], %1;\" :: \"l\"(at), \"r\"(x) : \"memory\"); }\n"
    "DEVICE void AWAIT(const unsigned *at, unsigned x, const unsigned *stop)\n"
    "{ for (unsigned looks = 1, seen;; looks++) { asm volatile("
    "\"ld.acquire.sys.u32 %0, [%1];\" : \"=r\"(seen) : \"l\"(at) : \"memory\"); "
    "if ((int)(seen - x) >= 0 || (looks % 4096 == 0 && *(const volatile unsigned *)stop)) "
    "return; } }\n"
    // Of all blocks of the only cluster.
    "#define CLUSTER_SYNC() asm volatile("
    "\"barrier.cluster.arrive.release.aligned;"
    "barrier.cluster.wait.acquire.aligned;\" ::: \"memory\")\n"
    "DEVICE unsigned shared_address(const void *at)\n"
    "{ return (unsigned)__cvta_generic_to_shared(at); }\n"
    // 16 bytes to shared memory: so many of them, 0 or 16, and zeros;
    // they are there for the thread once it has waited.
    "DEVICE void COPY(void *to, const void *from, int bytes)\n"
    "{ asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" :: "
    "\"r\"(shared_address(to)), \"l\"(from), \"r\"(bytes) : \"memory\"); }\n"
    "#define COPY_WAIT() asm volatile(\"cp.async.wait_all;\" ::: \"memory\")\n"
    // Words from other blocks of it come with a barrier, which opens
    // when those that are expected are there.
    "DEVICE void MESSAGE_OPEN(const void *bar)\n"
    "{ asm volatile(\"mbarrier.init.shared.b64 [%0], 1;\" :: "
    "\"r\"(shared_address(bar)) : \"memory\"); }\n"
    "DEVICE void MESSAGE_EXPECT(const void *bar, unsigned bytes)\n"
    "{ asm volatile(\"mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;\" :: "
    "\"r\"(shared_address(bar)), \"r\"(bytes) : \"memory\"); }\n"
    "DEVICE void MESSAGE_SEND(const void *to, const unsigned *from, "
    "unsigned block, const void *bar)\n"
    "{ uint4 x = *(const uint4 *)from; asm volatile("
    "\"{.reg .u32 to, bar; mapa.shared::cluster.u32 to, %0, %2; "
    "mapa.shared::cluster.u32 bar, %1, %2; "
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
    "[to], {%3, %4, %5, %6}, [bar];}\" :: \"r\"(shared_address(to)), "
    "\"r\"(shared_address(bar)), \"r\"(block), \"r\"(x.x), \"r\"(x.y), "
    "\"r\"(x.z), \"r\"(x.w) : \"memory\"); }\n"
    "DEVICE void MESSAGE_WAIT(const void *bar, unsigned phase)\n"
    "{ asm volatile(\"{.reg .pred is; again: "
    "mbarrier.try_wait.parity.shared.b64 is, [%0], %1; "
    "@!is bra again;}\" :: \"r\"(shared_address(bar)), \"r\"(phase) : "
    "\"memory\"); }\n";

struct cuda_module {
    struct cuda_module *next; // of the device
    struct hash128 key;
    CUmodule module;
};

// Whether the piece has the kernel, or is for all of them.
static bool is_needed(const char *piece, const char *name)
{
    char text[80];
    snprintf(text, sizeof text, "NAMED(%s)(", name);
    return strstr(piece, text) || !strstr(piece, "KERNEL(");
}

static struct rt_raw_kernel *make_source(const char *words, const char *const *source,
                                         const char *name, const char *suffix)
{
    size_t room = strlen(language) + strlen(words) + strlen(name) + strlen(suffix) + 8;
    for (int i = 0; source[i]; i++)
        room += strlen(source[i]);
    struct rt_raw_kernel *k = memory_allocate_zeroed(sizeof *k + room);
    if (!k)
        return NULL;
    // The empty options are in front.
    k->name = 1;
    k->source = 1 + (uint32_t)snprintf(k->text + 1, room - 1, "%s%s", name, suffix) + 1;
    size_t at = k->source;
    at += (size_t)snprintf(k->text + at, room - at, "%s%s", language, words);
    for (int i = 0; source[i]; i++)
        if (is_needed(source[i], name))
            at += (size_t)snprintf(k->text + at, room - at, "%s", source[i]);
    return k;
}

// The module of one kernel, compiled on any thread.
struct making {
    struct rt_raw_kernel *kernel; // NULL for one that is there, or comes with another
    char name[64];                // with its suffix
    struct hash128 key;
    char arch[32];
    void *code; // of memory_allocate
    size_t size;
    jot_status status;
    char fault[600];
};

static void *compile(void *arg)
{
    struct making *m = arg;
    m->status = cuda_raw_compile(m->kernel, m->arch, &m->code, &m->size);
    if (m->status != JOT_OK)
        snprintf(m->fault, sizeof m->fault, "%s", jot_error_message());
    return NULL;
}

// Those that are not there, side by side.
static void compile_all(struct making *all, int n)
{
    pthread_t threads[KERNELS_MOST];
    bool is_apart[KERNELS_MOST] = {false};
    for (int i = 0; i < n; i++) {
        if (!all[i].kernel)
            continue;
        is_apart[i] = i + 1 < n && pthread_create(&threads[i], NULL, compile, &all[i]) == 0;
        if (!is_apart[i])
            compile(&all[i]);
    }
    for (int i = 0; i < n; i++)
        if (is_apart[i])
            pthread_join(threads[i], NULL);
}

// Under the lock.
static struct cuda_module *find_module(const struct cuda_device *d, struct hash128 key)
{
    struct cuda_module *m = d->own_modules;
    while (m && memcmp(&m->key, &key, sizeof key) != 0)
        m = m->next;
    return m;
}

static void forget_source(struct making *m)
{
    memory_release(m->kernel);
    m->kernel = NULL;
}

static jot_status prepare(struct cuda_device *d, const char *words, const char *const *source,
                          const char *name, const char *suffix, struct making *out)
{
    struct rt_raw_kernel *k = make_source(words, source, name, suffix);
    if (!k)
        return status_out_of_memory();
    *out = (struct making){
        .kernel = k, .key = hash128_bytes(k->text + k->source, strlen(k->text + k->source))};
    snprintf(out->name, sizeof out->name, "%s%s", name, suffix);
    snprintf(out->arch, sizeof out->arch, "-arch=sm_%d%d", d->major, d->minor);
    if (find_module(d, out->key))
        forget_source(out);
    return JOT_OK;
}

// Under the lock: another thread may have compiled it meanwhile.
static jot_status find_or_load(struct cuda_device *d, const struct making *k, CUfunction *out)
{
    struct cuda_module *m = find_module(d, k->key);
    if (m)
        return cuda_status(d, cuda.driver.cuModuleGetFunction(out, m->module, k->name),
                           "finding a kernel");
    if (k->status != JOT_OK) // JOT_ERR_ARGUMENT: NVRTC could not compile it
        return status_fail(k->status == JOT_ERR_ARGUMENT ? JOT_ERR_LIBRARY : k->status, "%s",
                           k->fault);
    m = memory_allocate_zeroed(sizeof *m);
    if (!m)
        return status_out_of_memory();
    jot_status status = cuda_raw_load(d, k->code, k->size, &m->module, out);
    if (status != JOT_OK) {
        if (m->module)
            cuda.driver.cuModuleUnload(m->module);
        memory_release(m);
        return status;
    }
    m->key = k->key;
    m->next = d->own_modules;
    d->own_modules = m;
    return JOT_OK;
}

static jot_status prepare_all(struct cuda_device *d, const char *words,
                              const char *const *source, const char *names, const char *suffix,
                              struct making *all, int *out_n)
{
    jot_status status = JOT_OK;
    char name[64];
    pthread_mutex_lock(&d->routine_lock);
    for (*out_n = 0; *names && status == JOT_OK; *out_n += status == JOT_OK) {
        int length = (int)strcspn(names, " ");
        snprintf(name, sizeof name, "%.*s", length, names);
        status =
            *out_n < KERNELS_MOST
                ? prepare(d, words, source, name, suffix, &all[*out_n])
                : status_fail(JOT_ERR_INTERNAL, "more than %d kernels at once", KERNELS_MOST);
        for (int i = 0; status == JOT_OK && i < *out_n; i++)
            if (!memcmp(&all[i].key, &all[*out_n].key, sizeof all->key))
                forget_source(&all[*out_n]);
        names += length + (names[length] == ' ');
    }
    pthread_mutex_unlock(&d->routine_lock);
    return status;
}

jot_status cuda_kernels_get(struct cuda_device *d, const char *words, const char *const *source,
                            const char *names, const char *suffix, CUfunction *out)
{
    struct making all[KERNELS_MOST] = {0};
    int n;
    jot_status status = prepare_all(d, words, source, names, suffix, all, &n);
    if (status == JOT_OK)
        compile_all(all, n);
    pthread_mutex_lock(&d->routine_lock);
    for (int i = 0; i < n && status == JOT_OK; i++)
        status = find_or_load(d, &all[i], &out[i]);
    pthread_mutex_unlock(&d->routine_lock);
    for (int i = 0; i < n; i++) {
        memory_release(all[i].kernel);
        memory_release(all[i].code);
    }
    return status;
}

static jot_status start_blocks(struct cuda_device *d, const struct cuda_start *start,
                               bool is_cluster)
{
    CUlaunchConfig config = {.gridDimX = (unsigned)start->blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = start->block,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = cuda_stream(d)};
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                 .value = {.clusterDim = {(unsigned)start->blocks, 1, 1}}};
    if (is_cluster) {
        config.attrs = &cluster;
        config.numAttrs = 1;
    }
    void *parameters[16];
    if (!start->blocks)
        return JOT_OK;
    for (int i = 0; i < 16; i++)
        parameters[i] = (void *)(uintptr_t)&start->parameters[i];
    return cuda_status(d,
                       cuda.driver.cuLaunchKernelEx(&config, start->kernel, parameters, NULL),
                       "starting a kernel");
}

jot_status cuda_start(struct cuda_device *d, const struct cuda_start *start)
{
    return start_blocks(d, start, false);
}

jot_status cuda_start_cluster(struct cuda_device *d, const struct cuda_start *start)
{
    return start_blocks(d, start, true);
}

uint64_t cuda_blocks(const struct cuda_device *d, int64_t n)
{
    uint64_t wanted = ((uint64_t)n + 255) / 256, most = (uint64_t)d->sm_count * 16;
    return wanted < most ? wanted : most;
}
