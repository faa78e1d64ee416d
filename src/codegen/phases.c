// SPDX-License-Identifier: Apache-2.0
// A loop of steps as one function (rt_loop): it counts its trips, finds rows and turns, decides
// tests and branches, and calls the kernels.  Where they are worth threads, and for products, it
// asks the run time.  On a GPU it is a kernel, and each phase is for all of its threads
// (gpu/resident.c).
//
//     loop(buffers, phases, scratch):
//         x, y, ... = buffers[0], buffers[1], ...
//         for trip:
//             row = x + trip * stride
//             kernel_0({row, y}, 0, total, 0, scratch)
//             phases->run(phases, kernel_1, {y, z}, total, grain)
//
// What is too much code for one function (COST_CODE) is cut into pieces, functions that do some steps each
// and find out where these have their memories.
#include "codegen/phases.h"
#include "codegen/emit.h"
#include "codegen/hooks.h"
#include "codegen/kernel.h"
#include "codegen/op_function.h"
#include "codegen/pieces.h"
#include "codegen/resident.h"
#include "codegen/types.h"
#include "map/gpu_operands.h"

#include "ir/cost.h"

#include <stdio.h>

enum { FIELD_RUN, FIELD_MULTIPLY }; // of struct rt_phases

void phases_clear(struct phases *w)
{
    w->pointers = arena_array(w->arena, LLVMValueRef, w->p->memories.count + 1);
    w->trips = arena_array(w->arena, LLVMValueRef, w->p->n_loops + 1);
    w->found.count = w->found.capacity = 0;
}

LLVMBasicBlockRef phases_block(struct phases *w)
{
    return LLVMAppendBasicBlockInContext(w->m->context, w->function, "");
}

void phases_go_on(struct phases *w, LLVMBasicBlockRef block)
{
    LLVMPositionBuilderAtEnd(w->b, block);
}

LLVMBasicBlockRef phases_start(struct phases *w)
{
    LLVMBasicBlockRef start;
    w->entry = phases_block(w);
    w->failed = phases_block(w);
    start = phases_block(w);
    phases_go_on(w, w->entry);
    LLVMBuildBr(w->b, start);
    phases_go_on(w, w->failed);
    return start;
}

static LLVMValueRef constant(const struct phases *w, int64_t x) { return cg_int(w->m, x); }

// An array of n addresses in the frame.
static LLVMValueRef add_array(struct phases *w, uint32_t n)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(w->b);
    LLVMPositionBuilderBefore(w->b, LLVMGetBasicBlockTerminator(w->entry));
    LLVMValueRef array = LLVMBuildAlloca(w->b, LLVMArrayType2(w->m->ptr, n), "");
    phases_go_on(w, here);
    return array;
}

static LLVMValueRef entry_at(struct phases *w, LLVMValueRef array, LLVMValueRef i)
{
    return LLVMBuildGEP2(w->b, w->m->ptr, array, &i, 1, "");
}

static void put_entry(struct phases *w, LLVMValueRef array, uint32_t i, LLVMValueRef pointer)
{
    LLVMBuildStore(w->b, pointer, entry_at(w, array, constant(w, i)));
}

// ---- Memories

bool phases_is_inside(const struct phases *w, const struct nest_memory *m)
{
    return nest_memory_is_view(m) && w->out->owns[m->loop];
}

bool phases_is_in_arena(const struct phases *w, uint32_t memory)
{
    return w->arena_memory != NEST_NONE && w->p->memories.at[memory].kind == NEST_TEMPORARY;
}

// Whether all loops that say where the memory is have begun.
static bool is_known(const struct phases *w, uint32_t memory)
{
    const struct nest_memory *m = &w->p->memories.at[memory];
    bool known = w->pointers[memory] || !phases_is_inside(w, m) || w->trips[m->loop];
    for (uint32_t i = 0; known && !w->pointers[memory] && phases_is_inside(w, m) && i < m->n_of;
         i++)
        known = is_known(w, m->of[i]);
    return known;
}

static LLVMValueRef address_of(struct phases *w, uint32_t memory);

