// SPDX-License-Identifier: Apache-2.0
// Transfers between the memory of the host and that of a GPU, through pinned memory: what is
// pageable the driver would copy piece by piece too, but only after waiting for the stream.
#include "runtime/cuda/device.h"

#include "base/status.h"
#include "runtime/host/pool.h"

#include <limits.h>
#include <string.h>

// One thread copies about 10 GB/s and the bus takes 50, so large copies into and out of pinned
// memory are shared in pieces of this size.
#define SHARED_COPY_BYTES ((size_t)256 << 10)

struct shared_copy {
    char *to;
    const char *from;
    size_t bytes;
};

static void copy_piece(void *ctx, int64_t piece, int worker)
{
    const struct shared_copy *c = ctx;
    size_t at = (size_t)piece * SHARED_COPY_BYTES, left = c->bytes - at;
    (void)worker;
    memcpy(c->to + at, c->from + at, left < SHARED_COPY_BYTES ? left : SHARED_COPY_BYTES);
}

static void copy_shared(void *to, const void *from, size_t bytes)
{
    struct shared_copy c = {to, from, bytes};
    if (bytes < 4 * SHARED_COPY_BYTES)
        memcpy(to, from, bytes);
    else
        rt_pool_run(rt_pool_default(), INT_MAX, copy_piece, &c,
                    (int64_t)((bytes + SHARED_COPY_BYTES - 1) / SHARED_COPY_BYTES));
}

// In the context, with the ring locked.
static jot_status open_ring(struct cuda_device *d, struct cuda_ring *r)
{
    if (r->memory)
        return JOT_OK;
    void *memory = NULL;
    for (int i = 0; i < CUDA_SEGMENTS; i++)
        if (!r->done[i])
            JOT_TRY(cuda_status(d,
                                cuda.driver.cuEventCreate(&r->done[i], CU_EVENT_DISABLE_TIMING),
                                "making an event"));
    JOT_TRY(cuda_status(
        d, cuda.driver.cuMemHostAlloc(&memory, CUDA_SEGMENTS * CUDA_SEGMENT_BYTES, 0),
        "allocating pinned memory"));
    r->memory = memory;
    return JOT_OK;
}

static char *segment_of(struct cuda_ring *r, int segment)
{
    return r->memory + (size_t)segment * CUDA_SEGMENT_BYTES;
}

// Memory for so many bytes, at most a segment, that no transfer uses any more.
static jot_status take_memory(struct cuda_device *d, struct cuda_ring *r, size_t bytes,
                              char **out)
{
    if (r->used + bytes > CUDA_SEGMENT_BYTES) {
        JOT_TRY(cuda_status(d, cuda.driver.cuEventRecord(r->done[r->segment], d->stream),
                            "recording an event"));
        r->segment = (r->segment + 1) % CUDA_SEGMENTS;
        r->used = 0;
        JOT_TRY(cuda_wait_event(d, r->done[r->segment], "waiting for a transfer"));
    }
    *out = segment_of(r, r->segment) + r->used;
    r->used += (bytes + 63) & ~(size_t)63;
    return JOT_OK;
}

static jot_status upload(struct cuda_device *d, char *to, const char *from, size_t bytes)
{
    JOT_TRY(open_ring(d, &d->up));
    while (bytes) {
        size_t part = bytes < CUDA_SEGMENT_BYTES ? bytes : CUDA_SEGMENT_BYTES;
        char *staged;
        JOT_TRY(take_memory(d, &d->up, part, &staged));
        copy_shared(staged, from, part);
        JOT_TRY(cuda_status(d,
                            cuda.driver.cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, staged,
                                                             part, d->stream),
                            "copying to the GPU"));
        to += part;
        from += part;
        bytes -= part;
    }
    return JOT_OK;
}

jot_status cuda_upload(jot_device *device, void *to, const void *from, size_t bytes)
{
    struct cuda_device *d = cuda_device_of(device);
    if (!bytes)
        return JOT_OK;
    JOT_TRY(cuda_enter(d));
    pthread_mutex_lock(&d->up.lock);
    jot_status status = upload(d, to, from, bytes);
    pthread_mutex_unlock(&d->up.lock);
    cuda_leave();
    return status;
}

// Part `i` of a download on its way into segment i.
static jot_status fetch(struct cuda_device *d, int64_t i, const char *from, size_t part)
{
    int segment = (int)(i % CUDA_SEGMENTS);
    JOT_TRY(cuda_status(d,
                        cuda.driver.cuMemcpyDtoHAsync_v2(segment_of(&d->down, segment),
                                                         (CUdeviceptr)(uintptr_t)from, part,
                                                         d->stream),
                        "copying from the GPU"));
    return cuda_status(d, cuda.driver.cuEventRecord(d->down.done[segment], d->stream),
                       "recording an event");
}

