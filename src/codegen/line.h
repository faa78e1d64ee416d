// SPDX-License-Identifier: Apache-2.0
// Rows of a put that lie across cache lines, made whole lines of.
#ifndef CODEGEN_LINE_H
#define CODEGEN_LINE_H

#include "codegen/lower.h"

// The row of lane i takes number i of lines: what the tile before left, and what this one has.
struct cg_lines {
    LLVMValueRef rows;    // [lane][2][elements of a line]
    LLVMValueRef outside; // where the row of lane 0 begins
    LLVMTypeRef lane;
    unsigned bytes;         // of an element
    int64_t stride;         // elements from row to row
    int64_t count;          // rows
    bool falls;             // tiles go down in memory
    LLVMValueRef low, high; // the elements that there are: from low to high of the two
    LLVMValueRef masks;     // memory of lane masks, a word for each vector, or NULL
    bool streams;
};
// Stores the line that is complete; `ends`: the rest behind the last tile.
void cg_lines_store(struct cg_lowering *l, const struct cg_lines *x, bool ends);

#endif
