// SPDX-License-Identifier: Apache-2.0
// Trips of a stencil, several of which are one launch.
#ifndef CODEGEN_GPU_TRIPS_H
#define CODEGEN_GPU_TRIPS_H

#include "codegen/kernel.h"

void gpu_trips_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step,
                     int64_t *out_trips);

#endif