static LLVMValueRef row_address(struct phases *w, const struct nest_memory *m)
{
    int64_t bytes = m->count * (int64_t)jot_dtype_size(m->dtype);
    LLVMValueRef trip = w->trips[m->loop];
    if (m->reverse)
        trip = LLVMBuildSub(w->b, constant(w, w->totals[m->loop] - 1), trip, "");
    LLVMValueRef offset = LLVMBuildMul(w->b, trip, constant(w, bytes), "");
    return LLVMBuildGEP2(w->b, w->m->i8, address_of(w, m->of[0]), &offset, 1, "");
}

// Which of its memories a view shows at the trip at hand, counted from the one numbered by `first`.
static LLVMValueRef turn_at(struct phases *w, const struct nest_memory *m, uint32_t first)
{
    int64_t index = (m->index + m->n_of - first) % m->n_of;
    LLVMValueRef at = LLVMBuildAdd(w->b, w->trips[m->loop], constant(w, index), "");
    return LLVMBuildURem(w->b, at, constant(w, m->n_of), "");
}

// Where memories begin in the arena, from the first on and around.
static LLVMValueRef offsets_of_turn(struct phases *w, const struct nest_memory *m,
                                    uint32_t first)
{
    char name[32];
    snprintf(name, sizeof name, "turn_%u", m->of[first]);
    LLVMValueRef table = LLVMGetNamedGlobal(w->m->module, name);
    if (table)
        return table;
    LLVMValueRef *all = arena_array(w->arena, LLVMValueRef, m->n_of);
    for (uint32_t i = 0; i < m->n_of; i++)
        all[i] = constant(w, (int64_t)w->p->memories.at[m->of[(first + i) % m->n_of]].offset);
    LLVMValueRef offsets = LLVMConstArray2(w->m->i64, all, m->n_of);
    table =
        LLVMAddGlobalInAddressSpace(w->m->module, LLVMTypeOf(offsets), name, w->gpu ? 1 : 0);
    LLVMSetInitializer(table, offsets);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    return table;
}

bool phases_has_table(const struct phases *w, const struct nest_memory *m)
{
    bool has_table = m->kind == NEST_TURN && m->n_of > COST_TURN_TESTS;
    for (uint32_t i = 0; has_table && i < m->n_of; i++)
        has_table = phases_is_in_arena(w, m->of[i]);
    return has_table;
}

LLVMValueRef phases_turn(struct phases *w, const struct nest_memory *m)
{
    if (phases_has_table(w, m)) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < m->n_of; i++)
            first = m->of[i] < m->of[first] ? i : first;
        LLVMValueRef at = turn_at(w, m, first), table = offsets_of_turn(w, m, first);
        at = LLVMBuildGEP2(w->b, w->m->i64, table, &at, 1, "");
        LLVMValueRef offset = LLVMBuildLoad2(w->b, w->m->i64, at, "");
        return LLVMBuildGEP2(w->b, w->m->i8, address_of(w, w->arena_memory), &offset, 1, "");
    }
    LLVMValueRef at = turn_at(w, m, 0), address = address_of(w, m->of[m->n_of - 1]);
    for (uint32_t i = m->n_of - 1; i-- > 0;) {
        LLVMValueRef is_it = LLVMBuildICmp(w->b, LLVMIntEQ, at, constant(w, i), "");
        address = LLVMBuildSelect(w->b, is_it, address_of(w, m->of[i]), address, "");
    }
    return address;
}

static LLVMValueRef operand(struct phases *w, uint32_t i)
{
    if (w->gpu)
        return LLVMGetParam(w->function, i);
    return LLVMBuildLoad2(w->b, w->m->ptr, entry_at(w, w->buffers, constant(w, i)), "");
}

static LLVMValueRef find_address(struct phases *w, uint32_t memory)
{
    const struct nest_memory *m = &w->p->memories.at[memory];
    if (phases_is_inside(w, m))
        return m->kind == NEST_ROW ? row_address(w, m) : phases_turn(w, m);
    if (!phases_is_in_arena(w, memory) || memory == w->arena_memory)
        return operand(w, w->number_of[memory]);
    LLVMValueRef offset = constant(w, (int64_t)m->offset);
    return LLVMBuildGEP2(w->b, w->m->i8, address_of(w, w->arena_memory), &offset, 1, "");
}