static size_t part_at(size_t bytes, int64_t i)
{
    size_t left = bytes - (size_t)i * CUDA_SEGMENT_BYTES;
    return left < CUDA_SEGMENT_BYTES ? left : CUDA_SEGMENT_BYTES;
}

// Some parts are on their way while one is copied out of pinned memory.
static jot_status download(struct cuda_device *d, char *to, const char *from, size_t bytes)
{
    int64_t parts = (int64_t)((bytes + CUDA_SEGMENT_BYTES - 1) / CUDA_SEGMENT_BYTES), asked = 0;
    JOT_TRY(open_ring(d, &d->down));
    for (int64_t i = 0; i < parts; i++) {
        for (; asked < parts && asked < i + CUDA_SEGMENTS; asked++)
            JOT_TRY(fetch(d, asked, from + (size_t)asked * CUDA_SEGMENT_BYTES,
                          part_at(bytes, asked)));
        int segment = (int)(i % CUDA_SEGMENTS);
        JOT_TRY(cuda_wait_event(d, d->down.done[segment], "waiting for a program"));
        copy_shared(to + (size_t)i * CUDA_SEGMENT_BYTES, segment_of(&d->down, segment),
                    part_at(bytes, i));
    }
    return JOT_OK;
}

jot_status cuda_download(jot_device *device, void *to, const void *from, size_t bytes)
{
    struct cuda_device *d = cuda_device_of(device);
    JOT_TRY(cuda_enter(d));
    pthread_mutex_lock(&d->down.lock);
    jot_status status = download(d, to, from, bytes);
    pthread_mutex_unlock(&d->down.lock);
    cuda_leave();
    return status;
}

jot_status cuda_clear(jot_device *device, void *block, size_t bytes)
{
    struct cuda_device *d = cuda_device_of(device);
    if (!bytes)
        return JOT_OK;
    JOT_TRY(cuda_enter(d));
    jot_status status = cuda_status(
        d, cuda.driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)block, 0, bytes, cuda_stream(d)),
        "clearing memory");
    cuda_leave();
    return status;
}

static jot_status copy_within(struct cuda_device *d, void *to, const void *from, size_t bytes)
{
    return cuda_status(d,
                       cuda.driver.cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)to,
                                                        (CUdeviceptr)(uintptr_t)from, bytes,
                                                        cuda_stream(d)),
                       "copying on the GPU");
}

// What the stream of `first` has been given so far comes before what `then` is given next.
static jot_status order(struct cuda_device *first, struct cuda_device *then)
{
    CUevent event = NULL;
    JOT_TRY(cuda_enter(first));
    CUresult result = cuda.driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = cuda.driver.cuEventRecord(event, first->stream);
    if (result == CUDA_SUCCESS)
        result = cuda.driver.cuStreamWaitEvent(then->stream, event, 0);
    if (event)
        cuda.driver.cuEventDestroy_v2(event);
    cuda_leave();
    return cuda_status(first, result, "ordering two GPUs");
}

// The copy runs on the GPU that it comes from, after the memory it goes to is there and before
// anything else uses either.
static jot_status copy_between(struct cuda_device *there, void *to, struct cuda_device *here,
                               const void *from, size_t bytes)
{
    JOT_TRY(cuda_open_to_peers(there));
    JOT_TRY(cuda_open_to_peers(here));
    JOT_TRY(order(there, here));
    JOT_TRY(cuda_enter(here));
    jot_status status =
        cuda_status(here,
                    cuda.driver.cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)to, there->context,
                                                  (CUdeviceptr)(uintptr_t)from, here->context,
                                                  bytes, here->stream),
                    "copying between GPUs");
    cuda_leave();
    return status == JOT_OK ? order(here, there) : status;
}

jot_status cuda_copy(jot_device *to_device, void *to, jot_device *from_device, const void *from,
                     size_t bytes)
{
    struct cuda_device *there = cuda_device_of(to_device), *here = cuda_device_of(from_device);
    if (!bytes)
        return JOT_OK;
    if (there != here)
        return copy_between(there, to, here, from, bytes);
    JOT_TRY(cuda_enter(here));
    jot_status status = copy_within(here, to, from, bytes);
    cuda_leave();
    return status;
}
