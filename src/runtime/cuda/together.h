// SPDX-License-Identifier: Apache-2.0
// Collectives of few bytes by kernels of jot's own, which write into the memory of the other GPUs.
#ifndef RUNTIME_CUDA_TOGETHER_H
#define RUNTIME_CUDA_TOGETHER_H

#include "base/collective.h"
#include "runtime/cuda/device.h"

#define CUDA_TOGETHER_TYPES 16
#define CUDA_TOGETHER_KERNELS (COLLECTIVE_COMBINER_COUNT * CUDA_TOGETHER_TYPES + 2)

// Exchanges of different channels may run at the same time; those of one come one after the other.
#define CUDA_TOGETHER_CHANNELS 4

// What a group of GPUs has for them, from zeros; it stays as long as the process.
struct cuda_together {
    bool is_open, is_missing;
    unsigned *stop;                                          // in pinned memory
    void *memory[RT_CUDA_MOST];                              // of all channels
    CUfunction kernels[RT_CUDA_MOST][CUDA_TOGETHER_KERNELS]; // NULL until they are asked for
};

bool cuda_together_knows(const struct collective *c);
// JOT_ERR_LIBRARY where the GPUs do not get at one another's memory, or without NVRTC.
jot_status cuda_together_run(struct cuda_together *t, struct cuda_device *const *devices,
                             const struct collective *c, const struct rt_blocks *b,
                             uint64_t to_bytes, uint64_t from_bytes);
// Ends what waits for a GPU that is lost.
void cuda_together_stop(struct cuda_together *t);

#endif
