// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of keys, and its gradient, with tensor cores.
#ifndef CODEGEN_GPU_ATTENTION_H
#define CODEGEN_GPU_ATTENTION_H

#include "codegen/kernel.h"

// The step of a kernel of attention, whose only loop is statement `at` of its body.
void gpu_attention_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);
// The same of its gradient, in three steps.
void gpu_attention_gradient_lower(struct cg_lowering *l, uint32_t at, struct cg_kernel *out);

#endif
