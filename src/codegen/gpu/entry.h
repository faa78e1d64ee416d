// SPDX-License-Identifier: Apache-2.0
// The functions of a kernel: what opens one, and the operands and chunks of the one that is open.
#ifndef CODEGEN_GPU_ENTRY_H
#define CODEGEN_GPU_ENTRY_H

#include "codegen/kernel.h"
#include "codegen/loop.h"

// Behind the operands of a phase: the thread, the block, how many blocks there are, the barrier of
// the block, all i32, and its shared memory.
#define GPU_PHASE_PARAMETERS 5

// A word of NVVM about a function.
void gpu_annotate(struct cg_module *m, LLVMValueRef function, const char *what, unsigned value);

// A function of the nest with the operands and so many pointers behind them, as the next step:
// l->gpu says how many threads there are.  close ends it and gives the lowering what it had before.
struct cg_kernel_step *gpu_function_open(struct cg_lowering *l, struct cg_kernel *out,
                                         const char *suffix, unsigned extra);
void gpu_function_close(struct cg_lowering *l, struct cg_kernel_step *step);
LLVMValueRef gpu_extra_operand(const struct cg_lowering *l, unsigned i);
// The memory that the threads have in common (map/gpu_scratch.c).
LLVMValueRef gpu_scratch(const struct cg_lowering *l);
// for (c = block number; c < chunks; c += blocks)
struct cg_loop gpu_chunks_open(struct cg_lowering *l, int64_t chunks);
// The same where the grid is exact: no loop, but in a phase, whose grid is that of its kernel.
struct cg_loop gpu_own_chunk_open(struct cg_lowering *l, int64_t chunks);
// Statements from .. to - 1 of the nest's body.
void gpu_lower_list(struct cg_lowering *l, uint32_t from, uint32_t to);

// The end of the names of functions that read and write large arrays once.
#define GPU_STREAMS "_streams"

#endif
