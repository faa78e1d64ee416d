// SPDX-License-Identifier: Apache-2.0
// Numbers that the kernels of lu_kernels.inc and who starts them agree on.
#ifndef RUNTIME_CUDA_LU_KERNELS_H
#define RUNTIME_CUDA_LU_KERNELS_H

// Threads of a block, each with a row of a panel; blocks of a cluster, at most; columns of a
// group of panels, after which the rest of the matrix is updated by one product.
#define LU_NUMBERS(WORD)                                                                       \
    WORD(LU_THREADS, 256)                                                                      \
    WORD(LU_BLOCKS, 16)                                                                        \
    WORD(LU_GROUP, 128)

#endif
