// SPDX-License-Identifier: Apache-2.0
// jot's own kernels in CUDA C, compiled by NVRTC when the first routine asks for them and kept by the
// disk cache; in the process as long as it lives.
//
// A file of them (*_kernels.inc) is in what C and CUDA C++ have in common, so that the tests run it
// without a GPU.  All parameters have 8 bytes: addresses and long long.
//
// Thread-safety: any thread.
#ifndef RUNTIME_CUDA_KERNELS_H
#define RUNTIME_CUDA_KERNELS_H

#include "runtime/cuda/device.h"

// A list of words of numbers as text.
#define KERNELS_WORD(word, value) "#define " #word " " #value "\n"

// The functions of the source that have the names, with spaces in between, each with the suffix; what
// words define goes in front of it.  The source is in pieces up to a NULL: compiled for a function are
// that which has it and those without any, for several of them side by side.  In the context.
// JOT_ERR_LIBRARY without NVRTC.
jot_status cuda_kernels_get(struct cuda_device *d, const char *words, const char *const *source,
                            const char *names, const char *suffix, CUfunction *out);

// A launch; parameters are addresses and numbers.  Nothing is done without blocks.
struct cuda_start {
    CUfunction kernel;
    uint64_t blocks;
    unsigned block;
    uint64_t parameters[16];
};
jot_status cuda_start(struct cuda_device *d, const struct cuda_start *start);
// All of its blocks are one cluster.
jot_status cuda_start_cluster(struct cuda_device *d, const struct cuda_start *start);

// Blocks of 256 threads for n elements, where the kernel goes on by the size of the grid.
uint64_t cuda_blocks(const struct cuda_device *d, int64_t n);

static inline uint64_t cuda_address(const void *at) { return (uint64_t)(uintptr_t)at; }

#endif
