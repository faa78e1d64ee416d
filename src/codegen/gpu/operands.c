// SPDX-License-Identifier: Apache-2.0
// What the steps of a program promise about the arguments of a kernel: how they are aligned, which
// are in memory of their own, and which nothing writes.
#include "codegen/gpu/gpu.h"

static uint64_t bytes_of(const struct nest_memory *m)
{
    return (uint64_t)m->count * jot_dtype_size(m->dtype);
}

static unsigned alignment_of(const struct nest_program *p, uint32_t memory)
{
    const struct nest_memory *m = &p->memories.at[memory];
    unsigned align = GPU_ALIGNMENT;
    if (!nest_memory_is_view(m)) {
        while (m->offset % align)
            align /= 2;
        return align;
    }
    for (uint32_t i = 0; i < m->n_of; i++) {
        unsigned of = alignment_of(p, m->of[i]);
        align = of < align ? of : align;
    }
    while (m->place == NEST_ROW && bytes_of(m) % align)
        align /= 2;
    return align;
}

// The input whose memory an output may have taken, or -1.
static int32_t donor(const struct nest_program *p, const struct nest_memory *m)
{
    return m->place == NEST_OUTPUT && p->donated ? p->donated[m->index] : -1;
}

static bool may_meet(const struct nest_program *p, uint32_t a, uint32_t b)
{
    const struct nest_memory *x = &p->memories.at[a], *y = &p->memories.at[b];
    if (a == b)
        return true;
    for (uint32_t i = 0; nest_memory_is_view(x) && i < x->n_of; i++)
        if (may_meet(p, x->of[i], b))
            return true;
    if (nest_memory_is_view(x))
        return false;
    if (nest_memory_is_view(y))
        return may_meet(p, b, a);
    if (x->place == NEST_TEMPORARY && y->place == NEST_TEMPORARY)
        return x->offset < y->offset + bytes_of(y) && y->offset < x->offset + bytes_of(x);
    if (x->place == y->place)
        return x->index == y->index && x->place != NEST_CONSTANT;
    return (y->place == NEST_INPUT && donor(p, x) == (int32_t)y->index) ||
           (x->place == NEST_INPUT && donor(p, y) == (int32_t)x->index);
}

static bool is_written(const struct nest *n, uint32_t operand)
{
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role != NEST_LOCAL && operand-- == 0)
            return n->buffers.at[i].role != NEST_IN;
    return true;
}

// Whether step t writes part of the memory.
static bool writes(const struct nest_program *p, const struct nest_step *t, uint32_t memory)
{
    if (t->kind == NEST_STEP_COPY)
        return may_meet(p, t->memories[0], memory);
    for (uint32_t k = 0; t->kind == NEST_STEP_KERNEL && k < t->n_memories; k++)
        if (is_written(p->nests.at[t->nest], k) && may_meet(p, t->memories[k], memory))
            return true;
    return false;
}

// Whether the loop around step i, if there is one, writes part of the memory.
static bool loop_writes(const struct nest_program *p, uint32_t i, uint32_t memory)
{
    for (uint32_t first = 0; first <= i; first++) {
        uint32_t end = nest_loop_is_resident(p, first) ? nest_step_end(p, first) : first;
        for (uint32_t k = first; end > i && k < end; k++)
            if (writes(p, &p->steps.at[k], memory))
                return true;
    }
    return false;
}

bool gpu_step_writes(const struct nest_program *p, uint32_t i, uint32_t memory)
{
    return writes(p, &p->steps.at[i], memory);
}

struct gpu_operand *gpu_operands(struct arena *arena, const struct nest_program *p,
                                 uint32_t nest, bool is_phase)
{
    const struct nest *n = p->nests.at[nest];
    struct gpu_operand *all = arena_array(arena, struct gpu_operand, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        all[i] =
            (struct gpu_operand){.align = GPU_ALIGNMENT, .is_alone = true, .is_constant = true};
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_KERNEL || s->nest != nest)
            continue;
        for (uint32_t k = 0; k < s->n_memories; k++) {
            unsigned align = alignment_of(p, s->memories[k]);
            all[k].align = align < all[k].align ? align : all[k].align;
            if (is_phase && loop_writes(p, i, s->memories[k]))
                all[k].is_constant = false;
            for (uint32_t other = 0; other < s->n_memories; other++)
                if (other != k && (is_written(n, k) || is_written(n, other)) &&
                    may_meet(p, s->memories[k], s->memories[other]))
                    all[k].is_alone = all[k].is_constant = false;
        }
    }
    return all;
}
