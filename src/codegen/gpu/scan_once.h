// SPDX-License-Identifier: Apache-2.0
// Long running folds in one pass over the elements.
#ifndef CODEGEN_GPU_SCAN_ONCE_H
#define CODEGEN_GPU_SCAN_ONCE_H

#include "codegen/kernel.h"

void gpu_scan_once(struct cg_lowering *l, struct cg_kernel *out);

#endif
