// SPDX-License-Identifier: Apache-2.0
// Points that threads share.
#ifndef CODEGEN_GPU_GROUPS_H
#define CODEGEN_GPU_GROUPS_H

#include "codegen/kernel.h"

// What threads of a group wait for one another for.
void gpu_share_out(struct cg_lowering *l);
// Each point of the loop by a group; which expects what is together to be known.
void gpu_groups_run(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step);
// Neighbouring points by neighbouring threads.
void gpu_columns_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step);

#endif
