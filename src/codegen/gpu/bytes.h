// SPDX-License-Identifier: Apache-2.0
// Loads of 16 bytes that may lie anywhere.
#ifndef CODEGEN_GPU_BYTES_H
#define CODEGEN_GPU_BYTES_H

#include <llvm-c/Core.h>

// They become loads that the back end reads as they are aligned.
void gpu_split_bytes(LLVMModuleRef module);

#endif
