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

static void map_one(struct arena *arena, struct nest *n, const struct map_operand *operands,
                    bool is_phase, int64_t trips, bool has_warpgroups)
{
    bool *is_read_only = arena_array(arena, bool, n->buffers.count + 1);
    bool *is_aligned = arena_array(arena, bool, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        is_read_only[i] = n->buffers.at[i].role == NEST_IN && operands[i].is_constant;
        is_aligned[i] =
            n->buffers.at[i].role == NEST_LOCAL || operands[i].align == MAP_ALIGNMENT;
    }
    map_to_gpu(&(struct map_gpu){.arena = arena,
                                 .uses = arena_new(arena, struct map_uses),
                                 .is_phase = is_phase,
                                 .is_read_only = is_read_only,
                                 .is_aligned = is_aligned,
                                 .code = map_most_code(n, FOLD_LANES),
                                 .trips = trips,
                                 .has_warpgroups = has_warpgroups},
               n);
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
    for (uint32_t i = 0; i < p->nests.count; i++)
        if (roles[i] && !nest_is_mapped(p->nests.at[i]))
            map_one(p->arena, p->nests.at[i], operands[i], roles[i] == MAP_PHASE,
                    roles[i] == MAP_PHASE ? 1 : trips[i], has_warpgroups);
}
