// SPDX-License-Identifier: Apache-2.0
// A loop of steps as one kernel, which phases.c writes: all threads go through it together, and behind
// each phase they wait for one another, those of a block by its barrier, blocks by counting.
//
//     loop(x, y, counter):
//         for trip:
//             phase_0(x, y, thread, block, blocks)
//             wait
//
// A phase is the function of a nest for blocks of threads of a size of its own: a block of the kernel
// is as many of these as fit, each with a barrier and shared memory of its own.  Each block has one of
// them before any has two, for a multiprocessor reads only so much at a time.  What blocks count
// only grows, by one for each block and wait, and goes back to 0 at the end.
#include "codegen/gpu/resident.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/kernel.h"
#include "codegen/large.h"
#include "codegen/resident.h"
#include "codegen/types.h"
#include "map/gpu.h"

#include "ir/cost.h"

#include <string.h>

#define MOST_THREADS 1024
#define GRID_THREADS 512 // few blocks count fast, and threads have registers enough
#define BARRIERS 15      // of a block beside the one of all its threads
#define WAIT "jot_wait_for_blocks"

static LLVMValueRef i32(const struct cg_resident *r, int64_t x)
{
    return LLVMConstInt(r->module->i32, (unsigned long long)x, 1);
}

// Threads of a block of the step: whole warps.
static unsigned threads_of(const struct cg_kernel_step *s)
{
    return s->block < GPU_WARP ? GPU_WARP : s->block;
}

static int64_t chunks_of(const struct cg_kernel_step *s)
{
    return s->total / s->grain + (s->total % s->grain != 0);
}

// How many blocks of the step a block of the kernel has room for.
static int64_t side_by_side(const struct cg_resident *r, const struct cg_kernel_step *s)
{
    int64_t n = r->block / threads_of(s);
    int64_t fits = s->scratch_bytes ? (int64_t)(GPU_MOST_SHARED / s->scratch_bytes) : n;
    n = n < fits ? n : fits;
    return n < BARRIERS ? n : BARRIERS;
}

// ---- Threads

// Calls the function for all steps of the kernels.
static void for_steps(struct cg_resident *r, uint32_t first, uint32_t end,
                      const struct cg_kernel *kernels,
                      void (*tell)(struct cg_resident *, const struct cg_kernel_step *))
{
    for (uint32_t i = first; i < end; i++) {
        const struct nest_step *t = &r->program->steps.at[i];
        if (t->kind != NEST_STEP_KERNEL)
            continue;
        for (int k = 0; k < kernels[t->nest].n_steps; k++)
            if (kernels[t->nest].steps[k].total)
                tell(r, &kernels[t->nest].steps[k]);
    }
}

// As many threads as the blocks of the step have that are one block's of the kernel.
static void widen_block(struct cg_resident *r, const struct cg_kernel_step *s)
{
    unsigned threads = threads_of(s), most = r->is_grid ? GRID_THREADS : MOST_THREADS;
    int64_t blocks = r->is_grid ? COST_MULTIPROCESSORS : 1;
    r->block = r->block < threads ? threads : r->block;
    while (r->block < most && blocks * r->block < chunks_of(s) * threads)
        r->block *= 2;
}

static void add_blocks(struct cg_resident *r, const struct cg_kernel_step *s)
{
    int64_t n = side_by_side(r, s), chunks = chunks_of(s), blocks = (chunks + n - 1) / n;
    uint64_t shared = (uint64_t)n * s->scratch_bytes;
    if (blocks < COST_MULTIPROCESSORS)
        blocks = chunks < COST_MULTIPROCESSORS ? chunks : COST_MULTIPROCESSORS;
    if (r->is_grid && blocks > r->blocks)
        r->blocks = blocks;
    if (shared > r->shared_bytes)
        r->shared_bytes = shared;
}

void gpu_resident_choose(struct cg_resident *r, uint32_t first, uint32_t end,
                         const struct cg_kernel *kernels)
{
    r->block = GPU_WARP;
    r->blocks = 1;
    for_steps(r, first, end, kernels, widen_block);
    for_steps(r, first, end, kernels, add_blocks);
}

// ---- Waiting

static void call_assembly(struct cg_resident *r, const char *text, const char *constraints,
                          LLVMTypeRef result, LLVMValueRef *out, LLVMValueRef pointer)
{
    LLVMTypeRef type = LLVMFunctionType(result, &r->module->ptr, 1, 0);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), constraints,
                                         strlen(constraints), 1, 0, LLVMInlineAsmDialectATT, 0);
    *out = LLVMBuildCall2(r->m.b, type, code, &pointer, 1, "");
}

// Counts one more; what it was before.  Others who see the count see what the block stored.
static LLVMValueRef count_one(struct cg_resident *r, LLVMValueRef counter)
{
    LLVMValueRef old;
    call_assembly(r, "atom.acq_rel.gpu.add.u32 $0, [$1], 1;", "=r,l,~{memory}", r->module->i32,
                  &old, counter);
    return old;
}

