// SPDX-License-Identifier: Apache-2.0
// Collectives over blocks of memory that the host reads and writes (base/collective.h).
//
// What is combined is combined in the order of the positions, so the bits are the same whatever threads
// there are.
#ifndef RUNTIME_COLLECTIVE_H
#define RUNTIME_COLLECTIVE_H

#include "base/collective.h"

#include <stddef.h>

// The blocks of one group, by position.
struct rt_blocks {
    void *const *to;
    const void *const *from;
};

// Of groups of equal size, each of whose devices reads and writes blocks of so many bytes.  Large ones are
// shared between the threads of the process.
void rt_collective_run(const struct collective *c, size_t n_groups,
                       const struct rt_blocks *groups, uint64_t to_bytes, uint64_t from_bytes);

#endif
