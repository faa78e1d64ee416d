// SPDX-License-Identifier: Apache-2.0
// What of a loop of steps would be too much code for one function, as functions of some steps each.
#ifndef CODEGEN_PIECES_H
#define CODEGEN_PIECES_H

#include "codegen/phases.h"

// Of a GPU: what all threads do for a step is one function of the loop, however often it comes.
void phases_call_kernel(struct phases *w, const struct cg_kernel_step *k,
                        LLVMValueRef *operands, uint32_t n);
// How much code a kernel is that becomes part of the function that has it, as short ones do on the host, and
// all on a GPU unless equal ones are functions; 0 for others.
int64_t phases_code_in_place(const struct phases *w, const struct cg_kernel_step *k);
// How much code the steps are.
int64_t phases_code(const struct phases *w, uint32_t first, uint32_t end);
// The step behind step i and its body.
uint32_t phases_after(const struct nest_program *p, uint32_t i);
// The steps from the first on, before `end` or a test, which leaves the loop around it, that are a piece: no
// more than one function may be, or one step alone.
uint32_t phases_end_of_piece(const struct phases *w, uint32_t first, uint32_t end);
void phases_add_piece(struct phases *w, uint32_t first, uint32_t end);

#endif
