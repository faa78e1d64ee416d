// SPDX-License-Identifier: Apache-2.0
// The mapping of a program to a GPU, before memory is planned: what a nest is, a kernel or a phase of a loop that is
// one, and what is known of the memories that it reads.
#include "map/gpu.h"

#include "base/fold.h"

#include <string.h>

enum map_role *map_roles_of(struct arena *arena, const struct nest_program *p)
{
    enum map_role *of = arena_array(arena, enum map_role, p->nests.count + 1);
    for (uint32_t i = 0, end = 0; i < p->steps.count; i++) {
        if (i >= end && nest_loop_is_resident(p, i))
            end = nest_step_end(p, i);
        if (p->steps.at[i].kind == NEST_STEP_KERNEL)
            of[p->steps.at[i].nest] |= i < end ? MAP_PHASE : MAP_KERNEL;
    }
    return of;
}

void map_split_phases(struct nest_program *p)
{
    const enum map_role *of = map_roles_of(p->arena, p);
    uint32_t *phase = arena_array(p->arena, uint32_t, p->nests.count + 1); // by kernel
    for (uint32_t i = 0, end = 0; i < p->steps.count; i++) {
        struct nest_step *t = &p->steps.at[i];
        if (i >= end && nest_loop_is_resident(p, i))
            end = nest_step_end(p, i);
        if (t->kind != NEST_STEP_KERNEL || i >= end || of[t->nest] != (MAP_KERNEL | MAP_PHASE))
            continue;
        if (!phase[t->nest]) {
            phase[t->nest] = p->nests.count;
            vec_push(p->arena, &p->nests, nest_copy(p->arena, p->nests.at[t->nest]));
        }
        t->nest = phase[t->nest];
    }
}

// What is known of nest i of the program.
static struct map_gpu known_of(const struct nest_program *p, uint32_t i,
                               const struct map_operand *operands, bool is_phase, int64_t trips,
                               bool has_warpgroups)
{
    const struct nest *n = p->nests.at[i];
    bool *is_read_only = arena_array(p->arena, bool, n->buffers.count + 1);
    bool *is_aligned = arena_array(p->arena, bool, n->buffers.count + 1);
    for (uint32_t k = 0; k < n->buffers.count; k++) {
        is_read_only[k] = n->buffers.at[k].role == NEST_IN && operands[k].is_constant;
        is_aligned[k] =
            n->buffers.at[k].role == NEST_LOCAL || operands[k].align == MAP_ALIGNMENT;
    }
    return (struct map_gpu){.nest = n,
                            .arena = p->arena,
                            .uses = arena_new(p->arena, struct map_uses),
                            .is_phase = is_phase,
                            .is_read_only = is_read_only,
                            .is_aligned = is_aligned,
                            .code = map_most_code(n, FOLD_LANES),
                            .trips = is_phase ? 1 : trips,
                            .has_warpgroups = has_warpgroups};
}

bool map_has_warpgroups(const char *target)
{
    static const char word[] = "cuda " MAP_WARPGROUPS;
    char after = strncmp(target, word, sizeof word - 1) ? 'x' : target[sizeof word - 1];
    return after == ' ' || !after;
}

void map_program_to_gpu(struct nest_program *p, bool has_warpgroups)
{
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_collapse(p->nests.at[i]);
    map_split_phases(p);
    const enum map_role *roles = map_roles_of(p->arena, p);
    const int64_t *trips = map_trips_of(p->arena, p);
    const struct map_operand *const *operands = map_operands(p->arena, p);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        if (!roles[i] || nest_is_mapped(p->nests.at[i]))
            continue;
        struct map_gpu m =
            known_of(p, i, operands[i], roles[i] == MAP_PHASE, trips[i], has_warpgroups);
        map_to_gpu(&m, p->nests.at[i]);
    }
}

int map_program_verify(const struct nest_program *p, bool has_warpgroups, struct strbuf *report)
{
    const enum map_role *roles = map_roles_of(p->arena, p);
    const int64_t *trips = map_trips_of(p->arena, p);
    const struct map_operand *const *operands = map_operands(p->arena, p);
    int faults = 0;
    for (uint32_t i = 0; i < p->nests.count; i++) {
        if (!roles[i] || !nest_is_mapped(p->nests.at[i]))
            continue;
        struct map_gpu m =
            known_of(p, i, operands[i], roles[i] == MAP_PHASE, trips[i], has_warpgroups);
        faults += nest_verify(m.nest, report) || map_gpu_verify(&m, report);
    }
    return faults;
}
