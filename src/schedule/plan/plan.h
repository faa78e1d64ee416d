// SPDX-License-Identifier: Apache-2.0
// What the planner of memory shares with who makes steps: who reads and writes what.
#ifndef SCHEDULE_PLAN_PLAN_H
#define SCHEDULE_PLAN_PLAN_H

#include "nest/program.h"

static inline uint64_t plan_bytes(const struct nest_memory *m)
{
    return (uint64_t)m->count * dtype_get(m->dtype)->bytes;
}

// Whether step t writes its operand i; and whether it reads it beside writing it.
bool plan_is_written(const struct nest_program *p, const struct nest_step *t, uint32_t i);
bool plan_is_updated(const struct nest_program *p, const struct nest_step *t, uint32_t i);
// Whether it writes a part of it, and other steps write the rest.
bool plan_is_part(const struct nest_program *p, const struct nest_step *t, uint32_t i);

// Whether two memories have elements in common that they do not have by what they are.
bool plan_overlap(const struct nest_program *p, uint32_t a, uint32_t b);

// The memory of an input, UINT32_MAX for none.
uint32_t plan_input_memory(const struct nest_program *p, uint32_t input);

// The first step behind the collective of step i that does not run beside it on devices where that is possible.
uint32_t plan_beside_end(const struct nest_program *p, uint32_t i);
// The first step behind the kernel of step i that is none or waits for it.
uint32_t plan_kernel_end(const struct nest_program *p, uint32_t i);
// Whether operand i of step t is memory that the threads of its kernel have besides its buffers.
bool plan_is_work(const struct nest_program *p, const struct nest_step *t, uint32_t i);

// Whether operand `to` of the step may have the memory of every operand that is memory `from`: each
// element is read before it is written.
bool plan_step_may_overwrite(const struct nest_program *p, const struct nest_step *t,
                             uint32_t from, uint32_t to);

// Which of the steps first .. end - 1, whole bodies, have to do with a memory: it, or a view that shows it.
// Of memories from first_memory on.
struct plan_uses {
    const struct nest_program *p;
    uint32_t first, end, first_memory;
    uint32_t *begin, *steps; // by memory: where its steps begin, in their order
    // By step: the loop or case it is in, of a case the branch; and of what has a body, the step behind that.
    uint32_t *around, *last;
};
struct plan_uses plan_find_uses(struct arena *arena, const struct nest_program *p,
                                uint32_t first, uint32_t end, uint32_t first_memory);
const uint32_t *plan_uses_of(const struct plan_uses *u, uint32_t m, uint32_t *n);
// The step of the body, NEST_NONE for all steps, that step i is or is in.
uint32_t plan_step_of_body(const struct plan_uses *u, uint32_t body, uint32_t i);
bool plan_writes(const struct nest_program *p, uint32_t i, uint32_t m);

// Whether the steps may have one memory for `from` and `to`: what `from` holds before them is not read
// any more once `to` is written.  *from* is written by none.
bool plan_may_replace(const struct plan_uses *u, uint32_t from, uint32_t to);

#endif
