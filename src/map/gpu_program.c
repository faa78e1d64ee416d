// SPDX-License-Identifier: Apache-2.0
// The mapping of a program to a GPU, before memory is planned: what a nest is, a kernel or a phase of a loop that is
// one, and what is known of the memories that it reads.
#include "map/gpu_program.h"

#include "map/gpu_operands.h"
#include "map/gpu_scratch.h"
#include "map/gpu_trips.h"
#include "map/gpu_verify.h"

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

// What is known of a nest with such operands.
static struct map_gpu known_of(const struct nest *n, const struct map_operand *operands,
                               bool is_phase, int64_t trips, bool has_warpgroups)
{
    bool *is_read_only = arena_array(n->arena, bool, n->buffers.count + 1);
    bool *is_aligned = arena_array(n->arena, bool, n->buffers.count + 1);
    for (uint32_t k = 0; k < n->buffers.count; k++) {
        is_read_only[k] = n->buffers.at[k].role == NEST_IN && operands[k].is_constant;
        is_aligned[k] =
            n->buffers.at[k].role == NEST_LOCAL || operands[k].align == MAP_ALIGNMENT;
    }
    return (struct map_gpu){.nest = n,
                            .arena = n->arena,
                            .uses = arena_new(n->arena, struct map_uses),
                            .is_phase = is_phase,
                            .is_read_only = is_read_only,
                            .is_aligned = is_aligned,
                            .code = map_most_code(n, FOLD_LANES),
                            .trips = is_phase ? 1 : trips,
                            .has_warpgroups = has_warpgroups};
}

static const struct nest_buffer *scratch_of(const struct nest *n)
{
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role == NEST_WORK)
            return &n->buffers.at[i];
    return NULL;
}

// The nest gets a buffer of so many bytes, and its steps memory for that, at such an offset of the arena until it is planned.
static void add_scratch(struct nest_program *p, uint32_t nest, uint64_t bytes, uint64_t offset)
{
    struct nest_buffer buffer = {
        .name = "scratch", .dtype = JOT_U8, .count = (int64_t)bytes, .role = NEST_WORK};
    vec_push(p->arena, &p->nests.at[nest]->buffers, buffer);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        struct nest_step *t = &p->steps.at[i];
        if (t->kind != NEST_STEP_KERNEL || t->nest != nest)
            continue;
        uint32_t n = t->n_memories++, *memories = arena_array(p->arena, uint32_t, n + 1);
        struct nest_range *ranges = arena_array(p->arena, struct nest_range, n + 1);
        for (uint32_t k = 0; k < n; k++) {
            memories[k] = t->memories[k];
            ranges[k] = nest_step_range(p, t, k);
        }
        memories[n] = p->memories.count;
        ranges[n] = (struct nest_range){0, buffer.count};
        t->memories = memories;
        t->ranges = t->ranges ? ranges : NULL;
        vec_push(p->arena, &p->memories,
                 ((struct nest_memory){.kind = NEST_TEMPORARY,
                                       .dtype = JOT_U8,
                                       .count = buffer.count,
                                       .offset = offset,
                                       .name = "scratch"}));
    }
    if (offset + bytes > p->arena_bytes)
        p->arena_bytes = offset + bytes;
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
        if (!nest_is_mapped(p->nests.at[i]))
            nest_collapse(p->nests.at[i]);
    map_split_phases(p);
    const enum map_role *roles = map_roles_of(p->arena, p);
    const int64_t *trips = map_trips_of(p->arena, p);
    const struct map_operand *const *operands = map_operands(p->arena, p);
    const uint64_t offset = (p->arena_bytes + 63) / 64 * 64;
    for (uint32_t i = 0; i < p->nests.count; i++) {
        if (!roles[i])
            continue;
        struct map_gpu m = known_of(p->nests.at[i], operands[i], roles[i] == MAP_PHASE,
                                    trips[i], has_warpgroups);
        if (!nest_is_mapped(m.nest))
            map_to_gpu(&m, p->nests.at[i]);
        uint64_t bytes = scratch_of(m.nest) ? 0 : map_scratch_of(&m, m.nest);
        if (bytes)
            add_scratch(p, i, bytes, offset);
    }
}

int64_t map_price_on_gpu(const struct nest *n)
{
    struct nest *copy = nest_copy(n->arena, n);
    struct map_operand *operands =
        arena_array(n->arena, struct map_operand, n->buffers.count + 1);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        operands[i] = (struct map_operand){.align = MAP_ALIGNMENT, .is_constant = true};
    nest_collapse(copy);
    struct map_gpu m = known_of(copy, operands, false, 1, false);
    map_to_gpu(&m, copy);
    return copy->price;
}

// What threads have besides, where a text says so, is as much as they want.
static int verify_scratch(const struct map_gpu *m, struct strbuf *report)
{
    const struct nest_buffer *b = scratch_of(m->nest);
    uint64_t wanted = b ? map_scratch_of(m, m->nest) : 0;
    if (!b || (uint64_t)b->count == wanted)
        return 0;
    if (report)
        strbuf_printf(report, "%s: its threads want %llu bytes of work, not %lld\n", b->name,
                      (unsigned long long)wanted, (long long)b->count);
    return 1;
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
        struct map_gpu m = known_of(p->nests.at[i], operands[i], roles[i] == MAP_PHASE,
                                    trips[i], has_warpgroups);
        faults += nest_verify(m.nest, report) || map_gpu_verify(&m, report) ||
                  verify_scratch(&m, report);
    }
    return faults;
}
