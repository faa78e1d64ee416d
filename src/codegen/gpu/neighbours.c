// SPDX-License-Identifier: Apache-2.0
// Loads a few elements beside those that a thread owns: of x[i - 1] for i, ..., i + 3 the vectors are
// read that x[i - 4] and x[i] begin, 16 bytes each, and lanes of both taken.  A vector that no lane
// counts of may lie outside of the buffer, and is read elsewhere.
#include "codegen/gpu/neighbours.h"
#include "codegen/access.h"
#include "codegen/contiguous.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/memory.h"
#include "codegen/index.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"

// How far x is behind the start of its vector.
static int64_t rest_of(int64_t x, int64_t lanes) { return (x % lanes + lanes) % lanes; }

static bool is_aligned(const struct cg_lowering *l, const struct nest_statement *s)
{
    const struct nest_buffer *buffer = &l->nest->buffers.at[s->buffer];
    unsigned bytes = l->vector.lanes * (unsigned)jot_dtype_size(buffer->dtype);
    if (buffer->role == NEST_LOCAL || dtype_is_complex(buffer->dtype) || l->vector.lanes < 2 ||
        l->vector.mask || l->vector.axis == NEST_NONE || bytes > gpu_align_of(l, s->buffer) ||
        buffer->count % l->vector.lanes || nest_index_factor(&s->index, l->vector.axis) != 1)
        return false;
    for (uint32_t i = 0; i < s->index.count; i++) {
        const struct nest_term *t = &s->index.terms[i];
        bool is_lanes = !t->is_value && t->id == l->vector.axis;
        if (!is_lanes && (t->factor % l->vector.lanes ||
                          (t->is_value && cg_lanes_of(l->values[t->id].re) > 1)))
            return false;
    }
    return true;
}

// Whether the block that the load is in reads the vector that begins at the constant anyway.
static bool is_read_anyway(const struct cg_lowering *l, const struct nest_statement *s,
                           int64_t at)
{
    nest_id id = nest_id_of(l->nest, s);
    for (uint32_t i = 0; i < l->nest->blocks.count; i++) {
        bool is_here = false, is_read = false;
        nest_for_each (t, l->nest, i) {
            is_here |= nest_id_of(l->nest, t) == id;
            is_read |= t->kind == NEST_LOAD && t->buffer == s->buffer &&
                       t->guard == NEST_NONE && nest_index_same_terms(&t->index, &s->index) &&
                       t->index.constant == at;
        }
        if (is_here)
            return is_read;
    }
    return false;
}

// The vector that begins `by` behind the index of lane 0.
static LLVMValueRef load_neighbour(struct cg_lowering *l, const struct nest_statement *s,
                                   LLVMValueRef index, int64_t by)
{
    const struct nest_buffer *buffer = &l->nest->buffers.at[s->buffer];
    LLVMTypeRef lane = cg_memory_type(l->module, buffer->dtype), i64 = l->module->i64;
    struct nest_index start = s->index;
    LLVMValueRef first = cg_int(l->module, 0);
    index = LLVMBuildAdd(l->m.b, index, cg_int(l->module, by), "");
    start.constant += by;
    if (s->guard != NEST_NONE && !is_read_anyway(l, s, start.constant)) {
        LLVMValueRef last = cg_int(l->module, buffer->count - l->vector.lanes);
        index = cg_intrinsic(&l->m, "llvm.smax", i64, 2, (LLVMValueRef[]){index, first});
        index = cg_intrinsic(&l->m, "llvm.smin", i64, 2, (LLVMValueRef[]){index, last});
    }
    l->access.is_constant = gpu_is_read_only(l, s->buffer);
    LLVMValueRef v =
        cg_load_row(l, cg_with_lanes(lane, l->vector.lanes),
                    cg_at(l, lane, cg_buffer_base(l, s->buffer), index),
                    l->vector.lanes * (unsigned)jot_dtype_size(buffer->dtype), NULL);
    l->access.is_constant = false;
    return v;
}

bool gpu_load_neighbours(struct cg_lowering *l, const struct nest_statement *s,
                         LLVMValueRef guard, struct cg_value *out)
{
    LLVMBuilderRef b = l->m.b;
    if ((guard && cg_lanes_of(guard) == 1) || !is_aligned(l, s))
        return false;
    int64_t rest = rest_of(s->index.constant, l->vector.lanes);
    if (!rest && !guard)
        return false;
    LLVMValueRef index = cg_index_first(l, &s->index), order[16];
    LLVMValueRef low = load_neighbour(l, s, index, -rest), high = low;
    if (rest)
        high = load_neighbour(l, s, index, l->vector.lanes - rest);
    for (unsigned i = 0; i < l->vector.lanes; i++)
        order[i] = gpu_i32(l, rest + i);
    LLVMValueRef v =
        LLVMBuildShuffleVector(b, low, high, LLVMConstVector(order, l->vector.lanes), "");
    if (guard)
        v = LLVMBuildSelect(b, guard, v, LLVMConstNull(LLVMTypeOf(v)), "");
    *out = (struct cg_value){cg_from_memory(l, v, l->nest->buffers.at[s->buffer].dtype), NULL};
    return true;
}
