// SPDX-License-Identifier: Apache-2.0
#ifndef CODEGEN_PLAN_H
#define CODEGEN_PLAN_H

#include "base/arena.h"
#include "codegen/phases.h"

// The launch plan of a scheduled program, as bytes: its nests were lowered to these kernels, the
// loops that some of its steps open (phases, by step) to functions.
jot_status cg_plan_write(struct arena *arena, const struct nest_program *program,
                         const struct cg_kernel *kernels, const struct cg_phases *phases,
                         const void **out_bytes, size_t *out_size);

#endif
