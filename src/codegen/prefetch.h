// SPDX-License-Identifier: Apache-2.0
// What a loop asks for before it reads it.
#ifndef CODEGEN_PREFETCH_H
#define CODEGEN_PREFETCH_H

#include "codegen/lower.h"

// Finds the loads of the parallel loop that ask for the next row, and lowers that.
void cg_prefetch_find(struct cg_lowering *l, nest_id top);
void cg_prefetch(struct cg_lowering *l, const struct nest_statement *load);
// Asks for the cache line at an address, to read or to write it.
void cg_prefetch_line(struct cg_lowering *l, LLVMValueRef at, bool writes);
// Asks for what the load reads so many elements further on.
void cg_prefetch_ahead(struct cg_lowering *l, const struct nest_statement *load,
                       int64_t elements);

#endif
