// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"
#include "base/built.h"
#include "base/status.h"
#include "codegen/codegen.h"
#include "codegen/gpu/gpu.h"
#include "codegen/module.h"
#include "codegen/plan.h"

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

JOT_API extern const char jot_codegen_built[];
const char jot_codegen_built[] = BUILT;

// Statements of the phases of a loop of a GPU, counted as often as they come, that are one function: of
// twice 1200 it takes the assembler longer than is won, and a loop of 1200 is half as fast again as one of
// functions.
#define MOST_INLINED 2048

static void release(struct cg_response *response)
{
    arena_release(response->memory);
    response->memory = NULL;
}

// Of a GPU: the nests of steps outside of loops that are kernels, and of those in them.
static jot_status lower_nests(struct cg_module *m, struct arena *arena,
                              const struct nest_program *program, bool is_phase,
                              const bool *wanted, const bool *apart, struct cg_kernel *out)
{
    for (uint32_t i = 0; i < program->nests.count; i++)
        if (wanted[i])
            JOT_TRY(gpu_kernel_lower(
                m, arena, program->nests.at[i], (int)i, is_phase ? 1 : gpu_trips_of(program, i),
                gpu_operands(arena, program, i, is_phase), is_phase, apart[i], &out[i]));
    return JOT_OK;
}

// The phases of a loop with much code, each of which stays a function: their register allocation, in LLVM
// and in the assembler, takes longer than in proportion of one that has all of them in it, and those that
// come several times are compiled once.
static void find_apart(const struct nest_program *p, uint32_t first, uint32_t end, bool *apart)
{
    uint64_t statements = 0;
    for (uint32_t i = first; i < end; i++)
        if (p->steps.at[i].kind == NEST_STEP_KERNEL)
            statements += p->nests.at[p->steps.at[i].nest]->statements.count;
    for (uint32_t i = first; i < end && statements > MOST_INLINED; i++)
        if (p->steps.at[i].kind == NEST_STEP_KERNEL)
            apart[p->steps.at[i].nest] = true;
}

static jot_status lower_gpu(struct cg_module *m, struct arena *arena,
                            const struct nest_program *program, struct cg_kernel *kernels,
                            struct cg_phases *phases)
{
    uint32_t n = program->nests.count, end = 0;
    bool *alone = arena_array(arena, bool, n + 1), *inside = arena_array(arena, bool, n + 1);
    bool *apart = arena_array(arena, bool, n + 1);
    struct cg_kernel *of_phases = arena_array(arena, struct cg_kernel, n + 1);
    for (uint32_t i = 0; i < program->steps.count; i++) {
        const struct nest_step *t = &program->steps.at[i];
        if (i >= end && nest_loop_is_resident(program, i)) {
            end = nest_step_end(program, i);
            find_apart(program, i, end, apart);
        }
        if (t->kind == NEST_STEP_KERNEL)
            (i < end ? inside : alone)[t->nest] = true;
    }
    JOT_TRY(lower_nests(m, arena, program, false, alone, apart, kernels));
    JOT_TRY(lower_nests(m, arena, program, true, inside, apart, of_phases));
    for (uint32_t i = 0; i < n; i++)
        if (inside[i] && !kernels[i].serial)
            kernels[i].serial = of_phases[i].serial;
    for (uint32_t i = 0; i < program->steps.count; i++)
        if (nest_loop_is_resident(program, i)) {
            cg_resident_lower(m, arena, program, i, of_phases, &phases[i]);
            i = nest_step_end(program, i);
        }
    return JOT_OK;
}

static jot_status lower_all(struct cg_module *m, struct arena *arena,
                            const struct nest_program *program, struct cg_kernel *kernels,
                            struct cg_phases *phases)
{
    for (uint32_t i = 0; i < program->nests.count; i++)
        nest_collapse(program->nests.at[i]);
    if (m->is_gpu)
        return lower_gpu(m, arena, program, kernels, phases);
    for (uint32_t i = 0; i < program->nests.count; i++)
        JOT_TRY(cg_kernel_lower(m, arena, program->nests.at[i], (int)i, &kernels[i]));
    for (uint32_t i = 0; i < program->steps.count; i++)
        if (nest_loop_is_phases(program, i)) {
            cg_phases_lower(m, arena, program, i, kernels, &phases[i]);
            i = nest_step_end(program, i);
        }
    return JOT_OK;
}

static const char *serial_lines(struct arena *arena, const struct nest_program *program,
                                const struct cg_kernel *kernels)
{
    struct strbuf text = strbuf_make(arena);
    for (uint32_t i = 0; i < program->nests.count; i++)
        if (kernels[i].serial)
            strbuf_printf(&text, "%u %s\n", i, kernels[i].serial);
    return text.length ? text.text : "";
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
    struct cg_kernel *kernels = arena_array(arena, struct cg_kernel, program->nests.count + 1);
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
        jot_status s = lower_all(&m, arena, program, kernels, phases);
        if (request->want & CG_WANT_SERIAL)
            response->serial = serial_lines(arena, program, kernels);
        else if (s == JOT_OK)
            s = cg_module_compile(&m, target, request->want, &object);
        arena_guard_close(&guard);
        cg_module_finish(&m);
        JOT_TRY(s);
    }
    if (request->want & CG_WANT_SERIAL)
        return JOT_OK;
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