// Where the memory is, found where it is first asked for in a body.
static LLVMValueRef address_of(struct phases *w, uint32_t memory)
{
    if (!w->pointers[memory]) {
        w->pointers[memory] = find_address(w, memory);
        vec_push(w->arena, &w->found, memory);
    }
    return w->pointers[memory];
}

// Behind a body nothing is known of what was found in it.
static void forget(struct phases *w, uint32_t count)
{
    while (w->found.count > count)
        w->pointers[w->found.at[--w->found.count]] = NULL;
}

// Finds addresses in front of the steps, rather than in loops among them.
static void find_addresses(struct phases *w, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; !w->is_cut && i < end; i++)
        for (uint32_t k = 0; k < w->p->steps.at[i].n_memories; k++)
            if (is_known(w, w->p->steps.at[i].memories[k]))
                address_of(w, w->p->steps.at[i].memories[k]);
}

// ---- Phases

// Where step t begins in its memory k.
static LLVMValueRef begin_of(struct phases *w, const struct nest_step *t, uint32_t k)
{
    const struct nest_memory *m = &w->p->memories.at[t->memories[k]];
    int64_t begin = nest_step_range(w->p, t, k).first * (int64_t)jot_dtype_size(m->dtype);
    LLVMValueRef pointer = address_of(w, t->memories[k]);
    if (!begin)
        return pointer;
    LLVMValueRef offset = constant(w, begin);
    return LLVMBuildGEP2(w->b, w->m->i8, pointer, &offset, 1, "");
}

static LLVMValueRef operands_of(struct phases *w, const struct nest_step *t, bool has_partial)
{
    LLVMValueRef array = add_array(w, t->n_memories + has_partial);
    for (uint32_t i = 0; i < t->n_memories; i++)
        put_entry(w, array, i, begin_of(w, t, i));
    if (has_partial)
        put_entry(w, array, t->n_memories, w->partial);
    return array;
}

static LLVMValueRef call_field(struct phases *w, unsigned field, LLVMTypeRef type, unsigned n,
                               LLVMValueRef *arguments)
{
    LLVMValueRef at = entry_at(w, w->phases, constant(w, field));
    LLVMValueRef function = LLVMBuildLoad2(w->b, w->m->ptr, at, "");
    return LLVMBuildCall2(w->b, type, function, arguments, n, "");
}

static void run_kernel(struct phases *w, const struct cg_kernel_step *k, LLVMValueRef operands)
{
    LLVMTypeRef p = w->m->ptr, i = w->m->i64, none = LLVMVoidTypeInContext(w->m->context);
    LLVMValueRef kernel = LLVMGetNamedFunction(w->m->module, k->symbol);
    LLVMValueRef total = constant(w, k->total), zero = constant(w, 0);
    if (k->total == 0)
        return;
    if (k->scratch_bytes > w->out->scratch_bytes)
        w->out->scratch_bytes = k->scratch_bytes;
    if (k->phase_grain < k->total) {
        w->out->parallel = true;
        LLVMTypeRef type = LLVMFunctionType(none, (LLVMTypeRef[]){p, p, p, i, i}, 5, 0);
        call_field(
            w, FIELD_RUN, type, 5,
            (LLVMValueRef[]){w->phases, kernel, operands, total, constant(w, k->phase_grain)});
        return;
    }
    LLVMTypeRef type = LLVMGlobalGetValueType(kernel);
    LLVMValueRef arguments[] = {operands, zero, total, zero, w->scratch};
    LLVMValueRef call = LLVMBuildCall2(w->b, type, kernel, arguments, 5, "");
    if (phases_code_in_place(w, k))
        cg_add_attribute(w->m, call, "alwaysinline");
}

