// SPDX-License-Identifier: Apache-2.0
#include "codegen/gpu/device.h"
#include "codegen/accumulate.h"
#include "codegen/emit.h"
#include "codegen/gpu/gpu.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu.h"

#include <stdio.h>
#include <string.h>

LLVMValueRef gpu_call(struct machine *m, const char *name, int n, LLVMValueRef *arguments)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m->module->module, id, NULL, 0);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->module->context, id, NULL, 0);
    return LLVMBuildCall2(m->b, type, f, arguments, (unsigned)n, "");
}

static LLVMValueRef call(struct cg_lowering *l, const char *name, int n,
                         LLVMValueRef *arguments)
{
    return gpu_call(&l->m, name, n, arguments);
}

LLVMValueRef gpu_special(struct machine *m, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "llvm.nvvm.read.ptx.sreg.%s", name);
    return gpu_call(m, whole, 0, NULL);
}

LLVMValueRef gpu_block_number(struct cg_lowering *l)
{
    return l->gpu->nest.is_phase ? l->gpu->phase.block : gpu_special(&l->m, "ctaid.x");
}

void gpu_barrier(struct machine *m) { gpu_call(m, "llvm.nvvm.barrier0", 0, NULL); }

// Of the threads that run a phase, other ones of the block beside them.
static void sync_phase(struct cg_lowering *l)
{
    struct cg_gpu *g = l->gpu;
    LLVMValueRef mask = gpu_i32(l, g->block < 32 ? (1 << g->block) - 1 : -1);
    LLVMValueRef who[] = {g->phase.barrier, gpu_i32(l, g->block)};
    if (g->block > GPU_WARP)
        call(l, "llvm.nvvm.barrier", 2, who);
    else
        call(l, "llvm.nvvm.bar.warp.sync", 1, &mask);
}

LLVMValueRef gpu_i32(const struct cg_lowering *l, int64_t x)
{
    return LLVMConstInt(l->module->i32, (unsigned long long)x, 1);
}

LLVMValueRef gpu_wide(struct cg_lowering *l, LLVMValueRef i32)
{
    return LLVMBuildZExt(l->m.b, i32, l->module->i64, "");
}

bool gpu_is_repeated(const struct cg_lowering *l)
{
    return l->gpu->is_same || l->gpu->waits.is_repeated[l->gpu->waits.statement];
}

void gpu_sync_warp(struct cg_lowering *l)
{
    LLVMValueRef all = gpu_i32(l, -1);
    call(l, "llvm.nvvm.bar.warp.sync", 1, &all);
}

void gpu_sync(struct cg_lowering *l)
{
    bool is_of_block = l->gpu->group > GPU_WARP || l->gpu->columns;
    if (is_of_block && l->gpu->nest.is_phase)
        sync_phase(l);
    else if (is_of_block)
        gpu_barrier(&l->m);
    else if (l->gpu->group > 1)
        gpu_sync_warp(l);
    l->gpu->waits.synced = LLVMGetInsertBlock(l->m.b);
    l->gpu->waits.has_read = false;
    for (uint32_t i = 0; !gpu_is_repeated(l) && i <= l->nest->buffers.count; i++)
        l->gpu->waits.is_read[i] = false;
}

// A shuffle moves 32 bits.
static LLVMValueRef shuffle_word(struct cg_lowering *l, const char *kind, LLVMValueRef v,
                                 LLVMValueRef by)
{
    char name[64];
    snprintf(name, sizeof name, "llvm.nvvm.shfl.sync.%s.i32", kind);
    bool is_up = !strcmp(kind, "up"); // whose end is lane 0
    LLVMValueRef arguments[] = {gpu_i32(l, -1), v, by, gpu_i32(l, is_up ? 0 : 31)};
    return call(l, name, 4, arguments);
}

static LLVMValueRef shuffle_lane(struct cg_lowering *l, const char *kind, LLVMValueRef v,
                                 LLVMValueRef by)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef type = LLVMTypeOf(v), i32 = l->module->i32;
    LLVMTypeKind is = LLVMGetTypeKind(type);
    unsigned bits = is == LLVMFloatTypeKind    ? 32
                    : is == LLVMDoubleTypeKind ? 64
                                               : LLVMGetIntTypeWidth(type);
    if (bits < 32) {
        LLVMValueRef wide = LLVMBuildZExt(b, v, i32, "");
        return LLVMBuildTrunc(b, shuffle_word(l, kind, wide, by), type, "");
    }
    if (bits == 32) {
        LLVMValueRef word = LLVMBuildBitCast(b, v, i32, "");
        return LLVMBuildBitCast(b, shuffle_word(l, kind, word, by), type, "");
    }
    LLVMTypeRef pair = LLVMVectorType(i32, 2);
    LLVMValueRef words = LLVMBuildBitCast(b, v, pair, ""), moved = LLVMGetPoison(pair);
    for (int i = 0; i < 2; i++) {
        LLVMValueRef word = LLVMBuildExtractElement(b, words, gpu_i32(l, i), "");
        moved = LLVMBuildInsertElement(b, moved, shuffle_word(l, kind, word, by), gpu_i32(l, i),
                                       "");
    }
    return LLVMBuildBitCast(b, moved, type, "");
}

