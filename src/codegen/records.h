// SPDX-License-Identifier: Apache-2.0
// What the statements of a block, the body of a loop over vectors, load and put in places next to
// each other for each lane.
#ifndef CODEGEN_RECORDS_H
#define CODEGEN_RECORDS_H

#include "codegen/lower.h"

// Finds these; NULL from cg_records_load, false: s is none.
void cg_records_open(struct cg_lowering *l, uint32_t block);
void cg_records_close(struct cg_lowering *l);
LLVMValueRef cg_records_load(struct cg_lowering *l, const struct nest_statement *s);
bool cg_records_store(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef v);

#endif
