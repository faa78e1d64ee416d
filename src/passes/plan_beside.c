// SPDX-License-Identifier: Apache-2.0
// What runs beside the collectives of a program: steps behind one that neither read what it gives nor
// write what it reads.
//
//     t = sum x;  kernel (y, z);  u = sum z;  kernel (t, w)      the first kernel, and not the second
//
// Kernels come one after the other, and so do collectives (runtime/cuda/branches.c): the first kernel that
// waits for one, or for a later one, ends what is beside it.
#include "passes/plan.h"

static bool is_one_memory(const struct nest_program *p, uint32_t a, uint32_t b)
{
    bool has_places = p->arena_bytes > 0;
    if (nest_memory_shows(p, a, b) || nest_memory_shows(p, b, a) ||
        (has_places && plan_overlap(p, a, b)))
        return true;
    for (uint32_t m = 0; nest_memory_is_view(&p->memories.at[a]) && m < p->memories.count; m++)
        if (nest_memory_shows(p, a, m) && nest_memory_shows(p, b, m))
            return true;
    return false;
}

static bool waits_for(const struct nest_program *p, const struct nest_step *t,
                      const struct nest_step *collective)
{
    for (uint32_t k = 0; k < t->n_memories; k++)
        if (is_one_memory(p, t->memories[k], collective->memories[0]) ||
            (plan_is_written(p, t, k) &&
             is_one_memory(p, t->memories[k], collective->memories[1])))
            return true;
    return false;
}

static bool runs_beside(const struct nest_program *p, uint32_t i, uint32_t end)
{
    const struct nest_step *t = &p->steps.at[end];
    bool is_known = t->kind == NEST_STEP_KERNEL || t->kind == NEST_STEP_GEMM ||
                    t->kind == NEST_STEP_COPY || t->kind == NEST_STEP_LIBRARY ||
                    t->kind == NEST_STEP_COLLECTIVE;
    for (uint32_t k = i; is_known && t->kind != NEST_STEP_COLLECTIVE && k < end; k++)
        if (p->steps.at[k].kind == NEST_STEP_COLLECTIVE && waits_for(p, t, &p->steps.at[k]))
            return false;
    return is_known;
}

uint32_t plan_beside_end(const struct nest_program *p, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < p->steps.count && runs_beside(p, i, end))
        end++;
    return end;
}
