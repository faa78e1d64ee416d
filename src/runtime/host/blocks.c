// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/blocks.h"

#include "base/memory.h"
#include "base/status.h"
#include "jot/device.h"
#include "runtime/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define CACHE_LINE 64
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)4 << 20)
// Blocks up to this size are cut from regions; larger ones are mappings of their own.
#define CUT_LIMIT ((size_t)256 << 10)
#define REGION_BYTES ((size_t)4 << 20)
#define BLOCK_LIMIT ((size_t)1 << 46)
// Kept for reuse even when nothing was ever in use.
#define SLACK_BYTES ((size_t)64 << 20)

// Bins: every multiple of 64 up to 1024, then four to each doubling.
#define SMALL_BINS (RT_BLOCK_SMALL / CACHE_LINE)
#define BIN_COUNT (SMALL_BINS + 4 * 37)
// How many blocks of a small bin a thread keeps before half go to the common list.
#define LOCAL_LIMIT 64

// A free block holds its links itself.
struct free_block {
    struct free_block *next, *previous; // in its bin
    struct free_block *newer, *older;   // among all large ones
    uint32_t bin;
};

// What a thread keeps.  The counts are of what the thread allocated less what it released, so
// only their sum over the threads means something.
struct local {
    struct free_block *blocks[SMALL_BINS];
    uint16_t count[SMALL_BINS];
    atomic_int_fast64_t live_blocks, live_bytes;
    struct local *next, *previous;
    bool registered;
};

static struct {
    pthread_mutex_t lock;
    struct free_block *blocks[BIN_COUNT];
    struct free_block *newest, *oldest; // large blocks only
    char *region, *region_end;
    struct local *locals;
    int64_t live_blocks, live_bytes; // of large blocks and of threads that ended
    size_t large_live, large_peak, large_free;
    size_t small_mapped;
    struct jot_allocator allocator;
    atomic_bool has_allocator;
    _Atomic(rt_block_hook *) forget;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct local local;
static pthread_key_t local_key;
static pthread_once_t local_once = PTHREAD_ONCE_INIT;

static unsigned bin_of(size_t bytes)
{
    if (bytes <= RT_BLOCK_SMALL)
        return bytes ? (unsigned)((bytes - 1) / CACHE_LINE) : 0;
    unsigned log = 63u - (unsigned)__builtin_clzll(bytes - 1);
    unsigned quarter = (unsigned)((bytes - 1) >> (log - 2)) & 3;
    return SMALL_BINS + (log - 10) * 4 + quarter;
}

static size_t bin_bytes(unsigned bin)
{
    if (bin < SMALL_BINS)
        return (bin + 1) * (size_t)CACHE_LINE;
    unsigned log = (bin - SMALL_BINS) / 4 + 10, quarter = (bin - SMALL_BINS) % 4;
    return ((size_t)5 + quarter) << (log - 2);
}

static bool is_large(unsigned bin) { return bin_bytes(bin) > CUT_LIMIT; }

static size_t mapped_bytes(unsigned bin) { return (bin_bytes(bin) + PAGE - 1) & ~(PAGE - 1); }

static void add(atomic_int_fast64_t *count, int64_t n)
{
    int64_t old = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, old + n, memory_order_relaxed);
}

// ---- the common lists; the lock is held ----

static void push(struct free_block *block, unsigned bin)
{
    block->bin = bin;
    block->previous = NULL;
    block->next = pool.blocks[bin];
    if (block->next)
        block->next->previous = block;
    pool.blocks[bin] = block;
    if (!is_large(bin))
        return;
    block->newer = NULL;
    block->older = pool.newest;
    *(pool.newest ? &pool.newest->newer : &pool.oldest) = block;
    pool.newest = block;
    pool.large_free += mapped_bytes(bin);
}

static void unlink_block(struct free_block *block)
{
    unsigned bin = block->bin;
    *(block->previous ? &block->previous->next : &pool.blocks[bin]) = block->next;
    if (block->next)
        block->next->previous = block->previous;
    if (!is_large(bin))
        return;
    *(block->newer ? &block->newer->older : &pool.newest) = block->older;
    *(block->older ? &block->older->newer : &pool.oldest) = block->newer;
    pool.large_free -= mapped_bytes(bin);
}

