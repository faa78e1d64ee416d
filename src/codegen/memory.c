// SPDX-License-Identifier: Apache-2.0
// Memory of a function: its frame, what the worker has, and where buffers are.
#include "codegen/memory.h"
#include "codegen/hooks.h"
#include "codegen/lower.h"
#include "codegen/types.h"

#define SMALL_BYTES 8192 // what may live in the frame

LLVMValueRef cg_alloca(struct cg_lowering *l, LLVMTypeRef type, uint64_t count)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->module->context);
    LLVMValueRef first = LLVMGetFirstInstruction(l->frame.entry);
    if (first)
        LLVMPositionBuilderBefore(b, first);
    else
        LLVMPositionBuilderAtEnd(b, l->frame.entry);
    LLVMTypeRef all = count == 1 ? type : LLVMArrayType2(type, count);
    LLVMValueRef at = LLVMBuildAlloca(b, all, "");
    LLVMSetAlignment(at, 64);
    LLVMDisposeBuilder(b);
    return at;
}

// Bytes behind the base, in the entry block, for it is used wherever the memory is.
static LLVMValueRef address_at_entry(struct cg_lowering *l, LLVMValueRef base, uint64_t bytes)
{
    LLVMValueRef at = cg_int(l->module, (int64_t)bytes);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->module->context);
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(l->frame.entry));
    LLVMValueRef memory = LLVMBuildInBoundsGEP2(b, l->module->i8, base, &at, 1, "");
    LLVMDisposeBuilder(b);
    return memory;
}

LLVMValueRef cg_scratch(struct cg_lowering *l, uint64_t bytes)
{
    if (bytes <= SMALL_BYTES || l->gpu)
        return cg_alloca(l, l->module->i8, bytes ? bytes : 1);
    LLVMValueRef memory = address_at_entry(l, l->frame.scratch, l->frame.scratch_bytes);
    l->frame.scratch_bytes += (bytes + 63) / 64 * 64;
    return memory;
}

LLVMValueRef cg_at(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef i)
{
    return LLVMBuildInBoundsGEP2(l->m.b, type, base, &i, 1, "");
}

LLVMValueRef cg_buffer_base(struct cg_lowering *l, nest_id buffer)
{
    struct cg_buffer *state = &l->buffers[buffer];
    unsigned chunk = l->chunks.at ? l->chunks.now : 0;
    if (state->base)
        return state->expanded ? state->of_chunk[chunk] : state->base;
    const struct nest_buffer *info = &l->nest->buffers.at[buffer];
    if (info->role != NEST_LOCAL)
        return NULL; // kernel.c loads those of arguments on entry
    if (l->gpu && (state->base = l->module->hooks->shared_local(l, buffer)))
        return state->base;
    state->expanded = l->vector.lanes > 1 && cg_is_inside(l, buffer, l->vector.loop);
    uint64_t row =
        dtype_get(info->dtype)->bytes * (uint64_t)(state->expanded ? l->vector.lanes : 1);
    uint64_t bytes = row * (uint64_t)info->count;
    unsigned chunks = state->expanded && l->chunks.at ? l->chunks.count : 1;
    // Elements of all vectors lie together, but for what may become registers.
    state->between = bytes > SMALL_BYTES ? chunks : 1;
    LLVMValueRef all = state->between > 1 ? cg_scratch(l, bytes * chunks) : NULL;
    for (unsigned c = 0; c < chunks; c++)
        state->of_chunk[c] = all ? address_at_entry(l, all, row * c) : cg_scratch(l, bytes);
    state->base = state->of_chunk[0];
    return state->of_chunk[chunk];
}
