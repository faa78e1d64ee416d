// SPDX-License-Identifier: Apache-2.0
// Products of f32 that are symmetric, by kernels of jot's own that compute one side of the diagonal.
//
// Their bits are the same in every run, and c is symmetric to the bit.
#ifndef RUNTIME_CUDA_GRAM_H
#define RUNTIME_CUDA_GRAM_H

#include "runtime/cuda/kernels.h"
#include "runtime/steps.h"

// Rows and columns of a tile, terms that a step of a block fetches, and its threads, which have 8 by 8
// numbers each.
#define GRAM_NUMBERS(NUMBER)                                                                   \
    NUMBER(GRAM_TILE, 64)                                                                      \
    NUMBER(GRAM_DEPTH, 16)                                                                     \
    NUMBER(GRAM_THREADS, 64)

// tiles is 0: the library does it.
struct cuda_gram {
    CUfunction kernels[2];
    int64_t tiles, cuts;
    size_t workspace; // bytes
};

// For operands that lie at multiples of the alignment.  In the context.
jot_status cuda_gram_bind(struct cuda_device *d, const struct rt_gemm *g, uint32_t alignment,
                          struct cuda_gram *out);
jot_status cuda_gram(struct cuda_device *d, const struct rt_gemm *g,
                     const struct cuda_gram *gram, void *const *operands, void *workspace);

#endif
