// SPDX-License-Identifier: Apache-2.0
// What the statements of a block, the body of a loop over vectors, load and put in elements next to
// each other for each lane.
#ifndef CODEGEN_RECORDS_H
#define CODEGEN_RECORDS_H

#include "codegen/lower.h"

// On a GPU, where lanes are threads of a warp, what is of one of them: elements from number `first` of
// the row on, the address of which is `at`; those of its neighbours are `across` elements further.
#define CG_ROW_BYTES 128
#define CG_ROW_WIDEST (CG_ROW_BYTES / 4)
struct cg_record_row {
    const struct nest_statement *s; // a load or put of them
    int64_t first, across;
    LLVMTypeRef lane;
    LLVMValueRef at;
    unsigned width, bytes; // elements, a power of two; bytes of one
};

// Finds these; NULL from cg_records_load, false: s is none.
void cg_records_open(struct cg_lowering *l, uint32_t block);
void cg_records_close(struct cg_lowering *l);
LLVMValueRef cg_records_load(struct cg_lowering *l, const struct nest_statement *s);
bool cg_records_store(struct cg_lowering *l, const struct nest_statement *s, LLVMValueRef v);

#endif
