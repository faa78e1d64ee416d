// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/wide.h"

static const struct cuda_wide *wide_of(const struct cuda_matrix *c)
{
    return (const struct cuda_wide *)c->s;
}

jot_status cuda_wide_make(struct cuda_device *d, struct cuda_wide *w)
{
    static const char names[] =
#define CUDA_WIDE(name) #name " "
        CUDA_WIDE_KERNELS(CUDA_WIDE)
#undef CUDA_WIDE
        ;
    bool is_complex = dtype_is_complex(w->base.dtype);
    w->dtype = is_complex ? JOT_C128 : JOT_F64;
    w->type = is_complex ? CUDA_C_64F : CUDA_R_64F;
    w->element = dtype_get(w->dtype)->bytes;
    return cuda_matrix_kernels(d, CUDA_OF_WIDE, w->dtype, names, w->kernels);
}

static jot_status start(const struct cuda_matrix *c, enum cuda_wide_kernel kernel,
                        uint64_t blocks, struct cuda_start start)
{
    start.kernel = wide_of(c)->kernels[kernel];
    start.blocks = blocks;
    start.block = 256;
    return cuda_start(c->d, &start);
}

jot_status cuda_wide_over(const struct cuda_matrix *c, enum cuda_wide_kernel kernel, int64_t n,
                          struct cuda_start parameters)
{
    return start(c, kernel, cuda_blocks(c->d, n), parameters);
}

jot_status cuda_wide_blocks(const struct cuda_matrix *c, enum cuda_wide_kernel kernel,
                            int64_t n, struct cuda_start parameters)
{
    return start(c, kernel, (uint64_t)n, parameters);
}

jot_status cuda_wide_read(const struct cuda_matrix *c, size_t to)
{
    uint64_t count = c->s->base.call.bytes[0] / (uint64_t)c->s->batch / sizeof(float);
    size_t bad = c->s->bad + (size_t)c->i * sizeof(int);
    return cuda_wide_over(c, CUDA_WIDE_widen, (int64_t)count,
                          CUDA_NUMBERS(cuda_address(cuda_matrix_operand(c, 0)),
                                       cuda_matrix_address(c, to), count,
                                       cuda_matrix_address(c, bad)));
}

jot_status cuda_wide_write(const struct cuda_matrix *c, size_t from, int64_t count, void *to,
                           bool is_conjugated)
{
    uint64_t n = (uint64_t)count * (wide_of(c)->element / sizeof(double));
    return cuda_wide_over(
        c, CUDA_WIDE_narrow, (int64_t)n,
        CUDA_NUMBERS(cuda_matrix_address(c, from), cuda_address(to), n, is_conjugated));
}

jot_status cuda_wide_product(const struct cuda_matrix *c, int64_t m, int64_t n, int64_t inner,
                             double alpha, struct cuda_factor a, struct cuda_factor b,
                             size_t to)
{
    const double factor[2] = {alpha, 0}, zero[2] = {0, 0};
    cudaDataType type = wide_of(c)->type;
    return cuda_blas_status(
        c->d, "a product of a decomposition",
        cuda.cublas.cublasGemmEx(c->d->blas_routines, a.op, b.op, (int)m, (int)n, (int)inner,
                                 factor, cuda_matrix_at(c, a.at), type, (int)a.leading,
                                 cuda_matrix_at(c, b.at), type, (int)b.leading, zero,
                                 cuda_matrix_at(c, to), type, (int)m, CUBLAS_COMPUTE_64F,
                                 CUBLAS_GEMM_DEFAULT));
}
