// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/device.h"

#include "base/status.h"
#include "runtime/fork.h"
#include "runtime/steps.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

// One more, for numbers that no GPU has.
static struct cuda_device devices[RT_CUDA_MOST + 1];
static pthread_once_t named = PTHREAD_ONCE_INIT;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void init_locks(struct cuda_device *d)
{
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->blas_lock, NULL);
    pthread_mutex_init(&d->capture_lock, NULL);
    pthread_mutex_init(&d->routine_lock, NULL);
    pthread_mutex_init(&d->kept_lock, NULL);
    pthread_mutex_init(&d->up.lock, NULL);
    pthread_mutex_init(&d->down.lock, NULL);
}

// The driver does not work in the child of a process that has used it.
static void lose_in_child(void)
{
    opening = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i <= RT_CUDA_MOST; i++) {
        struct cuda_device *d = &devices[i];
        init_locks(d);
        if (!d->is_open || d->is_lost)
            continue;
        snprintf(d->why_lost, sizeof d->why_lost, "a fork: its child cannot use it");
        atomic_store(&d->is_lost, true);
    }
}

static void name_devices(void)
{
    for (int i = 0; i <= RT_CUDA_MOST; i++) {
        struct cuda_device *d = &devices[i];
        d->base = (jot_device){.type = &rt_cuda_type, .index = i};
        snprintf(d->base.name, sizeof d->base.name, i < RT_CUDA_MOST ? "cuda:%d" : "cuda:?", i);
        init_locks(d);
    }
    fork_register(FORK_DEVICES, NULL, lose_in_child);
}

jot_device *rt_cuda_device(int index)
{
    pthread_once(&named, name_devices);
    return &devices[index >= 0 && index < RT_CUDA_MOST ? index : RT_CUDA_MOST].base;
}

jot_status rt_cuda_count(int *out_count)
{
    JOT_TRY(cuda_library_open(CUDA_LIBRARY_driver));
    CUresult result = cuda.driver.cuDeviceGetCount(out_count);
    return result == CUDA_SUCCESS
               ? JOT_OK
               : status_fail(JOT_ERR_DEVICE, "the CUDA driver cannot say how many GPUs it has");
}

// ---- faults ----

