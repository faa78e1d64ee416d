// SPDX-License-Identifier: Apache-2.0
// The second function of the gradient of attention.
#ifndef CODEGEN_GPU_ATTENTION_KEYS_H
#define CODEGEN_GPU_ATTENTION_KEYS_H

#include "codegen/gpu/attention_gradient.h"

void gpu_gradient_keys(struct gpu_gradient *c, struct cg_kernel *out, uint32_t at);

#endif
