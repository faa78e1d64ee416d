// SPDX-License-Identifier: Apache-2.0
// A CUDA driver, an assembler, a cuBLAS, a cuSOLVER, a cuFFT, a cuDNN and an NCCL without a GPU, for
// tests of everything above them: memory is that of the host under addresses that nobody may
// follow, streams run at once.
//
//     FAKE_CUDA_VERSION=11040   an old driver
//     FAKE_CUDA_INIT=803        what cuInit returns
//     FAKE_CUDA_COUNT=2         how many GPUs there are
//     FAKE_CUDA_MEMORY=1000     bytes that each has
//     FAKE_CUDA_NO_CAPTURE=1    no stream can be captured
//     FAKE_CUDA_NO_PEERS=1      no GPU gets at the memory of another
//     FAKE_CUDA_NO_EDGES=1      what is captured waits for what was before it
//     FAKE_CUDA_NO_ROUTINE=77   of cuBLASLt, for this type of computation
//     FAKE_CUDA_NO_FFT=5        what cuFFT says instead of making a plan
//     FAKE_CUDA_FFT_FAULT=6     what it says instead of running one
//     FAKE_CUDA_NO_CONV=3000    what cuDNN says of the workspace of a convolution
//     FAKE_CUDA_CONV_FAULT=5000 what it says instead of running one
//     FAKE_CUDA_SOLVER_FAULT=6  what cuSOLVER says instead of running
//     FAKE_CUDA_NO_CONVERGENCE=1  it finds no eigenvalues
//     FAKE_CUDA_WRONG_VECTORS=1   eigenvectors that are none
//     FAKE_CUDA_NO_NCCL=2       what NCCL says instead of bringing GPUs together
//     FAKE_CUDA_NCCL_FAULT=3    what it says instead of a collective
//     FAKE_CUDA_FAULT=3         the third launch fails, as a wait notices
//     FAKE_CUDA_SEED=1          of the order of threads (emulate.h)
//
// Under each name of a library stands a copy of all this with variables of its own.
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

#include "runtime/cuda/api.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_MOST 8 // GPUs
#define EXPORT __attribute__((visibility("default")))

#define ENTRY(result, name, parameters) EXPORT result name parameters;
#include "runtime/cuda/cublas.def"
#include "runtime/cuda/cublaslt.def"
#include "runtime/cuda/cudnn.def"
#include "runtime/cuda/cufft.def"
#include "runtime/cuda/cusolver.def"
#include "runtime/cuda/driver.def"
#include "runtime/cuda/nccl.def"
#include "runtime/cuda/nvjitlink.def"
#include "runtime/cuda/nvrtc.def"
#undef ENTRY

struct CUctx_st {
    int device;
    bool is_broken; // by a kernel, as the next wait notices
};
#define FAKE_ENDS 64
struct CUstream_st {
    CUcontext context;
    CUgraph capture;             // NULL: work runs at once
    CUgraphNode ends[FAKE_ENDS]; // that what is captured next waits for
    size_t end_count;
    int submitted;          // pieces of work
    const bool *is_aborted; // what it waits for in a graph; NULL: it does not
};
struct CUmemPoolHandle_st {
    int device;
};

static inline long fake_number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

// What stands at an address of a device, and the other way round.
#define FAKE_FAR (UINT64_C(1) << 60)
static inline void *fake_near(CUdeviceptr at) { return (void *)(uintptr_t)(at ^ FAKE_FAR); }
static inline CUdeviceptr fake_far(void *at) { return (CUdeviceptr)(uintptr_t)at ^ FAKE_FAR; }

// Of the address sanitizer.  Tests count what is left; addresses of a device hide it from a search
// of the memory, and a device that is lost gets nothing back.
void __lsan_ignore_object(const void *block) __attribute__((weak));
static inline void *fake_untracked(void *block)
{
    if (__lsan_ignore_object)
        __lsan_ignore_object(block);
    return block;
}

CUcontext fake_context(void); // that the thread is in
CUresult fake_health(void);   // what a call there returns
size_t fake_memory_bytes(void);
// The block of memory that the address is in.
bool fake_memory_find(const char *at, const char **begin, const char **end);
// Work of several streams, none of which goes on before it: now, or a node of each where they are captured,
// which nobody waits for any more when it is aborted.
void fake_meet(int n, CUstream *streams, void (*run)(void *), void *argument,
               const bool *is_aborted);
bool fake_is_waiting(CUstream stream);
// One of the n streams, for work that is done in two phases by all of them: all have done the first before
// one does the second.  Those that have the same key do it together.
void fake_come(const void *key, int n, int rank, CUstream stream,
               void (*run)(void *argument, int phase), const void *argument, size_t bytes);
// Runs the work, or keeps it and a copy of the argument where the stream is being captured.
void fake_submit(CUstream stream, void (*run)(void *), void *argument, size_t bytes);

CUstream fake_blas_stream(cublasHandle_t handle);
void fake_set_conditional(CUgraphConditionalHandle handle, unsigned value);

// What tests look at.
EXPORT int fake_cuda_blocks(void);
EXPORT int fake_cuda_modules(void);
EXPORT int fake_cuda_launches(void);
EXPORT int fake_cuda_submitted(CUstream stream); // what it was given, captured or not
EXPORT int fake_cuda_graphs(void);
EXPORT int fake_cuda_graph_launches(void);
EXPORT int fake_cuda_graph_nodes(void); // of the last one that was made
EXPORT int fake_cuda_graph_edges(void);
EXPORT int fake_cuda_graph_depth(void);  // so many of them one after the other
EXPORT int fake_cuda_alignment(void);    // of the last choice of a routine
EXPORT int fake_cuda_compute(void);      // of the last product
EXPORT int fake_cuda_transforms(void);   // that cuFFT has run
EXPORT int fake_cuda_convolutions(void); // that cuDNN has
EXPORT int fake_cuda_factorings(void);   // that cuSOLVER has
EXPORT int fake_cuda_collectives(void);  // groups of calls that NCCL has run

#endif
