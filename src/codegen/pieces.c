// SPDX-License-Identifier: Apache-2.0
// What is too much code for one function of a loop (COST_CODE) is cut into pieces, functions that do some
// steps each and find out where these have their memories.
#include "codegen/pieces.h"
#include "codegen/hooks.h"
#include "codegen/kernel.h"
#include "codegen/module.h"
#include "codegen/op_function.h"
#include "codegen/phases.h"
#include "codegen/resident.h"
#include "codegen/size.h"

#include "ir/cost.h"

#include <stdio.h>

// Code of a step, beside that of a phase, of each of its operands, and of each memory that a view shows.
enum { CODE_OF_STEP = 20, CODE_OF_OPERAND = 4, CODE_OF_SHOWN = 4 };

// ---- Functions of the loop's own

// A value, and what it is in another function.
struct crossing {
    LLVMValueRef from, *to;
};

typedef VEC(struct crossing) crossings;

static void cross(struct phases *w, crossings *all, LLVMValueRef from, LLVMValueRef *to)
{
    *to = from;
    if (from && !LLVMIsConstant(from))
        vec_push(w->arena, all, (struct crossing){from, to});
}

// What steps need beside their memories.
static void cross_surroundings(struct phases *w, crossings *all, struct phases *in)
{
    cross(w, all, w->buffers, &in->buffers);
    cross(w, all, w->phases, &in->phases);
    cross(w, all, w->scratch, &in->scratch);
    cross(w, all, w->partial, &in->partial);
    if (!w->gpu)
        return;
    cross(w, all, w->counters, &in->counters);
    cross(w, all, w->gpu->thread, &in->gpu->thread);
    cross(w, all, w->gpu->number, &in->gpu->number);
    cross(w, all, w->gpu->count, &in->gpu->count);
    cross(w, all, w->gpu->counter, &in->gpu->counter);
    cross(w, all, w->gpu->passed, &in->gpu->passed);
}

static void leave_function(struct phases *w, bool has_failed)
{
    if (w->gpu)
        LLVMBuildRetVoid(w->b);
    else
        LLVMBuildRet(w->b, LLVMConstInt(w->m->i1, has_failed, 0));
}

// The function of the writer, of what crosses.  On the host it says whether a step has failed.
static void open_function(struct phases *in, const char *name, const crossings *all)
{
    LLVMTypeRef *types = arena_array(in->arena, LLVMTypeRef, all->count + 1);
    for (uint32_t i = 0; i < all->count; i++)
        types[i] = LLVMTypeOf(all->at[i].from);
    LLVMTypeRef result = in->gpu ? LLVMVoidTypeInContext(in->m->context) : in->m->i1;
    in->function =
        cg_function_apart(in->m, name, LLVMFunctionType(result, types, all->count, 0));
    for (uint32_t i = 0; i < all->count; i++)
        *all->at[i].to = LLVMGetParam(in->function, i);
    if (in->gpu)
        in->gpu->function = in->function;
    LLVMBasicBlockRef start = phases_start(in);
    leave_function(in, true);
    phases_go_on(in, start);
}

static LLVMValueRef call_function(struct phases *w, LLVMValueRef f, const crossings *all)
{
    LLVMValueRef *arguments = arena_array(w->arena, LLVMValueRef, all->count + 1);
    for (uint32_t i = 0; i < all->count; i++)
        arguments[i] = all->at[i].from;
    return LLVMBuildCall2(w->b, LLVMGlobalGetValueType(f), f, arguments, all->count, "");
}

// Of a GPU: what all threads do for a step is one function of the loop, however often it comes.
void phases_call_kernel(struct phases *w, const struct cg_kernel_step *k,
                        LLVMValueRef *operands, uint32_t n)
{
    char name[128];
    snprintf(name, sizeof name, "%s_of_%s", k->symbol, w->out->symbol);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(w->b);
    LLVMValueRef f = LLVMGetNamedFunction(w->m->module, name);
    LLVMValueRef *inside = arena_array(w->arena, LLVMValueRef, n + 1);
    struct cg_resident gpu = *w->gpu;
    struct phases in = *w;
    crossings all = {0};
    in.gpu = &gpu;
    for (uint32_t i = 0; i < n; i++)
        cross(w, &all, operands[i], &inside[i]);
    cross_surroundings(w, &all, &in);
    if (!f) {
        open_function(&in, name, &all);
        w->m->hooks->resident_kernel(&gpu, k, inside, n);
        leave_function(&in, false);
        f = in.function;
        phases_go_on(w, here);
    }
    call_function(w, f, &all);
}

// ---- Pieces

static int64_t code_of_operands(const struct phases *w, const struct nest_step *t)
{
    int64_t code = CODE_OF_OPERAND * t->n_memories;
    for (uint32_t i = 0; i < t->n_memories; i++) {
        const struct nest_memory *m = &w->p->memories.at[t->memories[i]];
        if (nest_memory_is_view(m))
            code += CODE_OF_SHOWN * (phases_has_table(w, m) ? 2 : m->n_of);
    }
    return code;
}

