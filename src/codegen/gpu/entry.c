// SPDX-License-Identifier: Apache-2.0
// A function of a kernel: its parameters and what is known of them, where its threads are, the blocks
// that take turns in it, and the memory that it has.
#include "codegen/gpu/entry.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/gpu.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/op_function.h"
#include "codegen/types.h"
#include "ir/cost.h"
#include "map/gpu_operands.h"

#include <assert.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LOCAL (512 * 1024) // of a thread; a kernel with more is not started

static void set_attribute(struct cg_lowering *l, unsigned parameter, const char *name,
                          uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(l->frame.function, parameter + 1,
                            LLVMCreateEnumAttribute(l->module->context, kind, value));
}

void gpu_annotate(struct cg_module *m, LLVMValueRef function, const char *what, unsigned value)
{
    LLVMMetadataRef parts[] = {LLVMValueAsMetadata(function),
                               LLVMMDStringInContext2(m->context, what, strlen(what)),
                               LLVMValueAsMetadata(LLVMConstInt(m->i32, value, 0))};
    LLVMAddNamedMetadataOperand(
        m->module, "nvvm.annotations",
        LLVMMetadataAsValue(m->context, LLVMMDNodeInContext2(m->context, parts, 3)));
}

static unsigned count_operands(const struct nest *nest)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < nest->buffers.count; i++)
        n += nest->buffers.at[i].role != NEST_LOCAL;
    return n;
}

// Where the threads are, from the machine or, in a phase, from what stands behind the operands.
static void find_thread(struct cg_lowering *l, unsigned n)
{
    struct cg_gpu *g = l->gpu;
    g->thread =
        g->nest.is_phase ? LLVMGetParam(l->frame.function, n) : gpu_special(&l->m, "tid.x");
    if (!g->nest.is_phase)
        return;
    g->phase.block = LLVMGetParam(l->frame.function, n + 1);
    g->phase.blocks = LLVMGetParam(l->frame.function, n + 2);
    g->phase.barrier = LLVMGetParam(l->frame.function, n + 3);
    g->phase.shared = LLVMGetParam(l->frame.function, n + 4);
}

static void begin_function(struct cg_lowering *l, const char *symbol, unsigned extra)
{
    unsigned n = count_operands(l->nest) + extra;
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, n + GPU_PHASE_PARAMETERS);
    for (unsigned i = 0; i < n + GPU_PHASE_PARAMETERS; i++)
        types[i] = i < n || i == n + 4 ? l->module->ptr : l->module->i32;
    unsigned all = l->gpu->nest.is_phase ? n + GPU_PHASE_PARAMETERS : n;
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(l->module->context), types, all, 0);
    l->frame.function = LLVMAddFunction(l->module->module, symbol, type);
    if (l->gpu->nest.is_phase) {
        LLVMSetLinkage(l->frame.function, LLVMInternalLinkage);
        cg_add_attribute(l->module, l->frame.function, "alwaysinline");
    } else {
        LLVMSetFunctionCallConv(l->frame.function, LLVMPTXKernelCallConv);
        gpu_annotate(l->module, l->frame.function, "maxntidx", l->gpu->block);
        if (l->gpu->function.resident)
            gpu_annotate(l->module, l->frame.function, "minctasm", l->gpu->function.resident);
    }
    l->frame.entry =
        LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "entry");
    LLVMBasicBlockRef start =
        LLVMAppendBasicBlockInContext(l->module->context, l->frame.function, "start");
    LLVMPositionBuilderAtEnd(l->m.b, l->frame.entry);
    uint32_t operand = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++) {
        const struct nest_buffer *info = &l->nest->buffers.at[i];
        if (info->role == NEST_LOCAL)
            continue;
        const struct map_operand *o = &l->gpu->nest.operands[i];
        if (info->role == NEST_WORK) {
            l->buffers[i].base = LLVMGetParam(l->frame.function, operand++);
            continue;
        }
        set_attribute(l, operand, "align", o->align);
        if (o->is_alone)
            set_attribute(l, operand, "noalias", 0);
        if (o->is_constant && info->role == NEST_IN)
            set_attribute(l, operand, "readonly", 0);
        l->buffers[i].base = LLVMGetParam(l->frame.function, operand++);
    }
    struct cg_gpu *g = l->gpu;
    find_thread(l, n);
    g->in_group = g->thread;
    g->number = gpu_i32(l, 0);
    if (g->columns) {
        g->in_group = LLVMBuildUDiv(l->m.b, g->thread, gpu_i32(l, g->columns), "");
        g->number = LLVMBuildURem(l->m.b, g->thread, gpu_i32(l, g->columns), "");
    } else if (g->group < g->block) {
        g->number = LLVMBuildUDiv(l->m.b, g->thread, gpu_i32(l, g->group), "");
        g->in_group = LLVMBuildURem(l->m.b, g->thread, gpu_i32(l, g->group), "");
    }
    LLVMBuildBr(l->m.b, start);
    LLVMPositionBuilderAtEnd(l->m.b, start);
}

// The bytes of its own that a thread has.
static uint64_t local_bytes(const struct cg_lowering *l)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(l->module->module);
    uint64_t bytes = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(l->frame.entry); i;
         i = LLVMGetNextInstruction(i))
        if (LLVMGetInstructionOpcode(i) == LLVMAlloca)
            bytes += LLVMABISizeOfType(layout, LLVMGetAllocatedType(i));
    return bytes;
}

