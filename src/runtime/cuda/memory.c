// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU.  All work goes to one stream, so a block that is released can be given away
// at once: what uses it next comes after.  Blocks are kept by size class, without a call of the
// driver, until memory is out or somebody trims; the driver's pool is behind them.
#include "runtime/cuda/device.h"

#include "base/memory.h"
#include "base/status.h"

// The least block, and how many classes a doubling has: at most an eighth of a block is unused.
#define LEAST_LOG 9
#define STEPS_LOG 3

// The class of a block, and its size.
static int class_of(size_t bytes, size_t *out_size)
{
    size_t least = (size_t)1 << LEAST_LOG, steps = (size_t)1 << STEPS_LOG;
    if (bytes <= least) {
        *out_size = least;
        return 0;
    }
    int log = 63 - __builtin_clzll(bytes - 1); // 2^log < bytes <= 2^(log + 1)
    size_t step = (size_t)1 << (log - STEPS_LOG);
    size_t above = (bytes - ((size_t)1 << log) + step - 1) / step; // 1 to steps
    *out_size = ((size_t)1 << log) + above * step;
    return (int)((size_t)(log - LEAST_LOG) * steps + above);
}

static CUdeviceptr take_kept(struct cuda_device *d, int class)
{
    struct cuda_kept *k = &d->kept[class];
    pthread_mutex_lock(&d->kept_lock);
    CUdeviceptr block = k->count ? k->blocks[--k->count] : 0;
    pthread_mutex_unlock(&d->kept_lock);
    return block;
}

static bool keep_block(struct cuda_device *d, int class, CUdeviceptr block)
{
    struct cuda_kept *k = &d->kept[class];
    pthread_mutex_lock(&d->kept_lock);
    if (k->count == k->room) {
        uint32_t room = k->room ? 2 * k->room : 8;
        CUdeviceptr *blocks = memory_resize(k->blocks, room * sizeof *blocks);
        k->blocks = blocks ? blocks : k->blocks;
        k->room = blocks ? room : k->room;
    }
    bool has_room = k->count < k->room;
    if (has_room)
        k->blocks[k->count++] = block;
    pthread_mutex_unlock(&d->kept_lock);
    return has_room;
}

// Gives everything that is kept back to the driver.  In the context.
static jot_status give_back(struct cuda_device *d)
{
    pthread_mutex_lock(&d->kept_lock);
    for (int class = 0; class < CUDA_CLASSES; class ++) {
        struct cuda_kept *k = &d->kept[class];
        while (k->count)
            cuda.driver.cuMemFreeAsync(k->blocks[--k->count], d->stream);
        memory_release(k->blocks);
        *k = (struct cuda_kept){0};
    }
    pthread_mutex_unlock(&d->kept_lock);
    JOT_TRY(cuda_wait_stream(d));
    return cuda_status(d, cuda.driver.cuMemPoolTrimTo(d->pool, 0), "giving memory back");
}

static CUresult allocate_new(struct cuda_device *d, size_t bytes, CUdeviceptr *at)
{
    return cuda.driver.cuMemAllocFromPoolAsync(at, bytes, d->pool, d->stream);
}

static jot_status allocate(struct cuda_device *d, size_t bytes, const char *what,
                           CUdeviceptr *at)
{
    size_t size;
    *at = take_kept(d, class_of(bytes, &size));
    if (*at)
        return JOT_OK;
    CUresult result = allocate_new(d, size, at);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        JOT_TRY(give_back(d));
        result = allocate_new(d, size, at);
    }
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return cuda_status(d, result, "allocating memory");
    return status_fail(
        JOT_ERR_MEMORY, "out of memory on %s: %s of %zu bytes, and %zu of %zu are in use",
        d->base.name, what, bytes, (size_t)atomic_load(&d->used), d->memory_bytes);
}

jot_status cuda_allocate(jot_device *device, size_t bytes, const char *what, void **out)
{
    struct cuda_device *d = cuda_device_of(device);
    CUdeviceptr at = 0;
    JOT_TRY(cuda_enter(d));
    jot_status status = allocate(d, bytes, what, &at);
    cuda_leave();
    if (status != JOT_OK)
        return status;
    atomic_fetch_add(&d->used, bytes);
    *out = (void *)(uintptr_t)at;
    return JOT_OK;
}

void cuda_release(jot_device *device, void *block, size_t bytes)
{
    struct cuda_device *d = cuda_device_of(device);
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)block;
    size_t size;
    if (!block)
        return;
    atomic_fetch_sub(&d->used, bytes);
    if (keep_block(d, class_of(bytes, &size), at) || atomic_load(&d->is_lost) ||
        cuda_enter(d) != JOT_OK)
        return;
    cuda_status(d, cuda.driver.cuMemFreeAsync(at, d->stream), "releasing memory");
    cuda_leave();
}

void cuda_trim(jot_device *device)
{
    struct cuda_device *d = cuda_device_of(device);
    // A device that nobody has used is not opened for this.
    if (!__atomic_load_n(&d->is_open, __ATOMIC_ACQUIRE) || cuda_enter(d) != JOT_OK)
        return;
    give_back(d);
    cuda_leave();
}

void rt_cuda_trim(void)
{
    for (int i = 0; i < RT_CUDA_MOST; i++)
        cuda_trim(rt_cuda_device(i));
}

jot_status cuda_memory(jot_device *device, jot_device_memory_use *out)
{
    struct cuda_device *d = cuda_device_of(device);
    jot_device_memory_use use = {.used = atomic_load(&d->used)};
    JOT_TRY(cuda_enter(d));
    jot_status status =
        cuda_status(d, cuda.driver.cuMemGetInfo_v2(&use.free, &use.total), "asking for memory");
    cuda_leave();
    if (status == JOT_OK)
        *out = use;
    return status;
}
