// SPDX-License-Identifier: Apache-2.0
// A loop of steps as one kernel: what stands around its steps (phases.c), which all threads go through
// together (resident.c).
#include "codegen/gpu/resident_loop.h"
#include "codegen/emit.h"
#include "codegen/gpu/resident.h"
#include "codegen/kernel.h"
#include "codegen/phases.h"
#include "codegen/resident.h"
#include "codegen/types.h"

// Whether a step outside of the loop that step `first` opens has to do with the memory.
static bool is_seen(const struct nest_program *p, uint32_t first, uint32_t memory)
{
    uint32_t end = nest_step_end(p, first);
    for (uint32_t i = 0; i < p->steps.count; i++)
        for (uint32_t k = 0; (i < first || i > end) && k < p->steps.at[i].n_memories; k++)
            if (nest_memory_shows(p, p->steps.at[i].memories[k], memory))
                return true;
    return false;
}

// The host does not know how many trips there were, so turns that are seen go to where none would
// have left them, those of a size together, for they may be exchanged.
static void return_turns(struct phases *w, uint32_t first, LLVMValueRef trips)
{
    const struct nest_program *p = w->p;
    uint32_t loop = p->steps.at[first].loop, n = p->memories.count;
    LLVMValueRef *from = arena_array(w->arena, LLVMValueRef, n + 1);
    LLVMValueRef *to = arena_array(w->arena, LLVMValueRef, n + 1);
    bool *is_done = arena_array(w->arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        unsigned k = 0;
        for (uint32_t j = i; j < n; j++) {
            const struct nest_memory *other = &p->memories.at[j];
            if (is_done[j] || other->kind != NEST_TURN || other->loop != loop ||
                other->n_of < 2 || other->count != m->count || other->dtype != m->dtype ||
                !w->has[j] || !is_seen(p, first, j))
                continue;
            is_done[j] = true;
            w->trips[loop] = trips;
            from[k] = phases_turn(w, other);
            w->trips[loop] = cg_int(w->m, 0);
            to[k++] = phases_turn(w, other);
        }
        if (k)
            phases_copy(w, k, to, from, m);
    }
    w->trips[loop] = NULL;
}

void gpu_resident_lower(struct cg_module *module, struct arena *arena, struct nest_program *p,
                        uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out)
{
    const char *why;
    struct cg_resident r = {.module = module,
                            .program = p,
                            .is_grid = nest_loop_on_gpu(p, step, &why) == NEST_LOOP_GRID};
    struct phases w = phases_make(module, arena, p, step, kernels, out, &r);
    r.m = (struct machine){.module = module, .b = w.b};
    if (r.is_grid && !out->counters)
        out->counters = CG_COUNTERS_OF_GRID;
    gpu_resident_choose(&r, step, nest_step_end(p, step), kernels);
    gpu_resident_declare(&r, out->symbol,
                         out->operands.count + (out->partial_bytes > 0) + (out->counters > 0));
    w.function = r.function;
    w.entry = phases_block(&w);
    LLVMBasicBlockRef start = phases_block(&w);
    phases_go_on(&w, w.entry);
    gpu_resident_open(&r);
    LLVMBuildBr(w.b, start);
    phases_go_on(&w, start);
    phases_bind_operands(&w);
    if (out->counters) {
        LLVMValueRef all = LLVMGetParam(w.function, LLVMCountParams(w.function) - 1);
        LLVMValueRef at = cg_int(module, CG_COUNTERS_OF_GRID);
        w.counters = LLVMBuildGEP2(w.b, module->i32, all, &at, 1, "");
    }
    LLVMValueRef trips = phases_add_loop(&w, step);
    bool is_counted = p->steps.at[step].kind == NEST_STEP_LOOP;
    if (!is_counted)
        return_turns(&w, step, trips);
    gpu_resident_close(&r);
    LLVMBuildRetVoid(w.b);
    out->trips = is_counted ? p->steps.at[step].trips : 0;
    out->blocks = r.blocks;
    out->block = r.block;
    out->scratch_bytes = r.shared_bytes;
    LLVMDisposeBuilder(w.b);
}
