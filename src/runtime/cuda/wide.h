// SPDX-License-Identifier: Apache-2.0
// What routines for f32 and c64 compute in double precision, where their numbers' squares are
// exact: with products of cuBLAS and the kernels of wide_kernels.inc.
//
// Matrices lie column by column, as the library has it: one that came row by row is its own transpose.
#ifndef RUNTIME_CUDA_WIDE_H
#define RUNTIME_CUDA_WIDE_H

#include "runtime/cuda/solver.h"

#define CUDA_WIDE_KERNELS(KERNEL)                                                              \
    KERNEL(widen)                                                                              \
    KERNEL(narrow)                                                                             \
    KERNEL(roots)                                                                              \
    KERNEL(descend)                                                                            \
    KERNEL(compare)                                                                            \
    KERNEL(weigh)                                                                              \
    KERNEL(settle)                                                                             \
    KERNEL(multiply)                                                                           \
    KERNEL(lower)                                                                              \
    KERNEL(unravel)                                                                            \
    KERNEL(narrow_lower)                                                                       \
    KERNEL(stretched)                                                                          \
    KERNEL(subtract)                                                                           \
    KERNEL(scatter)                                                                            \
    KERNEL(grown)
#define CUDA_WIDE(name) CUDA_WIDE_##name,
enum cuda_wide_kernel { CUDA_WIDE_KERNELS(CUDA_WIDE) CUDA_WIDE_COUNT };
#undef CUDA_WIDE

// What routines of that kind are the first part of.
struct cuda_wide {
    struct cuda_solve base;
    jot_dtype dtype; // that it is computed in
    cudaDataType type;
    size_t element; // bytes
    CUfunction kernels[CUDA_WIDE_COUNT];
};

// Fills it for a routine that is made, of f32 or c64.  In the context.
jot_status cuda_wide_make(struct cuda_device *d, struct cuda_wide *w);

// The bits of how far vectors of single precision may be off.
#define CUDA_SINGLE UINT64_C(0x3e70000000000000) // 2^-24

// A kernel over n numbers, and one of n blocks; with the parameters of a launch.
#define CUDA_NUMBERS(...)                                                                      \
    (struct cuda_start)                                                                        \
    {                                                                                          \
        .parameters = { __VA_ARGS__ }                                                          \
    }
jot_status cuda_wide_over(const struct cuda_matrix *c, enum cuda_wide_kernel kernel, int64_t n,
                          struct cuda_start start);
jot_status cuda_wide_blocks(const struct cuda_matrix *c, enum cuda_wide_kernel kernel,
                            int64_t n, struct cuda_start start);

// The matrix's operand 0 at an offset of the workspace; bad is set for what is not finite.
jot_status cuda_wide_read(const struct cuda_matrix *c, size_t to);
// So many elements from an offset of it, or their conjugates.
jot_status cuda_wide_write(const struct cuda_matrix *c, size_t from, int64_t count, void *to,
                           bool is_conjugated);

// At an offset of it: c = alpha a b, of m rows and n columns, summed over `inner`.
struct cuda_factor {
    cublasOperation_t op;
    size_t at;
    int64_t leading;
};
static inline struct cuda_factor cuda_conjugated(struct cuda_factor f)
{
    f.op = f.op == CUBLAS_OP_N ? CUBLAS_OP_C : CUBLAS_OP_N;
    return f;
}
jot_status cuda_wide_product(const struct cuda_matrix *c, int64_t m, int64_t n, int64_t inner,
                             double alpha, struct cuda_factor a, struct cuda_factor b,
                             size_t to);

#endif
