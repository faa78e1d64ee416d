// SPDX-License-Identifier: Apache-2.0
// A loop of steps as one kernel of a GPU, whose blocks wait for one another: what its writer knows.
#ifndef CODEGEN_RESIDENT_H
#define CODEGEN_RESIDENT_H

#include "codegen/emit.h"

struct cg_resident {
    struct cg_module *module;
    const struct nest_program *program;
    struct machine m;      // the builder of who writes the loop
    LLVMValueRef function; // of memories, partial results and counters
    bool is_grid;          // of many blocks, that wait for one another
    bool goes_on;          // the phase behind the next one does not wait for it
    unsigned block;        // threads of a block
    int64_t blocks;        // that the widest phase wants
    uint64_t shared_bytes;
    LLVMValueRef thread, number, count; // i32: in the block, of the block, blocks
    LLVMValueRef counter, passed;       // what blocks count, and the memory of how far that is
};

#endif
