// SPDX-License-Identifier: Apache-2.0
// All nests of a program.
#ifndef CODEGEN_GPU_PROGRAM_H
#define CODEGEN_GPU_PROGRAM_H

#include "codegen/phases.h"

// To kernels, by nest, and the loops that some steps open to phases, by step.
jot_status gpu_program_lower(struct cg_module *m, struct arena *arena,
                             struct nest_program *program, struct cg_kernel *kernels,
                             struct cg_phases *phases);

#endif