// wait(counter, until): all threads of all blocks have come here, and see what the others stored.
static LLVMValueRef wait_function(struct cg_resident *r, LLVMTypeRef *out_type)
{
    LLVMContextRef c = r->module->context;
    LLVMBuilderRef b = r->m.b;
    LLVMTypeRef parameters[] = {r->module->ptr, r->module->i32};
    *out_type = LLVMFunctionType(LLVMVoidTypeInContext(c), parameters, 2, 0);
    LLVMValueRef f = LLVMGetNamedFunction(r->module->module, WAIT);
    if (f)
        return f;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    f = LLVMAddFunction(r->module->module, WAIT, *out_type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c, f, "entry");
    LLVMBasicBlockRef one = LLVMAppendBasicBlockInContext(c, f, "one");
    LLVMBasicBlockRef look = LLVMAppendBasicBlockInContext(c, f, "look");
    LLVMBasicBlockRef all = LLVMAppendBasicBlockInContext(c, f, "all");
    LLVMPositionBuilderAtEnd(b, entry);
    gpu_barrier(&r->m);
    LLVMValueRef thread = gpu_special(&r->m, "tid.x"), counter = LLVMGetParam(f, 0), now;
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, thread, i32(r, 0), ""), one, all);
    LLVMPositionBuilderAtEnd(b, one);
    count_one(r, counter);
    LLVMBuildBr(b, look);
    LLVMPositionBuilderAtEnd(b, look);
    call_assembly(r, "ld.acquire.gpu.u32 $0, [$1];", "=r,l,~{memory}", r->module->i32, &now,
                  counter);
    // The count may go through 0 again.
    LLVMValueRef left = LLVMBuildSub(b, LLVMGetParam(f, 1), now, "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGT, left, i32(r, 0), ""), look, all);
    LLVMPositionBuilderAtEnd(b, all);
    gpu_barrier(&r->m);
    LLVMBuildRetVoid(b);
    LLVMPositionBuilderAtEnd(b, here);
    return f;
}

// The count once all blocks have come to the next wait.
static LLVMValueRef next_count(struct cg_resident *r)
{
    LLVMValueRef passed = LLVMBuildLoad2(r->m.b, r->module->i32, r->passed, "");
    return LLVMBuildAdd(r->m.b, passed, r->count, "");
}

void gpu_resident_wait(struct cg_resident *r)
{
    if (!r->is_grid) {
        gpu_barrier(&r->m);
        return;
    }
    LLVMTypeRef type;
    LLVMValueRef wait = wait_function(r, &type), until = next_count(r);
    LLVMBuildStore(r->m.b, until, r->passed);
    LLVMBuildCall2(r->m.b, type, wait, (LLVMValueRef[]){r->counter, until}, 2, "");
}

// ---- Control

static LLVMBasicBlockRef if_open(struct cg_resident *r, LLVMValueRef condition)
{
    LLVMContextRef c = r->module->context;
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(c, r->function, "");
    LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(c, r->function, "");
    LLVMBuildCondBr(r->m.b, condition, then, exit);
    LLVMPositionBuilderAtEnd(r->m.b, then);
    return exit;
}

static void if_close(struct cg_resident *r, LLVMBasicBlockRef exit)
{
    LLVMBuildBr(r->m.b, exit);
    LLVMPositionBuilderAtEnd(r->m.b, exit);
}

// ---- Phases

void gpu_resident_kernel(struct cg_resident *r, const struct cg_kernel_step *step,
                         const LLVMValueRef *operands, unsigned n)
{
    LLVMBuilderRef b = r->m.b;
    struct cg_module *m = r->module;
    int64_t threads = threads_of(step), beside = side_by_side(r, step);
    LLVMValueRef *arguments = arena_array(m->arena, LLVMValueRef, n + GPU_PHASE_PARAMETERS);
    LLVMValueRef f = LLVMGetNamedFunction(m->module, step->symbol);
    LLVMValueRef unit = LLVMBuildUDiv(b, r->thread, i32(r, threads), "");
    LLVMValueRef thread = LLVMBuildURem(b, r->thread, i32(r, threads), "");
    LLVMValueRef number = LLVMBuildMul(b, unit, r->count, "");
    number = LLVMBuildAdd(b, number, r->number, "");
    LLVMValueRef takes_part =
        LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntULT, unit, i32(r, beside), ""),
                     LLVMBuildICmp(b, LLVMIntULT, LLVMBuildZExt(b, number, m->i64, ""),
                                   cg_int(m, chunks_of(step)), ""),
                     "");
    takes_part = LLVMBuildAnd(
        b, takes_part, LLVMBuildICmp(b, LLVMIntULT, thread, i32(r, step->block), ""), "");
    LLVMBasicBlockRef exit = if_open(r, takes_part);
    memcpy(arguments, operands, n * sizeof *operands);
    arguments[n++] = thread;
    arguments[n++] = number;
    arguments[n++] = LLVMBuildMul(b, r->count, i32(r, beside), "");
    arguments[n++] = threads == r->block ? i32(r, 0) : LLVMBuildAdd(b, unit, i32(r, 1), "");
    LLVMValueRef offset = LLVMBuildMul(b, unit, i32(r, (int64_t)step->scratch_bytes), "");
    arguments[n++] = LLVMBuildGEP2(b, m->i8, gpu_shared_start(&r->m), &offset, 1, "");
    LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, arguments, n, "");
    if_close(r, exit);
    if (r->goes_on)
        gpu_barrier(&r->m); // shared memory and barriers are those of the next phase
    else
        gpu_resident_wait(r);
}

