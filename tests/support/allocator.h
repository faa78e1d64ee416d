// SPDX-License-Identifier: Apache-2.0
// A user's allocator: `user` points to the number of its blocks that are alive.
#ifndef SUPPORT_ALLOCATOR_H
#define SUPPORT_ALLOCATOR_H

#include <jot/device.h>
#include <stdlib.h>

static inline void *user_allocate(void *user, size_t bytes, size_t alignment)
{
    ++*(int *)user;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static inline void user_release(void *user, void *block, size_t bytes)
{
    (void)bytes;
    --*(int *)user;
    free(block);
}

static inline jot_allocator user_allocator(int *blocks)
{
    return (jot_allocator){.allocate = user_allocate, .release = user_release, .user = blocks};
}

#endif
