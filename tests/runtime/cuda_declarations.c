// SPDX-License-Identifier: Apache-2.0
// Compares what src/runtime/cuda declares with the headers of a CUDA toolkit.  Compiling it is the
// test; without a toolkit it is not compiled.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define HAS_CUDNN
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#define HAS_NCCL
#endif
#include <cufftXt.h>
#include <cusolverDn.h>
#include <nvJitLink.h>
#include <nvrtc.h>

// Each row as a declaration of a second name, which must have the type of the first.
#define ENTRY(result, name, parameters)                                                        \
    typedef result jot_##name parameters;                                                      \
    _Static_assert(__builtin_types_compatible_p(jot_##name, __typeof__(name)), #name);
#include "runtime/cuda/cublas.def"
#include "runtime/cuda/cublaslt.def"
#ifdef HAS_CUDNN
#include "runtime/cuda/cudnn.def"
#endif
#include "runtime/cuda/cufft.def"
#include "runtime/cuda/cusolver.def"
#include "runtime/cuda/driver.def"
#ifdef HAS_NCCL
#include "runtime/cuda/nccl.def"
#endif
#include "runtime/cuda/nvjitlink.def"
#include "runtime/cuda/nvrtc.def"
#undef ENTRY

#define CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);
#include "runtime/cuda/constants.def"
#ifdef HAS_NCCL
#include "runtime/cuda/nccl_constants.def"
#endif
#undef CONSTANT

// The structs of api.h are what these say too; test_cuda.c has the same numbers.
_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");
_Static_assert(__builtin_offsetof(CUgraphNodeParams, conditional.phGraph_out) == 32,
               "CUgraphNodeParams");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96,
               "cublasLtMatmulHeuristicResult_t");
_Static_assert(sizeof(cublasLtMatmulDescOpaque_t) == 256 && sizeof(cublasLtMatmulAlgo_t) == 64,
               "cublasLt");
_Static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");
_Static_assert(__builtin_offsetof(CUlaunchConfig, hStream) == 32, "CUlaunchConfig");
_Static_assert(__builtin_offsetof(CUlaunchAttribute, value.clusterDim.y) == 12,
               "CUlaunchAttribute");
_Static_assert(__builtin_offsetof(CUmemPoolProps, location.id) == 12, "CUmemPoolProps");
