// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"
#include "base/built.h"
#include "base/hash.h"
#include "base/status.h"
#include "codegen/begins.h"
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/kernel.h"
#include "codegen/module.h"
#include "codegen/phases.h"
#include "codegen/plan.h"
#include "ir/cost.h"
#include "map/map.h"

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

JOT_API extern const char jot_codegen_built[];
const char jot_codegen_built[] = BUILT;

static void release(struct cg_response *response)
{
    arena_release(response->memory);
    response->memory = NULL;
}

// The constant of a few elements that a kernel step has for number i of its memories, or NULL.
static const void *constant_of(const struct nest_program *program, const struct nest_step *step,
                               uint32_t i)
{
    const struct nest_memory *m = &program->memories.at[step->memories[i]];
    bool is_all = nest_step_range(program, step, i).count == m->count;
    return m->kind == NEST_CONSTANT && m->count <= COST_TABLE && is_all ? m->data : NULL;
}

// Tells buffers of kernels of their elements.
static void find_constants(struct arena *arena, struct nest_program *program)
{
    bool *is_seen = arena_array(arena, bool, program->nests.count + 1);
    for (uint32_t i = 0; i < program->steps.count; i++) {
        const struct nest_step *step = &program->steps.at[i];
        if (step->kind != NEST_STEP_KERNEL)
            continue;
        struct nest *nest = program->nests.at[step->nest];
        for (uint32_t k = 0, given = 0; k < nest->buffers.count; k++) {
            struct nest_buffer *b = &nest->buffers.at[k];
            if (b->role == NEST_LOCAL)
                continue;
            const void *data = constant_of(program, step, given++);
            b->data = is_seen[step->nest] && b->data != data ? NULL : data;
        }
        is_seen[step->nest] = true;
    }
}

// For each nest the first that is equal to it.
static void find_equal(struct arena *arena, const struct nest_program *program, uint32_t *of)
{
    struct hash_table table = {0};
    for (uint32_t i = 0; i < program->nests.count; i++) {
        uint64_t h = nest_hash(program->nests.at[i]);
        of[i] = i;
        for (struct hash_probe q = hash_probe(&table, h); of[i] == i && hash_next(&table, &q);)
            if (nest_equal(program->nests.at[q.id], program->nests.at[i]))
                of[i] = q.id;
        if (of[i] == i)
            hash_insert(arena, &table, h, i);
    }
}

// Kernels of different shapes may be one as they are mapped.  A text of the nests has them as they are.
static jot_status lower_host(struct cg_module *m, struct arena *arena,
                             struct nest_program *program, bool is_text,
                             struct cg_kernel *kernels)
{
    uint32_t *of = arena_array(arena, uint32_t, program->nests.count + 1);
    bool *wanted = arena_array(arena, bool, program->nests.count + 1);
    for (uint32_t i = 0; i < program->nests.count; i++) {
        wanted[i] = true;
        map_change(program->nests.at[i]);
    }
    if (is_text)
        find_equal(arena, program, of);
    else
        cg_begins_share(arena, program, wanted, COST_LINE_BYTES, of);
    for (uint32_t i = 0; i < program->nests.count; i++)
        if (of[i] == i)
            JOT_TRY(cg_kernel_lower(m, arena, program->nests.at[i], (int)i, &kernels[i]));
        else
            cg_kernel_share(m, program->nests.at[i], &kernels[of[i]], &kernels[i]);
    return JOT_OK;
}

// Levels that a text says of a GPU's nests are followed where there is code for them.
static jot_status check_levels(const struct nest_program *program, const struct cg_module *m)
{
    struct strbuf report = strbuf_make(program->arena);
    return map_program_verify(program, m->has_warpgroups, &report)
               ? status_fail(JOT_ERR_ARGUMENT, "%s", report.text)
               : JOT_OK;
}

// Nests of a GPU whose text says nothing of levels are mapped here.
static jot_status lower_all(struct cg_module *m, struct arena *arena,
                            struct nest_program *program, uint32_t want,
                            struct cg_kernel *kernels, struct cg_phases *phases)
{
    bool is_lowered = !(want & CG_WANT_MAPPED);
    find_constants(arena, program);
    if (m->is_gpu) {
        if (want & CG_WANT_VERIFIED)
            JOT_TRY(check_levels(program, m));
        map_program_to_gpu(program, m->has_warpgroups);
        return is_lowered ? m->hooks->program(m, arena, program, kernels, phases) : JOT_OK;
    }
    for (uint32_t i = 0; i < program->nests.count; i++)
        nest_collapse(program->nests.at[i]);
    JOT_TRY(lower_host(m, arena, program, !is_lowered, kernels));
    for (uint32_t i = 0; i < program->steps.count; i++)
        if (nest_loop_is_phases(program, i)) {
            cg_phases_lower(m, arena, program, i, kernels, &phases[i]);
            i = nest_step_end(program, i);
        }
    return JOT_OK;
}

static const char *program_text(struct arena *arena, const struct nest_program *program)
{
    struct strbuf text = strbuf_make(arena);
    nest_program_print(&text, program);
    return text.text;
}

static bool has_code(const struct nest_program *p)
{
    bool has_loop = false;
    for (uint32_t i = 0; i < p->steps.count; i++)
        has_loop |= nest_loop_is_phases(p, i);
    return has_loop || p->nests.count;
}

static jot_status compile(const struct cg_request *request, struct arena *arena,
                          struct cg_response *response)
{
    struct nest_program *program;
    JOT_TRY(nest_program_parse(arena, request->program, &program));
    // Of a GPU a nest may become two.
    struct cg_kernel *kernels =
        arena_array(arena, struct cg_kernel, 2 * program->nests.count + 1);
    struct cg_phases *phases = arena_array(arena, struct cg_phases, program->steps.count + 1);
    struct cg_object object = {0};
    if (has_code(program)) {
        struct cg_target *target;
        JOT_TRY(cg_target_find(request->target, &target));
        struct cg_module m;
        JOT_TRY(cg_module_make(target, arena, &m));
        // A guard of its own, for LLVM's memory is not the arena's.
        struct arena_guard guard;
        if (arena_guard_left(&guard)) {
            cg_module_finish(&m);
            return status_out_of_memory();
        }
        jot_status s = lower_all(&m, arena, program, request->want, kernels, phases);
        if (s == JOT_OK && !(request->want & CG_WANT_MAPPED))
            s = cg_module_compile(&m, target, request->want, &object);
        arena_guard_close(&guard);
        cg_module_finish(&m);
        JOT_TRY(s);
    }
    if (request->want & CG_WANT_MAPPED) {
        response->text = program_text(arena, program);
        return JOT_OK;
    }
    JOT_TRY(
        cg_plan_write(arena, program, kernels, phases, &response->plan, &response->plan_size));
    response->object = object.bytes;
    response->object_size = object.size;
    response->llvm = object.llvm;
    response->assembly = object.assembly;
    return JOT_OK;
}

static jot_status guarded_compile(const struct cg_request *request, struct arena *arena,
                                  struct cg_response *response)
{
    struct arena_guard guard;
    if (arena_guard_left(&guard))
        return status_out_of_memory();
    jot_status status = compile(request, arena, response);
    arena_guard_close(&guard);
    return status;
}

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response)
{
    *response = (struct cg_response){.release = release};
    struct arena *arena = arena_create();
    response->status =
        arena ? guarded_compile(request, arena, response) : status_out_of_memory();
    response->message = response->status == JOT_OK ? NULL : jot_error_message();
    response->memory = arena;
}
