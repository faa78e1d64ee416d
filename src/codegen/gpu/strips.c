// SPDX-License-Identifier: Apache-2.0
// A thread writes a strip of a few steps of a loop over time out: what it puts in them goes to memory 16
// bytes at once, and what it reads in them is on its way at once.
#include "codegen/gpu/strips.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/memory.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/stack.h"
#include "codegen/types.h"
#include "map/gpu_lanes.h"

// Whether a strip's puts are accesses of 16 bytes.
static bool is_strip_put(struct cg_lowering *l, const struct nest_statement *seq,
                         const struct nest_statement *s, int64_t steps)
{
    if (s->kind != NEST_PUT || !cg_lies_along_time(l, seq, s))
        return false;
    unsigned bytes = dtype_get(l->nest->buffers.at[s->buffer].dtype)->bytes;
    if (steps * bytes < MAP_ALIGNMENT)
        return false;
    nest_id axis = l->vector.axis;
    l->vector.axis = seq->axes[0];
    l->vector.lanes = MAP_ALIGNMENT / bytes;
    bool is_aligned = gpu_alignment(l, s) == MAP_ALIGNMENT;
    l->vector.lanes = 1;
    l->vector.axis = axis;
    return is_aligned;
}

int64_t gpu_strip_find(struct cg_lowering *l, const struct nest_statement *seq)
{
    int64_t steps = GPU_STRIP;
    bool moves = false;
    while (steps > 1 && (cg_extent(l, seq) % steps || !map_is_short(l->nest, seq->body, steps)))
        steps /= 2;
    nest_for_each (s, l->nest, seq->body) {
        if (s->kind > NEST_PUT)
            return 1;
        bool is_access = s->kind == NEST_LOAD || s->kind == NEST_PUT;
        moves |= is_access && nest_index_factor(&s->index, seq->axes[0]) != 0;
    }
    if (!l->gpu->nest.has_strips || gpu_is_together(l) || l->gpu->network)
        return 1;
    // Of several chains the assembler writes no steps out by itself.
    if (l->vector.lanes > 1 && !moves)
        return cg_extent(l, seq) % (GPU_STRIP / l->vector.lanes) ? 1
                                                                 : GPU_STRIP / l->vector.lanes;
    if (!moves || l->vector.lanes > 1)
        return 1;
    nest_for_each (s, l->nest, seq->body) {
        nest_id id = nest_id_of(l->nest, s);
        if (!l->marks[id].is_hoisted && is_strip_put(l, seq, s, steps))
            l->marks[id].stack.memory = cg_alloca(
                l, cg_memory_type(l->module, l->nest->buffers.at[s->buffer].dtype), steps);
    }
    return steps;
}

void gpu_strip_store(struct cg_lowering *l, const struct nest_statement *seq,
                     LLVMValueRef first, int64_t steps)
{
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        if (!l->marks[id].stack.memory)
            continue;
        const struct nest_statement *s = cg_statement(l, id);
        jot_dtype d = l->nest->buffers.at[s->buffer].dtype;
        LLVMTypeRef lane = cg_memory_type(l->module, d);
        unsigned n = MAP_ALIGNMENT / dtype_get(d)->bytes;
        LLVMValueRef to = cg_stack_row(l, seq, s, lane, first, cg_int(l->module, steps));
        for (int64_t k = 0; k < steps; k += n) {
            LLVMValueRef from = cg_at(l, lane, l->marks[id].stack.memory, cg_int(l->module, k));
            LLVMValueRef v = LLVMBuildLoad2(l->m.b, LLVMVectorType(lane, n), from, "");
            LLVMSetAlignment(v, dtype_get(d)->bytes);
            v = LLVMBuildStore(l->m.b, v, cg_at(l, lane, to, cg_int(l->module, k)));
            LLVMSetAlignment(v, MAP_ALIGNMENT);
        }
    }
}

void gpu_strip_end(struct cg_lowering *l, const struct nest_statement *seq)
{
    const struct nest_block *b = &l->nest->blocks.at[seq->body];
    for (uint32_t i = 0; i < b->statements.count; i++)
        l->marks[b->statements.at[i]].stack = (struct cg_stack){0};
}
