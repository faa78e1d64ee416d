// SPDX-License-Identifier: Apache-2.0
// The kernels of matrix_kernels.inc, wide_kernels.inc, small_kernels.inc, qr_kernels.inc and
// lu_kernels.inc.
#ifndef RUNTIME_CUDA_MATRIX_H
#define RUNTIME_CUDA_MATRIX_H

#include "jot/dtype.h"
#include "runtime/cuda/kernels.h"

// Where they are; the small ones are for matrices of at most so many rows and columns.
enum cuda_matrix_file {
    CUDA_OF_MATRICES,
    CUDA_OF_WIDE,
    CUDA_OF_SMALL_16,
    CUDA_OF_SMALL_32,
    CUDA_OF_QR_32,
    CUDA_OF_QR_64,
    CUDA_OF_LU
};

// Those with the names, separated by spaces, for elements of the type: f32, f64, c64 or c128;
// f64 or c128 of wide_kernels.inc, f32 or f64 of lu_kernels.inc.  In the context.
// JOT_ERR_LIBRARY without NVRTC.
jot_status cuda_matrix_kernels(struct cuda_device *d, enum cuda_matrix_file file,
                               jot_dtype dtype, const char *names, CUfunction *out);

#endif
