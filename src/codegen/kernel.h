// SPDX-License-Identifier: Apache-2.0
// The functions of a nest and the steps that run them.
#ifndef CODEGEN_KERNEL_H
#define CODEGEN_KERNEL_H

#include "codegen/lower.h"

// A nest before anything is lowered.
struct cg_lowering cg_lowering_make(struct cg_module *module, struct arena *arena,
                                    const struct nest *nest);

// What it has of each value, axis, buffer and statement: nothing yet.
void cg_make_tables(struct cg_lowering *l);
struct cg_kernel_step {
    const char *symbol;
    int64_t total, grain;
    bool parallel;
    int64_t
        phase_grain; // as a phase of a loop, where threads cost less; they have one chunk at least
    uint64_t scratch_bytes;
    uint32_t block;  // threads of a block on a GPU
    bool exact_grid; // a block for every chunk
};
#define CG_KERNEL_STEPS 4
#define CG_COUNTERS_OF_GRID 16
struct cg_kernel {
    int form;    // enum map_form, of a processor
    int n_steps; // 1; 2 of each parallel fold, its blocks and its end; as many as loops of points; several on a GPU
    struct cg_kernel_step steps[CG_KERNEL_STEPS];
    uint64_t partial_bytes; // of results of chunks: the operand after the nest's own
    uint32_t counters;      // u32s, 0 before and after: the operand after that (on a GPU)
    int64_t trips;          // of the loop around it that it makes at once (gpu/trips.c), 0: one
};
jot_status cg_kernel_lower(struct cg_module *module, struct arena *arena, struct nest *nest,
                           int number, struct cg_kernel *out);
// The nest is equal to that of the kernel, whose functions are its too.
void cg_kernel_share(const struct cg_module *module, struct nest *nest,
                     const struct cg_kernel *kernel, struct cg_kernel *out);

#endif
