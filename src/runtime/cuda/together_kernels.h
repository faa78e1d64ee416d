// SPDX-License-Identifier: Apache-2.0
// What the kernels of together_kernels.inc and who starts them agree on: the memory that each GPU of a
// group has for them.
#ifndef RUNTIME_CUDA_TOGETHER_KERNELS_H
#define RUNTIME_CUDA_TOGETHER_KERNELS_H

// Blocks of a grid, at most, and what each of them sends to another GPU; two of these for each GPU,
// which take turns.  Behind them for each GPU and block the number of the last exchange that it has sent
// for, and by block the number of the last one here.
#define TOGETHER_WORDS(WORD)                                                                   \
    WORD(TOGETHER_GPUS, 8)                                                                     \
    WORD(TOGETHER_THREADS, 512)                                                                \
    WORD(TOGETHER_BLOCKS, 32)                                                                  \
    WORD(TOGETHER_BLOCK_BYTES, 8192)                                                           \
    WORD(TOGETHER_BYTES, 262144)                                                               \
    WORD(TOGETHER_SENT, 4194304)                                                               \
    WORD(TOGETHER_COUNTS, 4195328)                                                             \
    WORD(TOGETHER_ALL, 4195456)

// How elements are combined.  Sums and products of integers wrap.  A NaN is the larger and the smaller of two
// floats, and -0 is less than +0, which a quotient tells.
#define TOGETHER_SUM(a, b) ((unsigned long long)(a) + (unsigned long long)(b))
#define TOGETHER_SUM_FLOAT(a, b) ((a) + (b))
#define TOGETHER_PRODUCT(a, b) ((unsigned long long)(a) * (unsigned long long)(b))
#define TOGETHER_PRODUCT_FLOAT(a, b) ((a) * (b))
#define TOGETHER_LARGER(a, b) ((a) > (b) ? (a) : (b))
#define TOGETHER_SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define TOGETHER_LARGER_FLOAT(a, b)                                                            \
    ((a) != (a) || (a) > (b) ? (a) : (b) != (b) || (b) > (a) || 1 / (a) < 0 ? (b) : (a))
#define TOGETHER_SMALLER_FLOAT(a, b)                                                           \
    ((a) != (a) || (a) < (b) ? (a) : (b) != (b) || (b) < (a) || 1 / (b) < 0 ? (b) : (a))
#define TOGETHER_AND(a, b) ((a) & (b))
#define TOGETHER_OR(a, b) ((a) | (b))

#endif
