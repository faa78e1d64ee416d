// SPDX-License-Identifier: Apache-2.0
// What of a nest nothing takes but one side of a select of f32s.
#ifndef CODEGEN_GPU_ARMS_H
#define CODEGEN_GPU_ARMS_H

#include "codegen/lower.h"

struct gpu_arm {
    nest_id select; // NEST_NONE: it is in none
    int side;       // 1 or 2: which operand of the select
};
struct gpu_arm gpu_arm_of(struct cg_lowering *l, nest_id statement);
// Whether the operation has been dealt with: it is, or will be, lowered with a select.
bool gpu_arm_statement(struct cg_lowering *l, nest_id op);

#endif