// Whether all blocks have nothing to wait for before step i + 1 but what step i has waited for, as the flag that a test
// has read in front of the steps from `first` on, none of which waits for another one.
static bool goes_on_to_next(const struct phases *w, uint32_t first, uint32_t i)
{
    const struct nest_step *all = w->p->steps.at, *next = &all[i + 1];
    const struct cg_kernel *k = next->kind == NEST_STEP_KERNEL ? &w->kernels[next->nest] : NULL;
    bool goes_on = w->gpu->is_grid && !w->is_cut && !w->by_function && k && k->n_steps &&
                   k->steps[k->n_steps - 1].total;
    for (uint32_t j = first; goes_on && j <= i; j++) {
        const struct cg_kernel *before = &w->kernels[all[j].nest];
        goes_on = !(before->counters && k->counters) &&
                  !(before->partial_bytes && k->partial_bytes) &&
                  !map_step_waits(w->arena, w->p, j, i + 1);
    }
    return goes_on && (all[first - 1].kind != NEST_STEP_TEST ||
                       !map_step_writes(w->arena, w->p, i + 1, all[first - 1].memories[0]));
}

// The first of the kernels before step i, and it, none of which waits for another one.
static uint32_t first_of_those_that_go_on(const struct phases *w, uint32_t i)
{
    uint32_t begin = i, first;
    while (w->p->steps.at[begin - 1].kind == NEST_STEP_KERNEL)
        begin--;
    first = begin;
    for (uint32_t k = begin; k < i; k++)
        first = goes_on_to_next(w, first, k) ? first : k + 1;
    return first;
}

static void add_phase(struct phases *w, uint32_t step)
{
    const struct nest_step *t = &w->p->steps.at[step];
    bool goes_on = goes_on_to_next(w, first_of_those_that_go_on(w, step), step);
    const struct cg_kernel *k = &w->kernels[t->nest];
    uint32_t n = t->n_memories;
    LLVMValueRef *operands = arena_array(w->arena, LLVMValueRef, n + 2);
    for (uint32_t i = 0; i < n; i++)
        operands[i] = begin_of(w, t, i);
    if (k->partial_bytes)
        operands[n++] = w->partial;
    if (k->counters)
        operands[n++] = w->counters;
    for (int i = 0; i < k->n_steps; i++) {
        w->gpu->goes_on = goes_on && i + 1 == k->n_steps;
        if (k->steps[i].total && w->by_function)
            phases_call_kernel(w, &k->steps[i], operands, n);
        else if (k->steps[i].total)
            w->m->hooks->resident_kernel(w->gpu, &k->steps[i], operands, n);
    }
    w->gpu->goes_on = false;
}

static void add_kernel(struct phases *w, uint32_t step)
{
    const struct nest_step *t = &w->p->steps.at[step];
    const struct cg_kernel *k = &w->kernels[t->nest];
    if (w->gpu) {
        add_phase(w, step);
        return;
    }
    LLVMValueRef operands = operands_of(w, t, k->partial_bytes > 0);
    for (int i = 0; i < k->n_steps; i++)
        run_kernel(w, &k->steps[i], operands);
}

static void add_product(struct phases *w, uint32_t i)
{
    const struct nest_step *t = &w->p->steps.at[i];
    LLVMTypeRef p = w->m->ptr;
    LLVMTypeRef type = LLVMFunctionType(w->m->i8, (LLVMTypeRef[]){p, p, w->m->i64}, 3, 0);
    LLVMValueRef index = constant(w, w->product_of[i - w->first]);
    LLVMValueRef arguments[] = {w->phases, operands_of(w, t, false), index};
    LLVMValueRef is_done = call_field(w, FIELD_MULTIPLY, type, 3, arguments);
    LLVMBasicBlockRef next = phases_block(w);
    is_done = LLVMBuildTrunc(w->b, is_done, w->m->i1, "");
    LLVMBuildCondBr(w->b, is_done, next, w->failed);
    phases_go_on(w, next);
}

void phases_copy(struct phases *w, unsigned n, const LLVMValueRef *to, const LLVMValueRef *from,
                 const struct nest_memory *m)
{
    unsigned bytes = jot_dtype_size(m->dtype), part = bytes > 8 ? 8 : bytes;
    w->m->hooks->resident_copy(w->gpu, n, to, from, m->count * (int64_t)(bytes / part), part);
}

static void add_copy(struct phases *w, const struct nest_step *t)
{
    const struct nest_memory *m = &w->p->memories.at[t->memories[0]];
    unsigned align = jot_dtype_size(m->dtype);
    uint64_t bytes = (uint64_t)m->count * align;
    LLVMValueRef to = address_of(w, t->memories[0]), from = address_of(w, t->memories[1]);
    if (w->gpu)
        phases_copy(w, 1, &to, &from, m);
    else
        LLVMBuildMemCpy(w->b, to, align, from, align, constant(w, (int64_t)bytes));
}

