// SPDX-License-Identifier: Apache-2.0
// What a loop over time reads and puts where lanes are far apart, in tiles of so many trips.
#ifndef CODEGEN_STACK_H
#define CODEGEN_STACK_H

#include "codegen/emit.h"
#include "nest/nest.h"

struct cg_lowering;

// Memory that 16 trips of a loop over time read or put one vector each in.
struct cg_stack {
    LLVMValueRef memory; // or NULL
    LLVMValueRef row;    // of the trip being lowered
    bool by_chunk;       // for each of the vectors side by side
    LLVMValueRef lines;  // of puts whose rows do not begin on cache lines (line.c), or NULL
};

// n rows of a square of n elements become its columns.
void cg_transpose(struct cg_lowering *l, LLVMValueRef *row, unsigned n);

// find says whether there is such a thing; move brings what count trips from `first` on read in, or
// what they put out; trip is called in front of each.
bool cg_stack_find(struct cg_lowering *l, const struct nest_statement *seq);
int64_t cg_stack_trips(const struct cg_lowering *l); // a tile ends at times that are multiples
void cg_stack_move(struct cg_lowering *l, const struct nest_statement *seq, enum nest_kind kind,
                   LLVMValueRef first, LLVMValueRef count);
void cg_stack_trip(struct cg_lowering *l, const struct nest_statement *seq, LLVMValueRef trip,
                   LLVMValueRef count);
LLVMValueRef cg_stack_address(struct cg_lowering *l, nest_id statement, LLVMTypeRef vector);
// Whether the trips load or put neighbouring elements that nothing else in the loop asks for.
bool cg_lies_along_time(const struct cg_lowering *l, const struct nest_statement *seq,
                        const struct nest_statement *s);
// Where lane 0 has the element of the lowest of the trips.
LLVMValueRef cg_stack_row(struct cg_lowering *l, const struct nest_statement *seq,
                          const struct nest_statement *s, LLVMTypeRef lane, LLVMValueRef first,
                          LLVMValueRef count);
void cg_stack_end(struct cg_lowering *l, const struct nest_statement *seq);

#endif
