// SPDX-License-Identifier: Apache-2.0
// What runs beside a step of a program: steps behind it that neither read what it gives nor write what it reads.
//
//     t = sum x;  kernel (y, z);  u = sum z;  kernel (t, w)      the first kernel, and not the second
//
// Kernels come one after the other, and so do collectives (runtime/cuda/branches.c): the first kernel that
// waits for one, or for a later one, ends what is beside it.  Beside a kernel of a GPU whose threads have memory
// of their own come the steps before the first one that waits for it: those of small kernels run when it does.
#include "schedule/plan/plan.h"

// Whether what step t has at its memory k is at memory `of` step `other` has, too.
static bool is_shared(const struct nest_program *p, const struct nest_step *t, uint32_t k,
                      const struct nest_step *other, uint32_t of)
{
    uint32_t a = t->memories[k], b = other->memories[of];
    if (a == b)
        return nest_ranges_meet(nest_step_range(p, t, k), nest_step_range(p, other, of));
    return nest_memory_meets(p, a, b) || (p->is_planned && plan_overlap(p, a, b));
}

static bool waits_for(const struct nest_program *p, const struct nest_step *t,
                      const struct nest_step *collective)
{
    for (uint32_t k = 0; k < t->n_memories; k++)
        if (is_shared(p, t, k, collective, 0) ||
            (plan_is_written(p, t, k) && is_shared(p, t, k, collective, 1)))
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

// Whether step t waits for an earlier one.
static bool comes_after(const struct nest_program *p, const struct nest_step *t,
                        const struct nest_step *earlier)
{
    for (uint32_t k = 0; k < t->n_memories; k++)
        for (uint32_t i = 0; i < earlier->n_memories; i++)
            if ((plan_is_written(p, t, k) || plan_is_written(p, earlier, i)) &&
                is_shared(p, t, k, earlier, i))
                return true;
    return false;
}

uint32_t plan_kernel_end(const struct nest_program *p, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < p->steps.count && p->steps.at[end].kind == NEST_STEP_KERNEL &&
           !comes_after(p, &p->steps.at[end], &p->steps.at[i]))
        end++;
    return end;
}

uint32_t plan_beside_end(const struct nest_program *p, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < p->steps.count && runs_beside(p, i, end))
        end++;
    return end;
}
