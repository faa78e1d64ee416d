// SPDX-License-Identifier: Apache-2.0
// Several vectors of the vector axis side by side, so that each computes while others wait for their
// results.  Between open and close l->chunks.together is set, and blocks are lowered for all vectors, in
// turns: a run of plain statements for the first one, for the second, ...; loops over time are opened
// once for all.
#ifndef CODEGEN_TURN_H
#define CODEGEN_TURN_H

#include "codegen/emit.h"
#include "nest/nest.h"

struct cg_lowering;

#define CG_CHUNKS 8 // vectors side by side, at most

// One of several vectors of the vector axis that are lowered side by side (turn.c).
struct cg_chunk {
    struct cg_value *values;
    LLVMValueRef index; // of its lane 0
    LLVMValueRef mask;
    LLVMValueRef slot; // of the fold whose axis it is
};

// Those that are lowered, from open to close.
struct cg_chunks {
    struct cg_chunk *at; // NULL: one vector at a time
    unsigned count, now;
    bool together; // what is lowered now is lowered for all of them
};

void cg_chunks_open(struct cg_lowering *l, unsigned n);
void cg_chunks_close(struct cg_lowering *l);
// Makes chunk c the vector at index.
void cg_chunk_set(struct cg_lowering *l, unsigned c, LLVMValueRef index, LLVMValueRef mask,
                  LLVMValueRef slot);
// for (struct cg_turn t = {0}; cg_turn_next(l, &t);): once for each vector, as if it were the only
// one; once when it is.
struct cg_turn {
    unsigned next;
    bool all;
};
bool cg_turn_next(struct cg_lowering *l, struct cg_turn *t);
// Lowers those of the statements that are not hoisted.
void cg_lower_list(struct cg_lowering *l, const nest_id *statements, uint32_t n);

#endif
