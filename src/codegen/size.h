// SPDX-License-Identifier: Apache-2.0
// How much code a nest may become.
#ifndef CODEGEN_SIZE_H
#define CODEGEN_SIZE_H

#include "codegen/lower.h"

// The most code that a loop of the nest may become when it is written out.
int64_t cg_most_written_out(const struct cg_module *m, const struct nest *nest);
// As much for each register that a value takes; whether the code of the loop's body, so many times, is no more.
int64_t cg_room(const struct cg_lowering *l);
bool cg_may_repeat(const struct cg_lowering *l, const struct nest_statement *s, int64_t count);

// Instructions that the target needs for a function, about, which COST_CODE bounds.
int64_t cg_code_of(const struct cg_module *m, LLVMValueRef function);
// The same up to `most`; more is any larger number.
int64_t cg_code_up_to(const struct cg_module *m, LLVMValueRef function, int64_t most);
// Registers of the target that the value takes; of a GPU lanes.
int64_t cg_registers_of(const struct cg_module *m, LLVMValueRef v);

#endif
