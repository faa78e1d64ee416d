// SPDX-License-Identifier: Apache-2.0
// Points that four threads each do, who share rows.
#ifndef CODEGEN_GPU_SQUADS_H
#define CODEGEN_GPU_SQUADS_H

#include "codegen/gpu/network.h"
#include "codegen/loop.h"

void gpu_squads_lower(struct cg_lowering *l, struct gpu_network *w, uint32_t at,
                      struct cg_kernel *out);
// What threads of a squad put: one of them where all have the same, and none that has no point.
// False: each does.
bool gpu_squads_put_open(struct cg_lowering *l, const struct gpu_network *w,
                         const struct nest_statement *put, struct cg_branch *out);

#endif