int64_t phases_code_in_place(const struct phases *w, const struct cg_kernel_step *k)
{
    LLVMValueRef kernel = LLVMGetNamedFunction(w->m->module, k->symbol);
    if (k->total == 0)
        return 0;
    if (w->gpu)
        return w->by_function ? 0 : cg_code_of(w->m, kernel);
    int64_t code = cg_code_up_to(w->m, kernel, COST_CODE_IN_PLACE);
    return k->phase_grain < k->total || code > COST_CODE_IN_PLACE ? 0 : code;
}

// The same of the kernels of the steps.
static int64_t code_in_place(const struct phases *w, uint32_t first, uint32_t end)
{
    int64_t code = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct nest_step *t = &w->p->steps.at[i];
        const struct cg_kernel *k = t->kind == NEST_STEP_KERNEL ? &w->kernels[t->nest] : NULL;
        for (int j = 0; k && j < k->n_steps; j++)
            code += phases_code_in_place(w, &k->steps[j]);
    }
    return code;
}

int64_t phases_code(const struct phases *w, uint32_t first, uint32_t end)
{
    int64_t code = code_in_place(w, first, end);
    for (uint32_t i = first; i < end; i++)
        code += CODE_OF_STEP + code_of_operands(w, &w->p->steps.at[i]);
    return code;
}

uint32_t phases_after(const struct nest_program *p, uint32_t i)
{
    return nest_step_opens(&p->steps.at[i]) ? nest_step_end(p, i) + 1 : i + 1;
}

// The step behind step i and those that read what a loop has left in its turns: how many trips it made is
// known where it is.
static uint32_t after_unit(const struct phases *w, uint32_t i)
{
    const struct nest_step *t = &w->p->steps.at[i];
    uint32_t next = phases_after(w->p, i);
    while (nest_step_loops(t) && next <= w->last_use[t->loop])
        next = after_unit(w, next);
    return next;
}

// The steps from the first on, before `end` or a test, which leaves the loop around it, that are a piece: no
// more than one function may be, or one step alone.
uint32_t phases_end_of_piece(const struct phases *w, uint32_t first, uint32_t end)
{
    int64_t code = 0;
    uint32_t i = first;
    while (i < end && w->p->steps.at[i].kind != NEST_STEP_TEST) {
        uint32_t next = after_unit(w, i);
        code += phases_code(w, i, next);
        if (i > first && cost_is_too_much_code(code))
            break;
        i = next;
    }
    return i;
}

struct piece {
    struct phases *w, in; // who writes what is around it, and the piece
    crossings all;
    bool *is_needed, *opens; // by memory; by loop: in the piece
};

// What says where the memory is.
static void need(struct piece *p, uint32_t memory)
{
    const struct nest_memory *m = &p->w->p->memories.at[memory];
    if (p->is_needed[memory])
        return;
    p->is_needed[memory] = true;
    if (!phases_is_inside(p->w, m)) {
        if (p->w->gpu && !phases_is_in_arena(p->w, memory))
            cross(p->w, &p->all, p->w->pointers[memory], &p->in.pointers[memory]);
        return;
    }
    if (!p->opens[m->loop] && !p->in.trips[m->loop])
        cross(p->w, &p->all, p->w->trips[m->loop], &p->in.trips[m->loop]);
    for (uint32_t i = 0; i < m->n_of; i++)
        need(p, m->of[i]);
}

static void need_all(struct piece *p, uint32_t first, uint32_t end)
{
    const struct nest_program *of = p->w->p;
    for (uint32_t i = first; i < end; i++)
        if (nest_step_loops(&of->steps.at[i]))
            p->opens[of->steps.at[i].loop] = true;
    for (uint32_t i = first; i < end; i++)
        for (uint32_t k = 0; k < of->steps.at[i].n_memories; k++)
            need(p, of->steps.at[i].memories[k]);
    if (p->w->gpu && p->w->arena_memory != NEST_NONE)
        cross(p->w, &p->all, p->w->pointers[p->w->arena_memory],
              &p->in.pointers[p->w->arena_memory]);
    cross_surroundings(p->w, &p->all, &p->in);
}

void phases_add_piece(struct phases *w, uint32_t first, uint32_t end)
{
    struct arena_mark mark = arena_mark(w->arena);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(w->b);
    struct cg_resident gpu = w->gpu ? *w->gpu : (struct cg_resident){0};
    struct piece p = {.w = w, .in = *w};
    phases_clear(&p.in);
    p.in.gpu = w->gpu ? &gpu : NULL;
    p.in.is_cut = cost_is_too_much_code(phases_code(w, first, end));
    p.is_needed = arena_array(w->arena, bool, w->p->memories.count + 1);
    p.opens = arena_array(w->arena, bool, w->p->n_loops + 1);
    need_all(&p, first, end);
    char name[128];
    snprintf(name, sizeof name, "%s_from_%u", w->out->symbol, first);
    open_function(&p.in, name, &p.all);
    if (!code_in_place(w, first, end))
        cg_mark_calls(w->m, p.in.function);
    for (uint32_t i = first; i < end; i = phases_after(w->p, i))
        phases_add_step(&p.in, i);
    leave_function(&p.in, false);
    phases_go_on(w, here);
    LLVMValueRef has_failed = call_function(w, p.in.function, &p.all);
    if (!w->gpu) {
        LLVMBasicBlockRef next = phases_block(w);
        LLVMBuildCondBr(w->b, has_failed, w->failed, next);
        phases_go_on(w, next);
    }
    arena_rewind(w->arena, mark);
}
