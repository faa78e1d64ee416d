// SPDX-License-Identifier: Apache-2.0
// The one door to the heap.  Everything of jot that allocates outside the data pool comes through
// here, so that a user's allocator and the failing-allocation test see all of it.
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *memory_allocate(size_t bytes);            // NULL when there is none
void *memory_allocate_zeroed(size_t bytes);     // NULL when there is none
void *memory_resize(void *block, size_t bytes); // NULL when there is none; block stays
void memory_release(void *block);               // NULL is fine

// The n-th allocation from now (counted from 1) and all after it fail on this thread; 0 switches
// that off.  For tests.
void memory_fail_after(uint64_t n);

// Counts one allocation against memory_fail_after; true when it has to fail.  For the data pool,
// which has its own source of memory.
int memory_should_fail(void);

// Live blocks of the process: what a leak test compares before and after.
int64_t memory_live_blocks(void);

#endif
