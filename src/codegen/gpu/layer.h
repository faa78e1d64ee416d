// SPDX-License-Identifier: Apache-2.0
// A product with a small matrix by one thread.
#ifndef CODEGEN_GPU_LAYER_H
#define CODEGEN_GPU_LAYER_H

#include "codegen/lower.h"

void gpu_layer(struct cg_lowering *l, const struct nest_statement *contract);

#endif
