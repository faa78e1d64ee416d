// SPDX-License-Identifier: Apache-2.0
// What stands in for NVIDIA's solvers: the LAPACK of the host.
#ifndef FAKE_CUDA_LAPACK_H
#define FAKE_CUDA_LAPACK_H

#include "fake_cuda/fake.h"

#include "base/dtype.h"
#include "runtime/host/lapack.h"

static inline void *near(const void *at) { return fake_near((CUdeviceptr)(uintptr_t)at); }

static inline jot_dtype dtype_of(cudaDataType type)
{
    return type == CUDA_R_32F   ? JOT_F32
           : type == CUDA_R_64F ? JOT_F64
           : type == CUDA_C_32F ? JOT_C64
                                : JOT_C128;
}

static inline lapack_function *lapack(enum lapack_name which, jot_dtype dtype)
{
    if (rt_lapack_open() != JOT_OK)
        abort();
    return rt_lapack(which, dtype);
}

#endif
