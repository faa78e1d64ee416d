// SPDX-License-Identifier: Apache-2.0
// The first function of the gradient of attention.
#ifndef CODEGEN_GPU_ATTENTION_STATISTICS_H
#define CODEGEN_GPU_ATTENTION_STATISTICS_H

#include "codegen/gpu/attention_gradient.h"

void gpu_gradient_statistics(struct gpu_gradient *c, struct cg_kernel *out, uint32_t at);

#endif
