// SPDX-License-Identifier: Apache-2.0
// A mapped nest as its levels say.
#ifndef CODEGEN_GPU_KERNEL_H
#define CODEGEN_GPU_KERNEL_H

#include "codegen/kernel.h"

struct gpu_kernel {
    struct cg_module *module;
    struct arena *arena;
    struct nest *nest;
    int number; // in the program
    const struct map_operand *operands;
    bool is_phase;
};

jot_status gpu_kernel_lower(const struct gpu_kernel *k, struct cg_kernel *out);

#endif
