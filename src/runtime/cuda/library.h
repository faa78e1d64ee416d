// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries, each loaded at its first use through its table of entry points, so that one
// binary works with and without a GPU.
//
// A library is looked for in the directories of JOT_CUDA_LIBRARIES (with colons between them) when
// that is set, then by the dynamic linker, then in lib64 and lib of CUDA_HOME, CUDA_PATH and
// /usr/local/cuda.
//
// Thread-safety: any thread.
#ifndef RUNTIME_CUDA_LIBRARY_H
#define RUNTIME_CUDA_LIBRARY_H

#include "jot/status.h"
#include "runtime/cuda/api.h"

// LIBRARY(word, title, names): names of files, newest first.
#define CUDA_LIBRARIES(LIBRARY)                                                                \
    LIBRARY(driver, "CUDA driver", "libcuda.so.1")                                             \
    LIBRARY(cublas, "cuBLAS", "libcublas.so.13 libcublas.so.12")                               \
    LIBRARY(cublaslt, "cuBLASLt", "libcublasLt.so.13 libcublasLt.so.12")                       \
    LIBRARY(nvrtc, "NVRTC", "libnvrtc.so.13 libnvrtc.so.12")                                   \
    LIBRARY(nvjitlink, "nvJitLink", "libnvJitLink.so.13 libnvJitLink.so.12")                   \
    LIBRARY(cusolver, "cuSOLVER", "libcusolver.so.12 libcusolver.so.11")                       \
    LIBRARY(cufft, "cuFFT", "libcufft.so.12 libcufft.so.11")                                   \
    LIBRARY(cudnn, "cuDNN", "libcudnn.so.9")                                                   \
    LIBRARY(nccl, "NCCL", "libnccl.so.2")

#define CUDA_LIBRARY_ID(word, title, names) CUDA_LIBRARY_##word,
enum cuda_library_id { CUDA_LIBRARIES(CUDA_LIBRARY_ID) CUDA_LIBRARY_COUNT };
#undef CUDA_LIBRARY_ID

// The entry points; only valid once cuda_library_open of the library was JOT_OK.
#define ENTRY(result, name, parameters) result(*name) parameters;
extern struct cuda_api {
    struct {
#include "runtime/cuda/driver.def"
    } driver;
    struct {
#include "runtime/cuda/cublas.def"
    } cublas;
    struct {
#include "runtime/cuda/cublaslt.def"
    } cublaslt;
    struct {
#include "runtime/cuda/nvrtc.def"
    } nvrtc;
    struct {
#include "runtime/cuda/nvjitlink.def"
    } nvjitlink;
    struct {
#include "runtime/cuda/cusolver.def"
    } cusolver;
    struct {
#include "runtime/cuda/cufft.def"
    } cufft;
    struct {
#include "runtime/cuda/cudnn.def"
    } cudnn;
    struct {
#include "runtime/cuda/nccl.def"
    } nccl;
} cuda;
#undef ENTRY

// JOT_ERR_LIBRARY, or JOT_ERR_DEVICE for the driver, with what is missing.
jot_status cuda_library_open(enum cuda_library_id id);

const char *cuda_library_title(enum cuda_library_id id);
// "13.0.2", or "" while the library is not open; of the driver the version of CUDA.
const char *cuda_library_version(enum cuda_library_id id);

#endif
