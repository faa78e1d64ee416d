// SPDX-License-Identifier: Apache-2.0
// What the files that make a function of a loop of steps share: phases.c (its steps), pieces.c (how it is cut
// into functions), gpu/resident_loop.c (as a kernel of a GPU).
#ifndef CODEGEN_PHASES_H
#define CODEGEN_PHASES_H

#include "base/vec.h"
#include "codegen/kernel.h"

struct cg_resident;

// The loop that a step opens, with all its steps, as one function over memories.
struct cg_phases {
    const char *symbol;     // NULL: there is none
    bool *owns;             // by loop: it is in the function
    VEC(uint32_t) operands; // memories; then one of partial_bytes, if any
    uint64_t partial_bytes, scratch_bytes;
    bool parallel; // some phase is
    // A kernel of a GPU: one operand more, of counters that are 0 before and after; the blocks that it
    // wants, the threads of each, and the trips that its turns are left as after.
    uint32_t counters; // CG_COUNTERS_OF_GRID of the kernel itself and those of phases, or 0
    int64_t blocks, trips;
    uint32_t block;
};
void cg_phases_lower(struct cg_module *module, struct arena *arena, struct nest_program *p,
                     uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out);

// Who writes a function.
struct phases {
    struct cg_module *m;
    struct arena *arena;
    const struct nest_program *p;
    const struct cg_kernel *kernels;
    struct cg_phases *out;
    LLVMBuilderRef b;
    LLVMValueRef function, buffers, phases, scratch, partial, counters;
    LLVMBasicBlockRef entry, failed;
    bool is_cut, by_function; // into pieces; of a GPU: equal phases are calls
    uint32_t
        arena_memory;    // where it is cut: of all temporaries, so that pieces get one address
    bool *has;           // by memory: whether the loop has it
    uint32_t *number_of; // by memory: which operand it is
    uint32_t *last_use;  // by loop: the last step that has to do with a row or turn of it
    uint32_t first;      // step
    uint32_t
        *product_of; // by step from the first on: the number that a product has in the plan
    LLVMValueRef *pointers; // by memory: where it is; NULL: nobody has asked
    VEC(uint32_t) found;    // those whose addresses are found in the body that is written
    LLVMValueRef
        *trips;      // by loop: the one at hand, or how many it made; NULL: it has not begun
    int64_t *totals; // by loop: its trips
    LLVMBasicBlockRef leave; // where tests go
    LLVMValueRef leave_trips;
    struct cg_resident *gpu; // NULL on the host
};

// For a function at its begin: no address is found, and no loop has begun.
void phases_clear(struct phases *w);
LLVMBasicBlockRef phases_block(struct phases *w);
void phases_go_on(struct phases *w, LLVMBasicBlockRef block);
// The first blocks of the function; the open one is that of failure.  Returns where the steps begin.
LLVMBasicBlockRef phases_start(struct phases *w);

// Whether the memory is a row or turn of one of the loops of the function.
bool phases_is_inside(const struct phases *w, const struct nest_memory *m);
bool phases_is_in_arena(const struct phases *w, uint32_t memory);
// Where a memory that takes turns is.  Of more than a few, all in the arena, there is a table; else each is
// compared with.
LLVMValueRef phases_turn(struct phases *w, const struct nest_memory *m);
bool phases_has_table(const struct phases *w, const struct nest_memory *m);

// The writer of the loop that the step opens, and its operands as values.
struct phases phases_make(struct cg_module *module, struct arena *arena, struct nest_program *p,
                          uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out,
                          struct cg_resident *gpu);
void phases_bind_operands(struct phases *w);
void phases_add_step(struct phases *w, uint32_t i);
// The loop that the step opens; returns how many trips it made.
LLVMValueRef phases_add_loop(struct phases *w, uint32_t first);
// Of a GPU: n memories like m to others.
void phases_copy(struct phases *w, unsigned n, const LLVMValueRef *to, const LLVMValueRef *from,
                 const struct nest_memory *m);

#endif
