// SPDX-License-Identifier: Apache-2.0
// What threads know of the memory that they touch, and how they load and store it.
#ifndef CODEGEN_GPU_MEMORY_H
#define CODEGEN_GPU_MEMORY_H

#include "codegen/lower.h"

// The bytes that a buffer is aligned to, whether no other is in its memory, and whether no thread
// writes it.
unsigned gpu_align_of(const struct cg_lowering *l, nest_id buffer);
bool gpu_is_alone(const struct cg_lowering *l, nest_id buffer);
bool gpu_is_read_only(const struct cg_lowering *l, nest_id buffer);
// Bytes that an access is aligned to, 0: those of an element.
unsigned gpu_alignment(const struct cg_lowering *l, const struct nest_statement *s);
// What l knows of an access while it is lowered.
void gpu_note_access(struct cg_lowering *l, const struct nest_statement *s);
// Loads and stores that are none of addresses as on the host; false: as there.
bool gpu_load(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef guard,
              struct cg_value *out);
bool gpu_store(struct cg_lowering *l, const struct nest_statement *s, struct cg_value v);

#endif
