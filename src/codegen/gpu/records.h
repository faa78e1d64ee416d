// SPDX-License-Identifier: Apache-2.0
// Rows of the threads of a warp, moved through shared memory.
#ifndef CODEGEN_GPU_RECORDS_H
#define CODEGEN_GPU_RECORDS_H

#include "codegen/lower.h"

// What each thread of a warp has next to each other, from `at` on, and its neighbours `across`
// elements further.  A warp moves all rows together, through shared memory, in accesses of so many
// bytes.
#define GPU_ROW_BYTES 128
#define GPU_ROW_WIDEST (GPU_ROW_BYTES / 4)
struct gpu_row_of_warp {
    LLVMTypeRef lane;
    LLVMValueRef at;
    int64_t across;
    unsigned width, bytes, access; // elements, a power of two; bytes of one, and of an access
};
void gpu_warp_load(struct cg_lowering *l, const struct gpu_row_of_warp *r, LLVMValueRef *out);
void gpu_warp_store(struct cg_lowering *l, const struct gpu_row_of_warp *r, LLVMValueRef *in);
// The axis of warp_points, whose lanes are threads; NEST_NONE where they are not.
nest_id gpu_axis_of_warp(const struct cg_lowering *l);

#endif
