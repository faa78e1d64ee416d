// SPDX-License-Identifier: Apache-2.0
// A loop of steps as one kernel, whose blocks wait for one another.
#ifndef CODEGEN_GPU_RESIDENT_H
#define CODEGEN_GPU_RESIDENT_H

#include "codegen/kernel.h"

struct gpu_resident {
    struct cg_module *module;
    const struct nest_program *program;
    struct machine m;      // the builder of who writes the loop
    LLVMValueRef function; // of memories, partial results and counters
    bool is_grid;          // of many blocks, that wait for one another
    bool goes_on;          // the phase behind the next one does not wait for it
    unsigned block;        // threads of a block
    int64_t blocks;        // that the widest phase wants
    uint64_t shared_bytes;
    LLVMValueRef thread, number, count; // i32: in the block, of the block, blocks
    LLVMValueRef counter, passed;       // what blocks count, and the memory of how far that is
};
// Chooses the threads for the steps first .. end - 1.
void gpu_resident_choose(struct gpu_resident *r, uint32_t first, uint32_t end,
                         const struct cg_kernel *kernels);
// The function, of so many parameters, and what comes first in it; the last one is of counters.
void gpu_resident_declare(struct gpu_resident *r, const char *symbol, unsigned n);
void gpu_resident_open(struct gpu_resident *r);
// Phases, each with all threads waiting for one another behind it, or those of a block where another one goes on.
void gpu_resident_kernel(struct gpu_resident *r, const struct cg_kernel_step *step,
                         const LLVMValueRef *operands, unsigned n);
// Elements of so many bytes, a power of two, of n places to as many others, which may be the same
// ones in another order.
void gpu_resident_copy(struct gpu_resident *r, unsigned n, const LLVMValueRef *to,
                       const LLVMValueRef *from, int64_t count, unsigned bytes);
void gpu_resident_wait(struct gpu_resident *r);
void gpu_resident_close(struct gpu_resident *r);

#endif
