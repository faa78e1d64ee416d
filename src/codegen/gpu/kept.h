// SPDX-License-Identifier: Apache-2.0
// Local rows of a group that stay in registers.
#ifndef CODEGEN_GPU_KEPT_H
#define CODEGEN_GPU_KEPT_H

#include "codegen/lower.h"

// Of a local row: whether each thread keeps what it has of it, and where (kept.c).
struct gpu_kept {
    bool is_kept;
    LLVMValueRef memory;
};

// Whether threads keep local rows.
bool gpu_keeps(const struct cg_lowering *l);
// Of the vector that the thread is at; NULL: the buffer is kept by no thread.
LLVMValueRef gpu_kept_address(struct cg_lowering *l, nest_id buffer);

#endif
