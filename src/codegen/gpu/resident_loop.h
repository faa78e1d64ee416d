// SPDX-License-Identifier: Apache-2.0
// A loop of steps as one kernel.
#ifndef CODEGEN_GPU_RESIDENT_LOOP_H
#define CODEGEN_GPU_RESIDENT_LOOP_H

#include "codegen/phases.h"

// The one that the step opens; the kernels are phases.
void gpu_resident_lower(struct cg_module *module, struct arena *arena, struct nest_program *p,
                        uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out);

#endif