void gpu_resident_copy(struct cg_resident *r, unsigned n, const LLVMValueRef *to,
                       const LLVMValueRef *from, int64_t count, unsigned bytes)
{
    LLVMBuilderRef b = r->m.b;
    LLVMContextRef c = r->module->context;
    LLVMTypeRef type = LLVMIntTypeInContext(c, 8 * bytes), i64 = r->module->i64;
    LLVMValueRef size = i32(r, r->block);
    LLVMValueRef first = LLVMBuildAdd(b, LLVMBuildMul(b, r->number, size, ""), r->thread, "");
    LLVMValueRef step = LLVMBuildMul(b, r->count, size, "");
    first = LLVMBuildZExt(b, first, i64, "");
    step = LLVMBuildZExt(b, step, i64, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(c, r->function, "");
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef i = LLVMBuildPhi(b, i64, "");
    LLVMValueRef *v = arena_array(r->module->arena, LLVMValueRef, n);
    LLVMValueRef tested = cg_apart(r->module, b, i);
    LLVMBasicBlockRef exit =
        if_open(r, LLVMBuildICmp(b, LLVMIntSLT, tested, cg_int(r->module, count), ""));
    for (unsigned k = 0; k < n; k++)
        v[k] = LLVMBuildLoad2(b, type, LLVMBuildGEP2(b, type, from[k], &i, 1, ""), "");
    for (unsigned k = 0; k < n; k++)
        LLVMBuildStore(b, v[k], LLVMBuildGEP2(b, type, to[k], &i, 1, ""));
    LLVMValueRef next = LLVMBuildAdd(b, i, step, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMBuildBr(b, head);
    LLVMAddIncoming(i, (LLVMValueRef[]){first, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
    LLVMPositionBuilderAtEnd(b, exit);
    gpu_resident_wait(r);
}

// ---- The kernel

void gpu_resident_declare(struct cg_resident *r, const char *symbol, unsigned n)
{
    LLVMTypeRef *types = arena_array(r->module->arena, LLVMTypeRef, n + 1);
    for (unsigned i = 0; i < n; i++)
        types[i] = r->module->ptr;
    LLVMTypeRef nothing = LLVMVoidTypeInContext(r->module->context);
    r->function =
        LLVMAddFunction(r->module->module, symbol, LLVMFunctionType(nothing, types, n, 0));
    LLVMSetFunctionCallConv(r->function, LLVMPTXKernelCallConv);
    gpu_annotate(r->module, r->function, "maxntidx", r->block);
}

void gpu_resident_open(struct cg_resident *r)
{
    r->thread = gpu_special(&r->m, "tid.x");
    r->number = r->is_grid ? gpu_special(&r->m, "ctaid.x") : i32(r, 0);
    r->count = r->is_grid ? gpu_special(&r->m, "nctaid.x") : i32(r, 1);
    if (!r->is_grid)
        return;
    r->counter = LLVMGetParam(r->function, LLVMCountParams(r->function) - 1);
    r->passed = LLVMBuildAlloca(r->m.b, r->module->i32, "");
    LLVMBuildStore(r->m.b, i32(r, 0), r->passed);
}

void gpu_resident_close(struct cg_resident *r)
{
    LLVMBuilderRef b = r->m.b;
    if (!r->is_grid)
        return;
    // Who counts last knows that nobody looks any more.
    LLVMBasicBlockRef one = if_open(r, LLVMBuildICmp(b, LLVMIntEQ, r->thread, i32(r, 0), ""));
    LLVMValueRef count = LLVMBuildAdd(b, count_one(r, r->counter), i32(r, 1), "");
    LLVMBasicBlockRef last = if_open(r, LLVMBuildICmp(b, LLVMIntEQ, count, next_count(r), ""));
    LLVMBuildStore(b, i32(r, 0), r->counter);
    if_close(r, last);
    if_close(r, one);
}
