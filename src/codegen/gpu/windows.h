// SPDX-License-Identifier: Apache-2.0
// Updates of windows.
#ifndef CODEGEN_GPU_WINDOWS_H
#define CODEGEN_GPU_WINDOWS_H

#include "codegen/gpu/updates.h"

// The second step.
void windows_lower(struct cg_lowering *l, const struct updates *u, struct cg_kernel_step *step);

#endif
