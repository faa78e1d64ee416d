// SPDX-License-Identifier: Apache-2.0
// What threads do for a loop of steps as one kernel.
#ifndef CODEGEN_GPU_RESIDENT_H
#define CODEGEN_GPU_RESIDENT_H

#include "codegen/kernel.h"
#include "codegen/resident.h"

// Chooses the threads for the steps first .. end - 1.
void gpu_resident_choose(struct cg_resident *r, uint32_t first, uint32_t end,
                         const struct cg_kernel *kernels);
// The function, of so many parameters, and what comes first in it; the last one is of counters.
void gpu_resident_declare(struct cg_resident *r, const char *symbol, unsigned n);
void gpu_resident_open(struct cg_resident *r);
// Phases, each with all threads waiting for one another behind it, or those of a block where another one goes on.
void gpu_resident_kernel(struct cg_resident *r, const struct cg_kernel_step *step,
                         const LLVMValueRef *operands, unsigned n);
// Elements of so many bytes, a power of two, of n memories to as many others, which may be the same
// ones in another order.
void gpu_resident_copy(struct cg_resident *r, unsigned n, const LLVMValueRef *to,
                       const LLVMValueRef *from, int64_t count, unsigned bytes);
void gpu_resident_wait(struct cg_resident *r);
void gpu_resident_close(struct cg_resident *r);

#endif