struct cg_kernel_step *gpu_function_open(struct cg_lowering *l, struct cg_kernel *out,
                                         const char *suffix, unsigned extra)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "jot_%s_%d%s", l->gpu->nest.is_phase ? "phase" : "kernel",
             l->gpu->nest.kernel, suffix);
    struct cg_kernel_step *step = &out->steps[out->n_steps++];
    *step = (struct cg_kernel_step){
        .symbol = arena_text(l->arena, symbol), .total = 1, .grain = 1, .parallel = true};
    cg_make_tables(l);
    l->gpu->function.shared_bytes = 0;
    begin_function(l, step->symbol, extra);
    return step;
}

// The assembler writes out what loops it can, also where this takes it longer and the code is slower.
static void keep_loop(const struct cg_lowering *l, LLVMBasicBlockRef last)
{
    static const char disable[] = "llvm.loop.unroll.disable";
    LLVMContextRef c = l->module->context;
    LLVMMetadataRef name = LLVMMDStringInContext2(c, disable, sizeof disable - 1);
    // What is said of a loop begins with itself.
    LLVMMetadataRef itself = LLVMTemporaryMDNode(c, NULL, 0);
    LLVMMetadataRef all[] = {itself, LLVMMDNodeInContext2(c, &name, 1)};
    LLVMMetadataRef loop = LLVMMDNodeInContext2(c, all, 2);
    LLVMMetadataReplaceAllUsesWith(itself, loop);
    LLVMSetMetadata(LLVMGetBasicBlockTerminator(last),
                    LLVMGetMDKindIDInContext(c, "llvm.loop", 9), LLVMMetadataAsValue(c, loop));
}

static unsigned count_instructions(LLVMBasicBlockRef b)
{
    unsigned n = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        n++;
    return n;
}

struct numbered {
    LLVMBasicBlockRef block;
    unsigned before; // instructions up to it
};

static int by_block(const void *x, const void *y)
{
    uintptr_t a = (uintptr_t)((const struct numbered *)x)->block;
    uintptr_t b = (uintptr_t)((const struct numbered *)y)->block;
    return (a > b) - (a < b);
}

static void keep_long_loops(const struct cg_lowering *l)
{
    unsigned n = LLVMCountBasicBlocks(l->frame.function), i = 0, before = 0;
    struct numbered *blocks = arena_array(l->arena, struct numbered, n);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(l->frame.function); b; b = LLVMGetNextBasicBlock(b)) {
        blocks[i++] = (struct numbered){b, before};
        before += count_instructions(b);
    }
    qsort(blocks, n, sizeof *blocks, by_block);
    for (before = 0, b = LLVMGetFirstBasicBlock(l->frame.function); b;
         b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(b);
        unsigned targets = LLVMIsABranchInst(end) ? LLVMGetNumSuccessors(end) : 0;
        before += count_instructions(b);
        for (unsigned k = 0; k < targets; k++) {
            struct numbered key = {.block = LLVMGetSuccessor(end, k)};
            const struct numbered *to = bsearch(&key, blocks, n, sizeof *blocks, by_block);
            if (before >= to->before + COST_LONG_LOOP)
                keep_loop(l, b);
        }
    }
}

// A block that ends no loop is not asked.
static void keep_all_loops(const struct cg_lowering *l)
{
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(l->frame.function); b; b = LLVMGetNextBasicBlock(b)) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(b);
        if (LLVMIsABranchInst(end) && LLVMIsConditional(end))
            keep_loop(l, b);
    }
}

void gpu_function_close(struct cg_lowering *l, struct cg_kernel_step *step)
{
    struct cg_gpu *g = l->gpu;
    LLVMBuildRetVoid(l->m.b);
    if (g->function.keeps_loops)
        keep_all_loops(l);
    else
        keep_long_loops(l);
    step->block = g->block;
    step->scratch_bytes = g->function.shared_bytes * (g->columns ? 1 : g->block / g->group);
    if (step->scratch_bytes > GPU_MOST_SHARED)
        cg_fail(l, "no room for its locals in the shared memory of a GPU");
    if (local_bytes(l) > MOST_LOCAL)
        cg_fail(l, "no room for its locals in what a thread of a GPU has of its own");
}

LLVMValueRef gpu_extra_operand(const struct cg_lowering *l, unsigned i)
{
    return LLVMGetParam(l->frame.function, count_operands(l->nest) + i);
}

LLVMValueRef gpu_scratch(const struct cg_lowering *l)
{
    uint32_t i = 0;
    while (i < l->nest->buffers.count && l->nest->buffers.at[i].role != NEST_WORK)
        i++;
    assert(i < l->nest->buffers.count); // map has given it some (map/gpu_scratch.c)
    return l->buffers[i].base;
}

struct cg_loop gpu_chunks_open(struct cg_lowering *l, int64_t chunks)
{
    const struct cg_gpu *g = l->gpu;
    LLVMValueRef first = gpu_block_number(l);
    LLVMValueRef step = g->nest.is_phase ? g->phase.blocks : gpu_special(&l->m, "nctaid.x");
    if (chunks > INT32_MAX / 2) // where the last step could leave 32 bits
        return cg_loop_open(l, gpu_wide(l, first), cg_int(l->module, chunks),
                            gpu_wide(l, step));
    struct cg_loop loop = cg_loop_open(l, first, gpu_i32(l, chunks), step);
    loop.index = gpu_wide(l, loop.index);
    return loop;
}

struct cg_loop gpu_own_chunk_open(struct cg_lowering *l, int64_t chunks)
{
    if (l->gpu->nest.is_phase)
        return gpu_chunks_open(l, chunks);
    return (struct cg_loop){.index = gpu_wide(l, gpu_block_number(l))};
}

void gpu_lower_list(struct cg_lowering *l, uint32_t from, uint32_t to)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    l->gpu->before.is_here = from == 0 && to < body->statements.count;
    for (uint32_t i = from; i < to; i++)
        cg_lower_statement(l, body->statements.at[i]);
    l->gpu->before.is_here = false;
}
