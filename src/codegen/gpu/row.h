// SPDX-License-Identifier: Apache-2.0
// Where a thread is among those that share a fold.
#ifndef CODEGEN_GPU_ROW_H
#define CODEGEN_GPU_ROW_H

#include "codegen/lower.h"
#include "map/gpu_groups.h"

// A thread's team and its number in it, and where what it has of a window begins; i32.
struct gpu_member {
    LLVMValueRef team, in_team, offset;
};
struct gpu_member gpu_member_of(struct cg_lowering *l, const struct map_row *r);

#endif