// After these every call of the context fails.
static bool is_fatal(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

static jot_status fail_lost(const struct cuda_device *d)
{
    return status_fail(JOT_ERR_DEVICE,
                       "%s is lost, and its arrays with it: %s; the host goes on, other GPUs "
                       "perhaps, this one with the next process",
                       d->base.name, d->why_lost);
}

static void lose(struct cuda_device *d, const char *why)
{
    pthread_mutex_lock(&d->lock);
    if (!atomic_load(&d->is_lost)) {
        snprintf(d->why_lost, sizeof d->why_lost, "%s", why);
        atomic_store(&d->is_lost, true);
    }
    pthread_mutex_unlock(&d->lock);
    if (atomic_load(&d->has_peers))
        cuda_collective_lost(d);
}

void cuda_give_up(struct cuda_device *d, const char *why)
{
    pthread_mutex_lock(&d->lock);
    snprintf(d->why_given_up, sizeof d->why_given_up, "%s has given up %s", d->base.name, why);
    atomic_store(&d->has_given_up, true);
    pthread_mutex_unlock(&d->lock);
}

jot_status cuda_status(struct cuda_device *d, CUresult result, const char *doing)
{
    if (result == CUDA_SUCCESS)
        return JOT_OK;
    const char *name = NULL, *why = NULL;
    char text[300];
    cuda.driver.cuGetErrorName(result, &name);
    cuda.driver.cuGetErrorString(result, &why);
    snprintf(text, sizeof text, "%s: %s (%s)", doing, name ? name : "an unknown error",
             why ? why : "no reason given");
    if (is_fatal(result)) {
        lose(d, text);
        return fail_lost(d);
    }
    jot_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? JOT_ERR_MEMORY : JOT_ERR_DEVICE;
    return status_fail(status, "%s: %s", d->base.name, text);
}

// ---- opening ----

// "cuda:3 is not there: 2 GPUs".
static jot_status fail_missing(const struct cuda_device *d, int count)
{
    return status_fail(JOT_ERR_DEVICE, "%s is not there: this machine has %d GPU%s",
                       d->base.name, count, count == 1 ? "" : "s");
}

static jot_status read_facts(struct cuda_device *d)
{
    int has_pools = 0;
    struct {
        int *to;
        CUdevice_attribute attribute;
    } wanted[] = {
        {&d->sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {&d->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&d->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&d->shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
        {&d->has_clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
        {&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        JOT_TRY(cuda_status(
            d, cuda.driver.cuDeviceGetAttribute(wanted[i].to, wanted[i].attribute, d->device),
            "asking what the GPU is"));
    JOT_TRY(cuda_status(d,
                        cuda.driver.cuDeviceGetName(d->product, sizeof d->product, d->device),
                        "asking what the GPU is"));
    JOT_TRY(cuda_status(d, cuda.driver.cuDeviceTotalMem_v2(&d->memory_bytes, d->device),
                        "asking what the GPU is"));
    return has_pools ? JOT_OK
                     : status_fail(JOT_ERR_DEVICE,
                                   "%s (%s) has no stream-ordered memory, which jot needs",
                                   d->base.name, d->product);
}

static jot_status find_device(struct cuda_device *d)
{
    int count = 0;
    JOT_TRY(rt_cuda_count(&count));
    if (d->base.index >= count)
        return fail_missing(d, count);
    JOT_TRY(
        cuda_status(d, cuda.driver.cuDeviceGet(&d->device, d->base.index), "opening the GPU"));
    return read_facts(d);
}

// In the context of the device.
static jot_status make_stream_and_pool(struct cuda_device *d)
{
    uint64_t keep_all = UINT64_MAX;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, d->device}};
    JOT_TRY(cuda_status(d, cuda.driver.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING),
                        "making a stream"));
    JOT_TRY(cuda_status(d, cuda.driver.cuMemPoolCreate(&d->pool, &props), "making a pool"));
    d->own_stream = d->stream;
    return cuda_status(d,
                       cuda.driver.cuMemPoolSetAttribute(
                           d->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all),
                       "making a pool");
}

static jot_status open_device(struct cuda_device *d)
{
    JOT_TRY(find_device(d));
    JOT_TRY(cuda_status(d, cuda.driver.cuDevicePrimaryCtxRetain(&d->context, d->device),
                        "making a context"));
    JOT_TRY(
        cuda_status(d, cuda.driver.cuCtxPushCurrent_v2(d->context), "entering the context"));
    jot_status status = make_stream_and_pool(d);
    CUcontext old;
    cuda.driver.cuCtxPopCurrent_v2(&old);
    return status;
}

static jot_status check(jot_device *device)
{
    struct cuda_device *d = cuda_device_of(device);
    if (atomic_load_explicit(&d->is_lost, memory_order_acquire))
        return fail_lost(d);
    if (__atomic_load_n(&d->is_open, __ATOMIC_ACQUIRE))
        return JOT_OK;
    // Not under the lock of the device, which losing it takes.
    pthread_mutex_lock(&opening);
    jot_status status = d->is_open ? JOT_OK : open_device(d);
    if (status == JOT_OK)
        __atomic_store_n(&d->is_open, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&opening);
    return status;
}

// ---- peers ----

static bool has_peer_attribute(const struct cuda_device *from, const struct cuda_device *to,
                               CUdevice_P2PAttribute attribute)
{
    int value = 0;
    return cuda.driver.cuDeviceGetP2PAttribute(&value, attribute, from->device, to->device) ==
               CUDA_SUCCESS &&
           value;
}

enum cuda_link cuda_link(const struct cuda_device *from, const struct cuda_device *to)
{
    if (!has_peer_attribute(from, to, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED))
        return CUDA_LINK_HOST;
    return has_peer_attribute(from, to, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
               ? CUDA_LINK_NVLINK
               : CUDA_LINK_PEER;
}

jot_status cuda_open_to_peers(struct cuda_device *d)
{
    CUmemAccessDesc access[RT_CUDA_MOST];
    size_t n = 0;
    int count = 0;
    if (atomic_exchange(&d->has_opened, true))
        return JOT_OK;
    JOT_TRY(rt_cuda_count(&count));
    for (int i = 0; i < count && i < RT_CUDA_MOST; i++) {
        CUdevice device;
        struct cuda_device other = {0};
        if (i == d->base.index || cuda.driver.cuDeviceGet(&device, i) != CUDA_SUCCESS)
            continue;
        other.device = device;
        if (cuda_link(&other, d) != CUDA_LINK_HOST)
            access[n++] = (CUmemAccessDesc){.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
                                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return n ? cuda_status(d, cuda.driver.cuMemPoolSetAccess(d->pool, access, n),
                           "opening memory to other GPUs")
             : JOT_OK;
}

// The devices that the thread has entered, one inside the other, and how often each on top of
// the first time.  They differ where a callback of a program uses another device.
#define NESTED_MOST 16
static _Thread_local struct {
    struct cuda_device *device;
    int again;
} inside[NESTED_MOST];
static _Thread_local int depth;

jot_status cuda_enter(struct cuda_device *d)
{
    JOT_TRY(check(&d->base));
    if (depth && inside[depth - 1].device == d) {
        inside[depth - 1].again++;
        return JOT_OK;
    }
    if (depth == NESTED_MOST)
        return status_fail(JOT_ERR_DEVICE, "%s: %d devices are in use inside one another",
                           d->base.name, depth);
    JOT_TRY(
        cuda_status(d, cuda.driver.cuCtxPushCurrent_v2(d->context), "entering the context"));
    inside[depth].device = d;
    inside[depth++].again = 0;
    return JOT_OK;
}

void cuda_leave(void)
{
    CUcontext old;
    if (inside[depth - 1].again > 0) {
        inside[depth - 1].again--;
        return;
    }
    depth--;
    cuda.driver.cuCtxPopCurrent_v2(&old);
}

static _Thread_local CUstream captures;

static _Thread_local bool captures_all;

CUstream cuda_stream(const struct cuda_device *d)
{
    return captures ? captures : captures_all ? d->capturing[0] : d->stream;
}
void cuda_capture(CUstream stream) { captures = stream; }
CUstream cuda_capturing(void) { return captures; }
void cuda_capture_all(bool is_wanted) { captures_all = is_wanted; }

// ---- waiting ----

// Between two looks, while a GPU is not done: at first they follow closely.
#define LOOKS_CLOSE 2000
static void pause_looking(struct cuda_device *d, int looks)
{
    if (looks < LOOKS_CLOSE)
        return;
    if (looks % 64 == 0)
        cuda_check_peers(d);
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static jot_status say_given_up(struct cuda_device *d, jot_status status)
{
    if (status != JOT_OK || !atomic_exchange(&d->has_given_up, false))
        return status;
    return status_fail(JOT_ERR_DEVICE, "%s", d->why_given_up);
}

jot_status cuda_wait_stream(struct cuda_device *d)
{
    CUresult result = CUDA_ERROR_NOT_READY;
    if (!atomic_load(&d->has_peers))
        result = cuda.driver.cuStreamSynchronize(d->stream);
    for (int looks = 0; result == CUDA_ERROR_NOT_READY; looks++) {
        pause_looking(d, looks);
        result = cuda.driver.cuStreamQuery(d->stream);
    }
    return say_given_up(d, cuda_status(d, result, "waiting for a program"));
}

jot_status cuda_wait_event(struct cuda_device *d, CUevent event, const char *doing)
{
    CUresult result = CUDA_ERROR_NOT_READY;
    if (!atomic_load(&d->has_peers))
        result = cuda.driver.cuEventSynchronize(event);
    for (int looks = 0; result == CUDA_ERROR_NOT_READY; looks++) {
        pause_looking(d, looks);
        result = cuda.driver.cuEventQuery(event);
    }
    return say_given_up(d, cuda_status(d, result, doing));
}

jot_status cuda_wait(jot_device *device)
{
    struct cuda_device *d = cuda_device_of(device);
    JOT_TRY(cuda_enter(d));
    jot_status status = cuda_wait_stream(d);
    cuda_leave();
    return status;
}

static jot_status set_stream(jot_device *device, void *stream)
{
    struct cuda_device *d = cuda_device_of(device);
    CUevent event = NULL;
    JOT_TRY(cuda_enter(d));
    CUstream next = stream ? stream : d->own_stream;
    CUresult result = cuda.driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = cuda.driver.cuEventRecord(event, d->stream);
    if (result == CUDA_SUCCESS)
        result = cuda.driver.cuStreamWaitEvent(next, event, 0);
    if (event)
        cuda.driver.cuEventDestroy_v2(event);
    if (result == CUDA_SUCCESS)
        d->stream = next;
    cuda_leave();
    return cuda_status(d, result, "taking another stream");
}

// ---- what code is made for ----

const char *cuda_arch_suffix(const struct cuda_device *d)
{
    return d->major == 9 && d->minor == 0 ? "a" : "";
}

static jot_status target(jot_device *device, char *buffer, size_t size)
{
    struct cuda_device *d = cuda_device_of(device);
    JOT_TRY(check(device));
    snprintf(buffer, size, "cuda sm_%d%d%s sms=%d shared=%d", d->major, d->minor,
             cuda_arch_suffix(d), d->sm_count, d->shared_bytes);
    return JOT_OK;
}

static void identity(jot_device *device, char *buffer, size_t size)
{
    char text[128] = "";
    target(device, text, sizeof text);
    const char *linker = cuda_library_open(CUDA_LIBRARY_nvjitlink) == JOT_OK
                             ? cuda_library_version(CUDA_LIBRARY_nvjitlink)
                             : "none";
    snprintf(buffer, size, "%s nvjitlink %s", text, linker);
}

// ---- text ----

static void describe_device(struct rt_text *text, struct cuda_device *d)
{
    if (find_device(d) != JOT_OK) {
        rt_text_add(text, "%-13s%s\n", d->base.name, jot_error_message());
        return;
    }
    rt_text_add(text, "%-13s%s, %.1f GiB, %d multiprocessors, compute capability %d.%d\n",
                d->base.name, d->product, (double)d->memory_bytes / 0x1p30, d->sm_count,
                d->major, d->minor);
}

// Which GPUs it gets at, and how.
static void describe_links(struct rt_text *text, const struct cuda_device *d, int count)
{
    static const char *const how[] = {[CUDA_LINK_HOST] = "by the host",
                                      [CUDA_LINK_PEER] = "peer access",
                                      [CUDA_LINK_NVLINK] = "NVLink"};
    const char *before = "links: ";
    rt_text_add(text, "%-13s", d->base.name);
    for (int link = CUDA_LINK_NVLINK; link >= CUDA_LINK_HOST; link--) {
        int n = 0;
        for (int i = 0; i < count && i < RT_CUDA_MOST; i++) {
            struct cuda_device *to = cuda_device_of(rt_cuda_device(i));
            if (to == d || (int)cuda_link(d, to) != link)
                continue;
            rt_text_add(text, "%s%s%s%s", n ? ", " : before, n ? "" : how[link],
                        n ? "" : " to ", to->base.name);
            before = "; ";
            n++;
        }
    }
    rt_text_add(text, "\n");
}

// What the kernel's part of the driver calls itself, such as 580.159.04.
static void describe_kernel_driver(struct rt_text *text)
{
    char version[64] = "";
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    if (!file)
        return;
    if (fscanf(file, "%63s", version) == 1)
        rt_text_add(text, ", driver %s", version);
    fclose(file);
}

void rt_cuda_describe(struct rt_text *text)
{
    int count = 0;
    if (rt_cuda_count(&count) != JOT_OK)
        rt_text_add(text, "%-13s%s\n", "cuda", jot_error_message());
    for (int i = 0; i < count && i < RT_CUDA_MOST; i++)
        describe_device(text, cuda_device_of(rt_cuda_device(i)));
    for (int i = 0; count > 1 && i < count && i < RT_CUDA_MOST; i++)
        describe_links(text, cuda_device_of(rt_cuda_device(i)), count);
    for (int id = 0; id < CUDA_LIBRARY_COUNT; id++) {
        const char *title = cuda_library_title((enum cuda_library_id)id);
        bool found = cuda_library_open((enum cuda_library_id)id) == JOT_OK;
        if (!found && id == CUDA_LIBRARY_driver) // which the line of the GPUs says
            continue;
        rt_text_add(text, "%-13s%s", title,
                    found ? cuda_library_version((enum cuda_library_id)id)
                          : jot_error_message());
        if (found && id == CUDA_LIBRARY_driver)
            describe_kernel_driver(text);
        rt_text_add(text, "\n");
    }
}

static jot_status copy_step(const struct rt_program *p, const struct rt_bound_step *s,
                            void *const *operands)
{
    return cuda_copy(p->device, operands[0], p->device, operands[1], (size_t)s->total);
}

const struct rt_device_type rt_cuda_type = {
    .kind = JOT_CUDA,
    .check = check,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .trim = cuda_trim,
    .memory = cuda_memory,
    .upload = cuda_upload,
    .download = cuda_download,
    .copy = cuda_copy,
    .clear = cuda_clear,
    .wait = cuda_wait,
    .set_stream = set_stream,
    .target = target,
    .identity = identity,
    .assemble = cuda_assemble,
    .begin_ahead = cuda_begin_ahead,
    .end_ahead = cuda_end_ahead,
    .load = cuda_load,
    .unload = cuda_unload,
    .bind = cuda_bind,
    .prepare = cuda_prepare,
    .finish = cuda_finish,
    .forget = cuda_forget,
    .replay_least = 2,
    .replay = cuda_replay,
    .take_while = cuda_take_while,
    .begin_step = cuda_branch_open,
    .end_step = cuda_branch_close,
    .kernel = cuda_launch,
    .collective = cuda_collective,
    .records_collective = cuda_records_collective,
    .replay_together = cuda_replay_together,
    .phases = cuda_loop,
    .bind_raw = cuda_raw_bind,
    .raw = cuda_raw_launch,
    .bind_routine = cuda_routine_bind,
    .routine = cuda_routine_run,
    .takes_convolution = cuda_takes_convolution,
    .gemm = cuda_gemm,
    .copy_step = copy_step,
};
