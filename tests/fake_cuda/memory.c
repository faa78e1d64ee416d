// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/fake.h"

#include <pthread.h>
#include <stdatomic.h>

static struct CUmemPoolHandle_st pools[FAKE_MOST];
static atomic_long in_use[FAKE_MOST];

// Blocks of memory, by address.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block {
    const char *begin, *end;
} *blocks;
static size_t count, room;

int fake_cuda_blocks(void) { return (int)count; }

// How many begin at the address or before it.
static size_t count_before(const char *at)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].begin <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_block(const char *begin, size_t bytes)
{
    pthread_mutex_lock(&lock);
    if (count == room)
        blocks = fake_untracked(realloc(blocks, (room = 2 * room + 64) * sizeof *blocks));
    size_t i = count_before(begin);
    memmove(&blocks[i + 1], &blocks[i], (count++ - i) * sizeof *blocks);
    blocks[i] = (struct block){begin, begin + bytes};
    pthread_mutex_unlock(&lock);
}

static void remove_block(const char *begin)
{
    pthread_mutex_lock(&lock);
    size_t i = count_before(begin);
    memmove(&blocks[i - 1], &blocks[i], (count-- - i) * sizeof *blocks);
    pthread_mutex_unlock(&lock);
}

bool fake_memory_find(const char *at, const char **begin, const char **end)
{
    pthread_mutex_lock(&lock);
    size_t i = count_before(at);
    bool found = i && at < blocks[i - 1].end;
    if (found) {
        *begin = blocks[i - 1].begin;
        *end = blocks[i - 1].end;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

size_t fake_memory_bytes(void) { return (size_t)fake_number("FAKE_CUDA_MEMORY", 1 << 30); }

CUresult cuMemGetInfo_v2(size_t *bytes_free, size_t *bytes_total)
{
    *bytes_total = fake_memory_bytes();
    *bytes_free = *bytes_total - (size_t)in_use[fake_context()->device];
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    pools[props->location.id].device = props->location.id;
    *pool = &pools[props->location.id];
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool;
    (void)attribute;
    (void)value;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)
{
    if (fake_number("FAKE_CUDA_NO_PEERS", 0))
        return 1;
    for (size_t i = 0; i < n; i++)
        if (access[i].location.id == pool->device)
            return 1;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    (void)pool;
    (void)bytes;
    return CUDA_SUCCESS;
}

// The size stands before the block.
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    (void)stream;
    if (fake_health() != CUDA_SUCCESS)
        return fake_health();
    if ((size_t)in_use[pool->device] + bytes > fake_memory_bytes())
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t padded = (bytes + 255) / 256 * 256;
    char *block = fake_untracked(aligned_alloc(256, padded + 256));
    memset(block, 0xA5, padded + 256);
    memcpy(block, &bytes, sizeof bytes);
    in_use[pool->device] += (long)bytes;
    add_block(block + 256, bytes);
    *at = fake_far(block + 256);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    size_t bytes;
    char *block = (char *)fake_near(at) - 256;
    memcpy(&bytes, block, sizeof bytes);
    in_use[stream->context->device] -= (long)bytes;
    remove_block(block + 256);
    free(block);
    return fake_health();
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    *at = malloc(bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (fake_health() == CUDA_SUCCESS)
        memcpy(fake_near(to), from, bytes);
    return fake_health();
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    if (fake_health() == CUDA_SUCCESS)
        memcpy(to, fake_near(from), bytes);
    return fake_health();
}

struct range {
    void *to;
    const void *from;
    size_t bytes;
    int value;
};

static void copy_range(void *argument)
{
    const struct range *r = argument;
    memcpy(r->to, r->from, r->bytes);
}

static void fill_range(void *argument)
{
    const struct range *r = argument;
    memset(r->to, r->value, r->bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct range r = {.to = fake_near(to), .from = fake_near(from), .bytes = bytes};
    if (fake_health() == CUDA_SUCCESS)
        fake_submit(stream, copy_range, &r, sizeof r);
    return fake_health();
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
                           size_t bytes, CUstream stream)
{
    return there == here ? 1 : cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    struct range r = {.to = fake_near(at), .bytes = bytes, .value = value};
    if (fake_health() == CUDA_SUCCESS)
        fake_submit(stream, fill_range, &r, sizeof r);
    return fake_health();
}
