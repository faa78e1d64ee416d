// SPDX-License-Identifier: Apache-2.0
// Registers of a wide vector side by side.
#ifndef CODEGEN_IN_STEP_H
#define CODEGEN_IN_STEP_H

#include "codegen/emit.h"

// v, a vector of a number of 4 bytes, with its registers computed side by side.
LLVMValueRef cg_in_step(struct machine *m, LLVMValueRef v);

#endif