static struct cg_element shuffle(struct cg_lowering *l, const char *kind,
                                 const struct cg_element *t, LLVMValueRef by)
{
    struct cg_element r = {{0}};
    for (int part = 0; part < 3; part++) {
        if (!t->v[part])
            continue;
        unsigned lanes = cg_lanes_of(t->v[part]);
        if (lanes == 1) {
            r.v[part] = shuffle_lane(l, kind, t->v[part], by);
            continue;
        }
        LLVMValueRef all = LLVMGetPoison(LLVMTypeOf(t->v[part]));
        for (unsigned i = 0; i < lanes; i++) {
            LLVMValueRef lane = cg_extract(&l->m, t->v[part], i, 1);
            all = LLVMBuildInsertElement(l->m.b, all, shuffle_lane(l, kind, lane, by),
                                         gpu_i32(l, i), "");
        }
        r.v[part] = all;
    }
    return r;
}

struct cg_element gpu_shuffle_down(struct cg_lowering *l, const struct cg_element *t,
                                   unsigned by)
{
    return shuffle(l, "down", t, gpu_i32(l, by));
}

struct cg_element gpu_shuffle_up(struct cg_lowering *l, const struct cg_element *t, unsigned by)
{
    return shuffle(l, "up", t, gpu_i32(l, by));
}

struct cg_element gpu_shuffle_from(struct cg_lowering *l, const struct cg_element *t,
                                   LLVMValueRef from)
{
    return shuffle(l, "idx", t, from);
}

// All of it is one array whose size the launch says.
LLVMValueRef gpu_shared_start(struct machine *m)
{
    static const char name[] = "jot_shared";
    LLVMValueRef all = LLVMGetNamedGlobal(m->module->module, name);
    if (!all) {
        LLVMTypeRef type = LLVMArrayType2(m->module->i8, 0);
        all = LLVMAddGlobalInAddressSpace(m->module->module, type, name, 3);
        LLVMSetLinkage(all, LLVMExternalLinkage);
        LLVMSetAlignment(all, m->module->has_warpgroups ? 1024 : 16);
    }
    return LLVMBuildAddrSpaceCast(m->b, all, m->module->ptr, "");
}

LLVMValueRef gpu_shared(struct cg_lowering *l, uint64_t bytes)
{
    struct cg_gpu *g = l->gpu;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->module->context), outer = l->m.b;
    // In the entry block, for it is used wherever the memory is.
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(l->frame.entry));
    l->m.b = b;
    int64_t size = (int64_t)(bytes + 15) / 16 * 16,
            groups = g->columns ? 1 : g->block / g->group;
    LLVMValueRef all = g->nest.is_phase ? g->phase.shared : gpu_shared_start(&l->m);
    LLVMValueRef at = cg_int(l->module, (int64_t)g->function.shared_bytes * groups);
    if (groups > 1)
        at = LLVMBuildAdd(
            b, at, LLVMBuildMul(b, gpu_wide(l, g->number), cg_int(l->module, size), ""), "");
    LLVMValueRef memory = cg_at(l, l->module->i8, all, at);
    l->m.b = outer;
    LLVMDisposeBuilder(b);
    g->function.shared_bytes += (uint64_t)size;
    return memory;
}

LLVMValueRef gpu_is_last(struct cg_lowering *l, LLVMValueRef counter, int64_t count)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef told = gpu_shared(l, 4), zero = gpu_i32(l, 0);
    call(l, "llvm.nvvm.membar.gl", 0, NULL);
    gpu_sync(l);
    struct cg_branch one =
        cg_if_open(l, LLVMBuildICmp(b, LLVMIntEQ, l->gpu->in_group, zero, ""));
    LLVMValueRef old = LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, counter, gpu_i32(l, 1),
                                          LLVMAtomicOrderingMonotonic, false);
    LLVMValueRef is_last = LLVMBuildICmp(b, LLVMIntEQ, old, gpu_i32(l, count - 1), "");
    struct cg_branch last = cg_if_open(l, is_last);
    LLVMBuildStore(b, zero, counter);
    cg_if_close(l, &last);
    LLVMBuildStore(b, LLVMBuildZExt(b, is_last, l->module->i32, ""), told);
    cg_if_close(l, &one);
    gpu_sync(l);
    LLVMValueRef heard = LLVMBuildLoad2(b, l->module->i32, told, "");
    call(l, "llvm.nvvm.membar.gl", 0, NULL);
    return LLVMBuildICmp(b, LLVMIntNE, heard, zero, "");
}
