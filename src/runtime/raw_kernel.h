// SPDX-License-Identifier: Apache-2.0
// A kernel in CUDA C of the user's, as one block of bytes that can be copied.
#ifndef RUNTIME_RAW_KERNEL_H
#define RUNTIME_RAW_KERNEL_H

#include "jot/callback.h"

struct rt_raw_kernel {
    size_t bytes; // of all of it
    unsigned grid[3], block[3];
    size_t shared_bytes;
    bool maps_batch;             // mapped by one launch, with a lane for each z of the grid
    jot_callback_function *host; // what runs elsewhere; NULL: nothing does
    void *host_ctx;
    uint32_t name, source, options; // in text
    char text[];
};

#endif
