// SPDX-License-Identifier: Apache-2.0
// Loops over points by vectors of a thread.
#ifndef CODEGEN_GPU_POINTS_H
#define CODEGEN_GPU_POINTS_H

#include "codegen/lower.h"
#include "map/gpu_lanes.h"

// The axes of vector number i (an i64); its body.
void gpu_points_set(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i);
void gpu_points_body(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i);
// How many statements of the body there are up to the last load that stands before all puts; these, of one result each,
// and later the others, with what these read.
uint32_t gpu_head_of(const struct cg_lowering *l, const struct nest_block *body);
void gpu_head_read(struct cg_lowering *l, const struct nest_block *body, uint32_t head,
                   struct cg_value *out);
void gpu_head_go_on(struct cg_lowering *l, const struct nest_block *body, uint32_t head,
                    const struct cg_value *read);
// Plain statements of the whole vectors i, i + apart, ..., what is read of all of them first.
void gpu_points_turns(struct cg_lowering *l, const struct map_points *p, LLVMValueRef i,
                      int64_t turns, int64_t apart);
// A map that the group shares out; one of a single thread.
void gpu_map(struct cg_lowering *l, nest_id loop);
void gpu_map_alone(struct cg_lowering *l, nest_id loop);

#endif
