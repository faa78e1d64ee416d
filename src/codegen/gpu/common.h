// SPDX-License-Identifier: Apache-2.0
// What is the same in all threads of a loop over time, done ahead by a spare warp.
#ifndef CODEGEN_GPU_COMMON_H
#define CODEGEN_GPU_COMMON_H

#include "codegen/lower.h"

struct gpu_common;

// The loop over time of the points of a loop whose level says that part of it is done ahead; NULL:
// there is none.
struct gpu_common *gpu_common_of(struct cg_lowering *l, nest_id loop);
bool gpu_common_varies(const struct gpu_common *c, nest_id value); // from thread to thread
// Threads without a point do that of another, and put nothing.
void gpu_common_guard(struct gpu_common *c, LLVMValueRef inside);
// Lowers a statement of its; false: as otherwise.
bool gpu_common(struct cg_lowering *l, nest_id statement);

#endif
