// SPDX-License-Identifier: Apache-2.0
// Rows of the threads of a warp, moved through shared memory.
#ifndef CODEGEN_GPU_RECORDS_H
#define CODEGEN_GPU_RECORDS_H

#include "codegen/records.h"

// Rows of all threads of the warp, of so many elements each.
void gpu_records_load(struct cg_lowering *l, const struct cg_record_row *r, LLVMValueRef *out);
void gpu_records_store(struct cg_lowering *l, const struct cg_record_row *r, LLVMValueRef *in);
// The axis of warp_points, whose lanes are threads; NEST_NONE where they are not.
nest_id gpu_records_axis(const struct cg_lowering *l);

#endif
