// SPDX-License-Identifier: Apache-2.0
// Devices of other processes, as devices of meshes: nothing is here of what is on them.
#include "runtime/device.h"

#include "base/memory.h"
#include "base/status.h"
#include "runtime/distributed.h"
#include "runtime/fork.h"

#include <pthread.h>
#include <stdio.h>

struct elsewhere {
    jot_device device;
    struct elsewhere *next;
};

static struct elsewhere *all; // never released
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

FORK_KEEPS(FORK_ELSEWHERE, lock, NULL)

static jot_status fail_here(const jot_device *device)
{
    return status_fail(JOT_ERR_DEVICE,
                       "%s is a device of process %d, and what is on it is there: "
                       "jot_process_all_gather brings all of an array",
                       device->name, device->process - 1);
}

static jot_status check(jot_device *device)
{
    (void)device;
    return rt_distributed_check();
}

static jot_status allocate(jot_device *device, size_t bytes, const char *what, void **out)
{
    static char nothing;
    (void)device, (void)bytes, (void)what;
    *out = &nothing;
    return JOT_OK;
}

static void release(jot_device *device, void *block, size_t bytes)
{
    (void)device, (void)block, (void)bytes;
}

static void trim(jot_device *device) { (void)device; }

static jot_status memory(jot_device *device, jot_device_memory_use *out)
{
    (void)out;
    return fail_here(device);
}

static jot_status upload(jot_device *device, void *to, const void *from, size_t bytes)
{
    (void)device, (void)to, (void)from, (void)bytes;
    return JOT_OK;
}

static jot_status download(jot_device *device, void *to, const void *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return fail_here(device);
}

static jot_status copy(jot_device *to_device, void *to, jot_device *from_device,
                       const void *from, size_t bytes)
{
    (void)to_device, (void)to, (void)from_device, (void)from, (void)bytes;
    return JOT_OK;
}

static jot_status clear(jot_device *device, void *block, size_t bytes)
{
    (void)device, (void)block, (void)bytes;
    return JOT_OK;
}

static jot_status target(jot_device *device, char *buffer, size_t size)
{
    (void)buffer, (void)size;
    return fail_here(device);
}

static void identity(jot_device *device, char *buffer, size_t size)
{
    (void)device;
    if (size)
        buffer[0] = 0;
}

// Programs are loaded where they run.
#define COMMON                                                                                 \
    .check = check, .allocate = allocate, .release = release, .trim = trim, .memory = memory,  \
    .upload = upload, .download = download, .copy = copy, .clear = clear, .wait = check,       \
    .target = target, .identity = identity
static const struct rt_device_type types[] = {
    [JOT_HOST] = {.kind = JOT_HOST, COMMON},
    [JOT_CUDA] = {.kind = JOT_CUDA, COMMON},
};

static jot_device *find_device(int process, jot_device_kind kind, int index)
{
    struct elsewhere *e;
    pthread_mutex_lock(&lock);
    for (e = all; e; e = e->next)
        if (e->device.process == process + 1 && e->device.type == &types[kind] &&
            e->device.index == index)
            break;
    if (!e && (e = memory_allocate_zeroed(sizeof *e))) {
        e->device = (jot_device){.type = &types[kind], .index = index, .process = process + 1};
        snprintf(e->device.name, sizeof e->device.name, "%s:%d@%d",
                 kind == JOT_HOST ? "host" : "cuda", index % 1000, process % 100000);
        e->next = all;
        all = e;
    }
    pthread_mutex_unlock(&lock);
    if (!e)
        status_out_of_memory();
    return e ? &e->device : NULL;
}

jot_device *jot_process_device(int process, jot_device_kind kind, int index)
{
    static const char who[] = "jot_process_device";
    int count = jot_process_count();
    if (kind != JOT_HOST && kind != JOT_CUDA)
        status_fail(JOT_ERR_ARGUMENT, "%s: %d is no kind of device", who, (int)kind);
    else if (process < 0 || process >= count)
        status_fail(JOT_ERR_ARGUMENT, "%s: process %d, and there are 0 to %d", who, process,
                    count - 1);
    else if (index < 0)
        status_fail(JOT_ERR_ARGUMENT, "%s: device %d", who, index);
    else if (process != jot_process_index())
        return find_device(process, kind, index);
    else
        return kind == JOT_HOST ? jot_host_device(index) : jot_cuda(index);
    return NULL;
}

int rt_distributed_process_of(const jot_device *d)
{
    return d->process ? d->process - 1 : jot_process_index();
}

int jot_device_process(jot_device *device)
{
    return rt_distributed_process_of(device ? device : jot_default_device());
}

jot_status rt_distributed_count(jot_device_kind kind, int **out_counts)
{
    struct rt_group processes = rt_distributed_all();
    int own = jot_device_count(kind);
    int *counts = memory_allocate((size_t)processes.count * sizeof *counts);
    const void *from = &own;
    void *to = counts;
    if (!counts)
        return status_out_of_memory();
    jot_status status = rt_distributed_all_gather(
        &processes, kind == JOT_HOST ? "of parts of the host" : "of GPUs", sizeof own, &from,
        &to);
    if (status == JOT_OK)
        *out_counts = counts;
    else
        memory_release(counts);
    return status;
}