static void unmap_down_to(size_t large_bytes)
{
    while (pool.oldest && pool.large_live + pool.large_free > large_bytes) {
        struct free_block *block = pool.oldest;
        size_t bytes = mapped_bytes(block->bin);
        unlink_block(block);
        munmap(block, bytes);
    }
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void *map_aligned(size_t bytes)
{
    if (bytes < HUGE_FROM)
        return map(bytes);
    char *at = map(bytes + HUGE_PAGE);
    if (!at)
        return NULL;
    size_t before = -(uintptr_t)at & (HUGE_PAGE - 1);
    if (before)
        munmap(at, before);
    if (before < HUGE_PAGE)
        munmap(at + before + bytes, HUGE_PAGE - before);
    madvise(at + before, bytes, MADV_HUGEPAGE);
    return at + before;
}

static void *map_large(unsigned bin)
{
    size_t bytes = mapped_bytes(bin);
    void *block = map_aligned(bytes);
    if (!block && pool.oldest) {
        unmap_down_to(pool.large_live);
        block = map_aligned(bytes);
    }
    return block;
}

static void *cut(unsigned bin)
{
    size_t bytes = bin_bytes(bin);
    if ((size_t)(pool.region_end - pool.region) < bytes) {
        // What is left of the old region serves the bin below it.
        for (size_t left; (left = (size_t)(pool.region_end - pool.region)) >= CACHE_LINE;) {
            unsigned below = bin_of(left);
            if (bin_bytes(below) > left)
                below--;
            push((struct free_block *)(void *)pool.region, below);
            pool.region += bin_bytes(below);
        }
        char *region = map(REGION_BYTES);
        if (!region)
            return NULL;
        pool.region = region;
        pool.region_end = region + REGION_BYTES;
        pool.small_mapped += REGION_BYTES;
    }
    void *block = pool.region;
    pool.region += bytes;
    return block;
}

static void *find_or_map(unsigned bin)
{
    struct free_block *block = pool.blocks[bin];
    if (block)
        unlink_block(block);
    else
        block = is_large(bin) ? map_large(bin) : cut(bin);
    return block;
}

// ---- the lists of the thread ----

static void leave_thread(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (unsigned bin = 0; bin < SMALL_BINS; bin++) {
        while (local.blocks[bin]) {
            struct free_block *block = local.blocks[bin];
            local.blocks[bin] = block->next;
            push(block, bin);
        }
        local.count[bin] = 0;
    }
    pool.live_blocks += atomic_load(&local.live_blocks);
    pool.live_bytes += atomic_load(&local.live_bytes);
    atomic_store(&local.live_blocks, 0);
    atomic_store(&local.live_bytes, 0);
    if (local.registered) {
        *(local.previous ? &local.previous->next : &pool.locals) = local.next;
        if (local.next)
            local.next->previous = local.previous;
        local.registered = false;
    }
    pthread_mutex_unlock(&pool.lock);
}

static void make_key(void) { pthread_key_create(&local_key, leave_thread); }

// In the child of a fork: what other threads had in use is in use there, by nobody.
static void forget_other_threads(void)
{
    for (struct local *l = pool.locals; l; l = l->next)
        if (l != &local) {
            pool.live_blocks += atomic_load(&l->live_blocks);
            pool.live_bytes += atomic_load(&l->live_bytes);
        }
    pool.locals = local.registered ? &local : NULL;
    local.next = local.previous = NULL;
}

__attribute__((constructor)) static void keep_pool(void)
{
    fork_register(FORK_BLOCKS, &pool.lock, forget_other_threads);
}

static void enter_thread(void)
{
    pthread_once(&local_once, make_key);
    pthread_setspecific(local_key, &local);
    pthread_mutex_lock(&pool.lock);
    local.previous = NULL;
    local.next = pool.locals;
    if (local.next)
        local.next->previous = &local;
    pool.locals = &local;
    local.registered = true;
    pthread_mutex_unlock(&pool.lock);
}

static void *refill(unsigned bin)
{
    if (!local.registered)
        enter_thread();
    pthread_mutex_lock(&pool.lock);
    void *block = find_or_map(bin);
    pthread_mutex_unlock(&pool.lock);
    return block;
}

static void spill(unsigned bin)
{
    if (!local.registered)
        enter_thread();
    if (local.count[bin] < LOCAL_LIMIT)
        return;
    pthread_mutex_lock(&pool.lock);
    for (int i = 0; i < LOCAL_LIMIT / 2; i++) {
        struct free_block *block = local.blocks[bin];
        local.blocks[bin] = block->next;
        push(block, bin);
    }
    pthread_mutex_unlock(&pool.lock);
    local.count[bin] = (uint16_t)(local.count[bin] - LOCAL_LIMIT / 2);
}

static void *allocate_small(unsigned bin)
{
    struct free_block *block = local.blocks[bin];
    if (block) {
        local.blocks[bin] = block->next;
        local.count[bin]--;
    } else if (!(block = refill(bin))) {
        return NULL;
    }
    add(&local.live_blocks, 1);
    add(&local.live_bytes, (int64_t)bin_bytes(bin));
    return block;
}

static void release_small(struct free_block *block, unsigned bin)
{
    if (local.count[bin] >= LOCAL_LIMIT || !local.registered)
        spill(bin);
    block->next = local.blocks[bin];
    local.blocks[bin] = block;
    local.count[bin]++;
    add(&local.live_blocks, -1);
    add(&local.live_bytes, -(int64_t)bin_bytes(bin));
}

// ---- the user's allocator ----

static void *allocate_elsewhere(size_t bytes)
{
    size_t alignment = bytes >= HUGE_FROM ? HUGE_PAGE : CACHE_LINE;
    void *block = pool.allocator.allocate(pool.allocator.user, bytes ? bytes : 1, alignment);
    if (!block)
        return NULL;
    pthread_mutex_lock(&pool.lock);
    pool.live_blocks++;
    pool.live_bytes += (int64_t)bytes;
    pthread_mutex_unlock(&pool.lock);
    return block;
}

static void release_elsewhere(void *block, size_t bytes)
{
    pool.allocator.release(pool.allocator.user, block, bytes ? bytes : 1);
    pthread_mutex_lock(&pool.lock);
    pool.live_blocks--;
    pool.live_bytes -= (int64_t)bytes;
    pthread_mutex_unlock(&pool.lock);
}

// ---- entry points ----

void *rt_block_allocate(size_t bytes)
{
    if (memory_should_fail() || bytes > BLOCK_LIMIT)
        return NULL;
    if (atomic_load_explicit(&pool.has_allocator, memory_order_acquire))
        return allocate_elsewhere(bytes);
    unsigned bin = bin_of(bytes);
    if (bin < SMALL_BINS)
        return allocate_small(bin);
    pthread_mutex_lock(&pool.lock);
    void *block = find_or_map(bin);
    if (block) {
        pool.live_blocks++;
        pool.live_bytes += (int64_t)bin_bytes(bin);
        if (is_large(bin))
            pool.large_live += mapped_bytes(bin);
        if (pool.large_live > pool.large_peak)
            pool.large_peak = pool.large_live;
    }
    pthread_mutex_unlock(&pool.lock);
    return block;
}

void rt_block_release(void *block, size_t bytes)
{
    if (!block)
        return;
    if (atomic_load_explicit(&pool.has_allocator, memory_order_acquire)) {
        release_elsewhere(block, bytes);
        return;
    }
    unsigned bin = bin_of(bytes);
    if (bin < SMALL_BINS) {
        release_small(block, bin);
        return;
    }
    pthread_mutex_lock(&pool.lock);
    pool.live_blocks--;
    pool.live_bytes -= (int64_t)bin_bytes(bin);
    if (is_large(bin))
        pool.large_live -= mapped_bytes(bin);
    push(block, bin);
    unmap_down_to(pool.large_peak + pool.large_peak / 4 + SLACK_BYTES);
    pthread_mutex_unlock(&pool.lock);
}

static jot_memory_use use_now(void)
{
    int64_t blocks = pool.live_blocks, bytes = pool.live_bytes;
    for (const struct local *l = pool.locals; l; l = l->next) {
        blocks += atomic_load_explicit(&l->live_blocks, memory_order_relaxed);
        bytes += atomic_load_explicit(&l->live_bytes, memory_order_relaxed);
    }
    int64_t small = bytes - (int64_t)pool.large_live;
    int64_t held = (int64_t)(pool.large_free + pool.small_mapped) - small;
    return (jot_memory_use){.blocks = blocks > 0 ? (size_t)blocks : 0,
                            .bytes = bytes > 0 ? (size_t)bytes : 0,
                            .peak = pool.large_peak,
                            .held = held > 0 ? (size_t)held : 0};
}

jot_memory_use jot_memory(void)
{
    pthread_mutex_lock(&pool.lock);
    jot_memory_use use = use_now();
    pthread_mutex_unlock(&pool.lock);
    return use;
}

void rt_block_trim(void)
{
    pthread_mutex_lock(&pool.lock);
    unmap_down_to(pool.large_live);
    pool.large_peak = pool.large_live;
    pthread_mutex_unlock(&pool.lock);
}

void rt_block_on_new_allocator(rt_block_hook *forget) { atomic_store(&pool.forget, forget); }

jot_status jot_set_allocator(const jot_allocator *allocator)
{
    if (allocator && (!allocator->allocate || !allocator->release))
        return status_fail(JOT_ERR_ARGUMENT, "jot_set_allocator: %s is NULL",
                           allocator->allocate ? "release" : "allocate");
    rt_block_hook *forget = atomic_load(&pool.forget);
    if (forget)
        forget();
    pthread_mutex_lock(&pool.lock);
    size_t blocks = use_now().blocks;
    if (blocks == 0) {
        pool.allocator = allocator ? *allocator : (struct jot_allocator){0};
        atomic_store_explicit(&pool.has_allocator, allocator != NULL, memory_order_release);
    }
    pthread_mutex_unlock(&pool.lock);
    if (blocks)
        return status_fail(
            JOT_ERR_ARGUMENT,
            "jot_set_allocator: %zu blocks are in use: set the allocator before the "
            "first array, or release all arrays and executables and close all scopes first",
            blocks);
    return JOT_OK;
}