static LLVMValueRef load_flag(struct phases *w, const struct nest_step *t, LLVMTypeRef type)
{
    return LLVMBuildLoad2(w->b, type, address_of(w, t->memories[0]), "");
}

// ---- Loops and branches

static void add_steps(struct phases *w, uint32_t first, uint32_t end);

// Of a GPU: no thread writes the flag, or index, of step i before all have read it.
static void keep_flag(struct phases *w, uint32_t i)
{
    const struct nest_step *next = &w->p->steps.at[i + 1];
    bool is_test = w->p->steps.at[i].kind == NEST_STEP_TEST;
    bool waits = is_test && next->kind == NEST_STEP_KERNEL &&
                 w->kernels[next->nest].steps[0].total > 0 &&
                 !map_step_writes(w->arena, w->p, i + 1, w->p->steps.at[i].memories[0]);
    if (w->gpu && !waits)
        w->m->hooks->resident_wait(w->gpu);
}

static void add_test(struct phases *w, uint32_t i, uint32_t loop)
{
    const struct nest_step *t = &w->p->steps.at[i];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(w->b), next = phases_block(w);
    LLVMValueRef flag = load_flag(w, t, w->m->i8);
    LLVMValueRef goes_on =
        LLVMBuildICmp(w->b, LLVMIntNE, flag, LLVMConstInt(w->m->i8, 0, 0), "");
    LLVMBuildCondBr(w->b, goes_on, next, w->leave);
    LLVMAddIncoming(w->leave_trips, &w->trips[loop], &here, 1);
    phases_go_on(w, next);
    keep_flag(w, i);
}

// The loop that the step opens; returns how many trips it made.
LLVMValueRef phases_add_loop(struct phases *w, uint32_t first)
{
    const struct nest_step *t = &w->p->steps.at[first];
    LLVMBasicBlockRef outer_leave = w->leave, before = LLVMGetInsertBlock(w->b);
    LLVMValueRef outer_trips = w->leave_trips, zero = constant(w, 0);
    uint32_t end = nest_step_end(w->p, first), found = w->found.count;
    if (t->trips == 0)
        return w->trips[t->loop] = zero;
    find_addresses(w, first + 1, end);
    LLVMBasicBlockRef head = phases_block(w);
    LLVMBuildBr(w->b, head);
    w->leave = phases_block(w);
    phases_go_on(w, w->leave);
    w->leave_trips = LLVMBuildPhi(w->b, w->m->i64, "");
    phases_go_on(w, head);
    LLVMValueRef trip = w->trips[t->loop] = LLVMBuildPhi(w->b, w->m->i64, "");
    LLVMAddIncoming(trip, &zero, &before, 1);
    add_steps(w, first + 1, end);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(w->b);
    LLVMValueRef next = LLVMBuildAdd(w->b, trip, constant(w, 1), "");
    LLVMAddIncoming(trip, &next, &latch, 1);
    if (t->trips == NEST_NO_BOUND) {
        LLVMBuildBr(w->b, head);
    } else {
        LLVMValueRef is_last = LLVMBuildICmp(w->b, LLVMIntEQ, next, constant(w, t->trips), "");
        LLVMBuildCondBr(w->b, is_last, w->leave, head);
        LLVMAddIncoming(w->leave_trips, &next, &latch, 1);
    }
    LLVMValueRef trips = w->leave_trips;
    phases_go_on(w, w->leave);
    if (w->gpu && t->kind == NEST_STEP_WHILE)
        w->m->hooks->resident_wait(w->gpu); // a flag has been read
    forget(w, found);
    w->leave = outer_leave;
    w->leave_trips = outer_trips;
    return w->trips[t->loop] = trips; // turns stay where the last trip left them
}

// The case after the one that step i begins, or the end of the branch.
static uint32_t next_case(const struct nest_program *p, uint32_t i)
{
    while (p->steps.at[++i].kind != NEST_STEP_CASE && p->steps.at[i].kind != NEST_STEP_END)
        if (nest_step_opens(&p->steps.at[i]))
            i = nest_step_end(p, i);
    return i;
}

