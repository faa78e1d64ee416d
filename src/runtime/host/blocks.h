// SPDX-License-Identifier: Apache-2.0
// The data pool: memory for array contents, arenas and array headers.
//
// A fresh page costs more to fault in than to fill, so blocks are kept for reuse by size class:
// what is in use plus what is kept stays below the most that was ever in use and a quarter
// more. Blocks up to RT_BLOCK_SMALL come from lists of the thread, with no lock.  Blocks are
// 64-byte aligned; from 4 MiB they are 2 MiB aligned and ask for huge pages.
//
// Thread-safety: any thread may allocate, and release what another allocated.
#ifndef RUNTIME_HOST_BLOCKS_H
#define RUNTIME_HOST_BLOCKS_H

#include <stddef.h>

#define RT_BLOCK_SMALL 1024

// Not zeroed; NULL when memory is out.  0 bytes is fine.
void *rt_block_allocate(size_t bytes);
// The same number of bytes as given to allocate; NULL is fine.
void rt_block_release(void *block, size_t bytes);

// Gives what is kept for reuse back to the system.
void rt_block_trim(void);

// What jot_set_allocator calls before it looks whether blocks are in use: for a cache of things
// that hold blocks, which nobody else can release.  The last one given counts.
typedef void rt_block_hook(void);
void rt_block_on_new_allocator(rt_block_hook *forget);

#endif
