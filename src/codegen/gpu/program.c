// SPDX-License-Identifier: Apache-2.0
// All nests of a program, and its loops that are one kernel each.
#include "codegen/gpu/program.h"
#include "codegen/begins.h"
#include "codegen/emit.h"
#include "codegen/gpu/kernel.h"
#include "codegen/gpu/resident_loop.h"
#include "codegen/kernel.h"
#include "codegen/phases.h"
#include "map/gpu_operands.h"
#include "map/gpu_program.h"

#include "base/status.h"

// Nests that are one but for where they begin to read are one function.  Phases are none of the kernels that
// are launched: they have other levels and parameters.
jot_status gpu_program_lower(struct cg_module *m, struct arena *arena,
                             struct nest_program *program, struct cg_kernel *kernels,
                             struct cg_phases *phases)
{
    const uint32_t n = program->nests.count;
    const enum map_role *roles = map_roles_of(arena, program);
    bool *wanted = arena_array(arena, bool, n + 1);
    uint32_t *of = arena_array(arena, uint32_t, n + 1);
    for (enum map_role role = MAP_KERNEL; role <= MAP_PHASE; role++) {
        for (uint32_t i = 0; i < n; i++)
            wanted[i] = roles[i] == role;
        cg_begins_share(arena, program, wanted, MAP_ALIGNMENT, of);
        const struct map_operand *const *operands = map_operands(arena, program);
        for (uint32_t i = 0; i < n; i++) {
            struct gpu_kernel k = {.module = m,
                                   .arena = arena,
                                   .nest = program->nests.at[i],
                                   .number = (int)i,
                                   .operands = operands[i],
                                   .is_phase = role == MAP_PHASE};
            if (wanted[i] && of[i] == i)
                JOT_TRY(gpu_kernel_lower(&k, &kernels[i]));
        }
    }
    for (uint32_t i = 0; i < program->steps.count; i++)
        if (nest_loop_is_resident(program, i)) {
            gpu_resident_lower(m, arena, program, i, kernels, &phases[i]);
            i = nest_step_end(program, i);
        }
    return JOT_OK;
}