// The case numbered by the operand, the nearest where there is none.
static void add_branch(struct phases *w, uint32_t first)
{
    const struct nest_program *p = w->p;
    uint32_t end = nest_step_end(p, first);
    if (first + 1 == end)
        return;
    LLVMTypeRef i32 = w->m->i32;
    LLVMValueRef index = load_flag(w, &p->steps.at[first], i32), zero = LLVMConstInt(i32, 0, 0);
    LLVMValueRef is_low = LLVMBuildICmp(w->b, LLVMIntSLT, index, zero, "");
    index = LLVMBuildSelect(w->b, is_low, zero, index, "");
    keep_flag(w, first);
    LLVMBasicBlockRef last = phases_block(w), exit = phases_block(w);
    LLVMValueRef cases = LLVMBuildSwitch(w->b, index, last, 4);
    uint64_t number = 0;
    for (uint32_t i = first + 1, next; i < end; i = next) {
        next = next_case(p, i);
        LLVMBasicBlockRef block = next == end ? last : phases_block(w);
        if (next != end)
            LLVMAddCase(cases, LLVMConstInt(i32, number++, 0), block);
        uint32_t found = w->found.count;
        phases_go_on(w, block);
        add_steps(w, i + 1, next);
        forget(w, found);
        LLVMBuildBr(w->b, exit);
    }
    phases_go_on(w, exit);
}

// ---- Steps

void phases_add_step(struct phases *w, uint32_t i)
{
    const struct nest_step *t = &w->p->steps.at[i];
    if (t->kind == NEST_STEP_KERNEL)
        add_kernel(w, i);
    else if (t->kind == NEST_STEP_GEMM)
        add_product(w, i);
    else if (t->kind == NEST_STEP_COPY)
        add_copy(w, t);
    else if (t->kind == NEST_STEP_BRANCH)
        add_branch(w, i);
    else
        phases_add_loop(w, i);
}

static void add_steps(struct phases *w, uint32_t first, uint32_t end)
{
    uint32_t loop = w->p->steps.at[first - 1].loop; // for tests
    for (uint32_t i = first, next; i < end; i = next) {
        bool is_test = w->p->steps.at[i].kind == NEST_STEP_TEST;
        next = w->is_cut && !is_test ? phases_end_of_piece(w, i, end) : phases_after(w->p, i);
        if (is_test)
            add_test(w, i, loop);
        else if (w->is_cut)
            phases_add_piece(w, i, next);
        else
            phases_add_step(w, i);
    }
}

// ---- The function

static void list_operand(struct phases *w, uint32_t memory)
{
    const struct nest_memory *m = &w->p->memories.at[memory];
    if (w->has[memory])
        return;
    w->has[memory] = true;
    for (uint32_t i = 0; phases_is_inside(w, m) && i < m->n_of; i++)
        list_operand(w, m->of[i]);
    if (phases_is_in_arena(w, memory) && memory != w->arena_memory)
        list_operand(w, w->arena_memory);
    else if (!phases_is_inside(w, m)) {
        w->number_of[memory] = w->out->operands.count;
        vec_push(w->arena, &w->out->operands, memory);
    }
}

// Numbers products of the steps first .. end - 1 as the plan does.
static void number_products(struct phases *w, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    w->first = first;
    w->product_of = arena_array(w->arena, uint32_t, end - first + 1);
    for (uint32_t i = 0; i < end; i++) {
        if (i >= first)
            w->product_of[i - first] = n;
        n += w->p->steps.at[i].kind == NEST_STEP_GEMM;
    }
}

// What steps need behind their operands; they run one after another and share it.
static void list_partial(struct phases *w, const struct nest_step *t)
{
    if (t->kind != NEST_STEP_KERNEL)
        return;
    const struct cg_kernel *k = &w->kernels[t->nest];
    if (k->partial_bytes > w->out->partial_bytes)
        w->out->partial_bytes = k->partial_bytes;
    if (k->counters && w->out->counters < CG_COUNTERS_OF_GRID + k->counters)
        w->out->counters = CG_COUNTERS_OF_GRID + k->counters;
}

