// SPDX-License-Identifier: Apache-2.0
// What the steps of a program promise about the arguments of a kernel.
#ifndef MAP_GPU_OPERANDS_H
#define MAP_GPU_OPERANDS_H

#include "map/gpu.h"

// A pointer argument of a kernel, in every step that runs it.
struct map_operand {
    unsigned align;   // bytes
    bool is_alone;    // nothing else that the step reads or writes is in its memory
    bool is_constant; // of what is read: nothing writes it while the kernel runs
};
// Whether step i writes part of the memory.
bool map_step_writes(struct arena *arena, const struct nest_program *p, uint32_t i,
                     uint32_t memory);
// Whether step k reads or writes what step i writes, or writes what it reads.
bool map_step_waits(struct arena *arena, const struct nest_program *p, uint32_t i, uint32_t k);
// By nest, of its buffers.  Before memory is planned each memory has an offset of its own.
const struct map_operand *const *map_operands(struct arena *arena,
                                              const struct nest_program *p);

#endif
