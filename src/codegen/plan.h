// SPDX-License-Identifier: Apache-2.0
#ifndef CODEGEN_PLAN_H
#define CODEGEN_PLAN_H

#include "base/arena.h"
#include "codegen/lower.h"

// The launch plan of a scheduled program whose nests were lowered to these kernels, as bytes.
jot_status cg_plan_write(struct arena *arena, const struct nest_program *program,
                         const struct cg_kernel *kernels, const void **out_bytes,
                         size_t *out_size);

#endif