static void list_operands(struct phases *w, uint32_t first)
{
    const struct nest_program *p = w->p;
    uint32_t end = nest_step_end(p, first);
    for (uint32_t i = first; i < end; i++)
        if (nest_step_loops(&p->steps.at[i])) {
            w->out->owns[p->steps.at[i].loop] = true;
            w->totals[p->steps.at[i].loop] = p->steps.at[i].trips;
        }
    for (uint32_t i = first; i < end; i++) {
        list_partial(w, &p->steps.at[i]);
        for (uint32_t k = 0; k < p->steps.at[i].n_memories; k++) {
            const struct nest_memory *m = &p->memories.at[p->steps.at[i].memories[k]];
            list_operand(w, p->steps.at[i].memories[k]);
            if (phases_is_inside(w, m))
                w->last_use[m->loop] = i;
        }
    }
    // Turns of its loops go on where no step has to do with them.
    for (uint32_t i = 0; i < p->memories.count; i++)
        if (p->memories.at[i].kind == NEST_TURN && phases_is_inside(w, &p->memories.at[i]))
            list_operand(w, i);
}

void phases_bind_operands(struct phases *w)
{
    uint32_t n = w->out->operands.count;
    for (uint32_t i = 0; w->gpu && i < n; i++) // which pieces take
        w->pointers[w->out->operands.at[i]] = operand(w, i);
    if (w->out->partial_bytes)
        w->partial = operand(w, n);
}

static void make_function(struct phases *w)
{
    LLVMTypeRef p = w->m->ptr;
    LLVMTypeRef type = LLVMFunctionType(w->m->i64, (LLVMTypeRef[]){p, p, p}, 3, 0);
    w->function = LLVMAddFunction(w->m->module, w->out->symbol, type);
    w->buffers = LLVMGetParam(w->function, 0);
    w->phases = LLVMGetParam(w->function, 1);
    w->scratch = LLVMGetParam(w->function, 2);
    LLVMBasicBlockRef start = phases_start(w);
    LLVMBuildRet(w->b, constant(w, -1));
    phases_go_on(w, start);
}

// A memory of all temporaries.
static uint32_t add_arena(struct arena *arena, struct nest_program *p)
{
    struct nest_memory all = {.kind = NEST_TEMPORARY,
                              .dtype = JOT_U8,
                              .count = (int64_t)p->arena_bytes,
                              .name = "arena"};
    vec_push(arena, &p->memories, all);
    return p->memories.count - 1;
}

struct phases phases_make(struct cg_module *module, struct arena *arena, struct nest_program *p,
                          uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out,
                          struct cg_resident *gpu)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "jot_loop_%u", p->steps.at[step].loop);
    *out = (struct cg_phases){.symbol = arena_text(arena, symbol),
                              .owns = arena_array(arena, bool, p->n_loops + 1)};
    struct phases w = {.m = module,
                       .arena = arena,
                       .p = p,
                       .kernels = kernels,
                       .out = out,
                       .gpu = gpu,
                       .b = LLVMCreateBuilderInContext(module->context),
                       .totals = arena_array(arena, int64_t, p->n_loops + 1),
                       .arena_memory = NEST_NONE};
    int64_t code = phases_code(&w, step, nest_step_end(p, step));
    w.is_cut = cost_is_too_much_code(code);
    w.by_function = gpu && code > COST_CODE_RESIDENT;
    if (w.is_cut && p->arena_bytes)
        w.arena_memory = add_arena(arena, p);
    w.has = arena_array(arena, bool, p->memories.count + 1);
    w.number_of = arena_array(arena, uint32_t, p->memories.count + 1);
    w.last_use = arena_array(arena, uint32_t, p->n_loops + 1);
    phases_clear(&w);
    number_products(&w, step, nest_step_end(p, step));
    list_operands(&w, step);
    return w;
}

void cg_phases_lower(struct cg_module *module, struct arena *arena, struct nest_program *p,
                     uint32_t step, const struct cg_kernel *kernels, struct cg_phases *out)
{
    struct phases w = phases_make(module, arena, p, step, kernels, out, NULL);
    make_function(&w);
    phases_bind_operands(&w);
    LLVMBuildRet(w.b, phases_add_loop(&w, step));
    LLVMDisposeBuilder(w.b);
}
