// SPDX-License-Identifier: Apache-2.0
// What the machine has: threads, blocks, warps, barriers, shuffles and shared memory.
#ifndef CODEGEN_GPU_DEVICE_H
#define CODEGEN_GPU_DEVICE_H

#include "codegen/accumulate.h"

#define GPU_MOST_SHARED (227 * 1024)          // bytes of a block
#define GPU_SECOND_CACHE (UINT64_C(50) << 20) // bytes

// An intrinsic of LLVM that has one type.
LLVMValueRef gpu_call(struct machine *m, const char *name, int n, LLVMValueRef *arguments);
LLVMValueRef gpu_special(struct machine *m, const char *name); // tid.x, ctaid.x, nctaid.x
LLVMValueRef gpu_i32(const struct cg_lowering *l, int64_t x);
LLVMValueRef gpu_wide(struct cg_lowering *l, LLVMValueRef i32); // an i64, never negative
// Whether what is lowered may come again, or not at all, while the threads do one point.
bool gpu_is_repeated(const struct cg_lowering *l);
// All threads of the group have come here, and see what the others stored.
void gpu_sync(struct cg_lowering *l);
// The same of a warp.
void gpu_sync_warp(struct cg_lowering *l);
// From the thread of the warp whose number is `by` smaller, or larger; from thread `from` of the warp.
struct cg_element gpu_shuffle_up(struct cg_lowering *l, const struct cg_element *t,
                                 unsigned by);
struct cg_element gpu_shuffle_down(struct cg_lowering *l, const struct cg_element *t,
                                   unsigned by);
struct cg_element gpu_shuffle_from(struct cg_lowering *l, const struct cg_element *t,
                                   LLVMValueRef from);
LLVMValueRef gpu_block_number(struct cg_lowering *l); // an i32
// All threads of the block have come here.
void gpu_barrier(struct machine *m);
// Where the shared memory of a block begins.
LLVMValueRef gpu_shared_start(struct machine *m);
// Shared memory of the group.
LLVMValueRef gpu_shared(struct cg_lowering *l, uint64_t bytes);
// Counts one more in the counter; true in all threads of the block that counted last, who see what
// all blocks stored before they counted.  The count starts again from 0 then.
LLVMValueRef gpu_is_last(struct cg_lowering *l, LLVMValueRef counter, int64_t count);

#endif
