// SPDX-License-Identifier: Apache-2.0
// What jot uses of NVIDIA's interfaces, declared here: nothing of the CUDA toolkit is needed to
// build. Names, types and numbers are NVIDIA's; tests/runtime/cuda_declarations.c compares them
// with the headers of a toolkit where there is one.
#ifndef RUNTIME_CUDA_API_H
#define RUNTIME_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute;
typedef int CUstreamCaptureMode, CUlaunchAttributeID, CUmemAllocationType, CUmemLocationType;
typedef int CUmemAllocationHandleType, CUdevice_P2PAttribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef int CUgraphExecUpdateResult, CUstreamCaptureStatus;
typedef uint64_t cuuint64_t, CUgraphConditionalHandle;

typedef struct CUgraphNodeParams {
    int type, reserved0[3];
    union {
        long long reserved1[29];
        struct {
            CUgraphConditionalHandle handle;
            int type;
            unsigned size;
            CUgraph *phGraph_out;
            CUcontext ctx;
        } conditional;
    };
    long long reserved2;
} CUgraphNodeParams;

typedef struct CUlaunchAttribute {
    CUlaunchAttributeID id;
    char pad[4];
    union {
        char pad[64];
        int cooperative, programmaticStreamSerializationAllowed;
        struct {
            unsigned x, y, z;
        } clusterDim;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

typedef struct CUmemPoolProps {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    struct {
        CUmemLocationType type;
        int id;
    } location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUmemAccessDesc {
    struct {
        CUmemLocationType type;
        int id;
    } location;
    int flags;
} CUmemAccessDesc;

typedef int cublasStatus_t, cublasComputeType_t, cudaDataType, libraryPropertyType;
typedef int cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t;
typedef int cublasLtMatmulPreferenceAttributes_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatrixLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreference *cublasLtMatmulPreference_t;
typedef CUstream cudaStream_t;

// Has no pointers into itself: a copy is one more.
typedef struct cublasLtMatmulDescOpaque_t {
    uint64_t data[32];
} cublasLtMatmulDescOpaque_t, *cublasLtMatmulDesc_t;

typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

typedef int nvJitLinkResult, nvJitLinkInputType;
typedef struct nvJitLink *nvJitLinkHandle;

typedef struct _nvrtcProgram *nvrtcProgram;
typedef int nvrtcResult, cusolverStatus_t, cufftResult, cufftHandle;

typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

// As of 2.17; later ones have more at the end, and go by the size.
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare;
} ncclConfig_t;

typedef int cudnnStatus_t, cudnnDataType_t, cudnnTensorFormat_t, cudnnConvolutionMode_t;
typedef int cudnnMathType_t, cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t;
typedef int cudnnConvolutionBwdFilterAlgo_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;

typedef struct cublasContext *cublasHandle_t;
typedef int cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t;
typedef int cublasGemmAlgo_t, cusolverEigMode_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct cusolverDnParams *cusolverDnParams_t;
typedef struct float2 {
    float x, y;
} cuComplex;
typedef struct double2 {
    double x, y;
} cuDoubleComplex;

#define CONSTANT(name, value) name = value,
enum {
#include "runtime/cuda/constants.def"
#include "runtime/cuda/nccl_constants.def"
};
#undef CONSTANT

#endif
